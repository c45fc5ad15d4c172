//! From samples to kept or put back: a pure function.
//!
//! Kept only if the interval of the paired gain excludes zero on the good side, the gain is worth a change, and no
//! guard got worse. A guard compares like with like: while B carries far more than A did, the queue it fills and
//! the packets it loses are those of a load that A never had, so such a guard is not comparable, and holds.

use wirespeed_doctor::Goal;
use wirespeed_measure::statistics::{absolute_gain, median};
use wirespeed_measure::{Estimate, Sample};
use wirespeed_words::{say, units};

use crate::Guard;

/// Goodput gains below this share are not worth a change.
const LEAST_GOODPUT_GAIN: f64 = 0.01;
/// Loaded RTT gains below this share, or below the seconds after it, are not worth a change.
const LEAST_RTT_GAIN: f64 = 0.05;
const LEAST_RTT_GAIN_SECONDS: f64 = 0.001;
/// A shorter queue may cost this share of the goodput.
const GOODPUT_HELD: f64 = 0.85;
/// Loads that differ by more than this factor are not comparable.
const ALIKE: f64 = 1.25;
/// Loaded RTT may grow by this factor and these seconds.
const RTT_FACTOR: f64 = 1.2;
const RTT_SECONDS: f64 = 0.005;
/// The share of packets dropped may grow by this factor and this share.
const DROPS_FACTOR: f64 = 1.5;
const DROPS_SHARE: f64 = 0.005;
/// CPU time per byte may grow by this factor, or use these further cores.
const CPU_FACTOR: f64 = 1.15;
const CPU_CORES: f64 = 0.05;
const SEED: u64 = 20_240_229;

/// One pair: A (as it was) and B (changed) in turn, one sample per direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// As it was.
    pub a: Vec<Sample>,
    /// Changed.
    pub b: Vec<Sample>,
}

/// What the pairs say.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Unit of gain and medians: `bit/s` or `s`.
    pub unit: &'static str,
    /// Median without the change.
    pub before: f64,
    /// Median with it.
    pub after: f64,
    /// Median gain with its interval; `None` when fewer than two pairs could be compared.
    pub gain: Option<Estimate>,
    /// What must not get worse.
    pub guards: Vec<Guard>,
    /// Kept, or put back?
    pub kept: bool,
    /// Better by the median but not proved: more pairs may tell.
    pub open: bool,
    /// Why.
    pub why: String,
}

/// Decides on the pairs taken so far.
pub fn decide(goal: Goal, trials: &[Trial]) -> Decision {
    let figure = match goal {
        Goal::Goodput => goodput,
        Goal::LoadedRtt => loaded_rtt,
    };
    let pairs: Vec<(f64, f64)> = pairs(trials, figure);
    let before = median_of(&pairs, |pair| pair.0);
    let after = median_of(&pairs, |pair| pair.1);
    // A lower RTT is a positive gain.
    let signed: Vec<(f64, f64)> = match goal {
        Goal::Goodput => pairs,
        Goal::LoadedRtt => pairs.iter().map(|(a, b)| (-a, -b)).collect(),
    };
    let gain = absolute_gain(&signed, SEED);
    let guards = guards(goal, trials);
    let worth = worth(goal, before, gain);
    let proved = gain.is_some_and(|gain| gain.low > 0.0);
    let seen = Seen {
        pairs: signed.len(),
        of: trials.len(),
        proved,
        worth,
    };
    let why = why(goal, gain, &seen, &guards);
    Decision {
        unit: match goal {
            Goal::Goodput => "bit/s",
            Goal::LoadedRtt => "s",
        },
        before,
        after,
        gain,
        kept: proved && worth && guards.iter().all(|guard| guard.held),
        open: !proved && worth && gain.is_some_and(|gain| gain.value > 0.0),
        guards,
        why,
    }
}

/// What was seen of the pairs, but for the gain.
struct Seen {
    /// Pairs that could be compared.
    pairs: usize,
    /// Pairs taken.
    of: usize,
    proved: bool,
    worth: bool,
}

/// The reason in words, in the language of the moment.
fn why(goal: Goal, gain: Option<Estimate>, seen: &Seen, guards: &[Guard]) -> String {
    let pairs = seen.pairs;
    let Some(gain) = gain else {
        return say!("tune-why-too-few", pairs = pairs, of = seen.of);
    };
    if gain.high < 0.0 {
        return say!("tune-why-worse", pairs = pairs);
    }
    if !seen.proved {
        return say!("tune-why-not-proved", pairs = pairs);
    }
    if !seen.worth {
        return match goal {
            Goal::Goodput => say!(
                "tune-why-little-goodput",
                least = units::percent(LEAST_GOODPUT_GAIN)
            ),
            Goal::LoadedRtt => {
                say!(
                    "tune-why-little-rtt",
                    least = units::percent(LEAST_RTT_GAIN)
                )
            }
        };
    }
    let named = |these: &dyn Fn(&Guard) -> bool| -> Vec<String> {
        let these = guards.iter().filter(|guard| these(guard));
        these.map(|guard| guard_word(&guard.name)).collect()
    };
    let worse = named(&|guard| !guard.held);
    if let Some(worse) = worse
        .into_iter()
        .reduce(|one, other| say!("doctor-both", one = one, other = other))
    {
        return say!("tune-why-price", guards = worse);
    }
    let apart = named(&|guard| !guard.comparable);
    if apart.is_empty() {
        say!("tune-why-kept", pairs = pairs)
    } else {
        say!(
            "tune-why-kept-apart",
            pairs = pairs,
            guards = apart.join(", ")
        )
    }
}

/// A guard as people read it.
pub fn guard_word(name: &str) -> String {
    match name {
        "loaded-rtt" => say!("tune-guard-loaded-rtt"),
        "goodput" => say!("tune-guard-goodput"),
        "drops" => say!("tune-guard-drops"),
        "cpu-per-byte" => say!("tune-guard-cpu-per-byte"),
        other => other.to_owned(),
    }
}

fn worth(goal: Goal, before: f64, gain: Option<Estimate>) -> bool {
    gain.is_some_and(|gain| match goal {
        Goal::Goodput => gain.value >= LEAST_GOODPUT_GAIN * before,
        Goal::LoadedRtt => gain.value >= (LEAST_RTT_GAIN * before).max(LEAST_RTT_GAIN_SECONDS),
    })
}

fn guards(goal: Goal, trials: &[Trial]) -> Vec<Guard> {
    let goodputs = pairs(trials, goodput);
    let (slow, fast) = (
        median_of(&goodputs, |pair| pair.0),
        median_of(&goodputs, |pair| pair.1),
    );
    // Less goodput with the change is no excuse: only a larger load explains a fuller queue.
    let alike = slow > 0.0 && fast <= slow * ALIKE;
    let mut guards = Vec::new();
    match goal {
        Goal::Goodput => guards.extend(guard(
            "loaded-rtt",
            "s",
            &pairs(trials, loaded_rtt),
            alike,
            |a, b| b <= a * RTT_FACTOR + RTT_SECONDS,
        )),
        Goal::LoadedRtt => {
            guards.extend(guard("goodput", "bit/s", &goodputs, true, |a, b| {
                b >= a * GOODPUT_HELD
            }));
        }
    }
    let drops: fn(&[Sample]) -> Option<f64> = match goal {
        Goal::Goodput => |samples| drop_share(samples, true),
        // What a shaper drops at the head of its short queue is how it works.
        Goal::LoadedRtt => |samples| drop_share(samples, false),
    };
    guards.extend(guard(
        "drops",
        "share",
        &pairs(trials, drops),
        alike,
        |a, b| b <= a * DROPS_FACTOR + DROPS_SHARE,
    ));
    let cpu = pairs(trials, cpu_per_byte);
    // Noise of other programs comes and goes; a price of the change is there in nearly every pair.
    let always = absolute_gain(&cpu, SEED).is_some_and(|gain| gain.low > 0.0);
    guards.extend(guard("cpu-per-byte", "s/byte", &cpu, alike, |a, b| {
        !always || b <= a * CPU_FACTOR || (b - a) * fast / 8.0 < CPU_CORES
    }));
    guards
}

fn guard(
    name: &str,
    unit: &str,
    pairs: &[(f64, f64)],
    comparable: bool,
    holds: impl Fn(f64, f64) -> bool,
) -> Option<Guard> {
    if pairs.is_empty() {
        return None;
    }
    let (before, after) = (
        median_of(pairs, |pair| pair.0),
        median_of(pairs, |pair| pair.1),
    );
    Some(Guard {
        name: name.to_owned(),
        before,
        after,
        unit: unit.to_owned(),
        comparable,
        held: !comparable || holds(before, after),
    })
}

/// The pairs both of whose sides have the figure.
fn pairs(trials: &[Trial], figure: impl Fn(&[Sample]) -> Option<f64>) -> Vec<(f64, f64)> {
    trials
        .iter()
        .filter_map(|trial| Some((figure(&trial.a)?, figure(&trial.b)?)))
        .filter(|(a, b)| a.is_finite() && b.is_finite())
        .collect()
}

fn median_of(pairs: &[(f64, f64)], side: impl Fn(&(f64, f64)) -> f64) -> f64 {
    median(&pairs.iter().map(side).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// Mean of the directions; a direction that moved nothing counts as nothing.
fn goodput(samples: &[Sample]) -> Option<f64> {
    let rates: Vec<f64> = samples
        .iter()
        .map(|sample| if sample.stalled { 0.0 } else { sample.rate })
        .collect();
    mean(&rates)
}

/// Mean of the directions' medians.
fn loaded_rtt(samples: &[Sample]) -> Option<f64> {
    let medians: Vec<f64> = samples
        .iter()
        .map(|sample| sample.loaded_rtt.as_ref()?.median)
        .collect::<Option<_>>()?;
    mean(&medians)
}

/// Packets dropped at either end by sockets and links (and queueing disciplines), as a share of the packets moved.
fn drop_share(samples: &[Sample], with_qdiscs: bool) -> Option<f64> {
    let (mut dropped, mut moved) = (0_u64, 0_u64);
    for delta in samples
        .iter()
        .flat_map(|sample| std::iter::once(&sample.here).chain(&sample.far))
    {
        dropped += delta.socket_drops.values().sum::<u64>();
        for link in delta.links.values() {
            dropped += link.rx_dropped + link.tx_dropped;
            moved += link.rx_packets + link.tx_packets;
        }
        if with_qdiscs {
            dropped += delta.qdiscs.values().map(|qdisc| qdisc.drops).sum::<u64>();
        }
    }
    (moved > 0).then(|| dropped as f64 / moved as f64)
}

/// Busy time of all cores at both ends over the bytes that arrived.
fn cpu_per_byte(samples: &[Sample]) -> Option<f64> {
    let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
    let busy: f64 = samples
        .iter()
        .flat_map(|sample| std::iter::once(&sample.here).chain(&sample.far))
        .flat_map(|delta| &delta.cores)
        .map(|core| core.user + core.system + core.irq + core.softirq)
        .sum();
    (bytes > 0).then(|| busy / bytes as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_facts::{CoreTime, CountersDelta, LinkCounters};
    use wirespeed_measure::Direction;

    use super::*;
    use crate::testing::sample;

    fn trials(pairs: &[(f64, f64)], change: impl Fn(&mut Sample, bool)) -> Vec<Trial> {
        let side = |rate: f64, changed: bool| {
            let mut sample = sample(Direction::Upload, rate, 0.020);
            change(&mut sample, changed);
            vec![sample]
        };
        pairs
            .iter()
            .map(|&(a, b)| Trial {
                a: side(a, false),
                b: side(b, true),
            })
            .collect()
    }

    const CLEAR: [(f64, f64); 5] = [
        (100e6, 118e6),
        (104e6, 121e6),
        (97e6, 119e6),
        (101e6, 122e6),
        (99e6, 117e6),
    ];
    const NONE: [(f64, f64); 5] = [
        (100e6, 103e6),
        (100e6, 96e6),
        (100e6, 101e6),
        (100e6, 99e6),
        (100e6, 100e6),
    ];

    #[test]
    fn a_clear_gain_is_kept() {
        let decision = decide(Goal::Goodput, &trials(&CLEAR, |_, _| {}));
        assert!(decision.kept, "{decision:?}");
        assert!(decision.gain.unwrap().low >= 17e6);
        assert!((decision.before - 100e6).abs() < 1.0 && (decision.after - 119e6).abs() < 1.0);
        assert!(
            decision
                .guards
                .iter()
                .all(|guard| guard.held && guard.comparable)
        );
    }

    #[test]
    fn no_gain_is_not_proved_and_a_loss_is_said_to_be_one() {
        let decision = decide(Goal::Goodput, &trials(&NONE, |_, _| {}));
        assert!(
            !decision.kept && decision.why.contains("not proved"),
            "{}",
            decision.why
        );
        let backwards: Vec<_> = CLEAR.iter().map(|&(a, b)| (b, a)).collect();
        let decision = decide(Goal::Goodput, &trials(&backwards, |_, _| {}));
        assert!(
            !decision.kept && decision.why.contains("worse"),
            "{}",
            decision.why
        );
    }

    #[test]
    fn a_proved_gain_below_one_percent_is_not_worth_it() {
        let pairs = [
            (100e6, 100.6e6),
            (100e6, 100.7e6),
            (100e6, 100.5e6),
            (100e6, 100.6e6),
            (100e6, 100.8e6),
        ];
        let decision = decide(Goal::Goodput, &trials(&pairs, |_, _| {}));
        assert!(
            !decision.kept && decision.why.contains("not worth"),
            "{}",
            decision.why
        );
        assert!(!decision.open, "more pairs would not make it worth more");
    }

    #[test]
    fn a_promising_median_is_open() {
        let pairs = [
            (100e6, 120e6),
            (100e6, 118e6),
            (100e6, 96e6),
            (100e6, 121e6),
            (100e6, 117e6),
        ];
        let decision = decide(Goal::Goodput, &trials(&pairs, |_, _| {}));
        assert!(!decision.kept && decision.open);
    }

    #[test]
    fn a_longer_queue_under_the_same_load_is_a_price() {
        let decision = decide(
            Goal::Goodput,
            &trials(&CLEAR, |sample, changed| {
                sample.loaded_rtt.as_mut().unwrap().median =
                    Some(if changed { 0.060 } else { 0.020 });
            }),
        );
        assert!(
            !decision.kept && decision.why.contains("round trip under load"),
            "{}",
            decision.why
        );
    }

    #[test]
    fn a_stalled_before_has_no_queue_to_compare_with() {
        let decision = decide(
            Goal::Goodput,
            &trials(&[(1e5, 188e6); 5], |sample, changed| {
                sample.stalled = !changed;
                sample.loaded_rtt.as_mut().unwrap().median =
                    Some(if changed { 0.200 } else { 0.001 });
            }),
        );
        assert!(decision.kept, "{}", decision.why);
        assert!(
            decision.before.abs() < f64::EPSILON
                && !decision.guards[0].comparable
                && decision.guards[0].held
        );
    }

    #[test]
    fn a_shorter_queue_is_kept_while_the_goodput_holds() {
        let shorter = |goodput: f64| {
            decide(
                Goal::LoadedRtt,
                &trials(&[(100e6, goodput); 5], |sample, changed| {
                    sample.loaded_rtt.as_mut().unwrap().median =
                        Some(if changed { 0.030 } else { 0.200 });
                }),
            )
        };
        let decision = shorter(92e6);
        assert!(decision.kept && decision.unit == "s", "{decision:?}");
        assert!((decision.gain.unwrap().value - 0.170).abs() < 1e-9);
        let decision = shorter(80e6);
        assert!(
            !decision.kept && decision.why.contains("goodput got worse"),
            "{}",
            decision.why
        );
    }

    #[test]
    fn drops_and_cpu_are_guards() {
        let with = |drops: u64, busy: f64| {
            decide(
                Goal::Goodput,
                &trials(&CLEAR, |sample, changed| {
                    let link = LinkCounters {
                        rx_packets: 100_000,
                        rx_dropped: if changed { drops } else { 0 },
                        ..LinkCounters::default()
                    };
                    let core = CoreTime {
                        system: if changed { busy } else { 1.0 } * sample.bytes as f64 / 1e8,
                        ..CoreTime::default()
                    };
                    sample.here = CountersDelta {
                        links: [("wg0".to_owned(), link)].into(),
                        cores: vec![core],
                        ..CountersDelta::default()
                    };
                }),
            )
        };
        assert!(with(100, 1.1).kept);
        assert!(with(3000, 1.1).why.contains("drops"));
        assert!(with(100, 1.6).why.contains("processor time per byte"));
    }

    #[test]
    fn without_replies_there_is_no_decision_on_the_queue() {
        let decision = decide(
            Goal::LoadedRtt,
            &trials(&CLEAR, |sample, _| sample.loaded_rtt = None),
        );
        assert!(
            !decision.kept && decision.gain.is_none() && decision.why.contains("0 of 5"),
            "{}",
            decision.why
        );
        assert!(!decide(Goal::Goodput, &[]).kept);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn what_is_kept_is_proved(pairs in prop::collection::vec((0.0..1e9f64, 0.0..1e9f64), 0..10)) {
            let decision = decide(Goal::Goodput, &trials(&pairs, |_, _| {}));
            if decision.kept {
                prop_assert!(decision.gain.unwrap().low > 0.0);
                prop_assert!(decision.guards.iter().all(|guard| guard.held));
                prop_assert!(decision.after > 0.0);
            }
            prop_assert!(!(decision.kept && decision.open));
            prop_assert!(decision.before.is_finite() && decision.after.is_finite());
        }

        #[test]
        fn the_same_pairs_turned_round_are_never_both_kept(pairs in prop::collection::vec((1e6..1e9f64, 1e6..1e9f64), 2..10)) {
            let round: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let one = decide(Goal::Goodput, &trials(&pairs, |_, _| {}));
            let other = decide(Goal::Goodput, &trials(&round, |_, _| {}));
            prop_assert!(!(one.kept && other.kept));
        }
    }
}
