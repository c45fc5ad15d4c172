//! The far end of short exchanges: takes any number of connections in one thread, answers each, and closes it.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use crate::background::Background;
use crate::exchange_request::{HEADER, Request};
use crate::poller::{Poller, allow_open_files};

/// Where to look for a free port: where the loads' servers listen, too.
const FIRST_PORT: u16 = 5201;
const PORTS_TRIED: u16 = 200;
/// Connections that are not the probe's own.
const STRANGERS: u64 = 64;
/// How long a connection may take from accepting to the last byte.
const EACH_WITHIN: Duration = Duration::from_secs(15);
/// How often a wait looks up, and how often slow connections are looked for.
const LOOK_UP: Duration = Duration::from_millis(20);
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Longest life of a server.
const SECONDS_AT_MOST: f64 = 600.0;
/// Connections that wait to be taken, at most; the system's `net.core.somaxconn` may be less.
const BACKLOG_AT_MOST: u32 = 65_535;
const LISTENER: u64 = u64::MAX;
const CHUNK: [u8; 16 << 10] = [0x5a; 16 << 10];

/// Asks for a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExchangeServe {
    /// Of the sample; names the server, too.
    pub(crate) token: u64,
    /// Address the client connects to.
    pub(crate) to: IpAddr,
    /// Is that address one of the machine's own? Else it listens on all.
    pub(crate) own: bool,
    /// Answer by this interface only.
    pub(crate) device: Option<String>,
    /// Connections at the same time.
    pub(crate) at_once: u32,
    /// Ends by itself after so many seconds.
    pub(crate) seconds: f64,
}

/// Starts a server; its port.
pub(crate) fn start(servers: &Background<()>, wanted: &ExchangeServe) -> Result<u16, String> {
    let room = u64::from(wanted.at_once) + STRANGERS;
    allow_open_files(room + 128)?;
    let listener = listen(wanted)?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let poller = Poller::new().map_err(|error| format!("epoll: {error}"))?;
    poller
        .add_reader(&listener, LISTENER)
        .map_err(|error| format!("epoll: {error}"))?;
    let until =
        Instant::now() + Duration::from_secs_f64(wanted.seconds.clamp(1.0, SECONDS_AT_MOST));
    let token = wanted.token;
    servers.start(token, move |finish| {
        let mut server = Server {
            listener,
            token,
            room: room as usize,
            connections: HashMap::new(),
            named: 0,
        };
        server.run(&poller, until, finish);
    })?;
    Ok(port)
}

fn listen(wanted: &ExchangeServe) -> Result<TcpListener, String> {
    let ip = match (wanted.own, wanted.to) {
        (true, to) => to,
        (false, IpAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (false, IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let backlog = wanted.at_once.clamp(128, BACKLOG_AT_MOST).cast_signed();
    let open = |port: u16| -> io::Result<TcpListener> {
        let address = SocketAddr::new(ip, port);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        if let Some(device) = &wanted.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(backlog)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    let mut refused = String::new();
    for port in FIRST_PORT..FIRST_PORT + PORTS_TRIED {
        match open(port) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error.to_string(),
        }
    }
    Err(format!(
        "no TCP server on {ip} port {FIRST_PORT} or the {PORTS_TRIED} after it: {refused}"
    ))
}

struct Server {
    listener: TcpListener,
    token: u64,
    /// Connections at the same time.
    room: usize,
    connections: HashMap<u64, Connection>,
    /// Names given so far.
    named: u64,
}

struct Connection {
    stream: TcpStream,
    since: Instant,
    header: [u8; HEADER],
    /// Bytes of the request that came.
    read: usize,
    /// Once the header is known.
    request: Option<Request>,
    /// Bytes of the answer that went.
    written: usize,
}

impl Server {
    fn run(&mut self, poller: &Poller, until: Instant, finish: &AtomicBool) {
        let mut swept = Instant::now();
        while Instant::now() < until && !finish.load(Ordering::SeqCst) {
            let Ok(ready) = poller.wait(LOOK_UP) else {
                return;
            };
            for one in ready {
                if one == LISTENER {
                    self.accept(poller);
                } else {
                    self.serve(poller, one);
                }
            }
            if swept.elapsed() >= SWEEP_EVERY {
                swept = Instant::now();
                self.connections
                    .retain(|_, connection| connection.since.elapsed() < EACH_WITHIN);
            }
        }
    }

    fn accept(&mut self, poller: &Poller) {
        loop {
            match self.listener.accept() {
                // Dropped: there is no room.
                Ok(_) if self.connections.len() >= self.room => {}
                Ok((stream, _)) => {
                    let name = self.named;
                    self.named += 1;
                    let ready = stream
                        .set_nonblocking(true)
                        .and_then(|()| stream.set_nodelay(true))
                        .and_then(|()| poller.add_reader(&stream, name));
                    if ready.is_ok() {
                        self.connections.insert(name, Connection::new(stream));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of files: until some are closed, asking again at once is no use.
                    std::thread::sleep(Duration::from_millis(2));
                    return;
                }
            }
        }
    }

    fn serve(&mut self, poller: &Poller, name: u64) {
        let Some(connection) = self.connections.get_mut(&name) else {
            return;
        };
        match connection.go_on(self.token) {
            Ok(Next::Read) => {}
            Ok(Next::Write) => {
                if poller.change(&connection.stream, name, true).is_err() {
                    self.connections.remove(&name);
                }
            }
            // The system sends what is left, and then the end.
            Ok(Next::Done) | Err(_) => {
                self.connections.remove(&name);
            }
        }
    }
}

enum Next {
    Read,
    Write,
    Done,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            since: Instant::now(),
            header: [0; HEADER],
            read: 0,
            request: None,
            written: 0,
        }
    }

    fn go_on(&mut self, token: u64) -> io::Result<Next> {
        while self
            .request
            .is_none_or(|request| self.read < request.length as usize)
        {
            let mut filling = [0; 4096];
            let into = match self.request {
                None => &mut self.header[self.read..],
                // What comes after the request is not read.
                Some(request) => {
                    let left = request.length as usize - self.read;
                    &mut filling[..left.min(4096)]
                }
            };
            match self.stream.read(into) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.read += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Next::Read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.request.is_none() && self.read == HEADER {
                let request = Request::read(&self.header, token);
                self.request = Some(request.ok_or(ErrorKind::InvalidData)?);
            }
        }
        let response = self.request.map_or(0, |request| request.response as usize);
        while self.written < response {
            let chunk = &CHUNK[..(response - self.written).min(CHUNK.len())];
            match self.stream.write(chunk) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Next::Write),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Done)
    }
}
