//! One batch to one destination: trains, and what is done when the kernel doesn't take one.
//!
//! ```text
//! sendmmsg → EMSGSIZE        the path is too narrow for these segments: singly, and no trains of them there for a while
//!          → EINVAL, EIO     does the first datagram go by itself? then trains are at fault: singly from now on
//!                            (an older kernel says EINVAL for a narrow path, so the path is asked for its MTU)
//!          → EAGAIN, ENOBUFS waits, bounded: the back-pressure of a full socket buffer
//!          → EPERM           a firewall rule; the next may pass
//!          → all else        tried once more, as it may be an earlier datagram's; then the rest is given up
//! ```

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::address::{Family, LocalAddress, Name};
use super::control::Control;
use super::narrow::NarrowPaths;
use super::open::path_mtu;
use super::sys;
use super::trains::Train;
use crate::offloads::{Offload, Offloads};

/// How long one batch waits for room in the socket buffer.
const WAIT: Duration = Duration::from_millis(100);

/// How long it waits after a batch had to be dropped, until one gets through again: a road that is closed for one peer
/// mustn't stop the others.
const WAIT_WHEN_STUCK: Duration = Duration::from_millis(2);

/// The kernel says that there is room only when half of the buffer is empty, so it is tried this often.
const WAIT_STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// What became of a batch.
#[derive(Debug, Default)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: u32,
    /// Their bytes, without headers.
    pub bytes: u64,
    /// Calls of the kernel that it needed.
    pub system_calls: u32,
    /// Messages that the datagrams went in: trains, and datagrams by themselves.
    pub trains: u32,
    /// How often it had to wait for room in the socket buffer.
    pub waits: u32,
    /// Datagrams that were dropped.
    pub failed: u32,
    /// Why, of the last of them.
    pub error: Option<io::Error>,
}

/// What senders of one socket share.
#[derive(Debug, Default)]
pub(super) struct Road {
    pub(super) narrow: NarrowPaths,
    /// Whether the last batch that had to wait did so in vain.
    pub(super) stuck: AtomicBool,
}

/// One batch being sent.
pub(super) struct Sender<'a> {
    pub(super) socket: BorrowedFd<'a>,
    pub(super) offloads: &'a Offloads,
    pub(super) road: &'a Road,
    pub(super) fwmark: u32,
    pub(super) to: SocketAddr,
    pub(super) from: Option<LocalAddress>,
    name: Name,
    waiting_since: Option<Instant>,
    sent: Sent,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        socket: BorrowedFd<'a>,
        offloads: &'a Offloads,
        road: &'a Road,
        fwmark: u32,
        to: SocketAddr,
        from: Option<LocalAddress>,
    ) -> Self {
        Self {
            socket,
            offloads,
            road,
            fwmark,
            to,
            from: from.filter(|from| from.address.is_ipv4() == to.is_ipv4()),
            name: Name::from(&to),
            waiting_since: None,
            sent: Sent::default(),
        }
    }

    /// Bytes of the longest datagram that may travel in a train; 0 when none may.
    pub(super) fn longest(&self) -> usize {
        if self.offloads.on(Offload::UdpGso) {
            self.road.narrow.longest(self.to.ip())
        } else {
            0
        }
    }

    /// Sends all of them in order.
    pub(super) fn run<'b>(mut self, mut trains: impl Iterator<Item = Train<'b>>) -> Sent {
        let mut given = 0;
        loop {
            let mut chunk = [Train::NONE; sys::MAX_SENT];
            let mut filled = 0;
            for (place, train) in chunk.iter_mut().zip(&mut trains) {
                *place = train;
                given += train.datagrams;
                filled += 1;
            }
            if filled == 0 {
                break;
            }
            if self.send(&chunk[..filled]).is_break() {
                given += trains.by_ref().map(|train| train.datagrams).sum::<u32>();
                break;
            }
        }
        self.sent.failed = given - self.sent.datagrams;
        if self.sent.failed == 0 && self.road.stuck.load(Ordering::Relaxed) {
            self.road.stuck.store(false, Ordering::Relaxed);
        }
        self.sent
    }

    /// Sends these, and breaks when there is no sense in sending more.
    fn send(&mut self, mut trains: &[Train<'_>]) -> ControlFlow<()> {
        let mut tried = false;
        while let Some(first) = trains.first() {
            let longest = self.longest();
            let fits = |train: &Train<'_>| !train.is_long() || train.segment <= longest;
            if !fits(first) {
                self.singly(first.singles())?;
                trains = &trains[1..];
                continue;
            }
            let run = trains.iter().take_while(|train| fits(train)).count();
            self.sent.system_calls += 1;
            let control = |train: &Train<'_>| control(self.from.as_ref(), self.to.is_ipv4(), train);
            match sys::send(self.socket, &self.name, &trains[..run], control) {
                Ok(count) => {
                    self.count(&trains[..count]);
                    trains = &trains[count..];
                    tried = false;
                }
                Err(error) => {
                    match (Errno::from_io_error(&error), first.is_long()) {
                        (Some(Errno::INTR), _) => continue,
                        (Some(Errno::AGAIN | Errno::NOBUFS), _) => {
                            if !self.wait(&error) {
                                self.sent.error = Some(error);
                                return ControlFlow::Break(());
                            }
                            continue;
                        }
                        (Some(Errno::MSGSIZE | Errno::INVAL | Errno::IO), true) => {
                            self.without_gso(first, &error)?;
                        }
                        (Some(Errno::MSGSIZE), false) => self.sent.error = Some(error),
                        _ if !tried => {
                            tried = true;
                            continue;
                        }
                        (Some(Errno::PERM), _) => self.sent.error = Some(error),
                        _ => {
                            self.sent.error = Some(error);
                            return ControlFlow::Break(());
                        }
                    }
                    trains = &trains[1..];
                    tried = false;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Sends a train's datagrams by themselves, and finds out what was wrong with the train.
    fn without_gso(&mut self, train: &Train<'_>, error: &io::Error) -> ControlFlow<()> {
        let mut singles = train.singles();
        let taken = self.sent.datagrams;
        // If not even one goes, the train is not at fault.
        self.singly(singles.by_ref().take(1))?;
        if self.sent.datagrams > taken {
            self.blame(train.segment, error);
        }
        self.singly(singles)
    }

    /// Remembers that trains of this segment failed here, while single datagrams don't.
    pub(super) fn blame(&self, segment: usize, error: &io::Error) {
        let to = self.to;
        let headers = Family::of(&to).header_bytes();
        let path = path_mtu(to, self.from, self.fwmark)
            .map(|mtu| mtu.saturating_sub(headers))
            .filter(|longest| *longest < segment);
        let too_long = Errno::from_io_error(error) == Some(Errno::MSGSIZE);
        if too_long || path.is_some() {
            let longest = path.unwrap_or(segment - 1);
            self.road.narrow.remember(to.ip(), longest);
            let ip = to.ip();
            let why = format!(
                "datagrams of {segment} B to {ip} are fragmented, as the path takes no more than {longest} B; \
                 a smaller MTU of the tunnel would help"
            );
            self.offloads.failed_once(Offload::UdpGso, &why);
        } else {
            let why = format!("sending segments of {segment} B to {to}: {error}");
            self.offloads.degrade(Offload::UdpGso, &why);
        }
    }

    fn singly<'b>(&mut self, mut singles: impl Iterator<Item = Train<'b>>) -> ControlFlow<()> {
        loop {
            let mut chunk = [Train::NONE; sys::MAX_SENT];
            let places = chunk.iter_mut().zip(&mut singles);
            let filled = places.map(|(place, single)| *place = single).count();
            if filled == 0 {
                return ControlFlow::Continue(());
            }
            self.send(&chunk[..filled])?;
        }
    }

    fn count(&mut self, taken: &[Train<'_>]) {
        for train in taken {
            self.sent.datagrams += train.datagrams;
            self.sent.bytes += train.bytes.len() as u64;
            self.sent.trains += 1;
        }
    }

    /// Waits a moment for room in the socket buffer; false when it took too long.
    fn wait(&mut self, error: &io::Error) -> bool {
        let bound = if self.road.stuck.load(Ordering::Relaxed) {
            WAIT_WHEN_STUCK
        } else {
            WAIT
        };
        if self
            .waiting_since
            .get_or_insert_with(Instant::now)
            .elapsed()
            >= bound
        {
            self.road.stuck.store(true, Ordering::Relaxed);
            return false;
        }
        self.sent.waits += 1;
        // Out of memory elsewhere than in the socket buffer: its own room says nothing.
        let flags = if Errno::from_io_error(error) == Some(Errno::NOBUFS) {
            PollFlags::empty()
        } else {
            PollFlags::OUT
        };
        let mut socket = [PollFd::from_borrowed_fd(self.socket, flags)];
        // An interruption is as good as the time being over.
        let _ = rustix::event::poll(&mut socket, Some(&WAIT_STEP));
        true
    }
}

/// What goes with a message: only what differs from the socket's defaults.
pub(super) fn control(from: Option<&LocalAddress>, is_v4: bool, train: &Train<'_>) -> Control {
    let mut control = Control::EMPTY;
    if let Some(from) = from {
        from.encode(&mut control);
    }
    if train.traffic_class != 0 {
        let class = i32::from(train.traffic_class).to_ne_bytes();
        if is_v4 {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, &class);
        } else {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
        }
    }
    if train.is_long() {
        let segment = (train.segment as u16).to_ne_bytes();
        control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment);
    }
    control
}
