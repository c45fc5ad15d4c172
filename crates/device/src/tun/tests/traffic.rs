//! Traffic through two TUNs, cut and joined on the way, arrives as it was sent.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use super::world::{Carried, Namespace, Road, possible};
use crate::offloads::{Offload, Offloads};
use crate::split::packets::payload;

const LIMIT: Duration = Duration::from_secs(20);

/// Sends so many bytes over TCP and finds them unchanged at the other end.
fn transfer(from: &Namespace, to: &Namespace, address: IpAddr, bytes: usize) {
    let sent = payload(bytes, 42);
    let listener = to.run(|| TcpListener::bind((address, 0)).unwrap());
    let port = listener.local_addr().unwrap().port();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let mut stream = from.run(|| TcpStream::connect((address, port)).unwrap());
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.write_all(&sent).unwrap();
        drop(stream);
        receiver.join().unwrap()
    });
    assert_eq!(received.len(), sent.len());
    assert!(received == sent, "the bytes are others");
}

fn udp_pair(from: &Namespace, to: &Namespace, address: IpAddr) -> (UdpSocket, UdpSocket) {
    let receiver = to.run(|| UdpSocket::bind((address, 0)).unwrap());
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    let any: IpAddr = if address.is_ipv4() {
        [0; 4].into()
    } else {
        [0; 16].into()
    };
    let sender = from.run(|| UdpSocket::bind((any, 0)).unwrap());
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (sender, receiver)
}

fn expect(receiver: &UdpSocket, sent: &[u8]) {
    let mut buffer = vec![0; 65_535];
    let length = receiver.recv(&mut buffer).unwrap();
    assert_eq!(length, sent.len());
    assert!(buffer[..length] == *sent, "the bytes are others");
}

/// Datagrams of all sizes, a few at a time so that none is lost for want of room.
fn datagrams(from: &Namespace, to: &Namespace, address: IpAddr) {
    let (sender, receiver) = udp_pair(from, to, address);
    let sizes = (0..200).map(|index| index * 7 % 1_372).collect::<Vec<_>>();
    for some in sizes.chunks(20) {
        for size in some {
            sender.send(&payload(*size, *size as u64)).unwrap();
        }
        for size in some {
            expect(&receiver, &payload(*size, *size as u64));
        }
    }
    // Longer than the MTU: goes in fragments.
    for size in [1_393, 4_000, 9_000] {
        sender.send(&payload(size, 5)).unwrap();
        expect(&receiver, &payload(size, 5));
    }
}

/// Datagrams sent in trains of one call.
fn trains(from: &Namespace, to: &Namespace, address: IpAddr) {
    let (sender, receiver) = udp_pair(from, to, address);
    setsockopt(&sender, UdpGsoSegment, &1_000).unwrap();
    for seed in 0..20 {
        let train = payload(30_500, seed);
        sender.send(&train).unwrap();
        for datagram in train.chunks(1_000) {
            expect(&receiver, datagram);
        }
    }
}

#[test]
fn everything_arrives_with_any_offload_off() {
    if !possible("everything_arrives_with_any_offload_off") {
        return;
    }
    let tun = [
        Offload::TunChecksum,
        Offload::TunTso4,
        Offload::TunTso6,
        Offload::TunUso,
    ];
    let mut cases = vec![vec![], tun.to_vec()];
    cases.extend(tun.map(|offload| vec![offload]));
    for off in cases {
        let offloads = Arc::new(Offloads::new(&off));
        let road = Road::new(1, &offloads);
        for (address, offload) in Road::FAR
            .into_iter()
            .zip([Offload::TunTso4, Offload::TunTso6])
        {
            let before = Carried::get(&road.there.super_packets);
            let (packets, writes) = (
                Carried::get(&road.there.packets),
                Carried::get(&road.there.writes),
            );
            transfer(&road.near, &road.far, address, 4 << 20);
            let cut = Carried::get(&road.there.super_packets) > before;
            assert_eq!(cut, offloads.on(offload), "{address}, {off:?} off");
            let joined = Carried::get(&road.there.packets) - packets
                > Carried::get(&road.there.writes) - writes;
            assert_eq!(joined, offloads.on(offload), "{address}, {off:?} off");
        }
        for address in Road::NEAR {
            transfer(&road.far, &road.near, address, 1 << 20);
        }
        for address in Road::FAR {
            datagrams(&road.near, &road.far, address);
            let before = Carried::get(&road.there.super_packets);
            trains(&road.near, &road.far, address);
            let cut = Carried::get(&road.there.super_packets) > before;
            assert_eq!(cut, offloads.on(Offload::TunUso), "{address}, {off:?} off");
        }
        assert_eq!(Carried::get(&road.there.errors), 0, "{off:?} off");
        assert_eq!(Carried::get(&road.back.errors), 0, "{off:?} off");
        for offload in tun {
            assert_eq!(offloads.errors(offload), 0, "{offload}, {off:?} off");
        }
    }
}

#[test]
fn several_queues_carry_several_connections() {
    if !possible("several_queues_carry_several_connections") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let road = Road::new(3, &offloads);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            for address in Road::FAR {
                let road = &road;
                scope.spawn(move || transfer(&road.near, &road.far, address, 2 << 20));
            }
        }
    });
    assert_eq!(Carried::get(&road.there.errors), 0);
}

#[test]
fn local_connections_can_be_limited_to_a_train() {
    if !possible("local_connections_can_be_limited_to_a_train") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let road = Road::new(1, &offloads);
    road.tuns[0].limit_segments(Some(9)).unwrap();
    for address in Road::FAR {
        transfer(&road.near, &road.far, address, 2 << 20);
    }
    assert_eq!(Carried::get(&road.there.longest), 9);
    road.tuns[0].limit_segments(None).unwrap();
    transfer(&road.near, &road.far, Road::FAR[0], 4 << 20);
    assert!(Carried::get(&road.there.longest) > 9);
}

#[test]
fn an_mtu_may_change_meanwhile() {
    if !possible("an_mtu_may_change_meanwhile") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let road = Road::new(1, &offloads);
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            for mtu in [1_280, 9_000, 1_300, 1_420] {
                std::thread::sleep(Duration::from_millis(30));
                road.near.ip(&format!("link set tun0 mtu {mtu}"));
                road.far.ip(&format!("link set tun0 mtu {mtu}"));
            }
        });
        for address in Road::FAR {
            transfer(&road.near, &road.far, address, 8 << 20);
        }
        changes.join().unwrap();
    });
}
