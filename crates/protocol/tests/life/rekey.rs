//! How keys are renewed while packets flow, and that none is used for too long.

use std::time::Duration;

use wirespeed_protocol::Event;
use wirespeed_protocol::wire::Kind;

use crate::world::{DELAY, START, World};

fn since_start(at: Duration) -> f64 {
    at.saturating_sub(START).as_secs_f64()
}

fn initiations(world: &World, from: usize) -> Vec<f64> {
    world
        .sent(from, Kind::Initiation)
        .iter()
        .map(|sent| since_start(sent.at))
        .collect()
}

#[test]
fn the_initiator_renews_every_two_minutes_and_nothing_is_lost() {
    let mut world = World::pair(1);
    world.send(0, 1);
    world.run_seconds(1);
    world.chat(1_200);
    let times = initiations(&world, 0);
    assert!(
        initiations(&world, 1).is_empty(),
        "the responder leaves it to the initiator"
    );
    assert_eq!(times.len(), 10);
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!((120.0..=121.1).contains(&gap), "{gap}");
    }
    assert_eq!(
        world.machines[0].delivered.len() + world.machines[1].delivered.len(),
        2_401
    );
    let delivered: Vec<u64> = world.machines[1]
        .delivered
        .iter()
        .map(|(_, number)| *number)
        .collect();
    assert!(delivered.is_sorted(), "in order over all renewals");
}

#[test]
fn an_initiator_that_only_receives_renews_at_165_seconds() {
    let mut world = World::pair(2);
    world.send(0, 1);
    world.run_seconds(1);
    let mut sent = 0;
    for _ in 0..400 {
        world.send(1, 0);
        sent += 1;
        world.run_seconds(1);
    }
    let times = initiations(&world, 0);
    // Its keepalives count as sending and so renew at 120 s; a responder that hears nothing would begin itself.
    assert!(times.len() >= 3, "{times:?}");
    assert!(times[1] >= 120.0 && times[1] <= 131.0, "{times:?}");
    assert_eq!(world.machines[0].delivered.len(), sent);
}

#[test]
fn without_keepalives_the_last_minute_handshake_renews() {
    let mut world = World::pair(3);
    world.send(0, 1);
    world.run_seconds(1);
    // Keepalives of the initiator are lost as if it never sent, and so is its wish to renew at 120 s:
    // a single packet, 166 s after the session began, is what wakes it.
    world.run_until(START + Duration::from_secs(166));
    let before = initiations(&world, 0).len();
    world.send(1, 0);
    world.run_for(DELAY);
    assert_eq!(initiations(&world, 0).len(), before + 1);
    world.send(1, 0);
    world.run_for(Duration::from_secs(4));
    assert_eq!(initiations(&world, 0).len(), before + 1, "once");
}

#[test]
fn keys_older_than_three_minutes_neither_send_nor_receive() {
    let mut world = World::pair(4);
    world.chat(2);
    // Silence, but for a datagram kept back for longer than keys live.
    world.road.lets_through = Box::new(|_| false);
    world.send(1, 0);
    let kept = world.log.last().unwrap().bytes.clone();
    world.run_until(START + Duration::from_secs(181));
    let source = world.machines[1].address;
    let verdicts = world.inject(0, source, &[kept]);
    assert_eq!(
        verdicts,
        [wirespeed_protocol::Verdict::Dropped(
            wirespeed_protocol::DropReason::Expired
        )]
    );
    let before = world.sent(0, Kind::Data).len();
    world.send(0, 1);
    assert_eq!(world.sent(0, Kind::Data).len(), before);
    world.road.lets_through = Box::new(|_| true);
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(6)));
}

#[test]
fn a_lost_renewal_is_repeated_while_the_old_session_carries_on() {
    let mut world = World::pair(5);
    world.send(0, 1);
    world.run_seconds(1);
    let end = START + Duration::from_secs(150);
    world.road.lets_through = Box::new(move |sent| sent.kind == Kind::Data || sent.at >= end);
    world.chat(300);
    assert_eq!(
        world.machines[0].delivered.len() + world.machines[1].delivered.len(),
        601
    );
    let times = initiations(&world, 0);
    assert!(
        (6..=9).contains(
            &times
                .iter()
                .filter(|at| (119.0..156.0).contains(*at))
                .count()
        ),
        "{times:?}"
    );
}

#[test]
fn all_keys_are_wiped_nine_minutes_after_the_last_session_began() {
    let mut world = World::pair(6);
    world.chat(2);
    world.run_seconds(600);
    for machine in [0, 1] {
        let wiped = Event::KeysWiped(world.key(1 - machine));
        let at = world.machines[machine]
            .events
            .iter()
            .find(|(_, event)| *event == wiped)
            .unwrap()
            .0;
        assert!((540.0..541.0).contains(&since_start(at)), "{at:?}");
        assert_eq!(
            world.machines[machine].tunnel.next_deadline(),
            None,
            "and then there is silence"
        );
    }
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
}

#[test]
fn when_both_began_at_once_renewals_lose_nothing_on_its_way() {
    let mut world = World::pair(7);
    world.send(0, 1);
    world.send(1, 0);
    world.run_seconds(1);
    assert_eq!(
        initiations(&world, 0).len() + initiations(&world, 1).len(),
        2
    );
    let mut sent = 1;
    for renewal in 1..4 {
        world.run_until(START + Duration::from_secs(renewal * 121));
        for _ in 0..200 {
            world.send(0, 1);
            world.send(1, 0);
            sent += 1;
            world.run_for(Duration::from_millis(5));
        }
    }
    world.run_seconds(1);
    assert!(
        initiations(&world, 0).len() >= 3,
        "{:?}",
        initiations(&world, 0)
    );
    for machine in &world.machines {
        assert_eq!(machine.delivered.len(), sent);
        assert!(machine.delivered.is_sorted_by_key(|(_, number)| *number));
    }
}
