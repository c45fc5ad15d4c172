//! The quantities of a scenario file, each written the way people write them: `"100mbit"`, `"20ms"`, `"1%"`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a TOML value may be where a quantity is meant.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a text such as \"20ms\" or a number")]
enum Written {
    Number(f64),
    Text(String),
}

/// A number and the letters after it, `("100", "mbit")`.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number = text[..end]
        .parse::<f64>()
        .map_err(|_| format!("`{text}` does not start with a number"))?;
    Ok((number, text[end..].trim()))
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        _ => return Err(format!("`{text}` is not a time: write 20ms, 1.5s or 300us")),
    };
    if seconds > 3600.0 {
        return Err(format!("`{text}` is longer than an hour"));
    }
    // What finer there may be could not be written back as people write it.
    Ok(Duration::from_micros((seconds * 1e6).round() as u64))
}

fn show_duration(d: Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if d.subsec_nanos() == 0 {
        write!(f, "{}s", d.as_secs())
    } else if d.as_nanos().is_multiple_of(1_000_000) {
        write!(f, "{}ms", d.as_millis())
    } else {
        write!(f, "{}us", d.as_micros())
    }
}

/// A quantity that is read from a [`Written`] value and written back as text.
macro_rules! quantity {
    ($type:ty, $read:path) => {
        impl TryFrom<Written> for $type {
            type Error = String;
            fn try_from(written: Written) -> Result<Self, String> {
                $read(written)
            }
        }
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}

/// Bits per second on the wire, Ethernet header included, as `tc(8)` counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written", into = "String")]
pub struct Rate(u64);

impl Rate {
    /// The rate in bit/s.
    pub fn bits_per_second(self) -> u64 {
        self.0
    }

    fn read(written: Written) -> Result<Rate, String> {
        let Written::Text(text) = written else {
            return Err("a rate needs its unit: write \"100mbit\"".to_owned());
        };
        let (number, unit) = split(&text)?;
        let factor = match unit {
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => {
                return Err(format!(
                    "`{text}` is not a rate: write 800kbit, 100mbit or 1gbit"
                ));
            }
        };
        let bits = number * factor;
        if !(64e3..=100e9).contains(&bits) {
            return Err(format!("`{text}` is outside 64kbit to 100gbit"));
        }
        Ok(Rate(bits.round() as u64))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b if b.is_multiple_of(1_000_000_000) => write!(f, "{}gbit", b / 1_000_000_000),
            b if b.is_multiple_of(1_000_000) => write!(f, "{}mbit", b / 1_000_000),
            b => write!(f, "{}kbit", b as f64 / 1e3),
        }
    }
}

quantity!(Rate, Rate::read);

/// A span of time, at most an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written", into = "String")]
pub struct Span(Duration);

impl Span {
    /// The same as a [`Duration`].
    pub fn duration(self) -> Duration {
        self.0
    }

    fn read(written: Written) -> Result<Span, String> {
        match written {
            Written::Text(text) => duration(&text).map(Span),
            Written::Number(_) => Err("a time needs its unit: write \"20ms\"".to_owned()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_duration(self.0, f)
    }
}

quantity!(Span, Span::read);

/// A share of packets lost: `"1%"` or `0.01`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written", into = "String")]
pub struct Loss {
    per_million: u32,
}

impl Loss {
    /// Packets lost of a million.
    pub fn per_million(self) -> u32 {
        self.per_million
    }

    fn read(written: Written) -> Result<Loss, String> {
        let share = match written {
            Written::Number(share) => share,
            Written::Text(text) => {
                let (number, unit) = split(&text)?;
                if unit != "%" {
                    return Err(format!("`{text}` is not a share: write \"1%\" or 0.01"));
                }
                number / 100.0
            }
        };
        if !(0.0..=0.9).contains(&share) {
            return Err(format!("a loss of {share} is outside 0 to 0.9"));
        }
        Ok(Loss {
            per_million: (share * 1e6).round() as u32,
        })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.per_million) / 1e4)
    }
}

quantity!(Loss, Loss::read);

/// Length of the bottleneck's first-in first-out queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written", into = "String")]
pub enum Queue {
    /// What the rate sends in this time.
    Time(Duration),
    /// Bytes.
    Bytes(u64),
    /// Full-size packets (1,514 bytes).
    Packets(u64),
}

impl Queue {
    /// Its size at this rate; never less than two full-size packets.
    pub fn bytes(self, rate: Rate) -> u64 {
        let bytes = match self {
            Queue::Time(time) => (rate.bits_per_second() as f64 / 8.0 * time.as_secs_f64()) as u64,
            Queue::Bytes(bytes) => bytes,
            Queue::Packets(packets) => packets * FULL_PACKET,
        };
        bytes.clamp(2 * FULL_PACKET, u64::from(u32::MAX))
    }

    fn read(written: Written) -> Result<Queue, String> {
        let text = match written {
            Written::Text(text) => text,
            Written::Number(_) => {
                return Err(
                    "a queue needs its unit: write \"20ms\", \"64kb\" or \"100packets\"".to_owned(),
                );
            }
        };
        let (number, unit) = split(&text)?;
        if number > 1e9 {
            return Err(format!("`{text}` is larger than any queue"));
        }
        match unit {
            "b" => Ok(Queue::Bytes(number as u64)),
            "kb" => Ok(Queue::Bytes((number * 1e3) as u64)),
            "mb" => Ok(Queue::Bytes((number * 1e6) as u64)),
            "packets" => Ok(Queue::Packets(number as u64)),
            _ => duration(&text)
                .map(Queue::Time)
                .map_err(|_| format!("`{text}` is not a queue: write 20ms, 64kb or 100packets")),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Time(time) => show_duration(*time, f),
            Queue::Bytes(bytes) => write!(f, "{bytes}b"),
            Queue::Packets(packets) => write!(f, "{packets}packets"),
        }
    }
}

quantity!(Queue, Queue::read);

/// Ethernet frame of a 1,500-byte packet as queueing disciplines count it.
const FULL_PACKET: u64 = 1514;

/// Maximum transmission unit in bytes, 576 (what every IPv4 host accepts) to 9,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "i64", into = "u32")]
pub struct Mtu(u32);

impl Mtu {
    /// Plain Ethernet's.
    pub const ETHERNET: Mtu = Mtu(1500);
    /// What WireGuard takes on plain Ethernet (an outer IPv6 header fits).
    pub const WIREGUARD: Mtu = Mtu(1420);

    /// In bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

impl TryFrom<i64> for Mtu {
    type Error = String;
    fn try_from(bytes: i64) -> Result<Self, String> {
        match u32::try_from(bytes) {
            Ok(bytes @ 576..=9000) => Ok(Mtu(bytes)),
            _ => Err(format!("an MTU of {bytes} is outside 576 to 9000 bytes")),
        }
    }
}

impl From<Mtu> for u32 {
    fn from(mtu: Mtu) -> u32 {
        mtu.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: for<'a> Deserialize<'a>>(value: &str) -> Result<T, String> {
        #[derive(Deserialize)]
        struct File<T> {
            v: T,
        }
        toml::from_str::<File<T>>(&format!("v = {value}"))
            .map(|f| f.v)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(
            read::<Rate>("\"100mbit\"").unwrap().bits_per_second(),
            100_000_000
        );
        assert_eq!(
            read::<Rate>("\"1.5 gbit\"").unwrap().bits_per_second(),
            1_500_000_000
        );
        assert_eq!(
            read::<Span>("\"20ms\"").unwrap().duration(),
            Duration::from_millis(20)
        );
        assert_eq!(
            read::<Span>("\"0.3ms\"").unwrap().duration(),
            Duration::from_micros(300)
        );
        assert_eq!(read::<Loss>("\"1%\"").unwrap().per_million(), 10_000);
        assert_eq!(read::<Loss>("0.01").unwrap().per_million(), 10_000);
        assert_eq!(
            read::<Queue>("\"20ms\"").unwrap(),
            Queue::Time(Duration::from_millis(20))
        );
        assert_eq!(read::<Queue>("\"64kb\"").unwrap(), Queue::Bytes(64_000));
        assert_eq!(
            read::<Queue>("\"100packets\"").unwrap(),
            Queue::Packets(100)
        );
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_an_example() {
        assert!(
            read::<Rate>("\"fast\"")
                .unwrap_err()
                .contains("does not start with a number")
        );
        assert!(read::<Rate>("100").unwrap_err().contains("needs its unit"));
        assert!(
            read::<Rate>("\"100mbps\"")
                .unwrap_err()
                .contains("write 800kbit")
        );
        assert!(read::<Span>("\"20\"").unwrap_err().contains("write 20ms"));
        assert!(read::<Loss>("\"1\"").unwrap_err().contains("write \"1%\""));
        assert!(read::<Loss>("2").unwrap_err().contains("outside 0 to 0.9"));
        assert!(read::<Mtu>("100").unwrap_err().contains("outside 576"));
        assert!(read::<Mtu>("-1").unwrap_err().contains("outside 576"));
    }

    #[test]
    fn a_queue_in_time_becomes_bytes_at_its_rate() {
        let rate = Rate(100_000_000);
        assert_eq!(Queue::Time(Duration::from_millis(20)).bytes(rate), 250_000);
        assert_eq!(Queue::Packets(1).bytes(rate), 2 * FULL_PACKET);
    }
}
