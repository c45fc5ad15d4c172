//! `irq-placement`: the card's interrupts go to the wrong cores, or to others from one minute to the next.
//!
//! Two shapes. One core gets the interrupts of several queues and is full while the others have room. Or irqbalance moves
//! them between the samples, and the tunnel is fast with one core and slow with another. Known from the interrupts' counts
//! per core (`/sys/kernel/irq/*/per_cpu_count`, as `/proc/interrupts`) during the loads.

use std::collections::BTreeMap;

use serde_json::json;
use wirespeed_measure::Via;
use wirespeed_settings::Setting;

use super::cpu_saturated::held_back;
use super::{names_host, one_core_bound, same_direction};
use crate::cards::{self, Card, core_numbers, list, sum};
use crate::cores;
use crate::finding::{Check, Found, Outcome, line, percent, rates_line, remedy_of};
use crate::losses::{self, Period};
use crate::view::{ENDS, median, moved, word};
use crate::{Change, End, Evidence, EvidenceLine, Finding, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "irq-placement";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, "The card's interrupts go to the wrong cores", run)
};

/// Fewer interrupts than this say nothing of where they go.
const FEWEST: u64 = 1000;
/// Share of the card's interrupts on one core from which they are all there.
const ALL: f64 = 0.9;
/// Share of the card's interrupts from which a queue's is in use.
const IN_USE: f64 = 0.1;
/// A core with this share had most of a sample's.
const MOST: f64 = 0.6;
/// Samples with the faster core are at least so many times as fast as all with the slower.
const FASTER: f64 = 1.25;
/// Samples with each core from which chance is unlikely, and from which it is very unlikely.
const FEW: usize = 2;
const ENOUGH: usize = 3;
/// Interrupts that are given cores of their own at once.
const MOST_MOVED: usize = 32;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        for card in cards::of(evidence, end) {
            let found = crowded(evidence, end, &card).or_else(|| wandering(evidence, end, &card));
            outcome.found.extend(found);
        }
    }
    outcome
}

/// The full core is the one with the interrupts.
fn brings(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    cause.severity >= Severity::Warning
        && effect.code == one_core_bound::CODE
        && (same_direction(cause, effect) || effect.direction.is_none())
        && names_host(evidence, cause, &effect.host)
}

/// The place of the core with most, and its share.
fn largest(by_core: &[u64]) -> Option<(usize, f64)> {
    let all = sum(by_core.iter().copied());
    let (core, most) = by_core
        .iter()
        .enumerate()
        .max_by_key(|(_, count)| **count)?;
    (all >= 1).then(|| (core, *most as f64 / all as f64))
}

/// Several queues, and one core for all of them, which is full.
fn crowded(evidence: &Evidence, end: End, card: &Card<'_>) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    periods.iter().find_map(|period| {
        let direction = period.direction?;
        let by_core = card.interrupts_by_core(&period.readings)?;
        let all = sum(by_core.iter().copied());
        let (core, share) = largest(&by_core)?;
        let queues = in_use(card, period, all);
        let cores = cores::of(evidence, end, direction)?;
        let full = cores.each.get(core).copied()? >= cores.busiest;
        let fits = all >= FEWEST
            && share >= ALL
            && queues.len() >= 2
            && full
            && one_core_bound::fits(evidence, end, direction)
            && held_back(evidence, direction);
        fits.then(|| {
            let facts = evidence.facts(end)?;
            let number = core_numbers(facts, by_core.len()).get(core).copied()?;
            let mut lines = lines(evidence, end, card, period);
            lines.extend(cores.lines(evidence, end, direction));
            lines.extend(rates_line(evidence, direction));
            Some(Found {
                severity: losses::severity(evidence, &[direction]),
                confidence: 0.75,
                effect: evidence.lost_share(direction),
                host: evidence.name(end).to_owned(),
                direction: Some(direction),
                evidence: lines,
                because: format!(
                    "{} of the interrupts of {}, from {} queues, go to core {number}, which is {} busy while the others have room.",
                    percent(share),
                    card.name,
                    queues.len(),
                    percent(cores.busiest)
                ),
                remedies: spread(evidence, end, card, &queues).into_iter().collect(),
                refused: vec![whatever_irqbalance_does(evidence, end)],
            })
        })?
    })
}

/// Interrupts of the card that came often.
fn in_use(card: &Card<'_>, period: &Period<'_>, all: u64) -> Vec<u32> {
    card.each_interrupt(&period.readings)
        .into_iter()
        .filter(|(_, counts)| sum(counts.iter().copied()) as f64 >= IN_USE * all as f64)
        .map(|(number, _)| number)
        .collect()
}

/// Moved from one core to another between the samples, and the rate with them.
fn wandering(evidence: &Evidence, end: End, card: &Card<'_>) -> Option<Found> {
    let facts = evidence.facts(end)?;
    if facts.hardware.irqbalance.value() != Some(&true) {
        return None;
    }
    crate::view::DIRECTIONS.into_iter().find_map(|direction| {
        let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut count = 0;
        for sample in evidence.samples(direction, Via::Tunnel) {
            let Some(reading) = moved(sample, end) else {
                continue;
            };
            if let Some(by_core) = card.interrupts_by_core(&[reading])
                && sum(by_core.iter().copied()) >= FEWEST
                && let Some((core, share)) = largest(&by_core)
                && share >= MOST
                && sample.rate.is_finite()
            {
                count = by_core.len();
                rates.entry(core).or_default().push(sample.rate);
            }
        }
        rates.retain(|_, rates| rates.len() >= FEW);
        let (slow, fast) = apart(&rates)?;
        let numbers = core_numbers(facts, count);
        let (slow_core, fast_core) = (*numbers.get(slow)?, *numbers.get(fast)?);
        let (slow, fast) = (&rates[&slow], &rates[&fast]);
        let certain = slow.len() >= ENOUGH && fast.len() >= ENOUGH;
        let (slow_rate, fast_rate) = (
            median(slow.iter().copied())?,
            median(fast.iter().copied())?,
        );
        let mut lines = vec![line(
            format!(
                "TCP goodput through the tunnel, {}, with the interrupts on core {slow_core} ({} samples) and on core {fast_core} ({} samples)",
                word(direction),
                slow.len(),
                fast.len()
            ),
            format!("{} on {}", card.name, evidence.name(end)),
            slow_rate,
            fast_rate,
            "bit/s",
        )];
        lines.push(line("irqbalance runs", evidence.name(end), (), true, ""));
        Some(Found {
            severity: if certain { Severity::Warning } else { Severity::Info },
            confidence: if certain { 0.6 } else { 0.4 },
            effect: (1.0 - slow_rate / fast_rate).clamp(0.0, 1.0),
            host: evidence.name(end).to_owned(),
            direction: Some(direction),
            evidence: lines,
            because: format!(
                "irqbalance moved the interrupts of {} between the samples, and the tunnel was slower in every one with them on core {slow_core} than in any with them on core {fast_core}.",
                card.name
            ),
            remedies: pin(evidence, end, card, fast_core).into_iter().collect(),
            refused: vec![whatever_irqbalance_does(evidence, end)],
        })
    })
}

/// Two cores, the slower first: every sample with the one is slower by far than any with the other.
fn apart(rates: &BTreeMap<usize, Vec<f64>>) -> Option<(usize, usize)> {
    let lowest = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let fast = rates
        .iter()
        .max_by(|a, b| lowest(a.1).total_cmp(&lowest(b.1)))?;
    rates
        .iter()
        .find(|(core, slow)| {
            *core != fast.0 && lowest(fast.1) >= FASTER * highest(slow) && highest(slow) > 0.0
        })
        .map(|(slow, _)| (*slow, *fast.0))
}

fn lines(evidence: &Evidence, end: End, card: &Card<'_>, period: &Period<'_>) -> Vec<EvidenceLine> {
    let when = period.direction.map_or("watched", word);
    card.each_interrupt(&period.readings)
        .into_iter()
        .take(8)
        .filter_map(|(number, counts)| {
            let (core, share) = largest(&counts)?;
            let core = core_numbers(evidence.facts(end)?, counts.len())
                .get(core)
                .copied()?;
            let name = card
                .detail
                .interrupts
                .value()?
                .iter()
                .find(|interrupt| interrupt.number == number)?
                .name
                .clone();
            Some(line(
                format!(
                    "interrupt {number} ({name}), {when}: all, and those on core {core} ({})",
                    percent(share)
                ),
                format!("{} on {}", card.name, evidence.name(end)),
                sum(counts.iter().copied()),
                counts.iter().copied().max().unwrap_or_default(),
                "interrupts",
            ))
        })
        .collect()
}

/// Moves interrupts to cores; `None` when where they may go now is not known.
pub(super) fn moving(
    evidence: &Evidence,
    end: End,
    card: &Card<'_>,
    title: String,
    wanted: &[(u32, String)],
) -> Option<Remedy> {
    let interrupts = card.detail.interrupts.value()?;
    let changes: Vec<_> = wanted
        .iter()
        .take(MOST_MOVED)
        .filter_map(|(number, cores)| {
            let before = interrupts
                .iter()
                .find(|interrupt| interrupt.number == *number)
                .filter(|interrupt| !interrupt.allowed.is_empty())?;
            let change = Change {
                end,
                setting: Setting::InterruptCores { interrupt: *number },
                value: json!(cores),
            };
            Some((change, json!(list(&before.allowed))))
        })
        .collect();
    if changes.is_empty() {
        return None;
    }
    let mut remedy = remedy_of(
        evidence,
        title,
        changes,
        Goal::Goodput,
        "other interrupts and programs of those cores; irqbalance moves them again unless it is told not to".to_owned(),
    );
    let bans: Vec<String> = wanted
        .iter()
        .map(|(number, _)| format!("--banirq={number}"))
        .collect();
    remedy.persistence = format!(
        "the same lines at each start, where the numbers are looked up by their names in /proc/interrupts (they change); where irqbalance runs, `IRQBALANCE_ARGS=\"{}\"` in /etc/default/irqbalance",
        bans.join(" ")
    );
    Some(remedy)
}

fn spread(evidence: &Evidence, end: End, card: &Card<'_>, queues: &[u32]) -> Option<Remedy> {
    let facts = evidence.facts(end)?;
    let node = card.detail.numa_node.value().copied().flatten();
    let near = facts
        .hardware
        .numa_nodes
        .value()
        .into_iter()
        .flatten()
        .find(|one| Some(one.node) == node)
        .map(|one| one.cores.clone())
        .filter(|cores| cores.len() > 1);
    let cores = near.unwrap_or_else(|| core_numbers(facts, facts.cpu.online.min(1 << 14)));
    if cores.is_empty() {
        return None;
    }
    let wanted: Vec<(u32, String)> = queues
        .iter()
        .zip(cores.iter().cycle())
        .map(|(queue, core)| (*queue, core.to_string()))
        .collect();
    moving(
        evidence,
        end,
        card,
        format!("A core of its own for each queue of {}", card.name),
        &wanted,
    )
}

fn pin(evidence: &Evidence, end: End, card: &Card<'_>, core: u32) -> Option<Remedy> {
    let wanted: Vec<(u32, String)> = card
        .detail
        .interrupts
        .value()?
        .iter()
        .map(|interrupt| (interrupt.number, core.to_string()))
        .collect();
    // With several queues in use one core for all is the other fault.
    if wanted.len() > 2 {
        return None;
    }
    moving(
        evidence,
        end,
        card,
        format!("The interrupts of {} on core {core} for good", card.name),
        &wanted,
    )
}

fn whatever_irqbalance_does(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: format!(
            "irqbalance on or off as a rule on {}",
            evidence.name(end)
        ),
        why: "it was measured both faster and slower with WireGuard, depending on the firewall and the machine: try it, measure, keep what is faster".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Interrupt, Known, Link, LinkDetail};
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        at, codes, core, each_sample, facts_of, healthy, nothing, only_finding, set_ratio,
    };
    use crate::{End, Evidence, Severity, judge};

    /// A client with a card of two queues.
    fn with_card() -> Evidence {
        let mut evidence = healthy();
        let interrupt = |number| Interrupt {
            number,
            name: format!("eth0-TxRx-{number}"),
            allowed: vec![0, 1, 2, 3],
            ..Interrupt::default()
        };
        let facts = facts_of(&mut evidence, End::Here);
        facts.links.push(Link {
            name: "eth0".to_owned(),
            detail: Known::Value(LinkDetail {
                interrupts: Known::Value(vec![interrupt(41), interrupt(42)]),
                ..LinkDetail::default()
            }),
            ..Link::default()
        });
        facts.outer_links = vec!["eth0".to_owned()];
        facts.hardware.irqbalance = Known::Value(true);
        evidence
    }

    fn crowded(second: [u64; 4], busy: f64) -> Evidence {
        let mut evidence = with_card();
        set_ratio(&mut evidence, Direction::Download, 0.6);
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            let delta = at(sample, End::Here);
            delta.cores = vec![core(0.3), core(busy), core(0.3), core(0.3)];
            delta.interrupts = [
                ("41".to_owned(), vec![0, 5000, 0, 0]),
                ("42".to_owned(), second.to_vec()),
            ]
            .into();
        });
        evidence
    }

    #[test]
    fn two_queues_on_one_full_core_are_spread() {
        let diagnosis = judge(&crowded([0, 4000, 0, 0], 0.97));
        assert_eq!(codes(&diagnosis), [CODE]);
        assert_eq!(diagnosis.findings[1].code, "one-core-bound");
        let finding = &diagnosis.findings[0];
        assert!(finding.because.contains("2 queues, go to core 1"));
        let remedy = &finding.remedies[0];
        assert_eq!(remedy.changes.len(), 2);
        assert_eq!(
            remedy.commands[1],
            "echo 1 > /proc/irq/42/smp_affinity_list  # on client"
        );
        assert!(remedy.undo.contains("echo 0-3 > /proc/irq/41"));
        assert!(remedy.persistence.contains("--banirq=41 --banirq=42"));
    }

    #[test]
    fn one_queue_or_two_cores_or_a_core_with_room_are_no_crowd() {
        only_finding(&crowded([0, 0, 0, 0], 0.97), "one-core-bound");
        only_finding(&crowded([4000, 0, 0, 0], 0.97), "one-core-bound");
        only_finding(&crowded([0, 4000, 0, 0], 0.8), "unexplained");
    }

    /// Samples in turn on two cores, with these rates.
    fn wandering(rates: [f64; 2], cores: [usize; 5]) -> Evidence {
        let mut evidence = with_card();
        let mut turn = cores.iter();
        for sample in &mut evidence.comparisons[1].samples {
            if sample.load.via == Via::Tunnel {
                let on = *turn.next().unwrap();
                sample.rate = rates[on];
                let mut counts = vec![0; 4];
                counts[on] = 5000;
                at(sample, End::Here).interrupts = [("41".to_owned(), counts)].into();
            }
        }
        evidence
    }

    #[test]
    fn a_rate_that_follows_the_interrupts_is_found() {
        nothing(&wandering([80e6, 96e6], [0, 1, 0, 1, 0]));
        nothing(&wandering([50e6, 96e6], [0, 1, 1, 1, 1]));
        let finding = only_finding(&wandering([50e6, 96e6], [0, 1, 0, 1, 0]), CODE);
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding
                .because
                .contains("core 0 than in any with them on core 1")
        );
        assert_eq!(finding.remedies[0].changes[0].value, "1");
        let mut still = wandering([50e6, 96e6], [0, 1, 0, 1, 0]);
        facts_of(&mut still, End::Here).hardware.irqbalance = Known::Value(false);
        nothing(&still);
    }

    #[test]
    fn three_samples_on_each_side_make_a_warning() {
        let mut evidence = wandering([50e6, 96e6], [0, 1, 0, 1, 0]);
        let again = evidence.comparisons[1]
            .samples
            .iter()
            .rfind(|sample| sample.rate > 90e6 && sample.load.via == Via::Tunnel)
            .unwrap()
            .clone();
        evidence.comparisons[1].samples.push(again);
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
    }
}
