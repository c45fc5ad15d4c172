//! Numbers as people read them, and the JSON values that records have them in.

use serde_json::Value;
pub use wirespeed_words::units::*;

/// A JSON value in one of these units; `None` for `null`.
pub fn value(value: &Value, unit: &str) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Number(number) => Some(
            number
                .as_f64()
                .map_or_else(|| number.to_string(), |n| in_unit(n, unit)),
        ),
        Value::String(text) if unit.is_empty() => Some(text.clone()),
        Value::String(text) => Some(format!("{text} {}", unit_name(unit))),
        Value::Bool(yes) => Some(yes_or_no(*yes)),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_read_in_their_unit() {
        assert_eq!(value(&Value::Null, "bytes"), None);
        assert_eq!(value(&json!(1420), "bytes").as_deref(), Some("1420 bytes"));
        assert_eq!(value(&json!("reno"), "").as_deref(), Some("reno"));
        assert_eq!(
            value(&json!(1_234_567), "packets").as_deref(),
            Some("1\u{a0}234\u{a0}567 packets")
        );
        assert_eq!(value(&json!(-3), "").as_deref(), Some("-3"));
    }
}
