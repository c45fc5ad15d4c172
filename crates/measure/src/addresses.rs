//! Which peer is the far end, and which addresses lead to it: from the facts of both ends alone.

use std::cmp::Reverse;
use std::net::IpAddr;

use wirespeed_facts::{Facts, Known, Link, Peer, Tunnel};

use crate::prefix::{contains, prefix};
use crate::{MeasureError, Overrides};

/// What is known, and what is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) here_name: &'a str,
    pub(crate) here: &'a Facts,
    /// With the machine's name.
    pub(crate) far: Option<(&'a Facts, &'a str)>,
    /// Address of the iperf3 server, when that is all there is at the far end.
    pub(crate) iperf3_address: Option<IpAddr>,
    pub(crate) interface: Option<&'a str>,
    pub(crate) overrides: &'a Overrides,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) interface: String,
    pub(crate) far_interface: Option<String>,
    pub(crate) peer: String,
    pub(crate) bare_address: Option<IpAddr>,
    pub(crate) tunnel_address: Option<IpAddr>,
    pub(crate) here_bare_address: Option<IpAddr>,
    pub(crate) here_tunnel_address: Option<IpAddr>,
    pub(crate) translated_to: Option<String>,
}

pub(crate) fn find(wanted: &Wanted<'_>) -> Result<Found, MeasureError> {
    let tunnel = our_tunnel(wanted)?;
    let peers = peers_of(tunnel, wanted.here_name)?;
    let (peer, far_tunnel) = far_peer(wanted, tunnel, peers)?;
    let far_link = match (far_tunnel, wanted.far) {
        (Some(far_tunnel), Some((far, name))) => Some(up_link(far, name, &far_tunnel.name)?),
        _ => None,
    };
    // How the far end sees us.
    let us =
        far_tunnel.and_then(|far_tunnel| peer_with_key(far_tunnel, tunnel.public_key.as_deref()?));
    let our_link = link(wanted.here, &tunnel.name);
    let (bare_address, tunnel_address) = far_addresses(wanted, peer, us, far_link);
    let (here_bare_address, translated_to) = our_bare_address(wanted, us, bare_address);
    let same_family =
        |address: &IpAddr| tunnel_address.is_none_or(|far| far.is_ipv4() == address.is_ipv4());
    let ours: Vec<IpAddr> = our_link
        .map(addresses_of)
        .unwrap_or_default()
        .into_iter()
        .filter(same_family)
        .collect();
    Ok(Found {
        interface: tunnel.name.clone(),
        far_interface: far_tunnel.map(|tunnel| tunnel.name.clone()),
        peer: peer.public_key.clone(),
        bare_address,
        tunnel_address,
        here_bare_address,
        here_tunnel_address: us
            .and_then(|us| ours.iter().find(|address| allowed(us, **address)))
            .or(ours.first())
            .copied(),
        translated_to,
    })
}

fn our_tunnel<'a>(wanted: &Wanted<'a>) -> Result<&'a Tunnel, MeasureError> {
    let tunnels = &wanted.here.tunnels;
    let names = |tunnels: &mut dyn Iterator<Item = &Tunnel>| {
        tunnels.map(|tunnel| tunnel.name.clone()).collect()
    };
    let machine = wanted.here_name.to_owned();
    let tunnel = if let Some(name) = wanted.interface {
        tunnels
            .iter()
            .find(|tunnel| tunnel.name == name)
            .ok_or_else(|| MeasureError::NoSuchInterface {
                machine,
                interface: name.to_owned(),
                known: names(&mut tunnels.iter()),
            })?
    } else {
        let far = wanted.far.map(|(far, _)| far);
        let joining = far.map_or_else(Vec::new, |far| joining(wanted.here, far));
        match (tunnels.as_slice(), joining.as_slice()) {
            ([only], _) => only,
            (_, [only]) => *only,
            (all, several) => {
                let known = if several.is_empty() {
                    names(&mut all.iter())
                } else {
                    names(&mut several.iter().copied())
                };
                return Err(MeasureError::WhichInterface { machine, known });
            }
        }
    };
    up_link(wanted.here, wanted.here_name, &tunnel.name)?;
    Ok(tunnel)
}

/// The tunnels of one machine that lead to another: what is up, and carried most to it, first.
pub(crate) fn joining<'a>(here: &'a Facts, far: &Facts) -> Vec<&'a Tunnel> {
    let mut joining: Vec<_> = here
        .tunnels
        .iter()
        .filter_map(|tunnel| {
            let peers = tunnel.peers.value().into_iter().flatten();
            let carried = peers
                .filter(|peer| other_end(tunnel, peer, far).is_some())
                .map(|peer| peer.rx_bytes.saturating_add(peer.tx_bytes))
                .reduce(u64::saturating_add)?;
            let up = link(here, &tunnel.name).is_some_and(|link| link.up);
            Some((Reverse((up, carried)), tunnel))
        })
        .collect();
    joining.sort_by_key(|(rank, _)| *rank);
    joining.into_iter().map(|(_, tunnel)| tunnel).collect()
}

fn up_link<'a>(facts: &'a Facts, machine: &str, interface: &str) -> Result<&'a Link, MeasureError> {
    match link(facts, interface) {
        Some(link) if link.up => Ok(link),
        Some(_) => Err(MeasureError::InterfaceDown {
            machine: machine.to_owned(),
            interface: interface.to_owned(),
        }),
        None => Err(MeasureError::NoSuchInterface {
            machine: machine.to_owned(),
            interface: interface.to_owned(),
            known: facts
                .tunnels
                .iter()
                .map(|tunnel| tunnel.name.clone())
                .collect(),
        }),
    }
}

fn peers_of<'a>(tunnel: &'a Tunnel, machine: &str) -> Result<&'a [Peer], MeasureError> {
    match &tunnel.peers {
        Known::Unknown(because) => Err(MeasureError::PeersUnknown {
            machine: machine.to_owned(),
            interface: tunnel.name.clone(),
            because: because.clone(),
        }),
        Known::Value(peers) if peers.is_empty() => Err(MeasureError::NoPeers {
            machine: machine.to_owned(),
            interface: tunnel.name.clone(),
        }),
        Known::Value(peers) => Ok(peers),
    }
}

/// The peer that is the far end, with its tunnel there when wirespeed runs there.
fn far_peer<'a>(
    wanted: &Wanted<'a>,
    tunnel: &Tunnel,
    peers: &'a [Peer],
) -> Result<(&'a Peer, Option<&'a Tunnel>), MeasureError> {
    let keys = |peers: &mut dyn Iterator<Item = &Peer>| {
        peers.map(|peer| peer.public_key.clone()).collect()
    };
    let candidates: Vec<&Peer> = match &wanted.overrides.peer {
        None => peers.iter().collect(),
        Some(key) => {
            let chosen: Vec<&Peer> = peers
                .iter()
                .filter(|peer| peer.public_key == *key)
                .collect();
            if chosen.is_empty() {
                return Err(MeasureError::NoSuchPeer {
                    machine: wanted.here_name.to_owned(),
                    interface: tunnel.name.clone(),
                    peer: key.clone(),
                    peers: keys(&mut peers.iter()),
                });
            }
            chosen
        }
    };
    let which = |candidates: &[&Peer]| MeasureError::WhichPeer {
        machine: wanted.here_name.to_owned(),
        interface: tunnel.name.clone(),
        peers: keys(&mut candidates.iter().copied()),
    };
    if let Some((far, far_name)) = wanted.far {
        let matching: Vec<(&Peer, &Tunnel)> = candidates
            .iter()
            .filter_map(|peer| Some((*peer, other_end(tunnel, peer, far)?)))
            .collect();
        return match matching.as_slice() {
            [(peer, far_tunnel)] => Ok((*peer, Some(*far_tunnel))),
            [] => Err(MeasureError::WrongFarEnd {
                here: wanted.here_name.to_owned(),
                interface: tunnel.name.clone(),
                far: far_name.to_owned(),
            }),
            several => Err(which(
                &several.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(),
            )),
        };
    }
    if let [only] = candidates.as_slice() {
        return Ok((only, None));
    }
    let known = [
        wanted.iperf3_address,
        wanted.overrides.bare_address,
        wanted.overrides.tunnel_address,
    ];
    let leads_to = |peer: &&&Peer| {
        known.iter().flatten().any(|address| {
            peer.endpoint
                .is_some_and(|endpoint| endpoint.ip() == *address)
                || own_address(peer, *address)
        })
    };
    match candidates
        .iter()
        .filter(leads_to)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [only] => Ok((only, None)),
        _ if wanted.overrides.busiest => candidates
            .iter()
            .max_by_key(|peer| peer.rx_bytes.saturating_add(peer.tx_bytes))
            .map(|busiest| (*busiest, None))
            .ok_or_else(|| which(&candidates)),
        _ => Err(which(&candidates)),
    }
}

/// The far tunnel whose own key is `peer`'s and which has our key among its peers (or can't tell its peers).
fn other_end<'a>(ours: &Tunnel, peer: &Peer, far: &'a Facts) -> Option<&'a Tunnel> {
    far.tunnels.iter().find(|tunnel| {
        let knows_us = match (&tunnel.peers, &ours.public_key) {
            (Known::Value(_), Some(key)) => peer_with_key(tunnel, key).is_some(),
            _ => true,
        };
        tunnel.public_key.as_ref() == Some(&peer.public_key) && knows_us
    })
}

/// Outside and inside.
fn far_addresses(
    wanted: &Wanted<'_>,
    peer: &Peer,
    us: Option<&Peer>,
    far_link: Option<&Link>,
) -> (Option<IpAddr>, Option<IpAddr>) {
    // An iperf3 server may have been named by its address inside the tunnel.
    let (iperf3_inside, iperf3_outside) = match wanted.iperf3_address {
        Some(address) if goes_inside(peer, address) => (Some(address), None),
        other => (None, other),
    };
    let endpoint = peer.endpoint.map(|endpoint| endpoint.ip());
    // Where we are the server and have no endpoint yet: the address the far end sends to us from.
    let far_source = || {
        let (far, _) = wanted.far?;
        let to = us?.endpoint?.ip();
        far.routes
            .iter()
            .find(|route| route.to == to && !route.inside)?
            .source
    };
    let outside = wanted
        .overrides
        .bare_address
        .or(iperf3_outside)
        .or(endpoint)
        .or_else(far_source);
    let on_far_link = far_link.map(addresses_of).unwrap_or_default();
    let inside = wanted
        .overrides
        .tunnel_address
        .or(iperf3_inside)
        .or_else(|| {
            on_far_link
                .iter()
                .copied()
                .find(|address| allowed(peer, *address))
        })
        .or_else(|| on_far_link.first().copied())
        .or_else(|| single_address(peer));
    (outside, inside)
}

/// Our address for the far end to reach, or how it sees us when that is none of ours.
fn our_bare_address(
    wanted: &Wanted<'_>,
    us: Option<&Peer>,
    far_address: Option<IpAddr>,
) -> (Option<IpAddr>, Option<String>) {
    let ours: Vec<IpAddr> = wanted.here.links.iter().flat_map(addresses_of).collect();
    match us.and_then(|us| us.endpoint) {
        Some(endpoint) if ours.contains(&endpoint.ip()) => (Some(endpoint.ip()), None),
        Some(endpoint) => (None, Some(endpoint.to_string())),
        None => {
            let route = wanted
                .here
                .routes
                .iter()
                .find(|route| Some(route.to) == far_address && !route.inside);
            (route.and_then(|route| route.source), None)
        }
    }
}

fn link<'a>(facts: &'a Facts, name: &str) -> Option<&'a Link> {
    facts.links.iter().find(|link| link.name == name)
}

fn peer_with_key<'a>(tunnel: &'a Tunnel, key: &str) -> Option<&'a Peer> {
    tunnel
        .peers
        .value()?
        .iter()
        .find(|peer| peer.public_key == key)
}

fn addresses_of(link: &Link) -> Vec<IpAddr> {
    let usable = |address: &IpAddr| match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    };
    link.addresses
        .iter()
        .filter_map(|text| prefix(text))
        .map(|(address, _)| address)
        .filter(usable)
        .collect()
}

fn allowed(peer: &Peer, address: IpAddr) -> bool {
    peer.allowed_ips
        .iter()
        .filter_map(|text| prefix(text))
        .any(|prefix| contains(prefix, address))
}

/// As [`allowed`], but not because everything is.
fn own_address(peer: &Peer, address: IpAddr) -> bool {
    let mut prefixes = peer.allowed_ips.iter().filter_map(|text| prefix(text));
    prefixes.any(|(network, length)| length > 0 && contains((network, length), address))
}

/// Where everything is allowed, only the endpoint itself is outside.
fn goes_inside(peer: &Peer, address: IpAddr) -> bool {
    own_address(peer, address)
        || allowed(peer, address)
            && peer
                .endpoint
                .is_some_and(|endpoint| endpoint.ip() != address)
}

/// The first allowed IP that is one address and no network.
fn single_address(peer: &Peer) -> Option<IpAddr> {
    let mut prefixes = peer.allowed_ips.iter().filter_map(|text| prefix(text));
    prefixes
        .find(|(address, length)| *length == if address.is_ipv4() { 32 } else { 128 })
        .map(|(address, _)| address)
}
