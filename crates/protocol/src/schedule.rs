//! Which peer's timers run out next.
//!
//! Timers are mostly put off or stopped before they run out, with each batch of packets. So the schedule isn't told
//! of that: it only learns of deadlines *earlier* than the one it has for a peer, and asks the peer again
//! when that comes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::Locked;
use crate::peer::{Peer, PeerId};
use crate::time::Instant;

const NEVER: u64 = u64::MAX;

pub(crate) struct Schedule {
    entries: Mutex<BTreeMap<(Instant, PeerId), Arc<Peer>>>,
    earliest: AtomicU64,
}

impl Schedule {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Mutex::new(BTreeMap::new()),
            earliest: AtomicU64::new(NEVER),
        }
    }

    /// When [`take_due`](Self::take_due) is to be asked next.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        let nanos = self.earliest.load(Ordering::Acquire);
        (nanos != NEVER).then(|| Instant::from_nanos(nanos))
    }

    /// Told of the peer's next deadline, after the peer's timers were unlocked. A timer set by another thread in between
    /// is not lost: whoever took our entry out locks the timers after that, and so sees it.
    pub(crate) fn note(&self, peer: &Arc<Peer>, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            return;
        };
        if deadline.as_nanos() >= peer.scheduled.load(Ordering::Acquire) {
            return;
        }
        let mut entries = self.entries.locked();
        let scheduled = peer.scheduled.load(Ordering::Acquire);
        if deadline.as_nanos() >= scheduled || peer.is_removed() {
            return;
        }
        entries.remove(&(Instant::from_nanos(scheduled), peer.id));
        entries.insert((deadline, peer.id), Arc::clone(peer));
        peer.scheduled.store(deadline.as_nanos(), Ordering::Release);
        self.publish(&entries);
    }

    /// A peer whose deadline has come; the caller looks at its timers and notes the next.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Arc<Peer>> {
        let mut entries = self.entries.locked();
        let entry = entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        let peer = entry.remove();
        peer.scheduled.store(NEVER, Ordering::Release);
        self.publish(&entries);
        Some(peer)
    }

    pub(crate) fn remove(&self, peer: &Peer) {
        let mut entries = self.entries.locked();
        let scheduled = peer.scheduled.swap(NEVER, Ordering::AcqRel);
        entries.remove(&(Instant::from_nanos(scheduled), peer.id));
        self.publish(&entries);
    }

    fn publish(&self, entries: &BTreeMap<(Instant, PeerId), Arc<Peer>>) {
        let earliest = entries
            .first_key_value()
            .map_or(NEVER, |((deadline, _), _)| deadline.as_nanos());
        self.earliest.store(earliest, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keys::PublicKey;

    fn peer(number: u64) -> Arc<Peer> {
        Arc::new(Peer::new(
            PeerId(number),
            PublicKey::from_bytes([1; 32]),
            Duration::ZERO,
        ))
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn taken(schedule: &Schedule, now: u64) -> Option<u64> {
        schedule.take_due(at(now)).map(|peer| peer.id.0)
    }

    #[test]
    fn peers_come_by_their_earliest_deadline() {
        let schedule = Schedule::new();
        let (a, b) = (peer(1), peer(2));
        schedule.note(&a, Some(at(30)));
        schedule.note(&b, Some(at(20)));
        schedule.note(&a, None);
        schedule.note(&a, Some(at(40)));
        assert_eq!(schedule.earliest(), Some(at(20)));
        schedule.note(&a, Some(at(10)));
        assert_eq!(schedule.earliest(), Some(at(10)));
        assert_eq!(taken(&schedule, 9), None);
        assert_eq!(taken(&schedule, 25), Some(1));
        assert_eq!(taken(&schedule, 25), Some(2));
        assert_eq!(taken(&schedule, 99), None, "one entry a peer");
        assert_eq!(schedule.earliest(), None);
        schedule.note(&a, Some(at(50)));
        assert_eq!(schedule.earliest(), Some(at(50)));
    }

    #[test]
    fn a_removed_peer_does_not_come() {
        let schedule = Schedule::new();
        let a = peer(1);
        schedule.note(&a, Some(at(30)));
        a.set_removed();
        schedule.remove(&a);
        schedule.note(&a, Some(at(20)));
        assert_eq!(schedule.earliest(), None);
    }
}
