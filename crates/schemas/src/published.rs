//! `docs/schemas`, ready to compare with.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::closed::{close, demand_nothing};

/// The schema of one output.
pub(crate) struct Published {
    schema: Value,
    /// Takes only the fields that the schema names.
    pub(crate) validator: Validator,
}

impl Published {
    fn new(mut schema: Value) -> Self {
        close(&mut schema);
        let validator = jsonschema::draft202012::new(&schema)
            .unwrap_or_else(|error| panic!("{} is no schema: {error}", schema["$id"]));
        Self { schema, validator }
    }

    /// The same without what is demanded.
    pub(crate) fn earlier(&self) -> Self {
        let mut schema = self.schema.clone();
        demand_nothing(&mut schema);
        Self::new(schema)
    }
}

/// Those of which this crate knows, the older versions, too; in the program, for tests that run where the repository is not.
macro_rules! embedded {
    ($($file:literal),* $(,)?) => {
        [$(($file, include_str!(concat!("../../../docs/schemas/", $file)))),*]
    };
}

/// File name and text.
pub const EMBEDDED: &[(&str, &str)] = &embedded![
    "device.v1.json",
    "doctor.v1.json",
    "evidence.v1.json",
    "hops.v1.json",
    "lab.list.v1.json",
    "lab.status.v1.json",
    "lab.up.v1.json",
    "test.v1.json",
    "tune.plan.v1.json",
    "tune.status.v1.json",
    "tune.undo.v1.json",
    "tune.v1.json",
];

/// By name and version.
pub(crate) fn published() -> &'static BTreeMap<(String, u64), Published> {
    static PUBLISHED: OnceLock<BTreeMap<(String, u64), Published>> = OnceLock::new();
    PUBLISHED.get_or_init(|| {
        EMBEDDED
            .iter()
            .map(|(file, text)| {
                let schema = serde_json::from_str(text)
                    .unwrap_or_else(|error| panic!("docs/schemas/{file}: {error}"));
                let key = name_and_version(file)
                    .unwrap_or_else(|| panic!("docs/schemas/{file}: not NAME.vVERSION.json"));
                (key, Published::new(schema))
            })
            .collect()
    })
}

/// `doctor.v1.json` is version 1 of `wirespeed.doctor`.
fn name_and_version(file: &str) -> Option<(String, u64)> {
    let (name, version) = file.strip_suffix(".json")?.rsplit_once(".v")?;
    Some((format!("wirespeed.{name}"), version.parse().ok()?))
}
