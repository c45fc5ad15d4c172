use serde_json::json;

use super::*;

#[track_caller]
fn assert_breaks(before: &Value, now: &Value, told: &[&str]) {
    let breaks: Vec<String> = breaks(before, now)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(breaks, told, "{before}\n→ {now}");
}

/// An object with one field, which is always there.
fn with(field: &Value) -> Value {
    json!({"type": "object", "properties": {"a": field}, "required": ["a"]})
}

#[test]
fn what_a_field_may_be_is_no_more_than_it_was() {
    let integer = json!({"type": "integer"});
    let small = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let number = json!({"type": "number"});
    let text = json!({"type": "string"});
    let address = json!({"type": "string", "format": "ipv4"});
    let perhaps = json!({"type": ["string", "null"]});
    let one = json!({"const": "up", "type": "string"});
    let two = json!({"enum": ["up", "down"], "type": "string"});
    let three = json!({"oneOf": [
        {"const": "up", "type": "string", "description": "It goes up."},
        {"type": "string", "enum": ["down", "both"]},
    ]});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let lengths = json!({"type": "array", "items": {"type": "string"}});
    let pair =
        json!({"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [text, integer]});
    let turned =
        json!({"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [integer, text]});
    let triple = json!({"type": "array", "minItems": 3, "maxItems": 3, "prefixItems": [text, integer, integer]});
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let other_map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let anything = json!(true);
    for (before, now, told) in [
        (&text, &text, &[][..]),
        (&text, &perhaps, &["a may be null, which it never was"]),
        (&perhaps, &text, &[]),
        (&text, &anything, &["a may be anything, which it never was"]),
        (&anything, &text, &[]),
        (
            &text,
            &integer,
            &["a may be any integer, which it never was"],
        ),
        (
            &integer,
            &number,
            &["a may be any number, which it never was"],
        ),
        (&number, &integer, &[]),
        (
            &small,
            &integer,
            &["a may be any integer, which it never was"],
        ),
        (&integer, &small, &[]),
        (&address, &text, &["a may be any text, which it never was"]),
        (&text, &address, &[]),
        // A value more is what readers were told to expect; one that is another's new name is none.
        (&one, &two, &[]),
        (&two, &three, &[]),
        (&two, &one, &["a is never \"down\" any more"]),
        (&three, &two, &["a is never \"both\" any more"]),
        (&two, &text, &["a may be any text, which it never was"]),
        (&text, &two, &[]),
        (
            &json!({"const": 1}),
            &json!({"const": 2}),
            &["a may be 2, which it never was", "a is never 1 any more"],
        ),
        (
            &list,
            &lengths,
            &["a[] may be any text, which it never was"],
        ),
        (
            &list,
            &integer,
            &["a may be any integer, which it never was"],
        ),
        (&integer, &list, &["a may be a list, which it never was"]),
        (&pair, &pair, &[]),
        (
            &pair,
            &turned,
            &[
                "a[0] may be any integer, which it never was",
                "a[1] may be any text, which it never was",
            ],
        ),
        (&pair, &triple, &["a may be longer than it ever was"]),
        (&triple, &pair, &["a may be shorter than it ever was"]),
        (
            &map,
            &other_map,
            &["a.* may be any text, which it never was"],
        ),
        (&map, &json!({"type": "object"}), &["a.* may be anything"]),
        (&json!({"type": "object"}), &map, &[]),
    ] {
        assert_breaks(&with(before), &with(now), told);
    }
}

#[test]
fn fields_may_come_and_none_may_go() {
    let fields = |names: &[&str], demanded: &[&str]| {
        let text = json!({"type": "string"});
        let fields = names.iter().map(|name| ((*name).to_owned(), text.clone()));
        json!({"type": "object", "properties": fields.collect::<Map<_, _>>(), "required": demanded})
    };
    let before = fields(&["a", "b"], &["a"]);
    for (now, told) in [
        (fields(&["a", "b", "c"], &["a"]), &[][..]),
        (fields(&["a", "b", "c"], &["a", "c"]), &[]),
        (fields(&["a", "b"], &["a", "b"]), &[]),
        (fields(&["a", "b"], &[]), &["a may be absent"]),
        (fields(&["a"], &["a"]), &["b went away"]),
        (fields(&["b", "z"], &["z"]), &["a went away"]),
    ] {
        assert_breaks(&before, &now, told);
        let within: Vec<String> = told.iter().map(|one| format!("a.{one}")).collect();
        let within: Vec<&str> = within.iter().map(String::as_str).collect();
        assert_breaks(&with(&before), &with(&now), &within);
    }
}

#[test]
fn what_stood_by_any_name_may_get_one_of_its_own() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let named = |kind: &str| {
        json!({
            "type": "object",
            "properties": {"a": {"type": kind}},
            "additionalProperties": {"type": "integer"},
        })
    };
    assert_breaks(&map, &named("integer"), &[]);
    assert_breaks(
        &map,
        &named("string"),
        &["a may be any text, which it never was"],
    );
}

/// What a sum type gives, whose variants a field tells apart.
#[test]
fn of_objects_that_a_field_tells_apart_may_come_more() {
    let kind = |kind: &str, field: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind, "type": "string"}, field: {"type": "string"}},
            "required": ["kind", field],
        })
    };
    let of = |variants: &[&Value]| with(&json!({"oneOf": variants}));
    let (tcp, udp) = (kind("tcp", "port"), kind("udp", "rate"));
    let both = of(&[&tcp, &udp]);
    assert_breaks(&both, &of(&[&udp, &tcp]), &[]);
    assert_breaks(&of(&[&tcp]), &both, &[]);
    assert_breaks(&with(&tcp), &both, &[]);
    assert_breaks(
        &both,
        &of(&[&tcp]),
        &["a is never an object with kind = \"udp\" any more"],
    );
    assert_breaks(
        &both,
        &of(&[&tcp, &kind("udp", "pace")]),
        &["a.rate went away"],
    );
    assert_breaks(
        &with(&json!({"type": "string"})),
        &with(&udp),
        &["a may be an object with kind = \"udp\", which it never was"],
    );
}

/// What a value gives that may be unknown.
#[test]
fn objects_that_nothing_tells_apart_stay_those_they_were() {
    let field = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let of = |names: &[&str]| {
        let variants: Vec<Value> = names.iter().map(|name| field(name)).collect();
        with(&json!({"anyOf": variants}))
    };
    let before = of(&["value", "unknown"]);
    assert_breaks(&before, &of(&["unknown", "value"]), &[]);
    assert_breaks(
        &before,
        &of(&["value"]),
        &["a is never an object of unknown any more"],
    );
    assert_breaks(
        &before,
        &of(&["value", "unknown", "guessed"]),
        &["a may be an object of guessed, which it never was"],
    );
    assert_breaks(
        &before,
        &with(&json!({"anyOf": [field("value"), field("unknown"), {"type": "null"}]})),
        &["a may be null, which it never was"],
    );
}

#[test]
fn a_definition_is_followed_and_told_once() {
    let schema = |kind: &str| {
        json!({
            "type": "object",
            "properties": {
                "first": {"$ref": "#/$defs/Rate"},
                "more": {"type": "array", "items": {"$ref": "#/$defs/Rate"}},
            },
            "$defs": {"Rate": {
                "type": "object",
                "description": "In bit/s.",
                "properties": {"value": {"type": kind}, "next": {"$ref": "#/$defs/Rate"}},
            }},
        })
    };
    assert_breaks(&schema("integer"), &schema("integer"), &[]);
    assert_breaks(
        &schema("integer"),
        &schema("string"),
        &["first.value may be any text, which it never was"],
    );
}

#[test]
fn an_answer_and_an_error_are_compared_with_their_like() {
    let schema = |answer: &str, error: &str| {
        json!({
            "if": {"required": ["error"]},
            "then": {"type": "object", "properties": {error: {"type": "string"}}},
            "else": {"type": "object", "properties": {answer: {"type": "string"}}},
        })
    };
    let before = schema("verdict", "error");
    assert_breaks(&before, &before, &[]);
    assert_breaks(&before, &schema("answer", "error"), &["verdict went away"]);
    assert_breaks(&before, &schema("verdict", "what"), &["error went away"]);
    assert_breaks(
        &before,
        &with(&json!(true)),
        &["the object is another when a command fails"],
    );
}

#[test]
fn what_is_not_understood_is_no_silent_yes() {
    for strange in [
        json!({"type": "string", "pattern": "^a"}),
        json!({"not": {"type": "string"}}),
        json!({"type": "text"}),
        json!({"$ref": "#/$defs/Nowhere"}),
        json!({"$ref": "#/$defs/Nowhere", "properties": {}}),
        json!(false),
    ] {
        let schema = with(&strange);
        let breaks = breaks(&schema, &schema);
        assert_eq!(breaks.len(), 1, "{strange}");
        assert!(breaks[0].what.contains("not compared yet"), "{}", breaks[0]);
    }
}
