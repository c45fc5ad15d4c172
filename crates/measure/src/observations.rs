//! The shapes of what is measured beside loads: windows, sequence probes, rate sweeps, exchanges, and what already flows.
//! Rates in bit/s, times in seconds, sizes in bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirespeed_facts::{CountersDelta, Known, TcpProgress};

use crate::{Direction, Estimate, Via};

/// What the sender's TCP waited for during a load: `tcp_info` of the load's own connections, read through `sock_diag`
/// (`include/uapi/linux/tcp.h`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Windows {
    /// Connections that were seen from beginning to end of the reading.
    pub connections: u32,
    /// Seconds between the first and the last reading.
    pub seconds: f64,
    /// Share of those seconds in which data was waiting to be sent or acknowledged (`tcpi_busy_time`), mean over
    /// connections; the kernel counts it in ticks.
    pub busy: Option<f64>,
    /// Share of the busy time in which the receiver's window held the sender back (`tcpi_rwnd_limited`).
    pub receiver_limited: Option<f64>,
    /// Share of the busy time in which the sender's own buffer held it back (`tcpi_sndbuf_limited`).
    pub sender_limited: Option<f64>,
    /// Congestion window, bytes, median over readings, summed over connections.
    pub congestion_window: Option<u64>,
    /// Bytes sent and not yet acknowledged, median over readings, summed over connections.
    pub in_flight: Option<u64>,
    /// The window the receiver offers, bytes, median, summed (`tcpi_snd_wnd`, Linux 5.4).
    pub offered_window: Option<u64>,
    /// Smoothed RTT, median.
    pub rtt: Option<f64>,
    /// Smallest RTT the connections saw.
    pub min_rtt: Option<f64>,
    /// Send buffer of one connection at the end (`SO_SNDBUF` as the kernel has it).
    pub send_buffer: Option<u64>,
    /// Receive buffer of one connection at the receiver's end, where wirespeed runs there.
    pub receive_buffer: Option<u64>,
    /// Largest reordering the sender has met, segments (`tcpi_reordering`; 3 = none seen).
    pub reordering: Option<u32>,
    /// Segments sent again that had arrived after all, by the receiver's word (`tcpi_dsack_dups`).
    pub duplicates_reported: Option<u64>,
    /// Congestion control in use.
    pub congestion_control: Option<String>,
    /// Payload of a full segment, bytes: the smallest any of the connections had at any reading (`tcpi_snd_mss`).
    #[serde(default)]
    pub segment: Option<u32>,
}

/// Numbered UDP datagrams of one size at one rate, and how they arrived (terms of RFC 4737 and RFC 5236).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequenceProbe {
    /// Outside or through the tunnel.
    pub via: Via,
    /// Who sends.
    pub direction: Direction,
    /// UDP payload of each datagram, bytes.
    pub payload: u32,
    /// Rate offered, bit/s of UDP payload.
    pub offered: f64,
    /// Rate that arrived, bit/s of UDP payload.
    pub arrived: f64,
    /// Destination port.
    pub port: u16,
    /// Seconds from the first to the last datagram sent.
    pub seconds: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Different datagrams received.
    pub received: u64,
    /// Received more than once (RFC 5560).
    pub duplicates: u64,
    /// Received after one with a higher number (RFC 4737, Type-P-Reordered).
    pub reordered: u64,
    /// Largest reordering extent: how many had come between the earliest of higher number and the late one (RFC 4737, 4.2.3).
    pub reorder_extent: u64,
    /// Longest run of numbers that never arrived.
    pub longest_gap: u64,
    /// Runs of lost numbers.
    pub gaps: u64,
    /// Of those sent, not taken by the sender's own kernel (a full queue, its firewall).
    #[serde(default)]
    pub send_refused: u64,
    /// Arrived, but the receiver's socket had no room for them (`SO_RXQ_OVFL`).
    #[serde(default)]
    pub receiver_dropped: u64,
}

impl SequenceProbe {
    /// Share of the datagrams that left and never arrived; `None` when none left. What the machines themselves dropped
    /// at either end is not counted as lost.
    pub fn lost(&self) -> Option<f64> {
        let left = self.sent.saturating_sub(self.send_refused);
        let lost = left
            .saturating_sub(self.received)
            .saturating_sub(self.receiver_dropped);
        (left > 0).then(|| lost as f64 / left as f64)
    }

    /// Share of what arrived that came late.
    pub fn out_of_order(&self) -> Option<f64> {
        (self.received > 0).then(|| self.reordered as f64 / self.received as f64)
    }
}

/// The same datagrams handed to the kernel one by one and as one train (`UDP_SEGMENT`, udp(7)), outside the tunnel:
/// whether segmentation works on the way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentationProbe {
    /// Who sends.
    pub direction: Direction,
    /// Datagrams sent one by one.
    pub plain_sent: u64,
    /// Of those, arrived whole.
    pub plain_received: u64,
    /// Datagrams sent in trains.
    pub trains_sent: u64,
    /// Of those, arrived whole.
    pub trains_received: u64,
    /// Of those, arrived with other content or another length.
    pub trains_mangled: u64,
    /// What the kernel answered to a train, when it refused it.
    pub refused: Option<String>,
}

/// One cap of a rate sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepStep {
    /// Cap, bit/s; `None` = no cap.
    pub cap: Option<f64>,
    /// Goodput, bit/s.
    pub goodput: f64,
    /// Coefficient of variation of the goodput over intervals of the same length (0 = steady).
    pub variation: f64,
    /// Segments sent again per second, where the sender tells.
    pub retransmits: Option<f64>,
    /// RTT through the tunnel meanwhile, 95th percentile.
    pub loaded_rtt: Option<f64>,
    /// Carried (nearly) all of the cap, steadily?
    pub stable: bool,
}

/// The search for the highest rate that stays stable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSweep {
    /// Who sends.
    pub direction: Direction,
    /// How the rate was capped (`TCP pacing`, …).
    pub capped_by: String,
    /// In the order taken; the first has no cap, and a later one may have none either.
    pub steps: Vec<SweepStep>,
    /// The highest cap that stayed stable; `None` = none did.
    pub stable_cap: Option<f64>,
}

/// Percentiles of a time, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// Many short exchanges, each over a TCP connection of its own: connect, ask, be answered, close.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExchangeSample {
    /// Outside or through the tunnel.
    pub via: Via,
    /// Connections under way at the same time.
    pub at_once: u32,
    /// Connections meant to be made.
    pub wanted: u64,
    /// Exchanges completed.
    pub completed: u64,
    /// Exchanges that failed, by reason (`connect: timed out`, …).
    pub failed: BTreeMap<String, u64>,
    /// Bytes asked with.
    pub request: u32,
    /// Bytes answered.
    pub response: u32,
    /// Seconds the whole took.
    pub seconds: f64,
    /// Exchanges completed per second.
    pub per_second: f64,
    /// Until connected; `None` when nothing completed (and so below).
    pub connect: Option<Percentiles>,
    /// From the request until the first byte of the answer.
    pub first_byte: Option<Percentiles>,
    /// From the start of the connection until the whole answer.
    pub total: Option<Percentiles>,
    /// What moved here meanwhile.
    pub here: CountersDelta,
    /// What moved at the far end.
    pub far: Option<CountersDelta>,
}

/// Exchanges, bare against tunnel, interleaved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExchangeComparison {
    /// Connections at the same time.
    pub at_once: u32,
    /// Median over pairs of (exchanges per second through the tunnel / bare); `None` without a bare side.
    pub ratio: Option<Estimate>,
    /// Why there is no bare side, when there is none.
    pub bare_unknown: Option<String>,
    /// In the order taken.
    pub samples: Vec<ExchangeSample>,
    /// Remarks a reader must see.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// What flowed by itself on one machine while nothing was done but watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watched {
    /// Seconds watched.
    pub seconds: f64,
    /// What moved, all in all.
    pub counters: CountersDelta,
    /// The same in slices of a second or so, in order: shows bursts and stalls.
    pub slices: Vec<CountersDelta>,
    /// The tunnel's TCP connections that were open at the beginning and at the end.
    pub connections: Known<Vec<TcpProgress>>,
    /// Connections through the tunnel at the end.
    pub open: Option<u64>,
    /// What became of each peer, by public key; empty in recordings of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, PeerWatched>,
}

/// One peer at the end of a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeerWatched {
    /// Seconds since the last handshake; `None` = never.
    pub handshake_age: Option<f64>,
    /// Bytes sent to it in the slices after the last one in which something came from it.
    pub unanswered: u64,
    /// Seconds from the end of the first of those slices in which something was sent to the end of the watch.
    pub unanswered_for: f64,
}

/// A passive watch of both machines (the far one where wirespeed runs there).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PassiveWatch {
    /// Here.
    pub here: Watched,
    /// At the far end.
    pub far: Option<Watched>,
}
