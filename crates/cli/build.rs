//! Lists the pages of the causes in each language, so that adding one is adding a file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let pages = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../docs/causes");
    let mut list = String::new();
    for (name, tag) in [("ENGLISH", "en"), ("FRENCH", "fr")] {
        let _ = writeln!(list, "pub(crate) const {name}: &[(&str, &str)] = &[");
        for page in pages_in(&pages.join(tag)) {
            let code = page.file_stem().unwrap_or_default().to_string_lossy();
            let path = page.display().to_string();
            let _ = writeln!(list, "    ({code:?}, include_str!({path:?})),");
        }
        list.push_str("];\n");
    }
    fs::write(Path::new(&variable("OUT_DIR")).join("pages.rs"), list).expect("the list of pages");
}

fn pages_in(folder: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of pages")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo says where")
}
