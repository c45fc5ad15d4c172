//! Finding out what the kernel leaves to us, and what it takes from us.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use super::ioctl;
use super::vnet::{GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CHECKSUM, VnetHeader};
use crate::checksum::Sum;
use crate::offloads::{Offload, Offloads};
use crate::split::{
    IPV4_BYTES, IPV6_BYTES, TCP, TCP_BYTES, TCP_CHECKSUM, UDP, UDP_BYTES, UDP_CHECKSUM, put_u16,
};

/// In this order: none of the others goes without the first.
const BITS: [(Offload, u32); 4] = [
    (Offload::TunChecksum, libc::TUN_F_CSUM),
    (Offload::TunTso4, libc::TUN_F_TSO4),
    (Offload::TunTso6, libc::TUN_F_TSO6),
    // The kernel takes both or none.
    (Offload::TunUso, libc::TUN_F_USO4 | libc::TUN_F_USO6),
];

/// Asks for one offload after the other, so that one the kernel doesn't know costs no other.
pub(super) fn probe(tun: &OwnedFd, offloads: &Offloads) {
    let mut taken = 0;
    if let Err(error) = ioctl::set_offload(tun, taken) {
        log::debug!("the TUN's offloads can't be set: {error}");
    }
    for (offload, bits) in BITS {
        if !offloads.on(offload) {
            continue;
        }
        if offload != Offload::TunChecksum && taken & libc::TUN_F_CSUM == 0 {
            offloads.probed(offload, Err(format!("needs {}", Offload::TunChecksum)));
            continue;
        }
        let set = ioctl::set_offload(tun, taken | bits);
        if set.is_ok() {
            taken |= bits;
        }
        offloads.probed(
            offload,
            set.map_err(|error| format!("the kernel doesn't know it: {error}")),
        );
    }
    if taken & (libc::TUN_F_TSO4 | libc::TUN_F_TSO6) != 0
        && let Err(error) = ioctl::set_offload(tun, taken | libc::TUN_F_TSO_ECN)
    {
        log::debug!("super-packets with ECN are left to the kernel: {error}");
    }
}

/// Writes a super-packet of each kind to the interface while it is down. The kernel looks at the header first, so a kind it takes is refused
/// for that reason (EIO) and one it doesn't take, as kernels of the 6.6.44 era did (EINVAL), for its header. Nothing arrives anywhere; the
/// interface counts a dropped packet for each.
pub(super) fn test_writing(tun: &OwnedFd, offloads: &Offloads) {
    for (offload, packets) in [
        (Offload::TunTso4, &[(false, false)][..]),
        (Offload::TunTso6, &[(true, false)]),
        (Offload::TunUso, &[(false, true), (true, true)]),
    ] {
        if !offloads.on(offload) {
            continue;
        }
        for (v6, udp) in packets {
            let (header, packet) = super_packet(*v6, *udp);
            let parts = [IoSlice::new(&header), IoSlice::new(&packet)];
            let works = match rustix::io::writev(tun, &parts) {
                Ok(_) | Err(rustix::io::Errno::IO) => Ok(()),
                Err(error) => Err(format!(
                    "the kernel refuses super-packets we write: {}",
                    io::Error::from(error)
                )),
            };
            offloads.probed(offload, works);
        }
    }
}

/// A super-packet of two segments from 192.0.2.1 to 192.0.2.2, or from `2001:db8::1` to `2001:db8::2`, with its header.
fn super_packet(v6: bool, udp: bool) -> (Vec<u8>, Vec<u8>) {
    const SEGMENT_BYTES: usize = 64;
    let ip_bytes = if v6 { IPV6_BYTES } else { IPV4_BYTES };
    let (protocol, header_bytes, checksum) = if udp {
        (UDP, UDP_BYTES, UDP_CHECKSUM)
    } else {
        (TCP, TCP_BYTES, TCP_CHECKSUM)
    };
    let transport_bytes = header_bytes + 2 * SEGMENT_BYTES;
    let mut packet = vec![0; ip_bytes + transport_bytes];
    let (ip, transport) = packet.split_at_mut(ip_bytes);
    let addresses = if v6 {
        ip[0] = 0x60;
        put_u16(ip, 4, transport_bytes as u16);
        ip[6] = protocol;
        ip[7] = 1;
        for (at, last) in [(8, 1), (24, 2)] {
            ip[at..at + 4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
            ip[at + 15] = last;
        }
        &ip[8..40]
    } else {
        ip[0] = 0x45;
        put_u16(ip, 2, (ip_bytes + transport_bytes) as u16);
        ip[8] = 1;
        ip[9] = protocol;
        ip[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        let sum = Sum::of(ip).checksum();
        ip[10..12].copy_from_slice(&sum);
        &ip[12..20]
    };
    // The discard port, should it ever come to anyone.
    put_u16(transport, 0, 9);
    put_u16(transport, 2, 9);
    if udp {
        put_u16(transport, 4, transport_bytes as u16);
    } else {
        transport[12] = 0x50;
        transport[13] = 0x10;
    }
    let partial = Sum::of_pseudo_header(addresses, protocol, transport_bytes).folded();
    transport[checksum..checksum + 2].copy_from_slice(&partial);
    let header = VnetHeader {
        flags: NEEDS_CHECKSUM,
        gso_type: match (udp, v6) {
            (true, _) => GSO_UDP_L4,
            (false, true) => GSO_TCPV6,
            (false, false) => GSO_TCPV4,
        },
        header_length: (ip_bytes + header_bytes) as u16,
        gso_size: SEGMENT_BYTES as u16,
        checksum_start: ip_bytes as u16,
        checksum_offset: checksum as u16,
    };
    (header.to_bytes().to_vec(), packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::Frame;

    #[test]
    fn what_is_written_as_a_test_is_what_we_would_read() {
        for (v6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
            let (header, packet) = super_packet(v6, udp);
            let frame = [header, packet].concat();
            let frame = Frame::parse(&frame).unwrap();
            assert_eq!(frame.packets(), 2);
            assert_eq!(frame.packet_length(0), frame.packet_length(1));
        }
    }
}
