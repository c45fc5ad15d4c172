//! TCP connections and what the kernel knows of each.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::SocketHolder;

/// Which connections to list. A connection is listed when one of the conditions that are given holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ConnectionsWanted {
    /// Its own address is one of these.
    pub local: Vec<IpAddr>,
    /// The far address is in one of these prefixes (`10.0.0.0/24`). One of length 0 counts for nothing.
    pub remote: Vec<String>,
    /// Prefixes that lead elsewhere: neither `local` nor `remote` makes a connection wanted whose far address is in one
    /// of these, unless it is in a longer one of `remote`, too.
    pub except: Vec<String>,
    /// One of its ports is one of these.
    pub ports: Vec<u16>,
}

/// Established TCP connections of this network namespace, and the sockets that listen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Connections {
    /// `CLOCK_MONOTONIC` in seconds.
    pub at: f64,
    /// Established connections in all.
    pub established: usize,
    /// Those that were wanted: at most 256, the ones that carried most bytes.
    pub wanted: Vec<TcpConnection>,
    /// Wanted ones that found no room in the list.
    pub left_out: usize,
    /// Listening sockets: at most 256, the fullest first.
    pub listeners: Vec<TcpListener>,
}

/// An established TCP connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpConnection {
    /// Own address (IPv4 also where the socket is of IPv6).
    pub local: SocketAddr,
    /// The far address.
    pub remote: SocketAddr,
    /// Socket inode.
    pub inode: u32,
    /// The kernel's name for this socket: no other has it until the machine starts anew.
    pub cookie: u64,
    /// Its congestion control.
    pub congestion_control: Option<String>,
    /// Bytes the program has not read yet.
    pub receive_queue: u32,
    /// Bytes the other end has not acknowledged yet.
    pub send_queue: u32,
    /// Most bytes of its receive buffer (`SO_RCVBUF` as the kernel counts).
    pub receive_buffer: Option<u32>,
    /// Most bytes of its send buffer.
    pub send_buffer: Option<u32>,
    /// The kernel's figures of it.
    pub info: TcpInfo,
}

/// `struct tcp_info`. What older kernels lack is `None`. Times in seconds since the connection began unless said
/// otherwise, rates in bit/s, sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TcpInfo {
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow start threshold in segments; `None` = still unlimited.
    pub ssthresh: Option<u32>,
    /// Smoothed round trip time in seconds.
    pub rtt: f64,
    /// Its mean deviation in seconds.
    pub rtt_deviation: f64,
    /// Shortest round trip lately, in seconds.
    pub min_rtt: Option<f64>,
    /// Segment size when sending.
    pub mss: u32,
    /// Path MTU as this connection knows it.
    pub pmtu: u32,
    /// Segments sent and neither acknowledged nor given up.
    pub unacked: u32,
    /// Segments thought lost now.
    pub lost: u32,
    /// Segments sent again, since it began.
    pub retransmits: u32,
    /// Retransmission timeouts in a row now.
    pub timeouts: u32,
    /// How many segments may be out of order before loss is assumed.
    pub reordering: u32,
    /// How often reordering was seen.
    pub reorderings_seen: Option<u32>,
    /// Segments received out of order.
    pub out_of_order: Option<u32>,
    /// Duplicates the other end told of (DSACK): retransmissions for nothing.
    pub duplicates: Option<u32>,
    /// Segments the other end marked for congestion (ECN).
    pub delivered_ce: Option<u32>,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Bytes sent again.
    pub bytes_retransmitted: Option<u64>,
    /// Bytes acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// Bytes in the send buffer that were never sent.
    pub bytes_not_sent: Option<u32>,
    /// Latest goodput in bit/s.
    pub delivery_rate: Option<u64>,
    /// That rate was limited by the program, not by the network.
    pub delivery_app_limited: bool,
    /// Pacing rate in bit/s; `None` = unlimited.
    pub pacing_rate: Option<u64>,
    /// Seconds with data to send.
    pub busy: Option<f64>,
    /// Seconds of those in which the other end's window held it back.
    pub rwnd_limited: Option<f64>,
    /// Seconds of those in which the own send buffer held it back.
    pub sndbuf_limited: Option<f64>,
    /// The other end's window in bytes.
    pub send_window: Option<u32>,
    /// The own window in bytes.
    pub receive_window: Option<u32>,
    /// Room the receiver has tuned itself to (`rcv_space`).
    pub receive_space: u32,
    /// Seconds since the last data was sent.
    pub idle_sending: f64,
    /// Seconds since the last data came.
    pub idle_receiving: f64,
}

impl Connections {
    /// What each connection did since `earlier`: those that were in both lists.
    pub fn since(&self, earlier: &Self) -> Vec<TcpProgress> {
        let seconds = self.at - earlier.at;
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Vec::new();
        }
        let before: BTreeMap<u64, &TcpConnection> = earlier
            .wanted
            .iter()
            .map(|connection| (connection.cookie, connection))
            .collect();
        self.wanted
            .iter()
            .filter_map(|now| {
                let before = before.get(&now.cookie)?;
                progress(seconds, before, now)
            })
            .collect()
    }
}

/// `None` when a figure went backwards: then it is not the same connection.
fn progress(seconds: f64, before: &TcpConnection, now: &TcpConnection) -> Option<TcpProgress> {
    if (before.local, before.remote) != (now.local, now.remote) {
        return None;
    }
    let (earlier, later) = (&before.info, &now.info);
    let bytes = |later: Option<u64>, earlier: Option<u64>| match (later, earlier) {
        (Some(later), Some(earlier)) => later.checked_sub(earlier).map(Some),
        _ => Some(None),
    };
    let time = |later: Option<f64>, earlier: Option<f64>| match (later, earlier) {
        (Some(later), Some(earlier)) => Some(later - earlier)
            .filter(|moved| *moved >= 0.0 && moved.is_finite())
            .map(Some),
        _ => Some(None),
    };
    Some(TcpProgress {
        seconds,
        bytes_acked: bytes(later.bytes_acked, earlier.bytes_acked)?,
        bytes_received: bytes(later.bytes_received, earlier.bytes_received)?,
        retransmits: later.retransmits.checked_sub(earlier.retransmits)?,
        bytes_retransmitted: bytes(later.bytes_retransmitted, earlier.bytes_retransmitted)?,
        busy: time(later.busy, earlier.busy)?,
        rwnd_limited: time(later.rwnd_limited, earlier.rwnd_limited)?,
        sndbuf_limited: time(later.sndbuf_limited, earlier.sndbuf_limited)?,
        now: now.clone(),
    })
}

/// What one connection did between two readings. What the kernel does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpProgress {
    /// Seconds between the readings.
    pub seconds: f64,
    /// Bytes acknowledged in between.
    pub bytes_acked: Option<u64>,
    /// Bytes received in between.
    pub bytes_received: Option<u64>,
    /// Segments sent again in between.
    pub retransmits: u32,
    /// Bytes sent again in between.
    pub bytes_retransmitted: Option<u64>,
    /// Seconds with data to send (kernel 4.10 and later).
    pub busy: Option<f64>,
    /// Seconds held back by the other end's window.
    pub rwnd_limited: Option<f64>,
    /// Seconds held back by the own send buffer.
    pub sndbuf_limited: Option<f64>,
    /// The connection at the later reading.
    pub now: TcpConnection,
}

/// A TCP socket that listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpListener {
    /// Where.
    pub local: SocketAddr,
    /// Socket inode.
    pub inode: u32,
    /// Connections the program has not accepted yet.
    pub queue: u32,
    /// Room for so many: the lesser of the program's backlog and `net.core.somaxconn` when it began to listen.
    pub backlog: u32,
    /// The process, where it could be found.
    pub holder: Option<SocketHolder>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn connection(cookie: u64, info: TcpInfo) -> TcpConnection {
        TcpConnection {
            local: "10.0.0.1:5201".parse().unwrap(),
            remote: "10.0.0.2:40000".parse().unwrap(),
            inode: 1,
            cookie,
            congestion_control: None,
            receive_queue: 0,
            send_queue: 0,
            receive_buffer: None,
            send_buffer: None,
            info,
        }
    }

    fn at(at: f64, wanted: Vec<TcpConnection>) -> Connections {
        Connections {
            at,
            wanted,
            ..Connections::default()
        }
    }

    #[test]
    fn only_what_was_there_before_has_progress() {
        let with = |busy, bytes_acked| TcpInfo {
            busy: Some(busy),
            bytes_acked: Some(bytes_acked),
            ..TcpInfo::default()
        };
        let earlier = at(1.0, vec![connection(1, with(0.5, 100))]);
        let later = at(
            3.0,
            vec![connection(1, with(2.25, 1100)), connection(2, with(1.0, 5))],
        );
        let progress = later.since(&earlier);
        assert_eq!(progress.len(), 1);
        assert_eq!(progress[0].bytes_acked, Some(1000));
        assert_eq!(progress[0].busy, Some(1.75));
        assert_eq!(progress[0].rwnd_limited, None);
        assert!(earlier.since(&later).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_ever_runs_backwards(
            times in proptest::array::uniform4(proptest::option::of(proptest::num::f64::ANY)),
            counts in proptest::array::uniform4(proptest::option::of(any::<u64>())),
            at_times in proptest::array::uniform2(proptest::num::f64::ANY),
        ) {
            let info = |half: usize| TcpInfo {
                busy: times[half],
                rwnd_limited: times[half + 2],
                bytes_acked: counts[half],
                bytes_received: counts[half + 2],
                ..TcpInfo::default()
            };
            let earlier = at(at_times[0], vec![connection(1, info(0))]);
            let later = at(at_times[1], vec![connection(1, info(1))]);
            for one in later.since(&earlier) {
                prop_assert!(one.seconds >= 0.0);
                prop_assert!(one.busy.is_none_or(|moved| moved >= 0.0));
                prop_assert!(one.bytes_acked.is_none_or(|moved| moved <= counts[1].unwrap_or(0)));
            }
        }
    }
}
