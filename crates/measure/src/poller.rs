//! Waiting for many sockets at once (epoll(7)), in one thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Events taken at once.
const EVENTS: usize = 512;

/// Sockets and what each is waited for.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    /// Waits for bytes to read. A socket that is closed leaves the set by itself.
    pub(crate) fn add_reader(&self, socket: &impl AsFd, name: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(name),
            EventFlags::IN,
        )?)
    }

    /// Waits for room to write.
    pub(crate) fn add_writer(&self, socket: &impl AsFd, name: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(name),
            EventFlags::OUT,
        )?)
    }

    /// From now on waits for bytes to read, or for room to write.
    pub(crate) fn change(&self, socket: &impl AsFd, name: u64, write: bool) -> io::Result<()> {
        let flags = if write {
            EventFlags::OUT
        } else {
            EventFlags::IN
        };
        Ok(epoll::modify(
            &self.epoll,
            socket,
            EventData::new_u64(name),
            flags,
        )?)
    }

    /// Names of what is ready within `limit`: to be read or written as it was waited for, or at its end.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<Vec<u64>> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let timeout = Timespec {
            tv_sec: limit.as_secs().cast_signed(),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            // An interrupted wait only means to look again.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(events.iter().map(|event| event.data.u64()).collect())
    }
}

/// Sees to it that this process may have so many files open, within its hard limit.
pub(crate) fn allow_open_files(wanted: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|most| most < wanted) {
        let most = limit.maximum.unwrap_or(0);
        return Err(format!(
            "that takes {wanted} open files, and this process may have {most}; raise its hard limit (ulimit -Hn, LimitNOFILE=), or make fewer connections"
        ));
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        },
    )
    .map_err(|error| format!("the limit of open files could not be raised to {wanted}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn only_what_is_ready_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let poller = Poller::new().unwrap();
        poller.add_reader(&server, 7).unwrap();
        poller.add_writer(&client, 8).unwrap();
        let names =
            |poller: &Poller| -> Vec<u64> { poller.wait(Duration::from_millis(50)).unwrap() };
        assert_eq!(names(&poller), [8]);
        poller.change(&client, 8, false).unwrap();
        assert_eq!(names(&poller), [0; 0]);
        client.write_all(b"x").unwrap();
        assert_eq!(names(&poller), [7]);
        drop(server);
        // The closed one has left; the other is told of its end.
        assert_eq!(names(&poller), [8]);
    }

    #[test]
    fn the_limit_of_files_is_raised_within_reason() {
        let limit = getrlimit(Resource::Nofile);
        allow_open_files(limit.current.unwrap_or(1024)).unwrap();
        if let Some(most) = limit.maximum {
            let error = allow_open_files(most + 1).unwrap_err();
            assert!(error.contains("hard limit"), "{error}");
            allow_open_files(most).unwrap();
            assert_eq!(getrlimit(Resource::Nofile).current, Some(most));
        }
    }
}
