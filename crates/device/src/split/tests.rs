use std::net::IpAddr;

use proptest::prelude::*;

use super::packets::{ACK, CWR, FIN, PSH, Recipe, payload};
use super::*;

/// All packets of a frame, each written over rubbish.
fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let frame = Frame::parse(frame).unwrap();
    (0..frame.packets())
        .map(|index| {
            let mut packet = vec![0xee; frame.packet_length(index)];
            frame.write_packet(index, &mut packet);
            packet
        })
        .collect()
}

/// What the kernel itself would have sent.
fn expected(whole: &Recipe, segment: usize) -> Vec<Vec<u8>> {
    let count = whole.payload.len().div_ceil(segment).max(1);
    (0..count)
        .map(|index| {
            let end = whole.payload.len().min((index + 1) * segment);
            let mut packet = whole.with_payload(&whole.payload[index * segment..end]);
            packet.identification = whole.identification.wrapping_add(index as u16);
            packet.sequence = whole.sequence.wrapping_add((index * segment) as u32);
            if index > 0 {
                packet.flags &= !CWR;
            }
            if index + 1 < count {
                packet.flags &= !(FIN | PSH);
            }
            packet.bytes()
        })
        .collect()
}

#[test]
fn a_full_super_packet_of_each_kind() {
    for (v6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut whole = Recipe::new(v6, udp, payload(61_000, 7));
        whole.flags = ACK | PSH | FIN | CWR;
        whole.options = vec![1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        whole.sequence = u32::MAX - 10_000;
        whole.identification = u16::MAX - 3;
        let packets = cut(&whole.frame(1_368));
        assert_eq!(packets.len(), 45);
        assert_eq!(packets, expected(&whole, 1_368));
    }
}

#[test]
fn where_it_goes() {
    for (v6, address) in [(false, "10.7.1.2"), (true, "fd77::102")] {
        let frame = Recipe::new(v6, false, payload(3_000, 1)).frame(1_000);
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(Frame::parse(&frame).unwrap().destination(), address);
    }
}

#[test]
fn extension_headers_of_ipv6_are_copied() {
    // A destination options header of 8 bytes between IP and TCP.
    let whole = Recipe::new(true, false, payload(2_500, 3));
    let with_options = |packet: &[u8]| {
        let mut longer = packet[..40].to_vec();
        let length = u16_at(packet, 4) + 8;
        put_u16(&mut longer, 4, length);
        longer[6] = 60;
        longer.extend_from_slice(&[6, 0, 1, 4, 0, 0, 0, 0]);
        longer.extend_from_slice(&packet[40..]);
        longer
    };
    let plain = whole.frame(1_000);
    let (header, packet) = plain.split_first_chunk().unwrap();
    let mut header = VnetHeader::parse(header);
    header.checksum_start += 8;
    let frame = [&header.to_bytes()[..], &with_options(packet)].concat();
    let expected: Vec<_> = expected(&whole, 1_000)
        .iter()
        .map(|packet| with_options(packet))
        .collect();
    assert_eq!(cut(&frame), expected);
}

#[test]
fn a_checksum_of_udp_is_never_zero() {
    for v6 in [false, true] {
        // The first word makes up for all others.
        let segments = [1, 2, 3].map(|fill| {
            let mut segment = Recipe::new(v6, true, vec![fill; 100]);
            segment.payload[..2].fill(0);
            let at = segment.ip_bytes() + UDP_CHECKSUM;
            let rest = segment.bytes()[at..at + 2].to_vec();
            segment.payload[..2].copy_from_slice(&rest);
            segment
        });
        let whole =
            segments[0].with_payload(&segments.each_ref().map(|it| &it.payload[..]).concat());
        for frame in [whole.frame(100), segments[0].frame_without_checksum()] {
            for packet in cut(&frame) {
                let at = whole.ip_bytes() + UDP_CHECKSUM;
                assert_eq!(packet[at..at + 2], [0xff; 2], "IPv6: {v6}");
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let good = Recipe::new(false, false, payload(3_000, 1)).frame(1_000);
    let change = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        Frame::parse(&frame).map(|_| ())
    };
    assert_eq!(Frame::parse(&[]).unwrap_err(), FrameError::TooShort(0));
    assert_eq!(
        Frame::parse(&good[..10]).unwrap_err(),
        FrameError::TooShort(10)
    );
    assert_eq!(
        Frame::parse(&good[..20]).unwrap_err(),
        FrameError::TooShort(20)
    );
    assert_eq!(
        Frame::parse(&good[..45]).unwrap_err(),
        FrameError::TooShort(45)
    );
    assert_eq!(change(10, 0x55), Err(FrameError::NotIp(5)));
    assert_eq!(change(1, 3), Err(FrameError::UnknownKind(3)));
    for (at, value) in [(1, 4), (4, 0), (6, 24), (6, 12), (8, 6), (10 + 32, 0x40)] {
        let changed = if at == 4 {
            let mut frame = good.clone();
            frame[4..6].fill(0);
            Frame::parse(&frame).map(|_| ())
        } else {
            change(at, value)
        };
        assert!(
            matches!(changed, Err(FrameError::Contradiction(_))),
            "{at}: {changed:?}"
        );
    }
    // A checksum where the IP header is, or beyond the end of a single packet.
    let mut single = Recipe::new(false, true, vec![]).frame_without_checksum();
    single[6..10].fill(0);
    assert!(matches!(
        Frame::parse(&single),
        Err(FrameError::Contradiction(_))
    ));
    single[6] = 20;
    single[8] = 7;
    assert_eq!(
        Frame::parse(&single).unwrap_err(),
        FrameError::TooShort(single.len())
    );
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let kinds = (any::<bool>(), any::<bool>(), 0u8..3);
    let header = (any::<u8>(), any::<u16>(), any::<bool>(), any::<u32>());
    let tcp = (any::<u8>(), prop::collection::vec(any::<u32>(), 0..=10));
    (kinds, header, tcp, 0usize..6_000, any::<u64>()).prop_map(
        |(kind, header, tcp, length, seed)| {
            let mut recipe = Recipe::new(kind.0, kind.1, payload(length, seed));
            recipe.flow = kind.2;
            (
                recipe.traffic_class,
                recipe.identification,
                recipe.dont_fragment,
                recipe.sequence,
            ) = header;
            recipe.flags = tcp.0;
            recipe.options = tcp.1.into_iter().flat_map(u32::to_be_bytes).collect();
            recipe
        },
    )
}

proptest! {
    #[test]
    fn packets_are_as_if_sent_one_by_one(whole in recipes(), segment in 1usize..2_000) {
        prop_assert_eq!(cut(&whole.frame(segment as u16)), expected(&whole, segment));
    }

    #[test]
    fn a_missing_checksum_is_filled_in(whole in recipes()) {
        prop_assert_eq!(cut(&whole.frame_without_checksum()), vec![whole.bytes()]);
    }

    #[test]
    fn a_complete_packet_stays_as_it_is(whole in recipes(), cut_off in 0usize..40) {
        let packet = whole.bytes();
        // Whatever IP says of its length.
        let packet = &packet[..packet.len() - cut_off.min(packet.len() - whole.ip_bytes())];
        let frame = [&[0; VNET_HEADER_BYTES], packet].concat();
        prop_assert_eq!(cut(&frame), vec![packet.to_vec()]);
    }

    #[test]
    fn no_frame_is_any_trouble(
        header: [u8; VNET_HEADER_BYTES], kind in prop::sample::select(&[0u8, 1, 4, 5, 0x81, 0x84][..]),
        recipe in recipes(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), checksum: bool,
    ) {
        let mut frame = recipe.frame(1_000);
        frame[..VNET_HEADER_BYTES].copy_from_slice(&header);
        frame[0] = u8::from(checksum);
        frame[1] = kind;
        // Values that have a chance.
        frame[7] = 0;
        frame[9] = 0;
        for (at, value) in changes {
            let at = at.index(frame.len().min(100));
            frame[at] = value;
        }
        if let Ok(frame) = Frame::parse(&frame) {
            frame.destination();
            for index in (0..frame.packets()).take(100).chain([frame.packets() - 1]) {
                let mut packet = vec![0; frame.packet_length(index)];
                frame.write_packet(index, &mut packet);
            }
        }
    }
}
