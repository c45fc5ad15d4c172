//! Names of a lab: its identifier, and what is derived from it. Everything that a lab makes on the host can be told
//! from its identifier alone, so that it can be removed whatever became of its maker.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::LabError;

/// 1 to 8 lower-case letters and digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct LabId(String);

impl LabId {
    /// Four random letters and digits, a letter first.
    pub fn random() -> LabId {
        const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let mut random = rand::rng();
        let id = (0..4)
            .map(|place| {
                char::from(
                    LETTERS[random.random_range(0..if place == 0 { 24 } else { LETTERS.len() })],
                )
            })
            .collect();
        LabId(id)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Namespace of a host: `ws-a1b2-client`.
    pub fn namespace(&self, host: &str) -> String {
        format!("ws-{self}-{host}")
    }

    /// Tunnel interface by its number (0 = first end, 1 = second): `wga1b20`. Unique on the whole machine, because userspace
    /// daemons of all namespaces share one directory of sockets.
    pub fn tunnel_interface(&self, number: usize) -> String {
        format!("wg{self}{number}")
    }

    /// The UAPI socket of the daemon of a tunnel interface.
    pub(crate) fn uapi_socket(&self, number: usize) -> PathBuf {
        PathBuf::from(format!(
            "/var/run/wireguard/{}.sock",
            self.tunnel_interface(number)
        ))
    }

    /// The socket for statistics, which wirespeed-device has.
    pub(crate) fn statistics_socket(&self, number: usize) -> PathBuf {
        PathBuf::from(format!(
            "/run/wirespeed/{}.stats",
            self.tunnel_interface(number)
        ))
    }
}

impl FromStr for LabId {
    type Err = LabError;
    fn from_str(text: &str) -> Result<Self, LabError> {
        let fine = (1..=8).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if fine {
            Ok(LabId(text.to_owned()))
        } else {
            Err(LabError::BadId(text.to_owned()))
        }
    }
}

impl TryFrom<String> for LabId {
    type Error = LabError;
    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl From<LabId> for String {
    fn from(id: LabId) -> String {
        id.0
    }
}

impl fmt::Display for LabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel() {
        let id: LabId = "abcdefgh".parse().unwrap();
        assert!(id.tunnel_interface(1).len() <= 15);
        assert!("toolong12".parse::<LabId>().is_err());
        assert!("".parse::<LabId>().is_err());
        assert!("A-b".parse::<LabId>().is_err());
        for _ in 0..100 {
            assert!(LabId::random().as_str().parse::<LabId>().is_ok());
        }
    }
}
