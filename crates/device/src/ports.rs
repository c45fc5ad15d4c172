//! The UDP sockets of all workers: bound while the link is up, exchanged when the port changes.
//!
//! Each worker has sockets of its own at the listen port (`SO_REUSEPORT`: the kernel chooses by the peer's address), and
//! with `--spread` all but the first also send from a port of their own. A worker asks for [`generation`](Ports::generation)
//! before each turn, which is a load of a line that is hardly ever written, and fetches its sockets when that has changed.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::lock::Locked;
use crate::offloads::Offloads;
use crate::udp::{BindOptions, Sockets, UdpError};

/// How often and how long workers are waited for that still hold a port they were told to give up.
const RELEASE_TRIES: u32 = 200;
const RELEASE_PAUSE: Duration = Duration::from_millis(5);

/// The sockets of one worker.
pub(crate) struct WorkerPorts {
    /// At the port peers know.
    pub(crate) listening: Sockets,
    /// At a port of the worker's own, which it sends from.
    pub(crate) own: Option<Sockets>,
}

impl WorkerPorts {
    /// Of all its sockets.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = self.own.iter().flat_map(Sockets::descriptors);
        self.listening.descriptors().chain(own)
    }
}

pub(crate) struct Ports {
    offloads: Arc<Offloads>,
    workers: usize,
    spread: bool,
    state: Mutex<State>,
    generation: AtomicU64,
}

#[derive(Default)]
struct State {
    /// What the user wants; 0 is any.
    wanted: u16,
    /// What was chosen the last time any would do, so that it stays the same over down and up.
    chosen: u16,
    fwmark: u32,
    up: bool,
    sockets: Vec<Arc<WorkerPorts>>,
    /// Given up, but a worker may not have let go of them yet.
    old: Vec<Weak<WorkerPorts>>,
}

impl Ports {
    /// None are bound yet.
    pub(crate) fn new(offloads: &Arc<Offloads>, workers: usize, spread: bool) -> Self {
        Self {
            offloads: Arc::clone(offloads),
            workers,
            spread,
            state: Mutex::default(),
            generation: AtomicU64::new(1),
        }
    }

    /// Changes when [`of_worker`](Self::of_worker) would say something else; never 0.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The sockets of this worker, while there are any.
    pub(crate) fn of_worker(&self, worker: usize) -> Option<Arc<WorkerPorts>> {
        self.state.locked().sockets.get(worker).cloned()
    }

    /// The link is up: binds. Nothing happens when it was up before.
    pub(crate) fn open(&self) -> Result<(), UdpError> {
        let mut state = self.state.locked();
        state.up = true;
        if !state.sockets.is_empty() {
            return Ok(());
        }
        let wanted = match state.wanted {
            0 => state.chosen,
            wanted => wanted,
        };
        let bound = self.bind(&state, wanted).or_else(|error| {
            // Somebody else has what we had before. Nobody asked for just that one.
            if state.wanted == 0 && wanted != 0 {
                self.bind(&state, 0)
            } else {
                Err(error)
            }
        })?;
        self.install(&mut state, bound);
        Ok(())
    }

    /// The link is down: the port is free again once the workers have let go.
    pub(crate) fn close(&self) {
        let mut state = self.state.locked();
        state.up = false;
        self.install(&mut state, Vec::new());
    }

    pub(crate) fn port(&self) -> u16 {
        let state = self.state.locked();
        match state.wanted {
            0 => state.chosen,
            wanted => wanted,
        }
    }

    /// Moves to another port, now or when the link comes up. When that can't be bound all stays as it was.
    pub(crate) fn set_port(&self, port: u16) -> io::Result<()> {
        let mut state = self.state.locked();
        if state.up && (state.sockets.is_empty() || port == 0 || port_in_use(&state) != port) {
            let bound = self.bind(&state, port).map_err(io::Error::from)?;
            self.install(&mut state, bound);
        }
        state.wanted = port;
        if !state.up {
            state.chosen = 0;
        }
        Ok(())
    }

    pub(crate) fn fwmark(&self) -> u32 {
        self.state.locked().fwmark
    }

    pub(crate) fn set_fwmark(&self, mark: u32) -> io::Result<()> {
        let mut state = self.state.locked();
        for ports in &state.sockets {
            ports.listening.set_fwmark(mark)?;
            if let Some(own) = &ports.own {
                own.set_fwmark(mark)?;
            }
        }
        state.fwmark = mark;
        Ok(())
    }

    fn install(&self, state: &mut State, sockets: Vec<Arc<WorkerPorts>>) {
        if let Some(first) = sockets.first() {
            state.chosen = first.listening.port();
        }
        let old = std::mem::replace(&mut state.sockets, sockets);
        state.old.retain(|old| old.strong_count() > 0);
        state.old.extend(old.iter().map(Arc::downgrade));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Binds; waits for our own workers when it is them who still have the port.
    fn bind(&self, state: &State, port: u16) -> Result<Vec<Arc<WorkerPorts>>, UdpError> {
        for _ in 0..RELEASE_TRIES {
            match self.try_bind(port, state.fwmark) {
                Err(UdpError::PortTaken { .. })
                    if state.old.iter().any(|old| old.strong_count() > 0) =>
                {
                    std::thread::sleep(RELEASE_PAUSE);
                }
                bound => return bound,
            }
        }
        self.try_bind(port, state.fwmark)
    }

    fn try_bind(&self, port: u16, fwmark: u32) -> Result<Vec<Arc<WorkerPorts>>, UdpError> {
        let mut port = port;
        let share_port = self.workers > 1;
        if share_port {
            // Sharing would also let us in beside another program of ours that shares the port. Alone we learn of it.
            let alone = Sockets::bind(
                &BindOptions {
                    port,
                    fwmark,
                    share_port: false,
                },
                &self.offloads,
            )?;
            port = alone.port();
        }
        let mut all = Vec::with_capacity(self.workers);
        for worker in 0..self.workers {
            let listening = Sockets::bind(
                &BindOptions {
                    port,
                    fwmark,
                    share_port,
                },
                &self.offloads,
            )?;
            port = listening.port();
            let own = if self.spread && worker > 0 {
                Some(Sockets::bind(
                    &BindOptions {
                        port: 0,
                        fwmark,
                        share_port: false,
                    },
                    &self.offloads,
                )?)
            } else {
                None
            };
            all.push(Arc::new(WorkerPorts { listening, own }));
        }
        Ok(all)
    }
}

fn port_in_use(state: &State) -> u16 {
    let first = state.sockets.first();
    first.map_or(0, |ports| ports.listening.port())
}
