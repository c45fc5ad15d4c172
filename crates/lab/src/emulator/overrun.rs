//! A road that gives up above a rate: carried on for longer than its small buffer bears, it carries a part only for a
//! while, as modems, policers and overrun machines do. It reads no clock.

use std::time::{Duration, Instant};

/// How long above its rate the road bears it.
const BURST: Duration = Duration::from_millis(40);

/// How long it then takes to recover.
const PENALTY: Duration = Duration::from_millis(250);

/// What it carries meanwhile, of its rate.
const PENALTY_SHARE: f64 = 0.25;

/// Does the road still carry, or has it given up?
#[derive(Debug)]
pub(super) struct Overrun {
    /// Bytes per second.
    rate: f64,
    /// Bytes that may pass at once now.
    tokens: f64,
    counted: Instant,
    given_up_until: Option<Instant>,
}

impl Overrun {
    pub(super) fn new(bits_per_second: u64, now: Instant) -> Overrun {
        let rate = bits_per_second as f64 / 8.0;
        Overrun {
            rate,
            tokens: rate * BURST.as_secs_f64(),
            counted: now,
            given_up_until: None,
        }
    }

    /// May a packet of that many bytes pass?
    pub(super) fn passes(&mut self, bytes: usize, now: Instant) -> bool {
        if self.given_up_until.is_some_and(|until| until <= now) {
            self.given_up_until = None;
        }
        let rate = match self.given_up_until {
            Some(_) => self.rate * PENALTY_SHARE,
            None => self.rate,
        };
        let since = now.saturating_duration_since(self.counted).as_secs_f64();
        self.tokens = (self.tokens + rate * since).min(rate * BURST.as_secs_f64());
        self.counted = now;
        if self.tokens >= bytes as f64 {
            self.tokens -= bytes as f64;
            return true;
        }
        if self.given_up_until.is_none() {
            self.given_up_until = Some(now + PENALTY);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of what was offered at a rate that passes a road of 8 Mbit/s within two seconds.
    fn carried(bits_per_second: f64) -> f64 {
        const BYTES: usize = 1000;
        let start = Instant::now();
        let mut road = Overrun::new(8_000_000, start);
        let gap = BYTES as f64 * 8.0 / bits_per_second;
        let sent = (2.0 / gap) as u32;
        let at = |i: u32| start + Duration::from_secs_f64(gap * f64::from(i));
        let passed = (0..sent).filter(|i| road.passes(BYTES, at(*i))).count();
        passed as f64 / f64::from(sent)
    }

    #[test]
    fn below_its_rate_it_carries_all_and_above_it_less_than_before() {
        assert!((carried(7_900_000.0) - 1.0).abs() < 1e-9);
        let above = carried(10_000_000.0) * 10.0;
        assert!((2.0..6.0).contains(&above), "{above} Mbit/s");
    }
}
