//! The configuration protocol that `wg` speaks, as on <https://www.wireguard.com/xplatform/>.
//!
//! Answers are those of wireguard-go but for these:
//!
//! - A `set` is understood to its end before anything is changed; wireguard-go changes line by line and keeps what it changed
//!   before a bad one.
//! - A `set` without the empty line at its end changes nothing and is answered `errno=-71` (`EPROTO`); wireguard-go carries it out.
//! - After a bad line the rest of that request is passed over, so that the next one is answered.
//! - What begins with neither `get=1` nor `set=1` is answered `errno=-71` before the connection is closed.
//! - A port or mark that can't be set is answered with the system's own error number, not always with `EADDRINUSE`.
//! - A `set` of the private key or the port in use changes nothing; wireguard-go opens its sockets anew.
//! - An endpoint whose scope is no interface's name is refused, and a v4-mapped endpoint is shown as the IPv4 address it is.
//! - A line or a request that is too long is answered `errno=-7` (`E2BIG`), and one that doesn't come in time `errno=-110`
//!   (`ETIMEDOUT`), and the connection is closed.
//! - Peers are listed in the order they were added, as by the kernel.

use std::io::{self, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::Interface;
use super::get::get;
use super::line::LineError;
use super::request::{ReadError, Request, Requests};
use super::set::{SetError, set};
use crate::lock::Locked;

/// What all connections of one interface share.
#[derive(Default)]
pub struct Uapi {
    /// Held by who changes something, so that two requests don't mix.
    changing: Mutex<()>,
    gets: AtomicU64,
    sets: AtomicU64,
    failures: [AtomicU64; Failure::ALL.len()],
}

impl Uapi {
    /// Answers the requests of one connection until the other side is done, is silent for too long, or says what is no
    /// request.
    pub fn converse(&self, interface: &dyn Interface, input: impl Read, mut output: impl Write) {
        let mut requests = Requests::new(input);
        loop {
            let errno = match requests.read_next() {
                Ok(Some(Request::Get)) => {
                    self.gets.fetch_add(1, Ordering::Relaxed);
                    if get(interface, &mut output).is_err() {
                        self.count(Failure::Disconnected);
                        return;
                    }
                    0
                }
                Ok(Some(Request::Set(body))) => self.set(interface, body),
                Ok(None) | Err(ReadError::Idle) => return,
                Err(error) => {
                    self.count(Failure::of_read(&error));
                    log::error!("configuration refused: {error}");
                    let _ = status(&mut output, read_errno(&error));
                    return;
                }
            };
            if status(&mut output, errno).is_err() {
                self.count(Failure::Disconnected);
                return;
            }
        }
    }

    /// What was asked and what failed, for the statistics.
    pub fn statistics(&self) -> Value {
        let failures: Map<_, _> = Failure::ALL
            .into_iter()
            .map(|failure| {
                let count = self.failures[failure as usize].load(Ordering::Relaxed);
                (failure.name().to_owned(), count.into())
            })
            .collect();
        json!({
            "gets": self.gets.load(Ordering::Relaxed),
            "sets": self.sets.load(Ordering::Relaxed),
            "failures": failures,
        })
    }

    fn set(&self, interface: &dyn Interface, body: &[u8]) -> i32 {
        self.sets.fetch_add(1, Ordering::Relaxed);
        let _changing = self.changing.locked();
        match set(interface, body) {
            Ok(()) => 0,
            Err(error) => {
                self.count(Failure::of_set(&error));
                log::error!("configuration refused: {error}");
                set_errno(&error)
            }
        }
    }

    fn count(&self, failure: Failure) {
        self.failures[failure as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The end of each answer; in one piece, for who reads no further than it has to.
fn status(output: &mut impl Write, errno: i32) -> io::Result<()> {
    output.write_all(format!("errno={}\n\n", -errno).as_bytes())?;
    output.flush()
}

fn read_errno(error: &ReadError) -> i32 {
    match error {
        ReadError::Operation | ReadError::Unfinished => libc::EPROTO,
        ReadError::LongGet => libc::EINVAL,
        ReadError::LineTooLong(_) | ReadError::TooLong => libc::E2BIG,
        ReadError::TimedOut | ReadError::Idle => libc::ETIMEDOUT,
        ReadError::Io(_) => libc::EIO,
    }
}

fn set_errno(error: &SetError) -> i32 {
    match error {
        SetError::Line {
            error: LineError::NoPair,
            ..
        } => libc::EPROTO,
        SetError::Line { .. } => libc::EINVAL,
        SetError::ListenPort { error, .. } | SetError::FwMark { error, .. } => error
            .raw_os_error()
            .filter(|number| *number > 0)
            .unwrap_or(libc::EADDRINUSE),
    }
}

/// Why a request failed, to be counted.
#[derive(Clone, Copy)]
enum Failure {
    NotRequest,
    TooLong,
    Unfinished,
    TimedOut,
    Disconnected,
    NoPair,
    UnknownKey,
    BadValue,
    ListenPort,
    FwMark,
}

impl Failure {
    const ALL: [Self; 10] = [
        Self::NotRequest,
        Self::TooLong,
        Self::Unfinished,
        Self::TimedOut,
        Self::Disconnected,
        Self::NoPair,
        Self::UnknownKey,
        Self::BadValue,
        Self::ListenPort,
        Self::FwMark,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::NotRequest => "not-a-request",
            Self::TooLong => "too-long",
            Self::Unfinished => "unfinished",
            Self::TimedOut => "timed-out",
            Self::Disconnected => "disconnected",
            Self::NoPair => "no-pair",
            Self::UnknownKey => "unknown-key",
            Self::BadValue => "bad-value",
            Self::ListenPort => "listen-port",
            Self::FwMark => "fwmark",
        }
    }

    const fn of_read(error: &ReadError) -> Self {
        match error {
            ReadError::Operation | ReadError::LongGet => Self::NotRequest,
            ReadError::LineTooLong(_) | ReadError::TooLong => Self::TooLong,
            ReadError::Unfinished => Self::Unfinished,
            ReadError::TimedOut | ReadError::Idle => Self::TimedOut,
            ReadError::Io(_) => Self::Disconnected,
        }
    }

    const fn of_set(error: &SetError) -> Self {
        match error {
            SetError::Line { error, .. } => match error {
                LineError::NoPair => Self::NoPair,
                LineError::UnknownDeviceKey | LineError::UnknownPeerKey => Self::UnknownKey,
                LineError::BadValue { .. } => Self::BadValue,
            },
            SetError::ListenPort { .. } => Self::ListenPort,
            SetError::FwMark { .. } => Self::FwMark,
        }
    }
}
