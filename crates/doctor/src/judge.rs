//! Evidence to diagnosis: run every check, set consequences under their causes, order, and say it in one word.

use wirespeed_measure::{NotMeasured, Via};

use crate::causes::{CHECKS, explains};
use crate::finding::{Found, line, percent, rates_line};
use crate::trust::without_unreliable;
use crate::view::{DIRECTIONS, FEWEST_PAIRS, only, receiver, sender, word};
use crate::{Diagnosis, Evidence, Finding, Severity, Verdict};

/// Code of the finding that says: slow, and none of the known causes shows.
const UNEXPLAINED: &str = "unexplained";

/// A tunnel that carries less than this share of bare for sure is slow, whatever the checks say.
const SLOW_FOR_SURE: f64 = 0.8;

/// An interval of tunnel/bare wider than this leaves open what it is.
pub(crate) const TOO_WIDE: f64 = 0.4;

/// What the evidence says. Pure: the same evidence always gives the same diagnosis.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let trusted = without_unreliable(evidence);
    let evidence = trusted.as_ref();
    let mut found: Vec<(f64, Finding)> = Vec::new();
    let mut not_checked: Vec<NotMeasured> = Vec::new();
    let mut refused = Vec::new();
    for check in CHECKS {
        let outcome = (check.run)(evidence);
        not_checked.extend(outcome.not_checked(check.code));
        for refusal in outcome.refused {
            if !refused.contains(&refusal) {
                refused.push(refusal);
            }
        }
        found.extend(
            outcome
                .found
                .into_iter()
                .map(|one| weighed(one, check.code)),
        );
    }
    not_checked.extend(too_few_pairs(evidence));
    // What is for information only explains no slow tunnel.
    if found.iter().all(|(_, one)| one.severity == Severity::Info) {
        not_checked.extend(unsteady(evidence));
        found.extend(unexplained(evidence).map(|one| weighed(one, UNEXPLAINED)));
    }
    set_consequences(evidence, &mut found);
    // Worst first; what is only a consequence comes after everything that is a cause. The sort is stable.
    found.sort_by(|(weight_a, a), (weight_b, b)| {
        a.consequence_of
            .is_some()
            .cmp(&b.consequence_of.is_some())
            .then(b.severity.cmp(&a.severity))
            .then(weight_b.total_cmp(weight_a))
    });
    let findings: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
    Diagnosis {
        verdict: verdict(evidence, &findings),
        findings,
        not_checked,
        refused,
    }
}

/// Every code a finding can have, with its title.
pub fn codes() -> Vec<(&'static str, &'static str)> {
    CHECKS
        .iter()
        .map(|check| (check.code, check.title))
        .chain([(
            UNEXPLAINED,
            "The tunnel is slow, and none of the known causes shows",
        )])
        .collect()
}

fn weighed(found: Found, code: &str) -> (f64, Finding) {
    (found.confidence * found.effect, found.with_code(code))
}

fn set_consequences(evidence: &Evidence, found: &mut [(f64, Finding)]) {
    let causes: Vec<Finding> = found.iter().map(|(_, finding)| finding.clone()).collect();
    for (_, finding) in found.iter_mut() {
        if let Some(cause) = causes
            .iter()
            .find(|cause| explains(evidence, cause, finding))
        {
            finding.consequence_of = Some(cause.code.clone());
            finding.severity = finding.severity.min(cause.severity);
        }
    }
}

fn verdict(evidence: &Evidence, findings: &[Finding]) -> Verdict {
    if !findings.is_empty() {
        Verdict::Findings
    } else if evidence.loaded_both_ways() {
        Verdict::Healthy
    } else {
        Verdict::Unmeasured
    }
}

/// Directions in which a difference between tunnel and bare could not be proved, whatever the figures are.
fn too_few_pairs(evidence: &Evidence) -> Vec<NotMeasured> {
    DIRECTIONS
        .into_iter()
        .filter(|direction| !evidence.stalled(*direction))
        .filter_map(|direction| {
            let pairs = evidence.comparison(direction)?.pairs.len();
            (1..FEWEST_PAIRS).contains(&pairs).then(|| NotMeasured {
                what: format!("bare against tunnel, {}", word(direction)),
                because: format!(
                    "there was time for {pairs} of at least {FEWEST_PAIRS} pairs: too few to call the tunnel slower; run without --quick"
                ),
            })
        })
        .collect()
}

/// Directions whose interval reaches from slow to healthy: nothing was found there, but not because all is well for sure.
fn unsteady(evidence: &Evidence) -> Vec<NotMeasured> {
    DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            let comparison = evidence.comparison(direction)?;
            let (low, high) = (comparison.ratio_low?, comparison.ratio_high?);
            let too_wide = low < SLOW_FOR_SURE && high >= SLOW_FOR_SURE && high - low > TOO_WIDE;
            too_wide.then(|| NotMeasured {
                what: UNEXPLAINED.to_owned(),
                because: format!(
                    "{}: the tunnel carries between {} and {} of bare, too unsteady to call it slow or not; measure for longer, or while the machines have nothing else to do",
                    word(direction),
                    percent(low),
                    percent(high)
                ),
            })
        })
        .collect()
}

/// A tunnel at less than [`SLOW_FOR_SURE`] of bare is not healthy only because no check knows why.
fn unexplained(evidence: &Evidence) -> Option<Found> {
    let slow: Vec<_> = DIRECTIONS
        .into_iter()
        .filter(|direction| {
            evidence.stalled(*direction) || evidence.below(*direction, SLOW_FOR_SURE) == Some(true)
        })
        .collect();
    let first = *slow.first()?;
    let stalled = evidence.stalled(first);
    let mut lines: Vec<_> = slow
        .iter()
        .filter_map(|direction| rates_line(evidence, *direction))
        .collect();
    for direction in &slow {
        let again: u64 = evidence
            .samples(*direction, Via::Tunnel)
            .iter()
            .filter_map(|sample| sample.retransmits)
            .fold(0, u64::saturating_add);
        lines.push(line(
            format!(
                "segments sent again through the tunnel, {}",
                word(*direction)
            ),
            evidence.name(sender(*direction)),
            (),
            again,
            "segments",
        ));
    }
    Some(Found {
        severity: if slow.iter().any(|direction| evidence.crippled(*direction)) {
            Severity::Critical
        } else {
            Severity::Warning
        },
        confidence: 0.5,
        effect: slow
            .iter()
            .map(|direction| evidence.lost_share(*direction))
            .fold(0.0, f64::max),
        host: evidence.name(sender(first)).to_owned(),
        direction: only(&slow),
        evidence: lines,
        because: if stalled {
            format!(
                "Loads from {} to {} stall inside the tunnel, and none of the known causes shows.",
                evidence.name(sender(first)),
                evidence.name(receiver(first))
            )
        } else {
            format!(
                "The tunnel loses {} of what the bare path carries, and none of the known causes shows.",
                percent(evidence.lost_share(first))
            )
        },
        remedies: Vec::new(),
        refused: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wirespeed_measure::{Direction, Via};

    use super::{UNEXPLAINED, codes, judge};
    use crate::testing::{
        each_sample, healthy, nothing, only_finding, path_mtu, set_ratio, watched,
    };
    use crate::{Severity, Verdict};

    #[test]
    fn a_good_tunnel_is_healthy() {
        let diagnosis = judge(&healthy());
        assert_eq!(
            (diagnosis.verdict, diagnosis.findings),
            (Verdict::Healthy, vec![])
        );
        assert_eq!(diagnosis.not_checked, []);
    }

    #[test]
    fn what_was_only_watched_is_not_healthy_and_what_is_not_known_is_said_in_a_line_each() {
        let diagnosis = judge(&watched());
        assert_eq!(
            (diagnosis.verdict, diagnosis.findings),
            (Verdict::Unmeasured, vec![])
        );
        assert!(!diagnosis.not_checked.is_empty());
        for one in &diagnosis.not_checked {
            assert!(one.because.len() <= 120, "{}: {}", one.what, one.because);
            assert!(
                !one.because.contains("no load ran"),
                "{}: {}",
                one.what,
                one.because
            );
        }
    }

    #[test]
    fn nothing_measured_is_not_healthy() {
        let mut evidence = healthy();
        evidence.comparisons.clear();
        assert_eq!(judge(&evidence).verdict, Verdict::Unmeasured);
    }

    #[test]
    fn one_direction_alone_is_not_healthy() {
        let mut evidence = healthy();
        evidence.comparisons.truncate(1);
        assert_eq!(judge(&evidence).verdict, Verdict::Unmeasured);
    }

    #[test]
    fn a_slow_tunnel_that_nobody_can_explain_is_not_healthy_either() {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.8);
        nothing(&evidence);
        set_ratio(&mut evidence, Direction::Upload, 0.75);
        assert_eq!(
            only_finding(&evidence, UNEXPLAINED).severity,
            Severity::Warning
        );
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        only_finding(&evidence, "mtu-exceeds-path");
    }

    #[test]
    fn fewer_than_five_pairs_prove_nothing_and_that_is_said() {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.5);
        only_finding(&evidence, UNEXPLAINED);
        evidence.comparisons[0].pairs.truncate(4);
        let diagnosis = judge(&evidence);
        assert_eq!(diagnosis.findings, []);
        assert!(
            diagnosis.not_checked[0]
                .because
                .starts_with("there was time for 4 of at least 5 pairs")
        );
    }

    #[test]
    fn a_single_stall_is_chance() {
        let mut evidence = healthy();
        evidence.comparisons[0].samples.truncate(2);
        evidence.comparisons[0].pairs.truncate(1);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.stalled = true;
        });
        nothing(&evidence);
    }

    #[test]
    fn an_interval_from_slow_to_healthy_is_said_to_be_too_wide() {
        let mut evidence = healthy();
        evidence.comparisons[1].ratio_low = Some(0.45);
        let diagnosis = judge(&evidence);
        assert_eq!(diagnosis.findings, []);
        assert!(
            diagnosis.not_checked[0]
                .because
                .starts_with("download: the tunnel carries between 45 % and 97 %")
        );
    }

    #[test]
    fn codes_are_unique_and_stable_in_form() {
        let codes = codes();
        let unique: BTreeSet<_> = codes.iter().map(|(code, _)| code).collect();
        assert_eq!(unique.len(), codes.len());
        assert!(codes.iter().all(|(code, title)| {
            code.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '-')
                && !title.is_empty()
        }));
    }
}
