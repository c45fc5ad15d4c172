//! Evidence to diagnosis: run every check, set consequences under their causes, order, and say it in one word.

use wirespeed_measure::{Comparison, Direction, NotMeasured, Via};
use wirespeed_words::{Language, say, units, within};

use crate::causes::{CHECKS, explains};
use crate::finding::{Found, line, milliseconds, percent, rate, rates_line};
use crate::slow_start;
use crate::trust::without_unreliable;
use crate::view::{DIRECTIONS, FEWEST_PAIRS, comparison_of, median, receiver, sender, way};
use crate::{Diagnosis, Evidence, Finding, Severity, Verdict};

/// Code of the finding that says: slow, and none of the known causes shows.
const UNEXPLAINED: &str = "unexplained";

/// A tunnel that carries less than this share of bare for sure is slow, whatever the checks say.
const SLOW_FOR_SURE: f64 = 0.8;

/// Several connections through the tunnel that carry this share of what one does outside keep up with it.
const KEEPS_UP: f64 = 0.9;

/// A load over fewer round trips than this is slow start and its overshoot for the most part, and each goes another way.
const FEW_ROUND_TRIPS: f64 = 30.0;

/// An interval of tunnel/bare wider than this leaves open what it is.
pub(crate) const TOO_WIDE: f64 = 0.4;

/// What the evidence says. Pure: the same evidence always gives the same diagnosis.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let trusted = without_unreliable(evidence);
    let evidence = trusted.as_ref();
    let mut found: Vec<Weighed> = Vec::new();
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
        let weighed = |costs| move |one| Weighed::new(one, check.code, costs);
        found.extend(outcome.found.into_iter().map(weighed(true)));
        found.extend(outcome.of_no_load.into_iter().map(weighed(false)));
    }
    // What leaves the verdict open comes first.
    let mut left_open = road_unknown(evidence);
    left_open.extend(too_few_pairs(evidence));
    let unexplained: Vec<Direction> = DIRECTIONS
        .into_iter()
        .filter(|direction| !explained(evidence, &found, *direction))
        .collect();
    left_open.extend(
        unexplained
            .iter()
            .filter_map(|direction| unsteady(evidence, *direction)),
    );
    left_open.append(&mut not_checked);
    let slow: Vec<Weighed> = unexplained
        .into_iter()
        .filter(|direction| slow_for_sure(evidence, *direction))
        .map(|direction| unexplained_in(evidence, &found, direction))
        .map(|one| Weighed::new(one, UNEXPLAINED, true))
        .collect();
    found.extend(slow);
    set_consequences(evidence, &mut found);
    let findings = worst_first(found);
    Diagnosis {
        verdict: verdict(evidence, &findings),
        findings,
        not_checked: left_open,
        refused,
    }
}

/// Every code a finding can have, with its title.
pub fn codes() -> Vec<(&'static str, String)> {
    CHECKS
        .iter()
        .map(|check| (check.code, (check.title)()))
        .chain([(UNEXPLAINED, say!("unexplained-title"))])
        .collect()
}

/// Does that leave the verdict open? It does where the tunnel was not compared with its road, or not well enough. It may have
/// been recorded in another language.
pub fn leaves_open(missing: &NotMeasured) -> bool {
    let comparisons = || {
        let of_direction = DIRECTIONS.map(comparison_of);
        of_direction.into_iter().chain([say!("doctor-comparison")])
    };
    missing.what == UNEXPLAINED
        || Language::ALL
            .into_iter()
            .any(|language| within(language, || comparisons().any(|one| one == missing.what)))
}

/// A finding, and what decides how it stands to the others.
struct Weighed {
    finding: Finding,
    /// Confidence times effect.
    weight: f64,
    /// Can it make a load of ours slower?
    costs: bool,
}

impl Weighed {
    fn new(found: Found, code: &str, costs: bool) -> Self {
        Self {
            weight: found.confidence * found.effect,
            finding: found.with_code(code),
            costs,
        }
    }
}

/// What is only a consequence comes after everything that is a cause. Of the same weight, the order stays.
fn worst_first(found: Vec<Weighed>) -> Vec<Finding> {
    let mut found: Vec<(usize, Weighed)> = found.into_iter().enumerate().collect();
    found.sort_by(|(_, one), (_, other)| {
        let (a, b) = (&one.finding, &other.finding);
        a.consequence_of
            .is_some()
            .cmp(&b.consequence_of.is_some())
            .then(b.severity.cmp(&a.severity))
            .then(other.weight.total_cmp(&one.weight))
    });
    let before: Vec<usize> = found.iter().map(|(before, _)| *before).collect();
    found
        .into_iter()
        .map(|(_, Weighed { mut finding, .. })| {
            let moved = |cause: usize| before.iter().position(|one| *one == cause);
            finding.cause_index = finding.cause_index.and_then(moved);
            finding
        })
        .collect()
}

/// Puts every finding under the one that nothing else explains, so that it is shown, and with that one's severity at most.
fn set_consequences(evidence: &Evidence, found: &mut [Weighed]) {
    let all: Vec<Finding> = found.iter().map(|one| one.finding.clone()).collect();
    let causes: Vec<Option<usize>> = (0..all.len())
        .map(|effect| cause_of(evidence, &all, effect))
        .collect();
    for (at, Weighed { finding, .. }) in found.iter_mut().enumerate() {
        let mut root = at;
        let mut steps = 0;
        while let Some(cause) = causes[root].filter(|_| steps <= all.len()) {
            root = cause;
            steps += 1;
        }
        // In a circle nothing is the cause.
        if root != at && steps <= all.len() {
            finding.consequence_of = Some(all[root].code.clone());
            finding.cause_index = Some(root);
            finding.severity = finding.severity.min(all[root].severity);
        }
    }
}

/// The first that explains a finding. Where several have the code of that one, each on another machine or in another
/// direction, the finding's own.
fn cause_of(evidence: &Evidence, all: &[Finding], at: usize) -> Option<usize> {
    let effect = &all[at];
    let explaining: Vec<usize> = (0..all.len())
        .filter(|other| {
            let cause = &all[*other];
            // What is for information only would hide what is more than that.
            *other != at
                && cause.severity >= effect.severity.min(Severity::Warning)
                && explains(evidence, cause, effect)
        })
        .collect();
    let first = &all[*explaining.first()?];
    explaining
        .into_iter()
        .filter(|other| all[*other].code == first.code)
        .min_by_key(|other| {
            let cause = &all[*other];
            (
                cause.host != effect.host,
                cause.direction != effect.direction,
            )
        })
}

fn verdict(evidence: &Evidence, findings: &[Finding]) -> Verdict {
    let clear = |direction| evidence.settled(direction) && unsteady(evidence, direction).is_none();
    if !findings.is_empty() {
        Verdict::Findings
    } else if DIRECTIONS.into_iter().all(clear) {
        Verdict::Healthy
    } else {
        Verdict::Unmeasured
    }
}

/// Directions in which nobody knows what the road carries without the tunnel.
fn road_unknown(evidence: &Evidence) -> Vec<NotMeasured> {
    DIRECTIONS
        .into_iter()
        .filter(|direction| !evidence.settled(*direction))
        .filter_map(|direction| {
            let because = evidence.comparison(direction)?.bare_unknown.as_ref()?;
            Some(NotMeasured {
                what: comparison_of(direction),
                because: say!("doctor-comparison-road", because = because),
            })
        })
        .collect()
}

/// Directions in which a difference between tunnel and bare could not be proved, whatever the figures are.
fn too_few_pairs(evidence: &Evidence) -> Vec<NotMeasured> {
    DIRECTIONS
        .into_iter()
        .filter(|direction| !evidence.stalled(*direction))
        .filter_map(|direction| {
            let comparison = evidence.comparison(direction)?;
            let pairs = comparison.pairs.len();
            let too_few = comparison.bare_unknown.is_none() && pairs < FEWEST_PAIRS;
            too_few.then(|| NotMeasured {
                what: comparison_of(direction),
                because: say!(
                    "doctor-comparison-pairs",
                    pairs = pairs,
                    least = FEWEST_PAIRS
                ),
            })
        })
        .collect()
}

/// Does the tunnel carry less than [`SLOW_FOR_SURE`] of bare in this direction, though nothing says why? Of five pairs the
/// bootstrap's interval reaches from the lowest to the highest and no farther, and where they are far apart, as in the slow
/// starts of a long road, all of them are low by chance often enough: half of the interval's width has to be left.
fn slow_for_sure(evidence: &Evidence, direction: Direction) -> bool {
    let beyond_chance = |comparison: &Comparison| {
        let (low, high) = (comparison.ratio_low?, comparison.ratio_high?);
        Some(high + (high - low) / 2.0 < SLOW_FOR_SURE)
    };
    evidence.stalled(direction)
        || (evidence.settled(direction)
            && evidence.comparison(direction).and_then(beyond_chance) == Some(true))
}

/// Where a direction may be slow or healthy: nothing was found there, but not because all is well for sure.
fn unsteady(evidence: &Evidence, direction: Direction) -> Option<NotMeasured> {
    if !evidence.settled(direction) || slow_for_sure(evidence, direction) {
        return None;
    }
    let comparison = evidence.comparison(direction)?;
    let (low, high) = (comparison.ratio_low?, comparison.ratio_high?);
    let too_wide = low < SLOW_FOR_SURE && high - low > TOO_WIDE;
    let rather_slow = comparison.ratio? < SLOW_FOR_SURE;
    (too_wide || rather_slow).then(|| NotMeasured {
        what: UNEXPLAINED.to_owned(),
        because: too_unsteady(evidence, comparison, (low, high)),
    })
}

/// Where several connections carry as much as one does outside, one varies for its own reasons: say that much. Where the road
/// is long for loads as short as these, that is a reason, too.
fn too_unsteady(evidence: &Evidence, comparison: &Comparison, (low, high): (f64, f64)) -> String {
    let direction = comparison.direction;
    let bare = comparison.bare.unwrap_or(f64::INFINITY);
    let together = evidence.together(direction);
    match together.filter(|together| together.rate >= KEEPS_UP * bare) {
        Some(together) => say!(
            "unexplained-unsteady-one",
            direction = direction.word(),
            low = percent(low),
            high = percent(high),
            streams = together.load.streams,
            together = rate(together.rate),
            bare = rate(bare)
        ),
        None => match short_for_the_road(evidence, comparison) {
            Some((load, round_trip)) => say!(
                "unexplained-unsteady-long",
                direction = direction.word(),
                low = percent(low),
                high = percent(high),
                load = units::fixed(load, 1, "s"),
                trips = (load / round_trip).round() as u64,
                rtt = milliseconds(round_trip)
            ),
            None => say!(
                "unexplained-unsteady",
                direction = direction.word(),
                low = percent(low),
                high = percent(high)
            ),
        },
    }
}

/// The length of the loads and of a round trip, seconds, where the first is few of the second.
fn short_for_the_road(evidence: &Evidence, comparison: &Comparison) -> Option<(f64, f64)> {
    let lengths = comparison.of(Via::Tunnel).map(|sample| &sample.load);
    let load = median(lengths.map(|load| load.warm_up + load.seconds))?;
    let round_trip = slow_start::round_trip(evidence);
    let few = round_trip > 0.0 && load < FEW_ROUND_TRIPS * round_trip;
    few.then_some((load, round_trip))
}

/// Was something found that explains a slow tunnel in this direction? What is for information only does not.
fn explained(evidence: &Evidence, found: &[Weighed], direction: Direction) -> bool {
    // What was found the other way may explain this one, too, where there was no time to tell whether it does.
    let open = |code: &String| {
        let mut no_time = evidence.no_time.iter();
        no_time.any(|one| one.direction == direction && one.by.contains(code))
    };
    found.iter().any(|Weighed { finding, costs, .. }| {
        *costs
            && finding.severity > Severity::Info
            && (finding.direction.is_none_or(|of| of == direction) || open(&finding.code))
    })
}

/// A tunnel at less than [`SLOW_FOR_SURE`] of bare is not healthy only because no check knows why; each direction by itself.
fn unexplained_in(evidence: &Evidence, found: &[Weighed], direction: Direction) -> Found {
    let (from, to) = (
        evidence.name(sender(direction)),
        evidence.name(receiver(direction)),
    );
    let again: u64 = evidence
        .samples(direction, Via::Tunnel)
        .iter()
        .filter_map(|sample| sample.retransmits)
        .fold(0, u64::saturating_add);
    let mut lines: Vec<_> = rates_line(evidence, direction).into_iter().collect();
    lines.push(line(
        say!("unexplained-line-again", direction = direction.word()),
        from,
        (),
        again,
        "segments",
    ));
    for asked in evidence
        .asked
        .iter()
        .filter(|one| one.direction == direction)
    {
        let not_found = |code: &&String| found.iter().all(|one| &one.finding.code != *code);
        let ruled_out: Vec<&str> = asked
            .by
            .iter()
            .filter(not_found)
            .map(String::as_str)
            .collect();
        if !ruled_out.is_empty() {
            lines.push(line(
                &asked.what,
                way(from, to),
                (),
                say!("unexplained-line-no-sign", codes = ruled_out.join(", ")),
                "",
            ));
        }
    }
    Found {
        severity: if evidence.crippled(direction) {
            Severity::Critical
        } else {
            Severity::Warning
        },
        confidence: 0.5,
        effect: evidence.lost_share(direction),
        host: from.to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: if evidence.stalled(direction) {
            say!("unexplained-because-stalls", from = from, to = to)
        } else {
            say!(
                "unexplained-because",
                from = from,
                to = to,
                lost = percent(evidence.lost_share(direction))
            )
        },
        remedies: Vec::new(),
        refused: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
