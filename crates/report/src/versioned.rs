//! What says which shape an object has: its schema's name and version (`docs/schemas`).

use serde::{Deserialize, Serialize};
use wirespeed_tune::{PutBack, Status};

/// Name and version of a record's shape. A field that is added keeps the version; one that changes its
/// meaning or goes away raises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schema {
    /// `wirespeed.doctor`, `wirespeed.test`, `wirespeed.tune.plan` …
    pub name: String,
    /// Counts from 1.
    pub version: u32,
}

impl Schema {
    /// The first version of the schema of a command.
    pub fn of(command: &str) -> Self {
        Self {
            name: format!("wirespeed.{command}"),
            version: 1,
        }
    }
}

/// An object of another crate's with its schema in front, for those that have none of their own.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "{T}Record", description = "")
)]
pub struct Versioned<T> {
    /// That of the object.
    pub schema: Schema,
    /// Its fields.
    #[serde(flatten)]
    pub object: T,
}

impl<T> Versioned<T> {
    /// The object with the first version of this schema.
    pub fn of(command: &str, object: T) -> Self {
        Self {
            schema: Schema::of(command),
            object,
        }
    }
}

/// What `wirespeed tune undo --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UndoRecord {
    /// `wirespeed.tune.undo`.
    pub schema: Schema,
    /// Machine's name, and what became of each setting there.
    pub machines: Vec<(String, Vec<PutBack>)>,
}

/// What `wirespeed tune status --json` and `wirespeed tune confirm --json` print.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusRecord {
    /// `wirespeed.tune.status`.
    pub schema: Schema,
    /// Machine's name, and what it knows of its tune.
    pub machines: Vec<(String, Status)>,
}
