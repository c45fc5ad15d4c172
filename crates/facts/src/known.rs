//! A value, or the reason why it is not known.

use serde::{Deserialize, Serialize};

/// A value, or the reason why it is not known.
///
/// In JSON: `{"value": …}` or `{"unknown": "because …"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Known_{T}")
)]
pub enum Known<T> {
    /// The value as the machine gave it.
    #[serde(rename = "value")]
    Value(T),
    /// Why there is no value.
    #[serde(rename = "unknown")]
    Unknown(String),
}

impl<T> Known<T> {
    /// The value, if it is known.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// What `change` makes of the value, if it is known.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Value(value) => Known::Value(change(value)),
            Self::Unknown(reason) => Known::Unknown(reason),
        }
    }

    /// An unknown value with its reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }
}

/// For records of older versions, which lack the field: nobody read it.
impl<T> Default for Known<T> {
    fn default() -> Self {
        Self::because("it was not read")
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Known<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Unknown(error.to_string()),
        }
    }
}
