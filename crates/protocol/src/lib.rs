//! WireGuard without I/O: handshake, sessions, replay window, cookies, timers, allowed IPs.
//!
//! A [`Tunnel`] reads no clock, draws no random number and touches no socket: the caller hands it time ([`Now`]), a random
//! number generator, inner packets and datagrams, and fetches what is to be sent.
//!
//! ```text
//! inner packets  → route → Outgoing → seal ──────────────┐
//!                                      │ no session      ├→ UDP
//!                                      └→ wait   poll_transmit (handshakes, keepalives, what waited)
//!                                           │        ↑
//! time           → timers ──────────────────┴────────┤    next_deadline says when
//!                                                    │
//! UDP → Incoming → open ─┬→ Verdict::Handshake → handshake
//!                        └→ Verdict::Packet → inner packets
//! ```
//!
//! A caller's loop: wait for a packet, a datagram or [`Tunnel::next_deadline`]; call [`Tunnel::seal`], [`Tunnel::open`] and
//! [`Tunnel::handshake`], or [`Tunnel::timers`]; then send all of [`Tunnel::poll_transmit`].
//!
//! Data is worked on in batches, in the caller's buffers, and nothing is allocated for it. Any number of
//! threads may do so at once; each step ([`Tunnel::begin_send`], [`Sending::seal`], [`Tunnel::session`], [`Session::open`],
//! [`Tunnel::accept`]) can also be called by itself, so that a caller decides which core does what.
//!
//! ```
//! use rand::{SeedableRng, rngs::StdRng};
//! use wirespeed_protocol::{Incoming, Now, Options, Outgoing, Prefix, PrivateKey, Sealed, Tunnel, Verdict};
//!
//! let mut rng = StdRng::seed_from_u64(1); // in earnest: the operating system's
//! let now = Now::default(); // in earnest: CLOCK_BOOTTIME and CLOCK_REALTIME
//! let keys = [PrivateKey::from_bytes([1; 32]), PrivateKey::from_bytes([2; 32])];
//! let addresses = ["192.0.2.1:51820", "192.0.2.2:51820"].map(|text| text.parse().unwrap());
//! let [a, b] = [0, 1].map(|own| {
//!     let tunnel = Tunnel::new(now.instant, Options::default(), &mut rng);
//!     tunnel.set_private_key(Some(keys[own].clone()));
//!     let peer = tunnel.add_peer(keys[1 - own].public(), &mut rng).unwrap();
//!     tunnel.allow(&peer, Prefix::new([10, 0, 0, 2 - own as u8].into(), 32).unwrap());
//!     tunnel.set_endpoint(now, &peer, addresses[1 - own]);
//!     tunnel
//! });
//!
//! // 10.0.0.1 sends the smallest of packets to 10.0.0.2. There is no session, so it waits.
//! let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
//! let mut batch = Outgoing::new(65_536, 64);
//! assert!(batch.push(&packet, 1420));
//! let peer = a.route([10, 0, 0, 2].into()).unwrap();
//! assert_eq!(a.seal(now, &peer, &mut batch), Sealed::Staged);
//! a.timers(now, &mut rng);
//!
//! let initiation = a.poll_transmit().unwrap();
//! b.handshake(now, addresses[0], &initiation.bytes, &mut rng).unwrap();
//! let response = b.poll_transmit().unwrap();
//! a.handshake(now, addresses[1], &response.bytes, &mut rng).unwrap();
//! let mut data = a.poll_transmit().unwrap();
//!
//! let mut incoming = [Incoming::new(&mut data.bytes, addresses[0])];
//! b.open(now, &mut incoming);
//! assert_eq!(incoming[0].packet(), Some(&packet[..]));
//! ```

mod aead;
mod allowed_ips;
mod cookie;
mod drops;
mod hash;
mod index_table;
mod inner;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod keypair;
mod keys;
mod lock;
mod message;
mod noise;
mod outgoing;
mod peer;
mod rate_limit;
mod replay;
mod reply_limit;
mod schedule;
mod time;
mod timers;
mod tunnel;

pub use allowed_ips::Prefix;
pub use drops::DropReason;
pub use inner::{InnerHeader, carry_ecn_in, outer_traffic_class};
pub use keypair::{
    REJECT_AFTER_MESSAGES, REJECT_AFTER_TIME, REKEY_AFTER_MESSAGES, REKEY_AFTER_TIME,
};
pub use keys::{KEY_BYTES, PresharedKey, PrivateKey, PublicKey};
pub use outgoing::{Outgoing, SealedDatagram};
pub use peer::{MAX_STAGED_PACKETS, Peer, PeerId, PeerStatistics};
pub use time::{Instant, Now, Tai64n, WallTime};
pub use timers::{
    KEEPALIVE_TIMEOUT, REKEY_ATTEMPT_TIME, REKEY_TIMEOUT, REKEY_TIMEOUT_JITTER_MAX, WIPE_KEYS_AFTER,
};
pub use tunnel::{
    AddPeerError, Event, HANDSHAKE_TRAFFIC_CLASS, Incoming, Options, RouteCache, Sealed, Sending,
    Session, Transmit, Tunnel, Verdict,
};

/// The messages as they are on the wire.
pub mod wire {
    pub use crate::message::{
        COOKIE_REPLY_BYTES, CookieReply, DATA_HEADER_BYTES, DATA_OVERHEAD_BYTES, DataHeader,
        INITIATION_BYTES, Initiation, Kind, PADDING_MULTIPLE, RESPONSE_BYTES, Response, kind,
    };
}
