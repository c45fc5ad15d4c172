mod mixtures;

use super::*;
use crate::split::packets::{ACK, CWR, FIN, PSH, Recipe, payload};
use crate::tun::vnet::VnetHeader;

/// What was written, in one piece each, and how many packets it was said to be.
fn join_with(
    joiner: &mut Joiner,
    packets: &[Vec<u8>],
    offloads: &Offloads,
) -> Vec<(Vec<u8>, usize)> {
    let mut written = Vec::new();
    let packets = packets.iter().map(|packet| &packet[..]);
    joiner.join(packets, offloads, |parts, count| {
        assert!(parts.len() <= 1_024, "more than writev takes");
        assert!(parts[0].len() >= VNET_HEADER_BYTES);
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        assert!(bytes.len() - VNET_HEADER_BYTES <= MAX_PACKET_BYTES);
        written.push((bytes, count));
    });
    written
}

fn join(packets: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    join_with(&mut Joiner::new(), packets, &Offloads::new(&[]))
}

/// How many packets are in each write.
fn counts(packets: &[Recipe]) -> Vec<usize> {
    let packets: Vec<_> = packets.iter().map(Recipe::bytes).collect();
    join(&packets).iter().map(|(_, count)| *count).collect()
}

/// Segments as one sender makes them, the last one shorter.
fn train(v6: bool, udp: bool, lengths: &[usize]) -> Vec<Recipe> {
    let mut next = Recipe::new(v6, udp, vec![]);
    lengths
        .iter()
        .enumerate()
        .map(|(index, length)| {
            let segment = next.with_payload(&payload(*length, index as u64));
            next.sequence = next.sequence.wrapping_add(*length as u32);
            next.identification = next.identification.wrapping_add(1);
            segment
        })
        .collect()
}

const KINDS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

#[test]
fn a_train_becomes_the_super_packet_it_was() {
    for (v6, udp) in KINDS {
        let mut segments = train(v6, udp, &[1_000, 1_000, 1_000, 500]);
        segments[0].flags |= CWR;
        segments[3].flags |= PSH;
        let packets: Vec<_> = segments.iter().map(Recipe::bytes).collect();
        let written = join(&packets);
        let mut whole = segments[0].clone();
        whole.payload = segments
            .iter()
            .flat_map(|one| one.payload.clone())
            .collect();
        whole.flags |= PSH;
        let mut expected = whole.frame(1_000);
        let header = expected.first_chunk().unwrap();
        let mut header = VnetHeader::parse(header);
        header.header_length = whole.header_bytes() as u16;
        if !udp {
            header.gso_type |= GSO_ECN;
        }
        expected[..VNET_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        assert_eq!(written, [(expected, 4)], "v6 {v6}, udp {udp}");
    }
}

#[test]
fn a_packet_alone_goes_as_it_is() {
    for (v6, udp) in KINDS {
        let packet = Recipe::new(v6, udp, payload(999, 1)).bytes();
        let expected = [&PLAIN[..], &packet].concat();
        assert_eq!(join(&[packet]), [(expected, 1)]);
    }
    assert_eq!(join(&[]), []);
    let rubbish = [vec![], vec![0x45], vec![0x60; 39], vec![0xf0; 100]];
    for (written, packet) in join(&rubbish).iter().zip(&rubbish) {
        assert_eq!(written.0, [&PLAIN[..], packet].concat());
    }
}

#[test]
fn a_short_segment_is_the_last() {
    for (v6, udp) in KINDS {
        assert_eq!(counts(&train(v6, udp, &[900, 900, 700, 700, 700])), [3, 2]);
        assert_eq!(counts(&train(v6, udp, &[700, 900, 900])), [1, 2]);
    }
}

#[test]
fn push_and_fin_end_a_train() {
    for flag in [PSH, FIN] {
        let mut segments = train(false, false, &[900; 6]);
        segments[2].flags |= flag;
        assert_eq!(counts(&segments), [3, 3]);
        segments[0].flags |= flag;
        assert_eq!(counts(&segments), [1, 2, 3]);
    }
}

#[test]
fn only_the_first_may_have_reduced_its_window() {
    let mut segments = train(true, false, &[900; 4]);
    segments[0].flags |= CWR;
    assert_eq!(counts(&segments), [4]);
    segments[2].flags |= CWR;
    assert_eq!(counts(&segments), [2, 2]);
}

/// Changes of one segment that make it another's beginning.
#[test]
fn what_would_not_come_back_the_same_is_not_joined() {
    type Change = fn(&mut Recipe);
    let all: [(&str, Change); 4] = [
        ("traffic class", |one| one.traffic_class = 2),
        ("hop limit", |one| one.hop_limit = 63),
        ("flow", |one| one.flow = 9),
        ("nothing in it", |one| one.payload.clear()),
    ];
    let v4: [(&str, Change); 1] = [("fragmentable", |one| one.dont_fragment = false)];
    let v6: [(&str, Change); 1] = [("flow label", |one| one.flow_label = 1)];
    let tcp: [(&str, Change); 9] = [
        ("gap", |one| one.sequence += 1),
        ("overlap", |one| one.sequence -= 1),
        ("acknowledgement", |one| one.acknowledgement += 1),
        ("window", |one| one.window += 1),
        ("options", |one| one.options = vec![1; 4]),
        ("echo of congestion", |one| one.flags |= 0x40),
        ("SYN", |one| one.flags |= 0x02),
        ("RST", |one| one.flags |= 0x04),
        ("URG", |one| one.flags |= 0x20),
    ];
    for (is_v6, udp) in KINDS {
        let of_ip = if is_v6 { &v6 } else { &v4 };
        let of_transport = if udp { &[][..] } else { &tcp[..] };
        for (name, change) in all.iter().chain(of_ip).chain(of_transport) {
            let mut segments = train(is_v6, udp, &[900; 4]);
            change(&mut segments[2]);
            let counts = counts(&segments);
            // What stood before it is together; whatever goes on behind it isn't joined to that.
            let ends_there: &[&[usize]] = &[&[2, 1, 1], &[3, 1], &[1, 3]];
            assert!(
                ends_there.contains(&&counts[..]),
                "{name}, v6 {is_v6}, udp {udp}: {counts:?}"
            );
            if *name != "flow" {
                assert_eq!(counts[0], 2, "{name}, v6 {is_v6}, udp {udp}: {counts:?}");
            }
        }
    }
}

#[test]
fn identifications_matter_only_where_fragments_may_be() {
    for (dont_fragment, step, expected) in [
        (true, 0, &[3][..]),
        (true, 1, &[3]),
        (true, 77, &[3]),
        (false, 1, &[3]),
        (false, 0, &[1, 1, 1]),
        (false, 2, &[1, 1, 1]),
    ] {
        let mut segments = train(false, false, &[900; 3]);
        for (index, segment) in segments.iter_mut().enumerate() {
            segment.dont_fragment = dont_fragment;
            segment.identification = (index * step) as u16;
        }
        assert_eq!(counts(&segments), expected, "{dont_fragment} {step}");
    }
}

#[test]
fn corrupt_packets_stay_corrupt_and_alone() {
    for (v6, udp) in KINDS {
        for bad in 0..4 {
            let segments = train(v6, udp, &[900; 4]);
            let mut packets: Vec<_> = segments.iter().map(Recipe::bytes).collect();
            let last = packets[bad].len() - 1;
            packets[bad][last] ^= 0x10;
            let written = join(&packets);
            let untouched = (([&PLAIN[..], &packets[bad]].concat()), 1);
            assert!(written.contains(&untouched), "v6 {v6}, udp {udp}, {bad}");
            let counts: Vec<_> = written.iter().map(|(_, count)| *count).collect();
            let expected: &[usize] = [&[1, 3][..], &[1, 1, 2], &[2, 1, 1], &[3, 1]][bad];
            assert_eq!(counts, expected, "v6 {v6}, udp {udp}, {bad}");
        }
    }
    // An IPv4 header whose own checksum is wrong.
    let segments = train(false, false, &[900; 2]);
    let mut packets: Vec<_> = segments.iter().map(Recipe::bytes).collect();
    packets[1][10] ^= 1;
    assert_eq!(join(&packets).len(), 2);
}

#[test]
fn datagrams_without_checksum_are_left_alone() {
    let mut packets: Vec<_> = train(false, true, &[900; 3])
        .iter()
        .map(Recipe::bytes)
        .collect();
    for packet in &mut packets {
        packet[26..28].fill(0);
    }
    assert_eq!(join(&packets).len(), 3);
}

#[test]
fn a_super_packet_has_room_for_64_kib_and_64_datagrams() {
    let counts = |v6, udp, lengths: &[usize]| counts(&train(v6, udp, lengths));
    assert_eq!(counts(false, false, &[1_380; 100]), [47, 47, 6]);
    assert_eq!(counts(true, true, &[1_380; 100]), [47, 47, 6]);
    assert_eq!(counts(false, true, &[100; 150]), [64, 64, 22]);
    assert_eq!(counts(false, false, &[100; 600]), [512, 88]);
    // To the byte: 20 + 20 + 65,495.
    assert_eq!(counts(false, false, &[65_490, 5, 1]), [2, 1]);
    assert_eq!(counts(false, false, &[65_490, 6, 1]), [1, 2]);
}

#[test]
fn many_flows_are_joined_each_by_itself() {
    let flows: Vec<Vec<_>> = (0..16)
        .map(|flow| {
            let mut segments = train(flow % 2 == 0, flow % 3 == 0, &[700; 5]);
            for segment in &mut segments {
                segment.flow = flow;
            }
            segments
        })
        .collect();
    let mixed: Vec<_> = (0..5)
        .flat_map(|index| flows.iter().map(move |flow| flow[index].clone()))
        .collect();
    assert_eq!(counts(&mixed), [5; 16]);
}

#[test]
fn more_flows_than_can_wait_are_still_written() {
    let packets: Vec<_> = (0..40)
        .map(|flow| {
            let mut packet = Recipe::new(false, false, payload(500, 1));
            packet.flow = flow;
            packet
        })
        .collect();
    assert_eq!(counts(&packets), [1; 40]);
}

#[test]
fn each_offload_joins_its_own_kind() {
    let every: Vec<_> = KINDS
        .iter()
        .flat_map(|(v6, udp)| train(*v6, *udp, &[700; 3]))
        .map(|segment| segment.bytes())
        .collect();
    for (off, expected) in [
        (None, vec![3, 3, 3, 3]),
        (Some(Offload::TunTso4), vec![1, 1, 1, 3, 3, 3]),
        (Some(Offload::TunTso6), vec![3, 1, 1, 1, 3, 3]),
        (Some(Offload::TunUso), vec![3, 3, 1, 1, 1, 1, 1, 1]),
        (Some(Offload::TunChecksum), vec![1; 12]),
        (Some(Offload::UdpGso), vec![3, 3, 3, 3]),
    ] {
        let offloads = Offloads::new(off.as_slice());
        let written = join_with(&mut Joiner::new(), &every, &offloads);
        let mut counts: Vec<_> = written.iter().map(|(_, count)| *count).collect();
        // Which flow is written first doesn't matter.
        let mut expected = expected;
        counts.sort_unstable();
        expected.sort_unstable();
        assert_eq!(counts, expected, "{off:?}");
    }
}

#[test]
fn memory_is_used_again() {
    let mut vector: Vec<Piece<'static>> = Vec::with_capacity(100);
    let memory = vector.as_ptr();
    vector.push(Piece {
        payload: &[],
        next: 0,
    });
    let again: Vec<Piece<'_>> = recycled(vector);
    assert_eq!((again.len(), again.capacity()), (0, 100));
    assert_eq!(again.as_ptr(), memory);
    assert_eq!(ACK, 0x10);
}
