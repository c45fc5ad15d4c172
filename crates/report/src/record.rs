//! The JSON that others script against: one object per command, with a versioned schema. Rates in bit/s,
//! times in seconds, sizes in bytes.

use serde::{Deserialize, Serialize};
use wirespeed_doctor::{
    Asked, CongestionTrial, Diagnosis, End, Evidence, FarKind, Finding, HopReport, IdleReturn,
    Refusal, Verdict,
};
use wirespeed_facts::{Facts, Known};
use wirespeed_measure::statistics::median;
use wirespeed_measure::{
    CUT_OFF, Comparison, ExchangeComparison, ExchangeSample, NOT_BEGUN, NotMeasured, PassiveWatch,
    PathMtu, RateSweep, RttSummary, Sample, SegmentationProbe, SequenceProbe, TunnelSweep, Via,
};
use wirespeed_tune::Outcome;

use crate::diff::Against;
use crate::versioned::Schema;

/// One machine that took part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineRecord {
    /// Here or the far end.
    pub end: End,
    /// Its name in findings and evidence.
    pub name: String,
    /// The tunnel's interface there, where known.
    pub interface: Option<String>,
    /// What it said of itself before the load.
    pub facts: Facts,
}

/// What `wirespeed test --json` prints and `--against` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestRecord {
    /// `wirespeed.test`.
    pub schema: Schema,
    /// `healthy`, `findings` (some comparison is below nine tenths of the bare path) or `unmeasured`.
    pub verdict: Verdict,
    /// Seconds since the Unix epoch.
    pub started_at: f64,
    /// The tunnel's interface here.
    pub interface: String,
    /// What is at the other end.
    pub far_kind: FarKind,
    /// Who took part.
    pub machines: Vec<MachineRecord>,
    /// RTT outside the tunnel without load.
    pub idle_rtt_bare: Known<RttSummary>,
    /// RTT through the tunnel without load.
    pub idle_rtt_tunnel: Known<RttSummary>,
    /// Bare against tunnel, one per direction, number of streams and protocol.
    pub comparisons: Vec<Comparison>,
    /// Many short exchanges, bare against tunnel (`--connections`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exchanges: Option<ExchangeComparison>,
    /// What was meant to be measured and was not.
    pub not_measured: Vec<NotMeasured>,
    /// The difference to the record of `--against`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub against: Option<Against>,
}

/// A tunnel that carries this share of the bare path is healthy over one hop ("WireGuard Performance Tuning",
/// section Testing).
pub(crate) const HEALTHY_RATIO: f64 = 0.9;
/// Of thousands of exchanges one or the other may fail by chance; more than this share is no chance.
const FAILING: f64 = 0.01;
/// Fewer pairs than this prove nothing.
const FEWEST_PAIRS: usize = 5;

impl TestRecord {
    /// The verdict on what was measured and what was not. `findings` when the whole interval of a comparison lies below
    /// [`HEALTHY_RATIO`], so that noise is no finding, or its tunnel stalls; `healthy` only when every comparison that was
    /// asked for has its ratio from enough pairs; else `unmeasured`.
    pub fn verdict_on(comparisons: &[Comparison], not_measured: &[NotMeasured]) -> Verdict {
        let enough = |one: &&Comparison| one.pairs.len() >= FEWEST_PAIRS;
        let slow = comparisons
            .iter()
            .filter(enough)
            .filter_map(|one| one.ratio_high)
            .any(|high| high < HEALTHY_RATIO);
        let known = |one: &Comparison| one.ratio.is_some() && enough(&one);
        if slow || comparisons.iter().any(stalls) {
            Verdict::Findings
        } else if !comparisons.is_empty()
            && comparisons.iter().all(known)
            && not_measured.is_empty()
        {
            Verdict::Healthy
        } else {
            Verdict::Unmeasured
        }
    }
}

impl TestRecord {
    /// As [`TestRecord::verdict_on`], with short exchanges beside the comparisons or in their place: a finding is when
    /// the tunnel makes surely less than [`HEALTHY_RATIO`] of the road's new connections per second, or when they fail
    /// through the tunnel and not outside.
    pub fn verdict_with(
        comparisons: &[Comparison],
        exchanges: Option<&ExchangeComparison>,
        not_measured: &[NotMeasured],
    ) -> Verdict {
        let bulk = Self::verdict_on(comparisons, not_measured);
        let Some(exchanges) = exchanges else {
            return bulk;
        };
        let short = verdict_on_exchanges(exchanges);
        match (bulk, short) {
            (Verdict::Findings, _) | (_, Verdict::Findings) => Verdict::Findings,
            (Verdict::Healthy, short) => short,
            (Verdict::Unmeasured, short) if comparisons.is_empty() && not_measured.is_empty() => {
                short
            }
            (Verdict::Unmeasured, _) => Verdict::Unmeasured,
        }
    }
}

fn verdict_on_exchanges(exchanges: &ExchangeComparison) -> Verdict {
    let of = |via| exchanges.samples.iter().filter(move |one| one.via == via);
    // The middle of the samples: a single noisy one proves nothing.
    let failing = |via| {
        let shares: Vec<f64> = of(via).map(failed_share).collect();
        median(&shares).unwrap_or(0.0)
    };
    let (bare, tunnel) = (failing(Via::Bare), failing(Via::Tunnel));
    let enough = of(Via::Tunnel).count() >= FEWEST_PAIRS;
    // After two such samples no more are taken.
    let dead = of(Via::Tunnel).count() >= 2 && of(Via::Tunnel).all(|one| one.completed == 0);
    let ratio = exchanges.ratio.filter(|_| exchanges.bare_unknown.is_none());
    match ratio {
        Some(_) if dead => Verdict::Findings,
        Some(_) if enough && tunnel > FAILING && tunnel > 2.0 * bare => Verdict::Findings,
        Some(ratio) if enough && ratio.high < HEALTHY_RATIO => Verdict::Findings,
        Some(_) if enough && tunnel <= FAILING => Verdict::Healthy,
        _ => Verdict::Unmeasured,
    }
}

/// Of those that came to an end by themselves.
fn failed_share(sample: &ExchangeSample) -> f64 {
    let failed = failures(sample);
    failed as f64 / failed.saturating_add(sample.completed).max(1) as f64
}

/// Exchanges that failed, and were not only without an end when the sample was over.
pub(crate) fn failures(sample: &ExchangeSample) -> u64 {
    sample
        .failed
        .iter()
        .filter(|(why, _)| is_failure(why))
        .fold(0, |sum, (_, times)| sum.saturating_add(*times))
}

/// A slow road leaves exchanges without an end, and that is what the rate tells.
pub(crate) fn is_failure(why: &str) -> bool {
    ![CUT_OFF, NOT_BEGUN].contains(&why)
}

/// Nothing arrived in any of several samples through the tunnel.
fn stalls(comparison: &Comparison) -> bool {
    comparison.of(Via::Tunnel).count() >= 2
        && comparison.of(Via::Tunnel).all(|sample| sample.stalled)
}

/// Everything the doctor measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurements {
    /// What the user expects of the line (`--expect`).
    pub expected_rate: Option<f64>,
    /// Does the far end reach an idle tunnel?
    pub idle_return: Known<IdleReturn>,
    /// RTT outside the tunnel without load.
    pub idle_rtt_bare: Known<RttSummary>,
    /// RTT through the tunnel without load.
    pub idle_rtt_tunnel: Known<RttSummary>,
    /// Outer don't-fragment probes.
    pub path_mtu: Vec<PathMtu>,
    /// Sizes that pass inside the tunnel.
    pub tunnel_sweep: Vec<TunnelSweep>,
    /// Bare against tunnel.
    pub comparisons: Vec<Comparison>,
    /// Other congestion controls tried on single sockets.
    pub congestion_trials: Vec<CongestionTrial>,
    /// Longer loads of several streams, for queues that fill slowly.
    #[serde(default)]
    pub soaks: Vec<Sample>,
    /// Numbered datagrams.
    #[serde(default)]
    pub sequences: Vec<SequenceProbe>,
    /// Whether segmentation of UDP works on the way out.
    #[serde(default)]
    pub segmentation: Vec<SegmentationProbe>,
    /// The search for the highest stable rate.
    #[serde(default)]
    pub sweeps: Vec<RateSweep>,
    /// What flowed by itself (`--passive`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveWatch>,
    /// Which of these a check asked for, to tell its cause from another.
    #[serde(default)]
    pub asked: Vec<Asked>,
}

/// What `wirespeed doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoctorRecord {
    /// `wirespeed.doctor`.
    pub schema: Schema,
    /// The answer in one word.
    pub verdict: Verdict,
    /// The tunnel's interface here.
    pub interface: String,
    /// Public key of the peer at the far end, where known.
    pub peer: Option<String>,
    /// What is at the other end.
    pub far_kind: FarKind,
    /// Who took part.
    pub machines: Vec<MachineRecord>,
    /// What was measured.
    pub measurements: Measurements,
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// What was meant to be measured or checked and was not.
    pub not_checked: Vec<NotMeasured>,
    /// Folk remedies that can't help on these machines, whatever was found.
    pub refused: Vec<Refusal>,
}

impl DoctorRecord {
    /// The record of one diagnosis and the evidence it was made from.
    pub fn new(evidence: &Evidence, diagnosis: &Diagnosis) -> Self {
        let mut not_checked = evidence.not_measured.clone();
        for item in &diagnosis.not_checked {
            if !not_checked.contains(item) {
                not_checked.push(item.clone());
            }
        }
        Self {
            schema: Schema::DOCTOR,
            verdict: diagnosis.verdict,
            interface: evidence.interface.clone(),
            peer: evidence.peer.clone(),
            far_kind: evidence.far_kind,
            machines: machines_of(evidence),
            measurements: Measurements {
                expected_rate: evidence.expected_rate,
                idle_return: evidence.idle_return.clone(),
                idle_rtt_bare: evidence.idle_rtt_bare.clone(),
                idle_rtt_tunnel: evidence.idle_rtt_tunnel.clone(),
                path_mtu: evidence.path_mtu.clone(),
                tunnel_sweep: evidence.tunnel_sweep.clone(),
                comparisons: evidence.comparisons.clone(),
                congestion_trials: evidence.congestion_trials.clone(),
                soaks: evidence.soaks.clone(),
                sequences: evidence.sequences.clone(),
                segmentation: evidence.segmentation.clone(),
                sweeps: evidence.sweeps.clone(),
                passive: evidence.passive.clone(),
                asked: evidence.asked.clone(),
            },
            findings: diagnosis.findings.clone(),
            not_checked,
            refused: diagnosis.refused.clone(),
        }
    }

    /// Name of the far machine, where it took part.
    pub fn far_name(&self) -> Option<&str> {
        self.machines
            .iter()
            .find(|machine| machine.end == End::Far)
            .map(|machine| machine.name.as_str())
    }
}

/// What `wirespeed doctor --hop … --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopsRecord {
    /// `wirespeed.hops`.
    pub schema: Schema,
    /// Each hop, the whole, and the worst.
    #[serde(flatten)]
    pub report: HopReport,
    /// What the doctor found at the worst hop, worst first; empty when that hop was not looked at.
    pub findings: Vec<Finding>,
    /// The doctor's answer about the worst hop, where a tunnel loses too much of its road.
    pub doctor: Option<DoctorRecord>,
}

impl HopsRecord {
    /// The record of a chain, with the doctor's look at its worst hop where one was taken.
    pub fn new(report: HopReport, doctor: Option<DoctorRecord>) -> Self {
        Self {
            schema: Schema::HOPS,
            report,
            findings: doctor
                .as_ref()
                .map(|record| record.findings.clone())
                .unwrap_or_default(),
            doctor,
        }
    }
}

/// What `wirespeed tune --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneRecord {
    /// `wirespeed.tune`.
    pub schema: Schema,
    /// Of the last diagnosis: `healthy` when nothing is left to mend.
    pub verdict: Verdict,
    /// Were the changes confirmed at once (`--yes`)?
    pub confirmed: bool,
    /// What was tried, kept, put back.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl TuneRecord {
    /// The record of a tune.
    pub fn new(mut outcome: Outcome, confirmed: bool) -> Self {
        if confirmed {
            outcome.confirm_within = None;
        }
        Self {
            schema: Schema::TUNE,
            verdict: outcome.diagnosis.verdict,
            confirmed,
            outcome,
        }
    }
}

/// What `wirespeed tune --plan --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanRecord {
    /// `wirespeed.tune.plan`.
    pub schema: Schema,
    /// Of the diagnosis.
    pub verdict: Verdict,
    /// Machine's name and its `sh` script.
    pub plan: Vec<(String, String)>,
}

/// The record of a command that could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorRecord {
    /// `wirespeed.doctor` and so on: that of what was asked for.
    pub schema: Schema,
    /// Always `unmeasured`.
    pub verdict: Verdict,
    /// What happened.
    pub error: ErrorText,
}

/// An error for people: what was tried, on which machine, what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorText {
    /// What was tried and how it failed.
    pub what: String,
    /// On which machine.
    pub r#where: String,
    /// What to do now.
    pub todo: String,
}

fn machines_of(evidence: &Evidence) -> Vec<MachineRecord> {
    let mut machines = vec![MachineRecord {
        end: End::Here,
        name: evidence.here_name.clone(),
        interface: Some(evidence.interface.clone()),
        facts: evidence.here.clone(),
    }];
    if let Some(far) = &evidence.far {
        machines.push(MachineRecord {
            end: End::Far,
            name: evidence.far_name.clone(),
            interface: evidence.far_interface.clone(),
            facts: far.clone(),
        });
    }
    machines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn comparison(ratio: Option<f64>, pairs: usize) -> Comparison {
        serde_json::from_value(json!({
            "direction": "upload", "streams": 1, "protocol": "tcp", "bare": 1e8, "tunnel": 1e8,
            "ratio": ratio, "ratio_low": ratio, "ratio_high": ratio,
            "pairs": vec![json!({"bare": 1e8, "tunnel": 1e8, "ratio": ratio.unwrap_or(0.0)}); pairs],
            "bare_unknown": null, "remarks": [], "samples": [],
        }))
        .unwrap()
    }

    #[test]
    fn only_what_was_all_measured_is_healthy() {
        let good = comparison(Some(0.96), 5);
        let verdict = |more: &[Comparison], missing: &[NotMeasured]| {
            let all: Vec<Comparison> = std::iter::once(&good).chain(more).cloned().collect();
            TestRecord::verdict_on(&all, missing)
        };
        assert_eq!(verdict(&[], &[]), Verdict::Healthy);
        assert_eq!(verdict(&[comparison(Some(0.8), 5)], &[]), Verdict::Findings);
        assert_eq!(
            verdict(&[comparison(Some(0.8), 4)], &[]),
            Verdict::Unmeasured
        );
        assert_eq!(verdict(&[comparison(None, 0)], &[]), Verdict::Unmeasured);
        let missing = NotMeasured {
            what: "download with 1 streams".to_owned(),
            because: "refused".to_owned(),
        };
        assert_eq!(verdict(&[], &[missing]), Verdict::Unmeasured);
        assert_eq!(TestRecord::verdict_on(&[], &[]), Verdict::Unmeasured);
    }
}
