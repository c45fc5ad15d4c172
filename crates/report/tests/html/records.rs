//! Records to make pages of: those that were recorded, and what can be made of them.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::json;
use wirespeed_doctor::{Evidence, judge, judge_hops};
use wirespeed_measure::{Comparison, Direction, Interval, RateSweep, Sample, SweepStep, Via};
use wirespeed_report::{DoctorRecord, HopsRecord, TestRecord, TuneRecord};

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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/tests/cases");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of cases")
        .map(|entry| entry.expect("a case").path())
        .filter(|path| path.extension().is_some_and(|one| one == "json"))
        .collect();
    all.sort();
    all
}

/// A case of the doctor, judged in the language of the moment.
pub(crate) fn judged(path: &Path) -> DoctorRecord {
    let mut evidence: Evidence = read(path);
    evidence.comparisons.iter_mut().for_each(with_intervals);
    DoctorRecord::new(&evidence, &judge(&evidence))
}

pub(crate) fn case(name: &str) -> DoctorRecord {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/tests/cases");
    judged(&folder.join(format!("{name}.json")))
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
    second.kept = false;
    (second.gain, second.gain_low, second.gain_high) = (1.2e6, -2.5e6, 4.4e6);
    (second.measured_before, second.measured_after) = (90e6, 91.2e6);
    for experiment in [&mut record.outcome.experiments[0], &mut second] {
        experiment.samples.clone_from(&samples);
    }
    record.outcome.experiments.push(second);
    record
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

/// What a hostile machine may call itself.
pub(crate) const HOSTILE: &str =
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\u{202e}gnp]]>--></svg></style>";

/// A name in all places where a far machine tells its own.
pub(crate) fn hostile() -> DoctorRecord {
    let mut record: DoctorRecord = case("socket-overflow");
    let name = || HOSTILE.to_owned();
    record.interface = name();
    record.peer = Some(name());
    for machine in &mut record.machines {
        machine.name = name();
        machine.interface = Some(name());
        machine.facts.host.name = name();
        machine.facts.host.kernel = name();
        for tunnel in &mut machine.facts.tunnels {
            tunnel.name = name();
        }
        machine.facts.outer_links = vec![name()];
        for link in &mut machine.facts.links {
            link.name = name();
        }
    }
    for finding in &mut record.findings {
        finding.code = name();
        finding.host = name();
        finding.because = name();
        for line in &mut finding.evidence {
            line.what = name();
            line.r#where = name();
            line.unit = name();
            line.before = json!(name());
        }
        for remedy in &mut finding.remedies {
            remedy.title = name();
            remedy.commands = vec![name()];
            remedy.risk = name();
        }
    }
    for item in &mut record.not_checked {
        item.because = name();
    }
    for comparison in &mut record.measurements.comparisons {
        comparison.remarks = vec![name()];
        for sample in &mut comparison.samples {
            let links = std::mem::take(&mut sample.here.links);
            sample.here.links = links
                .into_values()
                .map(|mut link| {
                    link.rx_dropped = 7;
                    (name(), link)
                })
                .collect();
        }
    }
    record
}
