//! ICMP echo requests and replies as bytes (RFC 792, RFC 4443).
//!
//! Our payload is a token of the train (8 bytes), the packet's number in the train (4 bytes), then zeros up to
//! the size wanted. Packets are told apart by it and not by the ICMP identifier, which address translation and
//! unprivileged ICMP sockets rewrite.

use std::net::IpAddr;

const ICMP_HEADER: usize = 8;
const OURS: usize = 12;

/// Bytes of an IP header without options, of the address's family.
pub(crate) fn ip_header(address: IpAddr) -> usize {
    if address.is_ipv4() { 20 } else { 40 }
}

/// The smallest IP packet that can carry our payload.
pub(crate) fn smallest(address: IpAddr) -> usize {
    ip_header(address) + ICMP_HEADER + OURS
}

/// Request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Reply,
}

/// An echo request without its IP header that makes an IP packet of `size` bytes (at least [`smallest`]).
/// The checksum of `ICMPv6` is left to the kernel, which knows the addresses.
pub(crate) fn request(to: IpAddr, size: usize, token: u64, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; size.max(smallest(to)) - ip_header(to)];
    bytes[0] = if to.is_ipv4() { 8 } else { 128 };
    let identifier = (token as u16).to_be_bytes();
    bytes[4..6].copy_from_slice(&identifier);
    bytes[6..8].copy_from_slice(&(number as u16).to_be_bytes());
    bytes[8..16].copy_from_slice(&token.to_be_bytes());
    bytes[16..20].copy_from_slice(&number.to_be_bytes());
    if to.is_ipv4() {
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// The number of a packet of the train `token`, if `icmp` (no IP header) is one of the asked kind.
pub(crate) fn number(icmp: &[u8], v4: bool, kind: Kind, token: u64) -> Option<u32> {
    let type_wanted = match (kind, v4) {
        (Kind::Request, true) => 8,
        (Kind::Reply, true) => 0,
        (Kind::Request, false) => 128,
        (Kind::Reply, false) => 129,
    };
    if *icmp.first()? != type_wanted || icmp.get(8..16)? != token.to_be_bytes() {
        return None;
    }
    Some(u32::from_be_bytes(icmp.get(16..20)?.try_into().ok()?))
}

/// Is the beginning of an echo request, as an ICMP error quotes it, certainly not of the train `token`? Routers
/// may quote as little as 8 bytes: then the identifier must do, and without even that nothing is certain.
pub(crate) fn is_foreign(quoted: &[u8], token: u64) -> bool {
    match (quoted.get(8..16), quoted.get(4..6)) {
        (Some(quoted), _) => quoted != token.to_be_bytes(),
        (None, Some(identifier)) => identifier != (token as u16).to_be_bytes(),
        (None, None) => false,
    }
}

/// What follows the IPv4 header, as a raw socket hands it over.
pub(crate) fn after_v4_header(packet: &[u8]) -> Option<&[u8]> {
    let words = usize::from(packet.first()? & 0x0f);
    packet.get(words * 4..)
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([
            pair[0],
            pair.get(1).copied().unwrap_or(0),
        ]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    #[test]
    fn a_request_has_the_size_asked_for_and_a_valid_checksum() {
        let bytes = request(V4, 1500, 0x0123_4567_89ab_cdef, 70_000);
        assert_eq!(bytes.len(), 1480);
        assert_eq!(checksum(&bytes), 0);
        assert_eq!(
            number(&bytes, true, Kind::Request, 0x0123_4567_89ab_cdef),
            Some(70_000)
        );
        assert_eq!(
            number(&bytes, true, Kind::Reply, 0x0123_4567_89ab_cdef),
            None
        );
        assert_eq!(number(&bytes, true, Kind::Request, 1), None);
        assert_eq!(request(V6, 1280, 1, 2).len(), 1240);
        assert_eq!(request(V4, 0, 1, 2).len() + 20, smallest(V4));
    }

    #[test]
    fn quoted_packets_are_recognized_by_what_is_there() {
        let bytes = request(V4, 100, 77, 3);
        assert!(!is_foreign(&bytes, 77) && is_foreign(&bytes, 78));
        assert!(!is_foreign(&bytes[..8], 77) && is_foreign(&bytes[..8], 78));
        assert!(!is_foreign(&[], 77));
    }

    #[test]
    fn header_options_are_skipped() {
        let mut packet = vec![0x46];
        packet.extend([0; 23]);
        packet.extend(request(V4, 40, 5, 6));
        assert_eq!(
            number(after_v4_header(&packet).unwrap(), true, Kind::Request, 5),
            Some(6)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_just_not_ours(bytes in prop::collection::vec(any::<u8>(), 0..80), token: u64) {
            let icmp = after_v4_header(&bytes).unwrap_or_default();
            for v4 in [true, false] {
                for kind in [Kind::Request, Kind::Reply] {
                    let _ = number(icmp, v4, kind, token);
                    let _ = number(&bytes, v4, kind, token);
                }
            }
        }
    }
}
