//! Addresses that change, and those who would like them to.

use std::time::Duration;

use wirespeed_protocol::wire::Kind;
use wirespeed_protocol::{DropReason, Verdict};

use crate::world::{DELAY, World, outer};

#[test]
fn a_peer_without_a_set_address_is_found_by_its_first_message() {
    let mut world = World::new(2, 1);
    world.introduce(0, 1, true);
    world.introduce(1, 0, false);
    let early = world.send(1, 0);
    world.run_seconds(30);
    assert!(world.log.is_empty(), "there is nowhere to send to");
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
    assert!(world.run_until_delivered(0, early, DELAY), "it waited");
    assert_eq!(world.peer(1, 0).endpoint(), Some(outer(0, 51_820)));
}

#[test]
fn what_waits_is_sent_once_an_address_is_set() {
    let mut world = World::new(2, 2);
    world.introduce(0, 1, false);
    world.introduce(1, 0, false);
    let there = world.send(0, 1);
    world.run_seconds(2);
    let (now, peer) = (world.now_of(0), world.peer(0, 1));
    world.machines[0]
        .tunnel
        .set_endpoint(now, &peer, outer(1, 51_820));
    assert!(world.run_until_delivered(1, there, Duration::from_secs(6)));
}

#[test]
fn a_peer_may_change_its_address_every_second() {
    let mut world = World::pair(3);
    world.chat(1);
    for second in 0..200u16 {
        world.machines[0].address = outer(0, 1_000 + second);
        let there = world.send(0, 1);
        assert!(world.run_until_delivered(1, there, DELAY));
        let back = world.send(1, 0);
        assert!(world.run_until_delivered(0, back, DELAY), "second {second}");
        world.run_seconds(1);
    }
    assert!(
        world.sent(0, Kind::Initiation).len() <= 3,
        "roaming costs no handshake"
    );
}

#[test]
fn only_authentic_new_messages_move_a_peer() {
    let mut world = World::pair(4);
    world.chat(2);
    let thief = outer(9, 666);
    let data = world.sent(0, Kind::Data).last().unwrap().bytes.clone();
    assert_eq!(
        world.inject(1, thief, std::slice::from_ref(&data)),
        [Verdict::Dropped(DropReason::Replayed)]
    );
    // A datagram that hasn't arrived yet, changed.
    world.road.lets_through = Box::new(|_| false);
    world.send(0, 1);
    let fresh = world.log.last().unwrap().bytes.clone();
    for at in [16, fresh.len() / 2, fresh.len() - 1] {
        let mut forged = fresh.clone();
        forged[at] ^= 0x10;
        assert_eq!(
            world.inject(1, thief, &[forged]),
            [Verdict::Dropped(DropReason::NotAuthentic)]
        );
    }
    for kind in [Kind::Initiation, Kind::Response, Kind::CookieReply] {
        let (size, number) = match kind {
            Kind::Initiation => (148, 1),
            Kind::Response => (92, 2),
            _ => (64, 3),
        };
        let mut bytes = vec![0xa5; size];
        bytes[..4].copy_from_slice(&[number, 0, 0, 0]);
        assert!(matches!(
            world.inject(1, thief, &[bytes])[0],
            Verdict::Dropped(_)
        ));
    }
    assert_eq!(world.peer(1, 0).endpoint(), Some(outer(0, 51_820)));
    // The same datagram, whole and new, does.
    assert!(matches!(
        world.inject(1, thief, std::slice::from_ref(&fresh))[0],
        Verdict::Packet { .. }
    ));
    assert_eq!(world.peer(1, 0).endpoint(), Some(thief));
}

#[test]
fn a_mapped_address_is_the_v4_address_it_stands_for() {
    let mut world = World::pair(5);
    world.chat(1);
    world.road.lets_through = Box::new(|_| false);
    world.send(0, 1);
    let fresh = world.log.last().unwrap().bytes.clone();
    let mapped = "[::ffff:192.0.2.1]:7".parse().unwrap();
    assert!(matches!(
        world.inject(1, mapped, &[fresh])[0],
        Verdict::Packet { .. }
    ));
    assert_eq!(world.peer(1, 0).endpoint(), Some(outer(0, 7)));
}

#[test]
fn an_initiation_moves_a_peer_and_so_does_a_response() {
    let mut world = World::pair(6);
    world.send(0, 1);
    let initiation = world.log[0].bytes.clone();
    assert_eq!(
        world.inject(1, outer(0, 7), &[initiation]),
        [Verdict::Handshake]
    );
    assert_eq!(world.peer(1, 0).endpoint(), Some(outer(0, 7)));
    let response = world.sent(1, Kind::Response)[0].bytes.clone();
    assert_eq!(
        world.inject(0, outer(1, 8), &[response]),
        [Verdict::Handshake]
    );
    assert_eq!(world.peer(0, 1).endpoint(), Some(outer(1, 8)));
}
