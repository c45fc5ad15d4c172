//! The recordings of a folder.

use std::path::{Path, PathBuf};

/// The JSON files of a folder beside the package's file, by name.
pub(crate) fn json_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of recordings")
        .map(|entry| entry.expect("a recording").path())
        .filter(|path| path.extension().is_some_and(|one| one == "json"))
        .collect();
    all.sort();
    all
}
