//! What can't be reached from outside in any lifetime: counters near their end, and what is left in the tables.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::keypair::{REJECT_AFTER_MESSAGES, REKEY_AFTER_MESSAGES};
use crate::message::{Kind, kind};
use crate::outgoing::Outgoing;
use crate::time::WallTime;

const PACKET: [u8; 20] = [
    0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1,
];

/// Two tunnels on a perfect road without length.
struct Pair {
    tunnels: [Tunnel; 2],
    now: Now,
    rng: StdRng,
    /// Kinds of all messages, by sender.
    log: Vec<(usize, Kind)>,
}

impl Pair {
    fn new() -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let keys = [1, 2].map(|byte| PrivateKey::from_bytes([byte; 32]));
        let now = Now::default();
        let tunnels = [0, 1].map(|own| {
            let tunnel = Tunnel::new(now.instant, Options::default(), &mut rng);
            tunnel.set_private_key(Some(keys[own].clone()));
            let peer = tunnel.add_peer(keys[1 - own].public(), &mut rng).unwrap();
            tunnel.allow(&peer, Prefix::new([10, 0, 0, 1].into(), 32).unwrap());
            tunnel.set_endpoint(now, &peer, address(1 - own));
            tunnel
        });
        Self {
            tunnels,
            now,
            rng,
            log: Vec::new(),
        }
    }

    fn peer(&self, own: usize) -> Arc<Peer> {
        self.tunnels[own].peers().remove(0)
    }

    fn pass(&mut self, time: Duration) {
        self.now.instant = self.now.instant + time;
        self.now.wall = WallTime(self.now.wall.0 + time);
    }

    /// Sends a packet and lets all that follows from it happen; returns how many packets arrive.
    fn send(&mut self, from: usize) -> usize {
        let mut batch = Outgoing::new(100, 1);
        assert!(batch.push(&PACKET, 1420));
        let peer = self.peer(from);
        let sealed = self.tunnels[from].seal(self.now, &peer, &mut batch);
        let mut delivered = 0;
        if sealed == Sealed::To(address(1 - from)) {
            delivered += self.arrive(from, &mut batch.bytes().to_vec());
        }
        delivered + self.settle()
    }

    fn settle(&mut self) -> usize {
        let mut delivered = 0;
        for from in [0, 1, 0, 1, 0, 1] {
            self.tunnels[from].timers(self.now, &mut self.rng);
            while let Some(mut transmit) = self.tunnels[from].poll_transmit() {
                delivered += self.arrive(from, &mut transmit.bytes);
            }
        }
        delivered
    }

    fn arrive(&mut self, from: usize, bytes: &mut [u8]) -> usize {
        self.log.push((from, kind(bytes).unwrap()));
        let to = &self.tunnels[1 - from];
        let mut incoming = [Incoming::new(bytes, address(from))];
        to.open(self.now, &mut incoming);
        match incoming[0].verdict {
            Verdict::Handshake => {
                to.handshake(self.now, address(from), incoming[0].bytes, &mut self.rng)
                    .unwrap();
                0
            }
            Verdict::Packet { .. } => 1,
            ref verdict => {
                assert_eq!(*verdict, Verdict::Keepalive);
                0
            }
        }
    }

    fn initiations(&self, from: usize) -> usize {
        let wanted = (from, Kind::Initiation);
        self.log.iter().filter(|sent| **sent == wanted).count()
    }

    fn indices(&self) -> [usize; 2] {
        [0, 1].map(|own| self.tunnels[own].indices.len())
    }
}

fn address(of: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, of as u8], 51_820))
}

/// Fails to compile when it isn't so.
const fn for_any_thread<T: Send + Sync>() {}
const _: () = {
    for_any_thread::<Tunnel>();
    for_any_thread::<Peer>();
    for_any_thread::<Session>();
    for_any_thread::<Sending>();
    for_any_thread::<Outgoing>();
};

#[test]
fn either_side_renews_a_session_that_sent_too_much() {
    for side in [0, 1] {
        let mut pair = Pair::new();
        assert_eq!(pair.send(0), 1);
        let before = pair.initiations(side);
        pair.pass(Duration::from_secs(6));
        let keypair = pair.peer(side).current().unwrap();
        keypair.set_next_counter(REKEY_AFTER_MESSAGES);
        assert_eq!(pair.send(side), 1);
        assert_eq!(pair.initiations(side), before + 1);
        let renewed = pair.peer(side).current().unwrap();
        assert!(!Arc::ptr_eq(&keypair, &renewed));
        assert_eq!(pair.send(0) + pair.send(1), 2);
    }
}

#[test]
fn a_session_out_of_counters_sends_no_more_and_a_new_one_takes_over() {
    let mut pair = Pair::new();
    assert_eq!(pair.send(0), 1);
    pair.pass(Duration::from_secs(6));
    let keypair = pair.peer(0).current().unwrap();
    keypair.set_next_counter(REJECT_AFTER_MESSAGES);
    let before = pair.initiations(0);
    assert_eq!(pair.send(0), 1, "it waits for the new session");
    assert_eq!(pair.initiations(0), before + 1);
    assert!(!keypair.may_send(pair.now.instant));
    assert_eq!(keypair.reserve(1), None);
}

#[test]
fn what_waits_goes_before_what_comes() {
    let mut pair = Pair::new();
    assert_eq!(pair.send(0), 1);
    // As if another thread had put it there just after the queue was emptied into the new session.
    let peer = pair.peer(0);
    let mut older = Outgoing::new(100, 1);
    assert!(older.push(&PACKET, 1420));
    assert_eq!(peer.stage(older.unsealed()), 0);
    let mut newer = Outgoing::new(200, 2);
    assert!(newer.push(&PACKET, 1420) && newer.push(&PACKET, 1420));
    let sealed = pair.tunnels[0].seal(pair.now, &peer, &mut newer);
    assert_eq!((sealed, newer.len()), (Sealed::Staged, 0));
    assert_eq!(pair.settle(), 3);
}

#[test]
fn a_removed_peer_keeps_no_secret_whoever_holds_on_to_it() {
    let mut pair = Pair::new();
    for own in [0, 1] {
        let peer = pair.peer(own);
        pair.tunnels[own].set_preshared_key(&peer, PresharedKey::from_bytes([7; 32]));
    }
    assert_eq!(pair.send(0), 1);
    let held = pair.peer(0);
    assert!(held.handshake.locked().has_secrets());
    assert!(pair.tunnels[0].remove_peer(held.public_key()));
    assert!(!held.handshake.locked().has_secrets());
    pair.tunnels[0].set_preshared_key(&held, PresharedKey::from_bytes([7; 32]));
    pair.tunnels[0].send_initiation(pair.now, &held, &mut StdRng::seed_from_u64(1));
    assert!(!held.handshake.locked().has_secrets());
}

#[test]
fn no_index_is_left_behind() {
    let mut pair = Pair::new();
    for round in 0..20 {
        pair.send(round % 2);
        pair.pass(Duration::from_secs(121));
        pair.send((round + 1) % 2);
        assert!(
            pair.indices().iter().all(|count| *count <= 4),
            "{:?}",
            pair.indices()
        );
    }
    for _ in 0..60 {
        pair.pass(Duration::from_secs(10));
        pair.settle();
    }
    assert_eq!(pair.indices(), [0, 0], "wiped");

    assert_eq!(pair.send(0), 1);
    for own in [0, 1] {
        let key = *pair.peer(own).public_key();
        assert!(pair.tunnels[own].remove_peer(&key));
    }
    assert_eq!(pair.indices(), [0, 0], "removed");

    let pair = Pair::new();
    let nobody = pair.peer(0);
    for _ in 0..50 {
        pair.tunnels[0].send_initiation(pair.now, &nobody, &mut StdRng::seed_from_u64(1));
    }
    assert_eq!(pair.indices(), [1, 0], "retried");
    pair.tunnels[0].stop();
    assert_eq!(pair.indices(), [0, 0], "stopped");
    pair.tunnels[0].send_initiation(pair.now, &nobody, &mut StdRng::seed_from_u64(1));
    assert_eq!(pair.indices(), [0, 0], "still");
    assert_eq!(pair.tunnels[0].next_deadline(), None);

    pair.tunnels[0].start(pair.now);
    pair.tunnels[0].send_initiation(pair.now, &nobody, &mut StdRng::seed_from_u64(1));
    pair.tunnels[0].set_private_key(None);
    assert_eq!(pair.indices(), [0, 0], "another key");
}

#[test]
fn a_peer_of_low_order_is_given_up_without_a_trace() {
    let mut pair = Pair::new();
    let peer = pair.tunnels[0]
        .add_peer(PublicKey::from_bytes([0; 32]), &mut pair.rng)
        .unwrap();
    pair.tunnels[0].set_endpoint(pair.now, &peer, address(9));
    let mut batch = Outgoing::new(100, 1);
    assert!(batch.push(&PACKET, 1420));
    assert_eq!(
        pair.tunnels[0].seal(pair.now, &peer, &mut batch),
        Sealed::Staged
    );
    for _ in 0..30 {
        pair.tunnels[0].timers(pair.now, &mut pair.rng);
        pair.pass(Duration::from_secs(6));
    }
    assert_eq!(pair.tunnels[0].poll_transmit(), None);
    assert_eq!(pair.indices(), [0, 0]);
    assert_eq!(pair.tunnels[0].dropped(DropReason::GaveUp), 1);
}

#[test]
fn a_persistent_keepalive_begins_with_the_private_key() {
    let mut rng = StdRng::seed_from_u64(1);
    let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
    let now = Now::default();
    let peer = tunnel
        .add_peer(PrivateKey::from_bytes([2; 32]).public(), &mut rng)
        .unwrap();
    tunnel.set_endpoint(now, &peer, address(1));
    tunnel.set_persistent_keepalive(now, &peer, Some(Duration::from_secs(25)));
    tunnel.timers(now, &mut rng);
    assert_eq!(tunnel.poll_transmit(), None);
    tunnel.set_private_key(Some(PrivateKey::from_bytes([1; 32])));
    tunnel.speak_up(now);
    tunnel.timers(now, &mut rng);
    let sent = tunnel.poll_transmit().expect("an initiation");
    assert_eq!(sent.peer, Some(peer.id()));
    assert_eq!(sent.bytes.len(), 148);
}

#[test]
fn peers_are_told_in_the_order_they_were_added() {
    let mut rng = StdRng::seed_from_u64(1);
    let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
    let keys = [5, 2, 9, 1].map(|byte| PublicKey::from_bytes([byte; 32]));
    for key in keys {
        tunnel.add_peer(key, &mut rng).unwrap();
    }
    tunnel.remove_peer(&keys[1]);
    for again in [keys[1], keys[0]] {
        tunnel.add_peer(again, &mut rng).unwrap();
    }
    let peers = tunnel.peers();
    let told: Vec<_> = peers.iter().map(|peer| *peer.public_key()).collect();
    assert_eq!(told, [keys[0], keys[2], keys[3], keys[1]]);
}

#[test]
fn ten_thousand_peers_begin_at_once_and_none_is_forgotten() {
    let mut rng = StdRng::seed_from_u64(1);
    let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
    tunnel.set_private_key(Some(PrivateKey::from_bytes([1; 32])));
    tunnel.stop();
    for number in 0..10_000u32 {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&number.to_le_bytes());
        let key = PublicKey::from_bytes(key);
        let peer = tunnel.add_peer(key, &mut rng).unwrap();
        tunnel.set_endpoint(Now::default(), &peer, address(1));
        let interval = Some(Duration::from_secs(25));
        tunnel.set_persistent_keepalive(Now::default(), &peer, interval);
    }
    assert_eq!(tunnel.next_deadline(), None);
    tunnel.start(Now::default());
    let mut sent = 0;
    while tunnel.next_deadline() == Some(Instant::default()) {
        tunnel.timers(Now::default(), &mut rng);
        sent += std::iter::from_fn(|| tunnel.poll_transmit()).count();
    }
    assert_eq!(sent, 10_000);
    assert_eq!(tunnel.dropped(DropReason::TransmitOverflow), 0);
}

#[test]
fn ten_thousand_peers_are_set_quickly_and_sleep() {
    let mut rng = StdRng::seed_from_u64(1);
    let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
    tunnel.set_private_key(Some(PrivateKey::from_bytes([1; 32])));
    let started = std::time::Instant::now();
    for number in 0..10_000u32 {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&number.to_le_bytes());
        let peer = tunnel
            .add_peer(PublicKey::from_bytes(key), &mut rng)
            .unwrap();
        tunnel.allow(
            &peer,
            Prefix::new(IpAddr::from((number | 10 << 24).to_be_bytes()), 32).unwrap(),
        );
        tunnel.set_endpoint(Now::default(), &peer, address(1));
    }
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(tunnel.next_deadline(), None);
    for number in 0..10_000u32 {
        let address = IpAddr::from((number | 10 << 24).to_be_bytes());
        assert_eq!(
            tunnel.route(address).unwrap().public_key().as_bytes()[..4],
            number.to_le_bytes()
        );
    }
    for peer in tunnel.peers() {
        assert!(tunnel.remove_peer(peer.public_key()));
    }
    assert!(tunnel.route(IpAddr::from([10, 0, 0, 1])).is_none());
}
