//! One frame read from the TUN → inner packets that fit the tunnel.
//!
//! The kernel hands us up to 64 KiB of one TCP connection with one header, or of several UDP datagrams of the same size, and leaves
//! checksums to us. Each packet gets a copy of the header with what differs mended: lengths, sequence number, IPv4 identification, flags
//! and checksums. What is the same in all of them is summed up once, when the frame is parsed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;
use crate::tun::vnet::{
    GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CHECKSUM, VNET_HEADER_BYTES,
    VnetHeader,
};

/// The longest frame: its header, an IPv6 header and the longest payload there is.
pub const FRAME_BYTES: usize = VNET_HEADER_BYTES + IPV6_BYTES + 65_535;

pub(crate) const IPV4_BYTES: usize = 20;
pub(crate) const IPV6_BYTES: usize = 40;
pub(crate) const TCP_BYTES: usize = 20;
pub(crate) const UDP_BYTES: usize = 8;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

pub(crate) const TCP_FIN: u8 = 0x01;
pub(crate) const TCP_PSH: u8 = 0x08;
pub(crate) const TCP_CWR: u8 = 0x80;

/// Where the checksum is in a TCP header.
pub(crate) const TCP_CHECKSUM: usize = 16;
/// Where the checksum is in a UDP header.
pub(crate) const UDP_CHECKSUM: usize = 6;

/// Headers longer than this aren't copied in front of each segment: IPv6 with extension headers and TCP stay below.
const MAX_HEADER_BYTES: usize = 1_024;

/// A frame that is not what the kernel writes. None of them is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Ends before its headers do.
    #[error("a frame of {0} bytes from the TUN ends before its headers do")]
    TooShort(usize),
    /// Neither IPv4 nor IPv6.
    #[error("a packet from the TUN is neither IPv4 nor IPv6 but says version {0}")]
    NotIp(u8),
    /// A kind of super-packet that was never asked for.
    #[error("a super-packet from the TUN is of kind {0}, which was never asked for")]
    UnknownKind(u8),
    /// Header fields that contradict each other.
    #[error("a frame from the TUN contradicts itself: {0}")]
    Contradiction(&'static str),
}

/// A frame read from the TUN, to be taken out as one packet or many.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    packet: &'a [u8],
    packets: usize,
    work: Work,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    /// One packet, complete.
    None,
    /// One packet that lacks its checksum.
    Checksum { start: usize, offset: usize },
    /// Many packets.
    Cut(Cut),
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Where the TCP or UDP header begins.
    transport: usize,
    /// Where the payload begins.
    header: usize,
    /// Payload of each packet but the last.
    segment: usize,
    ip: Ip,
    transport_kind: Transport,
    /// The pseudo-header but for its length, and the header but for what differs.
    transport_sum: Sum,
}

#[derive(Clone, Copy, Debug)]
enum Ip {
    V4 {
        identification: u16,
        /// The header but for length, identification and checksum.
        sum: Sum,
    },
    V6,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Tcp {
        sequence: u32,
        /// Data offset and flags, as they are behind one another.
        offset_and_flags: u16,
    },
    Udp,
}

impl<'a> Frame<'a> {
    /// Understands a frame as it was read from the TUN.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let too_short = FrameError::TooShort(bytes.len());
        let (header, packet) = bytes.split_first_chunk().ok_or(too_short)?;
        let header = VnetHeader::parse(header);
        let version = packet.first().ok_or(too_short)? >> 4;
        let least = match version {
            4 => IPV4_BYTES,
            6 => IPV6_BYTES,
            other => return Err(FrameError::NotIp(other)),
        };
        if packet.len() < least {
            return Err(too_short);
        }
        if header.gso_type != GSO_NONE {
            return Self::super_packet(packet, &header);
        }
        let mut work = Work::None;
        if header.flags & NEEDS_CHECKSUM != 0 {
            let start = usize::from(header.checksum_start);
            let offset = usize::from(header.checksum_offset);
            if start + offset + 2 > packet.len() {
                return Err(too_short);
            }
            if start < least {
                return Err(FrameError::Contradiction("its checksum is IP's"));
            }
            work = Work::Checksum { start, offset };
        }
        Ok(Self {
            packet,
            packets: 1,
            work,
        })
    }

    fn super_packet(packet: &'a [u8], header: &VnetHeader) -> Result<Self, FrameError> {
        let v4 = packet[0] >> 4 == 4;
        let kind = header.gso_type & !GSO_ECN;
        let udp = match (kind, v4) {
            (GSO_TCPV4, true) | (GSO_TCPV6, false) => false,
            (GSO_UDP_L4, _) => true,
            (GSO_TCPV4 | GSO_TCPV6, _) => {
                return Err(FrameError::Contradiction("its IP version is another"));
            }
            _ => return Err(FrameError::UnknownKind(header.gso_type)),
        };
        let needs_checksum = header.flags & NEEDS_CHECKSUM != 0;
        let transport = transport_start(packet, needs_checksum.then_some(header), udp)?;
        let length = transport_header_length(packet, transport, udp)?;
        let header_length = transport + length;
        let segment = usize::from(header.gso_size);
        if segment == 0 {
            return Err(FrameError::Contradiction("its segments are empty"));
        }
        if header_length + segment > usize::from(u16::MAX) || header_length > MAX_HEADER_BYTES {
            return Err(FrameError::Contradiction("its headers are too long"));
        }
        let payload = packet.len() - header_length;
        let ip = if v4 {
            Ip::V4 {
                identification: u16_at(packet, 4),
                sum: Sum::of(&packet[..2])
                    .and_bytes(&packet[6..10])
                    .and_bytes(&packet[12..transport]),
            }
        } else {
            Ip::V6
        };
        let (transport_kind, transport_sum) = if udp {
            let ports = Sum::of(&packet[transport..transport + 4]);
            (Transport::Udp, ports)
        } else {
            let kind = Transport::Tcp {
                sequence: u32_at(packet, transport + 4),
                offset_and_flags: u16_at(packet, transport + 12),
            };
            let same = Sum::of(&packet[transport..transport + 4])
                .and_bytes(&packet[transport + 8..transport + 12])
                .and_bytes(&packet[transport + 14..transport + TCP_CHECKSUM])
                .and_bytes(&packet[transport + TCP_CHECKSUM + 2..header_length]);
            (kind, same)
        };
        let pseudo_header = if needs_checksum {
            // The kernel has put it there, with the length of the whole. It knows of routing headers, too.
            let at = transport + usize::from(header.checksum_offset);
            Sum::of(&packet[at..at + 2]).and(without_length(packet.len() - transport))
        } else {
            let addresses = if v4 { &packet[12..20] } else { &packet[8..40] };
            Sum::of_pseudo_header(addresses, if udp { UDP } else { TCP }, 0)
        };
        Ok(Self {
            packet,
            packets: payload.div_ceil(segment).max(1),
            work: Work::Cut(Cut {
                transport,
                header: header_length,
                segment,
                ip,
                transport_kind,
                transport_sum: transport_sum.and(pseudo_header),
            }),
        })
    }

    /// Where all its packets go.
    pub fn destination(&self) -> IpAddr {
        // Long enough, see `parse`.
        if self.packet[0] >> 4 == 4 {
            let mut octets = [0; 4];
            octets.copy_from_slice(&self.packet[16..20]);
            Ipv4Addr::from(octets).into()
        } else {
            let mut octets = [0; 16];
            octets.copy_from_slice(&self.packet[24..40]);
            Ipv6Addr::from(octets).into()
        }
    }

    /// How many packets it makes, at least one.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Length of the packet number `index`, counted from 0.
    ///
    /// # Panics
    ///
    /// When there is no such packet.
    pub fn packet_length(&self, index: usize) -> usize {
        assert!(index < self.packets, "packet {index} of {}", self.packets);
        match &self.work {
            Work::Cut(cut) => cut.header + self.payload(cut, index).len(),
            Work::None | Work::Checksum { .. } => self.packet.len(),
        }
    }

    /// Writes the packet number `index` to `into`.
    ///
    /// # Panics
    ///
    /// When there is no such packet, or `into` is not exactly as long as it.
    pub fn write_packet(&self, index: usize, into: &mut [u8]) {
        assert!(index < self.packets, "packet {index} of {}", self.packets);
        match &self.work {
            Work::None => into.copy_from_slice(self.packet),
            Work::Checksum { start, offset } => {
                into.copy_from_slice(self.packet);
                complete_checksum(into, *start, *offset);
            }
            Work::Cut(cut) => {
                let (header, payload) = into.split_at_mut(cut.header);
                header.copy_from_slice(&self.packet[..cut.header]);
                payload.copy_from_slice(self.payload(cut, index));
                let place = Place {
                    index,
                    last: index + 1 == self.packets,
                };
                // Its bytes have just been written, so they are in the nearest cache.
                cut.mend(header, payload.len(), Sum::of(payload), place);
            }
        }
    }

    fn payload(&self, cut: &Cut, index: usize) -> &'a [u8] {
        let start = cut.header + index * cut.segment;
        &self.packet[start..self.packet.len().min(start + cut.segment)]
    }
}

/// Where a packet is in its super-packet.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    last: bool,
}

impl Cut {
    /// Makes the copied header that of one packet.
    #[inline]
    fn mend(&self, header: &mut [u8], payload_bytes: usize, payload_sum: Sum, place: Place) {
        let length = self.header + payload_bytes;
        match self.ip {
            Ip::V4 {
                identification,
                sum,
            } => {
                let identification = identification.wrapping_add(place.index as u16);
                put_u16(header, 2, length as u16);
                put_u16(header, 4, identification);
                let sum = sum.and_u16(length as u16).and_u16(identification);
                header[10..12].copy_from_slice(&sum.checksum());
            }
            Ip::V6 => put_u16(header, 4, (length - IPV6_BYTES) as u16),
        }
        let at = self.transport;
        let transport_length = (length - at) as u16;
        let sum = self
            .transport_sum
            .and(payload_sum)
            .and_u16(transport_length);
        match self.transport_kind {
            Transport::Tcp {
                sequence,
                mut offset_and_flags,
            } => {
                let sequence = sequence.wrapping_add((place.index * self.segment) as u32);
                if place.index > 0 {
                    offset_and_flags &= !u16::from(TCP_CWR);
                }
                if !place.last {
                    offset_and_flags &= !u16::from(TCP_FIN | TCP_PSH);
                }
                header[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
                put_u16(header, at + 12, offset_and_flags);
                let checksum = sum.and_u32(sequence).and_u16(offset_and_flags).checksum();
                header[at + TCP_CHECKSUM..at + TCP_CHECKSUM + 2].copy_from_slice(&checksum);
            }
            Transport::Udp => {
                put_u16(header, at + 4, transport_length);
                let checksum = never_zero(sum.and_u16(transport_length).checksum());
                header[at + UDP_CHECKSUM..at + UDP_CHECKSUM + 2].copy_from_slice(&checksum);
            }
        }
    }
}

/// Where the TCP or UDP header begins: where the checksum does, if the kernel left it to us, or else right behind IP's.
fn transport_start(
    packet: &[u8],
    header: Option<&VnetHeader>,
    udp: bool,
) -> Result<usize, FrameError> {
    let v4 = packet[0] >> 4 == 4;
    let ip_length = if v4 {
        usize::from(packet[0] & 0x0f) * 4
    } else {
        IPV6_BYTES
    };
    let least = if v4 { IPV4_BYTES } else { IPV6_BYTES };
    if ip_length < least {
        return Err(FrameError::Contradiction("its IP header is too short"));
    }
    if let Some(header) = header {
        let start = usize::from(header.checksum_start);
        let offset = if udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
        if usize::from(header.checksum_offset) != offset {
            return Err(FrameError::Contradiction("its checksum is elsewhere"));
        }
        // IPv6 may have extension headers in between.
        if start < ip_length || (v4 && start != ip_length) {
            return Err(FrameError::Contradiction("its checksum begins elsewhere"));
        }
        return Ok(start);
    }
    let protocol = if v4 { packet[9] } else { packet[6] };
    if protocol != if udp { UDP } else { TCP } {
        return Err(FrameError::Contradiction("its protocol is another"));
    }
    Ok(ip_length)
}

fn transport_header_length(
    packet: &[u8],
    transport: usize,
    udp: bool,
) -> Result<usize, FrameError> {
    let too_short = FrameError::TooShort(packet.len() + VNET_HEADER_BYTES);
    let bytes = packet.get(transport..).ok_or(too_short)?;
    let length = if udp {
        UDP_BYTES
    } else {
        usize::from(bytes.get(12).ok_or(too_short)? >> 4) * 4
    };
    if !udp && length < TCP_BYTES {
        return Err(FrameError::Contradiction("its TCP header is too short"));
    }
    if bytes.len() < length {
        return Err(too_short);
    }
    Ok(length)
}

/// Completes a checksum whose place holds the sum of the pseudo-header.
fn complete_checksum(packet: &mut [u8], start: usize, offset: usize) {
    let checksum = Sum::of(&packet[start..]).checksum();
    let checksum = if offset == UDP_CHECKSUM {
        never_zero(checksum)
    } else {
        checksum
    };
    packet[start + offset..start + offset + 2].copy_from_slice(&checksum);
}

/// UDP means "no checksum" by 0; the other zero of one's complement is as good.
pub(crate) fn never_zero(checksum: [u8; 2]) -> [u8; 2] {
    if checksum == [0; 2] {
        [0xff; 2]
    } else {
        checksum
    }
}

/// Takes the length out of a pseudo-header's sum.
fn without_length(length: usize) -> Sum {
    let length = length as u32;
    Sum::default()
        .without_u16((length >> 16) as u16)
        .without_u16(length as u16)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod packets;
#[cfg(test)]
mod tests;
