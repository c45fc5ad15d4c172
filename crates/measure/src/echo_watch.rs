//! Which echo requests of a train arrive: the far end's side of a probe.
//!
//! A reply says that a size passes there *and* back; only the receiver can say that it passed there. A raw ICMP
//! socket is handed a copy of every request the kernel answers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::echo_packet::Kind;
use crate::echo_socket::EchoSocket;

/// Longer watches are a mistake.
const SECONDS_AT_MOST: f64 = 300.0;

/// What to watch for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct EchoWatch {
    /// IPv4 or IPv6?
    pub(crate) v4: bool,
    /// Token of the train.
    pub(crate) token: u64,
    /// Ends by itself after so many seconds.
    pub(crate) seconds: f64,
}

/// The socket of a watch; requests are collected from now on, in its buffer.
pub(crate) fn open(watch: &EchoWatch) -> Result<EchoSocket, String> {
    let socket = EchoSocket::open(watch.v4)?;
    if socket.is_raw() {
        Ok(socket)
    } else {
        Err("only root can watch for echo requests".to_owned())
    }
}

/// Collects the numbers of the packets that arrive until `finished` or the watch's time is over.
pub(crate) fn run(
    socket: &EchoSocket,
    watch: &EchoWatch,
    finished: &dyn Fn() -> bool,
) -> BTreeSet<u32> {
    let until = Instant::now() + Duration::from_secs_f64(watch.seconds.clamp(0.0, SECONDS_AT_MOST));
    let mut arrived = BTreeSet::new();
    loop {
        // Looked at before the last emptying: what had arrived when somebody asked is counted.
        let last = finished() || Instant::now() >= until;
        while let Some((number, _)) = socket.receive(Kind::Request, watch.token) {
            arrived.insert(number);
        }
        if last {
            return arrived;
        }
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let mut ready = [PollFd::new(socket, PollFlags::IN)];
        // An interrupted wait only means to look again.
        let _ = poll(&mut ready, Some(&timeout));
    }
}
