//! `ring-overflow`: the card received packets and had nowhere to put them.
//!
//! Known from `rx_missed_errors` and `rx_fifo_errors` of the card (`include/uapi/linux/if_link.h`: "dropped by the device due
//! to lack of buffer space") or from what its driver counts under names of its own (`ethtool -S`).

use std::collections::BTreeMap;

use serde_json::json;
use wirespeed_facts::{CountersDelta, DriverLoss, driver_loss};
use wirespeed_measure::Direction;
use wirespeed_settings::{Setting, shell_word};
use wirespeed_words::say;

use super::backlog_overflow::loses_packets;
use super::{names_host, same_direction};
use crate::cards::{self, Card};
use crate::finding::{Check, Found, Outcome, command, line, rates_lines, remedy_of};
use crate::losses::{self, Losses, Period};
use crate::view::{ENDS, on, only, or_watched};
use crate::{Change, End, Evidence, EvidenceLine, Finding, Goal, Refusal, Remedy};

pub(super) const CODE: &str = "ring-overflow";

pub(super) const CHECK: Check = Check {
    brings: loses_packets,
    follows_from: not_emptied,
    slows: in_direction,
    ..Check::new(CODE, || say!("ring-overflow-title"), run)
};

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        for card in cards::of(evidence, end) {
            outcome.found.extend(found(evidence, end, &card));
        }
    }
    outcome
}

/// Does a ring of either end overflow while this direction is loaded?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter().any(|end| {
        losses::periods(evidence, end).iter().any(|period| {
            period.direction == Some(direction) && lost(evidence, end, period).is_some()
        })
    })
}

/// What the cards of an end lost in a period, where one of them lost too much.
pub(super) fn lost(evidence: &Evidence, end: End, period: &Period<'_>) -> Option<Losses> {
    cards::of(evidence, end)
        .iter()
        .find_map(|card| of_card(card, period))
}

fn of_card(card: &Card<'_>, period: &Period<'_>) -> Option<Losses> {
    losses::too_many(
        period,
        |reading| most(&counts(card.name, reading)),
        |reading| {
            reading
                .links
                .get(card.name)
                .map_or(0, |link| link.rx_packets)
        },
    )
}

/// What tells of the card's losses in a reading, by name. Queues of the same name are summed: `rxq0: rx_drops_no_frags` and
/// `rxq1: …` are one.
fn counts(card: &str, reading: &CountersDelta) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    if let Some(link) = reading.links.get(card) {
        counts.insert("rx_missed_errors".to_owned(), link.rx_missed_errors);
        counts.insert("rx_fifo_errors".to_owned(), link.rx_fifo_errors);
    }
    let mut of_driver: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in reading.drivers.get(card).into_iter().flatten() {
        if driver_loss(name) == Some(DriverLoss::NoBuffer) {
            let sum = of_driver.entry(without_queue(name)).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    for (name, count) in of_driver {
        let most = counts.entry(name).or_default();
        *most = count.max(*most);
    }
    counts.retain(|_, count| *count > 0);
    counts
}

/// Different names count the same packets: they are not added up.
fn most(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().copied().max().unwrap_or_default()
}

/// `rx12_missed` → `rx#_missed`.
fn without_queue(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if !letter.is_ascii_digit() {
            text.push(letter);
        } else if !text.ends_with('#') {
            text.push('#');
        }
    }
    text
}

/// A ring is emptied by a core that has time for it.
fn not_emptied(evidence: &Evidence, cause: &Finding, own: &Finding) -> bool {
    ["cpu-saturated", "one-core-bound", "irq-placement"].contains(&cause.code.as_str())
        && (same_direction(cause, own) || own.direction.is_none())
        && names_host(evidence, cause, &own.host)
}

fn found(evidence: &Evidence, end: End, card: &Card<'_>) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<(&Period<'_>, Losses)> = periods
        .iter()
        .filter_map(|period| Some((period, of_card(card, period)?)))
        .collect();
    let (_, worst) = hits.iter().max_by_key(|(_, losses)| losses.lost)?;
    let directions: Vec<Direction> = hits
        .iter()
        .filter_map(|(period, _)| period.direction)
        .collect();
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .flat_map(|(period, losses)| lines(evidence, end, card, period, *losses))
        .collect();
    let rings = card.detail.rings.value().copied().unwrap_or_default();
    if let Some(now) = rings.receive {
        lines.push(line(
            say!("ring-overflow-line-ring"),
            on(card.name, evidence.name(end)),
            rings.receive_most,
            now,
            "packets",
        ));
    }
    lines.extend(rates_lines(evidence, &directions));
    let (remedies, refused) = longer(evidence, end, card);
    Some(Found {
        severity: losses::severity(evidence, &directions),
        confidence: 0.9,
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: because(card, *worst, rings.receive),
        remedies,
        refused,
    })
}

fn because(card: &Card<'_>, Losses { lost, of }: Losses, ring: Option<u32>) -> String {
    match ring {
        Some(ring) => say!(
            "ring-overflow-because-ring",
            lost = lost,
            through = of,
            card = card.name,
            ring = ring
        ),
        None => say!(
            "ring-overflow-because",
            lost = lost,
            through = of,
            card = card.name
        ),
    }
}

fn lines(
    evidence: &Evidence,
    end: End,
    card: &Card<'_>,
    period: &Period<'_>,
    losses: Losses,
) -> Vec<EvidenceLine> {
    let when = or_watched(period.direction);
    let place = on(card.name, evidence.name(end));
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    let mut stored: BTreeMap<String, u64> = BTreeMap::new();
    for reading in &period.readings {
        for (name, count) in counts(card.name, reading) {
            let sum = by_name.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
        for (name, count) in reading.drivers.get(card.name).into_iter().flatten() {
            if driver_loss(name) == Some(DriverLoss::RanEmpty) {
                let sum = stored.entry(without_queue(name)).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }
    let mut by_name: Vec<(String, u64)> = by_name.into_iter().collect();
    by_name.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    by_name.truncate(4);
    let lost = by_name.into_iter().map(|(name, count)| {
        line(
            say!("ring-overflow-line-lost", counter = name, when = &when),
            &place,
            losses.of,
            count,
            "packets",
        )
    });
    // How often the ring was found empty: the packet may still have had room in the card's own memory.
    let stored = stored.into_iter().take(2).map(|(name, count)| {
        line(
            say!("ring-overflow-line-empty", counter = name, when = &when),
            &place,
            (),
            count,
            "",
        )
    });
    lost.chain(stored).collect()
}

fn longer(evidence: &Evidence, end: End, card: &Card<'_>) -> (Vec<Remedy>, Vec<Refusal>) {
    let rings = card.detail.rings.value().copied().unwrap_or_default();
    let name = shell_word(card.name);
    let (Some(now), Some(most)) = (rings.receive, rings.receive_most) else {
        return (
            vec![Remedy {
                title: say!("ring-overflow-remedy-by-hand", card = card.name),
                changes: Vec::new(),
                commands: vec![
                    command(evidence, end, format!("ethtool -g {name}")),
                    command(evidence, end, format!("ethtool -G {name} rx PACKETS")),
                ],
                goal: Goal::Goodput,
                persistence: say!("ring-overflow-persistence"),
                risk: say!("ring-overflow-risk-by-hand"),
                undo: command(evidence, end, format!("ethtool -G {name} rx OLD")),
            }],
            Vec::new(),
        );
    };
    if now >= most {
        return (
            Vec::new(),
            vec![Refusal {
                remedy: say!(
                    "ring-overflow-refused-longest",
                    card = card.name,
                    host = evidence.name(end)
                ),
                why: say!("ring-overflow-refused-why-longest", now = now),
            }],
        );
    }
    let next = now.saturating_mul(2).min(most);
    let change = Change {
        end,
        setting: Setting::ReceiveRing {
            interface: card.name.to_owned(),
        },
        value: json!(next),
    };
    let remedy = remedy_of(
        evidence,
        say!("ring-overflow-remedy", next = next, card = card.name),
        vec![(change, json!(now))],
        Goal::Goodput,
        say!("ring-overflow-risk", next = next),
    );
    (vec![remedy], Vec::new())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wirespeed_facts::{Known, Link, LinkCounters, LinkDetail, Rings};
    use wirespeed_measure::{Direction, Via};

    use super::{CODE, without_queue};
    use crate::testing::{
        add_card, at, codes, core, each_sample, facts_of, healthy, nothing, only_finding, set_ratio,
    };
    use crate::{End, Evidence, Severity, judge};

    /// A server with a card whose driver counts so many under this name in each sample of the upload.
    fn counting(statistic: &str, each: u64) -> Evidence {
        let mut evidence = healthy();
        let facts = facts_of(&mut evidence, End::Far);
        add_card(
            facts,
            Link {
                detail: Known::Value(LinkDetail {
                    rings: Known::Value(Rings {
                        receive: Some(512),
                        receive_most: Some(4096),
                        ..Rings::default()
                    }),
                    ..LinkDetail::default()
                }),
                ..Link::default()
            },
        );
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            delta.links.insert(
                "eth0".to_owned(),
                LinkCounters {
                    rx_packets: 10_000,
                    ..LinkCounters::default()
                },
            );
            delta.drivers.insert(
                "eth0".to_owned(),
                BTreeMap::from([(statistic.to_owned(), each)]),
            );
        });
        evidence
    }

    #[test]
    fn queues_of_a_name_are_one() {
        assert_eq!(without_queue("rx12_missed"), "rx#_missed");
    }

    /// ena counts both; the empty ring alone is none.
    #[test]
    fn an_empty_ring_stands_beside_what_was_lost() {
        let mut evidence = counting("queue_0_rx_empty_rx_ring", 5000);
        nothing(&evidence);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let drivers = &mut at(sample, End::Far).drivers;
            let card = drivers.get_mut("eth0").unwrap();
            card.insert("queue_0_rx_overruns".to_owned(), 50);
        });
        let finding = only_finding(&evidence, CODE);
        let told = |part: &str| {
            let mut lines = finding.evidence.iter();
            lines
                .find(|line| line.what.contains(part))
                .unwrap()
                .after
                .clone()
        };
        assert_eq!(told("queue_#_rx_overruns"), 250);
        assert_eq!(told("queue_#_rx_empty_rx_ring"), 25_000);
    }

    #[test]
    fn twenty_are_tolerated_and_more_are_not() {
        nothing(&counting("rx_missed_errors", 4));
        nothing(&counting("rx_no_buffer_count", 5000));
        let finding = only_finding(&counting("rx_missed_errors", 5), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Upload))
        );
        let remedy = &finding.remedies[0];
        assert_eq!(remedy.changes[0].value, 1024);
        assert_eq!(remedy.commands[0], "ethtool -G eth0 rx 1024  # on server");
        assert_eq!(remedy.undo, "ethtool -G eth0 rx 512  # on server");
        assert!(remedy.persistence.contains("RxBufferSize=1024"));
    }

    #[test]
    fn the_kernels_name_for_it_counts_once() {
        let mut evidence = counting("rx_missed_errors", 50);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .links
                .get_mut("eth0")
                .unwrap()
                .rx_missed_errors = 50;
        });
        assert!(
            only_finding(&evidence, CODE)
                .because
                .starts_with("250 packets")
        );
    }

    #[test]
    fn the_longest_ring_gets_no_longer_one() {
        let mut evidence = counting("rx_missed_errors", 50);
        let facts = facts_of(&mut evidence, End::Far);
        let Known::Value(detail) = &mut facts.links[1].detail else {
            unreachable!()
        };
        detail.rings = Known::Value(Rings {
            receive: Some(4096),
            receive_most: Some(4096),
            ..Rings::default()
        });
        let finding = only_finding(&evidence, CODE);
        assert!(finding.remedies.is_empty());
        assert!(finding.refused[0].why.contains("4096"));
    }

    #[test]
    fn a_machine_without_time_explains_it() {
        let mut evidence = counting("rx_missed_errors", 500);
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        let diagnosis = judge(&evidence);
        assert_eq!(codes(&diagnosis), ["cpu-saturated"]);
        assert_eq!(diagnosis.findings.len(), 2);
    }
}
