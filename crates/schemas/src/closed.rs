//! Schemas that are stricter, or less so, than those published.

use serde_json::{Map, Value};

use crate::walk::each;

/// What a schema says of the same object in other places than its `properties`.
const ELSEWHERE: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Closes every object in a schema that names its fields: it may have no others.
pub(crate) fn close(schema: &mut Value) {
    each(schema, &mut close_object);
}

/// Lets every field be absent.
pub(crate) fn demand_nothing(schema: &mut Value) {
    each(schema, &mut |schema| {
        schema.remove("required");
    });
}

fn close_object(schema: &mut Map<String, Value>) {
    if !schema.contains_key("properties") {
        return;
    }
    let elsewhere = ELSEWHERE.iter().any(|key| schema.contains_key(*key));
    let keyword = if elsewhere {
        "unevaluatedProperties"
    } else {
        "additionalProperties"
    };
    schema.insert(keyword.to_owned(), Value::Bool(false));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_names_its_fields_is_closed() {
        let mut schema = json!({
            "properties": {"a": {"additionalProperties": {"properties": {}}}, "b": true},
            "$defs": {"c": {"properties": {}, "$ref": "#/$defs/d"}},
        });
        close(&mut schema);
        let expected = json!({
            "properties": {
                "a": {"additionalProperties": {"properties": {}, "additionalProperties": false}},
                "b": true,
            },
            "additionalProperties": false,
            "$defs": {"c": {"properties": {}, "$ref": "#/$defs/d", "unevaluatedProperties": false}},
        });
        assert_eq!(schema, expected);
    }
}
