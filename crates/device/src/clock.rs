//! The clocks, read once a batch.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use wirespeed_protocol::{Instant, Now, WallTime};

/// Both clocks. `CLOCK_BOOTTIME` also counts while the machine sleeps, so that keys age meanwhile.
pub(crate) fn now() -> Now {
    let boot = since_start(clock_gettime(ClockId::Boottime));
    Now {
        instant: Instant::from_nanos(u64::try_from(boot.as_nanos()).unwrap_or(u64::MAX)),
        wall: WallTime(since_start(clock_gettime(ClockId::Realtime))),
    }
}

/// A time before the clock's start (a wall clock set to before 1970) counts as the start.
fn since_start(time: Timespec) -> Duration {
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes() {
        let before = now();
        std::thread::sleep(Duration::from_millis(2));
        let after = now();
        assert!(after.instant.since(before.instant) >= Duration::from_millis(2));
        assert!(after.wall.0.as_secs() > 1_700_000_000);
    }
}
