use std::net::Ipv4Addr;

use wirespeed_protocol::{Now, Options, Prefix, PublicKey};

use super::*;

const MTU: usize = 1_420;

/// A tunnel with peers 1, 2, …, of which each has the network 10.NUMBER.0.0/16.
fn tunnel(peers: u8) -> Tunnel {
    let tunnel = Tunnel::new(Now::default().instant, Options::default(), &mut rand::rng());
    for number in 1..=peers {
        let key = PublicKey::from_bytes([number; 32]);
        let peer = tunnel.add_peer(key, &mut rand::rng()).unwrap();
        tunnel.allow(&peer, Prefix::new([10, number, 0, 0].into(), 16).unwrap());
    }
    tunnel
}

/// A frame of the TUN: an empty header of its own, then a UDP packet of `length` bytes.
fn frame(to: Ipv4Addr, length: usize) -> Vec<u8> {
    let mut frame = vec![0; 10 + length];
    let packet = &mut frame[10..];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    packet[8] = 64;
    packet[9] = 17;
    packet[16..20].copy_from_slice(&to.octets());
    frame
}

/// What came out: for each batch its peer, how many packets, and how many bytes inside.
struct Packed {
    packer: Packer,
    statistics: WorkerStatistics,
    batches: Vec<(u8, usize, usize)>,
}

impl Packed {
    fn new() -> Self {
        Self {
            packer: Packer::new(),
            statistics: WorkerStatistics::new("", None),
            batches: Vec::new(),
        }
    }

    fn pack(&mut self, tunnel: &Tunnel, to: [u8; 4], length: usize) {
        let batches = &mut self.batches;
        let frame = frame(to.into(), length);
        self.packer
            .pack(tunnel, MTU, &frame, &self.statistics, note(batches));
    }

    fn flush(&mut self) {
        self.packer.flush(note(&mut self.batches));
    }
}

fn note(batches: &mut Vec<(u8, usize, usize)>) -> impl FnMut(&Arc<Peer>, &mut Outgoing, usize) {
    |peer, batch, inner| {
        batches.push((peer.public_key().as_bytes()[0], batch.len(), inner));
        batch.clear();
    }
}

#[test]
fn packets_of_peers_that_come_in_turn_share_batches() {
    let tunnel = tunnel(3);
    let mut packed = Packed::new();
    for round in 0..30 {
        for peer in 1..=3 {
            packed.pack(&tunnel, [10, peer, 0, round], 100);
        }
    }
    assert_eq!(packed.batches, [], "nothing is full");
    packed.flush();
    assert_eq!(packed.batches, [1, 2, 3].map(|peer| (peer, 30, 3_000)));
    packed.flush();
    assert_eq!(packed.batches.len(), 3, "all is flushed");
}

#[test]
fn a_full_train_is_handed_over_at_once() {
    let tunnel = tunnel(1);
    let mut packed = Packed::new();
    for _ in 0..47 {
        packed.pack(&tunnel, [10, 1, 0, 1], MTU);
    }
    assert_eq!(packed.batches, [(1, 45, 45 * MTU)]);
    packed.flush();
    assert_eq!(packed.batches[1], (1, 2, 2 * MTU));
}

#[test]
fn a_batch_has_64_packets_at_most() {
    let tunnel = tunnel(1);
    let mut packed = Packed::new();
    for _ in 0..65 {
        packed.pack(&tunnel, [10, 1, 0, 1], 40);
    }
    assert_eq!(packed.batches, [(1, 64, 64 * 40)]);
}

#[test]
fn with_many_peers_whoever_waited_longest_makes_room() {
    let lanes = LANES as u8;
    let tunnel = tunnel(lanes + 2);
    let mut packed = Packed::new();
    for peer in 1..=lanes {
        packed.pack(&tunnel, [10, peer, 0, 1], 50);
    }
    packed.pack(&tunnel, [10, 1, 0, 1], 50);
    packed.pack(&tunnel, [10, lanes + 1, 0, 1], 50);
    packed.pack(&tunnel, [10, lanes + 2, 0, 1], 50);
    assert_eq!(packed.batches, [(2, 1, 50), (3, 1, 50)]);
    packed.flush();
    let mut packets: Vec<_> = packed
        .batches
        .iter()
        .map(|(peer, n, _)| (*peer, *n))
        .collect();
    packets.sort_unstable();
    assert_eq!(packets[0], (1, 2));
    assert_eq!(packets.len(), LANES + 2);
}

#[test]
fn what_is_for_nobody_is_counted() {
    let tunnel = tunnel(1);
    let mut packed = Packed::new();
    packed.pack(&tunnel, [10, 9, 0, 1], 50);
    packed.pack(&tunnel, [10, 1, 0, 1], 65_535);
    packed
        .packer
        .pack(&tunnel, MTU, &[0; 12], &packed.statistics, |_, _, _| ());
    packed.flush();
    assert_eq!(packed.batches, []);
    for loss in [Loss::NoPeer, Loss::PacketTooLong, Loss::FrameMalformed] {
        assert_eq!(packed.statistics.losses(loss), 1, "{loss:?}");
    }
}

#[test]
fn a_change_of_routes_is_seen() {
    let tunnel = tunnel(2);
    let mut packed = Packed::new();
    packed.pack(&tunnel, [10, 1, 0, 1], 50);
    packed.flush();
    let second = tunnel.peer(&PublicKey::from_bytes([2; 32])).unwrap();
    tunnel.allow(&second, Prefix::new([10, 1, 0, 0].into(), 24).unwrap());
    packed.pack(&tunnel, [10, 1, 0, 1], 50);
    packed.flush();
    assert_eq!(packed.batches, [(1, 1, 50), (2, 1, 50)]);
}

#[test]
fn nobody_waits_for_one_who_sends_without_end() {
    let tunnel = tunnel(2);
    let mut packed = Packed::new();
    packed.pack(&tunnel, [10, 2, 0, 1], 50);
    for at in 0..3 * ROUND_PACKETS {
        packed.pack(&tunnel, [10, 1, 0, 1], 50);
        // Few, but never none: what is added doesn't make the others young.
        if at % ROUND_PACKETS == 0 {
            packed.pack(&tunnel, [10, 2, 0, 2], 50);
        }
        let gone = packed.batches.iter().any(|(peer, ..)| *peer == 2);
        assert!(gone || at < 2 * ROUND_PACKETS, "after {at} packets");
    }
}

#[test]
fn a_change_of_routes_is_seen_by_one_who_sends_without_end() {
    let tunnel = tunnel(2);
    let mut packed = Packed::new();
    packed.pack(&tunnel, [10, 1, 0, 1], MTU);
    let second = tunnel.peer(&PublicKey::from_bytes([2; 32])).unwrap();
    tunnel.allow(&second, Prefix::new([10, 1, 0, 0].into(), 24).unwrap());
    for _ in 0..2 * ROUND_PACKETS {
        packed.pack(&tunnel, [10, 1, 0, 1], MTU);
    }
    assert!(
        packed.batches.contains(&(2, 45, 45 * MTU)),
        "{:?}",
        packed.batches
    );
}

#[test]
fn lengths_are_those_of_the_protocol() {
    for mtu in [1_280, MTU, 9_000] {
        for length in (0..=mtu).chain([20_000]) {
            let bytes = datagram_bytes(length, mtu);
            assert!(Outgoing::new(bytes, 1).reserve(length, mtu).is_some());
            let fits_in_less = Outgoing::new(bytes - 1, 1).reserve(length, mtu).is_some();
            assert!(length > mtu || !fits_in_less);
        }
    }
}
