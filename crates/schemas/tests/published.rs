//! `docs/schemas` is what the types give, and is known to those that compare with it.
//!
//! After a change of a type: `make schemas` (`WIRESPEED_WRITE_SCHEMAS=1 cargo test -p wirespeed-schemas --test published`).

#[path = "published/device.rs"]
mod device;
#[path = "published/outputs.rs"]
mod outputs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use wirespeed_schemas::EMBEDDED;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// The files in `docs/schemas`, by name, with their text.
fn published() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder()).expect("docs/schemas");
    entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").display().to_string();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .collect()
}

#[test]
fn the_published_schemas_are_what_the_types_give() {
    let given = outputs::all();
    if std::env::var_os("WIRESPEED_WRITE_SCHEMAS").is_some() {
        for (file, text) in &given {
            std::fs::write(folder().join(file), text).expect("the schema is written");
        }
    }
    let published = published();
    let names: BTreeSet<&String> = given.keys().chain(published.keys()).collect();
    let different: Vec<&String> = names
        .into_iter()
        .filter(|name| given.get(*name) != published.get(*name))
        .collect();
    assert!(
        different.is_empty(),
        "docs/schemas differs from the types in {different:?}. Fields may be added within a version; what else changes raises \
         it (docs/json.md). `make schemas` writes them anew"
    );
}

#[test]
fn each_is_known_to_those_that_compare_with_it() {
    let known: BTreeSet<&str> = EMBEDDED.into_iter().map(|(name, _)| name).collect();
    let published = published();
    let published: BTreeSet<&str> = published.keys().map(String::as_str).collect();
    assert_eq!(known, published);
}
