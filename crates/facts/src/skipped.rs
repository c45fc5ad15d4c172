//! Telling that a test could not run here.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Prints it, and adds it to the file that `WIRESPEED_SKIPS` names.
pub(crate) fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}
