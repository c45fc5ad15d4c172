//! What is read before and after each load, and what moved in between.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DeviceCounters, Quota};

/// Counters at one moment. Cheap to read (milliseconds).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// `CLOCK_MONOTONIC` in seconds.
    pub at: f64,
    /// Per core, seconds since boot.
    pub cores: Vec<CoreTime>,
    /// `/proc/net/snmp`, `snmp6` and `netstat` of this network namespace: `Ip.FragCreates`, `Udp.RcvbufErrors`,
    /// `Ip6.FragFails`, `TcpExt.TCPTimeouts`; and `Conntrack.insert_failed` where conntrack is in use. Gauges and
    /// settings among them (`Tcp.CurrEstab`, `Ip.Forwarding` …) are left out.
    pub protocols: BTreeMap<String, u64>,
    /// `/proc/net/softnet_stat`, per core.
    pub softnet: Vec<Softnet>,
    /// By interface name.
    pub links: BTreeMap<String, LinkCounters>,
    /// By peer's public key.
    pub peers: BTreeMap<String, PeerCounters>,
    /// Drops of the tunnel's UDP sockets, by inode (decimal).
    pub socket_drops: BTreeMap<String, u64>,
    /// Qdisc drops/backlog by interface name (root qdisc).
    pub qdiscs: BTreeMap<String, QdiscCounters>,
    /// CPU seconds of processes, by pid (decimal).
    pub processes: BTreeMap<String, ProcessTime>,
    /// What daemons that tell (wirespeed-device) counted themselves, by interface name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, DeviceCounters>,
    /// What drivers of the outer links' cards count under names of their own (`ethtool -S`), by interface name and
    /// statistic: only what tells of lost packets and limits (`…missed…`, `…no_buffer…`, `…fifo…`,
    /// `…allowance_exceeded` …).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drivers: BTreeMap<String, BTreeMap<String, u64>>,
    /// Interrupts of the outer links' cards, by number (decimal): one count per core, in the order of `cores`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupts: BTreeMap<String, Vec<u64>>,
    /// `NET_RX` and `NET_TX` of `/proc/softirqs`: one count per core, in the order of `cores`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub softirqs: BTreeMap<String, Vec<u64>>,
    /// How often the processor slowed down for its heat, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
    /// The connection tracking table; `None` where the kernel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conntrack: Option<ConntrackTable>,
    /// Processor time that the control groups of the tunnels' daemons allow, by the tunnel's interface; those without a
    /// limit are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotas: BTreeMap<String, Quota>,
}

/// Time of one core in seconds, since boot or between two moments (`/proc/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoreTime {
    /// user + nice.
    pub user: f64,
    /// system.
    pub system: f64,
    /// irq.
    pub irq: f64,
    /// softirq.
    pub softirq: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// idle + iowait.
    pub idle: f64,
}

impl CoreTime {
    /// Share of the time not idle, 0 to 1 (steal counts as busy: it was not ours to use).
    pub fn busy_share(&self) -> f64 {
        let busy = self.user + self.system + self.irq + self.softirq + self.steal;
        let all = busy + self.idle;
        // Times that another machine told may be negative, or too long to be added up.
        if all > 0.0 && all.is_finite() {
            (busy / all).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// One core's row of `/proc/net/softnet_stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Softnet {
    /// Packets processed.
    pub processed: u64,
    /// Dropped because the backlog was full (column 2).
    pub dropped: u64,
    /// Poll budget ran out (column 3).
    pub time_squeeze: u64,
}

/// Counters of one link (`IFLA_STATS64`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkCounters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Dropped on receive.
    pub rx_dropped: u64,
    /// Dropped on send.
    pub tx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Send errors.
    pub tx_errors: u64,
    /// Frame errors; WireGuard counts packets from addresses outside allowed IPs here.
    pub rx_frame_errors: u64,
    /// Missed by the card for want of room (`rx_missed_errors`).
    #[serde(default)]
    pub rx_missed_errors: u64,
    /// Overrun of the card's FIFO.
    #[serde(default)]
    pub rx_fifo_errors: u64,
    /// Receive ring overflow, or packets longer than a buffer (`rx_over_errors`).
    #[serde(default)]
    pub rx_over_errors: u64,
    /// Broken checksums of frames.
    #[serde(default)]
    pub rx_crc_errors: u64,
    /// Came in on a link that is an inactive member of a bond or bridge.
    #[serde(default)]
    pub rx_nohandler: u64,
}

/// Counters of one peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeerCounters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

/// Counters of a root queueing discipline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QdiscCounters {
    /// Packets dropped.
    pub drops: u64,
    /// Over-limit events.
    pub overlimits: u64,
    /// Bytes queued now. In a delta: at the later reading.
    pub backlog_bytes: u64,
}

/// CPU time of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessTime {
    /// Name of its program.
    pub program: String,
    /// user + system seconds.
    pub cpu: f64,
}

/// How often the processor slowed down for its heat (`thermal_throttle` of Intel's processors), since boot or
/// between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throttling {
    /// Sum over the cores.
    pub core_events: u64,
    /// Sum over the packages.
    pub package_events: u64,
}

/// The connection tracking table of this network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConntrackTable {
    /// Connections in it now (`net.netfilter.nf_conntrack_count`).
    pub entries: u64,
    /// Room for so many (`net.netfilter.nf_conntrack_max`).
    pub room: u64,
}

impl ConntrackTable {
    /// Share of the room that is taken, 0 to 1 and beyond; `None` without any room.
    pub fn fill(&self) -> Option<f64> {
        (self.room > 0).then(|| self.entries as f64 / self.room as f64)
    }
}

/// What moved between two readings. Same shapes as [`Counters`]; rows without any movement are left out
/// of the maps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountersDelta {
    /// Seconds between the readings.
    pub seconds: f64,
    /// Per core.
    pub cores: Vec<CoreTime>,
    /// By counter name.
    pub protocols: BTreeMap<String, u64>,
    /// Per core.
    pub softnet: Vec<Softnet>,
    /// By interface name.
    pub links: BTreeMap<String, LinkCounters>,
    /// By public key.
    pub peers: BTreeMap<String, PeerCounters>,
    /// By socket inode.
    pub socket_drops: BTreeMap<String, u64>,
    /// By interface name.
    pub qdiscs: BTreeMap<String, QdiscCounters>,
    /// By pid: those that used CPU time in between, the ten busiest.
    pub processes: BTreeMap<String, ProcessTime>,
    /// By interface name; a daemon that was started anew in between is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, DeviceCounters>,
    /// By interface name and statistic.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drivers: BTreeMap<String, BTreeMap<String, u64>>,
    /// By interrupt number, per core.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupts: BTreeMap<String, Vec<u64>>,
    /// By name, per core.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub softirqs: BTreeMap<String, Vec<u64>>,
    /// What was added in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
    /// At the later reading: it is no counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conntrack: Option<ConntrackTable>,
    /// By the tunnel's interface.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotas: BTreeMap<String, Quota>,
    /// Counters that went backwards, vanished or appeared (reset, link recreated, daemon silent): named here as
    /// `section.name`, absent above.
    pub unreliable: Vec<String>,
}
