//! What stands before each packet of a TUN with `IFF_VNET_HDR`: `struct virtio_net_hdr` of `linux/virtio_net.h`, little-endian.

/// Length of the header.
pub(crate) const VNET_HEADER_BYTES: usize = 10;

/// The checksum still lacks the bytes from `checksum_start` on.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;

/// One packet, to be taken as it is.
pub(crate) const GSO_NONE: u8 = 0;
/// TCP over IPv4.
pub(crate) const GSO_TCPV4: u8 = 1;
/// TCP over IPv6.
pub(crate) const GSO_TCPV6: u8 = 4;
/// UDP datagrams, each with a header of its own.
pub(crate) const GSO_UDP_L4: u8 = 5;
/// Beside a TCP type: the first segment says "congestion window reduced", and no other may.
pub(crate) const GSO_ECN: u8 = 0x80;

/// The header of a single packet that needs nothing.
pub(crate) const PLAIN: [u8; VNET_HEADER_BYTES] = [0; VNET_HEADER_BYTES];

/// The header's fields; offsets count from the packet's first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    pub(crate) flags: u8,
    pub(crate) gso_type: u8,
    /// Of IP and TCP or UDP together. A hint on what we read, to be exact on what we write.
    pub(crate) header_length: u16,
    /// TCP or UDP payload of each segment but the last.
    pub(crate) gso_size: u16,
    /// Where the bytes the checksum covers begin.
    pub(crate) checksum_start: u16,
    /// Where the checksum is, counted from there.
    pub(crate) checksum_offset: u16,
}

impl VnetHeader {
    pub(crate) fn parse(bytes: &[u8; VNET_HEADER_BYTES]) -> Self {
        let word = |at| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            header_length: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; VNET_HEADER_BYTES] {
        let mut bytes = [0; VNET_HEADER_BYTES];
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        bytes[2..4].copy_from_slice(&self.header_length.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.gso_size.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.checksum_start.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.checksum_offset.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: [u8; VNET_HEADER_BYTES]) {
            prop_assert_eq!(VnetHeader::parse(&bytes).to_bytes(), bytes);
        }
    }
}
