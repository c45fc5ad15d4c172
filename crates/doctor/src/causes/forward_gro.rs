//! `forward-gro`: a gateway hands every datagram by itself into a userspace tunnel, which could take them in trains.
//!
//! The kernel coalesces UDP that it forwards only with `rx-udp-gro-forwarding`, off by default; TCP it coalesces anyway. It
//! pays where the daemon takes trains of datagrams from its TUN interface (Linux 6.2 and later), and costs nothing else.

use wirespeed_facts::{Facts, Implementation, Link};
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::Setting;
use wirespeed_words::say;

use super::cpu_saturated;
use super::old_kernel::is_on;
use crate::finding::{Check, Found, Outcome, line, rates_line, remedy_of};
use crate::view::{DIRECTIONS, ENDS, moved, only, sender};
use crate::{Change, End, Evidence, Goal, Refusal, Severity};

pub(super) const CODE: &str = "forward-gro";

pub(super) const CHECK: Check = Check::new(CODE, || say!("forward-gro-title"), run);

const FORWARDING: &str = "rx-udp-gro-forwarding";
const LISTS: &str = "rx-gro-list";
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// Fewer forwarded packets a second are no work.
const FEWEST_A_SECOND: f64 = 1000.0;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some((tunnel, facts)) = evidence.tunnel(end).zip(evidence.facts(end)) else {
            continue;
        };
        let off = not_coalescing(facts, &tunnel.name);
        if tunnel.implementation == Implementation::Kernel {
            if !off.is_empty() {
                outcome.refused.push(refused(evidence, end));
            }
            continue;
        }
        let hits: Vec<(Direction, u64)> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| Some((direction, forwarded(evidence, end, direction)?)))
            .collect();
        outcome
            .found
            .extend(found(evidence, end, facts, &off, &hits));
    }
    outcome
}

/// Links other than the tunnel by which packets come in that are forwarded, and whose UDP is not coalesced for it.
fn not_coalescing<'a>(facts: &'a Facts, tunnel: &str) -> Vec<&'a Link> {
    let forwards = |link: &&Link| {
        link.up
            && link.name != tunnel
            && link.name != "lo"
            && !link.is_tunnel()
            && (link.forwards_ipv4 == Some(true) || link.forwards_ipv6 == Some(true))
    };
    let coalesces_tcp_only = |link: &&Link| {
        is_on(link, "rx-gro")
            && !is_on(link, LISTS)
            && link
                .offloads
                .value()
                .is_some_and(|features| features.get(FORWARDING) == Some(&false))
    };
    facts
        .links
        .iter()
        .filter(forwards)
        .filter(coalesces_tcp_only)
        .collect()
}

/// Packets that this end forwarded while it sent in this direction, where they are many and its processor holds it back.
fn forwarded(evidence: &Evidence, end: End, direction: Direction) -> Option<u64> {
    if sender(direction) != end || !cpu_saturated::limits(evidence, end, direction) {
        return None;
    }
    let mut seconds = 0.0;
    let mut packets = 0_u64;
    for delta in evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| moved(sample, end))
    {
        seconds += delta.seconds;
        for name in ["Ip.ForwDatagrams", "Ip6.OutForwDatagrams"] {
            packets =
                packets.saturating_add(delta.protocols.get(name).copied().unwrap_or_default());
        }
    }
    (seconds > 0.0 && packets as f64 / seconds >= FEWEST_A_SECOND).then_some(packets)
}

fn found(
    evidence: &Evidence,
    end: End,
    facts: &Facts,
    off: &[&Link],
    hits: &[(Direction, u64)],
) -> Option<Found> {
    let (direction, packets) = hits.first()?;
    let tunnel = &evidence.tunnel(end)?.name;
    // A daemon that takes datagrams one by one gains nothing by trains: the kernel would cut them again before it.
    let takes_trains = facts
        .link(tunnel)
        .is_some_and(|link| is_on(link, UDP_SEGMENTATION));
    if off.is_empty() || !takes_trains {
        return None;
    }
    let place = evidence.name(end);
    let directions: Vec<Direction> = hits.iter().map(|(direction, _)| *direction).collect();
    let mut lines = vec![
        line(
            say!("forward-gro-line-forwarded", direction = direction.word()),
            place,
            0,
            *packets,
            "packets",
        ),
        line(feature_of(tunnel, UDP_SEGMENTATION), place, (), "on", ""),
    ];
    lines.extend(
        off.iter()
            .map(|link| line(feature_of(&link.name, FORWARDING), place, "on", "off", "")),
    );
    lines.extend(rates_line(evidence, *direction));
    let changes = off
        .iter()
        .map(|link| {
            let change = Change {
                end,
                setting: Setting::LinkOffload {
                    interface: link.name.clone(),
                    feature: FORWARDING.to_owned(),
                },
                value: true.into(),
            };
            (change, false.into())
        })
        .collect();
    let names: Vec<&str> = off.iter().map(|link| link.name.as_str()).collect();
    Some(Found {
        // How much of it is UDP nobody counts.
        severity: Severity::Info,
        confidence: 0.5,
        effect: 0.1,
        host: place.to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "forward-gro-because",
            host = place,
            tunnel = tunnel,
            links = names.join(", ")
        ),
        remedies: vec![remedy_of(
            evidence,
            say!("forward-gro-remedy"),
            changes,
            Goal::Goodput,
            say!("forward-gro-risk"),
        )],
        refused: Vec::new(),
    })
}

fn feature_of(interface: &str, feature: &str) -> String {
    say!(
        "forward-gro-line-feature",
        interface = interface,
        feature = feature
    )
}

fn refused(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: say!("forward-gro-refused", host = evidence.name(end)),
        why: say!("forward-gro-refused-why"),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::Known;

    use super::*;
    use crate::testing::{
        at, codes, core, each_sample, facts_of, healthy, nothing, set_ratio, tunnel_of,
    };
    use crate::{Finding, judge};

    fn gateway(per_second: u64, busy: f64, coalesces: bool, trains: bool) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        let facts = facts_of(&mut evidence, End::Here);
        facts.links[0].offloads = Known::Value([(UDP_SEGMENTATION.to_owned(), trains)].into());
        facts.links.push(Link {
            name: "lan0".to_owned(),
            up: true,
            forwards_ipv4: Some(true),
            offloads: Known::Value(
                [
                    ("rx-gro".to_owned(), true),
                    (LISTS.to_owned(), false),
                    (FORWARDING.to_owned(), coalesces),
                ]
                .into(),
            ),
            ..Link::default()
        });
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Here);
            delta.cores = vec![core(busy); 4];
            let packets = per_second * delta.seconds as u64;
            delta
                .protocols
                .insert("Ip.ForwDatagrams".to_owned(), packets);
        });
        evidence
    }

    fn finding(evidence: &Evidence) -> Option<Finding> {
        judge(evidence)
            .findings
            .into_iter()
            .find(|finding| finding.code == CODE)
    }

    #[test]
    fn a_busy_gateway_that_does_not_coalesce_is_told() {
        let evidence = gateway(1000, 0.97, false, true);
        assert_eq!(codes(&judge(&evidence)), ["cpu-saturated", CODE]);
        let finding = finding(&evidence).unwrap();
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Info, "client")
        );
        assert!(
            finding.remedies[0].commands[0].starts_with("ethtool -K lan0 rx-udp-gro-forwarding on")
        );
    }

    #[test]
    fn it_takes_forwarding_a_daemon_that_takes_trains_and_a_busy_processor() {
        assert_eq!(finding(&gateway(999, 0.97, false, true)), None);
        assert_eq!(finding(&gateway(1000, 0.97, true, true)), None);
        assert_eq!(finding(&gateway(1000, 0.97, false, false)), None);
        let mut idle = gateway(1000, 0.5, false, true);
        set_ratio(&mut idle, Direction::Upload, 0.9);
        nothing(&idle);
    }

    #[test]
    fn for_the_kernels_tunnel_it_is_refused() {
        let mut evidence = gateway(1000, 0.5, false, true);
        set_ratio(&mut evidence, Direction::Upload, 0.96);
        tunnel_of(&mut evidence, End::Here).implementation = Implementation::Kernel;
        let diagnosis = judge(&evidence);
        assert_eq!(diagnosis.findings, []);
        assert!(
            diagnosis
                .refused
                .iter()
                .any(|refusal| refusal.why.contains("udp_gro_receive"))
        );
    }
}
