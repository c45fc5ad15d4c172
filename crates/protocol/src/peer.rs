//! What is known of one peer.
//!
//! Lock order: the tunnel's identity, then `handshake`, then `flush`; every other lock here and in the tunnel is taken last
//! and for a few instructions, never over encryption of data.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use crate::cookie::CookieJar;
use crate::hash::Secret;
use crate::keypair::{Keypair, Keypairs};
use crate::keys::{PresharedKey, PrivateKey, PublicKey};
use crate::lock::{Locked, Shared};
use crate::noise::Initiated;
use crate::outgoing::Staged;
use crate::time::{Instant, Tai64n, WallTime};
use crate::timers::Timers;

/// Packets kept while there is no session. More push the oldest out.
pub const MAX_STAGED_PACKETS: usize = 128;

/// A number no other peer of the tunnel has or ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(crate) u64);

/// A peer. Handles stay valid after the peer was removed, but then nothing is sent or received any more.
pub struct Peer {
    pub(crate) id: PeerId,
    pub(crate) public_key: PublicKey,
    pub(crate) keypairs: RwLock<Keypairs>,
    pub(crate) handshake: Mutex<Handshake>,
    pub(crate) timers: Mutex<Timers>,
    staged: Mutex<VecDeque<Staged>>,
    /// How many packets are staged, those a flush has taken but not yet sent among them. Who only asks takes no lock.
    waiting: AtomicUsize,
    /// Held while staged packets are sent, so that they go in order.
    flush: Mutex<()>,
    endpoint: RwLock<Option<SocketAddr>>,
    last_handshake: Mutex<Option<WallTime>>,
    removed: AtomicBool,
    /// The deadline the tunnel's schedule has for us, in nanoseconds; `u64::MAX` for none.
    pub(crate) scheduled: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// What handshakes with the peer need and leave.
pub(crate) struct Handshake {
    pub(crate) preshared_key: PresharedKey,
    /// Not computed before it is needed, so that ten thousand peers are set in no time.
    static_static: OnceCell<Option<Secret>>,
    /// The initiation we wait for an answer to, under its index.
    pub(crate) initiated: Option<(u32, Box<Initiated>)>,
    pub(crate) latest_timestamp_received: Tai64n,
    pub(crate) latest_timestamp_sent: Tai64n,
    pub(crate) latest_initiation_taken: Option<Instant>,
    pub(crate) cookies: CookieJar,
}

/// Figures of a peer, as the UAPI shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStatistics {
    /// UDP payload received from it in authentic messages, in bytes.
    pub received_bytes: u64,
    /// UDP payload sent to it, in bytes.
    pub sent_bytes: u64,
    /// When the last handshake was complete.
    pub last_handshake: Option<WallTime>,
}

impl Peer {
    pub(crate) fn new(id: PeerId, public_key: PublicKey, jitter: Duration) -> Self {
        Self {
            id,
            public_key,
            keypairs: RwLock::default(),
            handshake: Mutex::new(Handshake {
                preshared_key: PresharedKey::default(),
                static_static: OnceCell::new(),
                initiated: None,
                latest_timestamp_received: Tai64n::default(),
                latest_timestamp_sent: Tai64n::default(),
                latest_initiation_taken: None,
                cookies: CookieJar::new(&public_key),
            }),
            timers: Mutex::new(Timers::new(jitter)),
            staged: Mutex::default(),
            waiting: AtomicUsize::new(0),
            flush: Mutex::default(),
            endpoint: RwLock::default(),
            last_handshake: Mutex::default(),
            removed: AtomicBool::new(false),
            scheduled: AtomicU64::new(u64::MAX),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
        }
    }

    /// Its number.
    pub const fn id(&self) -> PeerId {
        self.id
    }

    /// Its identity.
    pub const fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Where it was last heard from, or what was set.
    pub fn endpoint(&self) -> Option<SocketAddr> {
        *self.endpoint.reading()
    }

    /// The key mixed into its handshakes.
    pub fn preshared_key(&self) -> PresharedKey {
        self.handshake.locked().preshared_key.clone()
    }

    /// How often it hears from us at least.
    pub fn persistent_keepalive(&self) -> Option<Duration> {
        self.timers.locked().persistent_interval()
    }

    /// Bytes and last handshake.
    pub fn statistics(&self) -> PeerStatistics {
        PeerStatistics {
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            last_handshake: *self.last_handshake.locked(),
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<Keypair>> {
        self.keypairs.reading().current.clone()
    }

    /// Sets where the peer is. Written only when it changed, because each batch asks for it.
    pub(crate) fn roam(&self, endpoint: SocketAddr) {
        if self.endpoint() != Some(endpoint) {
            *self.endpoint.writing() = Some(endpoint);
        }
    }

    pub(crate) fn handshake_complete(&self, wall: WallTime) {
        *self.last_handshake.locked() = Some(wall);
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Puts packets behind those that wait; returns how many were pushed out.
    pub(crate) fn stage(&self, packets: impl Iterator<Item = Staged>) -> usize {
        let mut staged = self.staged.locked();
        staged.extend(packets);
        self.cut(&mut staged)
    }

    /// Puts packets taken from the queue back before those that came meanwhile; returns how many were pushed out.
    pub(crate) fn stage_again(&self, packets: VecDeque<Staged>) -> usize {
        let mut staged = self.staged.locked();
        let newer = std::mem::replace(&mut *staged, packets);
        staged.extend(newer);
        self.cut(&mut staged)
    }

    /// Takes the packets out to be dropped; returns how many.
    pub(crate) fn drop_staged(&self) -> usize {
        let mut staged = self.staged.locked();
        self.waiting.store(0, Ordering::Release);
        std::mem::take(&mut *staged).len()
    }

    /// Takes the packets out to be sent. Until the guard is gone they count as waiting, and nobody else sends any.
    pub(crate) fn flush_staged(&self) -> (VecDeque<Staged>, Flush<'_>) {
        let flush = Flush {
            _only: self.flush.locked(),
            peer: self,
        };
        (std::mem::take(&mut *self.staged.locked()), flush)
    }

    /// Whether packets wait, which are older than any that are sealed now.
    pub(crate) fn has_staged(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    fn cut(&self, staged: &mut VecDeque<Staged>) -> usize {
        let over = staged.len().saturating_sub(MAX_STAGED_PACKETS);
        staged.drain(..over);
        self.waiting.store(staged.len(), Ordering::Release);
        over
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    pub(crate) fn set_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }
}

/// Packets are on their way from where they waited to where they are fetched.
pub(crate) struct Flush<'a> {
    _only: MutexGuard<'a, ()>,
    peer: &'a Peer,
}

impl Drop for Flush<'_> {
    /// What was taken waits no more, unless it was put back.
    fn drop(&mut self) {
        let staged = self.peer.staged.locked();
        self.peer.waiting.store(staged.len(), Ordering::Release);
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Peer {}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("public_key", &self.public_key)
            .finish_non_exhaustive()
    }
}

impl Handshake {
    /// The secret both static keys make; `None` when the peer's is of low order.
    pub(crate) fn static_static(&self, own: &PrivateKey, peer: &PublicKey) -> Option<&Secret> {
        self.static_static.get_or_init(|| own.agree(peer)).as_ref()
    }

    /// Told that our own key is another now.
    pub(crate) fn forget_identity(&mut self) {
        self.static_static = OnceCell::new();
    }

    /// Leaves nothing secret. No handshake may begin after it.
    pub(crate) fn wipe(&mut self) {
        self.forget_identity();
        self.preshared_key = PresharedKey::default();
    }

    #[cfg(test)]
    pub(crate) fn has_secrets(&self) -> bool {
        self.static_static.get().is_some()
            || self.initiated.is_some()
            || self.preshared_key != PresharedKey::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Peer {
        Peer::new(PeerId(1), PublicKey::from_bytes([9; 32]), Duration::ZERO)
    }

    fn packets(range: std::ops::Range<usize>) -> impl Iterator<Item = Staged> {
        range.map(|number| Staged {
            bytes: vec![number as u8; 33],
            traffic_class: 0,
        })
    }

    fn numbers(peer: &Peer) -> Vec<u8> {
        peer.staged
            .locked()
            .iter()
            .map(|packet| packet.bytes[0])
            .collect()
    }

    #[test]
    fn the_latest_packets_wait() {
        let peer = peer();
        assert!(!peer.has_staged());
        assert_eq!(peer.stage(packets(0..100)), 0);
        assert!(peer.has_staged());
        assert_eq!(peer.stage(packets(100..130)), 2);
        assert_eq!(numbers(&peer), (2..130).collect::<Vec<u8>>());
        assert_eq!(peer.drop_staged(), 128);
        assert!(!peer.has_staged());
    }

    #[test]
    fn packets_put_back_are_the_oldest() {
        let peer = peer();
        peer.stage(packets(0..3));
        let (taken, flush) = peer.flush_staged();
        peer.stage(packets(3..128));
        assert_eq!(peer.stage_again(taken), 0);
        drop(flush);
        assert_eq!(numbers(&peer), (0..128).collect::<Vec<u8>>());
        let (taken, flush) = peer.flush_staged();
        peer.stage(packets(128..130));
        assert_eq!(peer.stage_again(taken), 2);
        drop(flush);
        assert_eq!(numbers(&peer), (2..130).collect::<Vec<u8>>());
    }

    #[test]
    fn packets_wait_until_they_are_sent() {
        let peer = peer();
        peer.stage(packets(0..3));
        let (taken, flush) = peer.flush_staged();
        assert!(peer.has_staged(), "taken, but not sent");
        drop((taken, flush));
        assert!(!peer.has_staged());
        let (_, flush) = peer.flush_staged();
        peer.stage(packets(0..1));
        drop(flush);
        assert!(peer.has_staged(), "it came meanwhile");
    }

    #[test]
    fn ten_thousand_idle_peers_are_cheap() {
        assert!(size_of::<Peer>() < 1_024, "{}", size_of::<Peer>());
    }
}
