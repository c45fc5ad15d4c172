//! A bell: wakes a thread that waits for descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd, readable from the first ring until it is cleared.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Any number of rings before the next [`clear`](Self::clear) are one.
    pub(crate) fn ring(&self) {
        // It only fails when it has been rung 2^64 times and rings anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
