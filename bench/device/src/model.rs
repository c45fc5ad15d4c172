//! What is measured: figures, and samples made of them.

use std::collections::BTreeMap;

use serde::Serialize;

/// Figures of one sample.
pub(crate) type Figures = BTreeMap<Metric, f64>;

/// One thing measured once.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) row: &'static str,
    pub(crate) implementation: &'static str,
    /// Counted from 1.
    pub(crate) round: u32,
    /// Its place in the round's order of implementations, from 0.
    pub(crate) position: usize,
    /// Seconds since the Unix epoch at its start.
    pub(crate) started_at: f64,
    /// Seconds it took, with starting and stopping the daemons.
    pub(crate) took: f64,
    /// Nanoseconds of a cache line's way to the other core and back, just before it.
    pub(crate) core_to_core: Option<f64>,
    /// Tasks of others that wanted to run just before it.
    pub(crate) others_running: Option<u32>,
    pub(crate) figures: Figures,
    /// Why the first try failed.
    pub(crate) retried: Option<String>,
    /// Why it has no figures: the second try failed, too.
    pub(crate) error: Option<String>,
}

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metric {
    Rate,
    RateUp,
    RateDown,
    Datagrams,
    Offered,
    Lost,
    RetransmitsPerGigabyte,
    RttIdle,
    RttIdleP99,
    RttLoaded,
    RttLoadedP99,
    EchoesLost,
    CpuNear,
    CpuFar,
    CpuBoth,
    CpuMachine,
    PacketCpu,
    PacketCpuMachine,
    MemoryIdle,
    MemoryLoaded,
    ResidentIdle,
    MemoryWithPeers,
    BytesPerPeer,
    SetPeers,
    GetPeers,
    WakeUps,
    Handshakes,
    HandshakeCpu,
    HandshakesLost,
    Cookies,
    Ready,
    FirstEcho,
    FloodShare,
    FloodShareDead,
    FloodRate,
    FloodSent,
    Resumed,
}

/// What a figure counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    BitsPerSecond,
    PerSecond,
    Share,
    Seconds,
    SecondsPerGigabyte,
    Bytes,
    Count,
}

impl Metric {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Rate => "goodput",
            Self::RateUp => "up",
            Self::RateDown => "down",
            Self::Datagrams => "received",
            Self::Offered => "sent",
            Self::Lost => "lost",
            Self::RetransmitsPerGigabyte => "retransmits/GB",
            Self::RttIdle => "RTT idle",
            Self::RttIdleP99 => "RTT idle p99",
            Self::RttLoaded => "RTT loaded",
            Self::RttLoadedP99 => "RTT loaded p99",
            Self::EchoesLost => "echoes lost",
            Self::CpuNear => "CPU near",
            Self::CpuFar => "CPU far",
            Self::CpuBoth | Self::PacketCpu => "CPU both daemons",
            Self::CpuMachine | Self::PacketCpuMachine => "CPU machine",
            Self::MemoryIdle => "PSS idle",
            Self::MemoryLoaded => "PSS loaded, peak",
            Self::ResidentIdle => "RSS idle",
            Self::MemoryWithPeers => "PSS with peers",
            Self::BytesPerPeer => "per peer",
            Self::SetPeers => "set",
            Self::GetPeers => "get",
            Self::WakeUps => "wake-ups",
            Self::Handshakes => "handshakes",
            Self::HandshakeCpu => "CPU each",
            Self::HandshakesLost => "unanswered",
            Self::Cookies => "by cookie",
            Self::Ready => "control socket",
            Self::FirstEcho => "first echo",
            Self::FloodShare => "kept",
            Self::FloodShareDead => "kept, to a dead port",
            Self::FloodRate => "goodput in the flood",
            Self::FloodSent => "flood",
            Self::Resumed => "resumed after",
        }
    }

    pub(crate) const fn unit(self) -> Unit {
        match self {
            Self::Rate | Self::RateUp | Self::RateDown | Self::FloodRate => Unit::BitsPerSecond,
            Self::Datagrams
            | Self::Offered
            | Self::WakeUps
            | Self::Handshakes
            | Self::FloodSent => Unit::PerSecond,
            Self::Lost
            | Self::EchoesLost
            | Self::HandshakesLost
            | Self::Cookies
            | Self::FloodShare
            | Self::FloodShareDead => Unit::Share,
            Self::RttIdle
            | Self::RttIdleP99
            | Self::RttLoaded
            | Self::RttLoadedP99
            | Self::SetPeers
            | Self::GetPeers
            | Self::HandshakeCpu
            | Self::PacketCpu
            | Self::PacketCpuMachine
            | Self::Ready
            | Self::FirstEcho
            | Self::Resumed => Unit::Seconds,
            Self::CpuNear | Self::CpuFar | Self::CpuBoth | Self::CpuMachine => {
                Unit::SecondsPerGigabyte
            }
            Self::MemoryIdle
            | Self::MemoryLoaded
            | Self::ResidentIdle
            | Self::MemoryWithPeers
            | Self::BytesPerPeer => Unit::Bytes,
            Self::RetransmitsPerGigabyte => Unit::Count,
        }
    }

    /// A value with its unit, for people.
    pub(crate) fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::BitsPerSecond if value >= 0.995e9 => format!("{:.2} Gbit/s", value / 1e9),
            Unit::BitsPerSecond => format!("{:.0} Mbit/s", value / 1e6),
            Unit::PerSecond if value >= 10_000.0 => format!("{:.0} k/s", value / 1e3),
            Unit::PerSecond if value >= 100.0 => format!("{value:.0} /s"),
            Unit::PerSecond => format!("{value:.1} /s"),
            Unit::Share => format!("{:.1} %", value * 100.0),
            Unit::Seconds if value >= 1.0 => format!("{value:.2} s"),
            Unit::Seconds if value >= 1e-3 => format!("{:.1} ms", value * 1e3),
            Unit::Seconds if value < 9.95e-6 && value > 0.0 => format!("{:.1} µs", value * 1e6),
            Unit::Seconds => format!("{:.0} µs", value * 1e6),
            Unit::SecondsPerGigabyte => format!("{value:.2} s/GB"),
            Unit::Bytes if value.abs() >= 999_500.0 => format!("{:.1} MB", value / 1e6),
            Unit::Bytes => format!("{:.1} kB", value / 1e3),
            Unit::Count if value == 0.0 || value >= 9.5 => format!("{value:.0}"),
            Unit::Count => format!("{value:.1}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        for (metric, value, text) in [
            (Metric::Rate, 6.831e9, "6.83 Gbit/s"),
            (Metric::Rate, 0.5e9, "500 Mbit/s"),
            (Metric::Datagrams, 412_345.0, "412 k/s"),
            (Metric::WakeUps, 1.25, "1.2 /s"),
            (Metric::RttIdle, 0.000_123, "123 µs"),
            (Metric::PacketCpu, 0.000_005_04, "5.0 µs"),
            (Metric::SetPeers, 0.75, "750.0 ms"),
            (Metric::Lost, 0.123, "12.3 %"),
            (Metric::MemoryIdle, 12.3e6, "12.3 MB"),
            (Metric::BytesPerPeer, 1_234.0, "1.2 kB"),
            (Metric::RetransmitsPerGigabyte, 0.0, "0"),
        ] {
            assert_eq!(metric.show(value), text);
        }
    }

    #[test]
    fn figures_are_named_in_json() {
        let figures = Figures::from([(Metric::RttIdleP99, 1.0)]);
        assert_eq!(
            serde_json::to_string(&figures).unwrap(),
            r#"{"rtt-idle-p99":1.0}"#
        );
    }
}
