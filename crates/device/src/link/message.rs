//! rtnetlink messages: what is asked, and what is understood of the answers. Numbers and shapes from the kernel's `linux/netlink.h`,
//! `linux/rtnetlink.h`, `linux/if_link.h`, `linux/netconf.h` and `linux/net_namespace.h`, in the machine's byte order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirespeed_protocol::Prefix;

const HEADER_BYTES: usize = 16;
const LINK_HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const ATTRIBUTE_TYPE: u16 = 0x3fff;

const ROUTE_HEADER_BYTES: usize = 12;

const NETCONFA_FORWARDING: u16 = 2;
const NETNSA_NSID: u16 = 1;
const NETNSA_PID: u16 = 2;

// Of IPv6 within IFLA_AF_SPEC, since Linux 3.17.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

// What a TUN says of itself within IFLA_LINKINFO, since Linux 4.16.
const IFLA_TUN_TYPE: u16 = 3;
const IFLA_TUN_MULTI_QUEUE: u16 = 7;
const IFLA_TUN_NUM_QUEUES: u16 = 8;
const IFLA_TUN_NUM_DISABLED_QUEUES: u16 = 9;

/// A request under construction.
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// The state of an interface, by its index.
    pub(crate) fn link(index: u32) -> Self {
        Self::new(libc::RTM_GETLINK, 0, &link_header(index))
    }

    /// The state of an interface, by its name.
    pub(crate) fn link_by_name(name: &str) -> Self {
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(0);
        Self::new(libc::RTM_GETLINK, 0, &link_header(0)).with(libc::IFLA_IFNAME, &bytes)
    }

    /// To change an interface.
    pub(crate) fn set_link(index: u32) -> Self {
        Self::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &link_header(index))
    }

    /// No IPv6 address of its own making for an interface, and no looking for routers.
    pub(crate) fn no_automatic_address(index: u32) -> Self {
        let mode = [IN6_ADDR_GEN_MODE_NONE];
        let of_ipv6 = encoded(IFLA_INET6_ADDR_GEN_MODE, &mode);
        let of_families = encoded(libc::AF_INET6 as u16, &of_ipv6);
        Self::set_link(index).with(libc::IFLA_AF_SPEC, &of_families)
    }

    /// What each interface does with packets of one family.
    pub(crate) fn every_netconf(family: u8) -> Self {
        Self::new(libc::RTM_GETNETCONF, libc::NLM_F_DUMP, &[family])
    }

    /// What the network namespace of a thread is called in our own.
    pub(crate) fn namespace_of(thread: u32) -> Self {
        Self::new(libc::RTM_GETNSID, 0, &[0; 4]).with(NETNSA_PID, &thread.to_ne_bytes())
    }

    /// With an attribute more.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes.extend_from_slice(&encoded(kind, value));
        self
    }

    /// The whole of it.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    fn new(kind: u16, flags: libc::c_int, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(body);
        Self { bytes }
    }
}

fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (ATTRIBUTE_HEADER_BYTES + value.len()) as u16;
    let mut bytes = Vec::with_capacity(length.into());
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes
}

fn link_header(index: u32) -> [u8; LINK_HEADER_BYTES] {
    let mut header = [0; LINK_HEADER_BYTES];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header
}

/// A message of the kernel, as far as it is of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Of the request it answers; 0 when nobody asked.
    pub(crate) sequence: u32,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The state of an interface.
    Link(Link),
    /// An interface is gone, from this namespace at least.
    LinkGone(Link),
    /// Whether an interface takes packets that are for others.
    Forwarding(bool),
    /// A route to these addresses came, went or changed.
    Route(Prefix),
    /// The number of a namespace.
    Namespace(i32),
    /// How a request ended; 0 or a negative errno.
    Ended(i32),
    /// Something else.
    Other,
}

/// An interface, as far as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) up: bool,
    pub(crate) carrier: Option<bool>,
    pub(crate) name: Option<String>,
    pub(crate) mtu: Option<u32>,
    /// The namespace this is about, when it was asked for.
    pub(crate) namespace: Option<i32>,
    /// Where the interface went to.
    pub(crate) new_namespace: Option<i32>,
    pub(crate) new_index: Option<u32>,
    /// What kind of virtual interface it is.
    pub(crate) kind: Option<String>,
    pub(crate) tun: Tun,
    pub(crate) gso_max_segments: Option<u32>,
}

/// What a TUN says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tun {
    /// `IFF_TUN` or `IFF_TAP`.
    pub(crate) layer: Option<u8>,
    pub(crate) multi_queue: Option<bool>,
    /// Queues someone has open.
    pub(crate) queues: Option<u32>,
    pub(crate) disabled_queues: Option<u32>,
}

/// The messages of one datagram. What is cut off is left out.
pub(crate) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message> {
    std::iter::from_fn(move || {
        let length = u32_at(datagram, 0)? as usize;
        let message = datagram.get(..length)?;
        let body = message.get(HEADER_BYTES..)?;
        let content = content(u16_at(message, 4)?, body).unwrap_or(Content::Other);
        let sequence = u32_at(message, 8)?;
        datagram = datagram
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some(Message { sequence, content })
    })
}

fn content(kind: u16, body: &[u8]) -> Option<Content> {
    Some(match kind {
        libc::RTM_NEWLINK => Content::Link(link(body)?),
        libc::RTM_DELLINK => Content::LinkGone(link(body)?),
        libc::RTM_NEWNETCONF => {
            // The header is one byte, padded.
            let value = attribute(body.get(4..)?, NETCONFA_FORWARDING)?;
            Content::Forwarding(u32_at(value, 0)? != 0)
        }
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => Content::Route(route(body)?),
        libc::RTM_NEWNSID => {
            let value = attribute(body.get(4..)?, NETNSA_NSID)?;
            Content::Namespace(u32_at(value, 0)?.cast_signed())
        }
        kind if i32::from(kind) == libc::NLMSG_ERROR || i32::from(kind) == libc::NLMSG_DONE => {
            Content::Ended(u32_at(body, 0)?.cast_signed())
        }
        _ => Content::Other,
    })
}

/// Where a route leads to, if that's another machine: those to our own addresses and to groups are `None`.
fn route(body: &[u8]) -> Option<Prefix> {
    let [family, length, ..] = *body else {
        return None;
    };
    if *body.get(7)? != libc::RTN_UNICAST {
        return None;
    }
    let destination = attribute(body.get(ROUTE_HEADER_BYTES..)?, libc::RTA_DST);
    let address: IpAddr = match (i32::from(family), destination) {
        (libc::AF_INET, None) => Ipv4Addr::UNSPECIFIED.into(),
        (libc::AF_INET6, None) => Ipv6Addr::UNSPECIFIED.into(),
        (libc::AF_INET, Some(bytes)) => <[u8; 4]>::try_from(bytes).ok()?.into(),
        (libc::AF_INET6, Some(bytes)) => <[u8; 16]>::try_from(bytes).ok()?.into(),
        _ => return None,
    };
    Prefix::new(address, length)
}

fn link(body: &[u8]) -> Option<Link> {
    let mut link = Link {
        index: u32_at(body, 4)?,
        up: u32_at(body, 8)? & (libc::IFF_UP as u32) != 0,
        ..Link::default()
    };
    for (kind, value) in attributes(body.get(LINK_HEADER_BYTES..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_MTU => link.mtu = u32_at(value, 0),
            libc::IFLA_CARRIER => link.carrier = value.first().map(|byte| *byte != 0),
            libc::IFLA_GSO_MAX_SEGS => link.gso_max_segments = u32_at(value, 0),
            libc::IFLA_TARGET_NETNSID => link.namespace = u32_at(value, 0).map(u32::cast_signed),
            libc::IFLA_NEW_NETNSID => link.new_namespace = u32_at(value, 0).map(u32::cast_signed),
            libc::IFLA_NEW_IFINDEX => link.new_index = u32_at(value, 0),
            libc::IFLA_LINKINFO => {
                link.kind = attribute(value, libc::IFLA_INFO_KIND).and_then(text);
                if link.kind.as_deref() == Some("tun") {
                    let data = attribute(value, libc::IFLA_INFO_DATA).unwrap_or_default();
                    link.tun = tun(data);
                }
            }
            _ => {}
        }
    }
    Some(link)
}

fn tun(data: &[u8]) -> Tun {
    let mut tun = Tun::default();
    for (kind, value) in attributes(data) {
        match kind {
            IFLA_TUN_TYPE => tun.layer = value.first().copied(),
            IFLA_TUN_MULTI_QUEUE => tun.multi_queue = value.first().map(|byte| *byte != 0),
            IFLA_TUN_NUM_QUEUES => tun.queues = u32_at(value, 0),
            IFLA_TUN_NUM_DISABLED_QUEUES => tun.disabled_queues = u32_at(value, 0),
            _ => {}
        }
    }
    tun
}

fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & ATTRIBUTE_TYPE;
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn text(value: &[u8]) -> Option<String> {
    let end = value.iter().position(|byte| *byte == 0)?;
    String::from_utf8(value[..end].to_vec()).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written() {
        let info = [
            &8u16.to_ne_bytes()[..],
            &libc::IFLA_INFO_KIND.to_ne_bytes(),
            b"tun\0",
            &12u16.to_ne_bytes(),
            &libc::IFLA_INFO_DATA.to_ne_bytes(),
            &8u16.to_ne_bytes(),
            &IFLA_TUN_NUM_QUEUES.to_ne_bytes(),
            &3u32.to_ne_bytes(),
        ]
        .concat();
        let datagram = Request::set_link(7)
            .with(libc::IFLA_IFNAME, b"wg0\0")
            .with(libc::IFLA_MTU, &1_420u32.to_ne_bytes())
            .with(libc::IFLA_CARRIER, &[1])
            .with(libc::IFLA_LINKINFO, &info)
            .finish(5);
        let twice = [&datagram[..], &datagram].concat();
        let expected = Message {
            sequence: 5,
            content: Content::Link(Link {
                index: 7,
                name: Some("wg0".to_owned()),
                mtu: Some(1_420),
                carrier: Some(true),
                kind: Some("tun".to_owned()),
                tun: Tun {
                    queues: Some(3),
                    ..Tun::default()
                },
                ..Link::default()
            }),
        };
        assert_eq!(
            messages(&twice).collect::<Vec<_>>(),
            [expected.clone(), expected]
        );
    }

    proptest! {
        #[test]
        fn rubbish_is_no_trouble(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in prop::sample::select(&[
            libc::RTM_NEWLINK, libc::RTM_DELLINK, libc::RTM_NEWNETCONF, libc::RTM_NEWNSID, 2, 3,
        ][..])) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER_BYTES);
            let mut datagram = Request::new(kind, 0, &bytes).finish(1);
            prop_assert_eq!(messages(&datagram).count(), 1);
            datagram.truncate(datagram.len() / 2);
            prop_assert_eq!(messages(&datagram).count(), 0);
        }
    }
}
