//! `irq-placement`: the card's interrupts go to the wrong cores, or to others from one minute to the next.
//!
//! Two shapes. One core gets the interrupts of several queues and is full while the others have room. Or irqbalance moves
//! them between the samples, and the tunnel is fast with one core and slow with another. Known from the interrupts' counts
//! per core (`/sys/kernel/irq/*/per_cpu_count`, as `/proc/interrupts`) during the loads.

use std::collections::{BTreeMap, BTreeSet};
use wirespeed_words::say;

use serde_json::json;
use wirespeed_facts::Known;
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::Setting;

use super::cpu_saturated::held_back;
use super::{names_host, one_core_bound, same_direction};
use crate::cards::{self, Card, core_numbers, list, sum};
use crate::cores;
use crate::finding::{Check, Found, Outcome, line, percent, rates_line, remedy_of};
use crate::losses::{self, Period};
use crate::view::{ENDS, median, moved, on, or_watched};
use crate::{Change, End, Evidence, EvidenceLine, Finding, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "irq-placement";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, || say!("irq-placement-title"), run)
};

/// Fewer interrupts than this say nothing of where they go.
const FEWEST: u64 = 1000;
/// Share of the card's interrupts on one core from which they are all there.
const ALL: f64 = 0.9;
/// Share of the card's interrupts from which a queue's is in use.
const IN_USE: f64 = 0.1;
/// Share from which the busiest core may be what made a load slow.
const BUSY: f64 = 0.8;
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
            if let Some(found) = crowded(evidence, end, &card) {
                outcome.found.push(found);
            } else if let Some((irqbalance, found)) = wandering(evidence, end, &card) {
                match irqbalance {
                    Known::Value(true) => outcome.found.push(found),
                    Known::Value(false) => {}
                    Known::Unknown(because) => {
                        let why = not_known(evidence, end, card.name, because);
                        outcome.not_known.push(why);
                    }
                }
            }
        }
        outcome.not_known.extend(unknown(evidence, end));
    }
    outcome
}

fn not_known(evidence: &Evidence, end: End, card: &str, because: &str) -> String {
    let place = on(card, evidence.name(end));
    say!("irq-placement-unknown", place = place, because = because)
}

/// Why it is not known which cores take the interrupts of this end's cards, where that may be what holds the tunnel back:
/// where a core is busy.
fn unknown(evidence: &Evidence, end: End) -> Vec<String> {
    let busy = |direction: Direction| {
        held_back(evidence, direction)
            && cores::of(evidence, end, direction).is_some_and(|cores| cores.busiest >= BUSY)
    };
    let periods: Vec<Period<'_>> = losses::periods(evidence, end)
        .into_iter()
        .filter(|period| period.direction.is_some_and(busy))
        .collect();
    if periods.is_empty() {
        return Vec::new();
    }
    cards::unknown(evidence, end, |card| card.interrupts_unknown(&periods))
        .into_iter()
        .map(|(card, because)| not_known(evidence, end, card, &because))
        .collect()
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
            && queues.count >= 2
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
                because: say!(
                    "irq-placement-because-crowded",
                    share = percent(share),
                    card = card.name,
                    queues = queues.count,
                    core = number,
                    busy = percent(cores.busiest)
                ),
                remedies: spread(evidence, end, card, &queues.interrupts)
                    .into_iter()
                    .collect(),
                refused: vec![whatever_irqbalance_does(evidence, end)],
            })
        })?
    })
}

/// Queues of a card that are in use.
struct Queues {
    /// Those that receive, or those that send, whichever are more.
    count: usize,
    /// Their interrupts, those of one queue together.
    interrupts: Vec<Vec<u32>>,
}

/// Queues whose interrupts came often. One may have an interrupt for what comes and another for what leaves
/// (`virtio0-input.0` and `virtio0-output.0`, `eth0-rx-0` and `eth0-tx-0`), or one for both (`eth0-TxRx-0`).
fn in_use(card: &Card<'_>, period: &Period<'_>, all: u64) -> Queues {
    let mut by_queue: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let (mut receive, mut send) = (BTreeSet::new(), BTreeSet::new());
    let often: Vec<u32> = card
        .each_interrupt(&period.readings)
        .into_iter()
        .filter(|(_, counts)| sum(counts.iter().copied()) as f64 >= IN_USE * all as f64)
        .map(|(number, _)| number)
        .collect();
    for interrupt in card.detail.interrupts.value().into_iter().flatten() {
        if !often.contains(&interrupt.number) {
            continue;
        }
        // The card's own name may have such letters, too.
        let name = interrupt.name.replacen(card.name, "", 1).to_lowercase();
        let one_way = |words: [&str; 2]| words.iter().any(|word| name.contains(word));
        let (receives, sends) = (one_way(["input", "rx"]), one_way(["output", "tx"]));
        let queue = ["input", "output", "rx", "tx"]
            .iter()
            .fold(name.clone(), |name, word| name.replace(word, ""));
        if receives || !sends {
            receive.insert(queue.clone());
        }
        if sends || !receives {
            send.insert(queue.clone());
        }
        by_queue.entry(queue).or_default().push(interrupt.number);
    }
    Queues {
        count: receive.len().max(send.len()),
        interrupts: by_queue.into_values().collect(),
    }
}

/// Rates of the loads of a side by the core that got most of the interrupts, with how busy the busiest core was.
fn by_core(
    evidence: &Evidence,
    end: End,
    card: &Card<'_>,
    direction: Direction,
    via: Via,
) -> BTreeMap<usize, Vec<Load>> {
    let mut loads: BTreeMap<usize, Vec<Load>> = BTreeMap::new();
    for sample in evidence.samples(direction, via) {
        let Some(reading) = moved(sample, end) else {
            continue;
        };
        if let Some(by_core) = card.interrupts_by_core(&[reading])
            && sum(by_core.iter().copied()) >= FEWEST
            && let Some((core, share)) = largest(&by_core)
            && share >= MOST
            && sample.rate.is_finite()
        {
            loads.entry(core).or_default().push(Load {
                rate: sample.rate,
                cores: by_core.len(),
                busiest: cores::busiest_in(sample, end),
            });
        }
    }
    loads
}

/// A load whose interrupts went to one core.
struct Load {
    rate: f64,
    /// Cores that interrupts are counted for.
    cores: usize,
    busiest: Option<f64>,
}

/// Moved from one core to another between the samples, and the rate with them; and does irqbalance run?
fn wandering<'a>(
    evidence: &'a Evidence,
    end: End,
    card: &Card<'_>,
) -> Option<(&'a Known<bool>, Found)> {
    let facts = evidence.facts(end)?;
    let found = crate::view::DIRECTIONS.into_iter().find_map(|direction| {
        let mut loads = by_core(evidence, end, card, direction, Via::Tunnel);
        loads.retain(|_, loads| loads.len() >= FEW);
        let (slow, fast) = apart(&loads)?;
        let rate = |loads: &[Load]| median(loads.iter().map(|load| load.rate));
        let (slow_rate, fast_rate) = (rate(&loads[&slow])?, rate(&loads[&fast])?);
        let with_time_to_spare = median(loads[&slow].iter().filter_map(|load| load.busiest))
            .is_none_or(|busiest| busiest < BUSY);
        // The road itself was faster while the interrupts went to the one core.
        let bare = by_core(evidence, end, card, direction, Via::Bare);
        let bare_rate = |core| bare.get(&core).and_then(|loads| rate(loads));
        let by_itself = bare_rate(slow)
            .zip(bare_rate(fast))
            .is_some_and(|(slow, fast)| fast_rate * slow < FASTER * slow_rate * fast);
        if with_time_to_spare || by_itself {
            return None;
        }
        let count = loads[&slow].iter().map(|load| load.cores).max()?;
        let numbers = core_numbers(facts, count);
        let (slow_core, fast_core) = (*numbers.get(slow)?, *numbers.get(fast)?);
        let (slow, fast) = (&loads[&slow], &loads[&fast]);
        let certain = slow.len() >= ENOUGH && fast.len() >= ENOUGH;
        let mut lines = vec![line(
            say!(
                "irq-placement-line-rates",
                direction = direction.word(),
                slow = slow_core,
                slower = slow.len(),
                fast = fast_core,
                faster = fast.len()
            ),
            on(card.name, evidence.name(end)),
            slow_rate,
            fast_rate,
            "bit/s",
        )];
        lines.push(line(
            say!("irq-placement-line-irqbalance"),
            evidence.name(end),
            (),
            true,
            "",
        ));
        Some(Found {
            severity: if certain {
                Severity::Warning
            } else {
                Severity::Info
            },
            confidence: if certain { 0.6 } else { 0.4 },
            effect: (1.0 - slow_rate / fast_rate).clamp(0.0, 1.0),
            host: evidence.name(end).to_owned(),
            direction: Some(direction),
            evidence: lines,
            because: say!(
                "irq-placement-because-wandering",
                card = card.name,
                slow = slow_core,
                fast = fast_core
            ),
            remedies: pin(evidence, end, card, fast_core).into_iter().collect(),
            refused: vec![whatever_irqbalance_does(evidence, end)],
        })
    })?;
    Some((&facts.hardware.irqbalance, found))
}

/// Two cores, the slower first: every sample with the one is slower by far than any with the other.
fn apart(loads: &BTreeMap<usize, Vec<Load>>) -> Option<(usize, usize)> {
    let rates = |loads: &[Load]| loads.iter().map(|load| load.rate).collect::<Vec<f64>>();
    let lowest = |loads: &[Load]| rates(loads).into_iter().fold(f64::INFINITY, f64::min);
    let highest = |loads: &[Load]| rates(loads).into_iter().fold(0.0, f64::max);
    let fast = loads
        .iter()
        .max_by(|a, b| lowest(a.1).total_cmp(&lowest(b.1)))?;
    loads
        .iter()
        .find(|(core, slow)| {
            *core != fast.0 && lowest(fast.1) >= FASTER * highest(slow) && highest(slow) > 0.0
        })
        .map(|(slow, _)| (*slow, *fast.0))
}

fn lines(evidence: &Evidence, end: End, card: &Card<'_>, period: &Period<'_>) -> Vec<EvidenceLine> {
    let when = or_watched(period.direction);
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
                say!(
                    "irq-placement-line-interrupt",
                    number = number.to_string(),
                    name = name,
                    when = &when,
                    core = core,
                    share = percent(share)
                ),
                on(card.name, evidence.name(end)),
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
        say!("irq-placement-risk"),
    );
    let bans: Vec<String> = wanted
        .iter()
        .map(|(number, _)| format!("--banirq={number}"))
        .collect();
    remedy.persistence = say!("irq-placement-persistence", bans = bans.join(" "));
    Some(remedy)
}

fn spread(evidence: &Evidence, end: End, card: &Card<'_>, queues: &[Vec<u32>]) -> Option<Remedy> {
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
        .flat_map(|(queue, core)| queue.iter().map(|number| (*number, core.to_string())))
        .collect();
    moving(
        evidence,
        end,
        card,
        say!("irq-placement-remedy-spread", card = card.name),
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
        say!("irq-placement-remedy-pin", card = card.name, core = core),
        &wanted,
    )
}

fn whatever_irqbalance_does(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: say!("irq-placement-refused", host = evidence.name(end)),
        why: say!("irq-placement-refused-why"),
    }
}

#[cfg(test)]
mod tests;
