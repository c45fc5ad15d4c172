//! The way the kernel would take to an address now, by rtnetlink.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::links::{self, RawLink};
use crate::netlink::{Netlink, NetlinkError};
use crate::{EndpointRoute, Known, Tunnel};

/// Most routes looked up in one snapshot, so that a tunnel of thousands of peers does not make it slow.
const MOST_ROUTES: usize = 512;

/// Routes to the endpoint of each peer (with the tunnel's firewall mark, which policy routing may look at) and to
/// the first single address among each peer's allowed IPs.
pub(crate) fn of_tunnels(
    netlink: &mut Netlink,
    tunnels: &[Tunnel],
    links: &[RawLink],
) -> Vec<EndpointRoute> {
    let mut asked = BTreeSet::new();
    for tunnel in tunnels {
        for peer in tunnel.peers.value().into_iter().flatten() {
            if let Some(endpoint) = peer.endpoint {
                asked.insert((false, endpoint.ip(), tunnel.fwmark));
            }
            if let Some(inside) = first_single_address(&peer.allowed_ips) {
                asked.insert((true, inside, 0));
            }
        }
    }
    asked
        .into_iter()
        .take(MOST_ROUTES)
        .map(|(inside, to, mark)| route(netlink, to, inside, mark, links))
        .collect()
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
    use super::*;

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
