//! An interface without network: a real tunnel, and a port and a mark that are only remembered.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use serde_json::{Value, json};
use wirespeed_protocol::{Now, Options, Tunnel};

use super::{End, Interface};

/// A port that is always in use.
pub const PORT_IN_USE: u16 = 1;

/// A mark that is never permitted.
pub const MARK_FORBIDDEN: u32 = 0xdead;

/// The port one gets by asking for any.
pub const ANY_PORT: u16 = 50_000;

/// See the module.
pub struct FakeInterface {
    tunnel: Tunnel,
    port: AtomicU16,
    mark: AtomicU32,
    changes: AtomicUsize,
    ended: OwnedFd,
}

impl FakeInterface {
    /// Without key, peers, port and mark.
    ///
    /// # Panics
    ///
    /// When the system has no descriptor left.
    pub fn new() -> Self {
        Self {
            tunnel: Tunnel::new(Now::default().instant, Options::default(), &mut rand::rng()),
            port: AtomicU16::new(0),
            mark: AtomicU32::new(0),
            changes: AtomicUsize::new(0),
            ended: eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor"),
        }
    }

    /// How often something was changed.
    pub fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }
}

impl Default for FakeInterface {
    fn default() -> Self {
        Self::new()
    }
}

impl Interface for FakeInterface {
    fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    fn now(&self) -> Now {
        Now::default()
    }

    fn listen_port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    fn set_listen_port(&self, port: u16) -> io::Result<()> {
        let port = match port {
            PORT_IN_USE => return Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
            0 => ANY_PORT,
            port => port,
        };
        self.port.store(port, Ordering::Relaxed);
        Ok(())
    }

    fn fwmark(&self) -> u32 {
        self.mark.load(Ordering::Relaxed)
    }

    fn set_fwmark(&self, mark: u32) -> io::Result<()> {
        if mark == MARK_FORBIDDEN {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        self.mark.store(mark, Ordering::Relaxed);
        Ok(())
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn statistics(&self) -> Value {
        json!({ "interface": "fake" })
    }

    fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    fn end(&self) -> Option<End> {
        None
    }
}
