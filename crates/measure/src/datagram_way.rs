//! The way of numbered datagrams between the ends: a UDP socket at each, opened from here whoever sends then.
//!
//! ```text
//! far end: listens ──┐
//! here: hello, hello …│──▶ the far end knows where we are, also behind address translation
//!       ◀── welcome (upload), or the first of the datagrams themselves (download)
//! ```

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use crate::datagram::{self, HEADER, Kind};

/// Where a listener looks for a free port, unless one is named: where the loads' servers listen, too.
const FIRST_PORT: u16 = 5201;
const PORTS_TRIED: u16 = 200;
/// Listeners at once, and how long one waits for its call.
const LISTENERS_AT_MOST: usize = 16;
const LISTENER_KEPT: Duration = Duration::from_secs(60);
/// Bytes the kernel may hold for a receiver: what it has no room for looks like loss on the road.
const RECEIVE_BUFFER: usize = 8 << 20;
/// How long to knock, and how often.
const HELLO_WITHIN: Duration = Duration::from_secs(3);
const HELLO_EVERY: Duration = Duration::from_millis(100);
/// How long one wait for a datagram, or for room to send one, lasts.
const LOOK_UP: Duration = Duration::from_millis(20);
/// Largest UDP payload.
pub(crate) const PAYLOAD_AT_MOST: usize = 65_507;

/// Asks for a listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listen {
    /// Of the probe; names the listener, too.
    pub(crate) token: u64,
    /// Address our datagrams will be sent to.
    pub(crate) to: IpAddr,
    /// Is that address one of the machine's own? Else it listens on all.
    pub(crate) own: bool,
    /// This port and no other.
    pub(crate) port: Option<u16>,
    /// Answer by this interface only.
    pub(crate) device: Option<String>,
}

/// How an end comes to its socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// It listens already.
    Listening,
    /// It calls the other end.
    Calling {
        /// The listener.
        to: SocketAddr,
        /// Leave by this interface only.
        device: Option<String>,
    },
}

/// Sockets that were opened and wait to be used.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<HashMap<u64, (UdpSocket, Instant)>>);

impl Listeners {
    /// Opens one; its port.
    pub(crate) fn open(&self, wanted: &Listen) -> Result<u16, String> {
        let ip = match (wanted.own, wanted.to) {
            (true, to) => to,
            (false, IpAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
            (false, IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let ports = match wanted.port {
            Some(0) => return Err("a UDP port is 1 to 65535".to_owned()),
            Some(port) => port..=port,
            None => FIRST_PORT..=FIRST_PORT + PORTS_TRIED,
        };
        let mut refused = io::Error::from(io::ErrorKind::AddrInUse);
        for port in ports.clone() {
            match open(SocketAddr::new(ip, port), wanted.device.as_deref()) {
                Ok(socket) => {
                    let mut kept = self.lock();
                    kept.retain(|_, (_, since)| since.elapsed() < LISTENER_KEPT);
                    if kept.len() >= LISTENERS_AT_MOST || kept.contains_key(&wanted.token) {
                        return Err(format!("{} UDP sockets wait already", kept.len()));
                    }
                    kept.insert(wanted.token, (socket, Instant::now()));
                    return Ok(port);
                }
                Err(error) => refused = error,
            }
        }
        Err(format!(
            "no UDP socket on {ip} port {}: {refused}; choose another port",
            ports.start()
        ))
    }

    fn take(&self, token: u64) -> Result<UdpSocket, String> {
        let taken = self.lock().remove(&token);
        taken
            .map(|(socket, _)| socket)
            .ok_or_else(|| "its socket was never opened, or its time is over".to_owned())
    }

    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (UdpSocket, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end's socket.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) socket: UdpSocket,
    token: u64,
    calling: bool,
}

/// A datagram of this probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) kind: Kind,
    pub(crate) number: u64,
    pub(crate) length: usize,
    /// The socket had no room for so many since it was opened (`SO_RXQ_OVFL`).
    dropped: Option<u32>,
}

impl Way {
    /// The socket of this end, with nothing said yet.
    pub(crate) fn new(listeners: &Listeners, token: u64, origin: &Origin) -> Result<Self, String> {
        let (socket, calling) = match origin {
            Origin::Listening => (listeners.take(token)?, false),
            Origin::Calling { to, device } => {
                let any = if to.is_ipv4() {
                    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)
                } else {
                    SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0)
                };
                let socket = open(any, device.as_deref())
                    .and_then(|socket| socket.connect(to).map(|()| socket))
                    .map_err(|error| format!("no UDP socket to {to}: {error}"))?;
                (socket, true)
            }
        };
        Ok(Self {
            socket,
            token,
            calling,
        })
    }

    /// Makes this end ready to send: knocks until it is welcome, or waits to be called. `false` = nobody was heard.
    pub(crate) fn ready_to_send(&self, keep_going: &dyn Fn() -> bool) -> Result<bool, String> {
        let until = Instant::now() + HELLO_WITHIN;
        let mut buffer = [0; HEADER];
        let mut knock = Knock::default();
        while Instant::now() < until && keep_going() {
            if self.calling {
                knock.knock(self);
            }
            let Some((from, received)) = self.receive(&mut buffer)? else {
                continue;
            };
            match (self.calling, received.kind) {
                (true, Kind::Welcome) => return Ok(true),
                (false, Kind::Hello) => {
                    let to = from.ok_or("a datagram without a sender's address")?;
                    self.socket
                        .connect(to)
                        .map_err(|error| format!("back to {to}: {error}"))?;
                    return Ok(true);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Receives until `until` says that it is enough, at the latest after `limit`; `false` = nobody was heard. Knocks, or
    /// welcomes who knocks, meanwhile.
    pub(crate) fn receive_all(
        &self,
        limit: Duration,
        buffer: &mut [u8],
        keep_going: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Received, &[u8]) -> After,
    ) -> Result<Heard, String> {
        let begun = Instant::now();
        let mut knock = Knock::default();
        let mut heard = Heard::default();
        let mut over: Option<Instant> = None;
        while keep_going() && begun.elapsed() < limit && over.is_none_or(|at| Instant::now() < at) {
            if !heard.anybody {
                if begun.elapsed() > HELLO_WITHIN {
                    break;
                }
                if self.calling {
                    knock.knock(self);
                }
            }
            let Some((from, received)) = self.receive(buffer)? else {
                continue;
            };
            heard.dropped = heard.dropped.max(u64::from(received.dropped.unwrap_or(0)));
            match received.kind {
                Kind::Hello if !self.calling => {
                    heard.anybody = true;
                    if let Some(from) = from {
                        // Should it be lost, the next knock is answered again.
                        let _ = self
                            .socket
                            .send_to(&datagram::bare(self.token, Kind::Welcome, 0), from);
                    }
                }
                Kind::Data | Kind::Segment | Kind::End => {
                    heard.anybody = true;
                    let length = received.length.min(buffer.len());
                    if let After::Until(pause) = each(received, &buffer[..length]) {
                        over.get_or_insert_with(|| Instant::now() + pause);
                    }
                }
                Kind::Hello | Kind::Welcome => {}
            }
        }
        Ok(heard)
    }

    /// The next datagram of this probe within [`LOOK_UP`].
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<(Option<SocketAddr>, Received)>, String> {
        let mut control = cmsg_space!(u32);
        let room = buffer.len();
        let message = {
            let mut parts = [IoSliceMut::new(buffer)];
            let message = recvmsg::<SockaddrStorage>(
                self.socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                // The true length, also of what is longer than the buffer.
                MsgFlags::MSG_TRUNC,
            );
            match message {
                Ok(message) => {
                    let dropped = message.cmsgs().ok().and_then(|mut parts| {
                        parts.find_map(|part| match part {
                            ControlMessageOwned::RxqOvfl(dropped) => Some(dropped),
                            _ => None,
                        })
                    });
                    (message.bytes, message.address, dropped)
                }
                // Nothing yet, or an ICMP error for something sent before (nobody listens there yet).
                Err(
                    nix::Error::EAGAIN
                    | nix::Error::EINTR
                    | nix::Error::ECONNREFUSED
                    | nix::Error::EHOSTUNREACH
                    | nix::Error::ENETUNREACH
                    | nix::Error::EPROTO,
                ) => return Ok(None),
                Err(error) => return Err(format!("the UDP socket: {error}")),
            }
        };
        let (length, from, dropped) = message;
        let Some((kind, number)) = datagram::read(&buffer[..length.min(room)], self.token) else {
            return Ok(None);
        };
        let from = from.and_then(|address| {
            let v4 = address
                .as_sockaddr_in()
                .map(|v4| SocketAddr::V4((*v4).into()));
            v4.or_else(|| {
                address
                    .as_sockaddr_in6()
                    .map(|v6| SocketAddr::V6((*v6).into()))
            })
        });
        Ok(Some((
            from,
            Received {
                kind,
                number,
                length,
                dropped,
            },
        )))
    }
}

/// How a receiver ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// Somebody was there.
    pub(crate) anybody: bool,
    /// Datagrams the socket had no room for.
    pub(crate) dropped: u64,
}

/// What comes after a datagram.
pub(crate) enum After {
    /// More.
    More,
    /// Nothing but stragglers, for so long.
    Until(Duration),
}

#[derive(Default)]
struct Knock(Option<Instant>);

impl Knock {
    fn knock(&mut self, way: &Way) {
        if self.0.is_none_or(|at| at.elapsed() >= HELLO_EVERY) {
            self.0 = Some(Instant::now());
            // Refused once may be welcome the next time.
            let _ = way.socket.send(&datagram::bare(way.token, Kind::Hello, 0));
        }
    }
}

fn open(address: SocketAddr, device: Option<&str>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        // Not root: as much as `net.core.rmem_max` allows.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    }
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    socket.set_read_timeout(Some(LOOK_UP))?;
    socket.set_write_timeout(Some(LOOK_UP))?;
    Ok(socket.into())
}
