//! A schema as the shapes that a value may have, however it is written.

use serde_json::{Map, Value};

/// What says nothing of the value.
const REMARKS: [&str; 6] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "description",
    "title",
];

/// One of the shapes that a schema allows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape<'a> {
    Anything,
    Null,
    Boolean,
    Number(Number),
    Text {
        format: Option<&'a str>,
    },
    /// This and no other.
    Exactly(&'a Value),
    List(List<'a>),
    Object(Object<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    pub(crate) whole: bool,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List<'a> {
    /// Those that have a schema of their own.
    pub(crate) first: &'a [Value],
    /// The schema of all others.
    pub(crate) others: Option<&'a Value>,
    pub(crate) shortest: usize,
    pub(crate) longest: usize,
}

impl<'a> List<'a> {
    /// The schema of an entry; `None` = any.
    pub(crate) fn entry(&self, index: usize) -> Option<&'a Value> {
        self.first.get(index).or(self.others)
    }
}

/// Its fields are where they were found: the place tells one object from another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Object<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Object<'a> {
    pub(crate) fn field(self, name: &str) -> Option<&'a Value> {
        self.0.get("properties")?.get(name)
    }

    pub(crate) fn fields(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let fields = self.0.get("properties").and_then(Value::as_object);
        let fields = fields.into_iter().flatten();
        fields.map(|(name, schema)| (name.as_str(), schema))
    }

    /// Names of the fields that are always there.
    pub(crate) fn demanded(self) -> impl Iterator<Item = &'a str> {
        let names = self.0.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The schema of fields that have no name of their own; `None` = any, which is as well said by `true`.
    pub(crate) fn others(self) -> Option<&'a Value> {
        let others = self.0.get("additionalProperties")?;
        (*others != Value::Bool(true)).then_some(others)
    }

    /// The fields that have one value each in every such object, with it: they tell it from others.
    pub(crate) fn tags(self) -> Vec<(&'a str, &'a Value)> {
        let tag = |name| Some((name, self.field(name)?.get("const")?));
        self.demanded().filter_map(tag).collect()
    }
}

/// Every shape that a schema within `root` allows.
///
/// # Errors
/// What the schema says that is not understood here.
pub(crate) fn shapes<'a>(root: &'a Value, schema: &'a Value) -> Result<Vec<Shape<'a>>, String> {
    let schema = match schema {
        Value::Bool(true) => return Ok(vec![Shape::Anything]),
        Value::Object(schema) => schema,
        other => return Err(format!("the schema {other}")),
    };
    let said: Vec<&str> = schema
        .keys()
        .map(String::as_str)
        .filter(|keyword| !REMARKS.contains(keyword))
        .collect();
    let alone = |keyword: &str| match said.as_slice() {
        [_] => Ok(()),
        several => Err(format!("`{keyword}` beside others: {several:?}")),
    };
    if let Some(reference) = schema.get("$ref") {
        alone("$ref")?;
        let meant = meant(root, reference);
        return shapes(root, meant.ok_or(format!("the reference {reference}"))?);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(several) = schema.get(keyword) {
            alone(keyword)?;
            let several = several.as_array().ok_or(format!("`{keyword}`"))?;
            let each = several.iter().map(|one| shapes(root, one));
            return Ok(each.collect::<Result<Vec<_>, _>>()?.concat());
        }
    }
    if let Some(value) = schema.get("const") {
        understood(&said, &["const", "type"])?;
        return Ok(vec![exactly(value)]);
    }
    if let Some(values) = schema.get("enum") {
        understood(&said, &["enum", "type"])?;
        let values = values.as_array().ok_or("`enum`")?;
        return Ok(values.iter().map(exactly).collect());
    }
    match schema.get("type") {
        None if said.is_empty() => Ok(vec![Shape::Anything]),
        None => Err(format!("no type, and {said:?}")),
        Some(Value::Array(types)) => {
            understood_of_all(&said, types)?;
            types.iter().map(|one| of_type(schema, one)).collect()
        }
        Some(one) => {
            understood_of_all(&said, std::slice::from_ref(one))?;
            Ok(vec![of_type(schema, one)?])
        }
    }
}

fn exactly(value: &Value) -> Shape<'_> {
    match value {
        Value::Null => Shape::Null,
        value => Shape::Exactly(value),
    }
}

/// The schema that is meant, where another only refers to it.
pub(crate) fn followed<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let only_refers = |schema: &Map<String, Value>| {
        let mut keywords = schema.keys().map(String::as_str);
        keywords.all(|keyword| keyword == "$ref" || REMARKS.contains(&keyword))
    };
    let reference = schema.get("$ref");
    match reference.and_then(|reference| meant(root, reference)) {
        Some(meant) if schema.as_object().is_some_and(only_refers) => followed(root, meant),
        _ => schema,
    }
}

fn meant<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

/// The keywords that say more of a type.
fn keywords_of(name: &Value) -> &'static [&'static str] {
    match name.as_str() {
        Some("integer" | "number") => &["minimum", "maximum"],
        Some("string") => &["format"],
        Some("array") => &["items", "prefixItems", "minItems", "maxItems"],
        Some("object") => &["properties", "required", "additionalProperties"],
        _ => &[],
    }
}

fn understood_of_all(said: &[&str], types: &[Value]) -> Result<(), String> {
    let mut known: Vec<&str> = types.iter().flat_map(keywords_of).copied().collect();
    known.push("type");
    understood(said, &known)
}

fn understood(said: &[&str], known: &[&str]) -> Result<(), String> {
    match said.iter().find(|keyword| !known.contains(keyword)) {
        None => Ok(()),
        Some(keyword) => Err(format!("`{keyword}`")),
    }
}

fn of_type<'a>(schema: &'a Map<String, Value>, name: &Value) -> Result<Shape<'a>, String> {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let length = |keyword: &str| {
        let length = schema.get(keyword).and_then(Value::as_u64)?;
        usize::try_from(length).ok()
    };
    Ok(match name.as_str() {
        Some("null") => Shape::Null,
        Some("boolean") => Shape::Boolean,
        Some(name @ ("integer" | "number")) => Shape::Number(Number {
            whole: name == "integer",
            least: number("minimum").unwrap_or(f64::NEG_INFINITY),
            most: number("maximum").unwrap_or(f64::INFINITY),
        }),
        Some("string") => Shape::Text {
            format: schema.get("format").and_then(Value::as_str),
        },
        Some("array") => Shape::List(List {
            first: schema
                .get("prefixItems")
                .and_then(Value::as_array)
                .map_or(&[], Vec::as_slice),
            others: schema.get("items"),
            shortest: length("minItems").unwrap_or(0),
            longest: length("maxItems").unwrap_or(usize::MAX),
        }),
        Some("object") => Shape::Object(Object(schema)),
        _ => return Err(format!("the type {name}")),
    })
}
