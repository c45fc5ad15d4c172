//! What tests of this crate share.

use std::io::Write;

/// Says that a test couldn't be run here, and why.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    let Some(path) = std::env::var_os("WIRESPEED_SKIPS") else {
        return;
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}
