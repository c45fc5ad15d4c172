//! Packets for tests, put together by the letter of the RFCs, and with a checksum of its own.

use crate::tun::vnet::{GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CHECKSUM, VnetHeader};

pub(crate) const ACK: u8 = 0x10;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const FIN: u8 = 0x01;
pub(crate) const CWR: u8 = 0x80;

/// A TCP segment or UDP datagram; TCP's fields mean nothing for UDP, and the other way round.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) v6: bool,
    pub(crate) udp: bool,
    /// Makes the addresses and ports.
    pub(crate) flow: u8,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) flow_label: u32,
    pub(crate) identification: u16,
    pub(crate) dont_fragment: bool,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Recipe {
    pub(crate) fn new(v6: bool, udp: bool, payload: Vec<u8>) -> Self {
        Self {
            v6,
            udp,
            flow: 1,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0x1_2345,
            identification: 1,
            dont_fragment: true,
            sequence: 1_000,
            acknowledgement: 2_000,
            flags: ACK,
            window: 501,
            options: vec![],
            payload,
        }
    }

    /// The same with other payload.
    pub(crate) fn with_payload(&self, payload: &[u8]) -> Self {
        Self {
            payload: payload.to_vec(),
            ..self.clone()
        }
    }

    pub(crate) fn ip_bytes(&self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    pub(crate) fn header_bytes(&self) -> usize {
        self.ip_bytes() + if self.udp { 8 } else { 20 + self.options.len() }
    }

    fn checksum_offset(&self) -> usize {
        if self.udp { 6 } else { 16 }
    }

    /// The packet, complete.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut packet = self.bytes_without_checksum();
        let at = self.ip_bytes();
        let mut sum = self.pseudo_header();
        sum.extend_from_slice(&packet[at..]);
        let checksum = match !folded(&sum) {
            0 if self.udp => 0xffff,
            other => other,
        };
        let at = at + self.checksum_offset();
        packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// As the kernel hands it over when it leaves segmentation and checksum to us.
    pub(crate) fn frame(&self, segment: u16) -> Vec<u8> {
        self.frame_of_kind(
            match (self.udp, self.v6) {
                (true, _) => GSO_UDP_L4,
                (false, true) => GSO_TCPV6,
                (false, false) => GSO_TCPV4,
            },
            segment,
        )
    }

    /// As the kernel hands it over when it leaves the checksum to us.
    pub(crate) fn frame_without_checksum(&self) -> Vec<u8> {
        self.frame_of_kind(0, 0)
    }

    fn frame_of_kind(&self, gso_type: u8, gso_size: u16) -> Vec<u8> {
        let mut packet = self.bytes_without_checksum();
        let at = self.ip_bytes() + self.checksum_offset();
        packet[at..at + 2].copy_from_slice(&folded(&self.pseudo_header()).to_be_bytes());
        let header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type,
            // A hint that may be anything.
            header_length: 0,
            gso_size,
            checksum_start: self.ip_bytes() as u16,
            checksum_offset: self.checksum_offset() as u16,
        };
        [&header.to_bytes()[..], &packet].concat()
    }

    fn bytes_without_checksum(&self) -> Vec<u8> {
        let length = self.header_bytes() + self.payload.len();
        let transport_length = (length - self.ip_bytes()) as u16;
        let mut packet = Vec::with_capacity(length);
        let protocol = if self.udp { 17 } else { 6 };
        if self.v6 {
            let word = 6 << 28 | u32::from(self.traffic_class) << 20 | (self.flow_label & 0xf_ffff);
            packet.extend_from_slice(&word.to_be_bytes());
            packet.extend_from_slice(&transport_length.to_be_bytes());
            packet.extend_from_slice(&[protocol, self.hop_limit]);
        } else {
            packet.extend_from_slice(&[0x45, self.traffic_class]);
            packet.extend_from_slice(&(length as u16).to_be_bytes());
            packet.extend_from_slice(&self.identification.to_be_bytes());
            packet.extend_from_slice(&[if self.dont_fragment { 0x40 } else { 0 }, 0]);
            packet.extend_from_slice(&[self.hop_limit, protocol, 0, 0]);
        }
        packet.extend_from_slice(&self.addresses());
        if !self.v6 {
            let checksum = !folded(&packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        packet.extend_from_slice(&[0x10, self.flow, 0x20, self.flow]);
        if self.udp {
            packet.extend_from_slice(&transport_length.to_be_bytes());
            packet.extend_from_slice(&[0, 0]);
        } else {
            packet.extend_from_slice(&self.sequence.to_be_bytes());
            packet.extend_from_slice(&self.acknowledgement.to_be_bytes());
            let offset = (20 + self.options.len()) / 4;
            packet.extend_from_slice(&[(offset as u8) << 4, self.flags]);
            packet.extend_from_slice(&self.window.to_be_bytes());
            packet.extend_from_slice(&[0; 4]);
            packet.extend_from_slice(&self.options);
        }
        packet.extend_from_slice(&self.payload);
        packet
    }

    pub(crate) fn addresses(&self) -> Vec<u8> {
        if self.v6 {
            let address = |last| {
                let mut address = [0; 16];
                address[..2].copy_from_slice(&[0xfd, 0x77]);
                address[14..].copy_from_slice(&[self.flow, last]);
                address
            };
            [address(1), address(2)].concat()
        } else {
            vec![10, 7, self.flow, 1, 10, 7, self.flow, 2]
        }
    }

    fn pseudo_header(&self) -> Vec<u8> {
        let length = self.header_bytes() - self.ip_bytes() + self.payload.len();
        let mut bytes = self.addresses();
        bytes.extend_from_slice(&(length as u32).to_be_bytes());
        bytes.extend_from_slice(&[0, 0, 0, if self.udp { 17 } else { 6 }]);
        bytes
    }
}

/// The one's complement sum, by the letter of RFC 1071.
pub(crate) fn folded(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let second = pair.get(1).copied().unwrap_or(0);
        u64::from(u16::from_be_bytes([pair[0], second]))
    });
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Bytes that look like no others.
pub(crate) fn payload(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
