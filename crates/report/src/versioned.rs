//! What says which shape an object has: its schema's name and version (`docs/schemas`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use wirespeed_tune::{PutBack, Status};

/// Name and version of a record's shape. A field that is added keeps the version; one that changes its
/// meaning or goes away raises it (`docs/json.md`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schema {
    /// `wirespeed.doctor`, `wirespeed.test`, `wirespeed.tune.plan` …
    pub name: Cow<'static, str>,
    /// Counts from 1.
    pub version: u32,
}

/// What is printed and what `docs/schemas` says have their versions from here, each its own.
impl Schema {
    /// `wirespeed doctor --json`.
    pub const DOCTOR: Self = Self::new("wirespeed.doctor", 1);
    /// `wirespeed doctor --hop … --json`.
    pub const HOPS: Self = Self::new("wirespeed.hops", 1);
    /// `wirespeed doctor --record FILE`.
    pub const EVIDENCE: Self = Self::new("wirespeed.evidence", 1);
    /// `wirespeed test --json`.
    pub const TEST: Self = Self::new("wirespeed.test", 1);
    /// `wirespeed tune --json`.
    pub const TUNE: Self = Self::new("wirespeed.tune", 1);
    /// `wirespeed tune --plan --json`.
    pub const TUNE_PLAN: Self = Self::new("wirespeed.tune.plan", 1);
    /// `wirespeed tune status --json`, `wirespeed tune confirm --json`.
    pub const TUNE_STATUS: Self = Self::new("wirespeed.tune.status", 1);
    /// `wirespeed tune undo --json`.
    pub const TUNE_UNDO: Self = Self::new("wirespeed.tune.undo", 1);
    /// `wirespeed lab list --json`.
    pub const LAB_LIST: Self = Self::new("wirespeed.lab.list", 1);
    /// `wirespeed lab up --json`.
    pub const LAB_UP: Self = Self::new("wirespeed.lab.up", 1);
    /// `wirespeed lab status --json`.
    pub const LAB_STATUS: Self = Self::new("wirespeed.lab.status", 1);

    /// A schema by its whole name.
    pub const fn new(name: &'static str, version: u32) -> Self {
        Self {
            name: Cow::Borrowed(name),
            version,
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
    /// The object with this schema.
    pub fn of(schema: Schema, object: T) -> Self {
        Self { schema, object }
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
