//! Links, their addresses, counters and queues, by rtnetlink.

use std::collections::BTreeMap;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::netlink::{Netlink, NetlinkError};
use crate::{LinkCounters, QdiscCounters};

/// A link as rtnetlink shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawLink {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
    pub(crate) up: bool,
    pub(crate) mtu: u32,
    /// Hardware address.
    pub(crate) address: Vec<u8>,
    pub(crate) qdisc: Option<String>,
    pub(crate) tx_queue_len: Option<u32>,
    pub(crate) counters: Option<LinkCounters>,
    /// Index of the link below it, when that is in the same network namespace.
    pub(crate) parent: Option<u32>,
    /// Index of its bridge, bond or VRF.
    pub(crate) master: Option<u32>,
    pub(crate) forwards_ipv4: Option<bool>,
    pub(crate) forwards_ipv6: Option<bool>,
}

/// A socket for the questions of this file and of `routes`.
pub(crate) fn open() -> Result<Netlink, NetlinkError> {
    Netlink::open(NETLINK_ROUTE, "links")
}

/// Every link of the network namespace.
pub(crate) fn links(netlink: &mut Netlink) -> Result<Vec<RawLink>, NetlinkError> {
    let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = netlink.about("the links").dump(request)?;
    Ok(answers
        .into_iter()
        .filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(raw_link(link)),
            _ => None,
        })
        .collect())
}

/// Addresses with prefix lengths, by interface index.
pub(crate) fn addresses(netlink: &mut Netlink) -> Result<BTreeMap<u32, Vec<String>>, NetlinkError> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let mut by_index: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for answer in netlink.about("the addresses").dump(request)? {
        let RouteNetlinkMessage::NewAddress(message) = answer else {
            continue;
        };
        // On a point-to-point link "address" is the other end's and "local" is our own.
        let own = message
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                AddressAttribute::Local(address) => Some(address),
                _ => None,
            })
            .or_else(|| {
                message
                    .attributes
                    .iter()
                    .find_map(|attribute| match attribute {
                        AddressAttribute::Address(address) => Some(address),
                        _ => None,
                    })
            });
        if let Some(address) = own {
            by_index
                .entry(message.header.index)
                .or_default()
                .push(format!("{address}/{}", message.header.prefix_len));
        }
    }
    Ok(by_index)
}

/// Counters of the root queueing disciplines, by interface index. `noqueue` counts nothing and is not listed.
pub(crate) fn qdiscs(netlink: &mut Netlink) -> Result<BTreeMap<u32, QdiscCounters>, NetlinkError> {
    let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let mut by_index = BTreeMap::new();
    for answer in netlink.about("the queueing disciplines").dump(request)? {
        let RouteNetlinkMessage::NewQueueDiscipline(message) = answer else {
            continue;
        };
        if message.header.parent != TcHandle::ROOT {
            continue;
        }
        let (Ok(index), Some(counters)) = (
            u32::try_from(message.header.index),
            qdisc_counters(&message),
        ) else {
            continue;
        };
        by_index.insert(index, counters);
    }
    Ok(by_index)
}

pub(crate) fn raw_link(message: LinkMessage) -> RawLink {
    let mut link = RawLink {
        index: message.header.index,
        up: message.header.flags.contains(LinkFlags::Up),
        ..RawLink::default()
    };
    let mut parent_elsewhere = false;
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::Link(index) => link.parent = Some(index),
            LinkAttribute::LinkNetNsId(_) => parent_elsewhere = true,
            LinkAttribute::Controller(index) => link.master = Some(index),
            LinkAttribute::AfSpecUnspec(families) => take_forwarding(&families, &mut link),
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::Address(address) => link.address = address,
            LinkAttribute::Qdisc(qdisc) => link.qdisc = Some(qdisc),
            LinkAttribute::TxQueueLen(length) => link.tx_queue_len = Some(length),
            LinkAttribute::LinkInfo(infos) => {
                link.kind = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                });
            }
            LinkAttribute::Stats64(stats) => {
                link.counters = Some(LinkCounters {
                    rx_bytes: stats.rx_bytes,
                    tx_bytes: stats.tx_bytes,
                    rx_packets: stats.rx_packets,
                    tx_packets: stats.tx_packets,
                    rx_dropped: stats.rx_dropped,
                    tx_dropped: stats.tx_dropped,
                    rx_errors: stats.rx_errors,
                    tx_errors: stats.tx_errors,
                    rx_frame_errors: stats.rx_frame_errors,
                    rx_missed_errors: stats.rx_missed_errors,
                    rx_fifo_errors: stats.rx_fifo_errors,
                    rx_over_errors: stats.rx_over_errors,
                    rx_crc_errors: stats.rx_crc_errors,
                    rx_nohandler: stats.rx_nohandler,
                });
            }
            _ => {}
        }
    }
    // What the kernel names below a veth is its other end.
    let is_veth = link.kind.as_deref() == Some("veth");
    link.parent = link
        .parent
        .filter(|index| *index != 0 && *index != link.index && !parent_elsewhere && !is_veth);
    link
}

fn take_forwarding(families: &[AfSpecUnspec], link: &mut RawLink) {
    for family in families {
        match family {
            AfSpecUnspec::Inet(settings) => {
                link.forwards_ipv4 = settings.iter().find_map(|setting| match setting {
                    AfSpecInet::DevConf(conf) => Some(conf.forwarding != 0),
                    _ => None,
                });
            }
            AfSpecUnspec::Inet6(settings) => {
                link.forwards_ipv6 = settings.iter().find_map(|setting| match setting {
                    AfSpecInet6::DevConf(conf) => Some(conf.forwarding != 0),
                    _ => None,
                });
            }
            _ => {}
        }
    }
}

pub(crate) fn qdisc_counters(message: &TcMessage) -> Option<QdiscCounters> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            TcAttribute::Stats2(stats) => stats.iter().find_map(|stat| match stat {
                TcStats2::Queue(queue) => Some(QdiscCounters {
                    drops: queue.drops.into(),
                    overlimits: queue.overlimits.into(),
                    backlog_bytes: queue.backlog.into(),
                }),
                _ => None,
            }),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_with_its_address() {
        let mut netlink = open().unwrap();
        let all = links(&mut netlink).unwrap();
        let loopback = all.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!((loopback.kind.as_deref(), loopback.parent), (None, None));
        let forwards = std::fs::read_to_string("/proc/sys/net/ipv4/conf/lo/forwarding").unwrap();
        assert_eq!(loopback.forwards_ipv4, Some(forwards.trim() == "1"));
        assert!(loopback.counters.is_some());
        let addresses = addresses(&mut netlink).unwrap();
        if loopback.up {
            assert!(addresses[&loopback.index].contains(&"127.0.0.1/8".to_owned()));
        }
    }

    #[test]
    fn queues_belong_to_links() {
        let mut netlink = open().unwrap();
        let all = links(&mut netlink).unwrap();
        for index in qdiscs(&mut netlink).unwrap().keys() {
            assert!(all.iter().any(|link| link.index == *index));
        }
    }
}
