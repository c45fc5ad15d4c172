//! The road of the benchmarks: two hosts and a crowd.
//!
//! ```text
//!        10.98.0.0/24, as veth is
//! near ══════════════════════════ far ────────────── crowd
//!        10.96.0.0/24, no offloads      10.97.0.0/24   all of 10.64.0.0/12: senders of handshakes
//! ```

use std::net::Ipv4Addr;

use crate::BenchError;
use crate::place::Place;

/// Our end's address and the other's inside the tunnel.
pub(crate) const INSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];

/// Where the crowd reaches the far end.
pub(crate) const CROWDED: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 2);

/// The first address of the crowd, and how many it has.
pub(crate) const CROWD: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 64, 0, 0), 1 << 20);

/// The crowd's cable, at both ends.
pub(crate) const CROWD_CABLE: &str = "crowd";

/// What a network without GSO and GRO lacks.
const OFFLOADS: [&str; 4] = ["tso", "gso", "gro", "tx-udp-segmentation"];

/// Which cable between the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cable {
    /// As veth is: packets of 64 KiB pass in one piece.
    Plain,
    /// One packet at a time.
    WithoutOffloads,
}

impl Cable {
    /// Addresses of the near and the far end.
    pub(crate) const fn addresses(self) -> [Ipv4Addr; 2] {
        let network = match self {
            Self::Plain => 98,
            Self::WithoutOffloads => 96,
        };
        [
            Ipv4Addr::new(10, network, 0, 1),
            Ipv4Addr::new(10, network, 0, 2),
        ]
    }
}

/// Two hosts and a crowd.
pub(crate) struct Road {
    pub(crate) near: Place,
    pub(crate) far: Place,
    pub(crate) crowd: Place,
}

impl Road {
    pub(crate) fn build() -> Result<Self, BenchError> {
        let road = Self {
            near: Place::make("near")?,
            far: Place::make("far")?,
            crowd: Place::make("crowd")?,
        };
        let far = road.far.path();
        for (name, cable) in [("plain", Cable::Plain), ("bumpy", Cable::WithoutOffloads)] {
            let [ours, theirs] = cable.addresses();
            road.near.ip(&format!(
                "link add {name} type veth peer name {name} netns {far}\naddr add {ours}/24 dev {name}\nlink set {name} up\n"
            ))?;
            road.far.ip(&format!(
                "addr add {theirs}/24 dev {name}\nlink set {name} up\n"
            ))?;
        }
        for place in [&road.near, &road.far] {
            let mut line = vec!["ethtool", "-K", "bumpy"];
            line.extend(OFFLOADS.iter().flat_map(|&offload| [offload, "off"]));
            place.exec(&line)?;
        }
        road.crowd.ip(&format!(
            "link add {CROWD_CABLE} type veth peer name {CROWD_CABLE} netns {far}\naddr add 10.97.0.1/24 dev {CROWD_CABLE}\nlink set {CROWD_CABLE} up\n\
             route add local 10.64.0.0/12 dev lo\n"
        ))?;
        road.far.ip(&format!(
            "addr add {CROWDED}/24 dev {CROWD_CABLE}\nlink set {CROWD_CABLE} up\nroute add 10.64.0.0/12 via 10.97.0.1\n"
        ))?;
        Ok(road)
    }

    /// Near and far.
    pub(crate) fn ends(&self) -> [&Place; 2] {
        [&self.near, &self.far]
    }
}

/// The address of one of the crowd.
pub(crate) fn crowd_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(CROWD.0.to_bits() + number % CROWD.1)
}
