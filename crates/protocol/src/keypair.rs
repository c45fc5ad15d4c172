//! The keys of one session, and the sessions a peer may have at once.
//!
//! A [`Keypair`] never changes but for its counters, so that any number of threads may seal and open with it:
//! they share it by `Arc` and hold no lock meanwhile. For a batch each makes itself a [`Sealer`] or an [`Opener`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::aead::{Key, StoredKey, TAG_BYTES};
use crate::lock::Locked;
use crate::message::{DATA_HEADER_BYTES, DATA_OVERHEAD_BYTES, DataHeader};
use crate::noise::TransportSecrets;
use crate::replay::{ReplayWindow, WINDOW};
use crate::time::Instant;

/// After this many messages new keys are wanted.
pub const REKEY_AFTER_MESSAGES: u64 = 1 << 60;

/// A counter from here on is neither sent nor taken.
pub const REJECT_AFTER_MESSAGES: u64 = u64::MAX - WINDOW;

/// After this time the initiator of a session that sends wants new keys.
pub const REKEY_AFTER_TIME: Duration = Duration::from_secs(120);

/// Keys older than this are not used.
pub const REJECT_AFTER_TIME: Duration = Duration::from_secs(180);

/// The keys of one session. They are wiped when the last thread lets go of them.
pub(crate) struct Keypair {
    sending: StoredKey,
    receiving: StoredKey,
    /// The counter of the next datagram we send.
    next_counter: AtomicU64,
    /// Cleared for good when a session may no longer send, though its time isn't over.
    may_send: AtomicBool,
    /// Set while it may be the session that waits for its first datagram.
    unconfirmed: AtomicBool,
    window: Mutex<ReplayWindow>,
    pub(crate) local_index: u32,
    remote_index: u32,
    pub(crate) we_initiated: bool,
    pub(crate) born: Instant,
}

impl Keypair {
    pub(crate) fn new(
        secrets: &TransportSecrets,
        we_initiated: bool,
        local_index: u32,
        remote_index: u32,
        born: Instant,
    ) -> Self {
        let (sending, receiving) = if we_initiated {
            (&secrets.from_initiator, &secrets.from_responder)
        } else {
            (&secrets.from_responder, &secrets.from_initiator)
        };
        Self {
            sending: StoredKey::new(sending),
            receiving: StoredKey::new(receiving),
            next_counter: AtomicU64::new(0),
            may_send: AtomicBool::new(true),
            unconfirmed: AtomicBool::new(!we_initiated),
            window: Mutex::default(),
            local_index,
            remote_index,
            we_initiated,
            born,
        }
    }

    /// Whether new datagrams may be sealed with it now.
    pub(crate) fn may_send(&self, now: Instant) -> bool {
        self.may_send.load(Ordering::Relaxed) && !now.reached(self.born, REJECT_AFTER_TIME)
    }

    /// Forbids sending for good.
    pub(crate) fn stop_sending(&self) {
        self.may_send.store(false, Ordering::Relaxed);
    }

    /// Whether its next authentic datagram may be the first, which [`Keypairs::confirm`] has to be told of.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.unconfirmed.load(Ordering::Acquire)
    }

    /// Takes `count` counters in a row, of which the first is returned. When not all are left none is taken,
    /// and the session sends no more.
    pub(crate) fn reserve(&self, count: u64) -> Option<u64> {
        let taken = self
            .next_counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                next.checked_add(count)
                    .filter(|after| *after <= REJECT_AFTER_MESSAGES)
            });
        if taken.is_err() {
            self.stop_sending();
        }
        taken.ok()
    }

    /// Whether its sender should fetch new keys: too many messages, or too old if we are the initiator
    /// (else both sides would begin at once).
    pub(crate) fn wants_rekey_when_sending(&self, now: Instant) -> bool {
        self.may_send.load(Ordering::Relaxed)
            && (self.next_counter.load(Ordering::Relaxed) > REKEY_AFTER_MESSAGES
                || self.we_initiated && now.reached(self.born, REKEY_AFTER_TIME))
    }

    /// Whether the initiator, which only receives, has to fetch new keys before these run out at `age_limit`.
    pub(crate) fn wants_rekey_when_receiving(&self, now: Instant, age_limit: Duration) -> bool {
        self.may_send.load(Ordering::Relaxed)
            && self.we_initiated
            && now.reached(self.born, age_limit)
    }

    /// Makes datagrams; for one batch.
    pub(crate) fn sealer(&self) -> Sealer {
        Sealer {
            key: self.sending.ready(),
            remote_index: self.remote_index,
        }
    }

    /// Opens datagrams; for one batch.
    pub(crate) fn opener(&self) -> Opener {
        Opener {
            key: self.receiving.ready(),
        }
    }

    /// Whether datagrams may still be taken.
    pub(crate) fn may_receive(&self, now: Instant) -> bool {
        !now.reached(self.born, REJECT_AFTER_TIME)
    }

    /// Checks counters against the replay window, many under one lock.
    pub(crate) fn with_window<R>(&self, check: impl FnOnce(&mut ReplayWindow) -> R) -> R {
        check(&mut self.window.locked())
    }

    #[cfg(test)]
    pub(crate) fn set_next_counter(&self, counter: u64) {
        self.next_counter.store(counter, Ordering::Relaxed);
    }
}

/// The sending half of a session, ready for use.
pub(crate) struct Sealer {
    key: Key,
    remote_index: u32,
}

impl Sealer {
    /// Makes a datagram of `slot`, which holds the plaintext with room for header and tag around it.
    #[inline]
    pub(crate) fn seal(&self, counter: u64, slot: &mut [u8]) {
        let Some((header, text)) = slot.split_first_chunk_mut::<DATA_HEADER_BYTES>() else {
            debug_assert!(false, "no room for a header in {} bytes", slot.len());
            return;
        };
        DataHeader {
            receiver: self.remote_index,
            counter,
        }
        .write(header);
        self.key.seal(counter, &[], text);
    }
}

/// The receiving half of a session, ready for use.
pub(crate) struct Opener {
    key: Key,
}

impl Opener {
    /// Decrypts in place the datagram that has this head. False when it isn't authentic, or its counter beyond the limit.
    /// The counter is not yet checked for replay.
    #[inline]
    pub(crate) fn open(&self, header: DataHeader, datagram: &mut [u8]) -> bool {
        let text = &mut datagram[DATA_HEADER_BYTES..];
        header.counter < REJECT_AFTER_MESSAGES && self.key.open(header.counter, &[], text)
    }

    #[cfg(test)]
    pub(crate) fn open_any(&self, datagram: &mut [u8]) -> Option<u64> {
        let header = DataHeader::parse(datagram)?;
        self.open(header, datagram).then_some(header.counter)
    }
}

/// Where in an opened datagram the plaintext is.
pub(crate) fn plaintext_range(datagram: &[u8]) -> std::ops::Range<usize> {
    debug_assert!(datagram.len() >= DATA_OVERHEAD_BYTES);
    DATA_HEADER_BYTES..datagram.len().saturating_sub(TAG_BYTES)
}

/// Sessions kept for what is still on its way. Three, because when both sides renew at once each retires two,
/// and the one the other has sent with until then may be the older.
const MAX_PREVIOUS: usize = 3;

/// The sessions of a peer.
///
/// `current` is what we send with. `next` is a session we responded to: we don't send with it until the initiator
/// has, because the response may be lost. `previous` are what datagrams still on their way were sealed with.
///
/// The kernel's driver keeps a single `previous`, and none beside an unconfirmed `next`. After both sides have initiated
/// at once each sends with its own session, and then it loses what is on its way at each renewal.
#[derive(Default)]
pub(crate) struct Keypairs {
    pub(crate) current: Option<Arc<Keypair>>,
    next: Option<Arc<Keypair>>,
    /// The newest first.
    previous: Vec<Arc<Keypair>>,
}

impl Keypairs {
    /// Takes in a new session; returns those that are over.
    #[must_use]
    pub(crate) fn install(&mut self, new: Arc<Keypair>) -> Vec<Arc<Keypair>> {
        if !new.we_initiated {
            return self.next.replace(new).into_iter().collect();
        }
        let now = new.born;
        let retired = [self.next.take(), self.current.replace(new)];
        self.retire(now, retired.into_iter().flatten())
    }

    /// Told of an authentic datagram of `used`. If that confirms `next`, which only the first does, sessions move up
    /// and those that are over then are returned.
    #[must_use]
    pub(crate) fn confirm(
        &mut self,
        now: Instant,
        used: &Arc<Keypair>,
    ) -> Option<Vec<Arc<Keypair>>> {
        if !self.awaits(used) {
            return None;
        }
        used.unconfirmed.store(false, Ordering::Release);
        let retired = std::mem::replace(&mut self.current, self.next.take());
        Some(self.retire(now, retired.into_iter()))
    }

    /// Whether `used` waits for its first datagram.
    fn awaits(&self, used: &Arc<Keypair>) -> bool {
        self.next
            .as_ref()
            .is_some_and(|next| Arc::ptr_eq(next, used))
    }

    /// Takes all sessions out.
    pub(crate) fn clear(&mut self) -> Vec<Arc<Keypair>> {
        let mut all = std::mem::take(&mut self.previous);
        all.extend(self.current.take());
        all.extend(self.next.take());
        all
    }

    /// Keeps all from sending.
    pub(crate) fn stop_sending(&self) {
        for keypair in self.current.iter().chain(&self.next) {
            keypair.stop_sending();
        }
    }

    fn retire(
        &mut self,
        now: Instant,
        retired: impl Iterator<Item = Arc<Keypair>>,
    ) -> Vec<Arc<Keypair>> {
        let all = retired
            .inspect(|keypair| keypair.unconfirmed.store(false, Ordering::Release))
            .chain(std::mem::take(&mut self.previous));
        let (kept, mut over): (Vec<_>, Vec<_>) = all.partition(|keypair| keypair.may_receive(now));
        self.previous = kept;
        if self.previous.len() > MAX_PREVIOUS {
            over.extend(self.previous.drain(MAX_PREVIOUS..));
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;

    fn keypair(we_initiated: bool, index: u32) -> Arc<Keypair> {
        born(we_initiated, index, 0)
    }

    fn born(we_initiated: bool, index: u32, seconds: u64) -> Arc<Keypair> {
        let secrets = TransportSecrets {
            from_initiator: Secret::new([1; 32]),
            from_responder: Secret::new([2; 32]),
        };
        Arc::new(Keypair::new(&secrets, we_initiated, index, 99, at(seconds)))
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn indices(keypairs: &Keypairs) -> (Vec<u32>, Option<u32>, Option<u32>) {
        let index = |keypair: &Option<Arc<Keypair>>| keypair.as_ref().map(|it| it.local_index);
        (
            over(&keypairs.previous),
            index(&keypairs.current),
            index(&keypairs.next),
        )
    }

    fn over(keypairs: &[Arc<Keypair>]) -> Vec<u32> {
        keypairs.iter().map(|keypair| keypair.local_index).collect()
    }

    #[test]
    fn both_roles_fit_together() {
        let (initiator, responder) = (keypair(true, 1), keypair(false, 2));
        let mut slot = [7; 16 + 32 + 16];
        initiator.sealer().seal(5, &mut slot);
        assert!(
            initiator.opener().open_any(&mut slot.clone()).is_none(),
            "not for its sender"
        );
        assert_eq!(responder.opener().open_any(&mut slot), Some(5));
        assert_eq!(slot[plaintext_range(&slot)], [7; 32]);
    }

    #[test]
    fn counters_are_reserved_in_rows_and_never_beyond_the_limit() {
        let keypair = keypair(true, 1);
        assert_eq!(keypair.reserve(3), Some(0));
        assert_eq!(keypair.reserve(1), Some(3));
        keypair.set_next_counter(REJECT_AFTER_MESSAGES - 2);
        assert_eq!(keypair.reserve(2), Some(REJECT_AFTER_MESSAGES - 2));
        assert!(keypair.may_send(at(0)));
        for _ in 0..3 {
            assert_eq!(keypair.reserve(u64::MAX), None);
            assert_eq!(keypair.reserve(1), None);
        }
        assert!(!keypair.may_send(at(0)));
    }

    #[test]
    fn threads_never_share_a_counter() {
        let keypair = keypair(true, 1);
        let mut firsts: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..1_000)
                            .map(|_| keypair.reserve(7).unwrap())
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        firsts.sort_unstable();
        assert!(
            firsts
                .iter()
                .enumerate()
                .all(|(at, first)| *first == at as u64 * 7)
        );
    }

    #[test]
    fn a_counter_at_the_limit_is_not_taken() {
        let (initiator, responder) = (keypair(true, 1), keypair(false, 2));
        for (counter, expected) in [
            (REJECT_AFTER_MESSAGES - 1, Some(REJECT_AFTER_MESSAGES - 1)),
            (REJECT_AFTER_MESSAGES, None),
            (u64::MAX, None),
        ] {
            let mut slot = [0; 32];
            initiator.sealer().seal(counter, &mut slot);
            assert_eq!(responder.opener().open_any(&mut slot), expected);
        }
    }

    #[test]
    fn when_new_keys_are_wanted() {
        let (initiator, responder) = (keypair(true, 1), keypair(false, 2));
        assert!(!initiator.wants_rekey_when_sending(at(119)));
        assert!(initiator.wants_rekey_when_sending(at(120)));
        assert!(!responder.wants_rekey_when_sending(at(179)));
        let limit = Duration::from_secs(165);
        assert!(!initiator.wants_rekey_when_receiving(at(164), limit));
        assert!(initiator.wants_rekey_when_receiving(at(165), limit));
        assert!(!responder.wants_rekey_when_receiving(at(179), limit));
        responder.set_next_counter(REKEY_AFTER_MESSAGES);
        assert!(!responder.wants_rekey_when_sending(at(0)));
        responder.set_next_counter(REKEY_AFTER_MESSAGES + 1);
        assert!(responder.wants_rekey_when_sending(at(0)));
        assert!(initiator.may_send(at(179)) && initiator.may_receive(at(179)));
        assert!(!initiator.may_send(at(180)) && !initiator.may_receive(at(180)));
    }

    #[test]
    fn an_initiators_sessions_follow_each_other() {
        let mut keypairs = Keypairs::default();
        for index in 1..=4 {
            assert!(keypairs.install(keypair(true, index)).is_empty());
        }
        assert_eq!(indices(&keypairs), (vec![3, 2, 1], Some(4), None));
        assert_eq!(over(&keypairs.install(keypair(true, 5))), [1]);
        assert_eq!(
            over(&keypairs.install(born(true, 6, 180))),
            [5, 4, 3, 2],
            "too old to be of use"
        );
        assert_eq!(indices(&keypairs), (vec![], Some(6), None));
    }

    #[test]
    fn a_responders_session_waits_for_its_first_datagram() {
        let mut keypairs = Keypairs::default();
        assert!(keypairs.install(keypair(true, 1)).is_empty());
        let lost = keypair(false, 2);
        assert!(keypairs.install(Arc::clone(&lost)).is_empty());
        let second = keypair(false, 3);
        assert_eq!(
            over(&keypairs.install(Arc::clone(&second))),
            [2],
            "its response was lost"
        );
        assert_eq!(indices(&keypairs), (vec![], Some(1), Some(3)));
        assert!(keypairs.confirm(at(0), &lost).is_none());
        assert!(keypairs.awaits(&second) && second.is_unconfirmed());
        assert!(over(&keypairs.confirm(at(0), &second).unwrap()).is_empty());
        assert_eq!(indices(&keypairs), (vec![1], Some(3), None));
        assert!(keypairs.confirm(at(0), &second).is_none());
        assert!(!second.is_unconfirmed());
        let third = born(false, 4, 179);
        assert!(keypairs.install(Arc::clone(&third)).is_empty());
        assert_eq!(indices(&keypairs), (vec![1], Some(3), Some(4)));
        assert_eq!(over(&keypairs.confirm(at(180), &third).unwrap()), [3, 1]);
        assert_eq!(indices(&keypairs), (vec![], Some(4), None));
        assert_eq!(over(&keypairs.clear()), [4]);
        assert_eq!(indices(&keypairs), (vec![], None, None));
    }

    #[test]
    fn after_initiating_at_once_the_sessions_of_both_are_kept() {
        let mut keypairs = Keypairs::default();
        let mut over_so_far = Vec::new();
        for round in 0..3 {
            over_so_far.extend(keypairs.install(keypair(false, round * 2)));
            over_so_far.extend(keypairs.install(keypair(true, round * 2 + 1)));
        }
        // Even ones are the other's: 4 is what it sends with from now on, 2 what it sent with before.
        assert_eq!(indices(&keypairs), (vec![4, 3, 2], Some(5), None));
        assert!(keypairs.previous.iter().all(|it| !it.is_unconfirmed()));
        assert_eq!(over(&over_so_far), [1, 0]);
    }
}
