//! Who is who in a topology: hosts, cables and addresses. Every lab has the same addresses, since each has namespaces
//! of its own; they are those reserved for documentation (RFC 5737) on the road, and private ones in sites and tunnel.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::Topology;

/// Every host name of every topology.
pub(crate) const ALL_HOSTS: [&str; 9] = [
    "client", "server", "source", "gw1", "gw2", "sink", "hub", ROAD, ROAD_2,
];

/// Numbers that tunnel interfaces of a lab may bear: two ends, two of a hub, two of a tunnel around the tunnel.
pub(crate) const TUNNEL_INTERFACES: usize = 6;

/// The road's name.
pub(crate) const ROAD: &str = "road";

/// Name of the road between hub and server.
pub(crate) const ROAD_2: &str = "road2";

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Name within the lab (`client`).
    pub name: String,
    /// Its network namespace (`ws-a1b2-client`).
    pub namespace: String,
    /// Its tunnel interface, on the two ends of the tunnel.
    pub tunnel_interface: Option<String>,
    /// Tunnel interfaces of a hub: towards the first end, towards the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_interfaces: Option<[String; 2]>,
    /// Address on the road, on the two ends of the tunnel: the bare path.
    pub road_address: Option<Ipv4Addr>,
    /// Address inside the tunnel.
    pub tunnel_address: Option<Ipv4Addr>,
    /// Address within its site.
    pub site_address: Option<Ipv4Addr>,
}

/// Two ends, the road between them, and the tunnel over it. A hub has two of them in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) road: &'static str,
    pub(crate) ends: [End; 2],
    /// Numbers of the tunnel interfaces.
    pub(crate) interfaces: [usize; 2],
}

/// One end of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) host: &'static str,
    /// The host's interface to the road.
    pub(crate) cable: &'static str,
    pub(crate) road_address: Ipv4Addr,
    /// The road's address on this side.
    pub(crate) road_gateway: Ipv4Addr,
    pub(crate) road_network: &'static str,
    pub(crate) tunnel_address: Ipv4Addr,
    pub(crate) site: Option<Site>,
    /// What more can be reached through the tunnel that ends here.
    pub(crate) beyond: Option<&'static str>,
}

/// The site behind a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) host: &'static str,
    pub(crate) network: &'static str,
    pub(crate) gateway_address: Ipv4Addr,
    pub(crate) host_address: Ipv4Addr,
}

const SITES: [Site; 2] = [
    Site {
        host: "source",
        network: "10.1.0.0/24",
        gateway_address: Ipv4Addr::new(10, 1, 0, 1),
        host_address: Ipv4Addr::new(10, 1, 0, 2),
    },
    Site {
        host: "sink",
        network: "10.2.0.0/24",
        gateway_address: Ipv4Addr::new(10, 2, 0, 1),
        host_address: Ipv4Addr::new(10, 2, 0, 2),
    },
];

impl Topology {
    /// Names of its hosts, the roads last.
    pub fn hosts(self) -> &'static [&'static str] {
        match self {
            Topology::ClientServer => &["client", "server", ROAD],
            Topology::SiteToSite => &["source", "gw1", "gw2", "sink", ROAD],
            Topology::Hub => &["client", "hub", "server", ROAD, ROAD_2],
        }
    }

    /// The two ends: of the tunnel, or of the chain of tunnels.
    pub(crate) fn ends(self) -> [End; 2] {
        let legs = self.legs();
        [legs[0].ends[0], legs[legs.len() - 1].ends[1]]
    }

    /// The legs, first end to second.
    pub(crate) fn legs(self) -> Vec<Leg> {
        match self {
            Topology::ClientServer => vec![first_leg("client", "server")],
            Topology::SiteToSite => {
                let mut leg = first_leg("gw1", "gw2");
                for (end, site) in leg.ends.iter_mut().zip(SITES) {
                    end.site = Some(site);
                    end.beyond = Some(site.network);
                }
                vec![leg]
            }
            Topology::Hub => {
                let mut first = first_leg("client", "hub");
                first.interfaces = [0, 2];
                first.ends[1].beyond = Some("10.9.1.0/24");
                vec![first, SECOND_LEG]
            }
        }
    }
}

const fn first_leg(first: &'static str, second: &'static str) -> Leg {
    Leg {
        road: ROAD,
        ends: [
            End {
                host: first,
                cable: "road",
                road_address: Ipv4Addr::new(192, 0, 2, 2),
                road_gateway: Ipv4Addr::new(192, 0, 2, 1),
                road_network: "192.0.2.0/24",
                tunnel_address: Ipv4Addr::new(10, 9, 0, 1),
                site: None,
                beyond: None,
            },
            End {
                host: second,
                cable: "road",
                road_address: Ipv4Addr::new(198, 51, 100, 2),
                road_gateway: Ipv4Addr::new(198, 51, 100, 1),
                road_network: "198.51.100.0/24",
                tunnel_address: Ipv4Addr::new(10, 9, 0, 2),
                site: None,
                beyond: None,
            },
        ],
        interfaces: [0, 1],
    }
}

/// From the hub to the server; its second road network is the one for benchmarks (RFC 2544).
const SECOND_LEG: Leg = Leg {
    road: ROAD_2,
    ends: [
        End {
            host: "hub",
            cable: "road2",
            road_address: Ipv4Addr::new(203, 0, 113, 2),
            road_gateway: Ipv4Addr::new(203, 0, 113, 1),
            road_network: "203.0.113.0/24",
            tunnel_address: Ipv4Addr::new(10, 9, 1, 1),
            site: None,
            beyond: Some("10.9.0.0/24"),
        },
        End {
            host: "server",
            cable: "road",
            road_address: Ipv4Addr::new(198, 18, 0, 2),
            road_gateway: Ipv4Addr::new(198, 18, 0, 1),
            road_network: "198.18.0.0/24",
            tunnel_address: Ipv4Addr::new(10, 9, 1, 2),
            site: None,
            beyond: None,
        },
    ],
    interfaces: [3, 1],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_and_interface_is_known_to_the_cleaner() {
        for topology in [Topology::ClientServer, Topology::SiteToSite, Topology::Hub] {
            let known = topology.hosts();
            assert!(known.iter().all(|h| ALL_HOSTS.contains(h)));
            let mut numbers: Vec<usize> = Vec::new();
            for leg in topology.legs() {
                assert!(known.contains(&leg.road));
                assert!(leg.ends.iter().all(|e| known.contains(&e.host)));
                numbers.extend(leg.interfaces);
            }
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), 2 * topology.legs().len());
            assert!(numbers.iter().all(|n| *n < TUNNEL_INTERFACES - 2));
        }
    }
}
