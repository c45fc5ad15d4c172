//! What the machine is made of, as far as it matters for packets.

use serde::{Deserialize, Serialize};

use crate::Known;

/// What the machine is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// The hypervisor the machine runs under (`kvm`, `vmware`, `xen`, `amazon`, … or `unnamed`); `None` = none can be
    /// seen.
    pub hypervisor: Known<Option<String>>,
    /// Maker and product as the firmware names them (`Amazon EC2 c6i.large`).
    pub product: Known<String>,
    /// The NUMA nodes that have cores. One node is no NUMA.
    pub numa_nodes: Known<Vec<NumaNode>>,
    /// Frequencies of the cores at the moment of the snapshot.
    pub frequencies: Known<Frequencies>,
    /// Does `irqbalance` run?
    pub irqbalance: Known<bool>,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its cores by number.
    pub cores: Vec<u32>,
}

/// Frequencies of the cores in Hz.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequencies {
    /// Now, per online core.
    pub current: Vec<u64>,
    /// The fastest core's highest frequency that the hardware allows (`cpuinfo_max_freq`), boost included.
    pub maximum: Option<u64>,
    /// The highest that the administrator or the firmware allows now (`scaling_max_freq`).
    pub allowed: Option<u64>,
}
