//! What holds packets: first in, first out, each with the moment at which it is due. It reads no clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most that a direction holds, in bytes: a quarter of a second at 2 Gbit/s.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Fewest packets that a direction can hold, however short its delay.
const FEWEST_PACKETS: usize = 4096;

/// Full-size packets per second at 10 Gbit/s, more than any road here.
const PACKETS_PER_SECOND: f64 = 830_000.0;

/// How many packets a delay may hold: what a 10 Gbit/s road would bring within it.
pub fn packets_held(delay: Duration) -> usize {
    ((delay.as_secs_f64() * PACKETS_PER_SECOND) as usize).max(FEWEST_PACKETS)
}

/// Packets in order with the moment each is due.
#[derive(Debug)]
pub struct DelayLine {
    delay: Duration,
    held: VecDeque<(Instant, Vec<u8>)>,
    /// Buffers of packets that have left.
    spare: Vec<Vec<u8>>,
    bytes: usize,
    most_packets: usize,
    most_bytes: usize,
}

/// What a direction has lost, for whoever reports it.
#[derive(Debug, Default)]
pub(super) struct Counts {
    dropped: AtomicU64,
}

impl Counts {
    pub(super) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl DelayLine {
    /// Holds packets for `delay`, as many as a 10 Gbit/s road would bring in that time, and no more than 64 MiB.
    pub fn new(delay: Duration) -> DelayLine {
        DelayLine {
            delay,
            held: VecDeque::new(),
            spare: Vec::new(),
            bytes: 0,
            most_packets: packets_held(delay),
            most_bytes: MOST_BYTES,
        }
    }

    /// Takes a packet that came at `now`; false when there is no room and it is lost.
    pub fn push(&mut self, packet: &[u8], now: Instant) -> bool {
        if self.held.len() >= self.most_packets || self.bytes + packet.len() > self.most_bytes {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(packet);
        self.bytes += buffer.len();
        self.held.push_back((now + self.delay, buffer));
        true
    }

    /// When the next packet is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.held.front().map(|(due, _)| *due)
    }

    /// The next packet that is due at `now`; hand it back to [`DelayLine::recycle`].
    pub fn pop_due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.next_due()? > now {
            return None;
        }
        let (_, buffer) = self.held.pop_front()?;
        self.bytes -= buffer.len();
        Some(buffer)
    }

    /// Gives a buffer back for a later packet.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < FEWEST_PACKETS {
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_leaves_when_its_time_has_come_and_not_before() {
        let start = Instant::now();
        let mut line = DelayLine::new(Duration::from_millis(20));
        assert!(line.push(b"one", start));
        assert_eq!(line.next_due(), Some(start + Duration::from_millis(20)));
        assert_eq!(line.pop_due(start + Duration::from_micros(19_999)), None);
        assert_eq!(
            line.pop_due(start + Duration::from_millis(20)).as_deref(),
            Some(&b"one"[..])
        );
        assert_eq!(line.next_due(), None);
    }

    #[test]
    fn beyond_its_bound_it_refuses() {
        let start = Instant::now();
        let mut line = DelayLine {
            most_packets: 2,
            ..DelayLine::new(Duration::ZERO)
        };
        assert!(line.push(b"a", start) && line.push(b"b", start));
        assert!(!line.push(b"c", start));
        line.pop_due(start);
        assert!(line.push(b"c", start));
        let mut line = DelayLine {
            most_bytes: 3,
            ..DelayLine::new(Duration::ZERO)
        };
        assert!(line.push(b"aa", start));
        assert!(!line.push(b"bb", start));
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_is_early(gaps in prop::collection::vec(0_u64..2000, 1..100), delay in 0_u64..5000) {
            let delay = Duration::from_micros(delay);
            let mut line = DelayLine::new(delay);
            let mut now = Instant::now();
            let mut came = Vec::new();
            let mut left = 0_usize;
            for (i, gap) in gaps.iter().enumerate() {
                now += Duration::from_micros(*gap);
                line.push(&i.to_le_bytes(), now);
                came.push(now);
                while let Some(packet) = line.pop_due(now) {
                    prop_assert_eq!(&packet[..], &left.to_le_bytes()[..]);
                    prop_assert!(came[left] + delay <= now);
                    left += 1;
                    line.recycle(packet);
                }
            }
            prop_assert_eq!(left, came.iter().filter(|c| **c + delay <= now).count());
        }
    }
}
