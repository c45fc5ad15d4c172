//! Interrupts of cards and soft interrupts of cores.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Interrupt, core_list, files};

/// Most interrupts of one card that are looked at.
const MOST: usize = 256;
/// Levels above a card's own device where its interrupts may stand: a virtio device has them at its PCI parent.
const LEVELS: usize = 3;
/// Rows of `/proc/softirqs` that are network work.
const NETWORK: [&str; 2] = ["NET_RX", "NET_TX"];

/// Numbers of a card's interrupts that something listens to; `device` is its directory in `/sys`.
pub(crate) fn of_device(device: &Path) -> Vec<u32> {
    let Ok(device) = fs::canonicalize(device) else {
        return Vec::new();
    };
    for level in device.ancestors().take(LEVELS) {
        let mut numbers: Vec<u32> = fs::read_dir(level.join("msi_irqs"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        if numbers.is_empty() {
            // Without message signalled interrupts there is one line; 0 is none.
            let line: Option<u32> = files::line(level.join("irq"))
                .ok()
                .and_then(|line| line.parse().ok());
            numbers.extend(line.filter(|irq| *irq != 0));
        }
        numbers.sort_unstable();
        numbers.retain(|number| !name(*number).is_empty());
        numbers.truncate(MOST);
        if !numbers.is_empty() {
            return numbers;
        }
    }
    Vec::new()
}

/// Where an interrupt goes.
pub(crate) fn describe(number: u32) -> Interrupt {
    let cores = |name: &str| {
        files::text(format!("/proc/irq/{number}/{name}"))
            .map(|text| core_list::list(&text))
            .unwrap_or_default()
    };
    Interrupt {
        number,
        name: name(number),
        allowed: cores("smp_affinity_list"),
        effective: cores("effective_affinity_list"),
        node: files::line(format!("/proc/irq/{number}/node"))
            .ok()
            .and_then(|node| node.parse().ok()),
    }
}

/// How often each interrupt came, per core of `online`; those that never came are left out.
pub(crate) fn counts(numbers: &[u32], online: &[u32]) -> BTreeMap<String, Vec<u64>> {
    let possible = files::text("/sys/devices/system/cpu/possible")
        .map(|text| core_list::list(&text))
        .unwrap_or_default();
    numbers
        .iter()
        .filter_map(|number| {
            let text = files::text(of_kernel(*number).join("per_cpu_count")).ok()?;
            let counts = in_order(text.trim().split(','), &possible, online)?;
            let came = counts.iter().any(|count| *count > 0);
            came.then(|| (number.to_string(), counts))
        })
        .collect()
}

/// Soft interrupts for the network, per core of `online`.
pub(crate) fn softirqs(online: &[u32]) -> BTreeMap<String, Vec<u64>> {
    files::text("/proc/softirqs")
        .map(|text| parse_softirqs(&text, online))
        .unwrap_or_default()
}

/// A line `CPU0 CPU1 …` of all possible cores, then a name and a count per core a line.
pub(crate) fn parse_softirqs(text: &str, online: &[u32]) -> BTreeMap<String, Vec<u64>> {
    let mut lines = text.lines();
    let possible: Option<Vec<u32>> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(|core| core.strip_prefix("CPU")?.parse().ok())
        .collect();
    let Some(possible) = possible else {
        return BTreeMap::new();
    };
    lines
        .filter_map(|line| {
            let (name, counts) = line.split_once(':')?;
            let name = name.trim();
            let counts = in_order(counts.split_ascii_whitespace(), &possible, online)?;
            NETWORK.contains(&name).then(|| (name.to_owned(), counts))
        })
        .collect()
}

/// Counts of the possible cores as those of the online ones; `None` when some online core has no count.
fn in_order<'a>(
    counts: impl Iterator<Item = &'a str>,
    possible: &[u32],
    online: &[u32],
) -> Option<Vec<u64>> {
    let of_core: BTreeMap<u32, u64> = possible
        .iter()
        .copied()
        .zip(counts)
        .filter_map(|(core, count)| Some((core, count.parse().ok()?)))
        .collect();
    online
        .iter()
        .map(|core| of_core.get(core).copied())
        .collect()
}

fn name(number: u32) -> String {
    files::line(of_kernel(number).join("actions")).unwrap_or_default()
}

fn of_kernel(number: u32) -> PathBuf {
    PathBuf::from(format!("/sys/kernel/irq/{number}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_those_of_the_online_cores() {
        let text = "                    CPU0       CPU1       CPU2       CPU3\n          HI:          0          0          0          0\n      \
            NET_TX:   20859176   20234487          0          0\n      NET_RX:  107969598   93099152          5          0\n";
        let softirqs = parse_softirqs(text, &[0, 2]);
        assert_eq!(softirqs["NET_RX"], [107_969_598, 5]);
        assert_eq!(softirqs.len(), 2);
        assert!(parse_softirqs(text, &[7]).is_empty());
        assert!(parse_softirqs("no cores\nNET_RX: 1\n", &[0]).is_empty());
    }

    #[test]
    fn this_machine_counts() {
        let (online, _) = crate::proc_stat::cores();
        let softirqs = softirqs(&online);
        assert_eq!(softirqs["NET_RX"].len(), online.len());
    }

    #[test]
    fn a_card_of_this_machine_has_interrupts() {
        let card = fs::read_dir("/sys/class/net")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("device"))
            .find(|device| !of_device(device).is_empty());
        let Some(card) = card else {
            crate::skipped::skipped(
                "a_card_of_this_machine_has_interrupts",
                "no link has a card with any",
            );
            return;
        };
        let numbers = of_device(&card);
        let (online, _) = crate::proc_stat::cores();
        for counts in counts(&numbers, &online).values() {
            assert_eq!(counts.len(), online.len());
        }
        let first = describe(numbers[0]);
        assert!(
            !first.name.is_empty() && !first.allowed.is_empty(),
            "{first:?}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "( *CPU[0-9]{1,2}){0,4}\n( *NET_RX:( [0-9]{1,21}){0,5}\n){0,3}.{0,20}") {
            for counts in parse_softirqs(&text, &[0, 1]).values() {
                prop_assert_eq!(counts.len(), 2);
            }
        }
    }
}
