//! Who is who in a topology: hosts, cables and addresses. Every lab has the same addresses, since each has namespaces
//! of its own; they are those reserved for documentation (RFC 5737) on the road, and private ones in sites and tunnel.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::Topology;

/// Every host name of every topology.
pub(crate) const ALL_HOSTS: [&str; 7] =
    ["client", "server", "source", "gw1", "gw2", "sink", "road"];

/// The road's name.
pub(crate) const ROAD: &str = "road";

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Name within the lab (`client`).
    pub name: String,
    /// Its network namespace (`ws-a1b2-client`).
    pub namespace: String,
    /// Its tunnel interface, on the two ends of the tunnel.
    pub tunnel_interface: Option<String>,
    /// Address on the road, on the two ends of the tunnel: the bare path.
    pub road_address: Option<Ipv4Addr>,
    /// Address inside the tunnel.
    pub tunnel_address: Option<Ipv4Addr>,
    /// Address within its site.
    pub site_address: Option<Ipv4Addr>,
}

/// One end of the tunnel in a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) host: &'static str,
    pub(crate) road_address: Ipv4Addr,
    /// The road's address on this side.
    pub(crate) road_gateway: Ipv4Addr,
    pub(crate) road_network: &'static str,
    pub(crate) tunnel_address: Ipv4Addr,
    pub(crate) site: Option<Site>,
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
    /// Names of its hosts, the road last.
    pub fn hosts(self) -> &'static [&'static str] {
        match self {
            Topology::ClientServer => &["client", "server", ROAD],
            Topology::SiteToSite => &["source", "gw1", "gw2", "sink", ROAD],
        }
    }

    /// The two ends of the tunnel.
    pub(crate) fn ends(self) -> [End; 2] {
        let end = |i: usize, host: &'static str, site: Option<Site>| End {
            host,
            road_address: [Ipv4Addr::new(192, 0, 2, 2), Ipv4Addr::new(198, 51, 100, 2)][i],
            road_gateway: [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 1)][i],
            road_network: ["192.0.2.0/24", "198.51.100.0/24"][i],
            tunnel_address: [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)][i],
            site,
        };
        match self {
            Topology::ClientServer => [end(0, "client", None), end(1, "server", None)],
            Topology::SiteToSite => [end(0, "gw1", Some(SITES[0])), end(1, "gw2", Some(SITES[1]))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_is_known_to_the_cleaner() {
        for topology in [Topology::ClientServer, Topology::SiteToSite] {
            assert!(topology.hosts().iter().all(|h| ALL_HOSTS.contains(h)));
            assert!(
                topology
                    .ends()
                    .iter()
                    .all(|e| topology.hosts().contains(&e.host))
            );
        }
    }
}
