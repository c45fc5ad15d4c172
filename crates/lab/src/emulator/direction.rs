//! One direction as the command line names it.

use std::str::FromStr;
use std::time::Duration;

/// Longest delay that is held.
const LONGEST: Duration = Duration::from_secs(10);

/// A TUN to make and how long to hold what comes through it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// Interface name.
    pub name: String,
    /// How long a packet is held.
    pub delay: Duration,
}

impl FromStr for Direction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let usage =
            || format!("`{text}` is no direction: write NAME:DELAYus, as in delayup:20000us");
        let (name, delay) = text.split_once(':').ok_or_else(usage)?;
        let delay = delay
            .strip_suffix("us")
            .and_then(|d| d.parse().ok())
            .map(Duration::from_micros)
            .ok_or_else(usage)?;
        let fine = (1..=15).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !fine || delay > LONGEST {
            return Err(usage());
        }
        Ok(Direction {
            name: name.to_owned(),
            delay,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_a_name_and_a_delay() {
        let direction: Direction = "delayup:20000us".parse().unwrap();
        assert_eq!(
            direction,
            Direction {
                name: "delayup".to_owned(),
                delay: Duration::from_millis(20)
            }
        );
        for bad in [
            "",
            "delayup",
            "delayup:20ms",
            ":1us",
            "a b:1us",
            "x:99999999999us",
            "x:-1us",
        ] {
            assert!(bad.parse::<Direction>().is_err(), "{bad}");
        }
    }
}
