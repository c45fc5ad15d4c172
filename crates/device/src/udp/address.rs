//! Socket addresses as the kernel has them, and who sends with which of ours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::control::{Control, Message, int};

/// Bytes of a `sockaddr_in`.
const V4_BYTES: usize = 16;

/// Bytes of a `sockaddr_in6`, the longest.
pub(super) const NAME_BYTES: usize = 28;

/// An IP version, each with a socket of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn of(address: &SocketAddr) -> Self {
        match address {
            SocketAddr::V4(_) => Self::V4,
            SocketAddr::V6(_) => Self::V6,
        }
    }

    pub(super) fn domain(self) -> i32 {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }

    /// `0.0.0.0` or `::`.
    pub(super) fn any(self, port: u16) -> SocketAddr {
        match self {
            Self::V4 => (Ipv4Addr::UNSPECIFIED, port).into(),
            Self::V6 => (Ipv6Addr::UNSPECIFIED, port).into(),
        }
    }

    /// Bytes of the headers of IP and UDP.
    pub(super) fn header_bytes(self) -> usize {
        match self {
            Self::V4 => 20 + 8,
            Self::V6 => 40 + 8,
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// Which of this machine's addresses a peer talks to, and where that came in: what answers should go out with
/// ("sticky" source).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalAddress {
    /// The address that the datagram was sent to.
    pub address: IpAddr,
    /// Index of the interface that it came in by. When sending it is told to the kernel only with a link-local IPv6
    /// address, which means nothing without; otherwise the route decides, as for the kernel's own WireGuard.
    pub interface: u32,
}

impl LocalAddress {
    /// Adds what makes the kernel send from this address.
    pub(super) fn encode(&self, control: &mut Control) {
        match self.address {
            IpAddr::V4(address) => {
                // in_pktinfo: ipi_ifindex, ipi_spec_dst, ipi_addr. With an interface given, the kernel would take every
                // destination without a route there for a neighbour.
                let mut data = [0; 12];
                data[4..8].copy_from_slice(&address.octets());
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &data);
            }
            IpAddr::V6(address) => {
                // in6_pktinfo: ipi6_addr, ipi6_ifindex.
                let mut data = [0; 20];
                data[..16].copy_from_slice(&address.octets());
                if address.is_unicast_link_local() {
                    data[16..].copy_from_slice(&self.interface.to_ne_bytes());
                }
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data);
            }
        }
    }

    /// What a received control message says, if it is of this kind.
    pub(super) fn decode(message: &Message<'_>) -> Option<Self> {
        match (message.level, message.kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let interface = int(message.data)?;
                let address: [u8; 4] = *message.data.get(4..)?.first_chunk()?;
                Some(Self {
                    address: address.into(),
                    interface: interface.cast_unsigned(),
                })
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let (address, interface) = message.data.split_first_chunk::<16>()?;
                Some(Self {
                    address: (*address).into(),
                    interface: int(interface)?.cast_unsigned(),
                })
            }
            _ => None,
        }
    }
}

/// A `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub(super) struct Name {
    bytes: [u8; NAME_BYTES],
    length: usize,
}

impl Name {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl From<&SocketAddr> for Name {
    fn from(address: &SocketAddr) -> Self {
        let mut bytes = [0; NAME_BYTES];
        let family = Family::of(address).domain() as u16;
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let length = match address {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                V4_BYTES
            }
            SocketAddr::V6(v6) => {
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..].copy_from_slice(&v6.scope_id().to_ne_bytes());
                NAME_BYTES
            }
        };
        Self { bytes, length }
    }
}

/// The address in a `sockaddr` of a known family; without flow label, which is no part of who it is.
pub(super) fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let port = u16::from_be_bytes(*port);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let address: [u8; 4] = *rest.first_chunk()?;
            Some((address, port).into())
        }
        libc::AF_INET6 => {
            let (address, rest) = rest.get(4..)?.split_first_chunk::<16>()?;
            let scope = u32::from_ne_bytes(*rest.first_chunk()?);
            Some(SocketAddrV6::new((*address).into(), port, 0, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::udp::control::messages;

    #[test]
    fn an_address_is_laid_out_as_the_kernel_has_it() {
        let name = Name::from(&"192.0.2.7:51820".parse().unwrap());
        assert_eq!(name.bytes()[2..8], [0xca, 0x6c, 192, 0, 2, 7]);
        assert_eq!(name.bytes().len(), size_of::<libc::sockaddr_in>());
        let name = Name::from(&"[fe80::1%3]:1".parse().unwrap());
        assert_eq!(name.bytes()[24..], 3u32.to_ne_bytes());
        assert_eq!(name.bytes().len(), size_of::<libc::sockaddr_in6>());
    }

    #[test]
    fn only_a_link_local_address_names_its_interface() {
        for (address, interface) in [("fe80::1", 7), ("2001:db8::1", 0), ("10.0.0.1", 0)] {
            let mut control = Control::EMPTY;
            let address = address.parse().unwrap();
            LocalAddress {
                address,
                interface: 7,
            }
            .encode(&mut control);
            let read = messages(control.bytes()).find_map(|message| LocalAddress::decode(&message));
            assert_eq!(read, Some(LocalAddress { address, interface }));
        }
    }

    #[test]
    fn what_is_cut_off_is_no_address() {
        for address in ["192.0.2.7:51820", "[2001:db8::1]:51820"] {
            let name = Name::from(&address.parse().unwrap());
            let needed = if name.bytes().len() == V4_BYTES {
                8
            } else {
                NAME_BYTES
            };
            for end in 0..needed {
                assert_eq!(decode(&name.bytes()[..end]), None, "{address} {end}");
            }
        }
        assert_eq!(decode(&[0xff; NAME_BYTES]), None);
    }

    proptest! {
        #[test]
        fn addresses_survive(ip in any::<IpAddr>(), port in any::<u16>(), scope in any::<u32>()) {
            let mut address = SocketAddr::new(ip, port);
            if let SocketAddr::V6(v6) = &mut address {
                v6.set_scope_id(scope);
            }
            prop_assert_eq!(decode(Name::from(&address).bytes()), Some(address));
        }

        #[test]
        fn rubbish_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..40), level in 0..60, kind in 0..60) {
            decode(&bytes);
            LocalAddress::decode(&Message { level, kind, data: &bytes });
        }
    }
}
