//! Mixtures of packets: joined and cut again, each flow is as it was.
//!
//! The input is a list of packets: what kind, how long, and a few bytes that are changed in a packet that continues its flow.
#![no_main]

use std::collections::BTreeMap;

use wirespeed_device::join::Joiner;
use wirespeed_device::offloads::{Offload, Offloads};
use wirespeed_device::split::Frame;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((options, data)) = data.split_first() else {
        return;
    };
    let off = [Offload::TunTso4, Offload::TunTso6, Offload::TunUso];
    let off: Vec<_> = (0..3)
        .filter(|bit| options >> bit & 1 == 1)
        .map(|bit| off[bit])
        .collect();
    let offloads = Offloads::new(&off);
    let packets = packets(data);

    let mut back = Vec::new();
    Joiner::new().join(
        packets.iter().map(|packet| &packet[..]),
        &offloads,
        |parts, count| {
            assert!(parts.len() <= 1_024);
            let frame: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
            if count == 1 {
                assert_eq!(frame[..10], [0; 10]);
                back.push(frame[10..].to_vec());
                return;
            }
            assert!(frame.len() <= 10 + 65_535);
            let frame = Frame::parse(&frame).expect("a joined frame can be cut");
            assert_eq!(frame.packets(), count);
            for index in 0..count {
                let mut packet = vec![0; frame.packet_length(index)];
                frame.write_packet(index, &mut packet);
                back.push(packet);
            }
        },
    );
    assert_eq!(back.len(), packets.len());
    assert_eq!(by_flow(&back), by_flow(&packets));
});

/// What the next packet of a flow is like.
#[derive(Clone, Copy, Default)]
struct Flow {
    sequence: u32,
    identification: u16,
}

fn packets(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut flows = [Flow::default(); 128];
    let mut packets = Vec::new();
    while let [kind, length, changes, rest @ ..] = data {
        let flow = &mut flows[usize::from(*kind & 0x7f)];
        let mut packet = packet(*kind, usize::from(*length) * 6, *flow);
        flow.sequence = flow.sequence.wrapping_add(u32::from(*length) * 6);
        flow.identification = flow.identification.wrapping_add(1);
        let mut rest = rest;
        for _ in 0..changes & 3 {
            if let [at, value, after @ ..] = rest {
                // Headers, or the very end.
                let at = usize::from(*at);
                if at < packet.len() {
                    packet[at] ^= value;
                }
                rest = after;
            }
        }
        if changes & 4 != 0 {
            packet.truncate(packet.len() - packet.len() % 50);
        }
        if changes & 8 == 0 {
            complete(&mut packet);
        }
        packets.push(packet);
        data = rest;
        if packets.len() == 300 {
            break;
        }
    }
    packets
}

/// A plain packet; bits of its kind: IPv6, UDP, TCP options, fragments allowed, and the rest numbers the flow.
fn packet(kind: u8, payload: usize, flow: Flow) -> Vec<u8> {
    let (v6, udp) = (kind & 1 != 0, kind & 2 != 0);
    let options = if kind & 4 != 0 { 12 } else { 0 };
    let number = kind >> 4;
    let transport = if udp { 8 } else { 20 + options };
    let mut packet = Vec::new();
    if v6 {
        packet.extend_from_slice(&[0x60, 0, 0, 0]);
        packet.extend_from_slice(&((transport + payload) as u16).to_be_bytes());
        packet.extend_from_slice(&[if udp { 17 } else { 6 }, 64]);
        packet.extend_from_slice(&[0xfd; 32]);
    } else {
        packet.extend_from_slice(&[0x45, 0]);
        packet.extend_from_slice(&((20 + transport + payload) as u16).to_be_bytes());
        packet.extend_from_slice(&flow.identification.to_be_bytes());
        packet.extend_from_slice(&[if kind & 8 != 0 { 0 } else { 0x40 }, 0, 64]);
        packet.extend_from_slice(&[if udp { 17 } else { 6 }, 0, 0]);
        packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    }
    packet.extend_from_slice(&[1, number, 2, number]);
    if udp {
        packet.extend_from_slice(&((transport + payload) as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
    } else {
        packet.extend_from_slice(&flow.sequence.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 9]);
        packet.extend_from_slice(&[((transport / 4) as u8) << 4, 0x10, 1, 0, 0, 0, 0, 0]);
        packet.resize(packet.len() + options, 1);
    }
    let from = flow.sequence as usize + usize::from(flow.identification);
    packet.extend((from..from + payload).map(|at| (at * 7) as u8));
    packet
}

/// Puts the right checksums in, where there is a place for them.
fn complete(packet: &mut [u8]) {
    let (transport, protocol) = match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 => (20, packet[9]),
        Some(6) if packet.len() >= 40 => (40, packet[6]),
        _ => return,
    };
    if transport == 20 {
        packet[10..12].fill(0);
        let sum = !sum(&packet[..20], 0);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let at = transport + if protocol == 17 { 6 } else { 16 };
    if packet.len() < at + 2 {
        return;
    }
    packet[at..at + 2].fill(0);
    let addresses = if transport == 20 { 12..20 } else { 8..40 };
    let pseudo = u64::from(sum(&packet[addresses], 0))
        + u64::from(protocol)
        + (packet.len() - transport) as u64;
    let sum = match !sum(&packet[transport..], pseudo) {
        0 if protocol == 17 => 0xffff,
        other => other,
    };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn sum(bytes: &[u8], begin: u64) -> u16 {
    let mut sum = begin;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The packets of each flow in order, without what may differ.
fn by_flow(packets: &[Vec<u8>]) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<Vec<u8>, Vec<_>> = BTreeMap::new();
    for packet in packets {
        let key = match packet.first().map(|byte| byte >> 4) {
            Some(4) if packet.len() >= 24 => [&packet[9..10], &packet[12..24]].concat(),
            Some(6) if packet.len() >= 44 => [&packet[6..7], &packet[8..44]].concat(),
            _ => vec![],
        };
        flows.entry(key).or_default().push(normal(packet));
    }
    flows
}

/// Zero has two representations in a checksum of TCP or IPv4; and what can't be fragmented needs no identification.
fn normal(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let v4 = packet.first().is_some_and(|byte| byte >> 4 == 4);
    if v4 && packet.len() >= 20 && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    let mut checksums = vec![];
    if v4 {
        checksums.push(10);
        checksums.push(36);
    } else {
        checksums.push(56);
    }
    for at in checksums {
        if packet.len() >= at + 2 && packet[at..at + 2] == [0xff; 2] {
            packet[at..at + 2].fill(0);
        }
    }
    packet
}
