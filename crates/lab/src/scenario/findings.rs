//! What the doctor must find: nothing, one code, or several causes at once.

use std::fmt;

use serde::{Deserialize, Serialize};
use wirespeed_words::say;

use super::{HEALTHY, is_code};

/// The codes that a scenario must produce; empty = healthy. Written as one code, a list, or [`HEALTHY`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written", into = "Written")]
pub struct Findings(Vec<String>);

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "the code of a cause, a list of codes, or \"healthy\""
)]
enum Written {
    One(String),
    Several(Vec<String>),
}

impl Findings {
    /// The codes; none when nothing is wrong.
    pub fn codes(&self) -> &[String] {
        &self.0
    }

    /// Is nothing wrong?
    pub fn is_healthy(&self) -> bool {
        self.0.is_empty()
    }
}

impl Findings {
    /// Its codes, or that there is nothing to find, in the language of the moment.
    pub fn said(&self) -> String {
        let one_of = |one: String, other: String| say!("doctor-both", one = one, other = other);
        let all = self.0.iter().cloned().reduce(one_of);
        all.unwrap_or_else(|| say!("lab-nothing"))
    }
}

impl TryFrom<Written> for Findings {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        let codes = match written {
            Written::One(code) if code == HEALTHY => return Ok(Findings(Vec::new())),
            Written::One(code) => vec![code],
            Written::Several(codes) => codes,
        };
        if codes.is_empty() {
            return Err(format!("an empty list: write \"{HEALTHY}\""));
        }
        for (place, code) in codes.iter().enumerate() {
            if !is_code(code) {
                return Err(format!(
                    "`{code}`: use the code of a cause, or \"{HEALTHY}\" by itself"
                ));
            }
            if codes[..place].contains(code) {
                return Err(format!("`{code}` twice"));
            }
        }
        Ok(Findings(codes))
    }
}

impl From<Findings> for Written {
    fn from(mut findings: Findings) -> Written {
        match findings.0.len() {
            0 => Written::One(HEALTHY.to_owned()),
            1 => Written::One(findings.0.remove(0)),
            _ => Written::Several(findings.0),
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_healthy() {
            f.write_str("nothing")
        } else {
            f.write_str(&self.0.join(" and "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Findings, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn one_several_or_none() {
        for (json, shown) in [
            ("\"healthy\"", "nothing"),
            ("\"path-loss\"", "path-loss"),
            (
                "[\"nat-timeout\",\"bufferbloat\"]",
                "nat-timeout and bufferbloat",
            ),
        ] {
            let findings = read(json).unwrap();
            assert_eq!(findings.to_string(), shown);
            assert_eq!(serde_json::to_string(&findings).unwrap(), json);
        }
        for bad in [
            "[]",
            "\"\"",
            "[\"a\",\"a\"]",
            "[\"a\",\"healthy\"]",
            "\"A b\"",
            "3",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
