//! How the running device is talked to: the UAPI that `wg` speaks, and a read-only socket for statistics.
//!
//! ```text
//! wg, wg-quick ──→ /var/run/wireguard/NAME.sock ─→ server ─→ uapi ─→ Interface (Tunnel, sockets)
//! facts, people ─→ /run/wirespeed/NAME.stats    ─→ server ─→ statistics ─↗
//! ```

use std::io;
use std::os::fd::BorrowedFd;

use wirespeed_protocol::{Now, Tunnel};

/// What the control sockets need of the device behind them. Called by several threads at once.
pub trait Interface: Send + Sync {
    /// The protocol's state.
    fn tunnel(&self) -> &Tunnel;

    /// Both clocks.
    fn now(&self) -> Now;

    /// The UDP port peers reach us at; 0 while there is none.
    fn listen_port(&self) -> u16;

    /// Moves to this port; 0 for any. Only called for a change. On an error the old port stays in use.
    fn set_listen_port(&self, port: u16) -> io::Result<()>;

    /// The mark on what we send; 0 for none.
    fn fwmark(&self) -> u32;

    /// Sets the mark on what we send; 0 for none.
    fn set_fwmark(&self, mark: u32) -> io::Result<()>;

    /// Told after each change by the UAPI: there may be datagrams to send, and the next deadline may be another. While the
    /// interface is down nothing may leave, whatever was set.
    fn changed(&self);

    /// Everything countable, as a JSON object.
    fn statistics(&self) -> serde_json::Value;

    /// Becomes readable once the device can't go on: its interface was deleted, or something failed for good.
    fn ended(&self) -> BorrowedFd<'_>;

    /// Why it can't go on; `None` while it can.
    fn end(&self) -> Option<End>;
}

/// Why a device can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Somebody deleted its interface, which is how `wg-quick down` stops a device.
    InterfaceGone,
    /// Something failed for good, in a sentence for the log.
    Failed(String),
}
