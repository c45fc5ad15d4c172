//! `udp-shaped`: the road carries TCP faster than UDP, or than the tunnel's own UDP.
//!
//! Asked only where the tunnel is far slower than bare TCP and nothing on the machines explains it. Then numbered
//! datagrams at a rate that bare TCP reaches easily tell: lost in numbers, all UDP is policed; not lost while the
//! tunnel's own packets are (by the peers' counters at both ends), the tunnel's port or protocol is.

use std::net::{IpAddr, SocketAddr};

use wirespeed_measure::{Direction, SequenceProbe, Via};
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::{CHECKS, bufferbloat, cpu_saturated, offload_broken, one_core_bound, same_direction};
use crate::cores;
use crate::finding::{Check, Found, Outcome, by_hand, command, line, percent, rate, rates_line};
use crate::losses::on_the_way;
use crate::probe::{Datagrams, Probe};
use crate::road::{self, OuterLoss};
use crate::view::{DIRECTIONS, ENDS, moved, receiver, sender, way};
use crate::{End, Evidence, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "udp-shaped";

pub(super) const CHECK: Check = Check {
    brings: |evidence, own, effect| {
        // A shaper's queue fills through the tunnel only.
        effect.code == bufferbloat::CODE
            && same_direction(own, effect)
            && effect
                .direction
                .is_some_and(|direction| !bufferbloat::on_the_road(evidence, direction))
    },
    slows: |evidence, direction| {
        evidence.below(direction, FAR_SLOWER) == Some(true)
            && match told(evidence, direction) {
                Some(Shaped::AllUdp(_)) => true,
                // Trains that break lose the tunnel's packets alone, too.
                Some(Shaped::Tunnel(..)) => !offload_broken::untried(evidence, direction),
                None => false,
            }
    },
    wants,
    ..Check::new(CODE, || say!("udp-shaped-title"), run)
};

/// Worth a look where the tunnel carries less than this share of bare TCP for sure.
const FAR_SLOWER: f64 = 0.7;
/// Share of bare TCP's rate at which datagrams are sent: easy for a road that treats them alike.
const OFFERED_SHARE: f64 = 0.7;
/// No more than this, bit/s: an end should not run out of processor for it.
const OFFERED_AT_MOST: f64 = 300e6;
const SECONDS: f64 = 2.5;
/// A probe at a rate has datagrams of at least this size.
const FULL: u32 = 1000;
/// Policed: at least this share of the datagrams is lost, though bare TCP goes faster than they do …
const POLICED: f64 = 0.15;
/// … and not policed: at most this share is lost.
const UNTOUCHED: f64 = 0.02;
/// The tunnel's own packets are lost from this share on …
const OUTER_LOST: f64 = 0.02;
/// … when the machines' own queues account for at most this part of it.
const OWN_PART: f64 = 0.2;
/// Processors busy no more than this on the whole …
const ROOM: f64 = 0.75;
/// … and none of them more than this lose no packets of the tunnel.
const ROOM_OF_ONE: f64 = 0.9;
/// The datagrams must outrun the tunnel this many times to say anything of it.
const OUTRUN: f64 = 1.3;
/// Ports to move to, best first: QUIC's, which networks that slow UDP often spare; that of `IPsec` behind a NAT, which they
/// let through for their guests' VPNs. Not 53: many networks answer that themselves.
const KNOWN_PORTS: [u16; 2] = [443, 4500];
/// From here on where all of them are taken: WireGuard's usual port.
const USUAL_PORT: u16 = 51_820;

/// What is held back.
#[derive(Debug, Clone, Copy)]
enum Shaped<'a> {
    /// Every UDP packet.
    AllUdp(&'a SequenceProbe),
    /// The tunnel's packets alone.
    Tunnel(&'a SequenceProbe, OuterLoss),
}

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        if let Some(shaped) = shaped(evidence, direction) {
            outcome.found.push(found(evidence, direction, shaped));
        } else if suspected(evidence, direction) && at_rate(evidence, direction).is_none() {
            outcome
                .not_known
                .push(say!("udp-shaped-unknown", direction = direction.word()));
        }
    }
    outcome
}

fn wants(evidence: &Evidence, direction: Direction) -> Option<Probe> {
    let bare = evidence.comparison(direction)?.bare?;
    let rate = (bare * OFFERED_SHARE).min(OFFERED_AT_MOST).round();
    (suspected(evidence, direction) && at_rate(evidence, direction).is_none())
        .then(|| Probe::Sequence(Datagrams::at_rate(direction, rate, SECONDS)))
}

/// Is all UDP policed, so that no processor is what holds the tunnel back?
pub(super) fn policed(evidence: &Evidence, direction: Direction) -> bool {
    evidence.below(direction, FAR_SLOWER) == Some(true)
        && matches!(told(evidence, direction), Some(Shaped::AllUdp(_)))
}

/// Far slower than bare TCP for sure, and nothing known explains it. A queue that only the tunnel fills may be the
/// shaper's own, and a processor that seems to be the limit may have been busy with something else: then the datagrams
/// tell the two apart.
fn suspected(evidence: &Evidence, direction: Direction) -> bool {
    evidence.below(direction, FAR_SLOWER) == Some(true)
        && !evidence.stalled(direction)
        && !CHECKS
            .iter()
            .filter(|check| {
                let code = check.code;
                ![
                    CODE,
                    bufferbloat::CODE,
                    cpu_saturated::CODE,
                    one_core_bound::CODE,
                ]
                .contains(&code)
            })
            .any(|check| (check.slows)(evidence, direction))
        && !bufferbloat::on_the_road(evidence, direction)
}

/// The count at a rate that says something: the sender kept up, the receiver lost next to nothing itself, and it
/// outran the tunnel while it stayed below bare TCP.
fn at_rate(evidence: &Evidence, direction: Direction) -> Option<&SequenceProbe> {
    let comparison = evidence.comparison(direction)?;
    let bare = comparison.bare?;
    road::probes(evidence, direction).find(|probe| {
        probe.payload >= FULL
            && probe.offered >= OUTRUN * comparison.tunnel
            && probe.offered <= 0.85 * bare
            && probe.receiver_dropped.saturating_mul(50) <= probe.sent
            && probe.send_refused.saturating_mul(50) <= probe.sent
    })
}

fn shaped(evidence: &Evidence, direction: Direction) -> Option<Shaped<'_>> {
    told(evidence, direction)
        .filter(|_| suspected(evidence, direction))
        // Packets of the tunnel are lost by a daemon without processor time, too.
        .filter(|shaped| matches!(shaped, Shaped::AllUdp(_)) || has_room(evidence, direction))
}

/// Did both machines have processor time to spare for sure while the tunnel was loaded?
fn has_room(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter().all(|end| {
        cores::of(evidence, end, direction)
            .is_some_and(|cores| cores.mean <= ROOM && cores.busiest <= ROOM_OF_ONE)
    })
}

/// What the datagrams tell, whatever else may explain it.
fn told(evidence: &Evidence, direction: Direction) -> Option<Shaped<'_>> {
    let probe = at_rate(evidence, direction)?;
    if probe.lost()? >= POLICED {
        return Some(Shaped::AllUdp(probe));
    }
    let outer = road::outer_loss(evidence, direction)?;
    let lost_outside = outer.share() >= OUTER_LOST
        && probe.lost()? <= UNTOUCHED
        && own_drops(evidence, direction) <= OWN_PART * packets_lost(evidence, direction, outer);
    lost_outside.then_some(Shaped::Tunnel(probe, outer))
}

/// Packets of the tunnel that got lost on the way, about.
fn packets_lost(evidence: &Evidence, direction: Direction, outer: OuterLoss) -> f64 {
    let size = evidence
        .tunnel(sender(direction))
        .map_or(1452, |tunnel| tunnel.mtu.saturating_add(32));
    outer.sent.saturating_sub(outer.received) as f64 / f64::from(size.max(100))
}

/// Packets that the machines themselves dropped on the tunnel's way out and in during the loads.
fn own_drops(evidence: &Evidence, direction: Direction) -> f64 {
    let mut drops = 0_u64;
    for sample in evidence.samples(direction, Via::Tunnel) {
        for end in ENDS {
            let Some(moved) = moved(sample, end) else {
                continue;
            };
            let way = on_the_way(evidence, end, moved);
            let inner = evidence.tunnel(end).map(|tunnel| tunnel.name.as_str());
            let outer =
                |name: &&String| way.contains(&name.as_str()) && inner != Some(name.as_str());
            let links = moved.links.iter().filter(|(name, _)| outer(name));
            let qdiscs = moved.qdiscs.iter().filter(|(name, _)| outer(name));
            let softnet = moved.softnet.iter().map(|core| core.dropped);
            let counts = if end == sender(direction) {
                links
                    .map(|(_, link)| link.tx_dropped)
                    .chain(qdiscs.map(|(_, qdisc)| qdisc.drops))
                    .fold(0, u64::saturating_add)
            } else {
                links
                    .map(|(_, link)| link.rx_dropped)
                    .chain(softnet)
                    .chain(moved.socket_drops.values().copied())
                    .fold(0, u64::saturating_add)
            };
            drops = drops.saturating_add(counts);
        }
    }
    drops as f64
}

fn found(evidence: &Evidence, direction: Direction, shaped: Shaped<'_>) -> Found {
    let (from, to) = (
        evidence.name(sender(direction)),
        evidence.name(receiver(direction)),
    );
    let (Shaped::AllUdp(probe) | Shaped::Tunnel(probe, _)) = shaped;
    let mut lines = vec![line(
        say!(
            "udp-shaped-line-udp",
            port = probe.port.to_string(),
            direction = direction.word()
        ),
        way(from, to),
        probe.offered,
        probe.arrived,
        "bit/s",
    )];
    lines.extend(rates_line(evidence, direction));
    lines
        .extend(road::outer_loss(evidence, direction).map(|outer| outer.line(evidence, direction)));
    let bare = evidence
        .comparison(direction)
        .and_then(|comparison| comparison.bare)
        .unwrap_or_default();
    let because = match shaped {
        Shaped::AllUdp(probe) => say!(
            "udp-shaped-because-all",
            from = from,
            to = to,
            tcp = rate(bare),
            offered = rate(probe.offered),
            arrived = rate(probe.arrived)
        ),
        Shaped::Tunnel(probe, outer) => say!(
            "udp-shaped-because-tunnel",
            from = from,
            to = to,
            share = percent(outer.share()),
            port = probe.port.to_string(),
            offered = rate(probe.offered)
        ),
    };
    Found {
        severity: if evidence.crippled(direction) {
            Severity::Critical
        } else {
            Severity::Warning
        },
        confidence: match shaped {
            Shaped::AllUdp(_) => 0.9,
            Shaped::Tunnel(..) => 0.7,
        },
        effect: evidence.lost_share(direction),
        host: from.to_owned(),
        direction: Some(direction),
        evidence: lines,
        because,
        remedies: vec![another_port(evidence, shaped)],
        refused: vec![Refusal {
            remedy: say!("udp-shaped-refused"),
            why: say!("udp-shaped-refused-why"),
        }],
    }
}

/// Another port, at the end that is called. Where neither end has the address that the other one sends to, its port is
/// the one of a port forward, and that is not ours to change.
fn another_port(evidence: &Evidence, shaped: Shaped<'_>) -> Remedy {
    let called = ENDS
        .into_iter()
        .rev()
        .find_map(|end| moved_to(evidence, end, shaped));
    called.unwrap_or_else(|| {
        let title = match shaped {
            Shaped::AllUdp(_) => say!("udp-shaped-remedy-try-by-hand"),
            Shaped::Tunnel(..) => say!("udp-shaped-remedy-move-by-hand"),
        };
        by_hand(title, say!("udp-shaped-risk"))
    })
}

/// Another port at this end, if the other one calls it by an address and a port of its own.
fn moved_to(evidence: &Evidence, end: End, shaped: Shaped<'_>) -> Option<Remedy> {
    let other = match end {
        End::Here => End::Far,
        End::Far => End::Here,
    };
    let tunnel = evidence.tunnel(end)?;
    let before = tunnel.listen_port?;
    let endpoint = evidence.peer_at(other)?.endpoint?;
    if endpoint.port() != before || !has_address(evidence, end, endpoint.ip()) {
        return None;
    }
    let port = free_port(evidence, end)?;
    let key = shell_word(tunnel.public_key.as_ref()?).into_owned();
    let their = shell_word(&evidence.tunnel(other)?.name).into_owned();
    let name = shell_word(&tunnel.name).into_owned();
    let to = |port: u16| SocketAddr::new(endpoint.ip(), port);
    let both = |port: u16| {
        vec![
            command(evidence, end, format!("wg set {name} listen-port {port}")),
            command(
                evidence,
                other,
                format!("wg set {their} peer {key} endpoint {}", to(port)),
            ),
        ]
    };
    Some(Remedy {
        title: match shaped {
            Shaped::AllUdp(_) if port == KNOWN_PORTS[0] => say!("udp-shaped-remedy-try"),
            Shaped::AllUdp(_) => say!("udp-shaped-remedy-try-port", port = port.to_string()),
            Shaped::Tunnel(..) => say!("udp-shaped-remedy-move"),
        },
        changes: Vec::new(),
        commands: both(port),
        goal: Goal::Goodput,
        persistence: say!("udp-shaped-persistence", port = port.to_string()),
        risk: say!("udp-shaped-risk"),
        undo: both(before).join("\n"),
    })
}

/// A port on which no tunnel of this end listens, this one included.
fn free_port(evidence: &Evidence, end: End) -> Option<u16> {
    let tunnels = &evidence.facts(end)?.tunnels;
    let taken = |port: u16| {
        tunnels.iter().any(|tunnel| {
            let sockets = tunnel.sockets.value().into_iter().flatten();
            let mut open = sockets.map(|socket| socket.local.port());
            tunnel.listen_port == Some(port) || open.any(|own| own == port)
        })
    };
    KNOWN_PORTS
        .into_iter()
        .chain(USUAL_PORT..=u16::MAX)
        .find(|port| !taken(*port))
}

/// Has a link of this end this address?
fn has_address(evidence: &Evidence, end: End, address: IpAddr) -> bool {
    let own = |text: &String| {
        let own = text.split('/').next().map(str::parse::<IpAddr>);
        own.is_some_and(|own| own == Ok(address.to_canonical()))
    };
    evidence
        .facts(end)
        .into_iter()
        .flat_map(|facts| &facts.links)
        .any(|link| link.addresses.iter().any(own))
}

#[cfg(test)]
mod tests;
