//! Which links the tunnels' outer packets take.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::links::RawLink;
use crate::netlink::Netlink;
use crate::routes;
use crate::tunnels::Reading;

/// Endpoints whose way is looked up: that of the peer in question, then those that carried most, one per address.
const MOST_ENDPOINTS: usize = 16;
/// Links that are told of: reading a link in detail takes a millisecond.
const MOST_LINKS: usize = 8;

/// Indices of the links on the way to the peers' endpoints.
#[derive(Default)]
pub(crate) struct OuterLinks {
    /// Those the routes name.
    pub(crate) routed: Vec<u32>,
    /// Those, and the ones below them.
    pub(crate) all: Vec<u32>,
}

/// Looks up the ways of the tunnels' peers; `in_question` is a public key.
pub(crate) fn of_tunnels(
    netlink: &mut Netlink,
    readings: &[Reading],
    in_question: Option<&str>,
    links: &[RawLink],
) -> OuterLinks {
    let routed: Vec<&RawLink> = endpoints(readings, in_question)
        .into_iter()
        .filter_map(|(to, mark)| {
            let way = routes::interface(netlink, to, mark)?;
            links.iter().find(|link| link.index == way)
        })
        .collect();
    OuterLinks {
        routed: routed.iter().map(|link| link.index).collect(),
        all: with_those_below(routed, links),
    }
}

/// Addresses of the first endpoints by rank, each with its tunnel's firewall mark.
fn endpoints(readings: &[Reading], in_question: Option<&str>) -> Vec<(IpAddr, u32)> {
    let mut peers: Vec<_> = readings
        .iter()
        .filter_map(|reading| reading.device.as_ref().ok())
        .flat_map(|device| device.peers.iter().map(|peer| (peer, device.fwmark)))
        .filter_map(|(peer, mark)| {
            Some((routes::rank(peer, in_question), peer.endpoint?.ip(), mark))
        })
        .collect();
    peers.sort_unstable();
    let mut seen = BTreeSet::new();
    peers.retain(|(_, address, mark)| seen.insert((*address, *mark)));
    peers
        .into_iter()
        .map(|(_, address, mark)| (address, mark))
        .take(MOST_ENDPOINTS)
        .collect()
}

/// The parent of a VLAN or of an outer tunnel, and the cards of a bond or bridge; not the other ports of a bridge,
/// which lead to guests.
fn with_those_below<'a>(mut ahead: Vec<&'a RawLink>, links: &'a [RawLink]) -> Vec<u32> {
    let mut way = Vec::new();
    ahead.reverse();
    while let Some(link) = ahead.pop() {
        if way.contains(&link.index) || way.len() == MOST_LINKS {
            continue;
        }
        way.push(link.index);
        let below = links.iter().filter(|other| {
            let is_parent = link.parent == Some(other.index);
            let is_card = other.master == Some(link.index)
                && matches!(other.kind.as_deref(), None | Some("bond" | "vlan"));
            is_parent || is_card
        });
        ahead.extend(below);
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, kind: Option<&str>, parent: Option<u32>, master: Option<u32>) -> RawLink {
        RawLink {
            index,
            kind: kind.map(str::to_owned),
            parent,
            master,
            ..RawLink::default()
        }
    }

    #[test]
    fn the_cards_below_a_bond_and_a_vlan_are_on_the_way() {
        let links = [
            link(1, Some("vlan"), Some(2), None),
            link(2, Some("bond"), None, None),
            link(3, None, None, Some(2)),
            link(4, None, None, Some(2)),
            link(5, None, None, None),
        ];
        let mut way = with_those_below(vec![&links[0]], &links);
        assert_eq!(way[..2], [1, 2]);
        way.sort_unstable();
        assert_eq!(way, [1, 2, 3, 4]);
    }

    #[test]
    fn guests_of_a_bridge_are_not_on_the_way() {
        let links = [
            link(1, Some("bridge"), None, None),
            link(2, None, None, Some(1)),
            link(3, Some("veth"), None, Some(1)),
            link(4, Some("tun"), None, Some(1)),
        ];
        assert_eq!(with_those_below(vec![&links[0]], &links), [1, 2]);
    }

    #[test]
    fn a_circle_ends() {
        let links = [link(1, None, Some(2), None), link(2, None, Some(1), None)];
        assert_eq!(with_those_below(vec![&links[0]], &links), [1, 2]);
    }
}
