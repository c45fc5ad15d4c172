//! Many datagrams at once, as the device gives and takes them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use proptest::prelude::*;
use wirespeed_protocol::wire::Kind;
use wirespeed_protocol::{DropReason, Incoming, Outgoing, Prefix, Sealed, Verdict};

use crate::world::{DELAY, MTU, World, inner, outer, packet};

fn numbers(world: &World, machine: usize) -> Vec<u64> {
    world.machines[machine]
        .delivered
        .iter()
        .map(|(_, number)| *number)
        .collect()
}

#[test]
fn the_order_of_a_batch_is_kept() {
    let mut world = World::pair(1);
    world.chat(1);
    let before = numbers(&world, 1).len();
    let sent = world.send_many(0, 1, 500);
    world.run_for(DELAY);
    assert_eq!(numbers(&world, 1)[before..], sent.collect::<Vec<u64>>());
}

#[test]
fn a_batch_may_mix_peers_messages_and_rubbish() {
    let mut world = World::new(3, 2);
    for (machine, peer) in [(0, 2), (2, 0), (1, 2), (2, 1)] {
        world.introduce(machine, peer, true);
    }
    world.send(0, 2);
    world.send(1, 2);
    world.run_seconds(1);
    world.road.lets_through = Box::new(|_| false);
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..20 {
        for machine in [0, 0, 1] {
            expected.push(world.send(machine, 2));
            batch.push(world.log.last().unwrap().bytes.clone());
        }
        batch.push(vec![]);
        batch.push(vec![4, 0, 0, 0]);
        batch.push(vec![4; 1_500]);
        batch.push([&[4, 0, 0, 0][..], &[0xee; 60]].concat());
        batch.push(batch[0].clone());
    }
    let before = numbers(&world, 2).len();
    let verdicts = world.inject(2, outer(0, 1), &batch);
    assert_eq!(numbers(&world, 2)[before..], expected);
    let count = |wanted: DropReason| {
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Dropped(wanted))
            .count()
    };
    assert_eq!(count(DropReason::Malformed), 60);
    assert_eq!(count(DropReason::UnknownIndex), 20);
    assert_eq!(count(DropReason::Replayed), 20);
    assert_eq!(world.machines[2].tunnel.dropped(DropReason::Malformed), 60);
}

#[test]
fn sources_are_checked_strictly() {
    // 1 may use 10.0.0.2 and 10.1.0.0/16, 2 may use 10.0.0.3 and 10.1.2.0/24, of which 10.1.2.3 is 1's again.
    let mut world = World::new(3, 3);
    for (machine, peer) in [(1, 0), (0, 1), (0, 2), (2, 0)] {
        world.introduce(machine, peer, true);
    }
    let allow = |world: &World, peer: usize, address: [u8; 4], length| {
        let handle = world.peer(0, peer);
        world.machines[0]
            .tunnel
            .allow(&handle, Prefix::new(IpAddr::from(address), length).unwrap());
    };
    allow(&world, 1, [10, 1, 0, 0], 16);
    allow(&world, 2, [10, 1, 2, 0], 24);
    allow(&world, 1, [10, 1, 2, 3], 32);
    world.send(1, 0);
    world.send(2, 0);
    world.run_seconds(1);
    let table = [
        (1, [10, 0, 0, 2], true),
        (1, [10, 0, 0, 3], false),
        (1, [10, 1, 9, 9], true),
        (1, [10, 1, 2, 9], false),
        (1, [10, 1, 2, 3], true),
        (1, [10, 2, 0, 0], false),
        (2, [10, 1, 2, 9], true),
        (2, [10, 1, 2, 3], false),
        (2, [10, 1, 9, 9], false),
        (2, [10, 0, 0, 2], false),
    ];
    world.road.lets_through = Box::new(|_| false);
    for (from, source, allowed) in table {
        let mut bytes = packet(inner(from), inner(0), 1);
        bytes[12..16].copy_from_slice(&source);
        let mut batch = Outgoing::new(2_000, 1);
        assert!(batch.push(&bytes, MTU));
        world.send_batch(from, 0, &mut batch);
        let mut datagram = world.log.last().unwrap().bytes.clone();
        let mut incoming = [Incoming::new(&mut datagram, outer(from, 51_820))];
        let now = world.now_of(0);
        world.machines[0].tunnel.open(now, &mut incoming);
        match &incoming[0].verdict {
            Verdict::Packet { peer, .. } => {
                assert!(allowed, "{source:?} of {from}");
                assert_eq!(*peer, world.peer(0, from).id());
                assert_eq!(incoming[0].packet(), Some(&bytes[..]));
            }
            verdict => {
                assert!(!allowed, "{source:?} of {from}");
                assert_eq!(*verdict, Verdict::Dropped(DropReason::SourceNotAllowed));
                assert_eq!(incoming[0].packet(), None);
            }
        }
    }
}

#[test]
fn what_is_no_ip_packet_is_not_delivered() {
    let mut world = World::pair(4);
    world.chat(1);
    world.road.lets_through = Box::new(|_| false);
    let mut long = packet(inner(0), inner(1), 1);
    long[2] = 0xff;
    for rubbish in [
        vec![0; 20],
        vec![0x45],
        vec![0x60; 39],
        vec![0x50; 60],
        long,
    ] {
        let mut batch = Outgoing::new(2_000, 1);
        assert!(batch.push(&rubbish, MTU));
        world.send_batch(0, 1, &mut batch);
        let datagram = world.log.last().unwrap().bytes.clone();
        assert_eq!(
            world.inject(1, outer(0, 51_820), &[datagram]),
            [Verdict::Dropped(DropReason::InnerMalformed)]
        );
    }
}

#[test]
fn a_keepalive_is_empty_and_nothing_else_is_one() {
    let mut world = World::pair(11);
    world.chat(1);
    world.road.lets_through = Box::new(|_| false);
    let source = outer(0, 51_820);
    for length in [1usize, 15, 16, 17, 32] {
        let mut batch = Outgoing::new(2_000, 1);
        batch.reserve(length, MTU).unwrap().fill(0);
        world.send_batch(0, 1, &mut batch);
        let whole = world.log.last().unwrap().bytes.clone();
        let mut cut = whole.clone();
        cut.pop();
        let mut long = whole.clone();
        long.push(0);
        assert_eq!(
            world.inject(1, source, &[cut, long, whole]),
            [
                Verdict::Dropped(DropReason::NotAuthentic),
                Verdict::Dropped(DropReason::NotAuthentic),
                Verdict::Dropped(DropReason::InnerMalformed),
            ],
            "{length} bytes of zero"
        );
    }
    let mut batch = Outgoing::new(2_000, 1);
    assert!(batch.push(&[], MTU));
    world.send_batch(0, 1, &mut batch);
    let keepalive = world.log.last().unwrap().bytes.clone();
    assert_eq!(keepalive.len(), 32);
    for length in 0..32 {
        assert_eq!(
            world.inject(1, source, &[keepalive[..length].to_vec()]),
            [Verdict::Dropped(DropReason::Malformed)],
            "{length} bytes"
        );
    }
    let longer = [&keepalive[..], &[0]].concat();
    assert_eq!(
        world.inject(1, source, &[longer, keepalive]),
        [
            Verdict::Dropped(DropReason::NotAuthentic),
            Verdict::Keepalive
        ]
    );
}

#[test]
fn datagrams_of_any_size_are_judged_like_others() {
    let mut world = World::pair(12);
    world.chat(1);
    let source = outer(0, 51_820);
    for size in [1_500, 9_000, 65_507, 65_535, 65_536, 1 << 20] {
        for kind in 1..=5 {
            let mut rubbish = vec![0xa5; size];
            rubbish[..4].copy_from_slice(&[kind, 0, 0, 0]);
            let reason = if kind == 4 {
                DropReason::UnknownIndex
            } else {
                DropReason::Malformed
            };
            assert_eq!(
                world.inject(1, source, &[rubbish]),
                [Verdict::Dropped(reason)]
            );
        }
    }
    // Authentic, with more padding than any road carries: the packet inside is whole.
    world.road.lets_through = Box::new(|_| false);
    let packet = packet(inner(0), inner(1), 5);
    for size in [9_000, 65_535, 1 << 20] {
        let mut batch = Outgoing::new(2 << 20, 1);
        let place = batch.reserve(size, 0).unwrap();
        place.fill(0);
        place[..packet.len()].copy_from_slice(&packet);
        world.send_batch(0, 1, &mut batch);
        let mut datagram = world.log.last().unwrap().bytes.clone();
        let mut incoming = [Incoming::new(&mut datagram, source)];
        let now = world.now_of(1);
        world.machines[1].tunnel.open(now, &mut incoming);
        assert_eq!(incoming[0].packet(), Some(&packet[..]), "in {size} bytes");
    }
}

#[test]
fn the_steps_of_another_engine_give_the_same() {
    let mut world = World::pair(5);
    world.chat(1);
    world.road.lets_through = Box::new(|_| false);
    let now = world.now_of(0);
    let peer = world.peer(0, 1);
    let tunnel = &world.machines[0].tunnel;
    let mut batches = [Outgoing::new(9_000, 4), Outgoing::new(9_000, 4)];
    for (batch, number) in batches.iter_mut().zip([100u64, 200]) {
        for offset in 0..4 {
            assert!(batch.push(&packet(inner(0), inner(1), number + offset), MTU));
        }
    }
    // Counters in the order of arrival, sealing in any order.
    let first = tunnel.begin_send(now, &peer, 4).unwrap();
    let second = tunnel.begin_send(now, &peer, 4).unwrap();
    let wrong = tunnel.begin_send(now, &peer, 3).unwrap();
    assert!(!wrong.seal(&mut batches[0]), "fewer counters than packets");
    assert!(second.seal(&mut batches[1]));
    assert!(first.seal(&mut batches[0]));
    let again = tunnel.begin_send(now, &peer, 4).unwrap();
    assert!(!again.seal(&mut batches[0]), "sealed already");
    for batch in &batches {
        tunnel.sent(now, &peer, batch);
    }

    let mut datagrams: Vec<Vec<u8>> = batches
        .iter()
        .flat_map(Outgoing::datagrams)
        .map(|datagram| datagram.bytes.to_vec())
        .collect();
    let source = outer(0, 51_820);
    let receiver = &world.machines[1].tunnel;
    let session = receiver.session(&datagrams[0]).unwrap();
    let mut run: Vec<Incoming<'_>> = datagrams
        .iter_mut()
        .map(|bytes| Incoming::new(bytes, source))
        .collect();
    let (front, back) = run.split_at_mut(4);
    std::thread::scope(|scope| {
        scope.spawn(|| session.open(now, back));
        scope.spawn(|| session.open(now, front));
    });
    receiver.accept(now, &session, &mut run);
    let delivered: Vec<u64> = run
        .iter()
        .map(|incoming| u64::from_be_bytes(incoming.packet().unwrap()[20..28].try_into().unwrap()))
        .collect();
    assert_eq!(delivered, [100, 101, 102, 103, 200, 201, 202, 203]);
}

#[test]
fn threads_share_a_session_without_losing_or_repeating_anything() {
    const THREADS: u64 = 4;
    const BATCHES: u64 = 50;
    const PACKETS: u64 = 20;
    let mut world = World::pair(6);
    world.chat(1);
    let (now, peer) = (world.now_of(0), world.peer(0, 1));
    let sender = &world.machines[0].tunnel;
    let receiver = &world.machines[1].tunnel;
    let mut delivered: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let peer = &peer;
                scope.spawn(move || {
                    let mut delivered = Vec::new();
                    let mut batch = Outgoing::new(1 << 16, 64);
                    for number in (0..BATCHES).map(|at| (thread * BATCHES + at) * PACKETS) {
                        batch.clear();
                        for offset in 0..PACKETS {
                            assert!(batch.push(&packet(inner(0), inner(1), number + offset), MTU));
                        }
                        sender.seal(now, peer, &mut batch);
                        let datagrams: Vec<Vec<u8>> = batch
                            .datagrams()
                            .map(|datagram| datagram.bytes.to_vec())
                            .collect();
                        // Everything twice: the second time is a replay.
                        for _ in 0..2 {
                            let mut copies = datagrams.clone();
                            let mut incoming: Vec<Incoming<'_>> = copies
                                .iter_mut()
                                .map(|bytes| Incoming::new(bytes, outer(0, 51_820)))
                                .collect();
                            receiver.open(now, &mut incoming);
                            delivered.extend(incoming.iter().filter_map(Incoming::packet).map(
                                |packet| u64::from_be_bytes(packet[20..28].try_into().unwrap()),
                            ));
                        }
                    }
                    assert!(delivered.is_sorted(), "each thread's packets stay in order");
                    delivered
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    delivered.sort_unstable();
    assert_eq!(
        delivered,
        (0..THREADS * BATCHES * PACKETS).collect::<Vec<u64>>()
    );
}

/// What a device does: what waits in the tunnel is older than the batch it has just sealed.
#[test]
fn order_is_kept_while_another_thread_makes_the_session() {
    for seed in 0..40 {
        let world = World::pair(seed);
        let (now, peer) = (world.now_of(0), world.peer(0, 1));
        let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(seed);
        let mut batch = Outgoing::new(2_000, 1);
        let tunnel = &world.machines[0].tunnel;
        let mut send = |number: u64, road: &mut Vec<Vec<u8>>| {
            batch.clear();
            assert!(batch.push(&packet(inner(0), inner(1), number), MTU));
            let sealed = tunnel.seal(now, &peer, &mut batch);
            if tunnel.transmits_waiting() {
                let waiting = std::iter::from_fn(|| tunnel.poll_transmit());
                road.extend(waiting.map(|transmit| transmit.bytes));
            }
            road.extend(batch.datagrams().map(|datagram| datagram.bytes.to_vec()));
            matches!(sealed, Sealed::To(_))
        };
        let mut road = Vec::new();
        assert!(!send(0, &mut road));
        tunnel.timers(now, &mut rng);
        let initiation = tunnel.poll_transmit().unwrap().bytes;
        let answering = &world.machines[1].tunnel;
        answering
            .handshake(now, outer(0, 51_820), &initiation, &mut rng)
            .unwrap();
        let response = answering.poll_transmit().unwrap().bytes;
        std::thread::scope(|scope| {
            let address = outer(1, 51_820);
            scope.spawn(move || tunnel.handshake(now, address, &response, &mut rng).unwrap());
            let mut sent_at_once = 0;
            for number in 1.. {
                sent_at_once += u32::from(send(number, &mut road));
                if sent_at_once == 20 {
                    break;
                }
            }
        });
        let source = outer(0, 51_820);
        let mut incoming: Vec<Incoming<'_>> = road
            .iter_mut()
            .map(|bytes| Incoming::new(bytes, source))
            .collect();
        world.machines[1].tunnel.open(now, &mut incoming);
        let numbers: Vec<u64> = incoming
            .iter()
            .map(|incoming| {
                let packet = incoming.packet().unwrap();
                u64::from_be_bytes(packet[20..28].try_into().unwrap())
            })
            .collect();
        assert!(numbers.is_sorted() && numbers.len() > 20, "{numbers:?}");
    }
}

#[test]
fn inner_ipv6_goes_through_and_is_checked() {
    let mut world = World::pair(7);
    world.chat(1);
    let peer = world.peer(1, 0);
    let net = Prefix::new("fd00::".parse().unwrap(), 64).unwrap();
    world.machines[1].tunnel.allow(&peer, net);
    world.road.lets_through = Box::new(|_| false);
    for (source, allowed) in [
        ("fd00::7", true),
        ("fd00:0:0:1::7", false),
        ("::a00:1", false),
    ] {
        let mut bytes = vec![0; 57];
        bytes[0] = 0x60;
        bytes[5] = 17;
        bytes[8..24].copy_from_slice(&source.parse::<std::net::Ipv6Addr>().unwrap().octets());
        let mut batch = Outgoing::new(2_000, 1);
        assert!(batch.push(&bytes, MTU));
        world.send_batch(0, 1, &mut batch);
        let mut datagram = world.log.last().unwrap().bytes.clone();
        let mut incoming = [Incoming::new(&mut datagram, outer(0, 51_820))];
        let now = world.now_of(1);
        world.machines[1].tunnel.open(now, &mut incoming);
        assert_eq!(
            incoming[0].packet(),
            allowed.then_some(&bytes[..]),
            "{source}"
        );
    }
}

#[test]
fn taking_a_range_away_stops_it_at_once() {
    let mut world = World::pair(8);
    world.chat(1);
    let peer = world.peer(1, 0);
    let range = Prefix::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 32).unwrap();
    assert_eq!(world.machines[1].tunnel.allowed_ips(&peer), [range]);
    assert!(world.machines[1].tunnel.disallow(&peer, range));
    assert!(!world.machines[1].tunnel.disallow(&peer, range));
    let there = world.send(0, 1);
    assert!(!world.run_until_delivered(1, there, Duration::from_secs(1)));
    world.machines[1].tunnel.allow(&peer, range);
    let there = world.send(0, 1);
    assert!(world.run_until_delivered(1, there, Duration::from_secs(1)));
    world.machines[1].tunnel.disallow_all(&peer);
    assert!(world.machines[1].tunnel.route(inner(0)).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Who may use an address is decided by the longest prefix, whatever ranges two peers have.
    #[test]
    fn nothing_is_delivered_from_outside_the_allowed_ips(
        ranges in prop::collection::vec((1..3usize, 0..8u8, 0..4u8, 8..=32u8), 0..12),
        packets in prop::collection::vec((1..3usize, 0..8u8, 0..4u8, 0..4u8), 40),
    ) {
        let mut world = World::new(3, 10);
        for (machine, peer) in [(1, 0), (0, 1), (0, 2), (2, 0)] {
            world.introduce(machine, peer, true);
        }
        world.send(1, 0);
        world.send(2, 0);
        world.run_seconds(1);
        world.road.lets_through = Box::new(|_| false);
        let mut model: Vec<(Prefix, usize)> = Vec::new();
        for peer in [1, 2] {
            model.push((Prefix::new(inner(peer), 32).unwrap(), peer));
        }
        for (peer, b, c, length) in ranges {
            let prefix = Prefix::new(IpAddr::from([10, b, c, 0]), length).unwrap();
            let handle = world.peer(0, peer);
            world.machines[0].tunnel.allow(&handle, prefix);
            model.retain(|(other, _)| *other != prefix);
            model.push((prefix, peer));
        }
        for (from, b, c, d) in packets {
            let source = IpAddr::from([10, b, c, d]);
            let owner = model
                .iter()
                .filter(|(prefix, _)| prefix.contains(source))
                .max_by_key(|(prefix, _)| prefix.length())
                .map(|(_, owner)| *owner);
            let mut bytes = packet(inner(from), inner(0), 1);
            bytes[12..16].copy_from_slice(&[10, b, c, d]);
            let mut batch = Outgoing::new(2_000, 1);
            prop_assert!(batch.push(&bytes, MTU));
            world.send_batch(from, 0, &mut batch);
            let mut datagram = world.log.last().unwrap().bytes.clone();
            let mut incoming = [Incoming::new(&mut datagram, outer(from, 51_820))];
            let now = world.now_of(0);
            world.machines[0].tunnel.open(now, &mut incoming);
            let delivered = incoming[0].packet().is_some();
            prop_assert_eq!(delivered, owner == Some(from), "{} of {}", source, from);
        }
    }

    /// Whatever comes from outside: no panic, nothing delivered, nothing sent in answer.
    #[test]
    fn arbitrary_datagrams_do_nothing(
        mut datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
        kinds in prop::collection::vec(0u8..6, 20),
    ) {
        let mut world = World::pair(9);
        let before = world.log.len();
        for (datagram, kind) in datagrams.iter_mut().zip(kinds) {
            if kind > 0 {
                let length = match kind { 1 => 148, 2 => 92, 3 => 64, _ => datagram.len().max(32) };
                datagram.resize(length, 0x3c);
                datagram[..4].copy_from_slice(&[kind.min(4), 0, 0, 0]);
            }
        }
        let verdicts = world.inject(1, outer(0, 51_820), &datagrams);
        prop_assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Dropped(_))));
        prop_assert_eq!(world.log.len(), before);
        prop_assert_eq!(world.sent(1, Kind::Response).len(), 0);
    }
}
