//! The other end of a load: an iperf3 server for one test, in the agent's namespace.
//!
//! A server of its own per load: a client that was cut off in the middle can't leave a busy server behind. It
//! writes JSON with short intervals, which come back over the agent's connection and not over the path under test: that is how the
//! receiver's bytes of an upload and the sender's window of a download are known, whatever happens on the path.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use crate::background::Background;
use crate::child;
use crate::iperf3_client::{INTERVAL_SECONDS, last_line};
use crate::iperf3_report::Iperf3Report;
use crate::tcp_watch::{self, TcpWatch, TcpWatched};

/// Ports tried from the first on.
const PORTS_TRIED: u16 = 200;
/// How long a server may take to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(3);
/// How long a server may take to print after the client has gone, and after SIGTERM.
const PRINT_WITHIN: Duration = Duration::from_millis(700);

/// Asks for a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerStart {
    /// The caller's name for it.
    pub(crate) number: u64,
    /// First port to try.
    pub(crate) first_port: u16,
    /// Listen on this address only.
    pub(crate) bind: Option<IpAddr>,
    /// Answer by this interface only.
    pub(crate) device: Option<String>,
    /// Ends by itself after so many seconds.
    pub(crate) seconds: f64,
    /// Read what its TCP waits for.
    #[serde(default)]
    pub(crate) tcp: Option<TcpWatch>,
}

/// What a server left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerEnded {
    pub(crate) report: Iperf3Report,
    #[serde(default)]
    pub(crate) tcp: Option<TcpWatched>,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ServerStarted {
    /// It listens on this port.
    Port(u16),
    /// There is no iperf3 here.
    Missing(String),
}

pub(crate) type Servers = Background<Result<ServerEnded, String>>;

/// Starts a server and returns once it listens.
pub(crate) fn start(servers: &Servers, wanted: &ServerStart) -> Result<ServerStarted, String> {
    let limit = Duration::from_secs_f64(wanted.seconds.clamp(1.0, 3_600.0));
    let bind = wanted.bind;
    let device = &wanted.device;
    for port in wanted.first_port..wanted.first_port.saturating_add(PORTS_TRIED) {
        if !free(bind, port) {
            continue;
        }
        let (listens, heard) = sync_channel(1);
        let device = device.clone();
        let tcp = wanted.tcp;
        servers.start(wanted.number, move |finish| {
            let finished = || finish.load(Ordering::SeqCst);
            serve(bind, port, device, limit, tcp, &listens, &finished)
        })?;
        match heard.recv_timeout(LISTENS_WITHIN + Duration::from_secs(1)) {
            Ok(Listening::Yes) => return Ok(ServerStarted::Port(port)),
            Ok(Listening::Missing(why)) => {
                let _ = servers.finish(wanted.number);
                return Ok(ServerStarted::Missing(why));
            }
            // Somebody else took the port in between: the next one.
            Ok(Listening::PortTaken) => {
                let _ = servers.finish(wanted.number);
            }
            Err(_) => {
                let why = servers
                    .finish(wanted.number)?
                    .err()
                    .unwrap_or_else(|| "it did not listen".to_owned());
                return Err(format!("the iperf3 server on port {port}: {why}"));
            }
        }
    }
    Err(format!(
        "no free TCP port for an iperf3 server from {} on",
        wanted.first_port
    ))
}

enum Listening {
    Yes,
    PortTaken,
    Missing(String),
}

/// The server's life, in a thread of its own.
fn serve(
    bind: Option<IpAddr>,
    port: u16,
    device: Option<String>,
    limit: Duration,
    tcp: Option<TcpWatch>,
    listens: &SyncSender<Listening>,
    finished: &(dyn Fn() -> bool + Sync),
) -> Result<ServerEnded, String> {
    let mut arguments: Vec<String> = ["-s", "-1", "-J", "-i", INTERVAL_SECONDS, "-p"]
        .map(str::to_owned)
        .to_vec();
    arguments.push(port.to_string());
    if let Some(address) = bind {
        arguments.extend(["-B".to_owned(), address.to_string()]);
    }
    if let Some(device) = device {
        arguments.extend(["--bind-dev".to_owned(), device]);
    }
    let mut server = child::Running::start("iperf3", &arguments)?;
    let until = Instant::now() + LISTENS_WITHIN;
    while free(bind, port) {
        let ended = server.ended().map_err(|error| error.to_string())?.is_some();
        if ended || Instant::now() >= until || finished() {
            return Err(gone(server, listens));
        }
        thread::sleep(Duration::from_millis(2));
    }
    if server.ended().map_err(|error| error.to_string())?.is_some() {
        return Err(gone(server, listens));
    }
    let _ = listens.send(Listening::Yes);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let tcp = tcp.map(|watch| {
            let over = &over;
            scope.spawn(move || {
                let over = || over.load(Ordering::SeqCst) || finished();
                tcp_watch::watch(port, None, &watch, &over)
            })
        });
        server.wait(limit, &|| !finished());
        // The test is over for the client: the server has its result, or will not get one.
        if !server.wait(PRINT_WITHIN, &|| true) {
            server.terminate(PRINT_WITHIN);
        }
        over.store(true, Ordering::SeqCst);
        let ended = server.finish()?;
        Ok(ServerEnded {
            report: Iperf3Report::parse(&ended.stdout),
            tcp: tcp.and_then(|watch| watch.join().ok().flatten()),
        })
    })
}

/// Says why a server does not listen.
fn gone(server: child::Running, listens: &SyncSender<Listening>) -> String {
    let ended = match server.finish() {
        Ok(ended) => ended,
        Err(why) => return why,
    };
    if ended.status.code() == Some(127) {
        let _ = listens.send(Listening::Missing(last_line(&ended.stderr)));
        return "not installed".to_owned();
    }
    let report = Iperf3Report::parse(&ended.stdout);
    let why = report
        .error
        .filter(|_| !ended.stdout.is_empty())
        .unwrap_or_else(|| last_line(&ended.stderr));
    if why.contains("in use") {
        let _ = listens.send(Listening::PortTaken);
    }
    why
}

/// Could a server listen on this port? Bound only, never listening, and with `SO_REUSEADDR` as iperf3 sets it:
/// so asking neither hinders the server nor is hindered by connections of the past.
fn free(bind: Option<IpAddr>, port: u16) -> bool {
    let address = SocketAddr::new(bind.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port);
    let tried = Socket::new(Domain::for_address(address), Type::STREAM, None).and_then(|socket| {
        socket
            .set_reuse_address(true)
            .and_then(|()| socket.bind(&address.into()))
    });
    !matches!(tried, Err(error) if error.kind() == std::io::ErrorKind::AddrInUse)
}
