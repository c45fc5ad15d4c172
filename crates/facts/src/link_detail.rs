//! Queues, rings and interrupts of a link.

use serde::{Deserialize, Serialize};

use crate::Known;

/// What is behind a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkDetail {
    /// The NUMA node of its card; `None` = the firmware names none, or the link is virtual.
    pub numa_node: Known<Option<u32>>,
    /// NAPI polls in kernel threads (`/sys/class/net/NAME/threaded`).
    pub threaded: Known<bool>,
    /// Its receive queues.
    pub receive_queues: Known<Vec<ReceiveQueue>>,
    /// Its transmit queues.
    pub transmit_queues: Known<Vec<TransmitQueue>>,
    /// Ring sizes (`ethtool -g`).
    pub rings: Known<Rings>,
    /// Hardware queues (`ethtool -l`).
    pub channels: Known<Channels>,
    /// How the card spreads flows over its queues (`ethtool -x`, `-n`).
    pub spreading: Known<Spreading>,
    /// Its interrupts; empty for a virtual link.
    pub interrupts: Known<Vec<Interrupt>>,
    /// How many statistics its driver has (`ethtool -S`); those that tell of losses are in
    /// [`Counters::drivers`](crate::Counters::drivers).
    pub driver_statistics: Known<usize>,
}

/// A receive queue as the kernel sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveQueue {
    /// Cores that receive packet steering may hand its packets to; empty = it is off.
    pub rps_cores: Vec<u32>,
    /// Size of its table of receive flow steering; 0 = off.
    pub rps_flows: u64,
}

/// A transmit queue as the kernel sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransmitQueue {
    /// Cores that transmit packet steering ties to it; empty = any.
    pub xps_cores: Vec<u32>,
}

/// Ring sizes in packets; `None` where the driver has no such number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Receive ring now.
    pub receive: Option<u32>,
    /// Longest receive ring.
    pub receive_most: Option<u32>,
    /// Transmit ring now.
    pub transmit: Option<u32>,
    /// Longest transmit ring.
    pub transmit_most: Option<u32>,
}

/// Hardware queues in use and most possible; `None` where the driver has no such number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// For receiving only.
    pub receive: Option<u32>,
    /// Most for receiving only.
    pub receive_most: Option<u32>,
    /// For sending only.
    pub transmit: Option<u32>,
    /// Most for sending only.
    pub transmit_most: Option<u32>,
    /// For both.
    pub combined: Option<u32>,
    /// Most for both.
    pub combined_most: Option<u32>,
}

/// How a card spreads flows over its queues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spreading {
    /// Different queues in its indirection table.
    pub queues: usize,
    /// What is hashed of UDP over IPv4, in the letters of `ethtool -N` (`sd` = addresses only, `sdfn` = ports too).
    pub udp4: Known<String>,
    /// What is hashed of UDP over IPv6.
    pub udp6: Known<String>,
}

/// An interrupt of a card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// What `/proc/interrupts` calls it (`eth0-TxRx-3`).
    pub name: String,
    /// Cores it may go to (`smp_affinity_list`).
    pub allowed: Vec<u32>,
    /// Cores it goes to (`effective_affinity_list`).
    pub effective: Vec<u32>,
    /// NUMA node of its device.
    pub node: Option<u32>,
}
