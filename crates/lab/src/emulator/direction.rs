//! One direction as the command line names it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest time that a packet is held.
const LONGEST: Duration = Duration::from_secs(10);

/// A TUN to make, how long to hold what comes through it, and what else becomes of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// Interface name.
    pub name: String,
    /// How long a packet is held.
    pub delay: Duration,
    /// Packets in a million that are held longer …
    pub reorder: u32,
    /// … by this.
    pub reorder_by: Duration,
    /// Packets in a million that come twice …
    pub duplicate: u32,
    /// … the second time this much later.
    pub duplicate_by: Duration,
    /// Rate in bit/s above which the road gives up for a while.
    pub collapse_above: Option<u64>,
    /// Does that count UDP alone?
    pub collapse_udp: bool,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}us", self.name, self.delay.as_micros())?;
        if self.reorder > 0 {
            write!(
                f,
                ",reorder={}/{}us",
                self.reorder,
                self.reorder_by.as_micros()
            )?;
        }
        if self.duplicate > 0 {
            write!(
                f,
                ",duplicate={}/{}us",
                self.duplicate,
                self.duplicate_by.as_micros()
            )?;
        }
        match self.collapse_above {
            Some(rate) if self.collapse_udp => write!(f, ",collapse-udp={rate}bit"),
            Some(rate) => write!(f, ",collapse={rate}bit"),
            None => Ok(()),
        }
    }
}

impl FromStr for Direction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        read(text).ok_or_else(|| {
            format!(
                "`{text}` is no direction: write NAME:DELAYus, as in delayup:20000us, and after it \
                 ,reorder=MILLIONTHS/TIMEus ,duplicate=MILLIONTHS/TIMEus ,collapse=RATEbit or ,collapse-udp=RATEbit"
            )
        })
    }
}

fn read(text: &str) -> Option<Direction> {
    let (name, rest) = text.split_once(':')?;
    let mut parts = rest.split(',');
    let fine = (1..=15).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let mut direction = Direction {
        name: fine.then(|| name.to_owned())?,
        delay: time(parts.next()?)?,
        reorder: 0,
        reorder_by: Duration::ZERO,
        duplicate: 0,
        duplicate_by: Duration::ZERO,
        collapse_above: None,
        collapse_udp: false,
    };
    for part in parts {
        match part.split_once('=')? {
            ("reorder", value) => (direction.reorder, direction.reorder_by) = share(value)?,
            ("duplicate", value) => (direction.duplicate, direction.duplicate_by) = share(value)?,
            (what @ ("collapse" | "collapse-udp"), value) => {
                direction.collapse_udp = what == "collapse-udp";
                let rate = value.strip_suffix("bit")?.parse().ok()?;
                direction.collapse_above = (rate > 0).then_some(rate);
            }
            _ => return None,
        }
    }
    Some(direction)
}

fn time(text: &str) -> Option<Duration> {
    let time = Duration::from_micros(text.strip_suffix("us")?.parse().ok()?);
    (time <= LONGEST).then_some(time)
}

fn share(text: &str) -> Option<(u32, Duration)> {
    let (millionths, by) = text.split_once('/')?;
    let millionths = millionths.parse().ok().filter(|n| *n <= 1_000_000)?;
    Some((millionths, time(by)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_a_name_a_delay_and_what_else_becomes_of_packets() {
        let plain: Direction = "delayup:20000us".parse().unwrap();
        assert_eq!(
            (plain.name.as_str(), plain.delay),
            ("delayup", Duration::from_millis(20))
        );
        assert_eq!(
            (plain.reorder, plain.duplicate, plain.collapse_above),
            (0, 0, None)
        );
        for text in [
            "delayup:20000us",
            "a:0us,reorder=20000/5000us",
            "a:1us,collapse-udp=40000000bit",
            "a:1us,reorder=1/2us,duplicate=3/0us,collapse=40000000bit",
        ] {
            let direction: Direction = text.parse().unwrap();
            assert_eq!(direction.to_string(), text);
        }
        for bad in [
            "",
            "delayup",
            "delayup:20ms",
            ":1us",
            "a b:1us",
            "x:99999999999us",
            "x:-1us",
            "x:1us,reorder=2",
            "x:1us,reorder=2000000/1us",
            "x:1us,collapse=4",
            "x:1us,speed=4",
        ] {
            assert!(bad.parse::<Direction>().is_err(), "{bad}");
        }
    }
}
