//! Stopping early, and telling how far a measurement is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A flag that ends a measurement: checked between samples and inside every wait, so that a measurement
/// ends within a second of [`Stop::stop`] with its children gone. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks every holder of a clone to end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Was [`Stop::stop`] called?
    pub fn stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps unless stopped; `false` = stopped meanwhile.
    pub fn sleep(&self, duration: Duration) -> bool {
        let until = Instant::now() + duration;
        loop {
            if self.stopped() {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Hears how far a measurement is.
pub trait Progress: Send + Sync {
    /// `what` is being done, `done` (0 to 1) of the whole is over, about `seconds_left` remain.
    fn step(&self, what: &str, done: f64, seconds_left: f64);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn step(&self, _what: &str, _done: f64, _seconds_left: f64) {}
}

impl<F: Fn(&str, f64, f64) + Send + Sync> Progress for F {
    fn step(&self, what: &str, done: f64, seconds_left: f64) {
        self(what, done, seconds_left);
    }
}
