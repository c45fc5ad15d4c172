//! Rates and times as people type them.

use std::time::Duration;

use wirespeed_words::{quoted, say};

/// A rate in bit/s: `300mbit`, `1.5gbit`, `300Mbit/s`, `64kbit`, `9600bit`. A bare number is none: who writes 300 means megabits as
/// often as bits, and nothing later would tell.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let unit_at = lower
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(unit_at);
    let factor = match unit.trim_end_matches("/s") {
        "bit" => 1.0,
        "k" | "kbit" => 1e3,
        "m" | "mbit" => 1e6,
        "g" | "gbit" => 1e9,
        "" if number.trim().parse::<f64>().is_ok() => {
            return Err(say!("cli-rate-without-unit", text = quoted(text)));
        }
        "" => return Err(say!("cli-no-rate", text = quoted(text))),
        _ => {
            return Err(say!("cli-no-unit-of-rate", unit = quoted(unit)));
        }
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number * factor),
        _ => Err(say!("cli-no-rate", text = quoted(text))),
    }
}

/// A time: `90s`, `10m`, `1h`, or a bare number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let lower = text.trim().to_ascii_lowercase();
    let unit_at = lower
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(unit_at);
    let factor = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => {
            return Err(say!("cli-no-unit-of-time", unit = quoted(unit)));
        }
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 => Duration::try_from_secs_f64(number * factor)
            .ok()
            .filter(|time| *time <= Duration::from_secs(7 * 24 * 3600))
            .ok_or_else(|| say!("cli-longer-than-a-week", text = quoted(text))),
        _ => Err(say!("cli-no-time", text = quoted(text))),
    }
}

/// Numbers of streams: `1,10`.
pub(crate) fn streams(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(streams @ 1..=128) => Ok(streams),
        _ => Err(say!("cli-no-streams", text = quoted(text))),
    }
}

/// Connections at the same time: `1000`.
pub(crate) fn connections(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(connections @ 1..=20_000) => Ok(connections),
        _ => Err(say!("cli-no-connections", text = quoted(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        assert_eq!(rate("300mbit"), Ok(300e6));
        assert_eq!(rate("1.5 Gbit/s"), Ok(1.5e9));
        assert_eq!(rate("64k"), Ok(64e3));
        assert_eq!(rate("9600bit"), Ok(9600.0));
        for wrong in [
            "",
            "fast",
            "-3mbit",
            "0",
            "3mbyte",
            "inf",
            "nan",
            "1e999mbit",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for bare in ["300", " 1.5", "300 "] {
            let told = rate(bare).expect_err(bare);
            assert!(told.contains("has no unit"), "{told}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "0s", "-1m", "5 fortnights", "9999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn streams_are_bounded() {
        assert_eq!(streams("10"), Ok(10));
        assert!(streams("0").is_err() && streams("1000").is_err() && streams("a").is_err());
        assert_eq!(connections("1000"), Ok(1000));
        assert!(connections("0").is_err() && connections("20001").is_err());
    }
}
