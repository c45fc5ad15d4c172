//! Two tunnels that know each other, and time that stands still unless told otherwise.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use wirespeed_protocol::{
    Now, Options, Outgoing, Peer, Prefix, PrivateKey, Sealed, Tunnel, WallTime,
};

pub(crate) const MTU: usize = 1420;

pub(crate) struct Pair {
    pub(crate) tunnels: [Tunnel; 2],
    pub(crate) peers: [Arc<Peer>; 2],
    pub(crate) now: Now,
    pub(crate) rng: StdRng,
}

impl Pair {
    /// Without a session.
    pub(crate) fn new() -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let keys = [1, 2].map(|byte| PrivateKey::from_bytes([byte; 32]));
        let now = Now {
            wall: WallTime(Duration::from_secs(1_700_000_000)),
            ..Now::default()
        };
        let tunnels = [0, 1].map(|own| {
            let tunnel = Tunnel::new(now.instant, Options::default(), &mut rng);
            tunnel.set_private_key(Some(keys[own].clone()));
            let peer = tunnel.add_peer(keys[1 - own].public(), &mut rng).unwrap();
            let everything = Prefix::new([0, 0, 0, 0].into(), 0).unwrap();
            tunnel.allow(&peer, everything);
            tunnel.set_endpoint(now, &peer, address(1 - own));
            tunnel
        });
        let peers = [0, 1].map(|own| tunnels[own].peers().remove(0));
        Self {
            tunnels,
            peers,
            now,
            rng,
        }
    }

    /// With a session that both sides use.
    pub(crate) fn with_session() -> Self {
        let mut pair = Self::new();
        let initiation = pair.initiation();
        let response = pair.deliver(1, &initiation).unwrap();
        let mut data = pair.deliver(0, &response).unwrap();
        let mut incoming = [wirespeed_protocol::Incoming::new(&mut data, address(0))];
        pair.tunnels[1].open(pair.now, &mut incoming);
        assert!(incoming[0].packet().is_some(), "confirmed");
        pair
    }

    /// Lets machine 0 want to send a packet, which makes it begin a handshake.
    pub(crate) fn stage(&self) {
        let mut batch = Outgoing::new(2_000, 1);
        batch.push(&packet(64), MTU);
        let sealed = self.tunnels[0].seal(self.now, &self.peers[0], &mut batch);
        assert_eq!(sealed, Sealed::Staged);
    }

    pub(crate) fn initiation(&mut self) -> Vec<u8> {
        self.stage();
        self.tunnels[0].timers(self.now, &mut self.rng);
        self.tunnels[0].poll_transmit().unwrap().bytes
    }

    /// Lets a machine work on a message of the handshake; returns what it sends then.
    pub(crate) fn deliver(&mut self, to: usize, message: &[u8]) -> Option<Vec<u8>> {
        let source = address(1 - to);
        self.tunnels[to]
            .handshake(self.now, source, message, &mut self.rng)
            .unwrap();
        Some(self.tunnels[to].poll_transmit()?.bytes)
    }
}

/// Where the machine is.
pub(crate) fn address(machine: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, machine as u8 + 1], 51_820))
}

/// An IPv4 packet of this length.
pub(crate) fn packet(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    bytes[9] = 17;
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes
}
