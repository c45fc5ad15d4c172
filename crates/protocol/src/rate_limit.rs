//! How many handshakes one source may start while we are busy: 20 a second, 5 at once.
//!
//! A source is an IPv4 address or an IPv6 /64, because whoever has one address of a /64 has all.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::time::Instant;

const PACKETS_PER_SECOND: u64 = 20;
const BURST: u64 = 5;
const COST: Duration = Duration::from_nanos(1_000_000_000 / PACKETS_PER_SECOND);
const FULL: Duration = Duration::from_nanos(COST.as_nanos() as u64 * BURST);

/// A bucket untouched for this long is full again, so forgetting it changes nothing.
const FORGET_AFTER: Duration = Duration::from_secs(1);

/// Sources remembered at once. Further ones are refused: they come faster than anyone could answer.
const MAX_SOURCES: usize = 65_536;

/// Token buckets by source. A tree and no hash table: its order can't be attacked and needs no random seed.
#[derive(Default)]
pub(crate) struct RateLimiter {
    buckets: BTreeMap<Source, Bucket>,
    swept: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    V4(u32),
    V6Net(u64),
}

struct Bucket {
    /// Time saved up; a packet costs [`COST`].
    saved: Duration,
    last: Instant,
}

impl RateLimiter {
    /// Whether a packet from this address may be worked on now. `address` is in canonical form (no v4-mapped).
    pub(crate) fn allow(&mut self, now: Instant, address: IpAddr) -> bool {
        if now.reached(self.swept, FORGET_AFTER) {
            self.sweep(now);
        }
        let source = match address {
            IpAddr::V4(v4) => Source::V4(v4.to_bits()),
            IpAddr::V6(v6) => Source::V6Net((v6.to_bits() >> 64) as u64),
        };
        if let Some(bucket) = self.buckets.get_mut(&source) {
            bucket.saved = FULL.min(bucket.saved + now.since(bucket.last));
            bucket.last = bucket.last.max(now);
            if bucket.saved < COST {
                return false;
            }
            bucket.saved -= COST;
            return true;
        }
        if self.buckets.len() >= MAX_SOURCES {
            return false;
        }
        let bucket = Bucket {
            saved: FULL.saturating_sub(COST),
            last: now,
        };
        self.buckets.insert(source, bucket);
        true
    }

    /// Forgets sources that have been quiet.
    fn sweep(&mut self, now: Instant) {
        self.swept = now;
        self.buckets
            .retain(|_, bucket| !now.reached(bucket.last, FORGET_AFTER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn five_at_once_then_one_each_50_ms() {
        let mut limiter = RateLimiter::default();
        let source = ip("192.0.2.1");
        let burst: Vec<bool> = (0..7).map(|_| limiter.allow(at(0), source)).collect();
        assert_eq!(burst, [true, true, true, true, true, false, false]);
        assert!(!limiter.allow(at(49), source));
        assert!(limiter.allow(at(50), source));
        assert!(!limiter.allow(at(51), source));
        assert!(limiter.allow(at(100), source));
        let later = (0..7).filter(|_| limiter.allow(at(5_000), source)).count();
        assert_eq!(later, 5, "saved up, but no more than a burst");
    }

    #[test]
    fn over_time_twenty_a_second() {
        let mut limiter = RateLimiter::default();
        let allowed = (0..10_000)
            .filter(|ms| limiter.allow(at(*ms), ip("192.0.2.1")))
            .count();
        assert!((200..=205).contains(&allowed), "{allowed}");
    }

    #[test]
    fn a_v4_address_stands_alone_and_a_v6_net_together() {
        let mut limiter = RateLimiter::default();
        for _ in 0..5 {
            assert!(limiter.allow(at(0), ip("192.0.2.1")));
            assert!(limiter.allow(at(0), ip("2001:db8::1")));
        }
        assert!(limiter.allow(at(0), ip("192.0.2.2")));
        assert!(!limiter.allow(at(0), ip("2001:db8::2:3")));
        assert!(limiter.allow(at(0), ip("2001:db8:0:1::1")));
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let mut limiter = RateLimiter::default();
        for number in 0..MAX_SOURCES as u32 + 100 {
            let allowed = limiter.allow(at(10), IpAddr::from(number.to_be_bytes()));
            assert_eq!(allowed, (number as usize) < MAX_SOURCES);
        }
        assert!(limiter.allow(at(2_000), ip("198.51.100.1")));
        assert_eq!(limiter.buckets.len(), 1);
    }
}
