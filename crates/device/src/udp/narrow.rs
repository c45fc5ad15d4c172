//! Destinations whose path takes shorter packets than ours are: trains of such packets are not worth trying for a while.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long it is remembered. After that one train is tried, since paths change.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Destinations remembered at once. Beyond that the oldest is forgotten, which costs it a failed system call.
const MAX_DESTINATIONS: usize = 64;

/// The narrow paths that are known.
#[derive(Debug, Default)]
pub(super) struct NarrowPaths {
    /// Whether there are any, so that nobody has to lock when there are none.
    any: AtomicBool,
    paths: Mutex<Vec<Path>>,
}

#[derive(Debug)]
struct Path {
    to: IpAddr,
    longest: usize,
    until: Instant,
}

impl NarrowPaths {
    /// Bytes of the longest datagram that may travel in a train to this address.
    pub(super) fn longest(&self, to: IpAddr) -> usize {
        if !self.any.load(Ordering::Relaxed) {
            return usize::MAX;
        }
        self.longest_at(to, Instant::now())
    }

    /// Remembers that trains with longer datagrams fail.
    pub(super) fn remember(&self, to: IpAddr, longest: usize) {
        self.remember_at(to, longest, Instant::now());
    }

    fn longest_at(&self, to: IpAddr, now: Instant) -> usize {
        let mut paths = self.paths();
        paths.retain(|path| path.until > now);
        self.any.store(!paths.is_empty(), Ordering::Relaxed);
        let known = paths.iter().find(|path| path.to == to);
        known.map_or(usize::MAX, |path| path.longest)
    }

    fn remember_at(&self, to: IpAddr, longest: usize, now: Instant) {
        let mut paths = self.paths();
        paths.retain(|path| path.to != to);
        if paths.len() >= MAX_DESTINATIONS {
            paths.remove(0);
        }
        let until = now + REMEMBERED;
        paths.push(Path { to, longest, until });
        self.any.store(true, Ordering::Relaxed);
    }

    fn paths(&self) -> MutexGuard<'_, Vec<Path>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn a_narrow_path_is_remembered_for_a_while() {
        let paths = NarrowPaths::default();
        let now = Instant::now();
        assert_eq!(paths.longest(address(1)), usize::MAX);
        paths.remember_at(address(1), 1232, now);
        assert_eq!(paths.longest(address(1)), 1232);
        assert_eq!(paths.longest(address(2)), usize::MAX);
        paths.remember_at(address(1), 548, now);
        assert_eq!(paths.longest(address(1)), 548);
        assert_eq!(paths.longest_at(address(1), now + REMEMBERED), usize::MAX);
        assert!(!paths.any.load(Ordering::Relaxed));
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let paths = NarrowPaths::default();
        for last in 0..=MAX_DESTINATIONS as u8 {
            paths.remember(address(last), 1000);
        }
        assert_eq!(paths.longest(address(0)), usize::MAX);
        assert_eq!(paths.longest(address(1)), 1000);
        assert_eq!(paths.longest(address(MAX_DESTINATIONS as u8)), 1000);
    }
}
