//! Makes the list of checks from the modules that `causes.rs` names, so that a cause is registered by one line.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=src/causes.rs");
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")).join("src/causes.rs");
    let text = fs::read_to_string(&source).expect("the causes");
    let mut list = String::from("&[\n");
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    for name in names {
        let _ = writeln!(list, "{name}::CHECK,");
    }
    list.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")).join("checks.rs"), list).expect("the list of checks");
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo says where")
}
