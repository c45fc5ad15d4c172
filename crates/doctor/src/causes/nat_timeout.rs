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
/// Its age was read so long before it was tried, at most, seconds.
const READ_BEFORE: f64 = 10.0;
/// What is sent over a dead session begins a handshake, which WireGuard tries anew after so many seconds
/// (`REKEY_TIMEOUT`): a peer that is there has answered by then.
const ANSWERS_WITHIN: f64 = 5.0;
/// Under the usual 30 s a NAT keeps an idle UDP mapping.
const KEEPALIVE_SECONDS: u16 = 25;

fn run(evidence: &Evidence) -> Outcome {
    match (&evidence.idle_return, evidence.far_kind) {
        (Known::Unknown(_), _) if evidence.passive.is_some() => one_sided(evidence),
        (Known::Value(order), _) => {
            let asleep = fell_asleep(evidence, order);
            let open = asleep.then(|| session_missing(evidence, order)).flatten();
            Outcome {
                of_no_load: (asleep && open.is_none())
                    .then(|| found(evidence, order))
                    .into_iter()
                    .collect(),
                not_known: open
                    .into_iter()
                    .chain(far_behind_a_nat(evidence))
                    .chain(never_idle(evidence, order))
                    .collect(),
                ..Outcome::default()
            }
        }
        (Known::Unknown(because), FarKind::Wirespeed) => Outcome::unknown(because),
        (Known::Unknown(_), _) => one_sided(evidence),
    }
}

/// Has the far end no live session with us, for all that is known? Then what it sends waits for a handshake.
pub(crate) fn handshake_due(evidence: &Evidence) -> bool {
    evidence.peer_at(End::Far).is_none_or(|peer| {
        peer.handshake_age
            .is_some_and(|age| age > DEAD_AFTER - READ_BEFORE)
    })
}

/// The order of events of a mapping that was forgotten.
fn fell_asleep(evidence: &Evidence, order: &IdleReturn) -> bool {
    let silent_first = order.far_first.0 == 0
        && order.far_first.1 >= 2
        && order.far_again.is_none_or(|(received, _)| received == 0);
    let then_fine = answered(order.here_then) && answered(order.far_after);
    let ours = evidence.peer_at(End::Here);
    let theirs = evidence.peer_at(End::Far);
    // A far end that never heard of us has nowhere to send to: that is a first contact, not a timeout.
    let knew_us = theirs.is_none_or(|peer| peer.endpoint.is_some() && peer.handshake_age.is_some());
    let keepalive_off = ours.is_some_and(|peer| peer.keepalive == 0);
    silent_first
        && then_fine
        && knew_us
        && (order.translated_to.is_some() || keepalive_off)
        // What was lost then was lost otherwise: on a radio link that slept, in a handshake that was due.
        && !ours.is_some_and(kept_awake)
}

/// Why the far end's silence may be that of a session that was not there, rather than of a mapping.
fn session_missing(evidence: &Evidence, order: &IdleReturn) -> Option<String> {
    let ours = evidence.peer_at(End::Here);
    if ours.is_some_and(|peer| peer.handshake_age.is_none()) {
        // It goes on sending over the old session for 15 s before it begins another one.
        return Some(say!(
            "nat-timeout-unknown-session",
            far = evidence.name(End::Far),
            here = evidence.name(End::Here)
        ));
    }
    let tried_twice = order.far_again.is_some_and(|(_, sent)| sent >= 2);
    (handshake_due(evidence) && !tried_twice).then(|| {
        say!(
            "nat-timeout-unknown-handshake",
            far = evidence.name(End::Far)
        )
    })
}

fn found(evidence: &Evidence, order: &IdleReturn) -> Found {
    let ours = evidence.peer_at(End::Here);
    let where_far = evidence.name(End::Far);
    let where_here = evidence.name(End::Here);
    let asked = |what: String, whose: &str, (received, sent): (u32, u32)| {
        line(what, whose, sent, received, "packets")
    };
    let mut lines = vec![asked(
        say!("nat-timeout-line-far-first"),
        where_far,
        order.far_first,
    )];
    lines.extend(
        order
            .far_again
            .map(|again| asked(say!("nat-timeout-line-far-again"), where_far, again)),
    );
    lines.push(asked(
        say!("nat-timeout-line-here-then"),
        where_here,
        order.here_then,
    ));
    lines.push(asked(
        say!("nat-timeout-line-far-after"),
        where_far,
        order.far_after,
    ));
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
    Found {
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
    }
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
mod tests;
