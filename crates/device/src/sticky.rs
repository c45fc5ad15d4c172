//! The local address each peer was last heard at, which is where we answer from.
//!
//! On a machine with several addresses the route alone may choose one the peer, or a firewall on the road, doesn't know.
//! The address holds for the endpoint it was learned with: when the peer moves, or is given another endpoint, or a route
//! to it changes, the route decides again until it is heard.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::RwLock;

use wirespeed_protocol::{PeerId, Prefix};

use crate::lock::Shared;
use crate::udp::LocalAddress;

#[derive(Debug, Default)]
pub(crate) struct Sticky {
    known: RwLock<HashMap<PeerId, Known>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    endpoint: SocketAddr,
    local: LocalAddress,
}

impl Sticky {
    /// Which address to send to the peer's endpoint from; `None` leaves it to the route.
    pub(crate) fn source(&self, peer: PeerId, endpoint: SocketAddr) -> Option<LocalAddress> {
        let known = self.known.reading();
        known
            .get(&peer)
            .filter(|known| known.endpoint == endpoint)
            .map(|known| known.local)
    }

    /// The peer was heard from `endpoint` at this address. Written only when that is new.
    pub(crate) fn learn(&self, peer: PeerId, endpoint: SocketAddr, local: LocalAddress) {
        let new = Known { endpoint, local };
        if self.known.reading().get(&peer) != Some(&new) {
            self.known.writing().insert(peer, new);
        }
    }

    /// The address doesn't work, or may not.
    pub(crate) fn forget(&self, peer: PeerId) {
        self.known.writing().remove(&peer);
    }

    /// A route to these addresses changed, so it may lead out of another interface now: the route decides again for
    /// peers that are there.
    pub(crate) fn forget_behind(&self, route: Prefix) {
        let concerned = |known: &Known| route.contains(known.endpoint.ip());
        if self.known.reading().values().any(concerned) {
            self.known.writing().retain(|_, known| !concerned(known));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.reading().len()
    }

    /// Forgets the peers that are no more.
    pub(crate) fn retain(&self, is_there: impl Fn(PeerId) -> bool) {
        self.known.writing().retain(|peer, _| is_there(*peer));
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_protocol::{Now, Options, PublicKey, Tunnel};

    use super::*;

    fn peers() -> [PeerId; 2] {
        let tunnel = Tunnel::new(Now::default().instant, Options::default(), &mut rand::rng());
        [1, 2].map(|number| {
            let key = PublicKey::from_bytes([number; 32]);
            tunnel.add_peer(key, &mut rand::rng()).unwrap().id()
        })
    }

    fn local(last: u8) -> LocalAddress {
        LocalAddress {
            address: [192, 0, 2, last].into(),
            interface: 3,
        }
    }

    #[test]
    fn an_address_holds_for_the_endpoint_it_was_learned_with() {
        let sticky = Sticky::default();
        let [peer, other] = peers();
        let [here, there] = [1, 2].map(|port| SocketAddr::from(([198, 51, 100, 1], port)));
        sticky.learn(peer, here, local(1));
        assert_eq!(sticky.source(peer, here), Some(local(1)));
        assert_eq!(sticky.source(peer, there), None);
        assert_eq!(sticky.source(other, here), None);
        sticky.learn(peer, there, local(2));
        assert_eq!(sticky.source(peer, here), None);
        assert_eq!(sticky.source(peer, there), Some(local(2)));
        sticky.forget(peer);
        assert_eq!(sticky.source(peer, there), None);
    }

    #[test]
    fn a_route_that_changed_decides_for_the_peers_behind_it() {
        let sticky = Sticky::default();
        let [near, far] = peers();
        let [here, there] = ["192.0.2.7:1", "198.51.100.1:1"].map(|text| text.parse().unwrap());
        sticky.learn(near, here, local(1));
        sticky.learn(far, there, local(2));
        sticky.forget_behind(Prefix::new([192, 0, 2, 0].into(), 24).unwrap());
        assert_eq!(sticky.source(near, here), None);
        assert_eq!(sticky.source(far, there), Some(local(2)));
        sticky.forget_behind(Prefix::new([0; 16].into(), 0).unwrap());
        assert_eq!(sticky.len(), 1);
        sticky.forget_behind(Prefix::new([0; 4].into(), 0).unwrap());
        assert_eq!(sticky.len(), 0);
    }

    #[test]
    fn removed_peers_are_forgotten() {
        let sticky = Sticky::default();
        let [peer, other] = peers();
        let endpoint = SocketAddr::from(([198, 51, 100, 1], 1));
        sticky.learn(peer, endpoint, local(1));
        sticky.learn(other, endpoint, local(1));
        sticky.retain(|it| it == other);
        assert_eq!(sticky.len(), 1);
        assert_eq!(sticky.source(other, endpoint), Some(local(1)));
    }
}
