//! `docs/schemas` is what the types give, keeps what was published, and is known to those that compare with it.
//!
//! After a change of a type: `make schemas` (`WIRESPEED_WRITE_SCHEMAS=1 cargo test -p wirespeed-schemas --test published`). What
//! breaks those who read a version is refused: the version is raised then, where the constant is that the program prints, and
//! the earlier one's file stays.

#[path = "published/device.rs"]
mod device;
#[path = "published/outputs.rs"]
mod outputs;
#[path = "published/released.rs"]
mod released;
#[path = "../../cli/tests/support/skips.rs"]
mod skips;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wirespeed_report::Schema;
use wirespeed_schemas::{EMBEDDED, breaks, broken_since};

use outputs::Output;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn docs() -> PathBuf {
    repository().join("docs")
}

fn folder() -> PathBuf {
    docs().join("schemas")
}

/// The files in a folder, by name, with their text.
fn files_in(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").display().to_string();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .collect()
}

/// Why this can't be published under the name and the version of the published text.
fn refusal(published: &str, output: &Output) -> Option<String> {
    let parsed = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let breaks = breaks(&parsed(published), &parsed(&output.text));
    if breaks.is_empty() {
        return None;
    }
    let lines: Vec<String> = breaks.iter().map(|one| format!("  {one}\n")).collect();
    let Schema { name, version } = &output.says;
    Some(format!(
        "{} was published otherwise:\n{}Raise the version of {name} to {} (crates/report/src/versioned.rs; the device's is in \
         crates/device/src/device.rs). If no release ever printed what would change here, put the last release's file in its place \
         first, or none where there was none.\n",
        output.file(),
        lines.concat(),
        version + 1
    ))
}

/// Writes what may be written; tells what may not.
fn write(folder: &Path, outputs: &[Output]) -> Vec<String> {
    let write_one = |output: &Output| {
        let path = folder.join(output.file());
        let published = std::fs::read_to_string(&path).ok();
        let refused = published.and_then(|published| refusal(&published, output));
        if refused.is_none() {
            std::fs::write(&path, &output.text).expect("the schema is written");
        }
        refused
    };
    outputs.iter().filter_map(write_one).collect()
}

#[test]
fn the_published_schemas_are_what_the_types_give() {
    let outputs = outputs::all();
    if std::env::var_os("WIRESPEED_WRITE_SCHEMAS").is_some() {
        let refused = write(&folder(), &outputs);
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
    let published = files_in(&folder());
    let differs = |output: &Output| {
        let file = output.file();
        match published.get(&file) {
            Some(text) if *text == output.text => None,
            Some(text) => Some(refusal(text, output).unwrap_or(format!(
                "{file} lacks what the types have got: `make schemas` adds it\n"
            ))),
            None => Some(format!("{file} is not there: `make schemas` writes it\n")),
        }
    };
    let told: Vec<String> = outputs.iter().filter_map(differs).collect();
    assert!(told.is_empty(), "docs/schemas: {}", told.join("\n"));
}

/// The files in `docs/schemas` can be overwritten, and with them what they say was published. A tag can't.
#[test]
fn nothing_breaks_those_who_read_as_the_last_release_printed() {
    const TEST: &str = "nothing_breaks_those_who_read_as_the_last_release_printed";
    let (tag, released) = match released::last(&repository()) {
        Ok(release) => release,
        Err(reason) => return skips::skip(TEST, &format!("no release to compare with: {reason}")),
    };
    let broken = broken_since(&released, &files_in(&folder())).expect("JSON");
    assert!(
        broken.is_empty(),
        "{tag} published otherwise:\n  {}\nPut its files back (git checkout {tag} -- docs/schemas), raise the versions \
         (crates/report/src/versioned.rs, crates/device/src/device.rs), `make schemas`.",
        broken.join("\n  ")
    );
}

#[test]
fn every_version_of_each_is_there_and_known_to_those_that_compare_with_it() {
    let outputs = outputs::all();
    let all: BTreeSet<String> = outputs
        .iter()
        .flat_map(|output| (1..=output.says.version).map(|version| output.file_of(version)))
        .collect();
    let published: BTreeSet<String> = files_in(&folder()).into_keys().collect();
    assert_eq!(published, all, "in docs/schemas");
    let known: BTreeSet<String> = EMBEDDED
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(known, all, "in crates/schemas/src/published.rs");
}

#[test]
fn the_page_about_the_json_has_a_row_for_each() {
    for (page, schemas) in [("json.md", "schemas"), ("fr/json.md", "../schemas")] {
        let text = std::fs::read_to_string(docs().join(page)).expect("the page");
        for output in outputs::all() {
            let row = format!("| `{}` |", output.says.name);
            let row = text.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("{page}: no {}", output.says.name));
            for version in 1..=output.says.version {
                let file = output.file_of(version);
                let link = format!("[{file}]({schemas}/{file})");
                assert!(row.contains(&link), "{page}: no {link} in {row}");
            }
        }
    }
}

/// An output with one field.
fn horoscope(version: u32, field: &str, kind: &Value) -> Output {
    let schema = json!({
        "type": "object",
        "properties": {field: {"type": kind}},
        "required": [field],
    });
    Output {
        says: Schema::new("wirespeed.horoscope", version),
        text: schema.to_string(),
    }
}

#[test]
fn what_was_published_is_not_overwritten_by_what_breaks_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = || files_in(folder.path());
    let first = horoscope(1, "mood", &json!("string"));
    assert!(write(folder.path(), std::slice::from_ref(&first)).is_empty());

    for (field, kind, told) in [
        ("temper", json!("string"), "mood went away"),
        ("mood", json!(["string", "null"]), "mood may be null"),
    ] {
        let refused = write(folder.path(), &[horoscope(1, field, &kind)]).concat();
        assert!(refused.contains(told), "{refused}");
        let way_out = "Raise the version of wirespeed.horoscope to 2";
        assert!(refused.contains(way_out), "{refused}");
        assert_eq!(files()["horoscope.v1.json"], first.text);
    }

    let second = horoscope(2, "temper", &json!("string"));
    assert!(write(folder.path(), std::slice::from_ref(&second)).is_empty());
    let both = [
        ("horoscope.v1.json".to_owned(), first.text),
        ("horoscope.v2.json".to_owned(), second.text),
    ];
    assert_eq!(files(), BTreeMap::from(both));

    let mut more = horoscope(2, "temper", &json!("string"));
    let mut schema: Value = serde_json::from_str(&more.text).expect("JSON");
    schema["properties"]["luck"] = json!({"type": "number"});
    more.text = schema.to_string();
    assert!(write(folder.path(), std::slice::from_ref(&more)).is_empty());
    assert_eq!(files()["horoscope.v2.json"], more.text);
}
