//! How far apart the two cores are just now: the time a cache line takes to the other core and back.
//!
//! A virtual machine's cores may share a physical core at one moment and lie on two sockets at the next, which moves every
//! figure of a tunnel whose ends run on both. So this is measured beside each sample.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Round trips timed in one go, and how often.
const ROUND_TRIPS: u32 = 1_000;
const BATCHES: u32 = 11;
/// A machine that lends us its cores may stop one of them for long.
const AT_MOST: Duration = Duration::from_millis(300);

/// A ball on a cache line of its own; neighbouring lines are fetched in pairs.
#[repr(align(128))]
struct Ball(AtomicU32);

/// Nanoseconds of one round trip between the first two cores we may use (median of eleven batches); `None` with one core, or
/// when the cores were not there for us.
pub(crate) fn core_to_core() -> Option<f64> {
    let [first, second] = two_cores()?;
    let there = Ball(AtomicU32::new(0));
    let back = Ball(AtomicU32::new(0));
    let given_up = AtomicBool::new(false);
    let deadline = Instant::now() + AT_MOST;
    let awaits = |ball: &Ball, value: u32| {
        let mut looks = 0_u32;
        while ball.0.load(Ordering::Acquire) != value {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(4_096)
                && (given_up.load(Ordering::Relaxed) || Instant::now() > deadline)
            {
                given_up.store(true, Ordering::Relaxed);
                return false;
            }
            std::hint::spin_loop();
        }
        true
    };
    let all = ROUND_TRIPS * BATCHES;
    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            pin(second)?;
            for ball in 1..=all {
                if !awaits(&there, ball) {
                    return None;
                }
                back.0.store(ball, Ordering::Release);
            }
            Some(())
        });
        let asks = scope.spawn(|| {
            pin(first)?;
            let mut batches = Vec::new();
            let mut ball = 0;
            for _ in 0..BATCHES {
                let begun = Instant::now();
                for _ in 0..ROUND_TRIPS {
                    ball += 1;
                    there.0.store(ball, Ordering::Release);
                    if !awaits(&back, ball) {
                        return None;
                    }
                }
                batches.push(begun.elapsed().as_nanos() as f64 / f64::from(ROUND_TRIPS));
            }
            wirespeed_measure::statistics::median(&batches)
        });
        answers.join().ok()??;
        asks.join().ok()?
    })
}

/// The first two cores this process may use.
pub(crate) fn two_cores() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let mut cores = (0..CpuSet::count()).filter(|&core| allowed.is_set(core).unwrap_or(false));
    Some([cores.next()?, cores.next()?])
}

fn pin(core: usize) -> Option<()> {
    let mut only = CpuSet::new();
    only.set(core).ok()?;
    sched_setaffinity(Pid::from_raw(0), &only).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_and_is_plausible() {
        let begun = Instant::now();
        if let Some(nanoseconds) = core_to_core() {
            assert!(nanoseconds > 1.0 && nanoseconds < 1e6, "{nanoseconds}");
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
