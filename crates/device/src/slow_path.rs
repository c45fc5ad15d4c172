//! The thread for what takes long or comes seldom: handshakes and timers.
//!
//! A handshake takes as long as a hundred packets, so workers only put its messages into a queue. When the queue is
//! full they drop them, which costs next to nothing; when it is long the protocol is told that there is load,
//! and asks for cookies.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::SysRng;
use rand_core::UnwrapErr;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use wirespeed_protocol::{Event, Instant, Tunnel, wire};

use crate::bell::Bell;
use crate::clock;
use crate::common::Core;
use crate::lock::Locked;
use crate::peer_name::short;
use crate::ports::WorkerPorts;
use crate::statistics::{Loss, WorkerStatistics};
use crate::udp::LocalAddress;

/// Handshake messages that wait; more are dropped.
const MAX_MESSAGES: usize = 1_024;

/// From so many on there is load: an eighth of the queue, as in the kernel's driver.
const LOAD_MESSAGES: usize = MAX_MESSAGES / 8;

/// Load goes on for this long after the queue was last so long.
const LOAD_LASTS: Duration = Duration::from_secs(1);

/// Messages worked on before timers and events are looked at again.
const MESSAGES_AT_ONCE: usize = 32;

/// Messages that come faster than this and take no time are worked on together: to wake for each of a flood would cost
/// more than it does to answer them, and takes a core from those who carry traffic.
const NAP: Duration = Duration::from_millis(2);

/// `wakes_at` while the thread runs and will look for itself.
const AWAKE: u64 = 0;

/// `wakes_at` while no timer runs.
const NEVER: u64 = u64::MAX;

/// What other threads have of the slow path.
pub(crate) struct SlowPath {
    messages: Mutex<VecDeque<Message>>,
    waiting: AtomicUsize,
    /// When the thread will wake by itself, in nanoseconds of the clock.
    wakes_at: AtomicU64,
    bell: Bell,
}

/// A message of the handshake.
struct Message {
    bytes: [u8; wire::INITIATION_BYTES],
    length: usize,
    source: SocketAddr,
    local: Option<LocalAddress>,
}

impl SlowPath {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            messages: Mutex::default(),
            waiting: AtomicUsize::new(0),
            wakes_at: AtomicU64::new(AWAKE),
            bell: Bell::new()?,
        })
    }

    /// Takes a message of the handshake. False when too many wait, or it is none.
    pub(crate) fn push(
        &self,
        datagram: &[u8],
        source: SocketAddr,
        local: Option<LocalAddress>,
    ) -> bool {
        let mut message = Message {
            bytes: [0; wire::INITIATION_BYTES],
            length: datagram.len(),
            source,
            local,
        };
        let Some(bytes) = message.bytes.get_mut(..datagram.len()) else {
            return false;
        };
        bytes.copy_from_slice(datagram);
        if self.waiting.load(Ordering::Relaxed) >= MAX_MESSAGES {
            return false;
        }
        {
            let mut messages = self.messages.locked();
            messages.push_back(message);
            self.waiting.store(messages.len(), Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        if self.wakes_at.load(Ordering::Relaxed) != AWAKE {
            self.wake();
        }
        true
    }

    /// To be called after whatever may have set a timer: wakes the thread if it would sleep too long. Hardly ever a
    /// system call, for timers mostly move away.
    pub(crate) fn look_at_timers(&self, tunnel: &Tunnel) {
        // Either the thread sees the new deadline when it looks a last time before it sleeps, or we see that it sleeps.
        fence(Ordering::SeqCst);
        if let Some(deadline) = tunnel.next_deadline()
            && deadline.as_nanos() < self.wakes_at.load(Ordering::Relaxed)
        {
            self.wake();
        }
    }

    /// Has the thread look at everything.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.wakes_at.swap(AWAKE, Ordering::Relaxed) != AWAKE {
            self.bell.ring();
        }
    }

    fn pop(&self) -> Option<(Message, usize)> {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut messages = self.messages.locked();
        let waiting = messages.len();
        let message = messages.pop_front();
        self.waiting.store(messages.len(), Ordering::Relaxed);
        Some((message?, waiting))
    }

    /// Sleeps until something is to do.
    fn sleep(&self, core: &Core) {
        let until = deadline(core).map_or(NEVER, |deadline| deadline.as_nanos().max(AWAKE + 1));
        self.wakes_at.store(until, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let nothing_new = self.waiting.load(Ordering::Relaxed) == 0
            && deadline(core).is_none_or(|deadline| deadline.as_nanos() >= until)
            && !core.stopping();
        if nothing_new {
            let timeout = (until != NEVER)
                .then(|| Instant::from_nanos(until).since(clock::now().instant))
                .and_then(|wait| Timespec::try_from(wait).ok());
            let mut bell = [PollFd::new(&self.bell, PollFlags::IN)];
            // An interruption only means that we look too early.
            let _ = poll(&mut bell, timeout.as_ref());
        }
        self.wakes_at.store(AWAKE, Ordering::Relaxed);
        self.bell.clear();
    }
}

/// When a timer is due. None runs while the link is down.
fn deadline(core: &Core) -> Option<Instant> {
    core.is_up().then(|| core.tunnel.next_deadline()).flatten()
}

/// The thread, until the device stops.
pub(crate) fn run(core: &Core, statistics: &WorkerStatistics) {
    let mut thread = Thread {
        core,
        statistics,
        ports: None,
        load_until: None,
    };
    let mut busy_at = Instant::default();
    while !core.stopping() {
        let began = clock::now().instant;
        let messages = thread.turn();
        statistics.waits();
        let idle = clock::now().instant.since(began) < NAP;
        if messages && idle && began.since(busy_at) < NAP * 2 {
            std::thread::sleep(NAP);
        } else {
            core.slow_path.sleep(core);
        }
        if messages {
            busy_at = began;
        }
    }
}

struct Thread<'a> {
    core: &'a Core,
    statistics: &'a WorkerStatistics,
    /// Only held while awake, so that a port is free as soon as it is given up.
    ports: Option<Arc<WorkerPorts>>,
    load_until: Option<Instant>,
}

impl Thread<'_> {
    /// Does all there is to do; whether there was a message.
    fn turn(&mut self) -> bool {
        let core = self.core;
        let mut any = false;
        loop {
            self.ports = core.ports.of_worker(0);
            let now = clock::now();
            if deadline(core).is_some_and(|deadline| deadline <= now.instant) {
                core.tunnel.timers(now, &mut UnwrapErr(SysRng));
                self.send_waiting();
            }
            let mut more = false;
            for _ in 0..MESSAGES_AT_ONCE {
                let Some((message, waiting)) = core.slow_path.pop() else {
                    break;
                };
                more = true;
                self.handshake(&message, waiting);
            }
            while let Some(event) = core.tunnel.poll_event() {
                self.event(event);
            }
            if core.outbox.waits(&core.tunnel) {
                self.send_waiting();
            }
            self.ports = None;
            any |= more;
            if !more || core.stopping() {
                return any;
            }
        }
    }

    fn handshake(&mut self, message: &Message, waiting: usize) {
        let core = self.core;
        let now = clock::now();
        if waiting >= LOAD_MESSAGES {
            if self.load_until.is_none() {
                log::info!(
                    "many handshake messages wait: their senders have to prove their addresses for a while"
                );
                core.tunnel.force_load(true);
            }
            self.load_until = Some(now.instant + LOAD_LASTS);
        } else if self.load_until.is_some_and(|until| until <= now.instant) {
            core.tunnel.force_load(false);
            self.load_until = None;
        }
        if let Some(local) = message.local {
            core.outbox.expect_answer(message.source, local);
        }
        let datagram = &message.bytes[..message.length];
        let result = core
            .tunnel
            .handshake(now, message.source, datagram, &mut UnwrapErr(SysRng));
        if let Err(reason) = result {
            log::debug!("handshake message from {}: {reason}", message.source);
        }
        self.send_waiting();
    }

    fn event(&self, event: Event) {
        match event {
            Event::HandshakeComplete(peer) => {
                log::debug!("peer {}: handshake complete", short(&peer));
            }
            Event::NoAnswer(peer) => {
                log::debug!("peer {}: no answer, asking again", short(&peer));
                if let Some(peer) = self.core.tunnel.peer(&peer) {
                    self.core.sticky.forget(peer.id());
                }
            }
            Event::GaveUp(peer) => log::info!(
                "peer {}: no answer for 90 s, waiting for traffic",
                short(&peer)
            ),
            Event::KeysWiped(peer) => {
                log::debug!("peer {}: keys wiped, nothing new was agreed", short(&peer));
            }
            _ => {}
        }
    }

    fn send_waiting(&self) {
        self.core
            .send_waiting(self.ports.as_deref(), self.statistics);
    }
}

/// A message for the queue, or its loss.
pub(crate) fn hand_over(
    core: &Core,
    datagram: &[u8],
    source: SocketAddr,
    local: Option<LocalAddress>,
    statistics: &WorkerStatistics,
) {
    if !core.slow_path.push(datagram, source, local) {
        statistics.lost(Loss::HandshakeQueueFull, 1);
    }
}
