//! Numbers as people read them: `93.1 Mbit/s`, `12.3 ms`, `208 KiB`, `97 %`; in French `93,1 Mbit/s`, `208 Kio`.

use crate::{Language, language, say};

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
            with(&digits(seconds / 3600.0), "h")
        } else {
            with(&whole(minutes), "min")
        };
    }
    if size >= 1.0 {
        with(&digits(seconds), "s")
    } else if size >= 0.000_1 || size == 0.0 {
        with(&digits(seconds * 1e3), "ms")
    } else {
        with(&digits(seconds * 1e6), "µs")
    }
}

/// A size in bytes. Sizes of packets stay in bytes, sizes of buffers become KiB, MiB.
pub fn bytes(count: f64) -> String {
    let units = match language() {
        Language::English => ["bytes", "KiB", "MiB", "GiB", "TiB"],
        Language::French => ["octets", "Kio", "Mio", "Gio", "Tio"],
    };
    if count.abs() < 10_240.0 {
        with(&whole(count), units[0])
    } else {
        scaled(count, 1024.0, &units)
    }
}

/// A share, 0 to 1 (more where a ratio exceeds 1), in percent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent != 0.0 && percent.abs() < 1.0 {
        decimal(percent, 1, 1, language())
    } else {
        whole(percent)
    };
    with(&text, "%")
}

/// A plain count; thousands apart.
pub fn count(number: f64) -> String {
    if number.fract() == 0.0 {
        decimal(number, 0, 0, language())
    } else {
        digits(number)
    }
}

/// A number in one of the units that evidence lines and experiments use.
pub fn in_unit(number: f64, unit: &str) -> String {
    match unit {
        "bit/s" => rate(number),
        "s" => time(number),
        "bytes" => bytes(number),
        "share" | "ratio" => percent(number),
        // A byte takes a processor nanoseconds.
        "s/byte" => with(&digits(number * 1e9), &unit_name("ns/byte")),
        "" => count(number),
        other => with(&count(number), &unit_name(other)),
    }
}

/// A unit that is a word, as the language of the moment has it; one it doesn't know stays as it is.
pub fn unit_name(unit: &str) -> String {
    let key = format!("unit-{}", unit.replace([' ', '/', '²'], "-"));
    let known = crate::is_there(language(), &key);
    if known {
        crate::message(&key, [])
    } else {
        unit.to_owned()
    }
}

/// Yes or no.
pub fn yes_or_no(yes: bool) -> String {
    if yes { say!("yes") } else { say!("no") }
}

/// A number with so many decimal places, and its unit.
pub fn fixed(number: f64, places: usize, unit: &str) -> String {
    with(&decimal(number, places, places, language()), unit)
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

/// A number and its unit, which no line break parts in French.
fn with(number: &str, unit: &str) -> String {
    match language() {
        Language::English => format!("{number} {unit}"),
        Language::French => format!("{number}\u{202f}{unit}"),
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
        return with(&whole(number), units[0]);
    }
    with(&digits(number), units[unit])
}

/// Three significant digits, never an exponent.
fn digits(number: f64) -> String {
    let size = number.abs();
    let places = if size == 0.0 || size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else {
        2
    };
    in_language(&format!("{number:.places$}"), language())
}

fn whole(number: f64) -> String {
    format!("{}", number.round())
}

/// A number with so many decimal places (those beyond the least only where they are not 0), thousands apart from five digits on.
pub(crate) fn decimal(number: f64, least: usize, most: usize, language: Language) -> String {
    let mut text = format!("{number:.most$}");
    if most > least {
        let shortest = text.len() - (most - least);
        while text.len() > shortest && text.ends_with('0') {
            text.pop();
        }
        if text.ends_with('.') {
            text.pop();
        }
    }
    in_language(&text, language)
}

/// A number as `format!` writes it, as the language writes it.
fn in_language(text: &str, language: Language) -> String {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let (apart, point) = match language {
        Language::English => ('\u{a0}', '.'),
        Language::French => ('\u{202f}', ','),
    };
    let mut out = String::from(sign);
    let numeric = whole.bytes().all(|digit| digit.is_ascii_digit());
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && numeric && whole.len() > 4 && (whole.len() - index).is_multiple_of(3) {
            out.push(apart);
        }
        out.push(digit);
    }
    if !places.is_empty() {
        out.push(point);
        out.push_str(places);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::within;

    fn in_french(run: impl Fn() -> String) -> String {
        within(Language::French, run).replace('\u{202f}', "_")
    }

    #[test]
    fn rates_have_three_digits_and_a_unit() {
        for (number, english, french) in [
            (0.0, "0 bit/s", "0_bit/s"),
            (999.4, "999 bit/s", "999_bit/s"),
            (999.6, "1.00 kbit/s", "1,00_kbit/s"),
            (93_120_000.0, "93.1 Mbit/s", "93,1_Mbit/s"),
            (999_600_000.0, "1.00 Gbit/s", "1,00_Gbit/s"),
            (123_400_000_000.0, "123 Gbit/s", "123_Gbit/s"),
        ] {
            assert_eq!(rate(number), english);
            assert_eq!(in_french(|| rate(number)), french);
        }
    }

    #[test]
    fn times_sizes_and_shares() {
        for (english, french, say) in [
            ("0 ms", "0_ms", (|| time(0.0)) as fn() -> String),
            ("12.3 ms", "12,3_ms", || time(0.0123)),
            ("50.0 µs", "50,0_µs", || time(0.000_05)),
            ("3.50 s", "3,50_s", || time(3.5)),
            ("119 min", "119_min", || time(7140.0)),
            ("2.00 h", "2,00_h", || time(7200.0)),
            ("1500 bytes", "1500_octets", || bytes(1500.0)),
            ("208 KiB", "208_Kio", || bytes(212_992.0)),
            ("4.00 MiB", "4,00_Mio", || bytes(4_194_304.0)),
            ("97 %", "97_%", || percent(0.968)),
            ("0.2 %", "0,2_%", || percent(0.002)),
            ("0 %", "0_%", || percent(0.0)),
            ("1500", "1500", || count(1500.0)),
            ("12\u{a0}345\u{a0}678", "12_345_678", || count(12_345_678.0)),
            ("-12\u{a0}345", "-12_345", || count(-12_345.0)),
            ("+52.0 Mbit/s", "+52,0_Mbit/s", || signed(52e6, "bit/s")),
            ("−3.00 ms", "−3,00_ms", || signed(-0.003, "s")),
            ("7 packets", "7_paquets", || in_unit(7.0, "packets")),
            ("21.5 ns/byte", "21,5_ns/octet", || {
                in_unit(2.15e-8, "s/byte")
            }),
            ("12.0 %", "12,0_%", || fixed(12.0, 1, "%")),
        ] {
            assert_eq!(say(), english);
            assert_eq!(in_french(say), french);
        }
    }

    #[test]
    fn what_is_no_number_is_shown_all_the_same() {
        assert_eq!(rate(f64::NAN), "NaN bit/s");
        assert_eq!(count(f64::INFINITY), "inf");
    }

    #[test]
    fn decimals_are_cut_where_they_are_nothing() {
        let english = |number, least, most| decimal(number, least, most, Language::English);
        assert_eq!(english(2.0, 0, 3), "2");
        assert_eq!(english(2.5, 0, 3), "2.5");
        assert_eq!(english(2.0, 1, 3), "2.0");
        assert_eq!(english(100.0, 0, 0), "100");
        assert_eq!(english(0.000_1, 0, 3), "0");
    }
}
