//! Answering a `get`: a bounded piece at a time, wiped from memory, for there are keys in it.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;

use wirespeed_protocol::{KEY_BYTES, Peer};
use zeroize::Zeroizing;

use super::Interface;

/// Bytes written at a time.
const PIECE_BYTES: usize = 32 << 10;

/// More than any line has.
const LINE_BYTES: usize = 512;

/// Writes everything there is to know, without the status line.
pub(super) fn get(interface: &dyn Interface, output: &mut dyn Write) -> io::Result<()> {
    let mut answer = Answer {
        output,
        piece: Zeroizing::new(Vec::with_capacity(PIECE_BYTES)),
    };
    let tunnel = interface.tunnel();
    if let Some(key) = tunnel.private_key() {
        answer.key("private_key", &key.to_bytes())?;
    }
    match interface.listen_port() {
        0 => {}
        port => answer.line("listen_port", port)?,
    }
    match interface.fwmark() {
        0 => {}
        mark => answer.line("fwmark", mark)?,
    }
    for peer in tunnel.peers() {
        answer.peer(interface, &peer)?;
    }
    answer.flush()
}

struct Answer<'a> {
    output: &'a mut dyn Write,
    piece: Zeroizing<Vec<u8>>,
}

impl Answer<'_> {
    fn peer(&mut self, interface: &dyn Interface, peer: &Peer) -> io::Result<()> {
        self.key("public_key", peer.public_key().as_bytes())?;
        self.key("preshared_key", peer.preshared_key().as_bytes())?;
        self.line("protocol_version", 1)?;
        if let Some(endpoint) = peer.endpoint() {
            self.line("endpoint", Endpoint(endpoint))?;
        }
        let statistics = peer.statistics();
        let handshake = statistics.last_handshake.unwrap_or_default().0;
        self.line("last_handshake_time_sec", handshake.as_secs())?;
        self.line("last_handshake_time_nsec", handshake.subsec_nanos())?;
        self.line("tx_bytes", statistics.sent_bytes)?;
        self.line("rx_bytes", statistics.received_bytes)?;
        let keepalive = peer.persistent_keepalive().unwrap_or_default();
        self.line("persistent_keepalive_interval", keepalive.as_secs())?;
        for prefix in interface.tunnel().allowed_ips(peer) {
            self.line("allowed_ip", prefix)?;
        }
        Ok(())
    }

    fn line(&mut self, key: &str, value: impl fmt::Display) -> io::Result<()> {
        // The vector must not grow: it would leave what it had in memory.
        if self.piece.capacity() - self.piece.len() < LINE_BYTES {
            self.flush()?;
        }
        writeln!(self.piece, "{key}={value}")
    }

    fn key(&mut self, key: &str, bytes: &[u8; KEY_BYTES]) -> io::Result<()> {
        self.line(key, Hex(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

struct Hex<'a>(&'a [u8; KEY_BYTES]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// With the name of its scope, as `wg` has it, or its number when the interface is gone.
struct Endpoint(SocketAddr);

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => match scope_name(v6.scope_id()) {
                Some(name) => write!(f, "[{}%{name}]:{}", v6.ip(), v6.port()),
                None => write!(f, "{v6}"),
            },
            other => write!(f, "{other}"),
        }
    }
}

fn scope_name(index: u32) -> Option<String> {
    let any = UnixDatagram::unbound().ok()?;
    rustix::net::netdevice::index_to_name(&any, index).ok()
}
