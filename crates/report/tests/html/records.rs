//! Records to make pages of: those that were recorded, and what can be made of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use wirespeed_doctor::{Evidence, Goal, judge, judge_hops};
use wirespeed_facts::{CountersDelta, Known};
use wirespeed_measure::{
    Comparison, Direction, Interval, PassiveWatch, RateSweep, Sample, SweepStep, Via, Watched,
};
use wirespeed_report::{DoctorRecord, HopsRecord, TestRecord, TuneRecord};
use wirespeed_tune::PutBack;

use json_files::json_files;

#[path = "../support/json_files.rs"]
pub(crate) mod json_files;

fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a command once wrote.
pub(crate) fn recorded<T: DeserializeOwned>(name: &str) -> T {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    read(&folder.join(format!("{name}.json")))
}

/// Every case of the doctor.
pub(crate) fn cases() -> Vec<PathBuf> {
    json_files("../doctor/tests/cases")
}

/// A case of the doctor, judged in the language of the moment.
pub(crate) fn judged(path: &Path) -> DoctorRecord {
    let mut evidence: Evidence = read(path);
    evidence.comparisons.iter_mut().for_each(with_intervals);
    DoctorRecord::new(&evidence, &judge(&evidence))
}

pub(crate) fn case(name: &str) -> DoctorRecord {
    judged(&path_of(name))
}

/// Without the intervals that [`case`] adds.
pub(crate) fn case_as_recorded(name: &str) -> DoctorRecord {
    let evidence: Evidence = read(&path_of(name));
    DoctorRecord::new(&evidence, &judge(&evidence))
}

fn path_of(case: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/tests/cases");
    folder.join(format!("{case}.json"))
}

/// Recorded samples have no intervals, for they are most of a record. Here is what a load of such a rate looks like: a warm-up of
/// a second, then ten seconds around the mean.
pub(crate) fn with_intervals(comparison: &mut Comparison) {
    for (index, sample) in comparison.samples.iter_mut().enumerate() {
        fill(sample, index, 11.0);
    }
}

fn fill(sample: &mut Sample, index: usize, seconds: f64) {
    let rate = sample.rate;
    sample.load.warm_up = 1.0;
    sample.ran = seconds - 1.0;
    sample.intervals = (0..(seconds * 10.0) as usize)
        .map(|tenth| {
            let at = tenth as f64 * 0.1;
            // A saw, as a loss-based congestion control has, of a period of its own in each run.
            let saw = ((at + index as f64 * 0.7) % 3.1) / 3.1;
            let slow_start = if at < 1.0 { at } else { 1.0 };
            let resent = saw < 0.03 && sample.load.via == Via::Tunnel;
            Interval {
                start: at,
                seconds: 0.1,
                rate: rate * slow_start * (0.93 + 0.14 * saw),
                retransmits: Some(if resent { 3 + index as u64 % 5 } else { 0 }),
                congestion_window: Some((rate * 0.004 * slow_start * (0.75 + 0.5 * saw)) as u64),
                rtt: None,
                warm_up: at < 1.0,
            }
        })
        .collect();
}

/// A test as it is without `--quick`.
pub(crate) fn a_test() -> TestRecord {
    let mut record: TestRecord = recorded("test-healthy");
    record.comparisons.iter_mut().for_each(with_intervals);
    let mut many = record.comparisons.clone();
    for one in &mut many {
        one.streams = 10;
    }
    record.comparisons.extend(many);
    record
}

/// A test of an hour: pairs of ten seconds, each with all its intervals.
pub(crate) fn an_hour() -> TestRecord {
    let mut record: TestRecord = recorded("test-healthy");
    for comparison in &mut record.comparisons {
        comparison.samples = comparison
            .samples
            .iter()
            .cycle()
            .take(160)
            .cloned()
            .collect();
        comparison.pairs = comparison.pairs.iter().cycle().take(80).copied().collect();
        with_intervals(comparison);
    }
    record
}

/// One load of an hour in each direction.
pub(crate) fn a_long_load() -> TestRecord {
    let mut record: TestRecord = recorded("test-healthy");
    for comparison in &mut record.comparisons {
        for (index, sample) in comparison.samples.iter_mut().enumerate() {
            fill(sample, index, 3600.0);
        }
    }
    record
}

pub(crate) fn a_tune() -> TuneRecord {
    let mut record: TuneRecord = recorded("tune-black-hole");
    let test: TestRecord = recorded("test-healthy");
    let mut loads = test.comparisons[0].clone();
    with_intervals(&mut loads);
    let samples: Vec<Sample> = loads.samples.iter().cycle().take(8).cloned().collect();
    let mut second = record.outcome.experiments[0].clone();
    "bufferbloat".clone_into(&mut second.code);
    "s".clone_into(&mut second.unit);
    second.goal = Goal::LoadedRtt;
    second.kept = false;
    (second.gain, second.gain_low, second.gain_high) = (0.0012, -0.0025, 0.0044);
    (second.measured_before, second.measured_after) = (0.0337, 0.0325);
    for experiment in [&mut record.outcome.experiments[0], &mut second] {
        experiment.samples.clone_from(&samples);
    }
    record.outcome.experiments.push(second);
    for stage in &mut record.outcome.stages {
        (stage.idle_rtt, stage.loaded_rtt) = (Some(0.0204), Some(0.0337));
    }
    record
}

/// A tune of many experiments, each with both directions' loads and all their intervals.
pub(crate) fn a_long_tune() -> TuneRecord {
    let mut record = a_tune();
    let mut test: TestRecord = recorded("test-healthy");
    test.comparisons.iter_mut().for_each(with_intervals);
    let loads = |index: usize| test.comparisons[index].samples.iter().cycle().take(10);
    for experiment in &mut record.outcome.experiments {
        experiment.samples = loads(0).chain(loads(1)).cloned().collect();
    }
    let two = record.outcome.experiments.clone();
    record.outcome.experiments = two.into_iter().cycle().take(40).collect();
    record
}

/// The doctor found nothing that could be tried.
pub(crate) fn a_tune_of_nothing() -> TuneRecord {
    let mut record: TuneRecord = recorded("tune-black-hole");
    record.outcome.experiments.clear();
    record.outcome.stages.truncate(1);
    record.outcome.kept.clear();
    record.outcome.confirm_within = None;
    record
}

/// What could not be put back of what an earlier tune had left.
pub(crate) fn recovered() -> (String, PutBack) {
    let put_back = serde_json::from_value(serde_json::json!({
        "setting": {"knob": "link-mtu", "interface": "wg0"}, "before": 1420,
        "result": {"result": "failed", "why": "the kernel said no"},
    }));
    ("here".to_owned(), put_back.expect("what was put back"))
}

/// A collapse above some rate, with its sweep.
pub(crate) fn a_sweep() -> DoctorRecord {
    let mut record: DoctorRecord = case("bufferbloat");
    let step = |cap: Option<f64>, goodput: f64, stable| SweepStep {
        cap,
        goodput,
        variation: 0.05,
        retransmits: Some(3.0),
        loaded_rtt: Some(0.05),
        stable,
    };
    record.measurements.sweeps = vec![RateSweep {
        direction: Direction::Upload,
        capped_by: "TCP pacing".to_owned(),
        steps: vec![
            step(None, 41e6, false),
            step(Some(100e6), 38e6, false),
            step(Some(50e6), 47e6, true),
            step(Some(75e6), 72e6, true),
            step(Some(87e6), 60e6, false),
        ],
        stable_cap: Some(75e6),
    }];
    record
}

/// Two tunnels in a row, of which the second loses half of its road.
pub(crate) fn hops() -> HopsRecord {
    let report = judge_hops(recorded("chain-second-hop-slow"));
    HopsRecord::new(report, Some(case("icmp-black-hole")))
}

/// A minute of what flowed by itself, second by second.
pub(crate) fn watched() -> DoctorRecord {
    let mut evidence: Evidence = read(&path_of("socket-overflow"));
    let loads: Vec<Sample> = std::mem::take(&mut evidence.comparisons)
        .into_iter()
        .flat_map(|one| one.samples)
        .collect();
    let watched = |of: fn(&Sample) -> Option<&CountersDelta>| {
        let slices: Vec<CountersDelta> = loads
            .iter()
            .filter_map(of)
            .cycle()
            .take(60)
            .cloned()
            .collect();
        let mut counters = slices[0].clone();
        for (name, link) in slices[1..].iter().flat_map(|slice| &slice.links) {
            let sum = counters.links.entry(name.clone()).or_default();
            sum.rx_bytes += link.rx_bytes;
            sum.tx_bytes += link.tx_bytes;
        }
        Watched {
            seconds: slices.iter().map(|slice| slice.seconds).sum(),
            counters,
            slices,
            connections: Known::Unknown("left out of the recording".to_owned()),
            open: Some(3),
            peers: BTreeMap::new(),
        }
    };
    let unknown = || Known::Unknown("was not measured".to_owned());
    let evidence = Evidence {
        idle_return: Known::Unknown("was not measured".to_owned()),
        idle_rtt_bare: unknown(),
        idle_rtt_tunnel: unknown(),
        path_mtu: Vec::new(),
        tunnel_sweep: Vec::new(),
        congestion_trials: Vec::new(),
        soaks: Vec::new(),
        sequences: Vec::new(),
        segmentation: Vec::new(),
        sweeps: Vec::new(),
        passive: Some(PassiveWatch {
            here: watched(|sample| Some(&sample.here)),
            far: Some(watched(|sample| sample.far.as_ref())),
        }),
        ..evidence
    };
    DoctorRecord::new(&evidence, &judge(&evidence))
}
