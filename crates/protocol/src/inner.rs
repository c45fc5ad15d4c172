//! As much of an inner packet as the tunnel has to know: version, length, addresses, ECN.

use std::net::IpAddr;

const V4_HEADER_BYTES: usize = 20;
const V6_HEADER_BYTES: usize = 40;

const ECN_MASK: u8 = 0b11;
const ECT_0: u8 = 0b10;
const ECT_1: u8 = 0b01;
const CE: u8 = 0b11;

/// What an IP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerHeader {
    /// The whole packet's length, header included, in bytes; never more than the buffer has.
    pub length: usize,
    /// Who sent it.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
}

impl InnerHeader {
    /// Reads the header. `None` when this is neither IPv4 nor IPv6, or shorter than it says of itself.
    /// What is behind the packet (the padding) doesn't matter.
    #[inline]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::parse_v4(packet.first_chunk()?),
            6 => Self::parse_v6(packet.first_chunk()?),
            _ => None,
        }
        .filter(|header| header.length <= packet.len())
    }

    fn parse_v4(header: &[u8; V4_HEADER_BYTES]) -> Option<Self> {
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        (length >= V4_HEADER_BYTES).then_some(Self {
            length,
            source: IpAddr::from([s0, s1, s2, s3]),
            destination: IpAddr::from([d0, d1, d2, d3]),
        })
    }

    fn parse_v6(header: &[u8; V6_HEADER_BYTES]) -> Option<Self> {
        let length = V6_HEADER_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]]));
        Some(Self {
            length,
            source: IpAddr::from(*header[8..].first_chunk::<16>()?),
            destination: IpAddr::from(*header[24..].first_chunk::<16>()?),
        })
    }
}

/// The traffic class (TOS) of the outer header for this inner packet, as the kernel's driver sets it: ECN is carried over,
/// with "congestion experienced" shown as ECT(0) (RFC 3168, 9.1.1); DSCP is not, because it would say
/// something of what is inside. A keepalive, which has no header, gets 0.
pub fn outer_traffic_class(packet: &[u8]) -> u8 {
    match traffic_class(packet).unwrap_or(0) & ECN_MASK {
        CE => ECT_0,
        ecn => ecn,
    }
}

/// Carries what the road did to ECN from the outer header into the inner packet (RFC 6040, 4.2), as the kernel's driver
/// does: "congestion experienced", and ECT(1) in the place of ECT(0). A packet whose sender doesn't know of ECN stays as
/// it is; the RFC would drop it when it's marked, the kernel's driver delivers it.
#[inline]
pub fn carry_ecn_in(outer_traffic_class: u8, packet: &mut [u8]) {
    if let CE | ECT_1 = outer_traffic_class & ECN_MASK {
        change_ecn(outer_traffic_class, packet);
    }
}

fn change_ecn(outer_traffic_class: u8, packet: &mut [u8]) {
    let Some(class) = traffic_class(packet) else {
        return;
    };
    let class = match (class & ECN_MASK, outer_traffic_class & ECN_MASK) {
        (ECT_0 | ECT_1, CE) => class | CE,
        (ECT_0, ECT_1) => class & !ECN_MASK | ECT_1,
        _ => return,
    };
    if packet[0] >> 4 == 4 {
        if packet.len() >= V4_HEADER_BYTES {
            set_v4_class(packet, class);
        }
    } else {
        packet[0] = packet[0] & 0xf0 | class >> 4;
        packet[1] = packet[1] & 0x0f | class << 4;
    }
}

fn traffic_class(packet: &[u8]) -> Option<u8> {
    let (first, second) = (*packet.first()?, *packet.get(1)?);
    match first >> 4 {
        4 => Some(second),
        6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// Changes the byte and, with RFC 1624's equation 3, the header's checksum.
fn set_v4_class(packet: &mut [u8], class: u8) {
    let old = u32::from(u16::from_be_bytes([packet[0], packet[1]]));
    let new = u32::from(u16::from_be_bytes([packet[0], class]));
    let checksum = u32::from(u16::from_be_bytes([packet[10], packet[11]]));
    let mut sum = (!checksum & 0xffff) + (!old & 0xffff) + new;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[1] = class;
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v4(class: u8, rest: [u8; 7]) -> Vec<u8> {
        let mut packet = vec![
            0x45, class, 0, 20, rest[0], rest[1], 0, 0, 64, rest[2], 0, 0,
        ];
        packet.extend([10, rest[3], rest[4], 1, 10, rest[5], rest[6], 2]);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn v6(class: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60 | class >> 4;
        packet[1] = class << 4 | 0x5;
        packet[23] = 1;
        packet[39] = 2;
        packet
    }

    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 = header
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn headers_say_length_and_addresses() {
        let mut padded = v4(0, [0; 7]);
        padded.resize(32, 0);
        let header = InnerHeader::parse(&padded).unwrap();
        assert_eq!(header.length, 20);
        assert_eq!(header.source.to_string(), "10.0.0.1");
        assert_eq!(header.destination.to_string(), "10.0.0.2");
        let header = InnerHeader::parse(&v6(0)).unwrap();
        assert_eq!(header.length, 40);
        assert_eq!(header.source.to_string(), "::1");
        assert_eq!(header.destination.to_string(), "::2");
    }

    #[test]
    fn dishonest_headers_are_refused() {
        let good = v4(0, [0; 7]);
        for (name, at, value) in [
            ("longer than it is", 3, 21),
            ("shorter than a header", 3, 19),
            ("version", 0, 0x55),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(InnerHeader::parse(&bad), None, "{name}");
        }
        assert_eq!(InnerHeader::parse(&good[..19]), None);
        let mut long = v6(0);
        long[5] = 1;
        assert_eq!(InnerHeader::parse(&long), None);
        assert_eq!(InnerHeader::parse(&v6(0)[..39]), None);
        assert_eq!(InnerHeader::parse(&[]), None);
    }

    #[test]
    fn only_ecn_shows_outside() {
        for (class, outer) in [(0x00, 0), (0xb8, 0), (0xb9, 1), (0xba, 2), (0xbb, 2)] {
            assert_eq!(outer_traffic_class(&v4(class, [0; 7])), outer, "{class:#x}");
            assert_eq!(outer_traffic_class(&v6(class)), outer, "{class:#x}");
        }
        assert_eq!(outer_traffic_class(&[]), 0);
    }

    #[test]
    fn marks_of_the_road_come_in() {
        // inner, outer, then
        let table = [
            (0, 0, 0),
            (0, 1, 0),
            (0, 2, 0),
            (0, 3, 0),
            (1, 0, 1),
            (1, 1, 1),
            (1, 2, 1),
            (1, 3, 3),
            (2, 0, 2),
            (2, 1, 1),
            (2, 2, 2),
            (2, 3, 3),
            (3, 0, 3),
            (3, 1, 3),
            (3, 2, 3),
            (3, 3, 3),
        ];
        for (inner, outer, expected) in table {
            for mut packet in [v4(0xb8 | inner, [9; 7]), v6(0xb8 | inner)] {
                let before = packet.clone();
                carry_ecn_in(0x88 | outer, &mut packet);
                let class = traffic_class(&packet);
                assert_eq!(class, Some(0xb8 | expected), "{inner} {outer}");
                assert_eq!(InnerHeader::parse(&packet), InnerHeader::parse(&before));
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), outer: u8) {
            if let Some(header) = InnerHeader::parse(&bytes) {
                prop_assert!(header.length <= bytes.len());
            }
            outer_traffic_class(&bytes);
            carry_ecn_in(outer, &mut bytes);
        }

        #[test]
        fn the_checksum_stays_right(class: u8, outer: u8, rest: [u8; 7]) {
            let mut packet = v4(class, rest);
            carry_ecn_in(outer, &mut packet);
            prop_assert_eq!(sum(&packet), 0xffff);
        }
    }
}
