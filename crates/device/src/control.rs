//! How the running device is talked to: the UAPI that `wg` speaks, and a read-only socket for statistics.
//!
//! ```text
//! wg, wg-quick ──→ /var/run/wireguard/NAME.sock ─→ server ─→ uapi ─→ Interface (Tunnel, sockets)
//! facts, people ─→ /run/wirespeed/NAME.stats    ─→ server ─→ statistics ─↗
//! ```

mod get;
pub mod line;
pub mod request;
mod server;
mod set;
mod socket;
pub mod uapi;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fake;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use wirespeed_protocol::{Now, Tunnel};

use self::server::{Connections, Server};
use self::socket::Socket;
pub use self::socket::{SocketError, Watch};
use self::uapi::Uapi;

/// Where `wg` looks for the sockets of userspace interfaces.
pub const UAPI_FOLDER: &str = "/var/run/wireguard";

/// Where the sockets with statistics are.
pub const STATISTICS_FOLDER: &str = "/run/wirespeed";

/// Connections to the UAPI at a time.
const UAPI_PLACES: usize = 16;

/// Connections for statistics at a time.
const STATISTICS_PLACES: usize = 8;

/// What the control sockets need of the device behind them. Called by several threads at once.
pub trait Interface: Send + Sync {
    /// The protocol's state.
    fn tunnel(&self) -> &Tunnel;

    /// Both clocks.
    fn now(&self) -> Now;

    /// The UDP port peers reach us at; 0 while there is none.
    fn listen_port(&self) -> u16;

    /// Moves to this port; 0 for any. Also called for the one it has, which may not have been free before. On an error the old port
    /// stays in use.
    fn set_listen_port(&self, port: u16) -> io::Result<()>;

    /// The mark on what we send; 0 for none.
    fn fwmark(&self) -> u32;

    /// Sets the mark on what we send; 0 for none.
    fn set_fwmark(&self, mark: u32) -> io::Result<()>;

    /// Told after each change by the UAPI: there may be datagrams to send, and the next deadline may be another. While the
    /// interface is down nothing may leave, whatever was set.
    fn changed(&self);

    /// Everything countable, as a JSON object.
    fn statistics(&self) -> Value;

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

/// The sockets of one interface name, taken before anything else is made, so that a second daemon disturbs nothing.
#[derive(Debug)]
pub struct Claim {
    uapi: Socket,
    statistics: Socket,
}

impl Claim {
    /// Takes the name. Whoever connects waits until [`Control::start`].
    pub fn take(interface: &str) -> Result<Self, SocketError> {
        Self::take_in(
            Path::new(UAPI_FOLDER),
            Path::new(STATISTICS_FOLDER),
            interface,
        )
    }

    fn take_in(uapi: &Path, statistics: &Path, interface: &str) -> Result<Self, SocketError> {
        Socket::sweep(statistics, "stats");
        Ok(Self {
            uapi: Socket::listen(&uapi.join(format!("{interface}.sock")), 0o600)?,
            // No secret is in the statistics, and who connects can't change anything.
            statistics: Socket::listen(&statistics.join(format!("{interface}.stats")), 0o666)?,
        })
    }

    /// Sees when somebody removes the file of the UAPI, which is one way to stop a daemon.
    pub fn watch(&self) -> io::Result<Watch> {
        self.uapi.watch()
    }

    /// The folders whose files we have to be able to remove.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        [&self.uapi, &self.statistics]
            .into_iter()
            .filter_map(|socket| socket.path().parent())
            .map(Path::to_owned)
    }
}

/// The sockets of a running device. Dropped, their files are gone.
pub struct Control {
    _uapi: Server,
    _statistics: Server,
}

impl Control {
    /// Answers on the sockets. `more` is added to the interface's statistics each time they are asked for.
    pub fn start(
        claim: Claim,
        interface: Arc<dyn Interface>,
        more: impl Fn(&mut serde_json::Map<String, Value>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let uapi = Arc::new(Uapi::default());
        let uapi_server = Server::start(claim.uapi, "uapi", UAPI_PLACES, {
            let (uapi, interface) = (Arc::clone(&uapi), Arc::clone(&interface));
            Arc::new(move |stream: &UnixStream| uapi.converse(&*interface, stream, stream))
        })?;
        let connections = Arc::clone(uapi_server.connections());
        let tell = move |mut stream: &UnixStream| {
            let mut document = interface.statistics();
            if let Some(object) = document.as_object_mut() {
                object.insert("uapi".to_owned(), uapi_statistics(&uapi, &connections));
                more(object);
            }
            // Who asked and left in the middle needs no answer.
            let _ = writeln!(stream, "{document}");
        };
        let statistics_server = Server::start(
            claim.statistics,
            "statistics",
            STATISTICS_PLACES,
            Arc::new(tell),
        )?;
        Ok(Self {
            _uapi: uapi_server,
            _statistics: statistics_server,
        })
    }
}

fn uapi_statistics(uapi: &Uapi, connections: &Connections) -> Value {
    let mut statistics = uapi.statistics();
    statistics["connections"] = json!({
        "accepted": connections.accepted(),
        "refused": connections.refused(),
    });
    statistics
}
