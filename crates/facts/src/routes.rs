//! The way the kernel would take to an address now, by rtnetlink.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::links::{self, RawLink};
use crate::netlink::{Netlink, NetlinkError};
use crate::{EndpointRoute, Known, Peer, Tunnel};

/// Most routes looked up in one snapshot, so that a tunnel of thousands of peers does not make it slow: half of them
/// outside, half inside, and what one half leaves is the other's.
const MOST_ROUTES: usize = 512;

/// Routes to the endpoint of each peer (with the tunnel's firewall mark, which policy routing may look at) and to
/// the first single address among each peer's allowed IPs. Of more than there is time for, those of the peer
/// `in_question` and of the peers that carried most.
pub(crate) fn of_tunnels(
    netlink: &mut Netlink,
    tunnels: &[Tunnel],
    in_question: Option<&str>,
    links: &[RawLink],
) -> Vec<EndpointRoute> {
    asked(tunnels, in_question)
        .into_iter()
        .map(|(inside, to, mark)| route(netlink, to, inside, mark, links))
        .collect()
}

/// What is looked up, in order: inside or not, where to, and with which firewall mark.
fn asked(tunnels: &[Tunnel], in_question: Option<&str>) -> BTreeSet<(bool, IpAddr, u32)> {
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    for tunnel in tunnels {
        for peer in tunnel.peers.value().into_iter().flatten() {
            let rank = rank(peer, in_question);
            if let Some(endpoint) = peer.endpoint {
                outer.push((rank, (false, endpoint.ip(), tunnel.fwmark)));
            }
            if let Some(inside) = first_single_address(&peer.allowed_ips) {
                inner.push((rank, (true, inside, 0)));
            }
        }
    }
    let [outer, inner] = [outer, inner].map(in_order);
    let outside = (MOST_ROUTES / 2).max(MOST_ROUTES.saturating_sub(inner.len()));
    let outer: Vec<_> = outer.into_iter().take(outside).collect();
    let inside = MOST_ROUTES - outer.len();
    outer
        .into_iter()
        .chain(inner.into_iter().take(inside))
        .collect()
}

/// Which peers' ways are looked up first: those of the one in question, then of those that carried most bytes.
pub(crate) type Rank = Reverse<(bool, u64)>;

/// The rank of a peer; `in_question` is a public key.
pub(crate) fn rank(peer: &Peer, in_question: Option<&str>) -> Rank {
    let bytes = peer.rx_bytes.saturating_add(peer.tx_bytes);
    Reverse((in_question == Some(peer.public_key.as_str()), bytes))
}

/// Each once, by rank.
fn in_order<W: Ord + Copy>(mut ways: Vec<(Rank, W)>) -> Vec<W> {
    ways.sort_unstable();
    let mut seen = BTreeSet::new();
    ways.retain(|(_, way)| seen.insert(*way));
    ways.into_iter().map(|(_, way)| way).collect()
}

/// The way the calling thread's network namespace would take to `to` now, for packets with the firewall mark `mark`
/// (0 = none). Where there is none, the interface is unknown and says why.
pub fn way_to(to: IpAddr, mark: u32) -> EndpointRoute {
    let mut netlink = links::open();
    let found = netlink.as_mut().map(|netlink| {
        let links = links::links(netlink).unwrap_or_default();
        route(netlink, to, false, mark, &links)
    });
    found.unwrap_or_else(|error| EndpointRoute {
        interface: Known::because(error.to_string()),
        ..unknown_route(to, false)
    })
}

/// Index of the interface packets to `to` with the firewall mark `mark` would leave by now.
pub(crate) fn interface(netlink: &mut Netlink, to: IpAddr, mark: u32) -> Option<u32> {
    let attributes = ask(netlink, to, mark, RouteFlags::empty()).ok()?;
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn first_single_address(prefixes: &[String]) -> Option<IpAddr> {
    prefixes.iter().find_map(|prefix| {
        let (address, length) = prefix.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let whole = if address.is_ipv4() { "32" } else { "128" };
        (length == whole).then_some(address)
    })
}

fn route(
    netlink: &mut Netlink,
    to: IpAddr,
    inside: bool,
    mark: u32,
    links: &[RawLink],
) -> EndpointRoute {
    let mut route = unknown_route(to, inside);
    let attributes = match ask(netlink, to, mark, RouteFlags::empty()) {
        Ok(attributes) => attributes,
        Err(error) => {
            route.interface = Known::because(format!("no route to {to}: {error}"));
            return route;
        }
    };
    take_from(&attributes, &mut route, links);
    // The answer describes the cached route; its metrics can lack what the entry of the table has.
    if route.congestion_control.is_none()
        && let Ok(attributes) = ask(netlink, to, mark, RouteFlags::FibMatch)
    {
        route.congestion_control = metrics(&attributes).find_map(|metric| match metric {
            RouteMetric::CcAlgo(name) => Some(name.clone()),
            _ => None,
        });
    }
    route
}

fn unknown_route(to: IpAddr, inside: bool) -> EndpointRoute {
    EndpointRoute {
        to,
        inside,
        interface: Known::because("the kernel's answer names no interface"),
        gateway: None,
        source: None,
        mtu: None,
        congestion_control: None,
    }
}

fn ask(
    netlink: &mut Netlink,
    to: IpAddr,
    mark: u32,
    flags: RouteFlags,
) -> Result<Vec<RouteAttribute>, NetlinkError> {
    let (address_family, destination_prefix_length) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut request = RouteMessage::default();
    request.header = RouteHeader {
        address_family,
        destination_prefix_length,
        flags,
        ..RouteHeader::default()
    };
    request.attributes = vec![RouteAttribute::Destination(to.into())];
    if mark != 0 {
        request.attributes.push(RouteAttribute::Mark(mark));
    }
    match netlink
        .about("a route")
        .get(RouteNetlinkMessage::GetRoute(request))?
    {
        RouteNetlinkMessage::NewRoute(answer) => Ok(answer.attributes),
        _ => Ok(Vec::new()),
    }
}

pub(crate) fn take_from(
    attributes: &[RouteAttribute],
    route: &mut EndpointRoute,
    links: &[RawLink],
) {
    for attribute in attributes {
        match attribute {
            RouteAttribute::Oif(index) => {
                if let Some(link) = links.iter().find(|link| link.index == *index) {
                    route.interface = Known::Value(link.name.clone());
                    route.mtu = route.mtu.or(Some(link.mtu));
                }
            }
            RouteAttribute::Gateway(gateway) => route.gateway = address(gateway),
            RouteAttribute::Via(RouteVia::Inet(gateway)) => route.gateway = Some((*gateway).into()),
            RouteAttribute::Via(RouteVia::Inet6(gateway)) => {
                route.gateway = Some((*gateway).into());
            }
            RouteAttribute::PrefSource(source) => route.source = address(source),
            _ => {}
        }
    }
    for metric in metrics(attributes) {
        match metric {
            RouteMetric::Mtu(mtu) if *mtu != 0 => route.mtu = Some(*mtu),
            RouteMetric::CcAlgo(name) => route.congestion_control = Some(name.clone()),
            _ => {}
        }
    }
}

fn metrics(attributes: &[RouteAttribute]) -> impl Iterator<Item = &RouteMetric> {
    attributes
        .iter()
        .filter_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics),
            _ => None,
        })
        .flatten()
}

fn address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::Implementation;

    /// A hub whose peers carried the more the higher their number.
    fn hub(peers: u32, with_endpoints: u32) -> Tunnel {
        let peer = |number: u32| Peer {
            public_key: number.to_string(),
            endpoint: (number < with_endpoints)
                .then(|| (Ipv4Addr::from_bits(0x0b00_0000 + number), 51820).into()),
            allowed_ips: vec![format!("{}/32", inner_of(number))],
            handshake_age: None,
            keepalive: 0,
            rx_bytes: u64::from(number),
            tx_bytes: 0,
        };
        Tunnel {
            name: "wg0".to_owned(),
            implementation: Implementation::Kernel,
            mtu: 1420,
            listen_port: None,
            fwmark: 7,
            public_key: None,
            peers: Known::Value((0..peers).map(peer).collect()),
            sockets: Known::because("not part of this test"),
            statistics: None,
        }
    }

    fn inner_of(number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(0x0a00_0000 + number)
    }

    fn counted(tunnel: Tunnel) -> (usize, usize) {
        let asked = asked(&[tunnel], None);
        let inside = asked.iter().filter(|(inside, ..)| *inside).count();
        (asked.len() - inside, inside)
    }

    #[test]
    fn each_kind_of_route_has_its_share() {
        assert_eq!(counted(hub(1000, 1000)), (256, 256));
        assert_eq!(counted(hub(1000, 10)), (10, 502));
        assert_eq!(counted(hub(300, 300)), (256, 256));
        assert_eq!(counted(hub(200, 200)), (200, 200));
        let mut without_inner = hub(1000, 1000);
        without_inner.peers = without_inner.peers.map(|mut peers| {
            for peer in &mut peers[100..] {
                peer.allowed_ips.clear();
            }
            peers
        });
        assert_eq!(counted(without_inner), (412, 100));
    }

    #[test]
    fn peers_that_carried_most_are_looked_up_first() {
        let asked = asked(&[hub(1000, 1000)], None);
        for number in [744, 999] {
            let outer = Ipv4Addr::from_bits(0x0b00_0000 + number);
            assert!(asked.contains(&(false, outer.into(), 7)));
            assert!(asked.contains(&(true, inner_of(number).into(), 0)));
        }
        assert!(!asked.contains(&(true, inner_of(743).into(), 0)));
    }

    #[test]
    fn the_peer_in_question_is_looked_up_however_little_it_carried() {
        let asked = asked(&[hub(1000, 1000)], Some("3"));
        assert_eq!(asked.len(), MOST_ROUTES);
        let outer = Ipv4Addr::from_bits(0x0b00_0000 + 3);
        assert!(asked.contains(&(false, outer.into(), 7)));
        assert!(asked.contains(&(true, inner_of(3).into(), 0)));
        assert!(!asked.contains(&(true, inner_of(2).into(), 0)));
    }

    #[test]
    fn the_way_to_oneself_is_the_loopback() {
        let mut netlink = links::open().unwrap();
        let links = links::links(&mut netlink).unwrap();
        if !links.iter().any(|link| link.name == "lo" && link.up) {
            return;
        }
        let to = "127.0.0.1".parse().unwrap();
        let route = route(&mut netlink, to, false, 0, &links);
        assert_eq!(route.interface, Known::Value("lo".to_owned()));
        assert_eq!(route.source, Some(to));
        assert!(route.mtu.is_some());
        assert_eq!(way_to(to, 0), route);
    }

    #[test]
    fn no_route_is_unknown_with_the_reason() {
        let mut netlink = crate::links::open().unwrap();
        let to = "255.255.255.254".parse().unwrap();
        let route = route(&mut netlink, to, true, 0, &[]);
        assert!(matches!(route.interface, Known::Unknown(_)));
    }

    #[test]
    fn the_inner_address_is_the_first_whole_one() {
        let prefixes = ["10.0.0.0/24", "10.0.0.2/32", "fd00::2/128"].map(str::to_owned);
        assert_eq!(
            first_single_address(&prefixes),
            Some("10.0.0.2".parse().unwrap())
        );
        assert_eq!(first_single_address(&prefixes[..1]), None);
    }
}
