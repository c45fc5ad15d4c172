//! Runs the entry point of a fuzz target on its corpus, as a plain test. Included by each crate's `fuzzing.rs`.

use std::fs;
use std::path::Path;

/// `target` on every file of `fuzz/corpus/NAME`.
pub(crate) fn corpus(name: &str, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let entries =
        fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        // Shown when the test fails: the last one is to blame.
        println!("{}", path.display());
        target(&fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", directory.display());
}
