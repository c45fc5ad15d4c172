//! Which queue a packet comes out of.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use super::world::{Namespace, possible, wait_for};
use crate::offloads::{Offload, OffloadState, Offloads};
use crate::split::{FRAME_BYTES, Frame};
use crate::tun::Tun;
use crate::tun::vnet::PLAIN;

const QUEUES: usize = 4;

/// Takes all frames that are there, by source port, with the queues they came out of.
fn take(tun: &Tun, seen: &mut BTreeMap<u16, BTreeSet<usize>>) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut buffer = vec![0; FRAME_BYTES];
    for (number, queue) in tun.queues().iter().enumerate() {
        while wait_for(queue, 0) {
            let length = queue.read(&mut buffer).unwrap();
            let frame = Frame::parse(&buffer[..length]).unwrap();
            let mut packet = vec![0; frame.packet_length(0)];
            frame.write_packet(0, &mut packet);
            let transport = if packet[0] >> 4 == 4 { 20 } else { 40 };
            let protocol = packet[if transport == 20 { 9 } else { 6 }];
            if protocol == 17 {
                let port = u16::from_be_bytes([packet[transport], packet[transport + 1]]);
                seen.entry(port).or_default().insert(number);
                packets.push(packet);
            }
        }
    }
    packets
}

/// The answer to a datagram, as far as the kernel cares.
fn answer(packet: &[u8]) -> Vec<u8> {
    let mut answer = packet.to_vec();
    let (addresses, ports) = if packet[0] >> 4 == 4 {
        (12..20, 20..24)
    } else {
        (8..40, 40..44)
    };
    for range in [addresses, ports] {
        let bytes = &mut answer[range];
        let (first, second) = bytes.split_at_mut(bytes.len() / 2);
        first.swap_with_slice(second);
    }
    answer
}

/// Sends datagrams of many flows, has them answered through other queues than they came from, and tells which queues each
/// flow came out of, by its port.
fn queues_of_flows(namespace: &Namespace, tun: &Tun, far: &str) -> BTreeMap<u16, BTreeSet<usize>> {
    let far: IpAddr = far.parse().unwrap();
    let near: IpAddr = if far.is_ipv4() {
        [10, 77, 0, 1].into()
    } else {
        "fd77::1".parse().unwrap()
    };
    let flows: Vec<UdpSocket> = namespace.run(|| {
        (0..48)
            .map(|_| UdpSocket::bind((near, 0)).unwrap())
            .collect()
    });
    let mut seen = BTreeMap::new();
    for round in 0..10 {
        for flow in &flows {
            flow.send_to(&[round; 100], SocketAddr::from((far, 9)))
                .unwrap();
        }
        for (index, packet) in take(tun, &mut seen).iter().enumerate() {
            // Written to any other queue, as when another worker receives the answers.
            let answer = answer(packet);
            let parts = [IoSlice::new(&PLAIN), IoSlice::new(&answer)];
            tun.queues()[(index + usize::from(round)) % QUEUES]
                .write(&parts)
                .unwrap();
        }
    }
    assert_eq!(seen.len(), flows.len());
    seen
}

fn moved(seen: &BTreeMap<u16, BTreeSet<usize>>) -> usize {
    seen.values().filter(|queues| queues.len() > 1).count()
}

#[test]
fn a_flow_stays_on_its_queue_and_flows_spread() {
    let test = "a_flow_stays_on_its_queue_and_flows_spread";
    if !possible(test) {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let namespace = Namespace::new();
    let tun = namespace.tun_with(&["10.77.0.1/24", "fd77::1/64"], QUEUES, &offloads);
    if !offloads.on(Offload::TunSteering) {
        return crate::testing::skip(test, "the kernel takes no steering program");
    }
    for far in ["10.77.0.2", "fd77::2"] {
        let seen = queues_of_flows(&namespace, &tun, far);
        assert_eq!(moved(&seen), 0, "a flow moved: {seen:?}");
        let mut load = [0; QUEUES];
        for queue in seen.values().flatten() {
            load[*queue] += 1;
        }
        assert!(load.iter().all(|flows| *flows >= 3), "uneven: {load:?}");
    }
}

/// Why there is a program: this is what the kernel does by itself, and that the test above would see it.
#[test]
fn without_the_program_flows_follow_their_answers() {
    if !possible("without_the_program_flows_follow_their_answers") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[Offload::TunSteering]));
    let namespace = Namespace::new();
    let tun = namespace.tun_with(&["10.77.0.1/24", "fd77::1/64"], QUEUES, &offloads);
    assert_eq!(offloads.state(Offload::TunSteering), OffloadState::Disabled);
    for far in ["10.77.0.2", "fd77::2"] {
        let seen = queues_of_flows(&namespace, &tun, far);
        assert!(moved(&seen) > 0, "{seen:?}");
    }
}

#[test]
fn fragments_of_one_datagram_stay_together() {
    if !possible("fragments_of_one_datagram_stay_together") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let namespace = Namespace::new();
    let tun = namespace.tun_with(&["10.77.0.1/24", "fd77::1/64"], QUEUES, &offloads);
    if !offloads.on(Offload::TunSteering) {
        return crate::testing::skip(
            "fragments_of_one_datagram_stay_together",
            "the kernel takes no steering program",
        );
    }
    for far in ["10.77.0.2:9", "[fd77::2]:9"] {
        let far: SocketAddr = far.parse().unwrap();
        let any: IpAddr = if far.is_ipv4() {
            [0; 4].into()
        } else {
            [0; 16].into()
        };
        let socket = namespace.run(|| UdpSocket::bind((any, 0)).unwrap());
        socket.send_to(&[1; 5_000], far).unwrap();
        let mut buffer = vec![0; FRAME_BYTES];
        let mut counts = [0; QUEUES];
        for (queue, count) in tun.queues().iter().zip(&mut counts) {
            while wait_for(queue, 20) {
                let length = queue.read(&mut buffer).unwrap();
                let packet = &buffer[PLAIN.len()..length];
                let is_fragment = if packet[0] >> 4 == 4 {
                    packet[6] & 0x3f != 0 || packet[7] != 0
                } else {
                    packet[6] == 44
                };
                *count += usize::from(is_fragment);
            }
        }
        assert_eq!(counts.iter().max(), Some(&4), "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), 4, "{counts:?}");
    }
}
