//! Doing what is due.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand_core::CryptoRng;

use super::{Event, MAX_TRANSMITS, Tunnel};
use crate::drops::DropReason;
use crate::peer::Peer;
use crate::time::Now;

impl Tunnel {
    /// Does what is due by now. To be called at [`next_deadline`](Self::next_deadline) or later; too early does nothing.
    /// When more is to be sent than should wait, the rest stays due: fetch, and call again.
    pub fn timers(&self, now: Now, rng: &mut dyn CryptoRng) {
        while self.waiting_transmits.load(Ordering::Acquire) < MAX_TRANSMITS / 2
            && let Some(peer) = self.schedule.take_due(now.instant)
        {
            self.peer_due(now, &peer, rng);
        }
    }

    fn peer_due(&self, now: Now, peer: &Arc<Peer>, rng: &mut dyn CryptoRng) {
        let due = self.with_timers(peer, |timers| timers.take_due(now.instant));
        if due.wipe_keys {
            self.wipe_keys(peer);
            self.event(Event::KeysWiped(peer.public_key));
        }
        if due.give_up {
            let dropped = peer.drop_staged();
            self.drops.add(DropReason::GaveUp, dropped);
            self.event(Event::GaveUp(peer.public_key));
        }
        if due.initiate {
            if due.suspect_source {
                self.event(Event::NoAnswer(peer.public_key));
            }
            self.send_initiation(now, peer, rng);
        }
        // Without an address there is nothing a keepalive could hold open.
        if due.keepalive && peer.endpoint().is_some() {
            self.send_keepalive(now, peer);
        }
    }
}
