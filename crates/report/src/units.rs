//! Numbers as people read them: `93.1 Mbit/s`, `12.3 ms`, `208 KiB`, `97 %`.

use serde_json::Value;

/// A rate in bit/s: three significant digits and the unit people use.
pub fn rate(bits_per_second: f64) -> String {
    scaled(
        bits_per_second,
        1000.0,
        &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    )
}

/// A time in seconds.
pub fn time(seconds: f64) -> String {
    let size = seconds.abs();
    if size >= 90.0 {
        let minutes = (seconds / 60.0).round();
        return if minutes >= 120.0 {
            format!("{} h", digits(seconds / 3600.0))
        } else {
            format!("{minutes} min")
        };
    }
    if size >= 1.0 {
        format!("{} s", digits(seconds))
    } else if size >= 0.000_1 || size == 0.0 {
        format!("{} ms", digits(seconds * 1e3))
    } else {
        format!("{} µs", digits(seconds * 1e6))
    }
}

/// A size in bytes. Sizes of packets stay in bytes, sizes of buffers become KiB, MiB.
pub fn bytes(count: f64) -> String {
    if count.abs() < 10_240.0 {
        format!("{} bytes", count.round())
    } else {
        scaled(count, 1024.0, &["bytes", "KiB", "MiB", "GiB", "TiB"])
    }
}

/// A share, 0 to 1 (more where a ratio exceeds 1), in percent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent != 0.0 && percent.abs() < 1.0 {
        format!("{percent:.1} %")
    } else {
        format!("{} %", percent.round())
    }
}

/// A plain count; thousands apart.
pub fn count(number: f64) -> String {
    if number.fract() != 0.0 {
        return digits(number);
    }
    let plain = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) && plain.len() > 4 {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    if number < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// A number in one of the units that evidence lines and experiments use.
pub fn in_unit(number: f64, unit: &str) -> String {
    match unit {
        "bit/s" => rate(number),
        "s" => time(number),
        "bytes" => bytes(number),
        "share" | "ratio" => percent(number),
        "" => count(number),
        other => format!("{} {other}", count(number)),
    }
}

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
        Value::String(text) => Some(format!("{text} {unit}")),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        other => Some(other.to_string()),
    }
}

/// A change of a quantity with its sign: `+52.0 Mbit/s`.
pub fn signed(number: f64, unit: &str) -> String {
    let text = in_unit(number.abs(), unit);
    if number < 0.0 {
        format!("−{text}")
    } else {
        format!("+{text}")
    }
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let mut number = number;
    let mut unit = 0;
    // 999.6 would be shown as "1000": it belongs to the next unit.
    while number.abs() >= step * 0.999_5 && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    if unit == 0 {
        return format!("{} {}", number.round(), units[0]);
    }
    format!("{} {}", digits(number), units[unit])
}

/// Three significant digits, never an exponent.
fn digits(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size >= 99.95 {
        format!("{}", number.round())
    } else if size >= 9.995 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rates_keep_three_digits() {
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(rate(999.7), "1.00 kbit/s");
        assert_eq!(rate(93_120_000.0), "93.1 Mbit/s");
        assert_eq!(rate(450e6), "450 Mbit/s");
        assert_eq!(rate(1.204e9), "1.20 Gbit/s");
        assert_eq!(rate(999_960_000.0), "1.00 Gbit/s");
    }

    #[test]
    fn times_go_from_microseconds_to_hours() {
        assert_eq!(time(0.000_08), "80.0 µs");
        assert_eq!(time(0.012_34), "12.3 ms");
        assert_eq!(time(0.32), "320 ms");
        assert_eq!(time(12.34), "12.3 s");
        assert_eq!(time(600.0), "10 min");
        assert_eq!(time(7200.0), "2.00 h");
    }

    #[test]
    fn packets_stay_bytes_and_buffers_do_not() {
        assert_eq!(bytes(1420.0), "1420 bytes");
        assert_eq!(bytes(212_992.0), "208 KiB");
        assert_eq!(bytes(26_214_400.0), "25.0 MiB");
    }

    #[test]
    fn small_shares_are_not_zero() {
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.974), "97 %");
        assert_eq!(percent(0.0), "0 %");
    }

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

    #[test]
    fn signs_are_shown() {
        assert_eq!(signed(52e6, "bit/s"), "+52.0 Mbit/s");
        assert_eq!(signed(-0.012, "s"), "−12.0 ms");
    }
}
