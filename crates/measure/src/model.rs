//! The shapes of a measurement. Rates in bit/s, times in seconds, sizes in bytes.

use serde::{Deserialize, Serialize};
use wirespeed_facts::CountersDelta;
use wirespeed_words::say;

/// Outside the tunnel or through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// Straight to the peer's endpoint address.
    Bare,
    /// To the peer's address inside the tunnel.
    Tunnel,
}

/// As seen from the machine wirespeed was started on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Here sends.
    Upload,
    /// The far end sends.
    Download,
}

impl Direction {
    /// `upload` or `download`, as people read it.
    pub fn word(self) -> String {
        match self {
            Self::Upload => say!("direction-upload"),
            Self::Download => say!("direction-download"),
        }
    }
}

/// Transport of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP, as fast as it goes.
    Tcp,
    /// UDP at a rate.
    Udp,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Bare or tunnel.
    pub via: Via,
    /// Who sends.
    pub direction: Direction,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Parallel connections.
    pub streams: u32,
    /// Seconds measured, after the warm-up.
    pub seconds: f64,
    /// Seconds thrown away at the start.
    pub warm_up: f64,
    /// Congestion control asked for per socket (`TCP_CONGESTION`); `None` = the route's or the namespace's.
    pub congestion_control: Option<String>,
    /// Rate asked for, bit/s, all streams together; over TCP the sender paces itself. `None` = as fast as it goes.
    pub rate: Option<f64>,
}

/// Who counted the bytes of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CountedBy {
    /// The receiving iperf3: what arrived.
    #[default]
    Receiver,
    /// The sending iperf3, because the receiver's intervals could not be had: what was handed to the
    /// kernel, at most what the receiver counted over the whole run where that is known.
    Sender,
    /// The link's byte counter at the receiving end, because iperf3 could not finish its report.
    Link,
}

/// One interval of one load (all streams together).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Start, seconds after the load began (warm-up included).
    pub start: f64,
    /// Length.
    pub seconds: f64,
    /// Goodput.
    pub rate: f64,
    /// Segments retransmitted in the interval, where the sender tells.
    pub retransmits: Option<u64>,
    /// Congestion window summed over streams, bytes, where the sender tells.
    pub congestion_window: Option<u64>,
    /// Smoothed RTT of the connection (`tcp_info`), mean over streams.
    pub rtt: Option<f64>,
    /// Part of the warm-up?
    pub warm_up: bool,
}

/// Round-trip times of a train of echo requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RttSummary {
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub received: u32,
    /// Smallest; `None` when nothing came back (and so below).
    pub min: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// One load that really ran. A load that did not is an error ([`crate::MeasureError`]), never a zero; a load
/// that ran and moved nothing (a black hole) is a sample with `stalled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What was asked for.
    pub load: Load,
    /// Seconds since the Unix epoch at the start.
    pub started_at: f64,
    /// Seconds it ran after the warm-up.
    pub ran: f64,
    /// Bytes that arrived after the warm-up (receiver's count where it is known).
    pub bytes: u64,
    /// Goodput after the warm-up, bit/s.
    pub rate: f64,
    /// Who counted those bytes.
    #[serde(default)]
    pub counted_by: CountedBy,
    /// Segments retransmitted after the warm-up, where the sender tells.
    pub retransmits: Option<u64>,
    /// Segments retransmitted in the whole run, warm-up included, where the sender tells.
    #[serde(default)]
    pub retransmits_with_warm_up: Option<u64>,
    /// Share of datagrams lost (UDP), 0 to 1.
    pub lost: Option<f64>,
    /// Streams that ended early or never moved a byte.
    pub dead_streams: u32,
    /// Ran, but (nearly) nothing arrived: under 1 % of the intervals after the warm-up carried data.
    pub stalled: bool,
    /// Congestion control the sender used, where iperf3 tells.
    pub congestion_control: Option<String>,
    /// Interval by interval.
    pub intervals: Vec<Interval>,
    /// RTT by echo requests while the load ran, over the same way (bare or tunnel).
    pub loaded_rtt: Option<RttSummary>,
    /// What the sender's TCP waited for, where wirespeed runs there.
    #[serde(default)]
    pub windows: Option<crate::Windows>,
    /// What moved here while it ran.
    pub here: CountersDelta,
    /// What moved at the far end, when wirespeed runs there.
    pub far: Option<CountersDelta>,
}

/// One pair, taken one straight after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// Bare (or A), bit/s.
    pub bare: f64,
    /// Tunnel (or B), bit/s.
    pub tunnel: f64,
    /// tunnel / bare; 0 when the tunnel stalled.
    pub ratio: f64,
}

/// Bare against tunnel, interleaved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Who sends.
    pub direction: Direction,
    /// Parallel connections.
    pub streams: u32,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Median over the bare samples, bit/s; `None` when the bare path could not be measured.
    pub bare: Option<f64>,
    /// Median over the tunnel samples, bit/s.
    pub tunnel: f64,
    /// Median ratio tunnel/bare over the pairs.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % confidence interval (bootstrap over pairs).
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// The pairs.
    pub pairs: Vec<Pair>,
    /// Why there is no bare side, when there is none.
    pub bare_unknown: Option<String>,
    /// Remarks a reader must see: budget spent before the interval was narrow, samples short for the RTT, …
    pub remarks: Vec<String>,
    /// Every sample, in the order taken.
    pub samples: Vec<Sample>,
}

impl Comparison {
    /// The samples of one side, in order.
    pub fn of(&self, via: Via) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.load.via == via)
    }
}

/// A difference with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Point estimate (median over pairs).
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a don't-fragment probe of one direction found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathMtu {
    /// Who sends.
    pub direction: Direction,
    /// Largest IP packet (bytes, outer) that arrived and was answered.
    pub largest_passed: Option<u32>,
    /// Smallest that did not.
    pub smallest_failed: Option<u32>,
    /// MTU that "fragmentation needed"/"packet too big" (or the own link) reported while probing.
    pub reported: Option<u32>,
    /// A size was lost without any error coming back (probed at least three times, smaller ones passing before and after).
    pub silent_loss: bool,
    /// MTU of the first link, an upper bound.
    pub link_mtu: u32,
    /// What was probed with (`icmp-echo`, `udp-echo`).
    pub method: String,
}

/// Sizes that pass inside the tunnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunnelSweep {
    /// Who sends.
    pub direction: Direction,
    /// Largest inner IP packet (bytes) that passed.
    pub largest_passed: Option<u32>,
    /// Smallest up to the tunnel's MTU that was lost; `None` = everything up to the MTU passes.
    pub smallest_failed: Option<u32>,
}

/// Something that was meant to be measured and was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotMeasured {
    /// What.
    pub what: String,
    /// Why not.
    pub because: String,
}
