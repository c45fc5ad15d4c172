//! The two clocks of the protocol, both read by the caller.

use std::time::Duration;

/// A point on a clock that never goes back and also counts while the machine sleeps (`CLOCK_BOOTTIME`),
/// in nanoseconds since any fixed start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The point this many nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whether `age` or more has passed since `birth`, as seen from here.
    pub(crate) fn reached(self, birth: Self, age: Duration) -> bool {
        self.since(birth) >= age
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// Wall time: what has passed since 1970-01-01 00:00 UTC (`CLOCK_REALTIME`). It may jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(pub Duration);

/// Both clocks, read at about the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For timers and the age of keys.
    pub instant: Instant,
    /// For the timestamp inside a handshake initiation, and to tell users when the last handshake was.
    pub wall: WallTime,
}

/// A TAI64N label: 8 bytes of seconds, 4 of nanoseconds, big-endian, so that later compares as greater.
/// Source: <https://cr.yp.to/libtai/tai64.html>.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tai64n([u8; Self::BYTES]);

impl Tai64n {
    /// Bytes on the wire.
    pub const BYTES: usize = 12;

    /// TAI was ten seconds ahead in 1970; leap seconds since then don't matter to a label that only has to grow.
    const UNIX_EPOCH_SECONDS: u64 = 0x4000_0000_0000_000a;

    /// Nanoseconds are rounded down to this power of two, the largest below 1/50 s, so that the
    /// label says no more of the sender's clock than the peer needs: it takes 50 initiations a second.
    const STEP_NANOS: u32 = 1 << 24;

    /// The label of this wall time, rounded.
    pub fn at(wall: WallTime) -> Self {
        Self::from_parts(
            Self::UNIX_EPOCH_SECONDS.saturating_add(wall.0.as_secs()),
            wall.0.subsec_nanos() & !(Self::STEP_NANOS - 1),
        )
    }

    /// The label of this wall time, or one step after `last` when the wall clock went back or stood still:
    /// the peer takes none that isn't greater than the last.
    pub(crate) fn after(last: Self, wall: WallTime) -> Self {
        Self::at(wall).max(last.next())
    }

    fn next(self) -> Self {
        let (seconds, nanos) = self.parts();
        let stepped = (nanos & !(Self::STEP_NANOS - 1)).saturating_add(Self::STEP_NANOS);
        if stepped < 1_000_000_000 {
            Self::from_parts(seconds, stepped)
        } else {
            Self::from_parts(seconds.saturating_add(1), 0)
        }
    }

    fn parts(self) -> (u64, u32) {
        let b = self.0;
        (
            u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            u32::from_be_bytes([b[8], b[9], b[10], b[11]]),
        )
    }

    fn from_parts(seconds: u64, nanos: u32) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&seconds.to_be_bytes());
        bytes[8..].copy_from_slice(&nanos.to_be_bytes());
        Self(bytes)
    }

    /// The label in these bytes; any bytes are a label.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// As on the wire.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(seconds: u64, nanos: u32) -> WallTime {
        WallTime(Duration::new(seconds, nanos))
    }

    #[test]
    fn a_label_has_the_epoch_of_tai_and_rounded_nanoseconds() {
        let label = Tai64n::at(wall(1, 0x0300_0001));
        assert_eq!(
            label.as_bytes(),
            &[0x40, 0, 0, 0, 0, 0, 0, 0x0b, 0x03, 0, 0, 0]
        );
    }

    #[test]
    fn later_labels_compare_as_greater() {
        assert!(Tai64n::at(wall(2, 0)) > Tai64n::at(wall(1, 999_999_999)));
        assert!(Tai64n::at(wall(2, 0x0200_0000)) > Tai64n::at(wall(2, 0x0100_0000)));
    }

    #[test]
    fn labels_grow_though_the_wall_clock_goes_back() {
        let mut last = Tai64n::at(wall(1_000, 0));
        for back in 0..200 {
            let next = Tai64n::after(last, wall(1_000 - back, 0));
            assert!(next > last, "{next:?} after {last:?}");
            let (_, nanos) = next.parts();
            assert!(nanos < 1_000_000_000);
            last = next;
        }
    }

    #[test]
    fn an_instant_neither_wraps_nor_goes_negative() {
        let end = Instant::from_nanos(u64::MAX - 1);
        assert_eq!(end + Duration::from_secs(9), Instant::from_nanos(u64::MAX));
        assert_eq!(Instant::default().since(end), Duration::ZERO);
    }
}
