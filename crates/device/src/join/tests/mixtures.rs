//! Any mixture of flows, joined and cut again.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::join_with;
use crate::join::Joiner;
use crate::offloads::{Offload, Offloads};
use crate::split::Frame;
use crate::split::packets::{ACK, CWR, FIN, PSH, Recipe, payload};

/// What a sender does next.
#[derive(Clone, Debug)]
enum Step {
    /// The next full segment.
    Full,
    /// The next segment, of this length.
    Length(usize),
    /// The next full segment with flags.
    Flags(u8),
    /// A bare acknowledgement, an empty datagram.
    Empty,
    /// From now on another acknowledgement, window, TTL, traffic class, ability to be fragmented or timestamp.
    Change(u8),
    /// A segment is left out, or sent again.
    Jump(i8),
    /// A full segment with a bit wrong, counted from the end.
    Corrupt(usize),
    /// A fragment.
    Fragment,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => Just(Step::Full),
        2 => (1usize..1_500).prop_map(Step::Length),
        2 => prop::sample::select(&[PSH, FIN, CWR, 0x40, 0x02, 0x04, 0x20][..]).prop_map(Step::Flags),
        1 => Just(Step::Empty),
        1 => any::<u8>().prop_map(Step::Change),
        1 => any::<i8>().prop_map(Step::Jump),
        1 => (0usize..60).prop_map(Step::Corrupt),
        1 => Just(Step::Fragment),
    ]
}

/// The packets of one flow in order.
fn flow(number: u8, kind: (bool, bool), full: usize, steps: &[Step]) -> Vec<Vec<u8>> {
    let mut next = Recipe::new(kind.0, kind.1, vec![]);
    next.flow = number;
    next.options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let mut packets = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let mut length = full;
        let mut flags = ACK;
        match step {
            Step::Length(other) => length = *other,
            Step::Flags(more) => flags |= more,
            Step::Empty => length = 0,
            Step::Change(what) => match what % 6 {
                0 => next.acknowledgement += 1,
                1 => next.window ^= 1,
                2 => next.hop_limit ^= 1,
                3 => next.traffic_class ^= 1,
                4 => next.dont_fragment ^= true,
                _ => next.options[7] ^= 1,
            },
            Step::Jump(by) => next.sequence = next.sequence.wrapping_add_signed(i32::from(*by)),
            Step::Full | Step::Corrupt(_) | Step::Fragment => {}
        }
        next.flags = flags;
        let recipe = next.with_payload(&payload(length, index as u64));
        let mut packet = recipe.bytes();
        match step {
            Step::Corrupt(back) => {
                let at = packet.len() - 1 - back;
                packet[at] ^= 1;
            }
            Step::Fragment if !next.v6 => packet[7] = 3,
            Step::Fragment => packet[6] = 44,
            _ => {}
        }
        next.sequence = next.sequence.wrapping_add(length as u32);
        next.identification = next.identification.wrapping_add(1);
        packets.push(packet);
    }
    packets
}

/// What may differ afterwards: the identification of what can't be fragmented, and with it the header's checksum.
fn normal(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet
}

/// The packets of each flow, in order. The third byte of an IPv4 address and the last but one of an IPv6 address number it.
fn by_flow<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>) -> BTreeMap<u8, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<u8, Vec<_>> = BTreeMap::new();
    for packet in packets {
        let number = if packet[0] >> 4 == 4 {
            packet[14]
        } else {
            packet[22]
        };
        flows.entry(number).or_default().push(normal(packet));
    }
    flows
}

fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let frame = Frame::parse(frame).unwrap();
    (0..frame.packets())
        .map(|index| {
            let mut packet = vec![0; frame.packet_length(index)];
            frame.write_packet(index, &mut packet);
            packet
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn every_flow_comes_back_as_it_was(
        flows in prop::collection::vec(((any::<bool>(), any::<bool>()), 60usize..1_400, prop::collection::vec(steps(), 1..40)), 1..22),
        order in prop::collection::vec(any::<prop::sample::Index>(), 900), runs in prop::collection::vec(1usize..30, 900),
        off in prop::option::weighted(0.2, prop::sample::select(&[Offload::TunTso4, Offload::TunTso6, Offload::TunUso][..])),
    ) {
        let mut queues: Vec<_> = flows.iter().enumerate()
            .map(|(number, (kind, full, steps))| flow(number as u8, *kind, *full, steps).into_iter())
            .collect();
        let mut mixed = Vec::new();
        for (which, run) in order.iter().zip(runs) {
            let at = which.index(queues.len());
            mixed.extend(queues[at].by_ref().take(run));
        }
        let offloads = Offloads::new(off.as_slice());
        // Batches, as they'd be received.
        let mut joiner = Joiner::new();
        let mut back = Vec::new();
        for batch in mixed.chunks(97) {
            let written = join_with(&mut joiner, batch, &offloads);
            let counted: usize = written.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, batch.len());
            for (frame, count) in written {
                let packets = cut(&frame);
                prop_assert_eq!(packets.len(), count);
                back.extend(packets);
            }
        }
        prop_assert_eq!(by_flow(&back), by_flow(&mixed));
    }
}
