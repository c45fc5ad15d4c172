//! How many cookies are sent: 20 a second to one source, and 20,000 to all.
//!
//! A reply is less than half of what it answers, but goes wherever a forged source address says; so nobody shall be
//! flooded by way of us. In a flood each message comes from another source, so that a bucket for each would be
//! lost work. A source shares one of 4,096 counts with others instead: by chance, drawn anew with each tunnel, so that
//! nobody can aim at the one of an honest peer.
//!
//! Sending a reply costs more than all else that a forged message makes us do, as much as a few packets of somebody's
//! traffic; so there is a limit for all of them together. In a flood of 50,000 messages a second a peer's has two chances
//! in five, and a peer asks every five seconds: before its session has ended it asked a dozen times.

use std::net::IpAddr;
use std::time::Duration;

use rand_core::CryptoRng;

use crate::time::Instant;

const REPLIES_PER_SECOND: u8 = 20;
const COUNTS: usize = 1 << COUNT_BITS;
const COUNT_BITS: u32 = 12;

/// A reply to anybody takes this of the time saved up: 20,000 a second.
const COST: Duration = Duration::from_micros(50);

/// As much is saved up: so many may ask at once, after we were away for instance.
const SAVED_AT_MOST: Duration = Duration::from_millis(100);

/// After this all counts begin again.
const PERIOD: Duration = Duration::from_secs(1);

pub(crate) struct ReplyLimiter {
    counts: Box<[u8; COUNTS]>,
    began: Instant,
    saved: Duration,
    last: Instant,
    /// Of a universal hash: multiply, add, and take the upper bits.
    factor: u128,
    addend: u128,
}

impl ReplyLimiter {
    pub(crate) fn new(now: Instant, rng: &mut dyn CryptoRng) -> Self {
        let mut draw = || u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        Self {
            counts: Box::new([0; COUNTS]),
            began: now,
            saved: SAVED_AT_MOST,
            last: now,
            factor: draw(),
            addend: draw(),
        }
    }

    /// Whether a cookie may be sent to this address now; counts it if so. `address` is in canonical form.
    pub(crate) fn allow(&mut self, now: Instant, address: IpAddr) -> bool {
        if now.reached(self.began, PERIOD) {
            self.counts.fill(0);
            self.began = now;
        }
        self.saved = SAVED_AT_MOST.min(self.saved + now.since(self.last));
        self.last = self.last.max(now);
        let Some(left) = self.saved.checked_sub(COST) else {
            return false;
        };
        let count = &mut self.counts[self.place(address)];
        if *count >= REPLIES_PER_SECOND {
            return false;
        }
        *count += 1;
        self.saved = left;
        true
    }

    /// Whoever has one address of an IPv6 /64 has all.
    fn place(&self, address: IpAddr) -> usize {
        let source = match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits() >> 64,
        };
        let hash = self.factor.wrapping_mul(source).wrapping_add(self.addend);
        (hash >> (u128::BITS - COUNT_BITS)) as usize
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn limiter(seed: u64) -> ReplyLimiter {
        ReplyLimiter::new(Instant::default(), &mut StdRng::seed_from_u64(seed))
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_source_is_answered_twenty_times_a_second() {
        let mut limiter = limiter(1);
        let source = "192.0.2.1".parse().unwrap();
        for second in [0, 1_000, 2_500] {
            let allowed = (0..100)
                .filter(|_| limiter.allow(at(second), source))
                .count();
            assert_eq!(allowed, 20);
        }
    }

    #[test]
    fn a_v6_net_is_one_source() {
        let mut limiter = limiter(2);
        let allowed = (0..100u128)
            .filter(|host| {
                let address = 0x2001_0db8 << 96 | host;
                limiter.allow(at(0), IpAddr::V6(address.into()))
            })
            .count();
        assert_eq!(allowed, 20);
    }

    #[test]
    fn in_a_flood_of_50_000_a_second_an_honest_source_gets_its_cookie_soon() {
        let mut rng = StdRng::seed_from_u64(3);
        let (mut answered, mut sent) = (0, 0);
        for seed in 0..100 {
            let mut limiter = limiter(seed);
            // It comes at any moment of the second second.
            let honest = rng.random_range(50_000..100_000);
            for message in 0..100_000u64 {
                let now = at(message / 50);
                sent += u32::from(limiter.allow(now, IpAddr::from(rng.random::<[u8; 4]>())));
                if message == honest {
                    answered += u32::from(limiter.allow(now, "192.0.2.1".parse().unwrap()));
                }
            }
        }
        assert!((25..=55).contains(&answered), "{answered} of 100");
        assert!(sent <= 100 * 42_000, "{sent} in 200 seconds");
    }

    #[test]
    fn a_crowd_that_comes_at_once_is_answered_at_once() {
        let mut limiter = limiter(4);
        let mut crowd = |second: u64| {
            (0..2_500u32)
                .filter(|host| limiter.allow(at(second * 1_000), IpAddr::from(host.to_be_bytes())))
                .count()
        };
        assert_eq!([crowd(0), crowd(1)], [2_000; 2]);
    }

    #[test]
    fn neighbours_are_spread_over_all_counts() {
        for seed in 0..5 {
            let limiter = limiter(seed);
            let mut used = vec![0u32; COUNTS];
            for host in 0..65_536u32 {
                used[limiter.place(IpAddr::from((10 << 24 | host).to_be_bytes()))] += 1;
            }
            let most = used.iter().max().unwrap();
            assert!(*most < 160, "{most} where 16 would be even");
        }
    }
}
