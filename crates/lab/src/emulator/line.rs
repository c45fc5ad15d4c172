//! What holds packets: first in, first out, each with the moment at which it is due. It reads no clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Direction;
use super::overrun::Overrun;

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

/// What a direction does with packets: three lines, since each holds its packets for one time only.
#[derive(Debug)]
pub(super) struct Lines {
    /// On time, longer than others, and a second time.
    held: [DelayLine; 3],
    reorder: u32,
    duplicate: u32,
    overrun: Option<Overrun>,
    overrun_udp: bool,
}

impl Lines {
    pub(super) fn new(direction: &Direction, now: Instant) -> Lines {
        let later = |by: Duration| DelayLine::new(direction.delay + by);
        Lines {
            held: [
                later(Duration::ZERO),
                later(direction.reorder_by),
                later(direction.duplicate_by),
            ],
            reorder: direction.reorder,
            duplicate: direction.duplicate,
            overrun: direction.collapse_above.map(|rate| Overrun::new(rate, now)),
            overrun_udp: direction.collapse_udp,
        }
    }

    /// Takes a packet that came at `now`; false when there is no room for it. `chance` is drawn anew for each, 0 to a
    /// million.
    pub(super) fn push(
        &mut self,
        packet: &[u8],
        now: Instant,
        mut chance: impl FnMut() -> u32,
    ) -> bool {
        if let Some(overrun) = &mut self.overrun
            && (!self.overrun_udp || is_udp(packet))
            && !overrun.passes(packet.len(), now)
        {
            // That is what the road is like, and no fault of the emulator's.
            return true;
        }
        let [on_time, late, again] = &mut self.held;
        if self.duplicate > 0 && chance() < self.duplicate {
            again.push(packet, now);
        }
        if self.reorder > 0 && chance() < self.reorder {
            late.push(packet, now)
        } else {
            on_time.push(packet, now)
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.iter().filter_map(DelayLine::next_due).min()
    }

    /// The next packet that is due at `now`, and its line to hand it back to.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Vec<u8>, &mut DelayLine)> {
        let next = self
            .held
            .iter_mut()
            .filter(|line| line.next_due().is_some_and(|due| due <= now))
            .min_by_key(|line| line.next_due())?;
        Some((next.pop_due(now)?, next))
    }
}

/// Does an IPv4 packet carry UDP?
fn is_udp(packet: &[u8]) -> bool {
    packet.get(9) == Some(&17)
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

    fn left(direction: &str, packets: u8) -> Vec<u8> {
        let start = Instant::now();
        let mut lines = Lines::new(&direction.parse().unwrap(), start);
        let mut dice = (0..).map(|n| n * 100_000 % 1_000_000);
        for packet in 0..packets {
            let came = start + Duration::from_millis(packet.into());
            assert!(lines.push(&[packet], came, || dice.next().unwrap()));
        }
        let mut left = Vec::new();
        while let Some((packet, line)) = lines.pop_due(start + Duration::from_secs(1)) {
            left.push(packet[0]);
            line.recycle(packet);
        }
        left
    }

    #[test]
    fn some_are_overtaken_and_some_come_twice() {
        assert_eq!(left("x:20000us", 4), [0, 1, 2, 3]);
        // Of ten throws the first is lowest.
        assert_eq!(
            left("x:20000us,reorder=100000/2500us", 11)[..5],
            [1, 2, 0, 3, 4]
        );
        assert_eq!(left("x:20000us,duplicate=1000000/500us", 2), [0, 0, 1, 1]);
    }

    #[test]
    fn what_a_road_gives_up_on_is_lost_without_a_count() {
        let start = Instant::now();
        let mut lines = Lines::new(&"x:0us,collapse=8bit".parse().unwrap(), start);
        assert!(lines.push(b"large", start, || 0));
        assert_eq!(lines.next_due(), None);
        let mut lines = Lines::new(&"x:0us,collapse-udp=8bit".parse().unwrap(), start);
        let [udp, tcp] = [17, 6].map(|protocol| [protocol; 20]);
        assert!(lines.push(&udp, start, || 0));
        assert_eq!(lines.next_due(), None);
        assert!(lines.push(&tcp, start, || 0));
        assert_eq!(lines.next_due(), Some(start));
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
