//! What a search over capped rates tells of the queue: the rate that keeps it short, or that none of those tried does.

use wirespeed_measure::{RateSweep, SweepStep};
use wirespeed_words::say;

use super::{Bloat, fills, idle_high, too_much};
use crate::finding::{line, milliseconds, rate};
use crate::view::sender;
use crate::{Evidence, EvidenceLine, Refusal};

/// A cap answers to the queue only if it takes at least this share of the added delay away.
const TAKEN: f64 = 0.5;
/// A cap that leaves more than this share of the goodput holds nothing back.
const HELD: f64 = 0.97;

/// What the caps did to the queue.
pub(super) enum Caps<'a> {
    /// The highest that was carried steadily while the queue stayed short.
    Short(Tried<'a>),
    /// None made it short; this is the lowest of those carried steadily, which did hold the tunnel back.
    Long(Tried<'a>),
    /// No answer: no round trips, no queue during the search either, or a queue that is shorter and still long.
    Open,
}

/// A cap and the RTT meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Tried<'a> {
    step: &'a SweepStep,
    pub(super) cap: f64,
    rtt: f64,
}

/// What a search of the finding's direction tells of its queue.
pub(super) struct Searched<'a> {
    pub(super) caps: Caps<'a>,
    pub(super) lines: Vec<EvidenceLine>,
}

/// `None` where there was no search in this direction, or one that knows no round trips.
pub(super) fn searched<'a>(evidence: &'a Evidence, bloat: &Bloat) -> Option<Searched<'a>> {
    let sweep = evidence.sweep(bloat.direction)?;
    let free = sweep.free();
    let free_rtt = free.as_ref().and_then(rtt);
    let capped = capped(sweep);
    if free_rtt.is_none() && capped.is_empty() {
        return None;
    }
    let short = keeps_short(bloat, free_rtt, &capped);
    let long = free
        .zip(free_rtt)
        .and_then(|(free, rtt)| never_short(evidence, bloat, free.goodput, rtt, &capped));
    // The caps that the reader has to see: the one that answers, else the one that came closest, and the next one above.
    let shown = short
        .or(long)
        .or_else(|| {
            let closest = capped
                .iter()
                .min_by(|one, other| one.rtt.total_cmp(&other.rtt));
            closest.copied()
        })
        .map_or(f64::INFINITY, |tried| tried.cap);
    let caps_shown = capped.iter().filter(|tried| tried.cap >= shown).take(2);
    let way = bloat.direction.word();
    let at_the_sender = |what: String, rtt: f64| {
        let place = evidence.interface_at(sender(bloat.direction));
        line(what, place, bloat.idle, rtt, "s")
    };
    let lines = free_rtt
        .map(|rtt| at_the_sender(say!("bufferbloat-line-no-cap", direction = &way), rtt))
        .into_iter()
        .chain(caps_shown.map(|tried| {
            let cap = rate(tried.cap);
            let what = if tried.step.stable {
                say!("bufferbloat-line-cap-steady", cap = cap, direction = &way)
            } else {
                say!("bufferbloat-line-cap", cap = cap, direction = &way)
            };
            at_the_sender(what, tried.rtt)
        }))
        .collect();
    let caps = match (short, long) {
        (Some(short), _) => Caps::Short(short),
        (None, Some(long)) => Caps::Long(long),
        (None, None) => Caps::Open,
    };
    Some(Searched { caps, lines })
}

fn rtt(step: &SweepStep) -> Option<f64> {
    step.loaded_rtt.filter(|rtt| rtt.is_finite())
}

/// The caps whose round trips are known, lowest first.
fn capped(sweep: &RateSweep) -> Vec<Tried<'_>> {
    let mut capped: Vec<Tried<'_>> = sweep
        .steps
        .iter()
        .filter_map(|step| {
            Some(Tried {
                step,
                cap: step.cap.filter(|cap| cap.is_finite() && *cap > 0.0)?,
                rtt: rtt(step)?,
            })
        })
        .collect();
    capped.sort_by(|one, other| one.cap.total_cmp(&other.cap));
    capped
}

/// The highest steady cap with a round trip that is bearable, which costs the least of the peak.
fn keeps_short<'a>(bloat: &Bloat, free: Option<f64>, capped: &[Tried<'a>]) -> Option<Tried<'a>> {
    let idle = bloat.idle;
    let answers = |rtt: f64| match free {
        _ if too_much(idle, rtt) => false,
        // The one connection of a search fills a deep queue only in part: then a cap must show that it makes a difference.
        Some(free) if !too_much(idle, free) => fills(idle, free) && rtt - idle <= left(idle, free),
        Some(_) => true,
        None => !bloat.soaked,
    };
    let mut steady = capped.iter().rev().filter(|tried| tried.step.stable);
    steady.find(|tried| answers(tried.rtt)).copied()
}

/// The lowest steady cap, where it held the tunnel back and neither it nor any other made the queue much shorter.
fn never_short<'a>(
    evidence: &Evidence,
    bloat: &Bloat,
    free_goodput: f64,
    free: f64,
    capped: &[Tried<'a>],
) -> Option<Tried<'a>> {
    // The round trips of a search are 95th percentiles: what the road does by itself at times is no queue.
    let high = idle_high(evidence).map_or(bloat.idle, |high| high.max(bloat.idle));
    let long = |rtt: f64| too_much(high, rtt) && rtt - bloat.idle > left(bloat.idle, free);
    let lowest = capped.iter().find(|tried| tried.step.stable)?;
    let held = lowest.step.goodput <= HELD * free_goodput;
    (held && too_much(high, free) && capped.iter().all(|tried| long(tried.rtt))).then_some(*lowest)
}

/// The most added delay that a cap which answers may leave.
fn left(idle: f64, free: f64) -> f64 {
    (1.0 - TAKEN) * (free - idle)
}

impl Tried<'_> {
    /// What it says of a finding that no cap makes it go away.
    pub(super) fn because(&self) -> String {
        say!(
            "bufferbloat-because-no-cap",
            cap = rate(self.cap),
            rtt = milliseconds(self.rtt)
        )
    }

    /// A shaper was as good as tried, and in vain.
    pub(super) fn refused(&self, evidence: &Evidence, bloat: &Bloat) -> Refusal {
        let place = evidence.interface_at(sender(bloat.direction));
        Refusal {
            remedy: say!("bufferbloat-refused-shaper", place = place),
            why: say!(
                "bufferbloat-refused-shaper-why",
                cap = rate(self.cap),
                rtt = milliseconds(self.rtt)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::Known;
    use wirespeed_measure::{Direction, RateSweep, RttSummary, SweepStep, Via};
    use wirespeed_words::{Language, within};

    use super::super::CODE;
    use super::super::tests::{soaked, swollen};
    use crate::testing::{only_finding, rtt};
    use crate::{Evidence, Finding, judge};

    fn step(cap: Option<f64>, goodput: f64, loaded: Option<f64>, stable: bool) -> SweepStep {
        SweepStep {
            cap,
            goodput,
            variation: 0.1,
            retransmits: Some(0.0),
            loaded_rtt: loaded,
            stable,
        }
    }

    /// Without a cap.
    fn free(loaded: Option<f64>) -> SweepStep {
        step(None, 96e6, loaded, true)
    }

    /// A cap that was carried steadily.
    fn steady(cap: f64, loaded: f64) -> SweepStep {
        step(Some(cap), cap, Some(loaded), true)
    }

    fn search(direction: Direction, steps: &[SweepStep]) -> RateSweep {
        RateSweep {
            direction,
            capped_by: "TCP pacing".to_owned(),
            steps: steps.to_vec(),
            stable_cap: None,
        }
    }

    /// A download with a queue of 390 ms, idle 11 ms, and such a search.
    fn with(steps: &[SweepStep]) -> Evidence {
        let mut evidence = swollen(0.4, &[Via::Tunnel, Via::Bare]);
        evidence.sweeps = vec![search(Direction::Download, steps)];
        evidence
    }

    fn found(steps: &[SweepStep]) -> Finding {
        only_finding(&with(steps), CODE)
    }

    fn without() -> Finding {
        only_finding(&swollen(0.4, &[Via::Tunnel, Via::Bare]), CODE)
    }

    /// The RTTs of the search among the lines of evidence.
    fn shown(finding: &Finding) -> Vec<f64> {
        let of_the_search = finding
            .evidence
            .iter()
            .filter(|line| line.what.contains("95th"));
        of_the_search
            .filter_map(|line| line.after.as_f64())
            .collect()
    }

    /// As without a search, but for the lines of evidence.
    fn as_without(finding: &Finding) -> bool {
        let evidence = without().evidence;
        Finding {
            evidence: evidence.clone(),
            ..finding.clone()
        } == without()
    }

    #[test]
    fn the_highest_steady_cap_with_a_short_queue_is_the_rate() {
        let finding = found(&[
            free(Some(0.4)),
            step(Some(90e6), 80e6, Some(0.012), false),
            steady(47e6, 0.012),
            steady(68e6, 0.020),
            steady(79e6, 0.150),
            steady(84e6, 0.160),
        ]);
        let remedy = &finding.remedies[0];
        // Of the payload: 68 Mbit/s × 1420 / 1368.
        assert_eq!(remedy.changes[0].value, 70_580_000);
        assert!(remedy.commands[0].contains("70580000"), "{remedy:?}");
        assert!(remedy.title.contains("highest steady"), "{remedy:?}");
        assert_eq!(shown(&finding), [0.4, 0.020, 0.150]);
        assert!(finding.evidence[3].what.contains("68.0 Mbit/s, steady"));
        assert_eq!(
            (finding.confidence, &finding.because, &finding.refused),
            (0.9, &without().because, &Vec::new())
        );
    }

    #[test]
    fn a_caps_round_trip_is_bearable_as_a_loads_is() {
        let value = |loaded: f64| {
            found(&[free(Some(0.4)), steady(80e6, loaded)]).remedies[0].changes[0]
                .value
                .clone()
        };
        assert_eq!(value(0.070), 83_040_000);
        assert_eq!(value(0.072), without().remedies[0].changes[0].value);
    }

    #[test]
    fn without_a_search_of_this_direction_or_its_round_trips_all_is_as_before() {
        let mut evidence = with(&[]);
        evidence.sweeps = vec![search(
            Direction::Upload,
            &[free(Some(0.4)), steady(50e6, 0.012)],
        )];
        assert_eq!(only_finding(&evidence, CODE), without());
        let unknown = step(Some(50e6), 50e6, None, true);
        assert_eq!(found(&[free(None), unknown]), without());
        assert_eq!(found(&[]), without());
    }

    #[test]
    fn a_queue_that_no_cap_makes_short_is_not_the_tunnels_rate_alone() {
        let steps = [
            free(Some(0.4)),
            step(Some(90e6), 80e6, Some(0.41), false),
            steady(47e6, 0.38),
            steady(68e6, 0.39),
        ];
        let finding = found(&steps);
        assert_eq!(finding.remedies, []);
        assert!(finding.refused[0].why.contains("47.0 Mbit/s"));
        assert!(finding.refused[0].why.contains("380 ms"));
        assert!(finding.confidence < 0.75, "{}", finding.confidence);
        assert!(finding.because.starts_with(&without().because));
        assert!(finding.because.contains("No cap that was tried"));
        assert_eq!(shown(&finding), [0.4, 0.38, 0.39]);
        let french = within(Language::French, || judge(&with(&steps)));
        assert!(
            french.findings[0].because.contains("Aucun plafond essayé"),
            "{}",
            french.findings[0].because
        );
    }

    #[test]
    fn a_queue_that_a_cap_makes_shorter_may_yet_be_the_tunnels() {
        let half_way = found(&[free(Some(0.4)), steady(80e6, 0.2)]);
        assert!(as_without(&half_way), "{half_way:?}");
        assert_eq!(shown(&half_way), [0.4, 0.2]);
        // One that was not steady, or that the tunnel hardly felt, proves nothing either way.
        assert!(as_without(&found(&[
            free(Some(0.4)),
            step(Some(80e6), 60e6, Some(0.4), false),
        ])));
        assert!(as_without(&found(&[free(Some(0.4)), steady(94e6, 0.4)])));
        assert!(!as_without(&found(&[free(Some(0.4)), steady(93e6, 0.4)])));
    }

    #[test]
    fn a_round_trip_that_varies_by_itself_is_no_queue_that_stays() {
        let steps = [free(Some(0.4)), steady(80e6, 0.24)];
        assert!(!as_without(&found(&steps)));
        let mut evidence = with(&steps);
        evidence.idle_rtt_tunnel = Known::Value(RttSummary {
            p95: Some(0.1),
            ..rtt(0.011)
        });
        assert!(as_without(&only_finding(&evidence, CODE)));
    }

    #[test]
    fn what_one_connection_fills_only_in_part_must_become_shorter() {
        let before = soaked();
        let value = |steps: &[SweepStep]| {
            let mut evidence = before.clone();
            evidence.sweeps = vec![search(Direction::Upload, steps)];
            let finding = only_finding(&evidence, CODE);
            finding.remedies[0].changes[0].value.clone()
        };
        let plain = only_finding(&before, CODE).remedies[0].changes[0]
            .value
            .clone();
        assert_eq!(value(&[free(Some(0.040)), steady(80e6, 0.014)]), 83_040_000);
        assert_eq!(value(&[free(Some(0.040)), steady(80e6, 0.030)]), plain);
        assert_eq!(value(&[free(Some(0.012)), steady(80e6, 0.011)]), plain);
        assert_eq!(value(&[free(None), steady(80e6, 0.012)]), plain);
    }
}
