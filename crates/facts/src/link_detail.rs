//! Queues, rings and interrupts of a link.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::driver_statistics::DriverStatistics;
use crate::links::RawLink;
use crate::offloads::Ethtool;
use crate::{Known, core_list, drivers, files, interrupts};

/// What is behind a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiveQueue {
    /// Cores that receive packet steering may hand its packets to; empty = it is off.
    pub rps_cores: Vec<u32>,
    /// Size of its table of receive flow steering; 0 = off.
    pub rps_flows: u64,
}

/// A transmit queue as the kernel sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransmitQueue {
    /// Cores that transmit packet steering ties to it; empty = any.
    pub xps_cores: Vec<u32>,
}

/// Ring sizes in packets; `None` where the driver has no such number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Most queues that are looked at.
const MOST_QUEUES: usize = 256;

/// Looks behind a link. `statistics` is what its driver counts, where it was asked.
pub(crate) fn read(
    link: &RawLink,
    ethtool: &mut Result<Ethtool, String>,
    statistics: Option<&Result<DriverStatistics, String>>,
) -> LinkDetail {
    let mut detail = match drivers::directory(link) {
        Some(directory) => from_sys(&directory),
        None => LinkDetail {
            numa_node: Known::because(drivers::NOT_SHOWN),
            threaded: Known::because(drivers::NOT_SHOWN),
            receive_queues: Known::because(drivers::NOT_SHOWN),
            transmit_queues: Known::because(drivers::NOT_SHOWN),
            interrupts: Known::because(drivers::NOT_SHOWN),
            ..LinkDetail::default()
        },
    };
    match ethtool {
        Ok(ethtool) => {
            detail.rings = ethtool.rings(link.index).into();
            detail.channels = ethtool.channels(link.index).into();
            detail.spreading = ethtool.spreading(link.index, &link.name).into();
        }
        Err(reason) => {
            detail.rings = Known::because(reason.clone());
            detail.channels = Known::because(reason.clone());
            detail.spreading = Known::because(reason.clone());
        }
    }
    detail.driver_statistics = match statistics {
        Some(Ok(statistics)) => Known::Value(statistics.all),
        Some(Err(reason)) => Known::because(reason.clone()),
        None => Known::because("it has no card of its own"),
    };
    detail
}

fn from_sys(directory: &Path) -> LinkDetail {
    let device = directory.join("device");
    LinkDetail {
        numa_node: Known::Value(numa_node(&device)),
        threaded: files::line(directory.join("threaded"))
            .map(|threaded| threaded != "0")
            .into(),
        receive_queues: queues(directory, "rx-").map(|queues| {
            let read = |queue: PathBuf| ReceiveQueue {
                rps_cores: cores(&queue.join("rps_cpus")),
                rps_flows: files::line(queue.join("rps_flow_cnt"))
                    .ok()
                    .and_then(|flows| flows.parse().ok())
                    .unwrap_or(0),
            };
            queues.into_iter().map(read).collect()
        }),
        transmit_queues: queues(directory, "tx-").map(|queues| {
            let read = |queue: PathBuf| TransmitQueue {
                xps_cores: cores(&queue.join("xps_cpus")),
            };
            queues.into_iter().map(read).collect()
        }),
        interrupts: Known::Value(
            interrupts::of_device(&device)
                .into_iter()
                .map(interrupts::describe)
                .collect(),
        ),
        ..LinkDetail::default()
    }
}

/// A virtio device has none of its own: its PCI parent has. -1 is none.
fn numa_node(device: &Path) -> Option<u32> {
    let device = fs::canonicalize(device).ok()?;
    device
        .ancestors()
        .take(2)
        .find_map(|level| files::line(level.join("numa_node")).ok())
        .and_then(|node| node.parse().ok())
}

/// Directories of the queues with this prefix, by their number.
fn queues(directory: &Path, prefix: &str) -> Known<Vec<PathBuf>> {
    let directory = directory.join("queues");
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) => {
            return Known::because(format!("could not read {}: {error}", directory.display()));
        }
    };
    let mut queues: Vec<(usize, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    queues.sort_unstable();
    queues.truncate(MOST_QUEUES);
    Known::Value(queues.into_iter().map(|(_, queue)| queue).collect())
}

fn cores(mask: &Path) -> Vec<u32> {
    files::text(mask)
        .map(|mask| core_list::mask(&mask))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_a_queue_and_no_card() {
        let mut netlink = crate::links::open().unwrap();
        let links = crate::links::links(&mut netlink).unwrap();
        let loopback = links.iter().find(|link| link.name == "lo").unwrap();
        let mut ethtool = Ethtool::open().map_err(|error| error.to_string());
        let detail = read(loopback, &mut ethtool, None);
        assert_eq!(detail.receive_queues.value().map(Vec::len), Some(1));
        assert_eq!(detail.numa_node, Known::Value(None));
        assert_eq!(detail.interrupts, Known::Value(Vec::new()));
        assert_eq!(detail.driver_statistics.value(), None);
        let Known::Unknown(reason) = &detail.rings else {
            panic!("{detail:?}");
        };
        assert!(reason.contains("its ring sizes"), "{reason}");
    }
}
