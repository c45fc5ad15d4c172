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
    /// What those had no room for.
    overflows: u64,
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

    /// Waits until the workers have let go of the sockets they were told to give up, so that whoever is told that a port was
    /// left can bind it. They have to be woken first; one that does not let go within a second isn't waited for any longer.
    pub(crate) fn wait_for_release(&self) {
        for _ in 0..RELEASE_TRIES {
            if !held(&self.state.locked().old) {
                return;
            }
            std::thread::sleep(RELEASE_PAUSE);
        }
    }

    /// Datagrams that came when there was no room for them, with those of sockets that are closed by now.
    pub(crate) fn overflows(&self) -> u64 {
        let state = self.state.locked();
        state.overflows + overflows(&state.sockets)
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
        state.overflows += overflows(&old);
        state.old.retain(|old| old.strong_count() > 0);
        state.old.extend(old.iter().map(Arc::downgrade));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Binds; waits for our own workers when it is them who still have the port.
    fn bind(&self, state: &State, port: u16) -> Result<Vec<Arc<WorkerPorts>>, UdpError> {
        for _ in 0..RELEASE_TRIES {
            match self.try_bind(port, state.fwmark) {
                Err(UdpError::PortTaken { .. }) if held(&state.old) => {
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

fn overflows(sockets: &[Arc<WorkerPorts>]) -> u64 {
    sockets
        .iter()
        .flat_map(|ports| ports.own.iter().chain([&ports.listening]))
        .map(Sockets::overflows)
        .sum()
}

fn port_in_use(state: &State) -> u16 {
    let first = state.sockets.first();
    first.map_or(0, |ports| ports.listening.port())
}

/// Whether a worker still has any of these.
fn held(old: &[Weak<WorkerPorts>]) -> bool {
    old.iter().any(|old| old.strong_count() > 0)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn ports(workers: usize, spread: bool) -> Ports {
        Ports::new(&Arc::new(Offloads::new(&[])), workers, spread)
    }

    #[test]
    fn a_port_of_choice_stays_over_down_and_up() {
        let ports = ports(1, false);
        assert_eq!((ports.port(), ports.of_worker(0).is_none()), (0, true));
        ports.open().unwrap();
        let port = ports.port();
        assert_ne!(port, 0);
        let generation = ports.generation();
        ports.open().unwrap();
        assert_eq!(ports.generation(), generation, "up already");
        ports.close();
        assert!(ports.of_worker(0).is_none());
        assert_eq!(ports.port(), port);
        ports.open().unwrap();
        assert_eq!(ports.of_worker(0).unwrap().listening.port(), port);
    }

    #[test]
    fn workers_share_the_port_and_send_from_their_own() {
        let ports = ports(3, true);
        ports.open().unwrap();
        let all: Vec<_> = (0..3).map(|it| ports.of_worker(it).unwrap()).collect();
        assert!(ports.of_worker(3).is_none());
        assert!(all.iter().all(|it| it.listening.port() == ports.port()));
        let own = |at: usize| all[at].own.as_ref().map(Sockets::port);
        assert_eq!(own(0), None);
        assert!(own(1).is_some() && own(2).is_some() && own(1) != own(2));
    }

    #[test]
    fn somebody_elses_port_is_refused_and_ours_kept() {
        for workers in [1, 2] {
            let ports = ports(workers, false);
            ports.open().unwrap();
            let (port, generation) = (ports.port(), ports.generation());
            let taken = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
            let error = ports.set_port(taken.local_addr().unwrap().port());
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::AddrInUse);
            assert_eq!((ports.port(), ports.generation()), (port, generation));
        }
    }

    #[test]
    fn a_port_set_while_down_is_bound_when_up() {
        let free = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let ports = ports(1, false);
        ports.set_fwmark(0).unwrap();
        ports.set_port(port).unwrap();
        assert!(ports.of_worker(0).is_none());
        ports.open().unwrap();
        assert_eq!(ports.of_worker(0).unwrap().listening.port(), port);
        assert_eq!(ports.port(), port);
    }

    #[test]
    fn a_worker_that_is_slow_to_let_go_is_waited_for() {
        let ports = ports(2, false);
        ports.open().unwrap();
        let port = ports.port();
        let held = ports.of_worker(1);
        ports.close();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(40));
                drop(held);
            });
            ports.open().unwrap();
        });
        assert_eq!(ports.port(), port);
    }
}
