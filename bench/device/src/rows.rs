//! The rows of the table: what is measured, how, and what is aimed at.

use crate::iperf3::Direction;
use crate::model::Metric;
use crate::road::Cable;

/// A row.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What it is and how it is measured, for a reader of the table.
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    pub(crate) cable: Cable,
    /// Takes long, and is measured in every third round only.
    pub(crate) rare: bool,
    /// What is shown; the first is what ratios are taken of.
    pub(crate) columns: &'static [Metric],
    pub(crate) aims: &'static [Aim],
}

/// How a row is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp {
        streams: u32,
        direction: Direction,
        echoes: bool,
    },
    /// As fast as the sender goes.
    Udp {
        payload: u32,
    },
    /// As fast as nearly nothing is lost.
    UdpClean {
        payload: u32,
    },
    Latency,
    StartUp,
    Memory,
    Handshakes,
    Flood,
    Restart,
}

impl Kind {
    /// Whether the bare road has such a row.
    pub(crate) const fn without_tunnel(self) -> bool {
        matches!(
            self,
            Self::Tcp { .. } | Self::Udp { .. } | Self::UdpClean { .. } | Self::Latency
        )
    }
}

/// What `inline` is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Aim {
    pub(crate) metric: Metric,
    pub(crate) limit: Limit,
}

/// Bounds of a figure, or of its ratio to another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    AtLeastTimes(Reference, f64),
    AtMostTimes(Reference, f64),
    /// No more than the reference and the bare road, whichever is more.
    NoMoreThan(Reference),
    AtLeast(f64),
    AtMost(f64),
}

/// Whom ratios are taken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reference {
    WireguardGo,
    Tailscale,
}

const TCP_COLUMNS: &[Metric] = &[
    Metric::Rate,
    Metric::RetransmitsPerGigabyte,
    Metric::CpuNear,
    Metric::CpuFar,
    Metric::CpuBoth,
    Metric::CpuMachine,
];
const TCP_ECHO_COLUMNS: &[Metric] = &[
    Metric::Rate,
    Metric::RttLoaded,
    Metric::RttLoadedP99,
    Metric::RetransmitsPerGigabyte,
    Metric::CpuNear,
    Metric::CpuFar,
    Metric::CpuBoth,
    Metric::CpuMachine,
];
const BOTH_COLUMNS: &[Metric] = &[
    Metric::Rate,
    Metric::RateUp,
    Metric::RateDown,
    Metric::RetransmitsPerGigabyte,
    Metric::CpuNear,
    Metric::CpuFar,
    Metric::CpuBoth,
    Metric::CpuMachine,
];
const UDP_COLUMNS: &[Metric] = &[
    Metric::Datagrams,
    Metric::Offered,
    Metric::Lost,
    Metric::PacketCpu,
    Metric::PacketCpuMachine,
];

const fn at_least(metric: Metric, reference: Reference, times: f64) -> Aim {
    Aim {
        metric,
        limit: Limit::AtLeastTimes(reference, times),
    }
}
const fn at_most(metric: Metric, reference: Reference, times: f64) -> Aim {
    Aim {
        metric,
        limit: Limit::AtMostTimes(reference, times),
    }
}

const TCP_AIMS: &[Aim] = &[
    at_least(Metric::Rate, Reference::WireguardGo, 1.7),
    at_least(Metric::Rate, Reference::Tailscale, 1.3),
    at_most(Metric::CpuBoth, Reference::WireguardGo, 0.6),
    Aim {
        metric: Metric::RetransmitsPerGigabyte,
        limit: Limit::NoMoreThan(Reference::WireguardGo),
    },
];
const UDP_AIMS: &[Aim] = &[at_least(Metric::Datagrams, Reference::WireguardGo, 1.5)];
const BUMPY_AIMS: &[Aim] = &[at_least(Metric::Rate, Reference::WireguardGo, 1.3)];

const fn tcp(
    name: &'static str,
    about: &'static str,
    streams: u32,
    direction: Direction,
    echoes: bool,
) -> Row {
    let columns = match (direction, echoes) {
        (Direction::Both, _) => BOTH_COLUMNS,
        (_, true) => TCP_ECHO_COLUMNS,
        (_, false) => TCP_COLUMNS,
    };
    let aims = match direction {
        Direction::Both => &[],
        Direction::Up | Direction::Down => TCP_AIMS,
    };
    let kind = Kind::Tcp {
        streams,
        direction,
        echoes,
    };
    Row {
        name,
        about,
        kind,
        cable: Cable::Plain,
        rare: false,
        columns,
        aims,
    }
}

/// Every row, in the order of the table.
pub(crate) const ROWS: [Row; 17] = [
    tcp(
        "tcp-1-up",
        "One TCP stream from the near end to the far end, and the round trips of echoes beside it",
        1,
        Direction::Up,
        true,
    ),
    tcp(
        "tcp-1-down",
        "One TCP stream from the far end to the near end",
        1,
        Direction::Down,
        false,
    ),
    tcp(
        "tcp-1-both",
        "One TCP stream each way at once; goodput is the sum",
        1,
        Direction::Both,
        false,
    ),
    tcp(
        "tcp-10-up",
        "Ten TCP streams from the near end to the far end, and the round trips of echoes beside them",
        10,
        Direction::Up,
        true,
    ),
    tcp(
        "tcp-10-down",
        "Ten TCP streams from the far end to the near end",
        10,
        Direction::Down,
        false,
    ),
    tcp(
        "tcp-10-both",
        "Ten TCP streams each way at once; goodput is the sum",
        10,
        Direction::Both,
        false,
    ),
    Row {
        name: "udp-1400",
        about: "UDP packets of 1,400 B (1,372 B of payload), each sent by itself (no GSO at the sender) and as fast as it can, without regard to what \
                arrives; counted where they arrive, CPU time for each that arrived",
        kind: Kind::Udp { payload: 1_372 },
        cable: Cable::Plain,
        rare: false,
        columns: UDP_COLUMNS,
        aims: UDP_AIMS,
    },
    Row {
        name: "udp-64",
        about: "The same with 64 B of payload",
        kind: Kind::Udp { payload: 64 },
        cable: Cable::Plain,
        rare: false,
        columns: UDP_COLUMNS,
        aims: UDP_AIMS,
    },
    Row {
        name: "udp-1400-clean",
        about: "UDP packets of 1,400 B at the highest rate of which at most 1 % is lost, found by halving the range it can be in",
        kind: Kind::UdpClean { payload: 1_372 },
        cable: Cable::Plain,
        rare: true,
        columns: UDP_COLUMNS,
        aims: &[],
    },
    Row {
        name: "no-offload-tcp-1",
        about: "One TCP stream up, over a network without GSO and GRO (tso, gso, gro and tx-udp-segmentation off at both ends of the cable)",
        kind: Kind::Tcp {
            streams: 1,
            direction: Direction::Up,
            echoes: false,
        },
        cable: Cable::WithoutOffloads,
        rare: false,
        columns: TCP_COLUMNS,
        aims: BUMPY_AIMS,
    },
    Row {
        name: "no-offload-tcp-10",
        about: "Ten TCP streams up, over the same",
        kind: Kind::Tcp {
            streams: 10,
            direction: Direction::Up,
            echoes: false,
        },
        cable: Cable::WithoutOffloads,
        rare: false,
        columns: TCP_COLUMNS,
        aims: BUMPY_AIMS,
    },
    Row {
        name: "latency",
        about: "Round trips of ICMP echoes, 84 B, one every 4 ms, nothing else going on",
        kind: Kind::Latency,
        cable: Cable::Plain,
        rare: false,
        columns: &[Metric::RttIdle, Metric::RttIdleP99, Metric::EchoesLost],
        aims: &[at_most(Metric::RttIdle, Reference::WireguardGo, 1.0)],
    },
    Row {
        name: "start-up",
        about: "From the start of a daemon to its control socket, and from the start of both daemons to the first echo through the tunnel, \
                configuration included",
        kind: Kind::StartUp,
        cable: Cable::Plain,
        rare: false,
        columns: &[Metric::FirstEcho, Metric::Ready],
        aims: &[],
    },
    Row {
        name: "memory",
        about: "The near daemon half a second after the first echo, at the peak of ten TCP streams up, and (a fresh one) with 10,000 peers; the time \
                to set these in one request and to get them back; and how often the daemon wakes up then, with nothing to do",
        kind: Kind::Memory,
        cable: Cable::Plain,
        rare: true,
        columns: &[
            Metric::MemoryWithPeers,
            Metric::BytesPerPeer,
            Metric::MemoryIdle,
            Metric::ResidentIdle,
            Metric::MemoryLoaded,
            Metric::SetPeers,
            Metric::GetPeers,
            Metric::WakeUps,
        ],
        aims: &[
            Aim {
                metric: Metric::SetPeers,
                limit: Limit::AtMost(1.0),
            },
            Aim {
                metric: Metric::BytesPerPeer,
                limit: Limit::AtMost(4_096.0),
            },
        ],
    },
    Row {
        name: "handshakes",
        about: "2,000 peers, each with an address of its own, make one handshake each with the daemon, 64 at a time; the callers' own work is done \
                before and after. Who asks for a cookie first pays for that",
        kind: Kind::Handshakes,
        cable: Cable::Plain,
        rare: true,
        columns: &[
            Metric::Handshakes,
            Metric::HandshakeCpu,
            Metric::Cookies,
            Metric::HandshakesLost,
        ],
        aims: &[],
    },
    Row {
        name: "flood",
        about: "One TCP stream up without and with 50,000 forged initiations a second (right MAC1, random sources) at the receiving daemon; and \
                with the same flood to a port where nobody reads it, which shows what the flood costs the machine by itself",
        kind: Kind::Flood,
        cable: Cable::Plain,
        rare: true,
        columns: &[
            Metric::FloodShare,
            Metric::FloodShareDead,
            Metric::Rate,
            Metric::FloodRate,
            Metric::FloodSent,
        ],
        aims: &[Aim {
            metric: Metric::FloodShare,
            limit: Limit::AtLeast(0.8),
        }],
    },
    Row {
        name: "restart",
        about: "kill -9 of the far daemon and start with the same configuration (persistent keepalive 25 s): from the kill to the first echo \
                from the near end, which is left alone",
        kind: Kind::Restart,
        cable: Cable::Plain,
        rare: true,
        columns: &[Metric::Resumed],
        aims: &[Aim {
            metric: Metric::Resumed,
            limit: Limit::AtMost(5.0),
        }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_aims_are_shown() {
        let mut names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
        for row in &ROWS {
            assert!(
                row.aims.iter().all(|aim| row.columns.contains(&aim.metric)),
                "{}",
                row.name
            );
        }
    }
}
