//! What the doctor wrote, as the reader's language has it: its sentences call this machine `here`, as records do.

use wirespeed_doctor::{EvidenceLine, Finding, HopReport, Refusal, Remedy};
use wirespeed_measure::NotMeasured;
use wirespeed_tune::{ChangeMade, Experiment, Outcome};

use crate::{places, typed};

pub(crate) fn finding(finding: &Finding) -> Finding {
    Finding {
        host: places::told(&finding.host),
        evidence: finding.evidence.iter().map(evidence).collect(),
        because: places::told(&finding.because),
        remedies: finding.remedies.iter().map(remedy).collect(),
        refused: finding.refused.iter().map(refusal).collect(),
        ..finding.clone()
    }
}

fn evidence(line: &EvidenceLine) -> EvidenceLine {
    EvidenceLine {
        what: places::told(&line.what),
        r#where: places::told(&line.r#where),
        ..line.clone()
    }
}

fn remedy(remedy: &Remedy) -> Remedy {
    Remedy {
        title: places::told(&remedy.title),
        commands: remedy.commands.iter().map(|one| typed::told(one)).collect(),
        persistence: typed::told(&remedy.persistence),
        risk: places::told(&remedy.risk),
        undo: typed::told(&remedy.undo),
        ..remedy.clone()
    }
}

pub(crate) fn refusal(refusal: &Refusal) -> Refusal {
    Refusal {
        remedy: places::told(&refusal.remedy),
        why: places::told(&refusal.why),
    }
}

pub(crate) fn not_measured(item: &NotMeasured) -> NotMeasured {
    NotMeasured {
        what: places::told(&item.what),
        because: places::told(&item.because),
    }
}

/// The chain's names and sentences, ready to be shown.
pub(crate) fn hops(report: &HopReport) -> HopReport {
    let mut report = report.clone();
    for hop in &mut report.hops {
        replace([&mut hop.from, &mut hop.to]);
    }
    for hop in &mut report.measured.hops {
        replace([&mut hop.from, &mut hop.to]);
    }
    replace(report.worst.iter_mut().map(|worst| &mut worst.because));
    replace(&mut report.remarks);
    report
}

/// The names and sentences of a tune, ready to be shown.
pub(crate) fn outcome(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    outcome.experiments.iter_mut().for_each(experiment);
    outcome.kept.iter_mut().for_each(change);
    replace(&mut outcome.ended_early);
    replace(outcome.recovered.iter_mut().map(|(host, _)| host));
    outcome
}

fn experiment(experiment: &mut Experiment) {
    replace([&mut experiment.setting, &mut experiment.why]);
    experiment.changes.iter_mut().for_each(change);
}

fn change(made: &mut ChangeMade) {
    replace([&mut made.host]);
}

fn replace<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    for text in texts {
        *text = places::told(text);
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn this_machine_is_named_in_sentences_too() {
        let item = NotMeasured {
            what: "wg0 sur here".to_owned(),
            because: "here n’a pas répondu, netns:here non plus".to_owned(),
        };
        assert_eq!(not_measured(&item), item);
        let told = within(Language::French, || not_measured(&item));
        assert_eq!(told.what, "wg0 sur cette machine");
        assert_eq!(
            told.because,
            "cette machine n’a pas répondu, netns:here non plus"
        );
    }
}
