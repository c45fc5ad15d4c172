//! The cards the tunnel's outer packets go through: their interrupts by core, and what their drivers count.

use std::collections::BTreeMap;

use wirespeed_facts::{CountersDelta, Facts, LinkDetail};

use crate::{End, Evidence};

/// A network card on the way of the outer packets.
pub(crate) struct Card<'a> {
    pub(crate) name: &'a str,
    pub(crate) detail: &'a LinkDetail,
}

/// The cards of an end. A link with a kind (`veth`, `vlan`, `bond` …) is none: those below it are.
pub(crate) fn of(evidence: &Evidence, end: End) -> Vec<Card<'_>> {
    let Some(facts) = evidence.facts(end) else {
        return Vec::new();
    };
    let mut cards: Vec<Card<'_>> = Vec::new();
    for name in &facts.outer_links {
        let card = facts
            .link(name)
            .filter(|link| link.kind.is_none() && link.name != "lo")
            .and_then(|link| {
                Some(Card {
                    name: &link.name,
                    detail: link.detail.value()?,
                })
            });
        cards.extend(card.filter(|card| cards.iter().all(|known| known.name != card.name)));
    }
    cards
}

impl Card<'_> {
    /// How often its interrupts came, by core in the order of the cores' times; `None` when none is known to have come.
    pub(crate) fn interrupts_by_core(&self, readings: &[&CountersDelta]) -> Option<Vec<u64>> {
        let mut sums: Vec<u64> = Vec::new();
        for counts in self.each_interrupt(readings).into_values() {
            sums.resize(sums.len().max(counts.len()), 0);
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(count);
            }
        }
        sums.iter().any(|count| *count > 0).then_some(sums)
    }

    /// The same for each of its interrupts that came, by number.
    pub(crate) fn each_interrupt(&self, readings: &[&CountersDelta]) -> BTreeMap<u32, Vec<u64>> {
        let mut sums: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for interrupt in self.detail.interrupts.value().into_iter().flatten() {
            for counts in readings
                .iter()
                .filter_map(|reading| reading.interrupts.get(&interrupt.number.to_string()))
            {
                let sum = sums.entry(interrupt.number).or_default();
                sum.resize(sum.len().max(counts.len()), 0);
                for (sum, count) in sum.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(*count);
                }
            }
        }
        sums
    }
}

/// The number of each core, in the order of the cores' times. Where the machine's nodes do not tell as many, they are
/// counted from 0.
pub(crate) fn core_numbers(facts: &Facts, count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = facts
        .hardware
        .numa_nodes
        .value()
        .into_iter()
        .flatten()
        .flat_map(|node| node.cores.iter().copied())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() == count {
        numbers
    } else {
        (0..count)
            .filter_map(|core| u32::try_from(core).ok())
            .collect()
    }
}

/// Cores as a list like `0-3,8`.
pub(crate) fn list(cores: &[u32]) -> String {
    let mut cores = cores.to_vec();
    cores.sort_unstable();
    cores.dedup();
    cores
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Parts that add up to more than can be counted count as the most.
pub(crate) fn sum(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}
