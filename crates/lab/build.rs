//! Lists the scenario files, so that adding one is adding a file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=scenarios");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of scenarios")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    let mut list = String::from("&[\n");
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(
            list,
            "({name:?}, include_str!({:?})),",
            path.display().to_string()
        );
    }
    list.push_str("]\n");
    let list_path = Path::new(&variable("OUT_DIR")).join("scenarios.rs");
    fs::write(list_path, list).expect("the list of scenarios");
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo says where")
}
