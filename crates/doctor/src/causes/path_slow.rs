//! `path-slow`: the tunnel is as fast as the road, and the road is slower than it should be.
//!
//! Needs to know what the line should carry: every road has some rate, and a healthy tunnel over a slow line is healthy.

use wirespeed_measure::Direction;
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome, line, percent, rate, rates_line};
use crate::view::{DIRECTIONS, sender};
use crate::{Evidence, Refusal, Severity};

pub(super) const CODE: &str = "path-slow";

pub(super) const CHECK: Check = Check::new(CODE, || say!("path-slow-title"), run);

/// Less than this share of what is expected is slow.
const SLOW: f64 = 0.8;
/// The tunnel keeps up with the road from this median on …
const KEEPS_UP: f64 = 0.9;
/// … when the lower end of its interval, which with five pairs is one bad pair, is at least this.
const KEEPS_UP_LOW: f64 = 0.75;

fn run(evidence: &Evidence) -> Outcome {
    let Some(expected) = evidence.expected_rate else {
        return Outcome::default();
    };
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        match evidence.comparison(direction) {
            Some(comparison) if comparison.bare.is_some() => {
                outcome.found.extend(found(evidence, direction, expected));
            }
            _ => outcome
                .not_known
                .push(say!("path-slow-unknown-bare", direction = direction.word())),
        }
    }
    outcome
}

fn found(evidence: &Evidence, direction: Direction, expected: f64) -> Option<Found> {
    let comparison = evidence.comparison(direction)?;
    let bare = comparison.bare?;
    let keeps_up = comparison.ratio? >= KEEPS_UP && comparison.ratio_low? >= KEEPS_UP_LOW;
    if !keeps_up || bare >= SLOW * expected {
        return None;
    }
    let mut lines = vec![line(
        say!("path-slow-line-bare", direction = direction.word()),
        evidence.name(sender(direction)),
        expected,
        bare,
        "bit/s",
    )];
    lines.extend(rates_line(evidence, direction));
    Some(Found {
        severity: Severity::Info,
        confidence: 0.9,
        effect: (1.0 - bare / expected).clamp(0.0, 1.0),
        host: evidence.name(sender(direction)).to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: say!(
            "path-slow-because",
            bare = rate(bare),
            expected = rate(expected),
            share = percent(comparison.ratio?)
        ),
        remedies: Vec::new(),
        refused: vec![Refusal {
            remedy: say!("path-slow-refused"),
            why: say!("path-slow-refused-why"),
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::CODE;
    use wirespeed_measure::Direction;

    use crate::testing::{healthy, not_checked, nothing, set_ratio};
    use crate::{Severity, judge};

    #[test]
    fn a_road_below_four_fifths_of_what_is_expected_is_found() {
        let mut evidence = healthy();
        nothing(&evidence);
        evidence.expected_rate = Some(125e6);
        nothing(&evidence);
        evidence.expected_rate = Some(126e6);
        let diagnosis = judge(&evidence);
        assert_eq!(diagnosis.findings.len(), 2, "one per direction");
        assert!(
            diagnosis
                .findings
                .iter()
                .all(|finding| finding.code == CODE && finding.severity == Severity::Info)
        );
    }

    #[test]
    fn a_tunnel_that_does_not_keep_up_is_not_excused() {
        let mut evidence = healthy();
        evidence.expected_rate = Some(1e9);
        for direction in [Direction::Upload, Direction::Download] {
            set_ratio(&mut evidence, direction, 0.86);
        }
        nothing(&evidence);
    }

    #[test]
    fn without_bare_it_is_not_known() {
        let mut evidence = healthy();
        evidence.expected_rate = Some(1e9);
        evidence.comparisons[0].bare = None;
        assert!(not_checked(&evidence, CODE));
    }
}
