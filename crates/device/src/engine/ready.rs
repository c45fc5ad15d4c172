//! Waiting for descriptors.

use std::io;
use std::ops::{BitOr, BitOrAssign};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// What has something for us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready(u64);

impl Ready {
    pub(crate) const NOTHING: Self = Self(0);
    /// Somebody wants us to look at something else.
    pub(crate) const BELL: Self = Self(1);
    pub(crate) const TUN: Self = Self(2);
    /// The sockets at the listen port.
    pub(crate) const LISTENING: Self = Self(4);
    /// The sockets at the worker's own port.
    pub(crate) const OWN: Self = Self(8);

    pub(crate) const fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }

    pub(crate) fn clear(&mut self, what: Self) {
        self.0 &= !what.0;
    }
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A bell, a TUN queue, and twice two sockets.
const MAX_EVENTS: usize = 6;

const NO_EVENT: Event = Event {
    flags: EventFlags::empty(),
    data: EventData::new_u64(0),
};

/// The descriptors of one thread. Level-triggered: what isn't read to the end is told of again.
pub(crate) struct Waiter {
    epoll: OwnedFd,
}

impl Waiter {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    pub(crate) fn add(&self, descriptor: impl AsFd, what: Ready) -> io::Result<()> {
        let data = EventData::new_u64(what.0);
        epoll::add(&self.epoll, descriptor, data, EventFlags::IN)?;
        Ok(())
    }

    /// To be called before a descriptor is closed that somebody else may keep open.
    pub(crate) fn remove(&self, descriptor: impl AsFd) {
        // It isn't there if adding it had failed.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// Sleeps until something is ready.
    pub(crate) fn wait(&self) -> io::Result<Ready> {
        self.ask(None)
    }

    /// What is ready now.
    pub(crate) fn look(&self) -> io::Result<Ready> {
        self.ask(Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }))
    }

    fn ask(&self, timeout: Option<&Timespec>) -> io::Result<Ready> {
        let mut events = [NO_EVENT; MAX_EVENTS];
        let number = match epoll::wait(&self.epoll, &mut events[..], timeout) {
            Ok(number) => number,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let all = events[..number].iter();
        Ok(all
            .map(|event| Ready(event.data.u64()))
            .fold(Ready::NOTHING, BitOr::bitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bell::Bell;

    #[test]
    fn bells_are_heard_until_cleared() {
        let (bell, other) = (Bell::new().unwrap(), Bell::new().unwrap());
        let waiter = Waiter::new().unwrap();
        waiter.add(&bell, Ready::BELL).unwrap();
        waiter.add(&other, Ready::TUN).unwrap();
        assert_eq!(waiter.look().unwrap(), Ready::NOTHING);
        bell.ring();
        bell.ring();
        assert_eq!(waiter.wait().unwrap(), Ready::BELL);
        other.ring();
        assert_eq!(waiter.look().unwrap(), Ready::BELL | Ready::TUN);
        bell.clear();
        waiter.remove(&other);
        assert_eq!(waiter.look().unwrap(), Ready::NOTHING);
    }
}
