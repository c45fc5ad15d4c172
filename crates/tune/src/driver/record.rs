//! What of an experiment and of a diagnosis goes into the outcome.

use wirespeed_doctor::{Diagnosis, End, Evidence, Finding, Goal, Remedy};
use wirespeed_measure::statistics::median;
use wirespeed_measure::{Comparison, Direction, Protocol, Sample, Via};
use wirespeed_settings::Setting;
use wirespeed_words::say;

use crate::decision::Decision;
use crate::{ChangeMade, Experiment, Stage};

/// Findings about sizes concern both directions, whichever showed it.
const SIZE_CODES: [&str; 3] = ["mtu-exceeds-path", "mtu-below-path", "icmp-black-hole"];

/// What a stage shows of a diagnosis.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) upload: Option<f64>,
    pub(crate) download: Option<f64>,
    pub(crate) idle_rtt: Option<f64>,
    pub(crate) loaded_rtt: Option<f64>,
}

impl Figures {
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let tcp = || {
            evidence
                .comparisons
                .iter()
                .filter(|comparison| comparison.protocol == Protocol::Tcp)
        };
        let best = |direction: Direction| {
            tcp()
                .filter(|comparison| comparison.direction == direction)
                .map(|comparison| comparison.tunnel)
                .max_by(f64::total_cmp)
        };
        let rtt = |comparison: &Comparison| {
            let medians: Vec<f64> = comparison
                .of(Via::Tunnel)
                .filter_map(|sample| sample.loaded_rtt.as_ref()?.median)
                .collect();
            median(&medians)
        };
        Self {
            upload: best(Direction::Upload),
            download: best(Direction::Download),
            idle_rtt: evidence.idle_rtt_tunnel.value().and_then(|rtt| rtt.median),
            loaded_rtt: tcp().filter_map(rtt).max_by(f64::total_cmp),
        }
    }
}

pub(super) fn knobs(remedy: &Remedy) -> Vec<(End, Setting)> {
    remedy
        .changes
        .iter()
        .map(|change| (change.end, change.setting.clone()))
        .collect()
}

pub(super) fn directions(finding: &Finding) -> Vec<Direction> {
    match finding.direction {
        Some(direction) if !SIZE_CODES.contains(&finding.code.as_str()) => vec![direction],
        _ => vec![Direction::Upload, Direction::Download],
    }
}

pub(super) fn stage(label: &str, figures: Figures, diagnosis: &Diagnosis) -> Stage {
    Stage {
        label: label.to_owned(),
        upload: figures.upload,
        download: figures.download,
        idle_rtt: figures.idle_rtt,
        loaded_rtt: figures.loaded_rtt,
        findings: diagnosis
            .findings
            .iter()
            .filter(|finding| finding.consequence_of.is_none())
            .map(|finding| finding.code.clone())
            .collect(),
    }
}

pub(super) fn record(
    finding: &Finding,
    remedy: &Remedy,
    decision: Decision,
    made: &[ChangeMade],
    samples: Vec<Sample>,
) -> Experiment {
    let hosts: Vec<&str> = made.iter().map(|change| change.host.as_str()).collect();
    let setting = made.first().map_or_else(String::new, |change| {
        say!(
            "doctor-on",
            what = change.setting.describe(),
            host = hosts.join(", ")
        )
    });
    let both = remedy.goal == Goal::Goodput && directions(finding).len() > 1;
    Experiment {
        code: finding.code.clone(),
        setting,
        before: made
            .first()
            .map(|change| change.before.clone())
            .unwrap_or_default(),
        after: made
            .first()
            .map(|change| change.after.clone())
            .unwrap_or_default(),
        changes: made.to_vec(),
        goal: remedy.goal,
        unit: decision.unit.to_owned(),
        measured_before: decision.before,
        measured_after: decision.after,
        gain: decision.gain.map_or(0.0, |gain| gain.value),
        gain_low: decision.gain.map_or(0.0, |gain| gain.low),
        gain_high: decision.gain.map_or(0.0, |gain| gain.high),
        guards: decision.guards,
        kept: decision.kept,
        why: if both {
            say!("tune-why-both", why = decision.why)
        } else {
            decision.why
        },
        samples,
    }
}
