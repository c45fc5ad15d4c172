//! Lists the texts of each language, so that adding some is adding a file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The help of the command lines, which crates/help has.
const HELP: &str = "help.ftl";

fn main() {
    let locales = Path::new(&variable("CARGO_MANIFEST_DIR")).join("locales");
    let mut list = String::new();
    for (name, tag) in [("ENGLISH", "en"), ("FRENCH", "fr")] {
        let mut files = Vec::new();
        collect(&locales.join(tag), &mut files);
        files.sort();
        let _ = writeln!(list, "pub(crate) const {name}: &[(&str, &str)] = &[");
        for file in files {
            let path = file.display().to_string();
            let short = file.strip_prefix(&locales).unwrap_or(&file).display();
            let _ = writeln!(
                list,
                "    ({:?}, include_str!({path:?})),",
                short.to_string()
            );
        }
        list.push_str("];\n");
    }
    fs::write(Path::new(&variable("OUT_DIR")).join("texts.rs"), list).expect("the list of texts");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    // A new file changes its folder.
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).expect("a folder of texts") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "ftl")
            && !path.ends_with(HELP)
        {
            files.push(path);
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo says where")
}
