//! Floods of handshakes.

use std::net::SocketAddr;
use std::time::Duration;

use wirespeed_protocol::wire::Kind;
use wirespeed_protocol::{DropReason, Verdict};

use crate::world::{World, outer};

/// One of many addresses.
fn anywhere(number: u32) -> SocketAddr {
    let [.., a, b] = number.to_be_bytes();
    SocketAddr::from(([198, 18, a, b], 1_000))
}

#[test]
fn under_load_an_honest_peer_comes_through_by_a_cookie() {
    let mut world = World::pair(1);
    world.machines[1].tunnel.force_load(true);
    let there = world.send(0, 1);
    assert!(
        world.run_until_delivered(1, there, Duration::from_secs(6)),
        "with the second initiation"
    );
    assert_eq!(world.sent(1, Kind::CookieReply).len(), 1);
    assert_eq!(world.sent(0, Kind::Initiation).len(), 2);
    assert_eq!(world.machines[1].tunnel.dropped(DropReason::CookieSent), 1);
}

#[test]
fn both_sides_may_be_under_load() {
    let mut world = World::pair(2);
    for machine in &world.machines {
        machine.tunnel.force_load(true);
    }
    let there = world.send(0, 1);
    // Initiation, cookie; initiation, response, cookie; initiation, response with the cookie.
    assert!(world.run_until_delivered(1, there, Duration::from_secs(12)));
    world.chat(300);
    let lost = 601 - world.machines[0].delivered.len() - world.machines[1].delivered.len();
    assert_eq!(lost, 0, "renewed early enough to try more than once");
}

#[test]
fn a_flood_from_many_sources_costs_no_handshake_and_spares_the_tunnel() {
    let mut world = World::pair(3);
    world.chat(1);
    let answered = world.sent(1, Kind::Response).len();
    // Authentic as far as anyone can tell without the costly part, from addresses nobody answers at.
    let mut flooder = World::pair(3);
    flooder.jump_wall(0, 100_000);
    flooder.send(0, 1);
    let initiation = flooder.log[0].bytes.clone();
    let mut cookies = 0;
    for number in 0..20_000u32 {
        let source = anywhere(number);
        if world.inject(1, source, std::slice::from_ref(&initiation))
            == [Verdict::Dropped(DropReason::CookieSent)]
        {
            cookies += 1;
        }
        if number % 1_000 == 0 {
            world.run_for(Duration::from_millis(20));
        }
    }
    // Of 0.4 s: 20,000 a second, and a second's tenth that was saved up.
    assert!((8_000..=10_500).contains(&cookies), "{cookies}");
    // The limit of a second's worth is spent before load is seen; one of those is authentic.
    assert!(world.sent(1, Kind::Response).len() <= answered + 1);
    let there = world.send(0, 1);
    let arrived = world.run_until_delivered(1, there, Duration::from_secs(17));
    assert!(arrived || world.sent(1, Kind::Response).len() == answered + 1);
    world.run_seconds(20);
    world.chat(3);
    assert!(world.machines[1].delivered.len() >= 4);
}

#[test]
fn a_proven_source_is_still_limited() {
    let mut world = World::pair(4);
    world.machines[1].tunnel.force_load(true);
    world.send(0, 1);
    world.run_seconds(1);
    // With the cookie, but as fast as it can.
    world.run_seconds(6);
    let proven = world
        .sent(0, Kind::Initiation)
        .last()
        .unwrap()
        .bytes
        .clone();
    let source = outer(0, 51_820);
    let verdicts: Vec<Verdict> = (0..30)
        .map(|_| world.inject(1, source, std::slice::from_ref(&proven))[0].clone())
        .collect();
    let limited = verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::Dropped(DropReason::RateLimited))
        .count();
    let replayed = verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::Dropped(DropReason::InitiationReplayed))
        .count();
    assert_eq!((limited, replayed), (25, 5));
    // A cookie is worth nothing at another port.
    assert_eq!(
        world.inject(1, outer(0, 51_821), &[proven]),
        [Verdict::Dropped(DropReason::CookieSent)]
    );
}

#[test]
fn nobody_is_flooded_by_way_of_us() {
    let mut world = World::pair(7);
    world.machines[1].tunnel.force_load(true);
    let mut flooder = World::pair(7);
    flooder.jump_wall(0, 100_000);
    flooder.send(0, 1);
    let initiation = flooder.log[0].bytes.clone();
    // Three seconds of a flood that claims to come from the same machine.
    for number in 0..3_000u32 {
        let victim = outer(0, (number % 1_000) as u16 + 1);
        world.inject(1, victim, std::slice::from_ref(&initiation));
        world.run_for(Duration::from_millis(1));
    }
    let replies = world.sent(1, Kind::CookieReply);
    assert!((60..=80).contains(&replies.len()), "{}", replies.len());
    assert!(
        replies
            .iter()
            .all(|reply| reply.bytes.len() < initiation.len() / 2)
    );
    let withheld = world.machines[1].tunnel.dropped(DropReason::CookieWithheld);
    assert_eq!(withheld as usize + replies.len(), 3_000);
}

#[test]
fn messages_without_mac1_cost_a_hash_and_are_never_answered() {
    let mut world = World::pair(5);
    world.machines[1].tunnel.force_load(true);
    world.send(0, 1);
    let mut initiation = world.log[0].bytes.clone();
    initiation[116] ^= 1;
    let before = world.log.len();
    assert_eq!(
        world.inject(1, outer(0, 51_820), &[initiation]),
        [Verdict::Dropped(DropReason::BadMac1)]
    );
    assert_eq!(world.log.len(), before);
}

#[test]
fn what_nobody_fetches_is_bounded() {
    let mut flooder = World::pair(6);
    flooder.send(0, 1);
    let initiation = flooder.log[0].bytes.clone();
    let world = World::pair(6);
    let machine = &world.machines[1];
    machine.tunnel.force_load(true);
    let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
    let mut now = world.now_of(1);
    for number in 0..10_000 {
        // As fast as all are answered.
        now.instant = now.instant + Duration::from_micros(50);
        let _ = machine
            .tunnel
            .handshake(now, anywhere(number), &initiation, &mut rng);
    }
    let waiting = std::iter::from_fn(|| machine.tunnel.poll_transmit()).count();
    assert_eq!(waiting, 8_192);
    assert_eq!(
        machine.tunnel.dropped(DropReason::TransmitOverflow),
        10_000 - 8_192
    );
}
