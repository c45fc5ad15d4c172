//! Is what a program printed what `docs/schemas` says? And does a schema still say what was published under its version?
//!
//! The published schemas let fields come that they do not know, as they may within a version. Here they do not: who adds a
//! field sees a test fail until the schema tells of it.

mod breaks;
mod closed;
mod published;
mod shape;
mod since;
mod walk;

use std::fmt::Write as _;

use serde_json::Value;

pub use breaks::{Break, breaks};
pub use published::EMBEDDED;
pub use since::broken_since;
pub use walk::each;

use published::{Published, published};

/// More than these are not told of one object.
const MOST_TOLD: usize = 8;

/// Why an object is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    /// It is no JSON at all.
    #[error("this is not one JSON object: {0}")]
    NoJson(serde_json::Error),
    /// It does not say what it is.
    #[error("it has no `schema` with a name and a version")]
    NoSchema,
    /// Nothing is published under this name and version.
    #[error("docs/schemas has no version {version} of {name}")]
    Unpublished {
        /// `wirespeed.doctor`.
        name: String,
        /// Counts from 1.
        version: u64,
    },
    /// The schema and the object differ.
    #[error("it is no {name}:\n{differences}")]
    Different {
        /// `wirespeed.doctor`.
        name: String,
        /// One per line: where, and what.
        differences: String,
    },
}

/// Reads what a program printed, which must be one object and as its schema says.
pub fn read(printed: &[u8]) -> Result<Value, Mismatch> {
    let object = serde_json::from_slice(printed).map_err(Mismatch::NoJson)?;
    check(&object)?;
    Ok(object)
}

/// Is the object what the schema it names says, and nothing more?
pub fn check(object: &Value) -> Result<(), Mismatch> {
    let schema = &object["schema"];
    let (Some(name), Some(version)) = (schema["name"].as_str(), schema["version"].as_u64()) else {
        return Err(Mismatch::NoSchema);
    };
    differences(name, object, find(name, version)?)
}

/// Could an earlier release have printed the object under this name and version? It may lack what came later, and nothing it has
/// may have gone away or changed.
pub fn check_of_an_earlier_release(
    name: &str,
    version: u64,
    object: &Value,
) -> Result<(), Mismatch> {
    differences(name, object, &find(name, version)?.earlier())
}

fn find(name: &str, version: u64) -> Result<&'static Published, Mismatch> {
    let unpublished = || Mismatch::Unpublished {
        name: name.to_owned(),
        version,
    };
    published()
        .get(&(name.to_owned(), version))
        .ok_or_else(unpublished)
}

fn differences(name: &str, object: &Value, published: &Published) -> Result<(), Mismatch> {
    let mut differences = String::new();
    let errors = published.validator.iter_errors(object);
    for error in errors.take(MOST_TOLD) {
        let _ = writeln!(differences, "  {}: {error}", error.instance_path());
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Mismatch::Different {
        name: name.to_owned(),
        differences,
    })
}
