//! `napi-convergence`: several peers' packets are received by one core of the kernel's WireGuard.
//!
//! Each peer has a NAPI instance, and without threads each is polled on the core where its first packet was decrypted, until
//! all of them meet on one core and stay there: the "black hole" of the paper. Threaded NAPI lets the scheduler move them.

use std::collections::BTreeSet;
use wirespeed_words::say;

use wirespeed_facts::Facts;
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::Setting;

use super::cpu_saturated::{HEALTHY_RATIO, held_back, severity};
use super::old_kernel::{threaded, threaded_unknown};
use super::{names_host, napi_threaded_stall, one_core_bound, starves};
use crate::cores::{self, Cores};
use crate::finding::{Check, Found, Outcome, line, percent, rates_line, remedy_of};
use crate::versions::{Has, Kernel};
use crate::view::{DIRECTIONS, ENDS, moved, only};
use crate::{Change, End, Evidence, Finding, Goal, Refusal, Remedy};

pub(super) const CODE: &str = "napi-convergence";

pub(super) const CHECK: Check = Check {
    brings,
    slows,
    ..Check::new(CODE, || say!("napi-convergence-title"), run)
};

/// A core in softirq for this share is full of receiving: the rest goes to what interrupts it.
const SOFTIRQ_FULL: f64 = 0.85;
/// The others have room up to this mean.
const ROOM: f64 = 0.7;
/// Peers that bring at least this share of the bytes count.
const SHARE_OF_A_PEER: f64 = 0.05;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let hits: Vec<Hit> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| hit(evidence, end, direction))
            .collect();
        outcome.found.extend(found(evidence, end, &hits));
        outcome.not_known.extend(unknown(evidence, end));
    }
    outcome
}

/// Why it is not known that threads are off, where one core received for several peers.
fn unknown(evidence: &Evidence, end: End) -> Option<String> {
    let because = threaded_unknown(evidence, end)?;
    let mut directions = DIRECTIONS.into_iter();
    directions
        .any(|direction| on_one_core(evidence, end, direction).is_some())
        .then(|| {
            say!(
                "napi-convergence-unknown",
                place = evidence.interface_at(end),
                because = because
            )
        })
}

fn slows(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter()
        .any(|end| hit(evidence, end, direction).is_some())
}

fn brings(evidence: &Evidence, own: &Finding, effect: &Finding) -> bool {
    (effect.code == one_core_bound::CODE && names_host(evidence, own, &effect.host))
        || starves(evidence, own, effect)
}

struct Hit {
    direction: Direction,
    cores: Cores,
    /// Peers that sent meanwhile.
    peers: usize,
}

fn hit(evidence: &Evidence, end: End, direction: Direction) -> Option<Hit> {
    if threaded(evidence, end) != Some(false) {
        return None;
    }
    on_one_core(evidence, end, direction)
}

/// Several peers received on one core, whatever put them there.
fn on_one_core(evidence: &Evidence, end: End, direction: Direction) -> Option<Hit> {
    if !held_back(evidence, direction) {
        return None;
    }
    let peers = busy_peers(evidence, end, direction);
    let cores = cores::of(evidence, end, direction)?;
    let softirq = cores.softirq.iter().copied().fold(0.0, f64::max);
    let room = cores.others.is_some_and(|others| others <= ROOM);
    (peers > 1 && softirq >= SOFTIRQ_FULL && room).then_some(Hit {
        direction,
        cores,
        peers,
    })
}

/// Peers that a noticeable part of the received bytes came from.
pub(super) fn busy_peers(evidence: &Evidence, end: End, direction: Direction) -> usize {
    let received: Vec<(&str, u64)> = evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| moved(sample, end))
        .flat_map(|delta| &delta.peers)
        .map(|(key, peer)| (key.as_str(), peer.rx_bytes))
        .collect();
    let all = received
        .iter()
        .fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let keys: BTreeSet<&str> = received.iter().map(|(key, _)| *key).collect();
    keys.into_iter()
        .filter(|wanted| {
            let of_peer = received
                .iter()
                .filter(|(key, _)| key == wanted)
                .fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
            of_peer as f64 >= all as f64 * SHARE_OF_A_PEER && of_peer > 0
        })
        .count()
}

fn found(evidence: &Evidence, end: End, hits: &[Hit]) -> Option<Found> {
    let first = hits.first()?;
    let tunnel = evidence.tunnel(end)?;
    let facts = evidence.facts(end)?;
    let directions: Vec<Direction> = hits.iter().map(|hit| hit.direction).collect();
    let place = evidence.interface_at(end);
    let mut lines: Vec<_> = hits
        .iter()
        .flat_map(|hit| hit.cores.lines(evidence, end, hit.direction))
        .collect();
    lines.push(line("/sys/class/net/NAME/threaded", &place, (), 0, ""));
    for hit in hits {
        lines.push(line(
            say!(
                "napi-convergence-line-peers",
                direction = hit.direction.word()
            ),
            &place,
            (),
            hit.peers as u64,
            "peers",
        ));
        lines.extend(rates_line(evidence, hit.direction));
    }
    let certain = directions
        .iter()
        .any(|direction| evidence.below(*direction, HEALTHY_RATIO) == Some(true));
    let (remedies, refused) = threads(evidence, end, facts, &tunnel.name);
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.8 } else { 0.5 },
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "napi-convergence-because",
            host = evidence.name(end),
            share = percent(first.cores.softirq.iter().copied().fold(0.0, f64::max)),
            peers = first.peers,
            others = percent(first.cores.others.unwrap_or_default())
        ),
        remedies,
        refused,
    })
}

/// Threads where the kernel bears them; by hand where it may; refused where it is known not to.
fn threads(
    evidence: &Evidence,
    end: End,
    facts: &Facts,
    interface: &str,
) -> (Vec<Remedy>, Vec<Refusal>) {
    let setting = Setting::ThreadedNapi {
        interface: interface.to_owned(),
    };
    let newer = Remedy {
        title: say!("napi-convergence-remedy-newer"),
        changes: Vec::new(),
        commands: Vec::new(),
        goal: Goal::Goodput,
        persistence: say!("napi-convergence-persistence-newer"),
        risk: say!("napi-convergence-risk-newer"),
        undo: say!("napi-convergence-undo-newer"),
    };
    let refusal = |why: String| Refusal {
        remedy: say!(
            "napi-convergence-refused",
            place = evidence.interface_at(end)
        ),
        why,
    };
    let fault = napi_threaded_stall::fault();
    let sources = fault.map_or(String::new(), |fault| fault.sources.join("; "));
    match fault.map(|fault| fault.of(&facts.host)) {
        Some(Has::Yes) => (
            vec![newer],
            vec![refusal(say!(
                "napi-convergence-refused-why",
                kernel = &facts.host.kernel,
                sources = sources
            ))],
        ),
        Some(Has::Perhaps) => (
            vec![newer],
            vec![refusal(say!(
                "napi-convergence-refused-why-perhaps",
                kernel = &facts.host.kernel,
                sources = sources
            ))],
        ),
        _ => {
            let change = Change {
                end,
                setting,
                value: true.into(),
            };
            // Linux 6.16 made it the default; before, it was only taken back where it had been backported to.
            let default = Kernel::of(&facts.host).is_some_and(|kernel| kernel.at_least(6, 16));
            let mut remedy = remedy_of(
                evidence,
                say!("napi-convergence-remedy-threads"),
                vec![(change, false.into())],
                Goal::Goodput,
                if default {
                    say!("napi-convergence-risk-threads")
                } else {
                    say!("napi-convergence-risk-threads-unproved", sources = sources)
                },
            );
            if default {
                (vec![remedy], Vec::new())
            } else {
                remedy.changes.clear();
                (vec![remedy, newer], Vec::new())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{CoreTime, Implementation, Known, LinkDetail, PeerCounters};

    use super::*;
    use crate::Severity;
    use crate::testing::{
        at, core, each_sample, facts_of, healthy, not_checked, nothing, only_finding, set_ratio,
        tunnel_of,
    };

    fn softirq(share: f64) -> CoreTime {
        CoreTime {
            system: 0.98 - share,
            softirq: share,
            idle: 0.02,
            ..CoreTime::default()
        }
    }

    fn converged(release: &str, share: f64, others: f64, second_peer: u64) -> Evidence {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let facts = facts_of(&mut evidence, End::Far);
        facts.host.kernel = release.to_owned();
        facts.links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(false),
            ..LinkDetail::default()
        });
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            delta.cores = vec![core(others), softirq(share), core(others), core(others)];
            for (key, rx_bytes) in [("here-key", 1_000_000), ("other-key", second_peer)] {
                delta.peers.insert(
                    key.to_owned(),
                    PeerCounters {
                        rx_bytes,
                        tx_bytes: 1,
                    },
                );
            }
        });
        evidence
    }

    #[test]
    fn several_peers_on_one_full_core_are_found() {
        let finding = only_finding(&converged("6.18.3", 0.9, 0.3, 900_000), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Upload))
        );
        assert_eq!(finding.remedies[0].changes[0].value, true);
        assert!(
            finding.remedies[0].commands[0].starts_with("echo 1 > /sys/class/net/wg1/threaded")
        );
        assert!(finding.remedies[0].undo.starts_with("echo 0 >"));
    }

    #[test]
    fn one_peer_or_a_core_with_room_is_something_else() {
        let code = |evidence: &Evidence| crate::judge(evidence).findings[0].code.clone();
        assert_eq!(
            code(&converged("6.18.3", 0.9, 0.3, 52_000)),
            "one-core-bound"
        );
        assert_eq!(code(&converged("6.18.3", 0.9, 0.3, 53_000)), CODE);
        assert_eq!(
            code(&converged("6.18.3", 0.84, 0.3, 900_000)),
            "one-core-bound"
        );
        assert_ne!(code(&converged("6.18.3", 0.9, 0.71, 900_000)), CODE);
        let mut fast = converged("6.18.3", 0.9, 0.3, 900_000);
        set_ratio(&mut fast, Direction::Upload, 0.96);
        nothing(&fast);
    }

    #[test]
    fn threads_are_never_proposed_where_peers_may_stall() {
        for release in [
            "6.1.163",
            "5.15.186",
            "6.12.40+deb13-amd64",
            "6.1.0-38-amd64",
        ] {
            let finding = only_finding_of(&converged(release, 0.9, 0.3, 900_000));
            assert!(
                finding.refused[0].why.contains("CVE-2026-52945"),
                "{release}"
            );
            assert!(
                finding
                    .remedies
                    .iter()
                    .all(|remedy| remedy.changes.is_empty() && remedy.commands.is_empty()),
                "{release}"
            );
        }
    }

    #[test]
    fn on_a_kernel_before_the_default_they_are_for_people_to_try() {
        let finding = only_finding_of(&converged("6.12.74+deb13-amd64", 0.9, 0.3, 900_000));
        assert!(finding.remedies[0].changes.is_empty());
        assert!(finding.remedies[0].commands[0].starts_with("echo 1 >"));
        assert!(finding.remedies[0].risk.contains("stall"));
        assert!(finding.refused.is_empty());
    }

    fn only_finding_of(evidence: &Evidence) -> Finding {
        only_finding(evidence, CODE)
    }

    #[test]
    fn threads_that_nobody_knows_of_are_said_where_one_core_receives_for_all() {
        let unreadable = |mut evidence: Evidence| {
            facts_of(&mut evidence, End::Far).links[0].detail = Known::Value(LinkDetail::default());
            evidence
        };
        let converged = |others: f64| converged("6.18.3", 0.9, others, 900_000);
        assert!(!not_checked(&converged(0.3), CODE));
        assert!(not_checked(&unreadable(converged(0.3)), CODE));
        assert!(!not_checked(&unreadable(converged(0.71)), CODE));
        let mut daemon = unreadable(converged(0.3));
        tunnel_of(&mut daemon, End::Far).implementation =
            tunnel_of(&mut healthy(), End::Far).implementation.clone();
        assert!(!not_checked(&daemon, CODE));
    }

    #[test]
    fn threads_that_are_on_or_a_daemon_are_no_matter() {
        let mut evidence = converged("6.18.3", 0.9, 0.3, 900_000);
        facts_of(&mut evidence, End::Far).links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(true),
            ..LinkDetail::default()
        });
        only_finding(&evidence, "one-core-bound");
    }
}
