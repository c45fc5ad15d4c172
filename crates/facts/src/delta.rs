//! What moved between two readings of the counters.

use std::collections::BTreeMap;

use crate::{
    CoreTime, Counters, CountersDelta, DeviceCounters, LinkCounters, PeerCounters, ProcessTime,
    QdiscCounters, Quota, Softnet, Throttling,
};

/// Processes that a delta names.
const BUSIEST: usize = 10;

impl Counters {
    /// What moved since `earlier`.
    ///
    /// Counters of the kernel that are 32 bits wide may wrap once. Whatever else went backwards, vanished or
    /// appeared in between is absent and named in [`CountersDelta::unreliable`]; except that a process which
    /// started in between counts in full and one which ended is left out, and a protocol counter that appeared
    /// (the kernel hides some at zero) counts in full.
    pub fn delta(&self, earlier: &Self) -> CountersDelta {
        let mut unreliable = Vec::new();
        let seconds = between(self.at, earlier.at).unwrap_or_else(|| {
            unreliable.push("at".to_owned());
            0.0
        });
        let delta = CountersDelta {
            seconds,
            cores: cores(&self.cores, &earlier.cores, &mut unreliable),
            protocols: protocols(&self.protocols, &earlier.protocols, &mut unreliable),
            softnet: softnet(&self.softnet, &earlier.softnet, &mut unreliable),
            links: rows("links", &self.links, &earlier.links, link, &mut unreliable),
            peers: rows("peers", &self.peers, &earlier.peers, peer, &mut unreliable),
            socket_drops: rows(
                "socket_drops",
                &self.socket_drops,
                &earlier.socket_drops,
                |later, earlier| since_32_bits(*later, *earlier),
                &mut unreliable,
            ),
            qdiscs: rows(
                "qdiscs",
                &self.qdiscs,
                &earlier.qdiscs,
                qdisc,
                &mut unreliable,
            ),
            processes: processes(&self.processes, &earlier.processes),
            devices: rows(
                "devices",
                &self.devices,
                &earlier.devices,
                DeviceCounters::since,
                &mut unreliable,
            ),
            drivers: rows(
                "drivers",
                &self.drivers,
                &earlier.drivers,
                |later, earlier| appearing(later, earlier, since),
                &mut unreliable,
            ),
            interrupts: interrupts(&self.interrupts, &earlier.interrupts, &mut unreliable),
            softirqs: rows(
                "softirqs",
                &self.softirqs,
                &earlier.softirqs,
                |later, earlier| per_core(later, earlier),
                &mut unreliable,
            ),
            throttling: throttling(self.throttling, earlier.throttling, &mut unreliable),
            conntrack: self.conntrack,
            quotas: quotas(&self.quotas, &earlier.quotas, &mut unreliable),
            unreliable: Vec::new(),
        };
        CountersDelta {
            unreliable,
            ..delta
        }
    }
}

/// Seconds from `earlier` to `later`. What another machine tells may be too far apart for any number.
fn between(later: f64, earlier: f64) -> Option<f64> {
    Some(later - earlier).filter(|moved| *moved >= 0.0 && moved.is_finite())
}

fn since(later: u64, earlier: u64) -> Option<u64> {
    later.checked_sub(earlier)
}

/// A counter of 32 bits that seems to have moved less than half its range across its end has wrapped; else it was
/// reset.
fn since_32_bits(later: u64, earlier: u64) -> Option<u64> {
    since(later, earlier).or_else(|| {
        let wrapped = u32::try_from(later)
            .ok()?
            .wrapping_sub(u32::try_from(earlier).ok()?);
        (wrapped <= u32::MAX / 2).then_some(wrapped.into())
    })
}

/// Rows of both readings by name; rows that did not move are left out.
fn rows<T: Default + PartialEq>(
    section: &str,
    later: &BTreeMap<String, T>,
    earlier: &BTreeMap<String, T>,
    moved: impl Fn(&T, &T) -> Option<T>,
    unreliable: &mut Vec<String>,
) -> BTreeMap<String, T> {
    let missing = earlier.keys().filter(|name| !later.contains_key(*name));
    unreliable.extend(missing.map(|name| format!("{section}.{name}")));
    let mut delta = BTreeMap::new();
    for (name, row) in later {
        match earlier.get(name).and_then(|before| moved(row, before)) {
            Some(row) if row == T::default() => {}
            Some(row) => {
                delta.insert(name.clone(), row);
            }
            None => unreliable.push(format!("{section}.{name}")),
        }
    }
    delta
}

fn protocols(
    later: &BTreeMap<String, u64>,
    earlier: &BTreeMap<String, u64>,
    unreliable: &mut Vec<String>,
) -> BTreeMap<String, u64> {
    let mut from_zero = earlier.clone();
    for name in later.keys() {
        from_zero.entry(name.clone()).or_default();
    }
    rows(
        "protocols",
        later,
        &from_zero,
        |later, earlier| since(*later, *earlier),
        unreliable,
    )
}

fn link(later: &LinkCounters, earlier: &LinkCounters) -> Option<LinkCounters> {
    Some(LinkCounters {
        rx_bytes: since(later.rx_bytes, earlier.rx_bytes)?,
        tx_bytes: since(later.tx_bytes, earlier.tx_bytes)?,
        rx_packets: since(later.rx_packets, earlier.rx_packets)?,
        tx_packets: since(later.tx_packets, earlier.tx_packets)?,
        rx_dropped: since(later.rx_dropped, earlier.rx_dropped)?,
        tx_dropped: since(later.tx_dropped, earlier.tx_dropped)?,
        rx_errors: since(later.rx_errors, earlier.rx_errors)?,
        tx_errors: since(later.tx_errors, earlier.tx_errors)?,
        rx_frame_errors: since(later.rx_frame_errors, earlier.rx_frame_errors)?,
        rx_missed_errors: since(later.rx_missed_errors, earlier.rx_missed_errors)?,
        rx_fifo_errors: since(later.rx_fifo_errors, earlier.rx_fifo_errors)?,
        rx_over_errors: since(later.rx_over_errors, earlier.rx_over_errors)?,
        rx_crc_errors: since(later.rx_crc_errors, earlier.rx_crc_errors)?,
        rx_nohandler: since(later.rx_nohandler, earlier.rx_nohandler)?,
    })
}

/// Statistics of a driver: those that are zero are hidden, so one that appears counts in full. `None` when one went
/// backwards or vanished: the driver was reset.
fn appearing(
    later: &BTreeMap<String, u64>,
    earlier: &BTreeMap<String, u64>,
    moved: impl Fn(u64, u64) -> Option<u64>,
) -> Option<BTreeMap<String, u64>> {
    if earlier.keys().any(|name| !later.contains_key(name)) {
        return None;
    }
    let mut delta = BTreeMap::new();
    for (name, count) in later {
        let moved = moved(*count, earlier.get(name).copied().unwrap_or(0))?;
        if moved > 0 {
            delta.insert(name.clone(), moved);
        }
    }
    Some(delta)
}

/// Counts per core, 32 bits wide in the kernel; nothing at all when none moved. `None` when cores came or went.
fn per_core(later: &[u64], earlier: &[u64]) -> Option<Vec<u64>> {
    if later.len() != earlier.len() {
        return None;
    }
    let moved: Option<Vec<u64>> = later
        .iter()
        .zip(earlier)
        .map(|(later, earlier)| since_32_bits(*later, *earlier))
        .collect();
    moved.map(|moved| {
        if moved.iter().all(|count| *count == 0) {
            Vec::new()
        } else {
            moved
        }
    })
}

/// An interrupt that never came is hidden: one that appears counts in full.
fn interrupts(
    later: &BTreeMap<String, Vec<u64>>,
    earlier: &BTreeMap<String, Vec<u64>>,
    unreliable: &mut Vec<String>,
) -> BTreeMap<String, Vec<u64>> {
    let mut from_zero = earlier.clone();
    for (number, counts) in later {
        from_zero
            .entry(number.clone())
            .or_insert_with(|| vec![0; counts.len()]);
    }
    rows(
        "interrupts",
        later,
        &from_zero,
        |later, earlier| per_core(later, earlier),
        unreliable,
    )
}

fn throttling(
    later: Option<Throttling>,
    earlier: Option<Throttling>,
    unreliable: &mut Vec<String>,
) -> Option<Throttling> {
    let moved = |later: Throttling, earlier: Throttling| {
        Some(Throttling {
            core_events: since(later.core_events, earlier.core_events)?,
            package_events: since(later.package_events, earlier.package_events)?,
        })
    };
    let (later, earlier) = (later?, earlier?);
    let moved = moved(later, earlier);
    if moved.is_none() {
        unreliable.push("throttling".to_owned());
    }
    moved
}

/// The group and its allowance are no counters: a row without any period did not move.
fn quotas(
    later: &BTreeMap<String, Quota>,
    earlier: &BTreeMap<String, Quota>,
    unreliable: &mut Vec<String>,
) -> BTreeMap<String, Quota> {
    let mut moved = rows("quotas", later, earlier, Quota::since, unreliable);
    moved.retain(|_, quota| quota.periods > 0);
    moved
}

fn peer(later: &PeerCounters, earlier: &PeerCounters) -> Option<PeerCounters> {
    Some(PeerCounters {
        rx_bytes: since(later.rx_bytes, earlier.rx_bytes)?,
        tx_bytes: since(later.tx_bytes, earlier.tx_bytes)?,
    })
}

/// The backlog is no counter: it is the later one, shown when the row moved or the backlog grew.
fn qdisc(later: &QdiscCounters, earlier: &QdiscCounters) -> Option<QdiscCounters> {
    let drops = since_32_bits(later.drops, earlier.drops)?;
    let overlimits = since_32_bits(later.overlimits, earlier.overlimits)?;
    let moved = drops > 0 || overlimits > 0 || later.backlog_bytes > earlier.backlog_bytes;
    Some(QdiscCounters {
        drops,
        overlimits,
        backlog_bytes: if moved { later.backlog_bytes } else { 0 },
    })
}

fn cores(later: &[CoreTime], earlier: &[CoreTime], unreliable: &mut Vec<String>) -> Vec<CoreTime> {
    if later.len() != earlier.len() {
        unreliable.push("cores".to_owned());
        return Vec::new();
    }
    let mut delta = Vec::with_capacity(later.len());
    for (number, (later, earlier)) in later.iter().zip(earlier).enumerate() {
        let mut field = |name: &str, later: f64, earlier: f64| {
            between(later, earlier).unwrap_or_else(|| {
                unreliable.push(format!("cores.{number}.{name}"));
                0.0
            })
        };
        delta.push(CoreTime {
            user: field("user", later.user, earlier.user),
            system: field("system", later.system, earlier.system),
            irq: field("irq", later.irq, earlier.irq),
            softirq: field("softirq", later.softirq, earlier.softirq),
            steal: field("steal", later.steal, earlier.steal),
            idle: field("idle", later.idle, earlier.idle),
        });
    }
    delta
}

fn softnet(later: &[Softnet], earlier: &[Softnet], unreliable: &mut Vec<String>) -> Vec<Softnet> {
    let moved = |(later, earlier): (&Softnet, &Softnet)| {
        Some(Softnet {
            processed: since_32_bits(later.processed, earlier.processed)?,
            dropped: since_32_bits(later.dropped, earlier.dropped)?,
            time_squeeze: since_32_bits(later.time_squeeze, earlier.time_squeeze)?,
        })
    };
    let rows = (later.len() == earlier.len())
        .then(|| later.iter().zip(earlier).map(moved).collect())
        .flatten();
    rows.unwrap_or_else(|| {
        unreliable.push("softnet".to_owned());
        Vec::new()
    })
}

fn processes(
    later: &BTreeMap<String, ProcessTime>,
    earlier: &BTreeMap<String, ProcessTime>,
) -> BTreeMap<String, ProcessTime> {
    let mut moved: Vec<(&String, ProcessTime)> = later
        .iter()
        .filter_map(|(pid, now)| {
            // Time that went back means that the pid belongs to a new process now.
            let before = earlier.get(pid).map_or(0.0, |before| before.cpu);
            let cpu = if before <= now.cpu {
                between(now.cpu, before).unwrap_or_default()
            } else {
                now.cpu
            };
            (cpu > 0.0).then(|| {
                let program = now.program.clone();
                (pid, ProcessTime { program, cpu })
            })
        })
        .collect();
    moved.sort_by(|(_, a), (_, b)| b.cpu.total_cmp(&a.cpu));
    moved.truncate(BUSIEST);
    moved
        .into_iter()
        .map(|(pid, time)| (pid.clone(), time))
        .collect()
}

#[cfg(test)]
mod tests;
