//! Carrying out a `set`.
//!
//! A request is read to its end and all its lines are understood before the first takes effect, so a request with a line that
//! isn't understood changes nothing. What can still fail is the system: a port in use, a mark that isn't permitted. Then the
//! lines before that one hold, as they would with the kernel.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use wirespeed_protocol::{Peer, PublicKey, Tunnel};

use super::Interface;
use super::line::{DeviceLine, Line, LineError, PeerLine, parse};
use super::request::lines;
use crate::peer_name;

/// Why a `set` wasn't carried out, or not to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetError {
    /// A line isn't understood; nothing was changed.
    #[error("line {line}: {error}")]
    Line {
        /// Counted from 1, the one with `set=1`.
        line: usize,
        /// What is wrong with it.
        error: LineError,
    },
    /// The port can't be used; what came before it holds.
    #[error("listen port {port}: {error}")]
    ListenPort {
        /// Which.
        port: u16,
        /// The system's reason.
        error: io::Error,
    },
    /// The mark can't be set; what came before it holds.
    #[error("fwmark {mark:#x}: {error}")]
    FwMark {
        /// Which.
        mark: u32,
        /// The system's reason.
        error: io::Error,
    },
}

/// Carries out the lines of a request, and tells the interface.
pub(super) fn set(interface: &dyn Interface, body: &[u8]) -> Result<(), SetError> {
    understand(body)?;
    let result = apply(interface, body);
    interface.changed();
    result
}

fn understand(body: &[u8]) -> Result<(), SetError> {
    let mut of_peer = false;
    each_line(body, |line| {
        of_peer |= matches!(line, Line::Peer(_));
        (of_peer, Ok(()))
    })
}

fn apply(interface: &dyn Interface, body: &[u8]) -> Result<(), SetError> {
    let mut chosen = None::<Chosen>;
    let result = each_line(body, |line| {
        let done = match line {
            Line::Device(line) => change_device(interface, line),
            Line::Peer(key) => {
                finish(interface, chosen.take());
                chosen = Some(Chosen::new(interface.tunnel(), key));
                Ok(())
            }
            Line::OfPeer(line) => {
                if let Some(chosen) = &mut chosen {
                    chosen.change(interface, line);
                }
                Ok(())
            }
        };
        (chosen.is_some(), done)
    });
    finish(interface, chosen);
    result
}

/// Parses line after line and hands each on; it is told back whether the next belongs to a peer.
fn each_line(
    body: &[u8],
    mut take: impl FnMut(Line) -> (bool, Result<(), SetError>),
) -> Result<(), SetError> {
    let mut of_peer = false;
    for (line, number) in lines(body).zip(2..) {
        let line = parse(line, of_peer, &scope_index).map_err(|error| SetError::Line {
            line: number,
            error,
        })?;
        let done;
        (of_peer, done) = take(line);
        done?;
    }
    Ok(())
}

fn change_device(interface: &dyn Interface, line: DeviceLine) -> Result<(), SetError> {
    log::debug!("{line}");
    let tunnel = interface.tunnel();
    match line {
        DeviceLine::PrivateKey(key) => {
            let same = match (&tunnel.private_key(), &key) {
                (Some(old), Some(new)) => *old.to_bytes() == *new.to_bytes(),
                (None, None) => true,
                _ => false,
            };
            // Setting a key ends what is being sent in all sessions, and `wg syncconf` sends it each time.
            if !same {
                tunnel.set_private_key(key);
                tunnel.speak_up(interface.now());
            }
        }
        DeviceLine::ListenPort(port) => {
            interface
                .set_listen_port(port)
                .map_err(|error| SetError::ListenPort { port, error })?;
        }
        DeviceLine::FwMark(mark) => {
            if mark != interface.fwmark() {
                interface
                    .set_fwmark(mark)
                    .map_err(|error| SetError::FwMark { mark, error })?;
            }
        }
        DeviceLine::ReplacePeers => {
            for peer in tunnel.peers() {
                tunnel.remove_peer(peer.public_key());
            }
        }
    }
    Ok(())
}

/// The peer whose lines are being read.
struct Chosen {
    key: PublicKey,
    /// `None`: it is our own key, or was removed, or isn't to be added; its lines do nothing.
    peer: Option<Arc<Peer>>,
    added: bool,
    /// Set when all else is, so that the first keepalive finds endpoint and preshared key in place.
    keepalive: Option<u16>,
}

impl Chosen {
    fn new(tunnel: &Tunnel, key: PublicKey) -> Self {
        let before = tunnel.peer(&key);
        let added = before.is_none();
        let peer = before.or_else(|| tunnel.add_peer(key, &mut rand::rng()).ok());
        if added && peer.is_some() {
            log::debug!("peer {}: added", peer_name::short(&key));
        }
        Self {
            key,
            added: added && peer.is_some(),
            peer,
            keepalive: None,
        }
    }

    fn change(&mut self, interface: &dyn Interface, line: PeerLine) {
        let Some(peer) = &self.peer else {
            return;
        };
        log::debug!("peer {}: {line}", peer_name::short(&self.key));
        let tunnel = interface.tunnel();
        match line {
            PeerLine::UpdateOnly => {
                if self.added {
                    self.remove(tunnel);
                }
            }
            PeerLine::Remove => self.remove(tunnel),
            PeerLine::PresharedKey(key) => tunnel.set_preshared_key(peer, key),
            PeerLine::Endpoint(address) => tunnel.set_endpoint(interface.now(), peer, address),
            PeerLine::PersistentKeepalive(seconds) => self.keepalive = Some(seconds),
            PeerLine::ReplaceAllowedIps => tunnel.disallow_all(peer),
            PeerLine::Allow(prefix) => tunnel.allow(peer, prefix),
            PeerLine::Disallow(prefix) => {
                tunnel.disallow(peer, prefix);
            }
            PeerLine::ProtocolVersion => {}
        }
    }

    fn remove(&mut self, tunnel: &Tunnel) {
        tunnel.remove_peer(&self.key);
        self.peer = None;
    }
}

fn finish(interface: &dyn Interface, chosen: Option<Chosen>) {
    if let Some(Chosen {
        peer: Some(peer),
        keepalive: Some(seconds),
        ..
    }) = chosen
    {
        let interval = Duration::from_secs(seconds.into());
        interface
            .tunnel()
            .set_persistent_keepalive(interface.now(), &peer, Some(interval));
    }
}

/// The index of an interface in our network namespace.
fn scope_index(name: &str) -> Option<u32> {
    let any = UnixDatagram::unbound().ok()?;
    rustix::net::netdevice::name_to_index(&any, name).ok()
}
