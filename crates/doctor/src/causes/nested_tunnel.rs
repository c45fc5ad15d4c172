//! `nested-tunnel`: the tunnel's own packets leave by another tunnel.
//!
//! Known from the route to the peer's endpoint. Where the MTUs are stacked it is worth knowing and no more: each packet
//! is wrapped twice. Where the inner tunnel's packets don't fit the outer one, it is the cause of that.

use wirespeed_facts::{Known, Link};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::{cpu_saturated, icmp_black_hole, mtu_exceeds_path, one_core_bound};
use crate::cards;
use crate::finding::{Check, Found, Outcome, command, line, rates_lines};
use crate::mtu::{self, IPV6_MINIMUM};
use crate::view::{DIRECTIONS, ENDS, sender};
use crate::{End, Evidence, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "nested-tunnel";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, || say!("nested-tunnel-title"), run)
};

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        if let Some(route) = cards::route(evidence, end)
            && let Known::Unknown(because) = &route.interface
        {
            outcome.not_known.push(say!(
                "nested-tunnel-unknown-route",
                host = evidence.name(end),
                to = route.to.to_string(),
                because = because
            ));
        }
        outcome
            .found
            .extend(outer(evidence, end).map(|outer| found(evidence, end, outer)));
    }
    outcome
}

/// The tunnel that carries the tunnel's packets to this peer at this end; those that carry another tunnel or peer are none.
/// The tunnel itself is none: its packets would not get out.
fn outer(evidence: &Evidence, end: End) -> Option<&Link> {
    let tunnel = evidence.tunnel(end)?;
    cards::route(evidence, end)?.interface.value()?;
    cards::outer_links(evidence, end)
        .into_iter()
        .find(|link| link.is_tunnel() && link.name != tunnel.name)
}

/// Bytes a full packet of the tunnel has in excess of what the outer tunnel takes.
fn too_large_by(evidence: &Evidence, end: End, outer: &Link) -> u32 {
    evidence.tunnel(end).map_or(0, |tunnel| {
        tunnel
            .mtu
            .saturating_add(mtu::overhead(evidence))
            .saturating_sub(outer.mtu)
    })
}

/// Packets that don't fit the outer tunnel. A busy processor is none: what wrapping twice has in that is not known.
fn brings(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    let Some(end) = ENDS
        .into_iter()
        .find(|end| evidence.name(*end) == cause.host)
    else {
        return false;
    };
    let sends = effect
        .direction
        .is_none_or(|direction| sender(direction) == end);
    let unfit = outer(evidence, end).is_some_and(|outer| too_large_by(evidence, end, outer) > 0);
    match effect.code.as_str() {
        mtu_exceeds_path::CODE | icmp_black_hole::CODE => unfit && sends,
        _ => false,
    }
}

/// Is an end short of processor time, so that wrapping twice costs throughput?
fn busy(evidence: &Evidence) -> bool {
    DIRECTIONS.into_iter().any(|direction| {
        evidence.below(direction, cpu_saturated::HEALTHY_RATIO) == Some(true)
            && (cpu_saturated::in_direction(evidence, direction)
                || one_core_bound::in_direction(evidence, direction))
    })
}

fn found(evidence: &Evidence, end: End, outer: &Link) -> Found {
    let host = evidence.name(end);
    let excess = too_large_by(evidence, end, outer);
    let overhead = mtu::overhead(evidence);
    let own_mtu = evidence.tunnel(end).map_or(0, |tunnel| tunnel.mtu);
    let kind = outer.kind.as_deref().unwrap_or("tunnel");
    let mut lines = vec![
        line(
            say!("nested-tunnel-line-route"),
            host,
            (),
            format!("{} ({kind})", outer.name),
            "",
        ),
        line(
            say!(
                "nested-tunnel-line-mtu",
                outer = &outer.name,
                overhead = overhead
            ),
            evidence.interface_at(end),
            outer.mtu,
            own_mtu.saturating_add(overhead),
            "bytes",
        ),
    ];
    let directions: Vec<Direction> = DIRECTIONS
        .into_iter()
        .filter(|direction| sender(*direction) == end)
        .collect();
    lines.extend(rates_lines(evidence, &directions));
    let because = if excess > 0 {
        say!(
            "nested-tunnel-because-too-large",
            place = evidence.interface_at(end),
            outer = &outer.name,
            kind = kind,
            excess = excess
        )
    } else {
        say!(
            "nested-tunnel-because",
            place = evidence.interface_at(end),
            outer = &outer.name,
            kind = kind
        )
    };
    Found {
        severity: if excess > 0 || busy(evidence) {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: 0.95,
        effect: if excess > 0 {
            evidence.worst_lost_share(&directions)
        } else {
            0.1
        },
        host: host.to_owned(),
        direction: None,
        evidence: lines,
        because,
        remedies: remedies(evidence, end, outer, excess),
        refused: Vec::new(),
    }
}

fn remedies(evidence: &Evidence, end: End, outer: &Link, excess: u32) -> Vec<Remedy> {
    let fitting = outer.mtu.saturating_sub(mtu::overhead(evidence));
    let stack = (excess > 0 && fitting >= 576).then(|| {
        let risk = if fitting < IPV6_MINIMUM {
            say!(
                "nested-tunnel-risk-stack-ipv6",
                mtu = fitting,
                least = IPV6_MINIMUM
            )
        } else {
            say!("nested-tunnel-risk-stack")
        };
        mtu::set_mtu(
            evidence,
            fitting,
            say!(
                "nested-tunnel-remedy-stack",
                mtu = fitting,
                outer = &outer.name
            ),
            |now, then| now > then,
            risk,
        )
    });
    let endpoint = evidence.peer_at(end).and_then(|peer| peer.endpoint);
    let around = endpoint.map(|endpoint| {
        let to = endpoint.ip().to_canonical();
        Remedy {
            title: say!(
                "nested-tunnel-remedy-around",
                to = to.to_string(),
                outer = &outer.name
            ),
            changes: Vec::new(),
            commands: vec![command(
                evidence,
                end,
                format!(
                    "ip route add {} via GATEWAY dev INTERFACE  # the way out without {}",
                    shell_word(&to.to_string()),
                    shell_word(&outer.name)
                ),
            )],
            goal: Goal::Goodput,
            persistence: say!("nested-tunnel-persistence-around"),
            risk: say!("nested-tunnel-risk-around", outer = &outer.name),
            undo: command(
                evidence,
                end,
                format!("ip route del {}", shell_word(&to.to_string())),
            ),
        }
    });
    stack.into_iter().chain(around).collect()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use wirespeed_facts::{EndpointRoute, Known, Link};
    use wirespeed_measure::Direction;
    use wirespeed_words::{Language, within};

    use super::CODE;
    use crate::cards::tests::route;
    use crate::testing::{
        codes, facts_of, healthy, not_checked, nothing, only_finding, path_mtu, tunnel_of,
    };
    use crate::{End, Evidence, Severity, judge};

    fn inside(mtu: u32) -> Evidence {
        let mut evidence = healthy();
        let facts = facts_of(&mut evidence, End::Here);
        facts.links.push(Link {
            index: 9,
            name: "vpn0".to_owned(),
            kind: Some("ipip".to_owned()),
            up: true,
            mtu,
            ..Link::default()
        });
        facts.outer_links = vec!["vpn0".to_owned()];
        facts.routes = vec![route([192, 0, 2, 1], "vpn0")];
        evidence
    }

    #[test]
    fn stacked_mtus_are_worth_a_word_and_one_byte_more_is_a_warning() {
        let finding = only_finding(&inside(1480), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Info, "client")
        );
        assert_eq!(finding.remedies.len(), 1);
        let finding = only_finding(&inside(1479), CODE);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.remedies[0].changes[0].value, 1419);
        assert!(finding.because.contains("one byte too large"));
        let because = |mtu| {
            within(Language::French, || {
                only_finding(&inside(mtu), CODE).because
            })
        };
        assert!(because(1479).contains("trop grand de 1\u{202f}octet pour"));
        assert!(because(1478).contains("trop grand de 2\u{202f}octets pour"));
    }

    #[test]
    fn packets_that_do_not_fit_are_its_consequence_in_the_direction_that_goes_through_it() {
        let mut evidence = inside(1400);
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        assert_eq!(codes(&judge(&evidence)), [CODE]);
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1500);
        evidence.path_mtu[1] = path_mtu(Direction::Download, 1400);
        assert_eq!(codes(&judge(&evidence)).len(), 2);
    }

    #[test]
    fn the_tunnel_itself_and_an_ordinary_link_are_no_outer_tunnels() {
        let mut evidence = inside(1480);
        let own = tunnel_of(&mut evidence, End::Here).name.clone();
        facts_of(&mut evidence, End::Here).routes[0].interface = Known::Value(own);
        nothing(&evidence);
        let mut evidence = inside(1480);
        facts_of(&mut evidence, End::Here).links[1].kind = Some("veth".to_owned());
        nothing(&evidence);
    }

    #[test]
    fn a_tunnel_that_carries_another_peer_carries_not_this_one() {
        let mut evidence = inside(1400);
        let facts = facts_of(&mut evidence, End::Here);
        facts.routes[0].to = IpAddr::from([198, 51, 100, 7]);
        nothing(&evidence);
        let facts = facts_of(&mut evidence, End::Here);
        facts.routes.push(route([192, 0, 2, 1], "eth0"));
        nothing(&evidence);
    }

    #[test]
    fn only_a_way_to_this_peer_that_is_not_known_is_worth_a_line() {
        let mut evidence = inside(1480);
        let unknown = |to| EndpointRoute {
            interface: Known::because("no route"),
            ..route(to, "")
        };
        evidence.here.routes = vec![unknown([198, 51, 100, 7])];
        assert!(!not_checked(&evidence, CODE));
        evidence.here.routes.push(unknown([192, 0, 2, 1]));
        assert!(not_checked(&evidence, CODE));
    }
}
