//! Measurements that are worth their time only where a check asks for one.

use wirespeed_measure::{Direction, Via};
use wirespeed_words::say;

/// One such measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Probe {
    /// Numbered datagrams.
    Sequence(Datagrams),
    /// One longer load of several streams through the tunnel.
    Several { direction: Direction },
    /// Datagrams one by one and in trains, outside the tunnel.
    Segmentation { direction: Direction },
    /// Another congestion control in turn with the sender's own.
    Congestion { direction: Direction },
    /// The search for the highest rate that stays stable; `peak` in bit/s is what the road may carry.
    Sweep { direction: Direction, peak: f64 },
}

/// Numbered UDP datagrams of one size at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Datagrams {
    pub(crate) via: Via,
    pub(crate) direction: Direction,
    /// bit/s of UDP payload.
    pub(crate) rate: f64,
    /// Bytes of UDP payload in each.
    pub(crate) payload: u32,
    pub(crate) seconds: f64,
}

impl Datagrams {
    /// A thousand small ones a second, which take 0.8 Mbit/s of the road: next to nothing.
    pub(crate) fn gentle(direction: Direction, seconds: f64) -> Self {
        Self {
            via: Via::Bare,
            direction,
            rate: 0.512e6,
            payload: 64,
            seconds,
        }
    }

    /// Small ones on a road known to be slow, at most a thousand a second: a tenth of what it carries, in bit/s.
    pub(crate) fn gentle_on(road: f64, direction: Direction, seconds: f64) -> Self {
        let usual = Self::gentle(direction, seconds);
        // With IPv4, UDP and Ethernet headers as large again by two thirds.
        Self {
            rate: usual.rate.min((road * 0.06).round()),
            ..usual
        }
    }

    /// Full datagrams at a rate that an end can tell from a load of its own.
    pub(crate) fn at_rate(direction: Direction, rate: f64, seconds: f64) -> Self {
        Self {
            via: Via::Bare,
            direction,
            rate,
            // With IPv4 and UDP headers 1,388 bytes: fits nearly every road, as a full tunnel packet should.
            payload: 1360,
            seconds,
        }
    }

    fn is_gentle(&self) -> bool {
        self.rate <= 1e6
    }
}

impl Probe {
    /// What it is, for progress and for what was not measured.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Sequence(datagrams) => {
                let direction = datagrams.direction.word();
                match datagrams.via {
                    Via::Bare => say!("doctor-probe-datagrams", direction = direction),
                    Via::Tunnel => say!("doctor-probe-datagrams-tunnel", direction = direction),
                }
            }
            Self::Several { direction } => several(*direction),
            Self::Segmentation { direction } => {
                say!("doctor-probe-segmentation", direction = direction.word())
            }
            Self::Congestion { direction } => {
                say!("doctor-probe-congestion", direction = direction.word())
            }
            Self::Sweep { direction, .. } => {
                say!("doctor-probe-sweep", direction = direction.word())
            }
        }
    }

    /// Who sends.
    pub(crate) fn direction(&self) -> Direction {
        match self {
            Self::Sequence(datagrams) => datagrams.direction,
            Self::Several { direction }
            | Self::Segmentation { direction }
            | Self::Congestion { direction }
            | Self::Sweep { direction, .. } => *direction,
        }
    }

    /// About how long it takes at least, seconds: cheaper ones come first.
    pub(crate) fn seconds(&self) -> f64 {
        match self {
            Self::Sequence(datagrams) => datagrams.seconds + 0.5,
            Self::Several { .. } | Self::Segmentation { .. } => 3.0,
            Self::Congestion { .. } => 16.0,
            Self::Sweep { .. } => 23.0,
        }
    }

    /// Does it need wirespeed at the far end?
    pub(crate) fn needs_wirespeed(&self) -> bool {
        match self {
            Self::Sequence(_) | Self::Segmentation { .. } => true,
            Self::Several { .. } | Self::Congestion { .. } | Self::Sweep { .. } => false,
        }
    }

    /// Is it worth some seconds beyond the budget? Not where a healthy tunnel would have to wait for it, too.
    pub(crate) fn worth_waiting(&self) -> bool {
        match self {
            Self::Sequence(datagrams) => !datagrams.is_gentle(),
            Self::Several { .. }
            | Self::Segmentation { .. }
            | Self::Congestion { .. }
            | Self::Sweep { .. } => true,
        }
    }

    /// The same kind of measurement, whatever its figures?
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The longer load of several streams in words.
pub(crate) fn several(direction: Direction) -> String {
    say!(
        "doctor-probe-several",
        streams = SEVERAL,
        direction = direction.word()
    )
}

/// Streams of the longer load: enough to fill a queue in seconds though each of them watches the delay.
pub(crate) const SEVERAL: u32 = 8;

/// May both be made at the same time? Only where they take next to nothing of the road, each in its own direction.
pub(crate) fn together(one: &Datagrams, other: &Datagrams) -> bool {
    one.direction != other.direction && one.is_gentle() && other.is_gentle()
}
