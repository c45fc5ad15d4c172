//! Is what another machine says of itself of a size that a machine can have?
//!
//! A line is bounded, but counters are asked for before and after each load, and what moved between two readings is kept
//! for all of them: a far end that means ill could fill this machine's memory line by line.

use std::collections::BTreeMap;

use wirespeed_facts::{Counters, Facts};
use wirespeed_reach::ReachError;

use crate::MeasureError;

/// Room for the counters of ten thousand peers, or of a thousand interrupts on 128 cores, bytes.
const WEIGHT_AT_MOST: usize = 2 << 20;
/// The name of the agent beside us, which is this program.
const OURS: &str = "here";
/// What a row of counters takes beyond its name, bytes.
const ROW: usize = 128;
/// A process has a short name; only ten of them are kept.
const NAME: usize = 64;

/// A machine's counters, unless it is another one that tells of more than a machine has.
pub(crate) fn counters(machine: &str, told: Counters) -> Result<Counters, MeasureError> {
    if machine == OURS || weight(&told) <= WEIGHT_AT_MOST {
        return Ok(told);
    }
    Err(MeasureError::Reach(ReachError::Rubbish {
        machine: machine.to_owned(),
        detail: "it tells of more counters than any machine has; look at what answers there in place of wirespeed"
            .to_owned(),
    }))
}

/// The same of the counters in a snapshot.
pub(crate) fn facts(machine: &str, mut told: Facts) -> Result<Facts, MeasureError> {
    told.counters = counters(machine, std::mem::take(&mut told.counters))?;
    Ok(told)
}

/// About the bytes that counters take in memory.
fn weight(counters: &Counters) -> usize {
    let per_core = |row: &Vec<u64>| 8 * row.len();
    let names = |row: &BTreeMap<String, u64>| rows(row, |_| 0);
    [
        names(&counters.protocols),
        rows(&counters.links, |_| 0),
        rows(&counters.peers, |_| 0),
        names(&counters.socket_drops),
        rows(&counters.qdiscs, |_| 0),
        rows(&counters.devices, |device| {
            names(&device.drops) + rows(&device.workers, |_| 0)
        }),
        rows(&counters.drivers, names),
        rows(&counters.interrupts, per_core),
        rows(&counters.softirqs, per_core),
        rows(&counters.quotas, |quota| quota.group.len()),
        ROW * (counters.cores.len() + counters.softnet.len()),
        counters
            .processes
            .iter()
            .map(|(pid, process)| (pid.len() + process.program.len()).saturating_sub(NAME))
            .sum(),
    ]
    .iter()
    .sum()
}

fn rows<T>(rows: &BTreeMap<String, T>, more: impl Fn(&T) -> usize) -> usize {
    rows.iter()
        .map(|(name, row)| ROW + name.len() + more(row))
        .sum()
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{CoreTime, LinkCounters, PeerCounters, ProcessTime};

    use super::*;

    fn named<T: Clone>(count: u32, row: T) -> BTreeMap<String, T> {
        (0..count)
            .map(|number| (format!("{number:043}="), row.clone()))
            .collect()
    }

    #[test]
    fn the_biggest_machines_are_believed() {
        let big = Counters {
            cores: vec![CoreTime::default(); 512],
            protocols: named(500, 1),
            links: named(1000, LinkCounters::default()),
            peers: named(5000, PeerCounters::default()),
            interrupts: named(128, vec![1; 512]),
            processes: named(
                100_000,
                ProcessTime {
                    program: "fifteen letters".to_owned(),
                    cpu: 1.0,
                },
            ),
            ..Counters::default()
        };
        assert!(counters("hub", big).is_ok());
    }

    #[test]
    fn more_than_any_machine_has_is_rubbish_from_another() {
        let process = |program: String| ProcessTime { program, cpu: 1.0 };
        for told in [
            Counters {
                protocols: named(100_000, 1),
                ..Counters::default()
            },
            Counters {
                interrupts: named(1, vec![0; 1 << 20]),
                ..Counters::default()
            },
            Counters {
                drivers: named(1, named(100_000, 1)),
                ..Counters::default()
            },
            Counters {
                processes: named(1, process("x".repeat(10 << 20))),
                ..Counters::default()
            },
        ] {
            assert!(counters("here", told.clone()).is_ok());
            let error = counters("ssh://far", told).unwrap_err().to_string();
            assert!(error.starts_with("ssh://far: it tells of more"), "{error}");
        }
    }
}
