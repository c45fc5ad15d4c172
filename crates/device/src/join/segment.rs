//! What the joiner wants to know of a packet.

use crate::checksum::Sum;
use crate::split::{
    IPV4_BYTES, IPV6_BYTES, TCP, TCP_BYTES, TCP_CWR, TCP_FIN, TCP_PSH, UDP, UDP_BYTES, u16_at,
    u32_at,
};

/// The longest packet, joined or not, with its IP header.
pub(super) const MAX_PACKET_BYTES: usize = 65_535;

/// Flags that only the last segment of a super-packet has.
pub(super) const FIN_PSH: u8 = TCP_FIN | TCP_PSH;

const TCP_ACK: u8 = 0x10;
/// SYN, RST and URG: such segments go alone.
const TCP_ALONE: u8 = 0x02 | 0x04 | 0x20;

const IPV4_DONT_FRAGMENT: u16 = 0x4000;
const IPV4_FRAGMENT: u16 = 0x3fff;

/// How a packet presents itself.
pub(super) enum Seen<'a> {
    /// It may be joined with others.
    Segment(Segment<'a>),
    /// It belongs to a flow, but goes alone.
    OfFlow(&'a [u8]),
    /// It may belong to any flow between these addresses.
    Between(&'a [u8]),
    /// It has no addresses.
    Garbage,
}

/// A TCP segment or UDP datagram with payload and plain headers.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) packet: &'a [u8],
    pub(super) udp: bool,
    /// TCP's; 0 for UDP.
    pub(super) flags: u8,
    /// Where the TCP or UDP header begins: 20 or 40.
    pub(super) transport: usize,
    /// Where the payload begins.
    payload: usize,
}

/// Looks at a packet's headers. Checksums are left for later.
pub(super) fn look_at(packet: &[u8]) -> Seen<'_> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= IPV4_BYTES => {
            let plain = packet[0] == 0x45
                && usize::from(u16_at(packet, 2)) == packet.len()
                && u16_at(packet, 6) & IPV4_FRAGMENT == 0;
            if plain {
                look_behind_ip(packet, packet[9], IPV4_BYTES)
            } else {
                Seen::Between(addresses(packet, IPV4_BYTES))
            }
        }
        Some(6) if packet.len() >= IPV6_BYTES => {
            if usize::from(u16_at(packet, 4)) + IPV6_BYTES == packet.len() {
                look_behind_ip(packet, packet[6], IPV6_BYTES)
            } else {
                Seen::Between(addresses(packet, IPV6_BYTES))
            }
        }
        _ => Seen::Garbage,
    }
}

fn look_behind_ip(packet: &[u8], protocol: u8, transport: usize) -> Seen<'_> {
    let bytes = &packet[transport..];
    let segment = |payload, flags, udp| Segment {
        packet,
        udp,
        flags,
        transport,
        payload,
    };
    match protocol {
        TCP if bytes.len() >= TCP_BYTES => {
            let header = usize::from(bytes[12] >> 4) * 4;
            let flags = bytes[13];
            let joins = header >= TCP_BYTES
                && header < bytes.len()
                && flags & (TCP_ACK | TCP_ALONE) == TCP_ACK;
            if joins {
                return Seen::Segment(segment(transport + header, flags, false));
            }
        }
        UDP if bytes.len() >= UDP_BYTES => {
            // No checksum, no proof that it's right.
            let joins = usize::from(u16_at(bytes, 4)) == bytes.len()
                && bytes.len() > UDP_BYTES
                && bytes[6..8] != [0; 2];
            if joins {
                return Seen::Segment(segment(transport + UDP_BYTES, 0, true));
            }
        }
        _ => return Seen::Between(addresses(packet, transport)),
    }
    Seen::OfFlow(key(packet, transport))
}

/// Source and destination address.
fn addresses(packet: &[u8], ip_length: usize) -> &[u8] {
    if ip_length == IPV4_BYTES {
        &packet[12..20]
    } else {
        &packet[8..40]
    }
}

/// Source and destination address, and the ports, which follow.
fn key(packet: &[u8], transport: usize) -> &[u8] {
    if transport == IPV4_BYTES {
        &packet[12..24]
    } else {
        &packet[8..44]
    }
}

impl<'a> Segment<'a> {
    pub(super) fn is_v4(&self) -> bool {
        self.transport == IPV4_BYTES
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        &self.packet[self.payload..]
    }

    pub(super) fn payload_offset(&self) -> usize {
        self.payload
    }

    pub(super) fn addresses(&self) -> &'a [u8] {
        addresses(self.packet, self.transport)
    }

    pub(super) fn key(&self) -> &'a [u8] {
        key(self.packet, self.transport)
    }

    pub(super) fn is_same_flow(&self, other: &Self) -> bool {
        self.udp == other.udp && self.key() == other.key()
    }

    /// Whether it is what comes next in a super-packet of the same flow that begins with `first` and has so many packets and bytes
    /// of payload: whether cutting the super-packet would give this packet.
    pub(super) fn continues(&self, first: &Self, packets: usize, payload_bytes: usize) -> bool {
        // Each packet so far is as long as the first, or the super-packet would be complete.
        self.payload == first.payload
            && self.payload().len() <= first.payload().len()
            && self.has_ip_header_like(first, packets)
            && (self.udp || self.has_tcp_header_like(first, payload_bytes))
    }

    fn has_ip_header_like(&self, first: &Self, packets: usize) -> bool {
        let (a, b) = (first.packet, self.packet);
        if !self.is_v4() {
            // Traffic class and flow label; hop limit.
            return a[..4] == b[..4] && a[7] == b[7];
        }
        // Traffic class; flags; time to live.
        if a[1] != b[1] || a[6..8] != b[6..8] || a[8] != b[8] {
            return false;
        }
        // What may not be fragmented needs no identification (RFC 6864), and some systems always send 0.
        u16_at(a, 6) & IPV4_DONT_FRAGMENT != 0
            || u16_at(a, 4).wrapping_add(packets as u16) == u16_at(b, 4)
    }

    fn has_tcp_header_like(&self, first: &Self, payload_bytes: usize) -> bool {
        let (a, b) = (first.transport_bytes(), self.transport_bytes());
        let header = self.payload - self.transport;
        let expected = u32_at(a, 4).wrapping_add(payload_bytes as u32);
        // Only the first may say that the congestion window was reduced.
        u32_at(b, 4) == expected
            && self.flags & TCP_CWR == 0
            && (first.flags ^ self.flags) & !(TCP_CWR | FIN_PSH) == 0
            // Acknowledgement and data offset; window; urgent pointer and options.
            && a[8..13] == b[8..13]
            && a[14..16] == b[14..16]
            && a[18..header] == b[18..header]
    }

    /// Whether nothing was changed on the way, by the checksums of IPv4 and of TCP or UDP.
    pub(super) fn has_valid_checksums(&self) -> bool {
        let bytes = self.transport_bytes();
        let protocol = if self.udp { UDP } else { TCP };
        (!self.is_v4() || Sum::of(&self.packet[..self.transport]).is_valid())
            && Sum::of_pseudo_header(self.addresses(), protocol, bytes.len())
                .and_bytes(bytes)
                .is_valid()
    }

    fn transport_bytes(&self) -> &'a [u8] {
        &self.packet[self.transport..]
    }
}
