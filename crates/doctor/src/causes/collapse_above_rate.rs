//! `collapse-above-rate`: the tunnel carries a rate steadily, and much less when it is asked for more.
//!
//! Known from a sweep of caps: one below what the road carries gives more, or the same far more steadily, with far fewer
//! retransmissions. The loads before it must have shown the same, for one run of a few seconds proves nothing.

use wirespeed_measure::{Direction, RateSweep, SWINGS, SweepStep, Via};
use wirespeed_words::say;

use super::{
    bufferbloat, congestion_control, cpu_saturated, explained, one_core_bound, same_direction,
    socket_overflow,
};
use crate::finding::{self, Cap, Check, Found, Outcome, line, percent, rate, rates_line};
use crate::probe::Probe;
use crate::road;
use crate::view::{DIRECTIONS, median, sender};
use crate::{Evidence, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "collapse-above-rate";

pub(super) const CHECK: Check = Check {
    // What collapses is then the machine, and the rate is only where it does.
    follows_from: |_, cause, own| {
        [
            cpu_saturated::CODE,
            one_core_bound::CODE,
            socket_overflow::CODE,
        ]
        .contains(&cause.code.as_str())
            && (same_direction(cause, own) || cause.direction.is_none())
    },
    slows: |evidence, direction| collapse(evidence, direction).is_some(),
    wants,
    ..Check::new(CODE, || say!("collapse-above-rate-title"), run)
};

/// Asked for where at least this share of the segments is sent again in most loads, though the road without load loses
/// nothing and no queue fills …
const LOSSY: f64 = 0.02;
/// … and the goodput varies by so much from one tenth of a second to the next and from load to load.
const UNSTEADY: f64 = SWINGS;
/// Shorter intervals tell of a burst that waited somewhere, seconds.
const SHORTEST_INTERVAL: f64 = 0.09;
/// No cap beyond so many times the mean is worth a try.
const MOST_ABOVE_MEAN: f64 = 4.0;
/// A cap must give so many times what no cap gave …
const BETTER: f64 = 1.15;
/// … or at least this share of it, while it varies half as much.
const NEARLY_AS_MUCH: f64 = 0.85;
/// With a cap at most this share of the retransmissions is left.
const CALMER: f64 = 1.0 / 3.0;

struct Collapse<'a> {
    direction: Direction,
    sweep: &'a RateSweep,
    /// The runs without a cap, as one.
    free: SweepStep,
    capped: &'a SweepStep,
}

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        if let Some(collapse) = collapse(evidence, direction) {
            outcome.found.push(found(evidence, &collapse));
        } else if undecided(evidence, direction) {
            let open = say!("collapse-above-rate-unknown", direction = direction.word());
            outcome.not_known.push(open);
        }
    }
    outcome
}

fn wants(evidence: &Evidence, direction: Direction) -> Option<Probe> {
    let peak = peak(evidence, direction)?;
    undecided(evidence, direction).then_some(Probe::Sweep { direction, peak })
}

/// The most that any tenth of a second carried, outside or through the tunnel: what collapses carries more for a moment
/// than on the whole.
fn peak(evidence: &Evidence, direction: Direction) -> Option<f64> {
    let mean = road::road_rate(evidence, direction)?;
    let most = [Via::Bare, Via::Tunnel]
        .into_iter()
        .flat_map(|via| evidence.samples(direction, via))
        .flat_map(|sample| &sample.intervals)
        .filter(|interval| interval.seconds >= SHORTEST_INTERVAL)
        .map(|interval| interval.rate)
        .fold(mean, f64::max);
    Some(most.min(MOST_ABOVE_MEAN * mean))
}

/// Suspected, and no cap was tried yet. Loss that comes with the rate alone is no reason to try another congestion control
/// before.
pub(super) fn undecided(evidence: &Evidence, direction: Direction) -> bool {
    suspected(evidence, direction) && evidence.sweep(direction).is_none()
}

fn suspected(evidence: &Evidence, direction: Direction) -> bool {
    let lossless = road::unloaded(evidence, direction).is_some_and(|road| road.losses == 0);
    lossless
        && !evidence.stalled(direction)
        && swings(evidence, direction).is_some_and(|swings| swings >= UNSTEADY)
        && mostly_lossy(evidence, direction)
        && !bufferbloat::queue_fills(evidence, direction)
        && !explained(evidence, direction)
        && !congestion_control::proved(evidence, direction)
}

fn mostly_lossy(evidence: &Evidence, direction: Direction) -> bool {
    let shares = evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| {
            congestion_control::retransmitted_share(evidence, direction, &[sample])
        });
    median(shares).is_some_and(|share| share >= LOSSY)
}

/// Coefficient of variation of the goodput over the intervals of all loads through the tunnel, after their warm-up.
fn swings(evidence: &Evidence, direction: Direction) -> Option<f64> {
    let rates: Vec<f64> = evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .flat_map(|sample| &sample.intervals)
        .filter(|interval| !interval.warm_up && interval.rate.is_finite())
        .map(|interval| interval.rate)
        .collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let square = |rate: &f64| (rate - mean) * (rate - mean);
    let variance = rates.iter().map(square).sum::<f64>() / rates.len() as f64;
    (rates.len() >= 10 && mean > 0.0).then(|| variance.sqrt() / mean)
}

fn collapse(evidence: &Evidence, direction: Direction) -> Option<Collapse<'_>> {
    let sweep = evidence.sweep(direction)?;
    let free = sweep.free()?;
    let capped = sweep
        .steps
        .iter()
        .filter(|step| step.stable && step.cap.is_some())
        .max_by(|one, other| one.goodput.total_cmp(&other.goodput))?;
    let calmer = free
        .retransmits
        .zip(capped.retransmits)
        .is_some_and(|(free, capped)| free > 0.0 && capped <= CALMER * free);
    let loads = evidence.comparison(direction)?.tunnel;
    let more = capped.goodput >= BETTER * free.goodput.max(loads);
    let swung = |variation: f64| variation >= UNSTEADY;
    let steadier = capped.goodput >= NEARLY_AS_MUCH * free.goodput.max(loads)
        && swung(free.variation)
        && swings(evidence, direction).is_some_and(swung)
        && capped.variation <= free.variation / 2.0;
    // A queue that is kept short by a cap is no collapse, and neither is a start that no cap let overshoot.
    let found = (more || steadier)
        && calmer
        && mostly_lossy(evidence, direction)
        && !bufferbloat::queue_fills(evidence, direction);
    found.then_some(Collapse {
        direction,
        sweep,
        free,
        capped,
    })
}

fn found(evidence: &Evidence, collapse: &Collapse<'_>) -> Found {
    let Collapse {
        direction,
        sweep,
        free,
        capped,
    } = collapse;
    let end = sender(*direction);
    let way = direction.word();
    let cap = capped.cap.unwrap_or(capped.goodput);
    let mut lines: Vec<_> = sweep
        .steps
        .iter()
        .map(|step| {
            let by = sweep.capped_by_words();
            line(
                if step.stable {
                    say!("collapse-above-rate-line-steady", by = by, direction = &way)
                } else {
                    say!("collapse-above-rate-line", by = by, direction = &way)
                },
                evidence.interface_at(end),
                step.cap,
                step.goodput,
                "bit/s",
            )
        })
        .collect();
    if let (Some(before), Some(after)) = (free.retransmits, capped.retransmits) {
        lines.push(line(
            say!(
                "collapse-above-rate-line-retransmits",
                cap = rate(cap),
                direction = &way
            ),
            evidence.interface_at(end),
            before,
            after,
            "segments/s",
        ));
    }
    lines.push(line(
        say!(
            "collapse-above-rate-line-variation",
            cap = rate(cap),
            direction = &way
        ),
        evidence.interface_at(end),
        free.variation,
        capped.variation,
        "share",
    ));
    lines.extend(rates_line(evidence, *direction));
    let (remedies, refused) = shaper(evidence, collapse);
    Found {
        severity: Severity::Warning,
        confidence: 0.8,
        effect: (1.0 - free.goodput / capped.goodput.max(1.0)).clamp(0.1, 1.0),
        host: evidence.name(end).to_owned(),
        direction: Some(*direction),
        evidence: lines,
        because: say!(
            "collapse-above-rate-because",
            cap = rate(cap),
            held = rate(capped.goodput),
            held_variation = percent(capped.variation),
            free = rate(free.goodput),
            free_variation = percent(free.variation)
        ),
        remedies,
        refused,
    }
}

fn shaper(evidence: &Evidence, collapse: &Collapse<'_>) -> (Vec<Remedy>, Vec<Refusal>) {
    let Some(payload) = collapse.capped.cap else {
        return (Vec::new(), Vec::new());
    };
    let cap = Cap {
        payload,
        share: 1.0,
        remark: &say!("collapse-above-rate-remedy-remark"),
        goal: Goal::Goodput,
        risk: say!("collapse-above-rate-risk"),
    };
    finding::shaper(evidence, collapse.direction, cap)
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::{Direction, Interval, RateSweep, SweepStep, Via};

    use super::{CODE, wants};
    use crate::probe::Probe;
    use crate::testing::{
        at, codes, core, each_sample, healthy, not_checked, nothing, only_finding, rtt, sequence,
        set_ratio,
    };
    use crate::{End, Evidence, judge};

    fn step(cap: Option<f64>, goodput: f64, variation: f64, retransmits: f64) -> SweepStep {
        SweepStep {
            cap,
            goodput,
            variation,
            retransmits: Some(retransmits),
            loaded_rtt: None,
            stable: variation <= 0.15,
        }
    }

    /// A tunnel that swings between 20 and 80 Mbit/s on a road of 100.
    fn swinging() -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.5);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.retransmits = Some(500);
            sample.congestion_control = Some("bbr".to_owned());
            sample.loaded_rtt = Some(rtt(0.012));
            sample.intervals = [20e6, 80e6, 20e6, 80e6]
                .map(|rate| Interval {
                    start: 0.0,
                    seconds: 0.5,
                    rate,
                    retransmits: None,
                    congestion_window: None,
                    rtt: None,
                    warm_up: false,
                })
                .to_vec();
        });
        evidence
    }

    fn swept(steps: Vec<SweepStep>) -> Evidence {
        let mut evidence = swinging();
        evidence.sweeps.push(RateSweep {
            direction: Direction::Upload,
            capped_by: "TCP pacing".to_owned(),
            steps,
            stable_cap: Some(80e6),
        });
        evidence
    }

    fn has(evidence: &Evidence) -> bool {
        codes(&judge(evidence)).contains(&CODE)
    }

    #[test]
    fn a_cap_that_gives_more_with_fewer_retransmissions_is_found() {
        let free = || step(None, 50e6, 0.2, 300.0);
        assert!(!has(&swept(vec![
            free(),
            step(Some(58e6), 57e6, 0.05, 10.0)
        ])));
        let finding = only_finding(
            &swept(vec![free(), step(Some(80e6), 58e6, 0.05, 10.0)]),
            CODE,
        );
        assert_eq!(finding.remedies[0].changes[0].value, 83_040_000);
        assert!(
            !has(&swept(vec![free(), step(Some(80e6), 78e6, 0.2, 10.0)])),
            "not steady"
        );
        assert!(!has(&swept(vec![
            free(),
            step(Some(80e6), 78e6, 0.05, 150.0)
        ])));
    }

    #[test]
    fn a_run_that_did_well_by_chance_does_not_hide_it() {
        let lucky = || step(None, 55e6, 0.2, 300.0);
        let capped = || step(Some(60e6), 58e6, 0.05, 10.0);
        assert!(!has(&swept(vec![lucky(), capped()])));
        let again = step(None, 45e6, 0.2, 300.0);
        assert!(has(&swept(vec![lucky(), capped(), again])));
    }

    #[test]
    fn retransmissions_must_be_known_and_no_queue_may_fill() {
        let steps = || {
            vec![
                step(None, 50e6, 0.2, 300.0),
                step(Some(80e6), 78e6, 0.05, 10.0),
            ]
        };
        assert!(has(&swept(steps())));
        let mut unknown = steps();
        unknown[0].retransmits = None;
        assert!(!has(&swept(unknown)));
        let mut queue = swept(steps());
        each_sample(&mut queue, Direction::Upload, Via::Tunnel, |sample| {
            sample.loaded_rtt = Some(rtt(0.040));
        });
        assert!(!has(&queue));
    }

    #[test]
    fn the_same_far_more_steadily_is_found_too() {
        let steady = || step(Some(45e6), 44e6, 0.05, 10.0);
        assert!(has(&swept(vec![step(None, 50e6, 0.3, 300.0), steady()])));
        assert!(!has(&swept(vec![step(None, 50e6, 0.29, 300.0), steady()])));
        assert!(!has(&swept(vec![step(None, 53e6, 0.5, 300.0), steady()])));
    }

    #[test]
    fn the_loads_must_have_shown_it_before() {
        let mut evidence = swept(vec![
            step(None, 40e6, 0.5, 300.0),
            step(Some(60e6), 59e6, 0.05, 10.0),
        ]);
        assert!(has(&evidence));
        set_ratio(&mut evidence, Direction::Upload, 0.7);
        assert!(!has(&evidence), "70 Mbit/s without a cap, measured often");
    }

    #[test]
    fn a_sweep_is_asked_for_where_the_goodput_swings_and_nothing_explains_it() {
        let mut evidence = swinging();
        // The 80 Mbit/s of a moment are less than the road's mean.
        let peak = 100e6;
        assert_eq!(
            wants(&evidence, Direction::Upload),
            Some(Probe::Sweep {
                direction: Direction::Upload,
                peak
            })
        );
        assert!(not_checked(&evidence, CODE));
        let mut lossy_road = swinging();
        lossy_road.sequences = vec![sequence(Direction::Upload, 3000, 1)];
        assert_eq!(wants(&lossy_road, Direction::Upload), None);
        let mut queue = swinging();
        each_sample(&mut queue, Direction::Upload, Via::Tunnel, |sample| {
            sample.loaded_rtt = Some(rtt(0.040));
        });
        assert_eq!(wants(&queue, Direction::Upload), None);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.retransmits = Some(300);
        });
        assert_eq!(wants(&evidence, Direction::Upload), None);
        assert_eq!(wants(&healthy(), Direction::Upload), None);
        nothing(&healthy());
    }

    #[test]
    fn a_machine_out_of_processor_is_what_collapses() {
        let mut evidence = swept(vec![
            step(None, 50e6, 0.5, 300.0),
            step(Some(80e6), 78e6, 0.05, 10.0),
        ]);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        only_finding(&evidence, "cpu-saturated");
    }
}
