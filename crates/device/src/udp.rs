//! The outer sockets: sealed batches out as GSO trains, trains in by GRO.
//!
//! ```text
//! out: Outgoing → cut into trains → sendmmsg           (a train refused: its datagrams singly)
//! in:  recvmmsg → messages → datagrams of each train → Datagram
//! ```
//!
//! Each worker has [`Sockets`] of its own; any thread may send by them. Nothing is allocated for a batch. A destination that
//! can't be reached is a counted failure of that batch; the sockets go on.

mod address;
mod control;
mod narrow;
mod open;
mod probe;
mod receive;
mod send;
mod sys;
mod trains;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use wirespeed_protocol::Outgoing;

pub use self::address::LocalAddress;
pub use self::receive::{Datagram, Received};
pub use self::send::Sent;

use self::address::Family;
use self::send::{Road, Sender};
use self::trains::Train;
use crate::offloads::Offloads;

/// How often a pair of free ports is looked for, as in the kernel's driver.
const PORT_TRIES: u32 = 100;

/// Messages with nothing in them that one call of [`Sockets::receive`] passes over.
const MAX_EMPTY: u32 = 16;

/// How sockets are to be bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BindOptions {
    /// The port, the same for IPv4 and IPv6; 0 lets the kernel choose.
    pub port: u16,
    /// The mark that routing and firewall rules see on what is sent; 0 is none.
    pub fwmark: u32,
    /// Whether other sockets of this user may have the same port (`SO_REUSEPORT`).
    pub share_port: bool,
}

/// Sockets that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum UdpError {
    /// Another program has the port.
    #[error(
        "UDP port {port} is taken ({family}): give another listen-port, or see with `ss -ulpn sport = :{port}` who has it"
    )]
    PortTaken {
        /// The port asked for; 0 when no free one was found.
        port: u16,
        /// IPv4 or IPv6.
        family: String,
    },
    /// The machine has neither IPv4 nor IPv6.
    #[error("this machine offers UDP neither over IPv4 ({v4}) nor over IPv6 ({v6})")]
    NoFamily {
        /// What it said when asked for IPv4.
        v4: io::Error,
        /// What it said when asked for IPv6.
        v6: io::Error,
    },
    /// Anything else.
    #[error("opening a UDP socket on port {port} ({family}) failed: {source}")]
    Failed {
        /// The port asked for.
        port: u16,
        /// IPv4 or IPv6.
        family: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl From<UdpError> for io::Error {
    /// With the number that a control socket answers.
    fn from(error: UdpError) -> Self {
        match error {
            UdpError::PortTaken { .. } => Errno::ADDRINUSE.into(),
            UdpError::NoFamily { v4, .. } => v4,
            UdpError::Failed { source, .. } => source,
        }
    }
}

/// A socket for IPv4 and one for IPv6, non-blocking, on the same port. One of them may be missing.
#[derive(Debug)]
pub struct Sockets {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
    port: u16,
    fwmark: AtomicU32,
    offloads: Arc<Offloads>,
    road: Road,
}

impl Sockets {
    /// Opens and binds them. The first time that is done with these [`Offloads`], GSO and GRO are put to the test.
    pub fn bind(options: &BindOptions, offloads: &Arc<Offloads>) -> Result<Self, UdpError> {
        probe::once(offloads);
        for _ in 0..PORT_TRIES {
            let v4 = available(open::open(Family::V4, *options, offloads));
            let v4 = v4.map_err(|source| refused(Family::V4, options.port, source))?;
            let port = match &v4 {
                Ok(socket) => port_of(Family::V4, socket)?,
                Err(_) => options.port,
            };
            let same_port = BindOptions { port, ..*options };
            let v6 = match available(open::open(Family::V6, same_port, offloads)) {
                Err(taken) if is_taken(&taken) && options.port == 0 => continue,
                opened => opened.map_err(|source| refused(Family::V6, port, source))?,
            };
            let port = match (&v4, &v6) {
                (Err(_), Ok(socket)) => port_of(Family::V6, socket)?,
                _ => port,
            };
            let (v4, v6) = match (v4, v6) {
                (Err(v4), Err(v6)) => return Err(UdpError::NoFamily { v4, v6 }),
                (v4, v6) => (v4.ok(), v6.ok()),
            };
            return Ok(Self {
                v4,
                v6,
                port,
                fwmark: AtomicU32::new(options.fwmark),
                offloads: Arc::clone(offloads),
                road: Road::default(),
            });
        }
        Err(refused(Family::V6, 0, Errno::ADDRINUSE.into()))
    }

    /// The port they are bound to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Those there are, to be waited for (level-triggered).
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.v4, &self.v6].into_iter().flatten().map(AsFd::as_fd)
    }

    /// Changes the mark of what is sent from now on; 0 is none.
    pub fn set_fwmark(&self, mark: u32) -> io::Result<()> {
        self.fwmark.store(mark, Ordering::Relaxed);
        self.descriptors()
            .try_for_each(|socket| open::set_fwmark(socket, mark))
    }

    /// How many datagrams were lost since they were opened because nobody fetched them in time.
    pub fn overflows(&self) -> u64 {
        let of = |socket| u64::from(sys::overflows(socket).unwrap_or(0));
        self.descriptors().map(of).sum()
    }

    /// Sends a sealed batch, in order. `from` pins our address; an error that [`blames_source`] for it means that the
    /// address should be forgotten and the batch sent again without.
    ///
    /// Waits while the socket's buffer is full, up to 0.1 s; what doesn't fit then is dropped.
    pub fn send(&self, batch: &Outgoing, to: SocketAddr, from: Option<LocalAddress>) -> Sent {
        let datagrams = batch.datagrams();
        let datagrams = datagrams.map(|datagram| (datagram.bytes.len(), datagram.traffic_class));
        self.send_pieces(batch.bytes(), datagrams, to, from)
    }

    /// Sends one datagram. Errors as for [`send`](Self::send); `WouldBlock` when there was no room for it in time.
    pub fn send_one(
        &self,
        bytes: &[u8],
        traffic_class: u8,
        to: SocketAddr,
        from: Option<LocalAddress>,
    ) -> io::Result<()> {
        let datagram = Train::single(bytes, traffic_class);
        let sent = self.sender(to, from)?.run(std::iter::once(datagram));
        match sent.error {
            Some(error) if sent.failed > 0 => Err(error),
            _ => Ok(()),
        }
    }

    /// Fills `into` with what has come in by IPv4 or by IPv6, in turn, and says how many datagrams that is; 0 when there is
    /// nothing. Doesn't wait.
    pub fn receive(&self, into: &mut Received) -> io::Result<usize> {
        for _ in 0..MAX_EMPTY {
            let first = into.first();
            let v4 = (Family::V4, &self.v4);
            let v6 = (Family::V6, &self.v6);
            let order = match first {
                Family::V4 => [v4, v6],
                Family::V6 => [v6, v4],
            };
            let mut found = false;
            for (family, socket) in order {
                if let Some(socket) = socket
                    && into.fill(family, socket.as_fd())?
                {
                    found = true;
                    break;
                }
            }
            if !found || !into.is_empty() {
                break;
            }
        }
        Ok(into.len())
    }

    /// Sends `bytes`, cut into datagrams of these lengths and traffic classes.
    fn send_pieces(
        &self,
        bytes: &[u8],
        datagrams: impl Iterator<Item = (usize, u8)>,
        to: SocketAddr,
        from: Option<LocalAddress>,
    ) -> Sent {
        match self.sender(to, from) {
            Ok(sender) => {
                let longest = sender.longest();
                sender.run(trains::cut(bytes, datagrams, longest))
            }
            Err(error) => Sent {
                failed: datagrams.count() as u32,
                error: Some(error),
                ..Sent::default()
            },
        }
    }

    fn sender(&self, to: SocketAddr, from: Option<LocalAddress>) -> io::Result<Sender<'_>> {
        let socket = match to {
            SocketAddr::V4(_) => &self.v4,
            SocketAddr::V6(_) => &self.v6,
        };
        let Some(socket) = socket else {
            return Err(Errno::AFNOSUPPORT.into());
        };
        let fwmark = self.fwmark.load(Ordering::Relaxed);
        let (offloads, road) = (&*self.offloads, &self.road);
        Ok(Sender::new(
            socket.as_fd(),
            offloads,
            road,
            fwmark,
            to,
            from,
        ))
    }
}

/// Whether an error of sending may come from the pinned source address: it isn't ours any more, or there is no route from it.
pub fn blames_source(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::INVAL
                | Errno::ADDRNOTAVAIL
                | Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::NODEV
                | Errno::NXIO
        )
    )
}

/// A socket, the reason why this machine hasn't any of its family, or an error.
fn available(opened: io::Result<OwnedFd>) -> io::Result<Result<OwnedFd, io::Error>> {
    match opened {
        Err(error) if open::is_absent(&error) => Ok(Err(error)),
        other => other.map(Ok),
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

fn port_of(family: Family, socket: &OwnedFd) -> Result<u16, UdpError> {
    open::port(socket.as_fd()).map_err(|source| refused(family, 0, source))
}

fn refused(family: Family, port: u16, source: io::Error) -> UdpError {
    let family = family.to_string();
    if is_taken(&source) {
        UdpError::PortTaken { port, family }
    } else {
        UdpError::Failed {
            port,
            family,
            source,
        }
    }
}

#[cfg(test)]
mod tests;
