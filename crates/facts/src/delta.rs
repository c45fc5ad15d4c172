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
mod tests {
    use super::*;

    fn map<T: Clone>(rows: &[(&str, T)]) -> BTreeMap<String, T> {
        rows.iter()
            .map(|(name, row)| ((*name).to_owned(), row.clone()))
            .collect()
    }

    #[test]
    fn only_what_moved_is_shown() {
        let earlier = Counters {
            at: 10.0,
            protocols: map(&[("Ip.FragFails", 5), ("Ip.InReceives", 7)]),
            peers: map(&[(
                "key",
                PeerCounters {
                    rx_bytes: 1,
                    tx_bytes: 1,
                },
            )]),
            ..Counters::default()
        };
        let mut later = earlier.clone();
        later.at = 12.5;
        later.protocols.insert("Ip.FragFails".to_owned(), 8);
        later.protocols.insert("IcmpMsg.InType3".to_owned(), 2);
        let delta = later.delta(&earlier);
        assert!((delta.seconds - 2.5).abs() < 1e-9);
        assert_eq!(
            delta.protocols,
            map(&[("Ip.FragFails", 3), ("IcmpMsg.InType3", 2)])
        );
        assert!(delta.peers.is_empty() && delta.unreliable.is_empty());
    }

    #[test]
    fn drops_of_a_socket_wrap_at_32_bits_and_a_reset_is_no_wrap() {
        let with = |drops| Counters {
            socket_drops: map(&[("7", drops)]),
            ..Counters::default()
        };
        assert_eq!(
            with(4).delta(&with(u64::from(u32::MAX))).socket_drops,
            map(&[("7", 5)])
        );
        let reset = with(0).delta(&with(1000));
        assert!(reset.socket_drops.is_empty());
        assert_eq!(reset.unreliable, ["socket_drops.7"]);
    }

    #[test]
    fn what_vanished_or_went_back_is_named_and_absent() {
        let link = |rx_bytes| LinkCounters {
            rx_bytes,
            ..LinkCounters::default()
        };
        let earlier = Counters {
            links: map(&[("wg0", link(9)), ("gone", link(1))]),
            softnet: vec![Softnet::default()],
            cores: vec![CoreTime {
                user: 2.0,
                ..CoreTime::default()
            }],
            ..Counters::default()
        };
        let later = Counters {
            links: map(&[("wg0", link(3)), ("new", link(1))]),
            cores: vec![CoreTime {
                user: 1.0,
                idle: 1.0,
                ..CoreTime::default()
            }],
            ..Counters::default()
        };
        let delta = later.delta(&earlier);
        assert!(delta.links.is_empty() && delta.softnet.is_empty());
        let mut named = delta.unreliable;
        named.sort();
        assert_eq!(
            named,
            [
                "cores.0.user",
                "links.gone",
                "links.new",
                "links.wg0",
                "softnet"
            ]
        );
        assert_eq!(
            delta.cores,
            [CoreTime {
                idle: 1.0,
                ..CoreTime::default()
            }]
        );
    }

    #[test]
    fn the_ten_busiest_processes_stay() {
        let times = |cpu: &dyn Fn(u32) -> f64| Counters {
            processes: (0..20)
                .map(|pid| {
                    let program = format!("p{pid}");
                    (
                        pid.to_string(),
                        ProcessTime {
                            program,
                            cpu: cpu(pid),
                        },
                    )
                })
                .collect(),
            ..Counters::default()
        };
        let delta = times(&|pid| f64::from(pid) * 2.0).delta(&times(&f64::from));
        assert_eq!(delta.processes.len(), 10);
        assert!((delta.processes["19"].cpu - 19.0).abs() < 1e-9);
        assert!(!delta.processes.contains_key("9"));
    }

    #[test]
    fn a_started_process_counts_in_full_and_an_ended_one_not() {
        let time = |cpu| ProcessTime {
            program: "p".to_owned(),
            cpu,
        };
        let earlier = Counters {
            processes: map(&[("1", time(5.0))]),
            ..Counters::default()
        };
        let later = Counters {
            processes: map(&[("2", time(3.0))]),
            ..Counters::default()
        };
        let delta = later.delta(&earlier);
        assert_eq!(delta.processes, map(&[("2", time(3.0))]));
        assert!(delta.unreliable.is_empty());
    }

    #[test]
    fn the_backlog_of_a_queue_is_the_later_one() {
        let with = |drops, backlog_bytes| Counters {
            qdiscs: map(&[(
                "eth0",
                QdiscCounters {
                    drops,
                    overlimits: 0,
                    backlog_bytes,
                },
            )]),
            ..Counters::default()
        };
        let delta = with(3, 500).delta(&with(1, 900));
        assert_eq!(
            delta.qdiscs["eth0"],
            QdiscCounters {
                drops: 2,
                overlimits: 0,
                backlog_bytes: 500
            }
        );
        assert!(with(1, 500).delta(&with(1, 900)).qdiscs.is_empty());
    }

    #[test]
    fn a_driver_that_was_reset_tells_nothing() {
        let with = |losses: &[(&str, u64)]| Counters {
            drivers: map(&[("eth0", map(losses))]),
            ..Counters::default()
        };
        let delta = with(&[("rx_missed", 9), ("rx_fifo", 1)]).delta(&with(&[("rx_missed", 4)]));
        assert_eq!(
            delta.drivers,
            map(&[("eth0", map(&[("rx_missed", 5), ("rx_fifo", 1)]))])
        );
        for earlier in [&[("rx_missed", 10)][..], &[("rx_missed", 1), ("gone", 1)]] {
            let delta = with(&[("rx_missed", 9)]).delta(&with(earlier));
            assert!(delta.drivers.is_empty());
            assert_eq!(delta.unreliable, ["drivers.eth0"]);
        }
        let silent = with(&[("rx_missed", 9)]).delta(&Counters::default());
        assert_eq!(silent.unreliable, ["drivers.eth0"]);
    }

    #[test]
    fn interrupts_count_per_core_and_a_core_that_came_makes_them_unreliable() {
        let with = |counts: &[u64]| Counters {
            interrupts: map(&[("38", counts.to_vec())]),
            softirqs: map(&[("NET_RX", counts.to_vec())]),
            ..Counters::default()
        };
        let delta = with(&[5, 4]).delta(&with(&[5, u64::from(u32::MAX)]));
        assert_eq!(delta.interrupts, map(&[("38", vec![0, 5])]));
        assert_eq!(delta.softirqs, map(&[("NET_RX", vec![0, 5])]));
        assert!(with(&[5]).delta(&with(&[5])).interrupts.is_empty());
        let appeared = with(&[5, 4]).delta(&Counters::default());
        assert_eq!(appeared.interrupts, map(&[("38", vec![5, 4])]));
        assert_eq!(appeared.unreliable, ["softirqs.NET_RX"]);
        let more = with(&[5, 4]).delta(&with(&[5]));
        assert_eq!(more.unreliable, ["interrupts.38", "softirqs.NET_RX"]);
    }

    #[test]
    fn heat_is_counted_and_the_table_is_the_later_one() {
        let with = |core_events, entries| Counters {
            throttling: Some(Throttling {
                core_events,
                package_events: 0,
            }),
            conntrack: Some(crate::ConntrackTable { entries, room: 100 }),
            ..Counters::default()
        };
        let delta = with(5, 90).delta(&with(2, 95));
        assert_eq!(delta.throttling.map(|events| events.core_events), Some(3));
        assert_eq!(delta.conntrack.and_then(|table| table.fill()), Some(0.9));
        let back = with(2, 90).delta(&with(5, 95));
        assert_eq!(
            (back.throttling, back.unreliable),
            (None, vec!["throttling".to_owned()])
        );
    }
}
