//! Each output with its type, and the schema made of it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wirespeed_doctor::Evidence;
use wirespeed_lab::{Lab, LabList, LabStatus};
use wirespeed_report::{
    DoctorRecord, ErrorRecord, HopsRecord, PlanRecord, Schema, StatusRecord, TestRecord,
    TuneRecord, UndoRecord, Versioned,
};
use wirespeed_schemas::each;

use crate::device::DeviceDocument;

/// What is published of one output.
pub(crate) struct Output {
    /// The name and the version that the program prints.
    pub(crate) says: Schema,
    /// The schema as the file has it.
    pub(crate) text: String,
}

impl Output {
    /// Name of the file of one version.
    pub(crate) fn file_of(&self, version: u32) -> String {
        format!("{}.v{version}.json", short(&self.says))
    }

    /// Name of the file of its own version.
    pub(crate) fn file(&self) -> String {
        self.file_of(self.says.version)
    }
}

/// Every output there is.
pub(crate) fn all() -> [Output; 12] {
    let (device, version) = wirespeed_device::device::STATISTICS_SCHEMA;
    [
        answer::<DoctorRecord>(Schema::DOCTOR, "wirespeed doctor --json"),
        answer::<HopsRecord>(Schema::HOPS, "wirespeed doctor --hop … --json"),
        answer::<TestRecord>(Schema::TEST, "wirespeed test --json"),
        answer::<TuneRecord>(Schema::TUNE, "wirespeed tune --json"),
        answer::<PlanRecord>(Schema::TUNE_PLAN, "wirespeed tune --plan --json"),
        answer::<StatusRecord>(Schema::TUNE_STATUS, "wirespeed tune status --json"),
        answer::<UndoRecord>(Schema::TUNE_UNDO, "wirespeed tune undo --json"),
        answer::<Versioned<LabList>>(Schema::LAB_LIST, "wirespeed lab list --json"),
        answer::<Versioned<LabStatus>>(Schema::LAB_STATUS, "wirespeed lab status --json"),
        answer::<Versioned<Lab>>(Schema::LAB_UP, "wirespeed lab up --json"),
        document::<Versioned<Evidence>>(Schema::EVIDENCE, "wirespeed doctor --record FILE"),
        document::<DeviceDocument>(
            Schema::new(device, version),
            "wirespeed-device --statistics NAME",
        ),
    ]
}

/// The name without what all have in front.
fn short(says: &Schema) -> &str {
    says.name.strip_prefix("wirespeed.").expect("its own name")
}

/// What a command prints: its answer, or why there is none.
fn answer<T: JsonSchema>(says: Schema, made_by: &str) -> Output {
    let mut generator = generator();
    let answer = generator.subschema_for::<T>();
    let error = generator.subschema_for::<ErrorRecord>();
    // No `oneOf`: of an answer that is wrong in one field it could only be said that it is neither.
    let root = vec![
        ("if", json!({ "required": ["error"] })),
        ("then", json!(error)),
        ("else", json!(answer)),
    ];
    schema(says, made_by, generator, root)
}

/// What is an answer in any case.
fn document<T: JsonSchema>(says: Schema, made_by: &str) -> Output {
    let mut generator = generator();
    let reference = json!(generator.subschema_for::<T>());
    let root = vec![("$ref", reference["$ref"].clone())];
    schema(says, made_by, generator, root)
}

/// Of what is written, not of what is understood when read.
fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
}

fn schema(
    says: Schema,
    made_by: &str,
    mut generator: SchemaGenerator,
    root: Vec<(&str, Value)>,
) -> Output {
    let mut definitions = generator.take_definitions(true);
    definitions.remove("Schema");
    for (definition, schema) in &mut definitions {
        // A doctor's record may stand in a chain's.
        let own = match definition.as_str() {
            "DoctorRecord" => &Schema::DOCTOR,
            _ => &says,
        };
        pin(schema, own);
        each(schema, &mut tidy);
    }
    let (name, version) = (&says.name, says.version);
    // In the order in which they are read.
    let mut parts = vec![
        (
            "$schema",
            json!("https://json-schema.org/draft/2020-12/schema"),
        ),
        (
            "$id",
            json!(format!("urn:wirespeed:schema:{}:{version}", short(&says))),
        ),
        ("title", json!(format!("{name}, version {version}"))),
        ("description", json!(format!("What `{made_by}` writes."))),
        (
            "$comment",
            json!("Made of the types in the source by `make schemas`."),
        ),
    ];
    parts.extend(root);
    parts.push(("$defs", Value::Object(definitions)));
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(keyword, value)| {
            let value = serde_json::to_string_pretty(&value).expect("JSON");
            format!("  \"{keyword}\": {}", value.replace('\n', "\n  "))
        })
        .collect();
    let text = format!("{{\n{}\n}}\n", parts.join(",\n"));
    Output { says, text }
}

/// A record says its own name and version, not any; and an error has its verdict.
fn pin(definition: &mut Value, says: &Schema) {
    let Some(schema) = definition.pointer_mut("/properties/schema") else {
        return;
    };
    *schema = json!({
        "description": "Name and version of the shape of this object.",
        "type": "object",
        "properties": {
            "name": { "const": says.name },
            "version": { "const": says.version },
        },
        "required": ["name", "version"],
    });
    if definition.pointer("/properties/error").is_some() {
        definition["properties"]["verdict"] = json!({ "const": "unmeasured" });
    }
}

/// Takes away what means something only to who reads objects (defaults, a refusal of other fields) or the source.
fn tidy(schema: &mut Map<String, Value>) {
    schema.remove("default");
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    let known = |format: &Value| format == "ipv4" || format == "ipv6";
    if schema.get("format").is_some_and(|format| !known(format)) {
        schema.remove("format");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text
            .replace("[`", "`")
            .replace("`]", "`")
            .replace("`None`", "`null`")
            .replace("::", ".");
    }
}
