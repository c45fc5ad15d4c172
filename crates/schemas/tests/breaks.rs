//! In the schemas that are published, no field and no value can change unseen.

use serde_json::{Map, Value, json};
use wirespeed_schemas::{EMBEDDED, breaks, each};

/// Every so many fields one is tried: the schemas share most of their definitions, and a comparison takes milliseconds.
const STEP: usize = 23;

fn schemas() -> impl Iterator<Item = (&'static str, Value)> {
    let parsed = |text| serde_json::from_str(text).expect("JSON");
    EMBEDDED
        .iter()
        .map(move |(file, text)| (*file, parsed(text)))
}

/// The schema with `change` made to its `index`-th part; `None` where it is none.
fn changed(
    schema: &Value,
    index: usize,
    change: impl Fn(&mut Map<String, Value>) -> bool,
) -> Option<Value> {
    let mut copy = schema.clone();
    let (mut seen, mut made) = (0, false);
    each(&mut copy, &mut |part| {
        if seen == index {
            made = change(part);
        }
        seen += 1;
    });
    made.then_some(copy)
}

/// Part and name of each field.
fn fields_of(schema: &Value) -> Vec<(usize, String)> {
    let (mut fields, mut part) = (Vec::new(), 0);
    each(&mut schema.clone(), &mut |schema| {
        if let Some(Value::Object(named)) = schema.get("properties") {
            fields.extend(named.keys().map(|name| (part, name.clone())));
        }
        part += 1;
    });
    fields
}

fn demanded(part: &Map<String, Value>, name: &str) -> bool {
    let names = part.get("required").and_then(Value::as_array);
    names.is_some_and(|names| names.iter().any(|one| one == name))
}

fn demand_no_more(part: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Array(names)) = part.get_mut("required") {
        names.retain(|one| one != name);
    }
}

fn may_be_anything(field: &Value) -> bool {
    let mut said = field.as_object().into_iter().flat_map(Map::keys);
    said.all(|keyword| keyword == "description")
}

#[test]
fn each_is_what_it_was() {
    for (file, schema) in schemas() {
        assert_eq!(breaks(&schema, &schema), [], "{file}");
    }
}

#[test]
fn a_field_that_goes_may_be_absent_or_may_be_null_is_told() {
    let mut tried = 0;
    for (file, schema) in schemas() {
        for (part, name) in fields_of(&schema).into_iter().step_by(STEP) {
            let gone = changed(&schema, part, |part| {
                demand_no_more(part, &name);
                let fields = part["properties"].as_object_mut();
                fields.is_some_and(|fields| fields.remove(&name).is_some())
            });
            let absent = changed(&schema, part, |part| {
                let was = demanded(part, &name);
                demand_no_more(part, &name);
                was
            });
            let null = changed(&schema, part, |part| {
                let field = &mut part["properties"][&name];
                let never = !may_be_anything(field) && !field.to_string().contains("\"null\"");
                *field = json!({"anyOf": [field.take(), {"type": "null"}]});
                never
            });
            for (what, changed) in [("gone", gone), ("absent", absent), ("null", null)] {
                let Some(changed) = changed else { continue };
                tried += 1;
                let told = breaks(&schema, &changed);
                assert!(!told.is_empty(), "{file}: {name} {what}");
            }
        }
    }
    assert!(tried > 200, "only {tried}");
}

#[test]
fn a_value_that_goes_is_told_and_one_that_comes_is_not() {
    let mut tried = 0;
    for (file, schema) in schemas() {
        let whole = schema.to_string();
        for name in schema["$defs"].as_object().into_iter().flat_map(Map::keys) {
            let referred_to = whole.contains(&format!("\"#/$defs/{name}\""));
            let values = schema["$defs"][name]["oneOf"].as_array();
            let texts = |all: &&Vec<Value>| all.iter().all(|one| one["const"].is_string());
            let Some(values) = values.filter(texts).filter(|_| referred_to) else {
                continue;
            };
            tried += 1;
            let with = |values: &[Value]| {
                let mut changed = schema.clone();
                changed["$defs"][name]["oneOf"] = json!(values);
                breaks(&schema, &changed)
            };
            let told = with(&values[1..]);
            let never = told.iter().all(|one| one.what.starts_with("is never"));
            assert!(never && !told.is_empty(), "{file}: {name}: {told:?}");
            let one_more = [
                &values[..],
                &[json!({"const": "unheard-of", "type": "string"})],
            ];
            assert_eq!(with(&one_more.concat()), [], "{file}: {name}");
        }
    }
    assert!(tried > 50, "only {tried}");
}

#[test]
fn a_field_may_come_anywhere() {
    for (file, schema) in schemas() {
        let mut more = schema.clone();
        each(&mut more, &mut |part| {
            if let Some(Value::Object(fields)) = part.get_mut("properties") {
                fields.insert("unheard_of".to_owned(), json!({"type": ["number", "null"]}));
                let Some(Value::Array(names)) = part.get_mut("required") else {
                    return;
                };
                names.push(json!("unheard_of"));
            }
        });
        assert_ne!(schema, more, "{file}");
        assert_eq!(breaks(&schema, &more), [], "{file}");
    }
}
