//! One WireGuard interface with its peers.

mod handshake;
mod inbound;
mod outbound;
mod routes;
mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use rand_core::CryptoRng;
use subtle::ConstantTimeEq;

pub use self::inbound::{Incoming, Session, Verdict};
pub use self::outbound::{Sealed, Sending};
pub use self::routes::RouteCache;

use crate::allowed_ips::Prefix;
use crate::cookie::{Gate, MacKeys};
use crate::drops::{DropReason, Drops};
use crate::index_table::IndexTable;
use crate::keypair::Keypair;
use crate::keys::{PresharedKey, PrivateKey, PublicKey};
use crate::lock::{Locked, Shared};
use crate::peer::{Peer, PeerId};
use crate::schedule::Schedule;
use crate::time::{Instant, Now};
use crate::timers::{REKEY_TIMEOUT_JITTER_MAX, Timers};

use self::routes::Routes;

/// Datagrams that wait to be fetched; more are dropped and counted.
const MAX_TRANSMITS: usize = 8_192;

/// Events that wait to be fetched; more push the oldest out.
const MAX_EVENTS: usize = 1_024;

/// The traffic class of handshake messages: AF41, no ECN.
pub const HANDSHAKE_TRAFFIC_CLASS: u8 = 0x88;

/// One WireGuard interface with its peers: all of the protocol, without I/O, clocks or random numbers of its own.
///
/// Every method takes `&self`, and any number of threads may call any of them at once.
pub struct Tunnel {
    identity: RwLock<Option<Identity>>,
    peers: RwLock<BTreeMap<PublicKey, Arc<Peer>>>,
    routes: Routes,
    indices: IndexTable,
    gate: Gate,
    forced_load: AtomicBool,
    down: AtomicBool,
    schedule: Schedule,
    transmits: Mutex<VecDeque<Transmit>>,
    waiting_transmits: AtomicUsize,
    events: Mutex<VecDeque<Event>>,
    next_peer: AtomicU64,
    drops: Drops,
}

/// Who we are.
struct Identity {
    private: PrivateKey,
    public: PublicKey,
    mac_keys: MacKeys,
}

/// What can be set when a tunnel is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// More handshake messages than this in a second mean load: from then on senders have to prove their address
    /// by a cookie, until a second after it is over. One handshake costs about 0.2 ms of a core.
    pub handshakes_per_second: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            handshakes_per_second: 1_000,
        }
    }
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to; never a v4-mapped IPv6 address.
    pub destination: SocketAddr,
    /// The peer it is for, whose source address and port may be pinned; `None` for a cookie reply, which
    /// goes back by the way its cause came.
    pub peer: Option<PeerId>,
    /// The outer header's traffic class (TOS).
    pub traffic_class: u8,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A session with this peer can be used by both sides.
    HandshakeComplete(PublicKey),
    /// The peer didn't answer and will be asked again; if the address we send from is pinned, it should be
    /// forgotten, for it may be the reason.
    NoAnswer(PublicKey),
    /// The peer didn't answer for 90 s. It will be asked again when there is something to send.
    GaveUp(PublicKey),
    /// Nothing new was agreed with the peer for 540 s, so all its keys were wiped.
    KeysWiped(PublicKey),
}

/// A peer that can't be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddPeerError {
    /// Its key is our own.
    #[error(
        "a peer can't have the interface's own key; give it the public key of the other machine"
    )]
    OwnKey,
}

impl Tunnel {
    /// A tunnel without key and peers.
    pub fn new(now: Instant, options: Options, rng: &mut dyn CryptoRng) -> Self {
        Self {
            identity: RwLock::new(None),
            peers: RwLock::default(),
            routes: Routes::new(),
            indices: IndexTable::default(),
            gate: Gate::new(now, options.handshakes_per_second, rng),
            forced_load: AtomicBool::new(false),
            down: AtomicBool::new(false),
            schedule: Schedule::new(),
            transmits: Mutex::default(),
            waiting_transmits: AtomicUsize::new(0),
            events: Mutex::default(),
            next_peer: AtomicU64::new(0),
            drops: Drops::default(),
        }
    }

    /// Sets who we are. Sessions go on receiving, but don't send any more; a peer with this very key is removed.
    /// The key we have already changes nothing.
    pub fn set_private_key(&self, key: Option<PrivateKey>) {
        let same: bool = match (self.private_key(), &key) {
            (Some(old), Some(new)) => old.to_bytes().ct_eq(new.to_bytes().as_slice()).into(),
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        let identity = key.map(|private| {
            let public = private.public();
            Identity {
                mac_keys: MacKeys::of(&public),
                private,
                public,
            }
        });
        if let Some(own) = &identity {
            self.remove_peer(&own.public);
        }
        let mut current = self.identity.writing();
        *current = identity;
        for peer in self.peers() {
            let mut handshake = peer.handshake.locked();
            handshake.forget_identity();
            if let Some((index, _)) = handshake.initiated.take() {
                self.indices.remove(index);
            }
            peer.keypairs.reading().stop_sending();
            peer.timers.locked().forget_last_handshake();
        }
    }

    /// Our key, for showing it.
    pub fn private_key(&self) -> Option<PrivateKey> {
        self.identity
            .reading()
            .as_ref()
            .map(|own| own.private.clone())
    }

    /// The key peers know us by.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.identity.reading().as_ref().map(|own| own.public)
    }

    /// The peer with this key, added if there was none.
    pub fn add_peer(
        &self,
        key: PublicKey,
        rng: &mut dyn CryptoRng,
    ) -> Result<Arc<Peer>, AddPeerError> {
        if self.public_key() == Some(key) {
            return Err(AddPeerError::OwnKey);
        }
        let peer = Arc::clone(self.peers.writing().entry(key).or_insert_with(|| {
            let id = PeerId(self.next_peer.fetch_add(1, Ordering::Relaxed));
            Arc::new(Peer::new(id, key, jitter(rng)))
        }));
        Ok(peer)
    }

    /// Removes a peer with all that is its; false when there was none.
    pub fn remove_peer(&self, key: &PublicKey) -> bool {
        let Some(peer) = self.peers.writing().remove(key) else {
            return false;
        };
        // From here on no handshake begins and nothing is scheduled.
        peer.set_removed();
        self.routes.change(|table| table.remove_all(peer.id));
        self.wipe_keys(&peer);
        // Somebody who sent to it last may hold on to it for as long as there is no traffic.
        peer.handshake.locked().wipe();
        peer.drop_staged();
        peer.timers.locked().stop();
        self.schedule.remove(&peer);
        true
    }

    /// The peer with this key.
    pub fn peer(&self, key: &PublicKey) -> Option<Arc<Peer>> {
        self.peers.reading().get(key).cloned()
    }

    /// All peers, in the order they were added, as the kernel's driver and `wg` list them.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let mut peers: Vec<_> = self.peers.reading().values().cloned().collect();
        peers.sort_unstable_by_key(|peer| peer.id());
        peers
    }

    /// Sets the key mixed into handshakes from now on; all zero is none.
    pub fn set_preshared_key(&self, peer: &Peer, key: PresharedKey) {
        let mut handshake = peer.handshake.locked();
        if !peer.is_removed() {
            handshake.preshared_key = key;
        }
    }

    /// Sets where the peer is, until it is heard from elsewhere. What waited for that is sent.
    pub fn set_endpoint(&self, now: Now, peer: &Arc<Peer>, endpoint: SocketAddr) {
        peer.roam(canonical(endpoint));
        if peer.has_staged() {
            self.flush_staged(now, peer);
        }
    }

    /// Sets how often the peer hears from us at least; `None` or zero turns that off. It begins at once.
    pub fn set_persistent_keepalive(&self, now: Now, peer: &Arc<Peer>, interval: Option<Duration>) {
        let interval = interval.filter(|interval| !interval.is_zero());
        let begins = self.with_timers(peer, |timers| {
            let begins = timers.persistent_interval().is_none() && interval.is_some();
            timers.set_persistent_interval(now.instant, interval);
            begins
        });
        if begins {
            self.send_keepalive(now, peer);
        }
    }

    /// Gives the peer a range of inner addresses; whoever had exactly this range loses it.
    pub fn allow(&self, peer: &Arc<Peer>, prefix: Prefix) {
        self.routes.change(|table| {
            if !peer.is_removed() {
                table.insert(prefix, peer.id, Arc::clone(peer));
            }
        });
    }

    /// Takes exactly this range from the peer; false when it hadn't it.
    pub fn disallow(&self, peer: &Peer, prefix: Prefix) -> bool {
        self.routes.change(|table| table.remove(prefix, peer.id))
    }

    /// Takes all ranges from the peer.
    pub fn disallow_all(&self, peer: &Peer) {
        self.routes.change(|table| table.remove_all(peer.id));
    }

    /// The peer's ranges, in order.
    pub fn allowed_ips(&self, peer: &Peer) -> Vec<Prefix> {
        self.routes.table().of(peer.id).collect()
    }

    /// The peer that inner packets to this address are for.
    pub fn route(&self, destination: IpAddr) -> Option<Arc<Peer>> {
        let table = self.routes.table();
        let (_, peer) = table.look_up(destination)?;
        Some(Arc::clone(peer))
    }

    /// The same for a thread that asks with each packet, without a lock or a counter other threads use.
    pub fn route_by<'a>(
        &self,
        cache: &'a mut RouteCache,
        destination: IpAddr,
    ) -> Option<&'a Arc<Peer>> {
        self.routes.look_up(cache, destination)
    }

    /// To be told when the interface comes up: peers with a persistent keepalive hear from us, and what waits is sent.
    /// A new tunnel is up.
    pub fn start(&self, now: Now) {
        self.down.store(false, Ordering::SeqCst);
        self.speak_up(now);
    }

    /// To be told after the private key was set: peers with a persistent keepalive hear from us, and what waits is sent.
    /// Does nothing while the interface is down, and nothing without a key.
    pub fn speak_up(&self, now: Now) {
        if self.is_down() || self.private_key().is_none() {
            return;
        }
        for peer in self.peers() {
            if peer.persistent_keepalive().is_some() || peer.has_staged() {
                // What was tried without a key need not be waited for.
                peer.timers.locked().forget_handshake_under_way();
                self.send_keepalive(now, &peer);
            }
        }
    }

    /// To be told when the interface goes down: all keys are wiped, nothing waits and nothing is due any more. Until
    /// [`start`](Self::start) packets and messages are dropped; everything can be set.
    pub fn stop(&self) {
        // From here on no session is made that outlives what follows, nothing is scheduled and nothing waits.
        self.down.store(true, Ordering::SeqCst);
        for peer in self.peers() {
            peer.drop_staged();
            self.wipe_keys(&peer);
            peer.timers.locked().stop();
            self.schedule.remove(&peer);
        }
        self.transmits.locked().clear();
        self.waiting_transmits.store(0, Ordering::Release);
    }

    /// Declares load (true) by what the caller knows, for instance a long queue of handshakes; false leaves it to
    /// the count of messages.
    pub fn force_load(&self, load: bool) {
        self.forced_load.store(load, Ordering::Relaxed);
    }

    /// How often something was dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason)
    }

    /// The next datagram to be sent. To be asked until `None` after each call that takes the time, before new
    /// packets are sealed: what waits is older.
    pub fn poll_transmit(&self) -> Option<Transmit> {
        if self.waiting_transmits.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut transmits = self.transmits.locked();
        let next = transmits.pop_front();
        self.waiting_transmits
            .store(transmits.len(), Ordering::Release);
        next
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) has something. Takes no lock.
    pub fn transmits_waiting(&self) -> bool {
        self.waiting_transmits.load(Ordering::Acquire) > 0
    }

    /// The next event.
    pub fn poll_event(&self) -> Option<Event> {
        self.events.locked().pop_front()
    }

    /// When [`timers`](Self::timers) is to be called; `None` when only packets can change anything. To be asked again after
    /// each call that takes the time.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.schedule.earliest()
    }

    /// Forgets all keys of a peer, and a handshake under way.
    fn wipe_keys(&self, peer: &Peer) {
        let mut handshake = peer.handshake.locked();
        if let Some((index, _)) = handshake.initiated.take() {
            self.indices.remove(index);
        }
        let over = peer.keypairs.writing().clear();
        self.indices.remove_sessions(&over);
    }

    /// Changes a peer's timers, and the schedule after them. While the interface is down none runs.
    fn with_timers<R>(&self, peer: &Arc<Peer>, change: impl FnOnce(&mut Timers) -> R) -> R {
        let (result, next) = {
            let mut timers = peer.timers.locked();
            let result = change(&mut timers);
            if self.is_down() {
                timers.stop();
            }
            (result, timers.next())
        };
        self.schedule.note(peer, next);
        result
    }

    /// Puts datagrams where they are fetched, all or as many as there is room for.
    fn transmit(&self, new: impl IntoIterator<Item = Transmit>) {
        let mut transmits = self.transmits.locked();
        for transmit in new {
            if transmits.len() < MAX_TRANSMITS {
                transmits.push_back(transmit);
            } else {
                self.drops.count(DropReason::TransmitOverflow);
            }
        }
        self.waiting_transmits
            .store(transmits.len(), Ordering::Release);
    }

    fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    fn event(&self, event: Event) {
        let mut events = self.events.locked();
        if events.len() >= MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// Takes a new session into use, and what it replaces out of it.
    fn install(&self, peer: &Arc<Peer>, keypair: Keypair) {
        let keypair = Arc::new(keypair);
        self.indices.promote(peer, &keypair);
        let over = peer.keypairs.writing().install(keypair);
        self.indices.remove_sessions(&over);
    }
}

/// The same address, with v4-mapped IPv6 as the IPv4 it stands for.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::from((v4, address.port())),
        IpAddr::V6(_) => address,
    }
}

fn jitter(rng: &mut dyn CryptoRng) -> Duration {
    let range = u64::try_from(REKEY_TIMEOUT_JITTER_MAX.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos((u64::from(rng.next_u32()) * range) >> 32)
}

#[cfg(test)]
mod tests;
