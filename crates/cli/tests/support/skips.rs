//! Tests that this machine lacks something for.

use std::fs::File;
use std::io::Write;

/// Says that a test is skipped, here and in the summary that `WIRESPEED_SKIPS` names.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = File::options().append(true).create(true).open(path)
    {
        // A summary that can't be written must not fail a test that was skipped.
        let _ = file.write_all(line.as_bytes());
    }
}

/// Is such a program to be found?
pub(crate) fn is_there(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|paths| {
        std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
    })
}
