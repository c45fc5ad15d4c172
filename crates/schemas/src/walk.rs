//! The schemas within a schema.

use serde_json::{Map, Value};

/// Keywords whose value is a schema by name.
const BY_NAME: [&str; 2] = ["properties", "$defs"];
/// Keywords whose value is JSON that means itself, or demands nothing.
const PASSED_OVER: [&str; 5] = ["const", "default", "enum", "if", "required"];

/// Has `change` look at every schema in a schema that an object has to be valid against, itself included.
pub fn each(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(schema) => {
            change(schema);
            for (keyword, value) in schema {
                match value {
                    Value::Object(named) if BY_NAME.contains(&keyword.as_str()) => {
                        named.values_mut().for_each(|value| each(value, change));
                    }
                    _ if PASSED_OVER.contains(&keyword.as_str()) => {}
                    value => each(value, change),
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|value| each(value, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_named_like_keywords_are_no_keywords() {
        let mut seen = Vec::new();
        let mut schema = json!({
            "properties": {"const": {"type": "a"}, "properties": {"type": "b", "default": {"type": "no"}}},
            "oneOf": [{"type": "c", "items": {"type": "d"}}, true],
            "const": {"type": "no"},
            "if": {"type": "no"},
        });
        each(&mut schema, &mut |schema| {
            seen.extend(schema.get("type").cloned());
        });
        assert_eq!(seen, ["c", "d", "a", "b"]);
    }
}
