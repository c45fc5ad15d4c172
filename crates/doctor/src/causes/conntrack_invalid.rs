//! `conntrack-invalid`: connection tracking takes packets that come late for strangers, and a rule drops them.
//!
//! A TCP segment outside the window that connection tracking has followed is `INVALID`. On a road that reorders, that is a
//! late one, not a forged one. Linux 6.1 lets late ones pass; what is invalid there has other reasons.

use serde_json::json;
use wirespeed_facts::CountersDelta;
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::Setting;
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome, line, rates_line, remedy_of};
use crate::versions::Kernel;
use crate::view::{DIRECTIONS, ENDS, moved, only};
use crate::{Change, End, Evidence, Goal, Remedy, Severity};

pub(super) const CODE: &str = "conntrack-invalid";

pub(super) const CHECK: Check = Check::new(CODE, || say!("conntrack-invalid-title"), run);

/// Fewer over the loads of a direction are stray packets of connections that have ended.
const TOLERATED: u64 = 20;
/// One in this many costs TCP nothing one could measure.
const TOLERATED_ONE_IN: u64 = 5000;
/// Loads that must show it.
const FEWEST_LOADS: usize = 2;
/// A direction below this share of bare for sure suffers.
const SLOW: f64 = 0.8;

const LIBERAL: &str = "net.netfilter.nf_conntrack_tcp_be_liberal";
const IGNORE_RST: &str = "net.netfilter.nf_conntrack_tcp_ignore_invalid_rst";
/// What a sender of TCP counts when segments arrived in another order. (A receiver's `TCPOFOQueue` counts those behind a
/// lost one as well.)
const REORDERING: [&str; 2] = ["TcpExt.TCPSACKReorder", "TcpExt.TCPTSReorder"];
/// So many times what comes without a load may come by chance while one runs.
const BY_CHANCE: f64 = 2.0;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let hits: Vec<Hit> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| hit(evidence, end, direction))
            .collect();
        outcome.found.extend(found(evidence, end, &hits));
    }
    outcome
}

struct Hit {
    direction: Direction,
    /// Beyond what comes without a load.
    invalid: u64,
    packets: u64,
    out_of_order: u64,
}

fn hit(evidence: &Evidence, end: End, direction: Direction) -> Option<Hit> {
    let tunnel = evidence.tunnel(end)?;
    let loads: Vec<&CountersDelta> = evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| moved(sample, end))
        .collect();
    let sum = |count: &dyn Fn(&CountersDelta) -> u64| {
        loads
            .iter()
            .fold(0_u64, |sum, delta| sum.saturating_add(count(delta)))
    };
    let packets = sum(&|delta| {
        delta
            .links
            .get(&tunnel.name)
            .map_or(0, |link| link.rx_packets.saturating_add(link.tx_packets))
    });
    let seconds: f64 = loads.iter().map(|delta| delta.seconds).sum();
    let strays = (BY_CHANCE * strays_per_second(evidence, end, direction) * seconds).ceil();
    let invalid = sum(&invalid_of).saturating_sub(strays as u64);
    let out_of_order = ENDS
        .into_iter()
        .flat_map(|end| REORDERING.map(|name| evidence.counted(direction, end, name)))
        .fold(0_u64, u64::saturating_add);
    let enough = invalid > TOLERATED.max(packets / TOLERATED_ONE_IN)
        && loads.iter().filter(|delta| invalid_of(delta) > 0).count() >= FEWEST_LOADS;
    (enough && out_of_order > 0).then_some(Hit {
        direction,
        invalid,
        packets,
        out_of_order,
    })
}

fn invalid_of(delta: &CountersDelta) -> u64 {
    let count = delta.protocols.get("Conntrack.invalid");
    count.copied().unwrap_or_default()
}

/// What everything else that passes this machine brings: counted while the probes ran, which load nothing; where that is
/// not known, while the loads outside the tunnel ran.
fn strays_per_second(evidence: &Evidence, end: End, direction: Direction) -> f64 {
    let probing = match end {
        End::Here => evidence.probing_here.as_ref(),
        End::Far => evidence.probing_far.as_ref(),
    };
    let rate = |deltas: &[&CountersDelta]| {
        let seconds: f64 = deltas.iter().map(|delta| delta.seconds).sum();
        let invalid = deltas.iter().map(|delta| invalid_of(delta));
        let invalid = invalid.fold(0, u64::saturating_add);
        (seconds > 0.0).then(|| invalid as f64 / seconds)
    };
    let outside = || {
        let samples = evidence.samples(direction, Via::Bare);
        let deltas: Vec<_> = samples
            .into_iter()
            .filter_map(|sample| moved(sample, end))
            .collect();
        rate(&deltas)
    };
    probing
        .and_then(|delta| rate(&[delta]))
        .or_else(outside)
        .unwrap_or_default()
}

fn found(evidence: &Evidence, end: End, hits: &[Hit]) -> Option<Found> {
    let first = hits.first()?;
    let facts = evidence.facts(end)?;
    if Kernel::of(&facts.host).is_some_and(|kernel| kernel.at_least(6, 1)) {
        return None;
    }
    let sysctl = |name: &str| facts.sysctls.get(name).and_then(|value| value.value());
    // Then only packets that make no sense at all are invalid.
    if sysctl(LIBERAL).is_some_and(|value| value != "0") {
        return None;
    }
    let filter = facts.firewall.value().and_then(|firewall| {
        let tunnel = evidence.tunnel(end)?;
        let filter = firewall.tunnels.get(&tunnel.name)?;
        // Rules that nft does not tell may ask as well.
        (filter.inner_uses_conntrack || !firewall.legacy).then_some(filter)
    });
    // Without a rule that asks for the state nothing happens to them.
    if filter.is_some_and(|filter| !filter.inner_uses_conntrack) {
        return None;
    }
    let directions: Vec<Direction> = hits.iter().map(|hit| hit.direction).collect();
    let died = |direction: &Direction| {
        evidence
            .samples(*direction, Via::Tunnel)
            .iter()
            .any(|sample| sample.dead_streams > 0)
    };
    let hurt = directions.iter().any(|direction| {
        died(direction)
            || evidence.stalled(*direction)
            || evidence.below(*direction, SLOW) == Some(true)
    });
    let place = evidence.name(end);
    let mut lines = Vec::new();
    for hit in hits {
        lines.push(line(
            say!(
                "conntrack-invalid-line-invalid",
                direction = hit.direction.word()
            ),
            place,
            hit.packets,
            hit.invalid,
            "packets",
        ));
        lines.push(line(
            say!(
                "conntrack-invalid-line-order",
                direction = hit.direction.word()
            ),
            say!("conntrack-invalid-both-ends"),
            0,
            hit.out_of_order,
            "times",
        ));
        lines.extend(rates_line(evidence, hit.direction));
    }
    lines.push(line(LIBERAL, place, (), sysctl(LIBERAL).cloned(), ""));
    lines.push(line(
        say!("conntrack-invalid-line-kernel"),
        place,
        "6.1",
        facts.host.kernel.clone(),
        "",
    ));
    Some(Found {
        severity: if hurt {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: match (filter.is_some(), hurt) {
            (true, true) => 0.8,
            (true, false) => 0.5,
            (false, _) => 0.4,
        },
        effect: evidence.worst_lost_share(&directions),
        host: place.to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: if filter.is_some() {
            say!(
                "conntrack-invalid-because",
                host = place,
                packets = first.invalid
            )
        } else {
            say!(
                "conntrack-invalid-because-unread",
                host = place,
                packets = first.invalid
            )
        },
        remedies: remedies(evidence, end),
        refused: Vec::new(),
    })
}

fn remedies(evidence: &Evidence, end: End) -> Vec<Remedy> {
    let known = |name: &str| {
        evidence
            .facts(end)
            .and_then(|facts| facts.sysctls.get(name)?.value().cloned())
    };
    let change = |name: &str| {
        let before = known(name)?;
        let change = Change {
            end,
            setting: Setting::Sysctl {
                name: name.to_owned(),
            },
            value: json!("1"),
        };
        Some((change, json!(before)))
    };
    [
        (LIBERAL, say!("conntrack-invalid-remedy-liberal")),
        (IGNORE_RST, say!("conntrack-invalid-remedy-reset")),
    ]
    .into_iter()
    .filter_map(|(name, title)| Some((change(name)?, title)))
    .map(|(change, title)| {
        remedy_of(
            evidence,
            title,
            vec![change],
            Goal::Goodput,
            say!("conntrack-invalid-risk"),
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Firewall, Known, TunnelFilter};

    use super::*;
    use crate::testing::{at, each_sample, facts_of, healthy, nothing, only_finding, set_ratio};

    fn invalid(each: u64, out_of_order: u64, uses: bool, liberal: &str, ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, ratio);
        let facts = facts_of(&mut evidence, End::Far);
        facts.host.kernel = "5.10.0-30-amd64".to_owned();
        for (name, value) in [(LIBERAL, liberal), (IGNORE_RST, "0")] {
            facts
                .sysctls
                .insert(name.to_owned(), Known::Value(value.to_owned()));
        }
        facts.firewall = Known::Value(Firewall {
            tunnels: [(
                "wg1".to_owned(),
                TunnelFilter {
                    inner_uses_conntrack: uses,
                    ..TunnelFilter::default()
                },
            )]
            .into(),
            ..Firewall::default()
        });
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            for (name, count) in [
                ("Conntrack.invalid", each),
                ("TcpExt.TCPSACKReorder", out_of_order),
            ] {
                delta.protocols.insert(name.to_owned(), count);
            }
        });
        evidence
    }

    #[test]
    fn late_segments_that_count_as_invalid_are_found() {
        nothing(&invalid(4, 100, true, "0", 0.85));
        let finding = only_finding(&invalid(5, 100, true, "0", 0.7), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Upload))
        );
        assert_eq!(finding.remedies[0].changes[0].value, "1");
        assert!(finding.remedies[0].commands[0].contains("be_liberal='1'"));
        assert_eq!(finding.remedies.len(), 2);
    }

    #[test]
    fn what_comes_without_a_load_is_not_the_tunnels() {
        // Ten seconds of loads: twice the five a second that come at any time are 100.
        let mut evidence = invalid(24, 100, true, "0", 0.85);
        let probing = evidence.probing_far.as_mut().unwrap();
        probing.seconds = 4.0;
        probing.protocols.insert("Conntrack.invalid".to_owned(), 20);
        nothing(&evidence);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let counts = &mut at(sample, End::Far).protocols;
            counts.insert("Conntrack.invalid".to_owned(), 25);
        });
        only_finding(&evidence, CODE);
        // Without the probes' counters the loads outside tell.
        evidence.probing_far = None;
        each_sample(&mut evidence, Direction::Upload, Via::Bare, |sample| {
            let counts = &mut at(sample, End::Far).protocols;
            counts.insert("Conntrack.invalid".to_owned(), 11);
        });
        nothing(&evidence);
    }

    #[test]
    fn segments_behind_a_lost_one_are_not_out_of_order() {
        let mut evidence = invalid(50, 0, true, "0", 0.85);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let counts = &mut at(sample, End::Far).protocols;
            counts.insert("TcpExt.TCPOFOQueue".to_owned(), 500);
        });
        nothing(&evidence);
    }

    #[test]
    fn rules_that_nobody_can_read_may_ask_for_it() {
        let mut evidence = invalid(50, 100, false, "0", 0.7);
        if let Known::Value(firewall) = &mut facts_of(&mut evidence, End::Far).firewall {
            firewall.legacy = true;
        }
        let finding = only_finding(&evidence, CODE);
        assert!(finding.confidence < 0.5);
        assert!(finding.because.contains("is not known"));
    }

    #[test]
    fn without_harm_it_is_only_worth_knowing() {
        assert_eq!(
            only_finding(&invalid(50, 100, true, "0", 0.95), CODE).severity,
            Severity::Info
        );
    }

    #[test]
    fn it_takes_reordering_a_rule_and_strictness() {
        nothing(&invalid(50, 0, true, "0", 0.85));
        nothing(&invalid(50, 100, false, "0", 0.85));
        nothing(&invalid(50, 100, true, "1", 0.85));
        let mut newer = invalid(50, 100, true, "0", 0.85);
        facts_of(&mut newer, End::Far).host.kernel = "6.1.0-21-amd64".to_owned();
        nothing(&newer);
    }
}
