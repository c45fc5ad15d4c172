//! One tunnel over several source ports (`--spread`), without ever breaking the order within a flow.
//!
//! ```text
//! we:  worker 0 ── from the listen port ──┐
//!      worker 1 ── from port a ───────────┼──→ the peer's listen port: its kernel spreads by our ports
//!      worker 2 ── from port b ───────────┘
//! ```
//!
//! An inner flow stays on one TUN queue, so on one worker, so on one pair of ports, so on one worker of the peer. That
//! holds as long as both send to the other's *listen* port. By WireGuard's rules a peer would follow us to whichever port it
//! heard last, and its answers would come in at all of our workers in turn. So two that spread agree on this:
//! data from another port of the *same address* isn't roaming. (A handshake from there is.)
//!
//! A peer that doesn't know of this shows it: it sends data to one of our own ports. From then on it gets
//! everything from the listen port, as from anybody else.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::RwLock;

use wirespeed_protocol::{PeerId, Tunnel};

use crate::lock::Shared;

#[derive(Debug, Default)]
pub(crate) struct Spread {
    /// Peers that follow us to our own ports, with the address they had then.
    followers: RwLock<HashMap<PeerId, IpAddr>>,
}

impl Spread {
    /// Whether the peer at this endpoint may be sent to from a worker's own port.
    pub(crate) fn allowed(&self, peer: PeerId, endpoint: SocketAddr) -> bool {
        self.followers.reading().get(&peer) != Some(&endpoint.ip())
    }

    /// Data of this peer came in at a worker's own port.
    pub(crate) fn follows(&self, peer: PeerId, endpoint: SocketAddr) {
        if self.allowed(peer, endpoint) {
            self.followers.writing().insert(peer, endpoint.ip());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.followers.reading().len()
    }

    /// Forgets the peers that are no more.
    pub(crate) fn retain(&self, is_there: impl Fn(PeerId) -> bool) {
        self.followers.writing().retain(|peer, _| is_there(*peer));
    }

    /// Where a datagram is to count as coming from: the peer's endpoint when it only differs in the port.
    pub(crate) fn canonical_source(
        tunnel: &Tunnel,
        datagram: &[u8],
        source: SocketAddr,
    ) -> SocketAddr {
        tunnel
            .session(datagram)
            .ok()
            .and_then(|session| session.peer().endpoint())
            .filter(|endpoint| endpoint.ip() == source.ip())
            .unwrap_or(source)
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_protocol::{Now, Options, PublicKey};

    use super::*;

    #[test]
    fn who_follows_us_is_sent_to_from_one_port_as_long_as_it_stays_there() {
        let tunnel = Tunnel::new(Now::default().instant, Options::default(), &mut rand::rng());
        let key = PublicKey::from_bytes([1; 32]);
        let peer = tunnel.add_peer(key, &mut rand::rng()).unwrap().id();
        let at = |last, port| SocketAddr::from(([192, 0, 2, last], port));
        let spread = Spread::default();
        assert!(spread.allowed(peer, at(1, 1)));
        spread.follows(peer, at(1, 1));
        assert!(!spread.allowed(peer, at(1, 1)));
        assert!(!spread.allowed(peer, at(1, 2)));
        assert!(spread.allowed(peer, at(2, 1)), "maybe another program");
        spread.retain(|_| false);
        assert_eq!(spread.len(), 0);
    }

    #[test]
    fn what_is_for_no_session_comes_from_where_it_came() {
        let tunnel = Tunnel::new(Now::default().instant, Options::default(), &mut rand::rng());
        let source = SocketAddr::from(([192, 0, 2, 1], 1));
        for datagram in [&[][..], &[4; 32], &[0; 148]] {
            assert_eq!(Spread::canonical_source(&tunnel, datagram, source), source);
        }
    }
}
