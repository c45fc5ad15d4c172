//! When a peer has to hear from us, as in the timers of the kernel's driver. Pure: told the time, it says what is due.
//!
//! | timer | begins | ends | then |
//! | --- | --- | --- | --- |
//! | retransmit handshake, 5 s + jitter | initiation sent | session confirmed | initiate again, for about 90 s |
//! | keepalive, 10 s | data received | anything sent | send a keepalive |
//! | new handshake, 15 s + jitter | data sent | anything received | initiate |
//! | wipe keys, 540 s | session made | – | forget all keys |
//! | persistent keepalive, as set | anything sent or received | – | send a keepalive |
//! | initiation | keys wanted | initiation sent | initiate, but 5 s after the last handshake message |

use std::time::Duration;

use crate::keypair::REJECT_AFTER_TIME;
use crate::time::Instant;

/// How long a handshake may take before it is tried again, and the least time between two of them.
pub const REKEY_TIMEOUT: Duration = Duration::from_secs(5);

/// At most this is added at random to a retry, so that two sides don't stay in step.
pub const REKEY_TIMEOUT_JITTER_MAX: Duration = Duration::from_nanos(333_333_333);

/// How long handshakes are tried while nothing is sent.
pub const REKEY_ATTEMPT_TIME: Duration = Duration::from_secs(90);

/// Who has received data answers within this time.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// When keys are forgotten that no new ones followed.
pub const WIPE_KEYS_AFTER: Duration = Duration::from_secs(3 * REJECT_AFTER_TIME.as_secs());

/// An initiator that only receives fetches new keys this long after the last: early enough for
/// a keepalive and a handshake before they run out.
pub(crate) const REKEY_WHEN_RECEIVING_AFTER: Duration = Duration::from_secs(
    REJECT_AFTER_TIME.as_secs() - KEEPALIVE_TIMEOUT.as_secs() - REKEY_TIMEOUT.as_secs(),
);

/// Retries after the first, as the kernel's driver counts them.
const MAX_RETRIES: u64 = REKEY_ATTEMPT_TIME.as_secs() / REKEY_TIMEOUT.as_secs();

/// The timers of one peer.
#[derive(Default)]
pub(crate) struct Timers {
    retransmit_handshake: Option<Instant>,
    send_keepalive: Option<Instant>,
    new_handshake: Option<Instant>,
    wipe_keys: Option<Instant>,
    persistent_keepalive: Option<Instant>,
    initiation: Option<Instant>,

    persistent_interval: Option<Duration>,
    need_another_keepalive: bool,
    handshake_attempts: u64,
    sent_last_minute_handshake: bool,
    last_sent_handshake: Option<Instant>,
    /// Drawn with each handshake message, used until the next.
    jitter: Duration,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Forget all keys. To be done before the rest.
    pub(crate) wipe_keys: bool,
    /// Drop what waits for a session.
    pub(crate) give_up: bool,
    /// Begin a handshake.
    pub(crate) initiate: bool,
    /// The peer didn't answer, so the address we send from may be at fault.
    pub(crate) suspect_source: bool,
    /// Send a keepalive, or what waits.
    pub(crate) keepalive: bool,
}

impl Timers {
    pub(crate) fn new(jitter: Duration) -> Self {
        Self {
            jitter,
            ..Self::default()
        }
    }

    /// The earliest time at which [`take_due`](Self::take_due) has something to say.
    pub(crate) fn next(&self) -> Option<Instant> {
        [
            self.retransmit_handshake,
            self.send_keepalive,
            self.new_handshake,
            self.wipe_keys,
            self.persistent_keepalive,
            self.initiation,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Stops what has run out by now, and says what that means.
    pub(crate) fn take_due(&mut self, now: Instant) -> Due {
        let mut due = Due {
            wipe_keys: take(&mut self.wipe_keys, now),
            ..Due::default()
        };
        if take(&mut self.retransmit_handshake, now) {
            if self.handshake_attempts > MAX_RETRIES {
                due.give_up = true;
                self.send_keepalive = None;
                self.wipe_keys.get_or_insert(now + WIPE_KEYS_AFTER);
            } else {
                self.handshake_attempts += 1;
                due.initiate = true;
                due.suspect_source = true;
            }
        }
        if take(&mut self.new_handshake, now) {
            self.handshake_attempts = 0;
            due.initiate = true;
            due.suspect_source = true;
        }
        due.initiate |= take(&mut self.initiation, now);
        if take(&mut self.send_keepalive, now) {
            due.keepalive = true;
            if std::mem::take(&mut self.need_another_keepalive) {
                self.send_keepalive = Some(now + KEEPALIVE_TIMEOUT);
            }
        }
        if take(&mut self.persistent_keepalive, now) {
            due.keepalive = true;
            self.traversed(now);
        }
        if due.initiate && !self.may_initiate(now) {
            due.initiate = false;
            self.schedule_initiation(now);
        }
        due
    }

    /// Something told us that a handshake is needed: the retries begin anew.
    pub(crate) fn want_initiation(&mut self, now: Instant) {
        self.handshake_attempts = 0;
        // A handshake under way needs no second one; its retries go on.
        if self.retransmit_handshake.is_none() {
            self.schedule_initiation(now);
        }
    }

    /// The same because a session that only receives is about to run out; once a session.
    pub(crate) fn want_last_minute_initiation(&mut self, now: Instant) {
        if !self.sent_last_minute_handshake {
            self.sent_last_minute_handshake = true;
            self.want_initiation(now);
        }
    }

    /// An initiation was sent.
    pub(crate) fn initiation_sent(&mut self, now: Instant, jitter: Duration) {
        self.last_sent_handshake = Some(now);
        self.sent(now);
        self.initiation_failed(now, jitter);
    }

    /// An initiation couldn't be made (no address, no key): tried again as if it had been lost.
    pub(crate) fn initiation_failed(&mut self, now: Instant, jitter: Duration) {
        self.traversed(now);
        self.initiation = None;
        self.jitter = jitter;
        self.retransmit_handshake = Some(now + REKEY_TIMEOUT + jitter);
    }

    /// A response was sent, and with it a session made.
    pub(crate) fn response_sent(&mut self, now: Instant, jitter: Duration) {
        self.jitter = jitter;
        self.last_sent_handshake = Some(now);
        self.session_derived(now);
        self.sent(now);
    }

    /// A session was made.
    pub(crate) fn session_derived(&mut self, now: Instant) {
        self.wipe_keys = Some(now + WIPE_KEYS_AFTER);
    }

    /// Both sides are known to have a session.
    pub(crate) fn handshake_complete(&mut self) {
        self.retransmit_handshake = None;
        self.initiation = None;
        self.handshake_attempts = 0;
        self.sent_last_minute_handshake = false;
    }

    /// A data message with content was sent.
    pub(crate) fn data_sent(&mut self, now: Instant) {
        self.new_handshake
            .get_or_insert(now + KEEPALIVE_TIMEOUT + REKEY_TIMEOUT + self.jitter);
    }

    /// An authentic data message with content was received.
    pub(crate) fn data_received(&mut self, now: Instant) {
        if self.send_keepalive.is_some() {
            self.need_another_keepalive = true;
        } else {
            self.send_keepalive = Some(now + KEEPALIVE_TIMEOUT);
        }
    }

    /// Any authenticated message was sent.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.send_keepalive = None;
        self.traversed(now);
    }

    /// Any authentic message was received.
    pub(crate) fn received(&mut self, now: Instant) {
        self.new_handshake = None;
        self.traversed(now);
    }

    /// Sets how often the peer hears from us at least; `None` turns that off. What is due earlier than the new
    /// interval says stays due.
    pub(crate) fn set_persistent_interval(&mut self, now: Instant, interval: Option<Duration>) {
        self.persistent_interval = interval;
        let running = self.persistent_keepalive.take();
        self.persistent_keepalive = interval
            .map(|interval| now + interval)
            .map(|at| running.map_or(at, |running| running.min(at)));
    }

    pub(crate) const fn persistent_interval(&self) -> Option<Duration> {
        self.persistent_interval
    }

    /// All stop; only settings stay. Used when the interface goes down.
    pub(crate) fn stop(&mut self) {
        *self = Self {
            persistent_interval: self.persistent_interval,
            jitter: self.jitter,
            ..Self::default()
        };
    }

    /// The next handshake need not wait for the last one's 5 s. Used when keys change.
    pub(crate) fn forget_last_handshake(&mut self) {
        self.last_sent_handshake = None;
    }

    /// The same, and the retries of a handshake that can't be answered any more end.
    pub(crate) fn forget_handshake_under_way(&mut self) {
        self.forget_last_handshake();
        self.retransmit_handshake = None;
        self.initiation = None;
    }

    fn traversed(&mut self, now: Instant) {
        if let Some(interval) = self.persistent_interval {
            self.persistent_keepalive = Some(now + interval);
        }
    }

    fn may_initiate(&self, now: Instant) -> bool {
        self.last_sent_handshake
            .is_none_or(|last| now.reached(last, REKEY_TIMEOUT))
    }

    /// The kernel's driver forgets an initiation that comes too soon and waits for the next packet; we send it later.
    fn schedule_initiation(&mut self, now: Instant) {
        let at = match self.last_sent_handshake {
            Some(last) if !self.may_initiate(now) => last + REKEY_TIMEOUT + self.jitter,
            _ => now,
        };
        self.initiation.get_or_insert(at);
    }
}

fn take(timer: &mut Option<Instant>, now: Instant) -> bool {
    timer.take_if(|at| *at <= now).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JITTER: Duration = Duration::from_millis(100);

    fn at(seconds: f64) -> Instant {
        Instant::from_nanos((seconds * 1e9) as u64)
    }

    fn timers() -> Timers {
        Timers::new(JITTER)
    }

    /// Lets time pass until `end`; returns when what was due.
    fn run(timers: &mut Timers, end: Instant) -> Vec<(f64, Due)> {
        let mut all = Vec::new();
        while let Some(now) = timers.next().filter(|next| *next <= end) {
            let due = timers.take_due(now);
            all.push((now.as_nanos() as f64 / 1e9, due));
            if due.initiate {
                timers.initiation_sent(now, JITTER);
            }
        }
        all
    }

    #[test]
    fn handshakes_are_retried_for_a_while_then_given_up_and_keys_wiped() {
        let mut timers = timers();
        timers.want_initiation(at(0.0));
        let all = run(&mut timers, at(2_000.0));
        let initiations = all.iter().filter(|(_, due)| due.initiate).count();
        assert_eq!(initiations as u64, MAX_RETRIES + 2, "as in the kernel");
        let gave_up = all.iter().find(|(_, due)| due.give_up).unwrap().0;
        assert!((100.0..110.0).contains(&gave_up), "{gave_up}");
        let (wiped, due) = all.last().unwrap();
        assert!(due.wipe_keys);
        assert!((wiped - gave_up - 540.0).abs() < 0.01);
        assert_eq!(timers.next(), None, "then silence");
        assert!(!all[0].1.suspect_source && all[1].1.suspect_source);
    }

    #[test]
    fn wanting_more_neither_hurries_nor_ends_the_retries() {
        let mut timers = timers();
        timers.want_initiation(at(0.0));
        let mut sent = Vec::new();
        for tenth in 0..3_000 {
            let now = at(f64::from(tenth) / 10.0);
            timers.want_initiation(now);
            if timers.take_due(now).initiate {
                sent.push(now);
                timers.initiation_sent(now, JITTER);
            }
        }
        assert_eq!(sent.len(), 59, "each 5.1 s for as long as there is traffic");
        assert!(
            sent.windows(2)
                .all(|pair| pair[1].since(pair[0]) >= REKEY_TIMEOUT + JITTER)
        );
    }

    #[test]
    fn an_initiation_waits_for_five_seconds_after_a_response() {
        let mut timers = timers();
        timers.response_sent(at(10.0), JITTER);
        timers.want_initiation(at(11.0));
        assert_eq!(run(&mut timers, at(15.0)), []);
        assert!(run(&mut timers, at(15.2))[0].1.initiate);
        timers.response_sent(at(20.0), JITTER);
        timers.want_initiation(at(21.0));
        timers.handshake_complete();
        assert_eq!(run(&mut timers, at(40.0)), [], "no longer needed");
    }

    #[test]
    fn received_data_is_answered_after_ten_seconds() {
        let mut timers = timers();
        timers.data_received(at(0.0));
        timers.data_received(at(9.0));
        let all = run(&mut timers, at(100.0));
        let times: Vec<f64> = all
            .iter()
            .filter(|(_, due)| due.keepalive)
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(
            times,
            [10.0, 20.0],
            "the second packet came after the timer began"
        );
        timers.data_received(at(200.0));
        timers.sent(at(205.0));
        assert_eq!(
            run(&mut timers, at(300.0)),
            [],
            "what we sent was the answer"
        );
    }

    #[test]
    fn unanswered_data_begins_a_handshake_after_fifteen_seconds() {
        let mut timers = timers();
        timers.data_sent(at(0.0));
        timers.data_sent(at(9.0));
        assert_eq!(run(&mut timers, at(15.0)), []);
        assert!(run(&mut timers, at(15.11))[0].1.initiate);
        timers.handshake_complete();
        timers.data_sent(at(30.0));
        timers.received(at(44.0));
        assert_eq!(run(&mut timers, at(100.0)), []);
    }

    #[test]
    fn a_persistent_keepalive_comes_after_silence_only() {
        let mut timers = timers();
        timers.set_persistent_interval(at(0.0), Some(Duration::from_secs(25)));
        timers.sent(at(0.0));
        timers.received(at(20.0));
        let times: Vec<f64> = run(&mut timers, at(100.0))
            .iter()
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(times, [45.0, 70.0, 95.0]);
        timers.set_persistent_interval(at(100.0), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_persistent_interval_may_be_set_again_while_it_runs() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let mut timers = timers();
        timers.set_persistent_interval(at(0.0), seconds(25));
        timers.set_persistent_interval(at(20.0), seconds(25));
        assert_eq!(timers.next(), Some(at(25.0)), "the same: nothing changes");
        timers.set_persistent_interval(at(20.0), seconds(60));
        assert_eq!(timers.next(), Some(at(25.0)), "longer: after this one");
        assert!(timers.take_due(at(25.0)).keepalive);
        assert_eq!(timers.next(), Some(at(85.0)));
        timers.set_persistent_interval(at(30.0), seconds(10));
        assert_eq!(timers.next(), Some(at(40.0)), "shorter: at once");
    }

    #[test]
    fn a_persistent_keepalive_outlives_giving_up_and_missing_addresses() {
        let mut timers = timers();
        timers.set_persistent_interval(at(0.0), Some(Duration::from_secs(3_600)));
        timers.want_initiation(at(0.0));
        while let Some(now) = timers.next().filter(|now| *now < at(1_000.0)) {
            if timers.take_due(now).initiate {
                timers.initiation_failed(now, JITTER);
            }
        }
        assert_eq!(timers.retransmit_handshake, None, "given up");
        assert!(timers.persistent_keepalive.is_some());
    }

    #[test]
    fn giving_up_ends_the_keepalive_and_lets_keys_live_their_time() {
        let mut timers = timers();
        timers.session_derived(at(0.0));
        timers.want_initiation(at(1.0));
        let mut gave_up = None;
        while gave_up.is_none() {
            // An answer is owed all the time.
            timers.data_received(timers.next().unwrap());
            let now = timers.next().unwrap();
            let due = timers.take_due(now);
            if due.initiate {
                timers.initiation_sent(now, JITTER);
            }
            gave_up = due.give_up.then_some(now);
        }
        assert_eq!(timers.send_keepalive, None);
        assert_eq!(timers.next(), Some(at(540.0)), "by the session's own time");
    }

    #[test]
    fn a_last_minute_handshake_is_wanted_once() {
        let mut timers = timers();
        timers.want_last_minute_initiation(at(165.0));
        assert!(run(&mut timers, at(165.0))[0].1.initiate);
        timers.retransmit_handshake = None;
        timers.want_last_minute_initiation(at(175.0));
        assert_eq!(timers.next(), None);
        timers.handshake_complete();
        timers.want_last_minute_initiation(at(340.0));
        assert!(timers.next().is_some());
    }

    #[test]
    fn a_long_sleep_is_caught_up_in_one_step() {
        let mut timers = timers();
        timers.set_persistent_interval(at(0.0), Some(Duration::from_secs(25)));
        timers.session_derived(at(0.0));
        timers.data_received(at(0.0));
        timers.data_sent(at(0.0));
        let due = timers.take_due(at(10_000.0));
        assert!(due.wipe_keys && due.initiate && due.keepalive && !due.give_up);
        timers.initiation_sent(at(10_000.0), JITTER);
        assert_eq!(timers.next(), Some(at(10_000.0) + REKEY_TIMEOUT + JITTER));
    }

    #[test]
    fn stopped_means_nothing_is_due() {
        let mut timers = timers();
        timers.set_persistent_interval(at(0.0), Some(Duration::from_secs(25)));
        timers.response_sent(at(0.0), JITTER);
        timers.data_sent(at(0.0));
        timers.data_received(at(0.0));
        timers.want_initiation(at(0.0));
        timers.stop();
        assert_eq!(timers.next(), None);
        assert_eq!(timers.persistent_interval(), Some(Duration::from_secs(25)));
    }
}
