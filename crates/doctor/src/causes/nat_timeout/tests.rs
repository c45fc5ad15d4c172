use wirespeed_facts::{Known, Link, PeerCounters};
use wirespeed_measure::PeerWatched;

use super::{CODE, handshake_due};
use crate::testing::{
    asleep, facts_of, forget_far, healthy, not_checked, nothing, only_finding, tunnel_of, watched,
    watched_here,
};
use crate::{End, Evidence, FarKind, IdleReturn};

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
fn over_a_dead_session_the_far_end_is_asked_twice() {
    let aged = |age: f64, again: Option<(u32, u32)>| {
        let mut evidence = asleep();
        for end in [End::Here, End::Far] {
            peer_change(&mut evidence, end, |peer| peer.handshake_age = Some(age));
        }
        order(&mut evidence, |order| order.far_again = again);
        evidence
    };
    let lives = aged(160.0, None);
    assert!(!handshake_due(&lives));
    only_finding(&lives, CODE);
    assert!(!not_checked(&lives, CODE));
    // Of old recordings, the one try: its reply takes two round trips, or waits for a handshake that was lost.
    let once = aged(900.0, None);
    assert!(handshake_due(&once));
    nothing(&once);
    assert!(not_checked(&once, CODE));
    let heard = aged(900.0, Some((1, 3)));
    nothing(&heard);
    assert!(!not_checked(&heard, CODE));
    let silent = aged(900.0, Some((0, 3)));
    assert_eq!(only_finding(&silent, CODE).evidence[1].after, 0);
    assert!(!not_checked(&silent, CODE));
    // Nobody knows how old it is.
    let mut unknown = aged(20.0, None);
    tunnel_of(&mut unknown, End::Far).peers = Known::because("refused");
    assert!(handshake_due(&unknown));
    nothing(&unknown);
    assert!(not_checked(&unknown, CODE));
}

#[test]
fn a_session_that_we_no_longer_have_carries_nothing() {
    let mut evidence = asleep();
    peer_change(&mut evidence, End::Here, |peer| peer.handshake_age = None);
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
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
