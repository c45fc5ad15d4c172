//! How sessions begin, also when messages are lost, cross each other, come twice or late.

use std::time::Duration;

use wirespeed_protocol::wire::Kind;
use wirespeed_protocol::{DropReason, Event, Prefix, PresharedKey, PrivateKey, Verdict};

use crate::world::{DELAY, START, World, inner, outer};

const ROUND_TRIP: Duration = Duration::from_millis(40);

#[test]
fn the_first_packet_makes_a_session_and_arrives() {
    let mut world = World::pair(1);
    let first = world.send(0, 1);
    assert_eq!(world.log.len(), 1);
    assert_eq!(world.log[0].kind, Kind::Initiation);
    assert!(world.run_until_delivered(1, first, Duration::from_secs(1)));
    let (arrived, _) = world.machines[1].delivered[0];
    assert_eq!(
        arrived,
        START + ROUND_TRIP + DELAY,
        "one round trip and one way"
    );
    let answer = world.send(1, 0);
    assert!(
        world.run_until_delivered(0, answer, DELAY),
        "at once, for the session is confirmed"
    );
    for machine in [0, 1] {
        let peer = world.peer(machine, 1 - machine);
        assert!(peer.statistics().last_handshake.is_some());
        let complete = Event::HandshakeComplete(world.key(1 - machine));
        assert_eq!(
            world.machines[machine]
                .events
                .iter()
                .filter(|(_, event)| *event == complete)
                .count(),
            1
        );
    }
    let (sent, received) = (world.peer(0, 1).statistics(), world.peer(1, 0).statistics());
    assert_eq!(sent.sent_bytes, received.received_bytes);
    assert_eq!(sent.received_bytes, received.sent_bytes);
}

#[test]
fn waiting_packets_go_first_and_in_order_the_latest_kept() {
    let mut world = World::pair(2);
    let numbers = world.send_many(0, 1, 100);
    let more = world.send_many(0, 1, 40);
    world.run_for(ROUND_TRIP);
    let after = world.send_many(0, 1, 3);
    world.run_seconds(1);
    let delivered: Vec<u64> = world.machines[1]
        .delivered
        .iter()
        .map(|(_, number)| *number)
        .collect();
    let expected: Vec<u64> = (numbers.start + 12..more.end).chain(after).collect();
    assert_eq!(delivered, expected);
    assert_eq!(
        world.machines[0].tunnel.dropped(DropReason::StagedOverflow),
        12
    );
}

#[test]
fn without_packets_the_initiator_confirms_by_a_keepalive() {
    let mut world = World::pair(3);
    let now = world.now_of(0);
    let peer = world.peer(0, 1);
    world.machines[0]
        .tunnel
        .set_persistent_keepalive(now, &peer, Some(Duration::from_secs(1_000)));
    world.run_seconds(1);
    assert_eq!(world.sent(0, Kind::Initiation).len(), 1);
    assert_eq!(world.sent_keepalives(0).len(), 1);
    let answer = world.send(1, 0);
    assert!(world.run_until_delivered(0, answer, DELAY));
}

#[test]
fn each_message_may_be_lost_once() {
    for lost in 0..3 {
        let mut world = World::pair(10 + lost as u64);
        let mut seen = 0;
        world.road.lets_through = Box::new(move |_| {
            seen += 1;
            seen != lost + 1
        });
        let there = world.send(0, 1);
        let arrived = world.run_until_delivered(1, there, Duration::from_millis(5_500));
        assert_eq!(
            arrived,
            lost != 2,
            "message {lost}: only data isn't sent again"
        );
        if lost == 2 {
            // The session isn't confirmed for the other side, which must not wait for ever.
            let back = world.send(1, 0);
            assert!(
                world.run_until_delivered(0, back, Duration::from_secs(6)),
                "message {lost}"
            );
        }
        let again = world.send(0, 1);
        assert!(
            world.run_until_delivered(1, again, Duration::from_secs(1)),
            "message {lost}"
        );
    }
}

#[test]
fn both_sides_may_begin_at_once() {
    for seed in 0..8 {
        let mut world = World::pair(seed);
        let there = world.send(0, 1);
        world.run_for(Duration::from_millis(2 * seed));
        let back = world.send(1, 0);
        assert_eq!(
            world.sent(1, Kind::Initiation).len(),
            1,
            "the other's has not arrived"
        );
        assert!(
            world.run_until_delivered(1, there, Duration::from_millis(100)),
            "seed {seed}"
        );
        assert!(
            world.run_until_delivered(0, back, Duration::from_millis(100)),
            "seed {seed}"
        );
        world.chat(400);
        let lost = world.machines[0].delivered.len() + world.machines[1].delivered.len();
        assert_eq!(
            lost, 802,
            "nor is anything lost when both fetch new keys at once"
        );
    }
}

#[test]
fn a_replayed_initiation_changes_nothing() {
    let mut world = World::pair(4);
    world.send(0, 1);
    world.run_seconds(1);
    let initiation = world.sent(0, Kind::Initiation)[0].bytes.clone();
    let before = world.log.len();
    let endpoint = world.peer(1, 0).endpoint();
    for seconds in [1, 30, 300] {
        world.run_seconds(seconds);
        let before_injection = world.log.len();
        let verdicts = world.inject(1, outer(9, 666), std::slice::from_ref(&initiation));
        assert_eq!(verdicts, [Verdict::Dropped(DropReason::InitiationReplayed)]);
        assert_eq!(world.log.len(), before_injection, "no answer");
    }
    assert!(world.log.len() >= before);
    assert_eq!(world.peer(1, 0).endpoint(), endpoint);
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(6)));
}

#[test]
fn a_replayed_or_late_response_changes_nothing() {
    let mut world = World::pair(5);
    world.send(0, 1);
    world.run_seconds(1);
    let response = world.sent(1, Kind::Response)[0].bytes.clone();
    let verdicts = world.inject(0, outer(9, 666), &[response]);
    assert_eq!(verdicts, [Verdict::Dropped(DropReason::UnknownIndex)]);
    assert_eq!(world.peer(0, 1).endpoint(), Some(outer(1, 51_820)));
}

#[test]
fn initiations_of_one_peer_are_taken_fifty_times_a_second() {
    let mut world = World::pair(6);
    // The same key on several machines, all of which begin at once.
    let mut initiations = Vec::new();
    for round in 0..4 {
        let mut twin = World::pair(6);
        twin.jump_wall(0, round);
        twin.send(0, 1);
        initiations.push(twin.log[0].bytes.clone());
    }
    let source = outer(0, 51_820);
    let mut at_once =
        |initiation: &Vec<u8>| world.inject(1, source, std::slice::from_ref(initiation))[0].clone();
    assert_eq!(at_once(&initiations[0]), Verdict::Handshake);
    assert_eq!(
        at_once(&initiations[1]),
        Verdict::Dropped(DropReason::InitiationTooSoon)
    );
    world.run_for(Duration::from_millis(19));
    assert_eq!(
        world.inject(1, source, &initiations[1..2]),
        [Verdict::Dropped(DropReason::InitiationTooSoon)]
    );
    world.run_for(Duration::from_millis(1));
    assert_eq!(
        world.inject(1, source, &initiations[2..3]),
        [Verdict::Handshake]
    );
    world.run_seconds(1);
    assert_eq!(
        world.inject(1, source, &initiations[1..2]),
        [Verdict::Dropped(DropReason::InitiationReplayed)]
    );
}

#[test]
fn only_one_initiation_in_five_seconds_whatever_is_sent() {
    let mut world = World::pair(7);
    world.road.lets_through = Box::new(|_| false);
    for _ in 0..600 {
        world.send(0, 1);
        world.run_for(Duration::from_millis(100));
    }
    let times: Vec<Duration> = world
        .sent(0, Kind::Initiation)
        .iter()
        .map(|sent| sent.at)
        .collect();
    assert!((11..=12).contains(&times.len()), "{}", times.len());
    let gaps: Vec<Duration> = times
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    let (least, most) = (Duration::from_secs(5), Duration::from_millis(5_334));
    assert!(
        gaps.iter().all(|gap| (least..=most).contains(gap)),
        "{gaps:?}"
    );
    assert!(
        gaps.windows(2).any(|pair| pair[0] != pair[1]),
        "jitter differs"
    );
}

#[test]
fn nobody_answers_so_we_give_up_and_begin_again_with_the_next_packet() {
    let mut world = World::pair(8);
    world.road.lets_through = Box::new(|_| false);
    world.send(0, 1);
    world.run_seconds(400);
    let tried = world.sent(0, Kind::Initiation).len();
    assert_eq!(tried, 20);
    let gave_up = Event::GaveUp(world.key(1));
    let at = world.machines[0]
        .events
        .iter()
        .find(|(_, event)| *event == gave_up)
        .unwrap()
        .0;
    let after = at.saturating_sub(START);
    assert!(
        after > Duration::from_secs(90) && after < Duration::from_secs(110),
        "{after:?}"
    );
    assert_eq!(world.machines[0].tunnel.dropped(DropReason::GaveUp), 1);
    world.road.lets_through = Box::new(|_| true);
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
}

#[test]
fn preshared_keys_have_to_agree() {
    let mut world = World::pair(9);
    let (to_1, to_0) = (world.peer(0, 1), world.peer(1, 0));
    let key = |byte| PresharedKey::from_bytes([byte; 32]);
    world.machines[0].tunnel.set_preshared_key(&to_1, key(1));
    let there = world.send(0, 1);
    assert!(!world.run_until_delivered(1, there, Duration::from_secs(20)));
    assert!(world.machines[0].tunnel.dropped(DropReason::NotAuthentic) > 0);
    world.machines[1].tunnel.set_preshared_key(&to_0, key(1));
    assert!(
        world.run_until_delivered(1, there, Duration::from_secs(6)),
        "it still waits"
    );
    world.machines[0].tunnel.set_preshared_key(&to_1, key(2));
    let there = world.send(0, 1);
    assert!(
        world.run_until_delivered(1, there, DELAY),
        "a session outlives a change of the key"
    );
}

#[test]
fn strangers_and_removed_peers_get_nothing() {
    let mut world = World::new(3, 11);
    world.introduce(0, 1, true);
    world.introduce(2, 1, true);
    world.introduce(1, 0, true);
    world.send(2, 1);
    world.run_seconds(60);
    assert!(world.sent(1, Kind::Response).is_empty());
    assert!(world.machines[1].tunnel.dropped(DropReason::UnknownPeer) > 5);

    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
    let removed = world.peer(1, 0);
    let key = world.key(0);
    assert!(world.machines[1].tunnel.remove_peer(&key));
    assert!(!world.machines[1].tunnel.remove_peer(&key));
    assert_eq!(world.machines[1].tunnel.next_deadline(), None);
    assert!(world.machines[1].tunnel.route(inner(0)).is_none());
    let there = world.send(0, 1);
    assert!(!world.run_until_delivered(1, there, Duration::from_secs(30)));
    assert!(world.machines[1].tunnel.dropped(DropReason::UnknownIndex) > 0);

    // A handle somebody still has is of no use.
    let before = world.sent(1, Kind::Initiation).len() + world.sent(1, Kind::Data).len();
    world.machines[1]
        .tunnel
        .allow(&removed, Prefix::new(inner(0), 32).unwrap());
    assert!(world.machines[1].tunnel.route(inner(0)).is_none());
    let mut batch = wirespeed_protocol::Outgoing::new(2_000, 1);
    batch.push(&crate::world::packet(inner(1), inner(0), 1), 1420);
    let now = world.now_of(1);
    world.machines[1].tunnel.seal(now, &removed, &mut batch);
    world.run_seconds(30);
    assert_eq!(
        world.sent(1, Kind::Initiation).len() + world.sent(1, Kind::Data).len(),
        before
    );
}

#[test]
fn another_private_key_ends_sending_until_a_new_handshake() {
    let mut world = World::pair(12);
    world.chat(2);
    let new = PrivateKey::from_bytes([0x77; 32]);
    world.machines[0].tunnel.set_private_key(Some(new.clone()));
    let there = world.send(0, 1);
    assert!(
        !world.run_until_delivered(1, there, Duration::from_secs(10)),
        "the other doesn't know us"
    );
    assert!(world.machines[1].tunnel.dropped(DropReason::UnknownPeer) > 0);
    let old = world.key(0);
    world.machines[0].private = new;
    world.machines[1].tunnel.remove_peer(&old);
    world.introduce(1, 0, true);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(6)));
}

#[test]
fn the_same_private_key_again_changes_nothing() {
    let mut world = World::pair(16);
    world.chat(2);
    let before = world.sent(0, Kind::Initiation).len() + world.sent(1, Kind::Initiation).len();
    for machine in [0, 1] {
        let key = world.machines[machine].private.clone();
        world.machines[machine].tunnel.set_private_key(Some(key));
    }
    for (from, to) in [(0, 1), (1, 0)] {
        let number = world.send(from, to);
        assert!(world.run_until_delivered(to, number, DELAY), "at once");
    }
    let after = world.sent(0, Kind::Initiation).len() + world.sent(1, Kind::Initiation).len();
    assert_eq!(after, before);
}

#[test]
fn without_a_private_key_nothing_is_answered() {
    let mut world = World::pair(13);
    world.machines[1].tunnel.set_private_key(None);
    let there = world.send(0, 1);
    world.run_seconds(3);
    assert_eq!(world.machines[1].tunnel.dropped(DropReason::NoIdentity), 1);
    world.send(1, 0);
    world.run_seconds(3);
    assert!(world.log.iter().all(|sent| sent.from == 0));
    let key = world.machines[1].private.clone();
    world.machines[1].tunnel.set_private_key(Some(key));
    assert!(world.run_until_delivered(1, there, Duration::from_secs(6)));
}

#[test]
fn our_own_key_is_no_peer() {
    let mut world = World::pair(14);
    let own = world.key(0);
    let other = world.machines[1].private.clone();
    let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
    assert!(world.machines[0].tunnel.add_peer(own, &mut rng).is_err());
    world.machines[0].tunnel.set_private_key(Some(other));
    assert!(
        world.machines[0].tunnel.peers().is_empty(),
        "it has become our own"
    );
    world.run_seconds(1);
}

#[test]
fn down_and_up_again() {
    let mut world = World::pair(15);
    world.chat(3);
    world.machines[0].tunnel.stop();
    assert_eq!(world.machines[0].tunnel.next_deadline(), None);
    let now = world.now_of(0);
    world.machines[0].tunnel.start(now);
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
}

#[test]
fn while_down_nothing_is_sent_answered_kept_or_due() {
    let mut world = World::pair(17);
    world.chat(3);
    world.machines[0].tunnel.stop();
    let sent = |world: &World| world.log.iter().filter(|sent| sent.from == 0).count();
    let before = sent(&world);
    let never = world.send(0, 1);
    let (now, peer) = (world.now_of(0), world.peer(0, 1));
    let tunnel = &world.machines[0].tunnel;
    tunnel.set_persistent_keepalive(now, &peer, Some(Duration::from_secs(25)));
    tunnel.set_endpoint(now, &peer, outer(1, 51_820));
    // The other side goes on: data at first, then initiations when nothing is heard.
    world.send(1, 0);
    world.run_seconds(60);
    assert!(world.sent(1, Kind::Initiation).len() > 3);
    assert_eq!(sent(&world), before);
    let tunnel = &world.machines[0].tunnel;
    assert_eq!(tunnel.next_deadline(), None);
    assert_eq!(tunnel.dropped(DropReason::UnknownIndex), 1);
    assert!(tunnel.dropped(DropReason::InterfaceDown) > 3);
    let interval = Some(Duration::from_secs(25));
    assert_eq!(
        peer.persistent_keepalive(),
        interval,
        "everything can be set"
    );

    let now = world.now_of(0);
    world.machines[0].tunnel.start(now);
    world.run_seconds(6);
    assert!(
        !world.sent_keepalives(0).is_empty(),
        "the persistent keepalive begins at once"
    );
    assert!(!world.has(1, never));
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, DELAY));
}
