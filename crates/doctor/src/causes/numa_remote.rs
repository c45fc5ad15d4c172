//! `numa-remote`: the card hangs on one NUMA node, and its packets are received on another.
//!
//! Known from the card's `numa_node` and from where its interrupts came during the loads. Every packet then crosses the
//! link between the sockets, at least once.

use wirespeed_facts::{Implementation, Known};
use wirespeed_measure::Direction;
use wirespeed_words::say;

use super::irq_placement::moving;
use super::{cpu_saturated, names_host, one_core_bound, same_direction};
use crate::cards::{self, Card, core_numbers, list, sum};
use crate::finding::{Check, Found, Outcome, line, percent, rates_lines};
use crate::losses::{self, Period};
use crate::view::{ENDS, on, only, receiver};
use crate::{End, Evidence, Finding, Refusal, Severity};

pub(super) const CODE: &str = "numa-remote";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, || say!("numa-remote-title"), run)
};

/// Fewer interrupts than this say nothing of where they go.
const FEWEST: u64 = 1000;
/// Share of the card's interrupts on cores of other nodes from which they are there by rule.
const REMOTE: f64 = 0.5;
/// A tunnel that carries this share of bare for sure is not held back by it: bare packets cross the same link.
const HEALTHY_RATIO: f64 = 0.9;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        for card in cards::of(evidence, end) {
            outcome.found.extend(found(evidence, end, &card));
        }
        outcome.not_known.extend(unknown(evidence, end));
    }
    outcome
}

/// Directions in which this end receives, and in which it may cost something. As fast as bare, nothing is lost by it; and
/// sending across the nodes cost next to nothing where it was measured (HPSR 2025, III.C).
fn may_cost(evidence: &Evidence, end: End, direction: Direction) -> bool {
    receiver(direction) == end && evidence.below(direction, HEALTHY_RATIO) != Some(false)
}

/// Why it is not known where the packets of this end's cards are received, and on which node the cards are.
fn unknown(evidence: &Evidence, end: End) -> Vec<String> {
    let costs = |direction| may_cost(evidence, end, direction);
    let periods: Vec<Period<'_>> = losses::periods(evidence, end)
        .into_iter()
        .filter(|period| period.direction.is_some_and(costs))
        .collect();
    let Some(facts) = evidence.facts(end).filter(|_| !periods.is_empty()) else {
        return Vec::new();
    };
    let nodes = &facts.hardware.numa_nodes;
    if nodes.value().is_some_and(|nodes| nodes.len() < 2) {
        return Vec::new();
    }
    let part = |card: &Card<'_>| {
        let detail = card.detail;
        // The firmware of some machines names no node for a card, and some cards have no interrupts of their own.
        let nothing_to_place = matches!(&detail.numa_node, Known::Value(None))
            || detail.interrupts.value().is_some_and(Vec::is_empty);
        if nothing_to_place {
            return None;
        }
        cards::why(nodes)
            .or_else(|| cards::why(&detail.numa_node))
            .or_else(|| card.interrupts_unknown(&periods))
    };
    cards::unknown(evidence, end, part)
        .into_iter()
        .map(|(card, because)| {
            say!(
                "numa-remote-unknown",
                place = on(card, evidence.name(end)),
                because = because
            )
        })
        .collect()
}

/// A core that waits for memory of another node is full earlier.
fn brings(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    cause.severity >= Severity::Warning
        && effect.code == one_core_bound::CODE
        && (same_direction(cause, effect) || effect.direction.is_none())
        && names_host(evidence, cause, &effect.host)
}

/// Where a card's interrupts went.
struct Placed {
    node: u32,
    near: Vec<u32>,
    remote: u64,
    all: u64,
}

fn placed(evidence: &Evidence, end: End, card: &Card<'_>, period: &Period<'_>) -> Option<Placed> {
    let facts = evidence.facts(end)?;
    let nodes = facts.hardware.numa_nodes.value()?;
    let node = card.detail.numa_node.value().copied().flatten()?;
    let near = nodes.iter().find(|one| one.node == node)?.cores.clone();
    if nodes.len() < 2 || near.is_empty() {
        return None;
    }
    let by_core = card.interrupts_by_core(&period.readings)?;
    let numbers = core_numbers(facts, by_core.len());
    let all = sum(by_core.iter().copied());
    let remote = sum(by_core
        .iter()
        .zip(&numbers)
        .filter(|(_, core)| !near.contains(core))
        .map(|(count, _)| *count));
    (all >= FEWEST && remote as f64 >= REMOTE * all as f64).then_some(Placed {
        node,
        near,
        remote,
        all,
    })
}

fn found(evidence: &Evidence, end: End, card: &Card<'_>) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<(Direction, Placed)> = periods
        .iter()
        .filter_map(|period| Some((period.direction?, placed(evidence, end, card, period)?)))
        .filter(|(direction, _)| may_cost(evidence, end, *direction))
        .collect();
    let (_, first) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, _)| *direction).collect();
    // Whatever else makes the tunnel slow leaves the cores with time to spare.
    let certain = directions.iter().any(|direction| {
        evidence.below(*direction, HEALTHY_RATIO) == Some(true)
            && cpu_saturated::limits(evidence, end, *direction)
    });
    let place = on(card.name, evidence.name(end));
    let near = list(&first.near);
    let mut lines = vec![line(
        say!("numa-remote-line-node", cores = &near),
        &place,
        (),
        first.node,
        "",
    )];
    for (direction, placed) in &hits {
        lines.push(line(
            say!("numa-remote-line-interrupts", direction = direction.word()),
            &place,
            placed.all,
            placed.remote,
            "interrupts",
        ));
    }
    lines.extend(rates_lines(evidence, &directions));
    let wanted: Vec<(u32, String)> = card
        .detail
        .interrupts
        .value()
        .into_iter()
        .flatten()
        .filter(|interrupt| {
            // One that may only go to cores of its node is where it should be.
            interrupt
                .allowed
                .iter()
                .any(|core| !first.near.contains(core))
        })
        .map(|interrupt| (interrupt.number, near.clone()))
        .collect();
    Some(Found {
        severity: if certain {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: if certain { 0.6 } else { 0.4 },
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "numa-remote-because",
            card = card.name,
            node = first.node,
            share = percent(first.remote as f64 / first.all as f64)
        ),
        remedies: moving(
            evidence,
            end,
            card,
            say!("numa-remote-remedy", card = card.name, cores = &near),
            &wanted,
        )
        .into_iter()
        .collect(),
        refused: workers(evidence, end).into_iter().collect(),
    })
}

/// What can't be moved.
fn workers(evidence: &Evidence, end: End) -> Option<Refusal> {
    let tunnel = evidence.tunnel(end)?;
    (tunnel.implementation == Implementation::Kernel).then(|| Refusal {
        remedy: say!("numa-remote-refused", host = evidence.name(end)),
        why: say!("numa-remote-refused-why"),
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Implementation, Interrupt, Known, Link, LinkDetail, NumaNode};
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        add_card, at, codes, each_sample, facts_of, healthy, kernels_core, not_checked, nothing,
        only_finding, path_mtu, set_ratio, tunnel_of,
    };
    use crate::{End, Evidence, Severity, judge};

    /// A server of two nodes with the card on the second one, and its interrupts on these cores.
    fn two_sockets(counts: [u64; 4], ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, ratio);
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let facts = facts_of(&mut evidence, End::Far);
        facts.hardware.numa_nodes = Known::Value(vec![
            NumaNode {
                node: 0,
                cores: vec![0, 2],
            },
            NumaNode {
                node: 1,
                cores: vec![1, 3],
            },
        ]);
        add_card(
            facts,
            Link {
                detail: Known::Value(LinkDetail {
                    numa_node: Known::Value(Some(1)),
                    interrupts: Known::Value(vec![
                        Interrupt {
                            number: 90,
                            name: "mlx5_comp0".to_owned(),
                            allowed: vec![0, 2],
                            ..Interrupt::default()
                        },
                        Interrupt {
                            number: 91,
                            name: "mlx5_comp1".to_owned(),
                            allowed: vec![1],
                            ..Interrupt::default()
                        },
                    ]),
                    ..LinkDetail::default()
                }),
                ..Link::default()
            },
        );
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).interrupts = [("90".to_owned(), counts.to_vec())].into();
        });
        evidence
    }

    /// The same with the server's first core full.
    fn with_a_full_core(counts: [u64; 4]) -> Evidence {
        let mut evidence = two_sockets(counts, 0.6);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores[0] = kernels_core(0.97);
        });
        evidence
    }

    #[test]
    fn half_of_the_interrupts_on_the_other_node_are_found() {
        only_finding(&with_a_full_core([490, 510, 0, 0]), "one-core-bound");
        only_finding(&with_a_full_core([90, 10, 0, 0]), "one-core-bound");
        nothing(&two_sockets([5000, 0, 0, 0], 0.95));
        let finding = only_finding(&with_a_full_core([300, 500, 300, 0]), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Upload))
        );
        assert!(finding.because.contains("55 %"));
        let remedy = &finding.remedies[0];
        assert_eq!(
            remedy.changes.len(),
            1,
            "the other one is where it should be"
        );
        assert_eq!(remedy.changes[0].value, "1,3");
        assert_eq!(
            remedy.undo,
            "echo 0,2 > /proc/irq/90/smp_affinity_list  # on server"
        );
        assert!(finding.refused[0].why.contains("no mask"));
    }

    #[test]
    fn it_is_no_warning_where_the_cores_have_time_to_spare() {
        let mut evidence = two_sockets([300, 500, 300, 0], 0.6);
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        for evidence in [evidence, with_too_small_a_path()] {
            let diagnosis = judge(&evidence);
            assert_eq!(codes(&diagnosis)[0], "mtu-exceeds-path");
            let own = diagnosis.findings.iter().find(|one| one.code == CODE);
            assert_eq!(own.map(|one| one.severity), Some(Severity::Info));
        }
    }

    /// A full core that sizes keep from being what limits the tunnel.
    fn with_too_small_a_path() -> Evidence {
        let mut evidence = with_a_full_core([300, 500, 300, 0]);
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        evidence
    }

    #[test]
    fn what_is_not_known_of_a_card_on_the_way_is_said_where_it_may_cost_something() {
        const WHY: &str = "not readable";
        let far_card = |evidence: &mut Evidence, change: fn(&mut LinkDetail)| {
            let link = facts_of(evidence, End::Far).links.last_mut().unwrap();
            let Known::Value(detail) = &mut link.detail else {
                panic!("a card");
            };
            change(detail);
        };
        let slow = two_sockets([300, 500, 300, 0], 0.6);
        assert!(!not_checked(&slow, CODE));
        let mut nodes = slow.clone();
        facts_of(&mut nodes, End::Far).hardware.numa_nodes = Known::because(WHY);
        assert!(not_checked(&nodes, CODE));
        let mut behind = slow.clone();
        let link = facts_of(&mut behind, End::Far).links.last_mut();
        link.unwrap().detail = Known::because(WHY);
        assert!(not_checked(&behind, CODE));
        for change in [
            |detail: &mut LinkDetail| detail.numa_node = Known::because(WHY),
            |detail: &mut LinkDetail| detail.interrupts = Known::because(WHY),
        ] {
            let mut unknown = slow.clone();
            far_card(&mut unknown, change);
            assert!(not_checked(&unknown, CODE));
        }
        let uncounted = two_sockets([0; 4], 0.6);
        assert!(not_checked(&uncounted, CODE));

        // No matter: as fast as bare, one node, a card of none, one without interrupts, and a machine that sends.
        let mut fast = two_sockets([0; 4], 0.95);
        facts_of(&mut fast, End::Far).hardware.numa_nodes = Known::because(WHY);
        assert!(!not_checked(&fast, CODE));
        let mut one_node = uncounted.clone();
        let Known::Value(nodes) = &mut facts_of(&mut one_node, End::Far).hardware.numa_nodes else {
            panic!("nodes");
        };
        nodes.pop();
        assert!(!not_checked(&one_node, CODE));
        for change in [
            |detail: &mut LinkDetail| detail.numa_node = Known::Value(None),
            |detail: &mut LinkDetail| detail.interrupts = Known::Value(Vec::new()),
        ] {
            let mut none = uncounted.clone();
            far_card(&mut none, change);
            assert!(!not_checked(&none, CODE));
        }
        let mut sends = two_sockets([0; 4], 0.95);
        set_ratio(&mut sends, Direction::Download, 0.6);
        assert!(!not_checked(&sends, CODE));
    }

    #[test]
    fn one_node_is_no_numa() {
        let mut evidence = two_sockets([5000, 0, 0, 0], 0.6);
        facts_of(&mut evidence, End::Far).hardware.numa_nodes = Known::Value(vec![NumaNode {
            node: 1,
            cores: vec![1, 3],
        }]);
        only_finding(&evidence, "unexplained");
    }
}
