//! `nat-timeout`: after some idle time the far end cannot reach us until we send.
//!
//! Known from the order of events on an idle tunnel, before any other probe; without a far end only from a handshake
//! that is old while we send and nothing comes back.

use std::net::IpAddr;
use wirespeed_words::say;

use wirespeed_facts::{Known, Peer};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;

use crate::finding::{Check, Found, Outcome, command, line};
use crate::{End, Evidence, FarKind, Goal, IdleReturn, Remedy, Severity};

pub(super) const CODE: &str = "nat-timeout";

pub(super) const CHECK: Check = Check::new(CODE, || say!("nat-timeout-title"), run);

/// A session is renewed every two minutes while it is used and is dead after three (WireGuard's `REJECT_AFTER_TIME`), seconds.
const DEAD_AFTER: f64 = 180.0;
/// What is sent over a dead session begins a handshake, which WireGuard tries anew after so many seconds
/// (`REKEY_TIMEOUT`): a peer that is there has answered by then.
const ANSWERS_WITHIN: f64 = 5.0;
/// Under the usual 30 s a NAT keeps an idle UDP mapping.
const KEEPALIVE_SECONDS: u16 = 25;

fn run(evidence: &Evidence) -> Outcome {
    match (&evidence.idle_return, evidence.far_kind) {
        (Known::Unknown(_), _) if evidence.passive.is_some() => one_sided(evidence),
        (Known::Value(order), _) => Outcome {
            of_no_load: fell_asleep(evidence, order).into_iter().collect(),
            not_known: far_behind_a_nat(evidence)
                .into_iter()
                .chain(never_idle(evidence, order))
                .collect(),
            ..Outcome::default()
        },
        (Known::Unknown(because), FarKind::Wirespeed) => Outcome::unknown(because),
        (Known::Unknown(_), _) => one_sided(evidence),
    }
}

fn fell_asleep(evidence: &Evidence, order: &IdleReturn) -> Option<Found> {
    let silent_first = order.far_first.0 == 0 && order.far_first.1 >= 2;
    let then_fine = answered(order.here_then) && answered(order.far_after);
    let ours = evidence.peer_at(End::Here);
    let theirs = evidence.peer_at(End::Far);
    // A far end that never heard of us has nowhere to send to: that is a first contact, not a timeout.
    let knew_us = theirs.is_none_or(|peer| peer.endpoint.is_some() && peer.handshake_age.is_some());
    let keepalive_off = ours.is_some_and(|peer| peer.keepalive == 0);
    if !(silent_first && then_fine && knew_us && (order.translated_to.is_some() || keepalive_off)) {
        return None;
    }
    // What was lost then was lost otherwise: on a radio link that slept, in a handshake that was due.
    if ours.is_some_and(kept_awake) {
        return None;
    }
    let where_far = evidence.name(End::Far);
    let where_here = evidence.name(End::Here);
    let mut lines = vec![
        line(
            say!("nat-timeout-line-far-first"),
            where_far,
            order.far_first.1,
            order.far_first.0,
            "packets",
        ),
        line(
            say!("nat-timeout-line-here-then"),
            where_here,
            order.here_then.1,
            order.here_then.0,
            "packets",
        ),
        line(
            say!("nat-timeout-line-far-after"),
            where_far,
            order.far_after.1,
            order.far_after.0,
            "packets",
        ),
    ];
    if let Some(address) = &order.translated_to {
        lines.push(line(
            say!("nat-timeout-line-translated"),
            where_far,
            (),
            address.clone(),
            "",
        ));
    }
    lines.extend(ours.map(|peer| {
        line(
            say!("nat-timeout-line-keepalive"),
            evidence.interface_at(End::Here),
            (),
            peer.keepalive,
            "s",
        )
    }));
    Some(Found {
        severity: Severity::Warning,
        confidence: if order.translated_to.is_some() {
            0.95
        } else {
            0.85
        },
        effect: 0.5,
        host: where_here.to_owned(),
        direction: Some(Direction::Download),
        evidence: lines,
        because: say!("nat-timeout-because", far = where_far, here = where_here),
        remedies: vec![keepalive(evidence, End::Here, ours)],
        refused: Vec::new(),
    })
}

/// Does its keepalive hold a mapping open already?
fn kept_awake(peer: &Peer) -> bool {
    (1..=KEEPALIVE_SECONDS).contains(&peer.keepalive)
}

/// The far end sends first, and that opens a mapping on its own side: of a NAT there the order of events tells nothing.
fn far_behind_a_nat(evidence: &Evidence) -> Option<String> {
    let endpoint = evidence.peer_at(End::Here)?.endpoint?;
    let tunnel = evidence.tunnel(End::Far)?;
    let outside: Vec<IpAddr> = evidence
        .facts(End::Far)?
        .links
        .iter()
        .filter(|link| link.name != "lo" && link.name != tunnel.name)
        .flat_map(|link| &link.addresses)
        .filter_map(|address| address.split('/').next()?.parse().ok())
        .collect();
    let translated = !outside.is_empty() && !outside.contains(&endpoint.ip().to_canonical());
    let asleep = evidence
        .peer_at(End::Far)
        .is_some_and(|peer| peer.keepalive == 0);
    (translated && asleep).then(|| {
        say!(
            "nat-timeout-unknown-far",
            far = evidence.name(End::Far),
            address = endpoint.ip().to_string()
        )
    })
}

/// What the far end sent arrived, but over a tunnel that was in use: by a program of the user's, by the ssh that brought us
/// there, or by loads of this run that came before.
fn never_idle(evidence: &Evidence, order: &IdleReturn) -> Option<String> {
    let awake = order.far_first.0 > 0 && order.carried_before > 0;
    let kept = evidence.peer_at(End::Here).is_some_and(kept_awake);
    (awake && !kept).then(|| {
        say!(
            "nat-timeout-unknown-in-use",
            bytes = order.carried_before,
            place = evidence.interface_at(End::Here)
        )
    })
}

fn answered((received, sent): (u32, u32)) -> bool {
    sent > 0 && received.saturating_mul(2) >= sent
}

fn one_sided(evidence: &Evidence) -> Outcome {
    let Some(peer) = evidence.peer_at(End::Here) else {
        return Outcome::unknown(say!("nat-timeout-unknown-peer"));
    };
    let not_tried = if evidence.passive.is_some() {
        say!("nat-timeout-unknown-watched")
    } else {
        say!("nat-timeout-unknown-one-sided")
    };
    let Some((age, sent)) = silence(evidence, peer).filter(|_| !kept_awake(peer)) else {
        return Outcome::unknown(not_tried);
    };
    let place = evidence.interface_at(End::Here);
    let found = Found {
        // A far end that is gone looks the same from one side.
        severity: Severity::Info,
        confidence: 0.4,
        effect: 0.5,
        host: evidence.name(End::Here).to_owned(),
        direction: None,
        evidence: vec![
            line(
                say!("nat-timeout-line-handshake"),
                &place,
                DEAD_AFTER,
                age,
                "s",
            ),
            line(
                say!("nat-timeout-line-silence"),
                &place,
                sent,
                0_u64,
                "bytes",
            ),
            line(
                say!("nat-timeout-line-keepalive"),
                &place,
                (),
                peer.keepalive,
                "s",
            ),
        ],
        because: say!("nat-timeout-because-one-sided"),
        remedies: vec![keepalive(evidence, End::Here, Some(peer))],
        refused: Vec::new(),
    };
    Outcome {
        of_no_load: vec![found],
        ..Outcome::default()
    }
}

/// Age of the dead session in seconds, and bytes that were sent without anything coming back.
fn silence(evidence: &Evidence, peer: &Peer) -> Option<(f64, u64)> {
    let watched = crate::watched::at(evidence, End::Here);
    let at_the_end = watched.and_then(|watched| watched.peers.get(&peer.public_key));
    let (age, sent) = if let Some(at_the_end) = at_the_end {
        let sent = Some(at_the_end.unanswered);
        let silent = at_the_end.unanswered_for >= ANSWERS_WITHIN;
        (at_the_end.handshake_age, sent.filter(|_| silent))
    } else {
        let delta = evidence.probing_here.as_ref();
        let moved = delta
            .or(watched.map(|watched| &watched.counters))?
            .peers
            .get(&peer.public_key)?;
        let sent = Some(moved.tx_bytes);
        (peer.handshake_age, sent.filter(|_| moved.rx_bytes == 0))
    };
    let age = age.filter(|age| *age > DEAD_AFTER)?;
    Some((age, sent.filter(|bytes| *bytes > 0)?))
}

fn keepalive(evidence: &Evidence, end: End, peer: Option<&Peer>) -> Remedy {
    let interface = evidence
        .tunnel(end)
        .map_or(evidence.interface.as_str(), |tunnel| tunnel.name.as_str());
    let key = peer.map_or("PEER", |peer| peer.public_key.as_str());
    let set = |seconds: u16| {
        command(
            evidence,
            end,
            format!(
                "wg set {} peer {} persistent-keepalive {seconds}",
                shell_word(interface),
                shell_word(key)
            ),
        )
    };
    Remedy {
        title: say!("nat-timeout-remedy", seconds = KEEPALIVE_SECONDS),
        changes: Vec::new(),
        commands: vec![set(KEEPALIVE_SECONDS)],
        goal: Goal::Goodput,
        persistence: say!("nat-timeout-persistence", seconds = KEEPALIVE_SECONDS),
        risk: say!("nat-timeout-risk", seconds = KEEPALIVE_SECONDS),
        undo: set(peer.map_or(0, |peer| peer.keepalive)),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Known, Link, PeerCounters};
    use wirespeed_measure::PeerWatched;

    use super::CODE;
    use crate::testing::{
        facts_of, forget_far, healthy, not_checked, nothing, only_finding, tunnel_of, watched,
        watched_here,
    };
    use crate::{End, Evidence, FarKind, IdleReturn};

    fn asleep() -> Evidence {
        let mut evidence = healthy();
        evidence.idle_return = Known::Value(IdleReturn {
            far_first: (0, 3),
            here_then: (3, 3),
            far_after: (3, 3),
            translated_to: Some("192.0.2.7:40000".to_owned()),
            carried_before: 0,
        });
        evidence
    }

    /// The peer goes while it is watched, long after the facts were read.
    #[test]
    fn a_session_that_dies_during_a_watch_is_found() {
        let at_the_end = |handshake_age, unanswered, unanswered_for| {
            let mut evidence = watched();
            watched_here(&mut evidence).peers.insert(
                "far-key".to_owned(),
                PeerWatched {
                    handshake_age: Some(handshake_age),
                    unanswered,
                    unanswered_for,
                },
            );
            evidence
        };
        let finding = only_finding(&at_the_end(400.0, 14_800, 280.0), CODE);
        assert!(finding.confidence < 0.6);
        nothing(&at_the_end(170.0, 14_800, 50.0));
        nothing(&at_the_end(400.0, 0, 0.0));
        // The first packet after a long pause, and its handshake is under way.
        nothing(&at_the_end(400.0, 148, 1.0));
    }

    fn order(evidence: &mut Evidence, change: impl Fn(&mut IdleReturn)) {
        if let Known::Value(order) = &mut evidence.idle_return {
            change(order);
        }
    }

    fn peer_change(evidence: &mut Evidence, end: End, change: impl Fn(&mut wirespeed_facts::Peer)) {
        if let Known::Value(peers) = &mut tunnel_of(evidence, end).peers {
            change(&mut peers[0]);
        }
    }

    #[test]
    fn a_tunnel_that_wakes_up_only_from_our_side_is_found() {
        let finding = only_finding(&asleep(), CODE);
        assert_eq!(finding.host, "client");
        assert!(
            finding.remedies[0].commands[0]
                .starts_with("wg set wg0 peer far-key persistent-keepalive 25")
        );
        assert!(finding.remedies[0].changes.is_empty());
    }

    #[test]
    fn it_takes_the_whole_order_of_events() {
        for change in [
            (|order| order.far_first = (1, 3)) as fn(&mut IdleReturn),
            |order| order.far_first = (0, 1),
            |order| order.here_then = (0, 3),
            |order| order.far_after = (1, 3),
        ] {
            let mut evidence = asleep();
            order(&mut evidence, change);
            nothing(&evidence);
        }
    }

    #[test]
    fn without_a_nat_the_keepalive_must_be_off() {
        let mut evidence = asleep();
        order(&mut evidence, |order| order.translated_to = None);
        only_finding(&evidence, CODE);
        peer_change(&mut evidence, End::Here, |peer| peer.keepalive = 25);
        nothing(&evidence);
    }

    #[test]
    fn where_the_remedy_is_in_force_it_was_something_else() {
        let mut evidence = asleep();
        peer_change(&mut evidence, End::Here, |peer| peer.keepalive = 26);
        only_finding(&evidence, CODE);
        peer_change(&mut evidence, End::Here, |peer| peer.keepalive = 25);
        nothing(&evidence);
    }

    #[test]
    fn a_nat_on_the_far_side_was_not_tried() {
        let mut evidence = healthy();
        assert!(!not_checked(&evidence, CODE));
        let mut with_address = |address: &str| {
            let links = &mut facts_of(&mut evidence, End::Far).links;
            links.truncate(1);
            links.push(Link {
                index: 3,
                name: "eth0".to_owned(),
                up: true,
                mtu: 1500,
                addresses: vec![address.to_owned()],
                ..Link::default()
            });
            evidence.clone()
        };
        assert!(!not_checked(&with_address("192.0.2.1/24"), CODE));
        let mut behind = with_address("10.0.0.7/24");
        nothing(&behind);
        assert!(not_checked(&behind, CODE));
        peer_change(&mut behind, End::Far, |peer| peer.keepalive = 25);
        assert!(!not_checked(&behind, CODE));
    }

    #[test]
    fn a_tunnel_in_use_cannot_fall_asleep() {
        let mut evidence = healthy();
        order(&mut evidence, |order| order.carried_before = 4000);
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
        // The keepalive itself moves the counters.
        peer_change(&mut evidence, End::Here, |peer| peer.keepalive = 25);
        assert!(!not_checked(&evidence, CODE));
        // Asleep all the same: those bytes went nowhere.
        let mut evidence = asleep();
        order(&mut evidence, |order| order.carried_before = 148);
        only_finding(&evidence, CODE);
        assert!(!not_checked(&evidence, CODE));
    }

    #[test]
    fn a_far_end_that_never_heard_of_us_proves_nothing() {
        let mut evidence = asleep();
        peer_change(&mut evidence, End::Far, |peer| peer.handshake_age = None);
        nothing(&evidence);
    }

    #[test]
    fn alone_it_takes_a_dead_handshake_and_silence() {
        let mut evidence = healthy();
        forget_far(&mut evidence);
        evidence.far_kind = FarKind::Nothing;
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
        peer_change(&mut evidence, End::Here, |peer| {
            peer.handshake_age = Some(181.0);
        });
        let moved = evidence.probing_here.as_mut().unwrap();
        moved.peers.insert(
            "far-key".to_owned(),
            PeerCounters {
                rx_bytes: 0,
                tx_bytes: 1480,
            },
        );
        assert!(only_finding(&evidence, CODE).confidence < 0.6);
        let mut kept_awake = evidence.clone();
        peer_change(&mut kept_awake, End::Here, |peer| peer.keepalive = 25);
        nothing(&kept_awake);
        assert!(not_checked(&kept_awake, CODE));
        evidence.probing_here.as_mut().unwrap().peers.insert(
            "far-key".to_owned(),
            PeerCounters {
                rx_bytes: 92,
                tx_bytes: 1480,
            },
        );
        nothing(&evidence);
    }
}
