//! Watching without a load: what moved on a machine, slice by slice, and what the tunnel's own connections did.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirespeed_facts::{ConnectionsWanted, CountersDelta, Known, Scope};

use crate::Watched;
use crate::unanswered::Unanswered;

/// Slices of a second, or as many as this: more of a machine with many cores do not fit into an answer.
pub(crate) const SLICES_AT_MOST: f64 = 60.0;
/// Counts by interrupt and core in all slices together, each of two letters at least: most of them are 0.
const COUNTS_AT_MOST: usize = 4 << 20;
/// Longest watch.
pub const LONGEST_WATCH: Duration = Duration::from_secs(3_600);
/// How often a wait looks up.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What to watch, and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PassivePlan {
    pub(crate) scope: Scope,
    pub(crate) connections: ConnectionsWanted,
    pub(crate) seconds: f64,
}

/// Watches until the time is over, or `keep_going` says no: then what was seen until then is told.
pub(crate) fn run(plan: &PassivePlan, keep_going: &dyn Fn() -> bool) -> Result<Watched, String> {
    let longest = LONGEST_WATCH.as_secs_f64();
    if !(plan.seconds > 0.0 && plan.seconds <= longest) {
        return Err(format!("a watch lasts up to {longest} s"));
    }
    let begun = Instant::now();
    let first_connections = wirespeed_facts::connections(&plan.connections);
    let first = wirespeed_facts::counters(&plan.scope);
    let slices = slices(plan.seconds, &first.interrupts);
    let mut before = first.clone();
    let mut told = Vec::new();
    let mut unanswered = Unanswered::default();
    for slice in 1..=slices {
        let share = f64::from(slice) / f64::from(slices);
        let until = begun + Duration::from_secs_f64(plan.seconds * share);
        let in_full = wait(until, keep_going);
        let now = wirespeed_facts::counters(&plan.scope);
        let moved = now.delta(&before);
        unanswered.add(&moved, now.at);
        told.push(slice_of(moved));
        before = now;
        if !in_full {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let connections = wirespeed_facts::connections(&plan.connections);
    let open = connections
        .value()
        .map(|now| (now.wanted.len() + now.left_out) as u64);
    let progress = match (first_connections, connections) {
        (Known::Value(first), Known::Value(now)) => Known::Value(now.since(&first)),
        (Known::Unknown(why), _) | (_, Known::Unknown(why)) => Known::Unknown(why),
    };
    Ok(Watched {
        seconds,
        counters: before.delta(&first),
        slices: told,
        connections: progress,
        open,
        peers: unanswered.by_peer(&wirespeed_facts::handshakes(&plan.scope), before.at),
    })
}

/// How many slices of such a machine fit into an answer.
fn slices(seconds: f64, interrupts: &BTreeMap<String, Vec<u64>>) -> u32 {
    let counts: usize = interrupts.values().map(Vec::len).sum();
    let room = (COUNTS_AT_MOST / counts.max(1)).max(1);
    seconds.round().clamp(1.0, SLICES_AT_MOST.min(room as f64)) as u32
}

/// What is told of a slice. By peer, program and daemon the sum over all is enough: of a hub with a thousand peers they
/// would not fit into an answer, slice by slice.
fn slice_of(moved: CountersDelta) -> CountersDelta {
    CountersDelta {
        peers: BTreeMap::new(),
        processes: BTreeMap::new(),
        devices: BTreeMap::new(),
        ..moved
    }
}

/// `false` = it was cut short.
fn wait(until: Instant, keep_going: &dyn Fn() -> bool) -> bool {
    while keep_going() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_UP));
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use wirespeed_facts::{CoreTime, LinkCounters, PeerCounters, Softnet};

    use super::*;
    use crate::PeerWatched;

    fn plan(seconds: f64) -> PassivePlan {
        PassivePlan {
            scope: Scope::default(),
            connections: ConnectionsWanted::default(),
            seconds,
        }
    }

    #[test]
    fn a_watch_lasts_as_long_as_asked() {
        let watched = run(&plan(0.3), &|| true).unwrap();
        assert!((0.3..2.0).contains(&watched.seconds), "{}", watched.seconds);
        assert_eq!(watched.slices.len(), 1);
        let watched = run(&plan(2.0), &|| true).unwrap();
        assert_eq!(watched.slices.len(), 2);
        assert!(watched.connections.value().is_some_and(Vec::is_empty));
    }

    /// So many interrupts, each of which comes at a core of its own.
    pub(crate) fn each_at_one_core(cores: usize, interrupts: usize) -> Vec<Vec<u64>> {
        let row = |number: usize| {
            let mut row = vec![0; cores];
            row[number % cores] = 100_000;
            row
        };
        (0..interrupts).map(row).collect()
    }

    /// The longest watch of a machine with these interrupts and a thousand busy peers, every other figure as long as it
    /// may be.
    pub(crate) fn watch_of_a_hub(interrupts: Vec<Vec<u64>>) -> Watched {
        let many = 1 << 40;
        let cores = interrupts.first().map_or(0, Vec::len);
        let core = CoreTime {
            user: 0.12,
            system: 0.34,
            irq: 0.01,
            softirq: 0.56,
            steal: 0.01,
            idle: 0.78,
        };
        let softnet = Softnet {
            processed: many,
            dropped: many,
            time_squeeze: many,
        };
        let link = LinkCounters {
            rx_bytes: many,
            tx_bytes: many,
            rx_packets: many,
            tx_packets: many,
            ..LinkCounters::default()
        };
        let peer = PeerCounters {
            rx_bytes: many,
            tx_bytes: many,
        };
        let key = |number: u32| format!("{number:043}=");
        let moved = CountersDelta {
            seconds: 1.0,
            cores: vec![core; cores],
            softnet: vec![softnet; cores],
            peers: (0..1000).map(|number| (key(number), peer)).collect(),
            links: (0..128)
                .map(|number| (format!("enp{number}"), link))
                .collect(),
            protocols: (0..200)
                .map(|number| (format!("TcpExt.Something{number}"), many))
                .collect(),
            interrupts: interrupts
                .into_iter()
                .enumerate()
                .map(|(number, row)| (number.to_string(), row))
                .collect(),
            ..CountersDelta::default()
        };
        let longest = LONGEST_WATCH.as_secs_f64();
        let slices = slices(longest, &moved.interrupts);
        Watched {
            seconds: longest,
            slices: vec![slice_of(moved.clone()); slices as usize],
            peers: moved
                .peers
                .keys()
                .map(|key| (key.clone(), PeerWatched::default()))
                .collect(),
            counters: moved,
            connections: Known::Value(Vec::new()),
            open: Some(0),
        }
    }

    #[test]
    fn the_watch_of_a_big_hub_fits_into_a_line() {
        for (interrupts, slices) in [
            (vec![vec![100_000; 128]; 128], 60),
            (each_at_one_core(384, 2 * 128), 42),
        ] {
            let watched = watch_of_a_hub(interrupts);
            assert_eq!(watched.slices.len(), slices);
            let bytes = serde_json::to_vec(&watched).unwrap().len();
            // 256 connections take some 300 kB.
            assert!(bytes < (15 << 20), "{bytes}");
        }
    }

    #[test]
    fn a_watch_that_is_cut_short_tells_what_it_saw() {
        let begun = Instant::now();
        let watched = run(&plan(60.0), &|| {
            begun.elapsed() < Duration::from_millis(200)
        })
        .unwrap();
        assert!(watched.seconds < 3.0 && watched.slices.len() == 1);
        for seconds in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(run(&plan(seconds), &|| true).is_err());
        }
    }
}
