//! Each output with its type, and the schema made of it.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wirespeed_doctor::Evidence;
use wirespeed_lab::{Lab, LabList, LabStatus};
use wirespeed_report::{
    DoctorRecord, ErrorRecord, HopsRecord, PlanRecord, StatusRecord, TestRecord, TuneRecord,
    UndoRecord, Versioned,
};
use wirespeed_schemas::each;

use crate::device::DeviceDocument;

/// File name to text.
pub(crate) fn all() -> BTreeMap<String, String> {
    BTreeMap::from([
        answer::<DoctorRecord>("doctor", "wirespeed doctor --json"),
        answer::<HopsRecord>("hops", "wirespeed doctor --hop … --json"),
        answer::<TestRecord>("test", "wirespeed test --json"),
        answer::<TuneRecord>("tune", "wirespeed tune --json"),
        answer::<PlanRecord>("tune.plan", "wirespeed tune --plan --json"),
        answer::<StatusRecord>("tune.status", "wirespeed tune status --json"),
        answer::<UndoRecord>("tune.undo", "wirespeed tune undo --json"),
        answer::<Versioned<LabList>>("lab.list", "wirespeed lab list --json"),
        answer::<Versioned<LabStatus>>("lab.status", "wirespeed lab status --json"),
        answer::<Versioned<Lab>>("lab.up", "wirespeed lab up --json"),
        document::<Versioned<Evidence>>("evidence", "wirespeed doctor --record FILE"),
        document::<DeviceDocument>("device", "wirespeed-device --statistics NAME"),
    ])
}

const VERSION: u32 = 1;

/// What a command prints: its answer, or why there is none.
fn answer<T: JsonSchema>(name: &str, made_by: &str) -> (String, String) {
    let mut generator = generator();
    let answer = generator.subschema_for::<T>();
    let error = generator.subschema_for::<ErrorRecord>();
    // No `oneOf`: of an answer that is wrong in one field it could only be said that it is neither.
    let root = vec![
        ("if", json!({ "required": ["error"] })),
        ("then", json!(error)),
        ("else", json!(answer)),
    ];
    schema(name, made_by, generator, root)
}

/// What is an answer in any case.
fn document<T: JsonSchema>(name: &str, made_by: &str) -> (String, String) {
    let mut generator = generator();
    let reference = json!(generator.subschema_for::<T>());
    let root = vec![("$ref", reference["$ref"].clone())];
    schema(name, made_by, generator, root)
}

/// Of what is written, not of what is understood when read.
fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
}

/// File name and text.
fn schema(
    name: &str,
    made_by: &str,
    mut generator: SchemaGenerator,
    root: Vec<(&str, Value)>,
) -> (String, String) {
    let mut definitions = generator.take_definitions(true);
    definitions.remove("Schema");
    for (definition, schema) in &mut definitions {
        // A doctor's record may stand in a chain's.
        let name = match definition.as_str() {
            "DoctorRecord" => "doctor",
            _ => name,
        };
        pin(schema, name);
        each(schema, &mut tidy);
    }
    // In the order in which they are read.
    let mut parts = vec![
        (
            "$schema",
            json!("https://json-schema.org/draft/2020-12/schema"),
        ),
        (
            "$id",
            json!(format!("urn:wirespeed:schema:{name}:{VERSION}")),
        ),
        (
            "title",
            json!(format!("wirespeed.{name}, version {VERSION}")),
        ),
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
    (
        format!("{name}.v{VERSION}.json"),
        format!("{{\n{}\n}}\n", parts.join(",\n")),
    )
}

/// A record says its own name and version, not any; and an error has its verdict.
fn pin(definition: &mut Value, name: &str) {
    let Some(schema) = definition.pointer_mut("/properties/schema") else {
        return;
    };
    *schema = json!({
        "description": "Name and version of the shape of this object.",
        "type": "object",
        "properties": {
            "name": { "const": format!("wirespeed.{name}") },
            "version": { "const": VERSION },
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
