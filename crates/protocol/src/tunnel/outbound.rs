//! Inner packets to datagrams.
//!
//! ```text
//! route (by the caller, once a flow) → begin_send: session, counters, address, rekey
//!     → Sending::seal: encryption, on any thread → sent: timers, bytes
//! ```
//!
//! [`Tunnel::seal`] is the three in one. Packets that find no session wait, and a handshake begins.

use std::net::SocketAddr;
use std::sync::Arc;

use super::{Transmit, Tunnel};
use crate::drops::DropReason;
use crate::keypair::Keypair;
use crate::outgoing::{Outgoing, Staged};
use crate::peer::Peer;
use crate::time::{Instant, Now};

/// The right to seal a batch: a session, and counters nobody else has.
pub struct Sending {
    keypair: Arc<Keypair>,
    first_counter: u64,
    packets: usize,
    destination: SocketAddr,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// Its datagrams are to be sent there.
    To(SocketAddr),
    /// There is no session, so its packets were taken out to wait for one; the batch is empty.
    Staged,
    /// There was nothing in it, or it was sealed before.
    Nothing,
}

impl Sending {
    /// Where the datagrams are to be sent.
    pub const fn destination(&self) -> SocketAddr {
        self.destination
    }

    /// Encrypts the batch in place. False, and the batch is left as it is, when it hasn't as many packets as counters
    /// were taken for.
    #[must_use]
    pub fn seal(self, batch: &mut Outgoing) -> bool {
        let fits = batch.len() == self.packets && !batch.is_sealed();
        if fits {
            batch.seal(&self.keypair, self.first_counter);
        }
        fits
    }
}

impl Tunnel {
    /// Encrypts a batch of packets for a peer in place, or keeps them until there is a session.
    /// Datagrams that wait in [`poll_transmit`](Self::poll_transmit) are older and to be sent before.
    pub fn seal(&self, now: Now, peer: &Arc<Peer>, batch: &mut Outgoing) -> Sealed {
        if batch.is_empty() || batch.is_sealed() {
            return Sealed::Nothing;
        }
        if let Some(sending) = self.begin_send(now, peer, batch.len()) {
            let destination = sending.destination;
            if sending.seal(batch) {
                self.sent(now, peer, batch);
                return Sealed::To(destination);
            }
        }
        self.stage(now, peer, batch);
        Sealed::Staged
    }

    /// Takes counters for `packets` packets. `None` when there is no session that may send, no address, no counters
    /// are left, or older packets still wait; then [`stage`](Self::stage).
    pub fn begin_send(&self, now: Now, peer: &Arc<Peer>, packets: usize) -> Option<Sending> {
        if peer.has_staged() {
            return None;
        }
        self.take_counters(now, peer, packets)
    }

    fn take_counters(&self, now: Now, peer: &Arc<Peer>, packets: usize) -> Option<Sending> {
        let destination = peer.endpoint()?;
        let keypair = peer
            .current()
            .filter(|keypair| keypair.may_send(now.instant))?;
        let first_counter = keypair.reserve(packets as u64)?;
        if keypair.wants_rekey_when_sending(now.instant) {
            self.with_timers(peer, |timers| timers.want_initiation(now.instant));
        }
        Some(Sending {
            keypair,
            first_counter,
            packets,
            destination,
        })
    }

    /// To be told once a sealed batch was sent, or is about to be: timers, statistics.
    pub fn sent(&self, now: Now, peer: &Arc<Peer>, batch: &Outgoing) {
        self.note_sent(now.instant, peer, batch.bytes().len(), batch.has_data());
    }

    /// Takes the packets out of an unsealed batch to wait for a session, and sees to it that one is made.
    pub fn stage(&self, now: Now, peer: &Arc<Peer>, batch: &mut Outgoing) {
        let over = peer.stage(batch.unsealed());
        self.drops.add(DropReason::StagedOverflow, over);
        batch.clear();
        self.flush_staged(now, peer);
    }

    /// Sends what waits, or asks for a session if there is none.
    pub(super) fn flush_staged(&self, now: Now, peer: &Arc<Peer>) {
        let (mut staged, _flush) = peer.flush_staged();
        if peer.is_removed() || staged.is_empty() {
            return;
        }
        if self.is_down() {
            self.drops.add(DropReason::InterfaceDown, staged.len());
            return;
        }
        let Some(sending) = self.take_counters(now, peer, staged.len()) else {
            let over = peer.stage_again(staged);
            self.drops.add(DropReason::StagedOverflow, over);
            self.with_timers(peer, |timers| timers.want_initiation(now.instant));
            return;
        };
        let data = staged.iter().any(Staged::is_data);
        let mut bytes = 0;
        let sealer = sending.keypair.sealer();
        for (counter, packet) in (sending.first_counter..).zip(&mut staged) {
            sealer.seal(counter, &mut packet.bytes);
            bytes += packet.bytes.len();
        }
        self.transmit(staged.into_iter().map(|packet| Transmit {
            destination: sending.destination,
            peer: Some(peer.id),
            traffic_class: packet.traffic_class,
            bytes: packet.bytes,
        }));
        self.note_sent(now.instant, peer, bytes, data);
    }

    /// Lets the peer hear from us: by what waits, or else by an empty message. Begins a handshake if there is no session.
    pub(super) fn send_keepalive(&self, now: Now, peer: &Arc<Peer>) {
        if !peer.has_staged() {
            peer.stage(std::iter::once(Staged::keepalive()));
        }
        self.flush_staged(now, peer);
    }

    fn note_sent(&self, now: Instant, peer: &Arc<Peer>, bytes: usize, data: bool) {
        self.with_timers(peer, |timers| {
            timers.sent(now);
            if data {
                timers.data_sent(now);
            }
        });
        peer.count_sent(bytes);
    }
}
