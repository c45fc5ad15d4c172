//! What is sent when nobody sends anything.

use std::time::Duration;

use wirespeed_protocol::wire::Kind;

use crate::world::{World, outer};

#[test]
fn an_idle_tunnel_is_silent_and_sleeps() {
    let mut world = World::pair(1);
    world.send(0, 1);
    world.run_seconds(1);
    world.send(1, 0);
    world.run_seconds(20);
    let before = world.log.len();
    world.run_seconds(24 * 3_600);
    assert_eq!(world.log.len(), before);
    for machine in &world.machines {
        assert!(machine.idle_wakeups < 6, "{}", machine.idle_wakeups);
        assert_eq!(machine.tunnel.next_deadline(), None);
    }
}

#[test]
fn one_sided_data_is_answered_by_keepalives() {
    let mut world = World::pair(2);
    world.send(0, 1);
    world.run_seconds(1);
    for _ in 0..60 {
        world.send(0, 1);
        world.run_seconds(1);
    }
    let keepalives = world.sent_keepalives(1);
    assert!((5..=7).contains(&keepalives.len()), "{keepalives:?}");
    assert_eq!(
        world.sent(0, Kind::Initiation).len(),
        1,
        "so the sender knows that all is well"
    );
}

#[test]
fn keepalives_do_not_answer_keepalives() {
    let mut world = World::pair(3);
    let now = world.now_of(0);
    let peer = world.peer(0, 1);
    world.machines[0]
        .tunnel
        .set_persistent_keepalive(now, &peer, Some(Duration::from_secs(25)));
    world.run_seconds(3_600);
    assert!(world.sent_keepalives(1).is_empty());
}

#[test]
fn a_persistent_keepalive_holds_the_road_open_for_hours() {
    let mut world = World::pair(4);
    let now = world.now_of(0);
    let peer = world.peer(0, 1);
    world.machines[0]
        .tunnel
        .set_persistent_keepalive(now, &peer, Some(Duration::from_secs(25)));
    world.run_seconds(2 * 3_600);
    let mut times: Vec<Duration> = world
        .log
        .iter()
        .filter(|sent| sent.from == 0)
        .map(|sent| sent.at)
        .collect();
    times.dedup();
    let longest = times
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .max()
        .unwrap();
    assert!(longest <= Duration::from_secs(25), "{longest:?}");
    let count = times.len();
    assert!((280..430).contains(&count), "no more than needed: {count}");
    // After hours the other side can reach us at once.
    let back = world.send(1, 0);
    assert!(world.run_until_delivered(0, back, Duration::from_millis(200)));
    world.machines[0]
        .tunnel
        .set_persistent_keepalive(world.now_of(0), &peer, None);
    world.run_seconds(60);
    let before = world.log.len();
    world.run_seconds(3_600);
    assert_eq!(world.log.len(), before);
}

#[test]
fn a_persistent_keepalive_goes_on_when_it_is_set_again() {
    let mut world = World::pair(9);
    let peer = world.peer(0, 1);
    for interval in [25, 25, 10, 25] {
        let now = world.now_of(0);
        world.machines[0].tunnel.set_persistent_keepalive(
            now,
            &peer,
            Some(Duration::from_secs(interval)),
        );
        let before = world.sent_keepalives(0).len();
        world.run_seconds(120);
        let sent = world.sent_keepalives(0).len() - before;
        let expected = 120 / interval as usize;
        assert!(
            (expected - 1..=expected + 2).contains(&sent),
            "{sent} at {interval} s"
        );
    }
}

#[test]
fn a_peer_without_address_or_key_costs_no_more_than_a_look_at_its_timers() {
    let mut world = World::new(2, 10);
    world.introduce(0, 1, false);
    let (now, peer) = (world.now_of(0), world.peer(0, 1));
    let interval = Some(Duration::from_secs(25));
    let tunnel = &world.machines[0].tunnel;
    tunnel.set_persistent_keepalive(now, &peer, interval);
    world.run_seconds(200);
    let before = world.machines[0].idle_wakeups;
    world.run_seconds(1_000);
    let wakeups = world.machines[0].idle_wakeups - before;
    assert!(wakeups <= 40, "{wakeups}");
    // Once there is an address, it begins by itself.
    world.introduce(1, 0, false);
    let now = world.now_of(0);
    world.machines[0]
        .tunnel
        .set_endpoint(now, &peer, outer(1, 51_820));
    world.run_seconds(26);
    assert!(!world.sent_keepalives(0).is_empty());
}

#[test]
fn a_persistent_keepalive_goes_on_though_nobody_answers() {
    let mut world = World::pair(5);
    world.road.lets_through = Box::new(|_| false);
    let now = world.now_of(0);
    let peer = world.peer(0, 1);
    world.machines[0]
        .tunnel
        .set_persistent_keepalive(now, &peer, Some(Duration::from_secs(25)));
    world.run_seconds(900);
    world.road.lets_through = Box::new(|_| true);
    world.run_seconds(31);
    let back = world.send(1, 0);
    assert!(world.run_until_delivered(0, back, Duration::from_millis(200)));
}

#[test]
fn a_sender_without_answer_begins_anew_after_fifteen_seconds() {
    let mut world = World::pair(6);
    world.chat(2);
    world.run_seconds(12);
    world.restart(1);
    let sent = world.now;
    world.send(0, 1);
    world.run_seconds(17);
    let initiation = world.sent(0, Kind::Initiation).last().unwrap().at;
    let initiation = initiation.saturating_sub(sent);
    assert!(
        (15.0..15.34).contains(&initiation.as_secs_f64()),
        "{initiation:?}"
    );
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
}

#[test]
fn the_wall_clock_may_jump_back_while_we_run() {
    let mut world = World::pair(7);
    world.chat(2);
    for seconds in [-1, -3_600, -100_000_000] {
        world.jump_wall(0, seconds);
        world.run_seconds(700);
        let there = world.send(0, 1);
        assert!(
            world.run_until_delivered(1, there, Duration::from_secs(1)),
            "{seconds}"
        );
    }
}

#[test]
fn waking_from_a_long_sleep_takes_one_handshake() {
    let mut world = World::pair(8);
    world.chat(5);
    // Both sleep: nobody asks for timers meanwhile.
    world.now += Duration::from_secs(8 * 3_600);
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
    world.chat(5);
}
