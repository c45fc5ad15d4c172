//! Connections to a socket, each in a thread of its own, and not too many of them.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::socket::Socket;
use crate::lock::Locked;

/// How long one read or write may take. A read that takes longer is tried again, as long as the request's own limit isn't
/// reached; a write ends the connection.
const STEP_LIMIT: Duration = Duration::from_secs(5);

/// What a thread that talks to somebody needs, and more.
const STACK_BYTES: usize = 512 << 10;

/// How long to wait when connections can't be accepted, for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a connection waits for a place: `wg` makes two in a row, and the thread of the first may still be at its end.
const PLACE_LIMIT: Duration = Duration::from_millis(200);

/// Talks to one client; returns when the connection is to be closed.
pub(super) type Talk = dyn Fn(&UnixStream) + Send + Sync;

/// Accepts connections until it is dropped, which also closes those there are and removes the socket's file.
pub(super) struct Server {
    socket: Arc<Socket>,
    connections: Arc<Connections>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves at most `places` connections at a time; more are closed as they come. `name` is the threads'.
    pub(super) fn start(
        socket: Socket,
        name: &'static str,
        places: usize,
        talk: Arc<Talk>,
    ) -> io::Result<Self> {
        let socket = Arc::new(socket);
        let connections = Arc::new(Connections {
            places,
            ..Connections::default()
        });
        let acceptor = spawn(name, {
            let (socket, connections) = (Arc::clone(&socket), Arc::clone(&connections));
            move || accept(&socket, &connections, name, &talk)
        })?;
        Ok(Self {
            socket,
            connections,
            acceptor: Some(acceptor),
        })
    }

    /// Where connections are counted.
    pub(super) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.connections.over.store(true, Ordering::Release);
        // This wakes the thread that accepts, and those that read or write.
        let _ = rustix::net::shutdown(self.socket.listener(), rustix::net::Shutdown::Both);
        for stream in self.connections.open().values() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// The connections there are, and how many there were.
#[derive(Default)]
pub(super) struct Connections {
    places: usize,
    open: Mutex<HashMap<u64, Arc<UnixStream>>>,
    place_free: Condvar,
    accepted: AtomicU64,
    refused: AtomicU64,
    over: AtomicBool,
}

impl Connections {
    /// How many were accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How many were closed because all places were taken.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<UnixStream>>> {
        self.open.locked()
    }

    /// A place for this connection; `None`, and it is closed, when there is none.
    fn enter(self: &Arc<Self>, stream: UnixStream) -> Option<Place> {
        let full = |open: &mut HashMap<_, _>| open.len() >= self.places;
        let waited = self
            .place_free
            .wait_timeout_while(self.open(), PLACE_LIMIT, full);
        let (mut open, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(stream);
        open.insert(number, Arc::clone(&stream));
        Some(Place {
            connections: Arc::clone(self),
            number,
            stream,
        })
    }
}

/// One connection's place, given back when it is dropped.
struct Place {
    connections: Arc<Connections>,
    number: u64,
    stream: Arc<UnixStream>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
        self.connections.place_free.notify_one();
    }
}

fn accept(socket: &Socket, connections: &Arc<Connections>, name: &'static str, talk: &Arc<Talk>) {
    loop {
        let accepted = socket.listener().accept();
        if connections.over.load(Ordering::Acquire) {
            return;
        }
        let entered = match accepted {
            Ok((stream, _)) => set_limits(&stream).map(|()| connections.enter(stream)),
            Err(error) => Err(error),
        };
        let started = entered.and_then(|place| {
            let Some(place) = place else {
                return Ok(());
            };
            let talk = Arc::clone(talk);
            spawn(name, move || talk(&place.stream)).map(drop)
        });
        if let Err(error) = started {
            log::debug!("{}: {error}", socket.path().display());
            std::thread::sleep(ACCEPT_PAUSE);
        }
    }
}

fn set_limits(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(STEP_LIMIT))?;
    stream.set_write_timeout(Some(STEP_LIMIT))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(run)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::PathBuf;

    use super::*;

    fn echo(places: usize) -> (tempfile::TempDir, PathBuf, Server) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wg0.sock");
        let socket = Socket::listen(&path, 0o600).unwrap();
        let talk = |mut stream: &UnixStream| {
            let mut byte = [0];
            while stream.read(&mut byte).is_ok_and(|count| count == 1) {
                assert_ne!(byte, *b"!", "as the client wished");
                stream.write_all(&byte).unwrap();
            }
        };
        let server = Server::start(socket, "echo", places, Arc::new(talk)).unwrap();
        (folder, path, server)
    }

    fn ask(stream: &mut UnixStream, byte: u8) -> Option<u8> {
        let mut answer = [0];
        stream.write_all(&[byte]).ok()?;
        stream.read_exact(&mut answer).ok()?;
        Some(answer[0])
    }

    #[test]
    fn places_are_limited_and_given_back() {
        let (_folder, path, server) = echo(2);
        let mut first = UnixStream::connect(&path).unwrap();
        let mut second = UnixStream::connect(&path).unwrap();
        assert_eq!(
            (ask(&mut first, 1), ask(&mut second, 2)),
            (Some(1), Some(2))
        );
        let mut third = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut third, 3), None);
        assert_eq!(
            (
                server.connections().accepted(),
                server.connections().refused()
            ),
            (2, 1)
        );
        drop(first);
        let again = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let mut stream = UnixStream::connect(&path).unwrap();
            ask(&mut stream, 4) == Some(4)
        });
        assert!(again);
    }

    #[test]
    fn a_thread_that_panics_gives_its_place_back() {
        let (_folder, path, _server) = echo(1);
        let answered = (0..5).all(|_| {
            let mut stream = UnixStream::connect(&path).unwrap();
            assert_eq!(ask(&mut stream, b'!'), None);
            (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                let mut stream = UnixStream::connect(&path).unwrap();
                ask(&mut stream, 4) == Some(4)
            })
        });
        assert!(answered);
    }

    #[test]
    fn the_end_closes_all_and_leaves_nothing() {
        let (_folder, path, server) = echo(4);
        let mut open = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut open, 1), Some(1));
        let connections = Arc::clone(server.connections());
        drop(server);
        assert_eq!(ask(&mut open, 1), None);
        assert!(!path.exists() && UnixStream::connect(&path).is_err());
        let empty = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            connections.open().is_empty()
        });
        assert!(empty);
    }
}
