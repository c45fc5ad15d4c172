//! What moved between two readings of the counters.

use std::collections::BTreeMap;

use crate::{
    CoreTime, Counters, CountersDelta, LinkCounters, PeerCounters, ProcessTime, QdiscCounters,
    Softnet,
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
        let seconds = (self.at - earlier.at).max(0.0);
        if self.at < earlier.at {
            unreliable.push("at".to_owned());
        }
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
            unreliable: Vec::new(),
        };
        CountersDelta {
            unreliable,
            ..delta
        }
    }
}

fn since(later: u64, earlier: u64) -> Option<u64> {
    later.checked_sub(earlier)
}

/// A counter of 32 bits that went back by more than half its range has wrapped; by less, it was reset.
fn since_32_bits(later: u64, earlier: u64) -> Option<u64> {
    const RANGE: u64 = 1 << 32;
    since(later, earlier).or_else(|| {
        let wrapped = (later + RANGE).checked_sub(earlier)?;
        (earlier < RANGE && wrapped < RANGE / 2).then_some(wrapped)
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
    })
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
            let moved = later - earlier;
            if moved >= 0.0 {
                return moved;
            }
            unreliable.push(format!("cores.{number}.{name}"));
            0.0
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
                now.cpu - before
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
