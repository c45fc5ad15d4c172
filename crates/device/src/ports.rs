//! The UDP sockets of all workers: bound while the link is up, exchanged when the port changes.
//!
//! Each worker has sockets of its own at the listen port (`SO_REUSEPORT`: the kernel chooses by the peer's address), and
//! with `--spread` all but the first also send from a port of their own. A worker asks for [`generation`](Ports::generation)
//! before each turn, which is a load of a line that is hardly ever written, and fetches its sockets when that has changed.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::Locked;
use crate::offloads::Offloads;
use crate::udp::{BindOptions, Sockets, UdpError};

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
        let bound = self.bind(wanted, state.fwmark).or_else(|error| {
            // Somebody else has what we had before. Nobody asked for just that one.
            if state.wanted == 0 && wanted != 0 {
                self.bind(0, state.fwmark)
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
            let bound = self.bind(port, state.fwmark).map_err(io::Error::from)?;
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
        state.sockets = sockets;
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn bind(&self, port: u16, fwmark: u32) -> Result<Vec<Arc<WorkerPorts>>, UdpError> {
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
