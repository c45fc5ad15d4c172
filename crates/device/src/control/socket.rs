//! A socket file that belongs to one interface: made, taken over when its owner is gone, watched, and removed.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, inotify};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connections the kernel keeps for us while all places are taken.
const BACKLOG: i32 = 128;

/// Files of a folder that are looked at when it is swept.
const MAX_SWEPT: usize = 1_000;

/// How often and how long to wait for another program that is replacing a file.
const TURN_ATTEMPTS: u32 = 100;
const TURN_PAUSE: Duration = Duration::from_millis(20);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another program answers there.
    #[error(
        "{0} is in use: another program already serves this interface name, maybe in another network namespace. Stop it, or \
         choose another name"
    )]
    InUse(PathBuf),
    /// Something that isn't a socket has this path.
    #[error("{0} is there and no socket; move it away")]
    NotSocket(PathBuf),
    /// The system said no.
    #[error("{what} {path}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

/// A listening socket with its file, which is removed with it.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    identity: Identity,
}

/// Which file it is, whatever is put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Socket {
    /// Makes the file, and its folder. A file left over by a program that is gone is replaced. Mode as in `0o600`.
    pub(super) fn listen(path: &Path, mode: u32) -> Result<Self, SocketError> {
        let failed = |what| {
            move |error: io::Error| SocketError::Io {
                what,
                path: path.to_owned(),
                error,
            }
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        make_folder(folder).map_err(failed("making the folder of"))?;
        // Of two programs that find a file left over, only one may replace it.
        let _turn = take_turn(folder).map_err(failed("locking the folder of"))?;
        remove_left_over(path)?;
        let socket = bind(path, mode).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => SocketError::InUse(path.to_owned()),
            _ => failed("making the socket")(error),
        })?;
        let identity = Identity::of(path).map_err(failed("looking at"))?;
        Ok(Self {
            listener: socket,
            path: path.to_owned(),
            identity,
        })
    }

    /// Removes what killed programs left in a folder of ours: sockets with this ending that nobody listens on.
    pub(super) fn sweep(folder: &Path, ending: &str) {
        let (Ok(_turn), Ok(entries)) = (take_turn(folder), std::fs::read_dir(folder)) else {
            return;
        };
        for entry in entries.flatten().take(MAX_SWEPT) {
            let path = entry.path();
            let ours = path.extension().is_some_and(|there| there == ending);
            if ours && let Err(error) = remove_left_over(&path) {
                log::debug!("{error}");
            }
        }
    }

    /// To accept connections on.
    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Sees when the file is removed.
    pub(super) fn watch(&self) -> io::Result<Watch> {
        let inotify =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(
            &inotify,
            &self.path,
            inotify::WatchFlags::ATTRIB
                | inotify::WatchFlags::DELETE_SELF
                | inotify::WatchFlags::MOVE_SELF,
        )?;
        Ok(Watch {
            inotify,
            path: self.path.clone(),
            identity: self.identity,
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody else's file may be in its place.
        if Identity::of(&self.path).is_ok_and(|there| there == self.identity)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            log::warn!("removing {}: {error}", self.path.display());
        }
    }
}

/// Sees when a socket's file is removed; readable when something happened to it.
#[derive(Debug)]
pub struct Watch {
    inotify: OwnedFd,
    path: PathBuf,
    identity: Identity,
}

impl Watch {
    /// Whether the file is still there. To be asked when the descriptor is readable.
    pub fn still_there(&self) -> bool {
        let mut events = [0; 4096];
        while rustix::io::read(&self.inotify, &mut events).is_ok_and(|count| count > 0) {}
        Identity::of(&self.path).is_ok_and(|there| there == self.identity)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl Identity {
    fn of(path: &Path) -> io::Result<Self> {
        let data = std::fs::symlink_metadata(path)?;
        Ok(Self {
            device: data.dev(),
            inode: data.ino(),
        })
    }
}

/// Whatever the umask is, others may look into it: the sockets have modes of their own.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}

fn take_turn(folder: &Path) -> io::Result<OwnedFd> {
    let folder = rustix::fs::open(
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    for _ in 0..TURN_ATTEMPTS {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(TURN_PAUSE),
            result => return result.map(|()| folder).map_err(io::Error::from),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn remove_left_over(path: &Path) -> Result<(), SocketError> {
    let failed = |what, error| SocketError::Io {
        what,
        path: path.to_owned(),
        error,
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("looking at", error)),
        Ok(data) if !data.file_type().is_socket() => {
            return Err(SocketError::NotSocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    if answers(path).map_err(|error| failed("asking", error))? {
        return Err(SocketError::InUse(path.to_owned()));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("removing the left-over", error))
        }
        _ => Ok(()),
    }
}

/// Whether a program listens there. A connection that would have to wait shows that, too.
fn answers(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(rustix::io::Errno::AGAIN) => Ok(true),
        Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // The file gets the mode of the socket as it is made, so at no time can others connect.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    // What the umask took away is given back.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_socket_is_there_as_long_as_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/wg0.sock");
        let socket = Socket::listen(&path, 0o600).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
        assert!(!path.exists());
        let socket = Socket::listen(&path, 0o666).unwrap();
        assert_eq!(mode(&path), 0o666);
        assert_eq!(socket.path(), path);
    }

    #[test]
    fn a_second_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wg0.sock");
        let socket = Socket::listen(&path, 0o600).unwrap();
        assert!(matches!(
            Socket::listen(&path, 0o600),
            Err(SocketError::InUse(_))
        ));
        // Not even when it is too busy to answer.
        let waiting: Vec<_> = (0..BACKLOG)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        assert!(matches!(
            Socket::listen(&path, 0o600),
            Err(SocketError::InUse(_))
        ));
        drop((waiting, socket));
    }

    #[test]
    fn what_a_killed_program_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wg0.sock");
        let killed = Socket::listen(&path, 0o600).unwrap();
        let copy = killed.listener().try_clone().unwrap();
        std::mem::forget(killed);
        assert!(Socket::listen(&path, 0o600).is_err());
        // The descriptor that was forgotten goes on listening; end that as the kernel does.
        rustix::net::shutdown(&copy, rustix::net::Shutdown::Both).unwrap();
        let socket = Socket::listen(&path, 0o600).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
    }

    #[test]
    fn only_what_was_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let alive = Socket::listen(&path("alive.stats"), 0o666).unwrap();
        for name in ["dead.stats", "dead.sock"] {
            drop(UnixListener::bind(path(name)).unwrap());
        }
        std::fs::write(path("file.stats"), "").unwrap();
        Socket::sweep(folder.path(), "stats");
        let there = |name| path(name).exists();
        assert!(there("alive.stats") && there("dead.sock") && there("file.stats"));
        assert!(!there("dead.stats"));
        drop(alive);
        Socket::sweep(Path::new("/nonexistent"), "stats");
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wg0.sock");
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(
            Socket::listen(&path, 0o600),
            Err(SocketError::NotSocket(_))
        ));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn removal_and_replacement_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wg0.sock");
        let socket = Socket::listen(&path, 0o600).unwrap();
        let watch = socket.watch().unwrap();
        assert!(watch.still_there());
        std::fs::remove_file(&path).unwrap();
        let mut fds = [rustix::event::PollFd::new(
            &watch,
            rustix::event::PollFlags::IN,
        )];
        let soon = rustix::event::Timespec {
            tv_sec: 5,
            tv_nsec: 0,
        };
        assert_eq!(rustix::event::poll(&mut fds, Some(&soon)), Ok(1));
        assert!(!watch.still_there());
        // Who comes after keeps its file.
        let successor = Socket::listen(&path, 0o600).unwrap();
        assert!(!watch.still_there());
        drop(socket);
        assert!(path.exists());
        drop(successor);
        assert!(!path.exists());
    }
}
