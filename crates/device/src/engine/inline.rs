//! Run to completion: each worker carries a packet all the way, in both directions.
//!
//! ```text
//! worker 0: TUN queue 0 ⇄ sockets 0        an inner flow stays on one TUN queue, a peer's datagrams on one socket,
//! worker 1: TUN queue 1 ⇄ sockets 1        so no two workers ever have packets of one flow
//! …
//! ```
//!
//! A worker takes turns: some of what came by UDP, some of what came by TUN, a look at what else is ready. Only when there is nothing it
//! sleeps, without a timeout.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use wirespeed_protocol::{Incoming, Outgoing};

use super::ready::{Ready, Waiter};
use crate::clock;
use crate::common::Core;
use crate::control::End;
use crate::ports::WorkerPorts;
use crate::split::FRAME_BYTES;
use crate::statistics::{Loss, WorkerStatistics};
use crate::steps::{Deliverer, Note, Opened, Packer, collect, recycled, seal_and_send};
use crate::tun::{Queue, is_gone};
use crate::udp::{Received, Sockets};

/// Packets or datagrams of one direction in a turn, so that the other waits for 0.1 ms and not for ever.
const TURN_PACKETS: usize = 192;

/// A pause after an error nobody expected, instead of a loop of errors that fills a core.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Worker {
    core: Arc<Core>,
    number: usize,
    statistics: Arc<WorkerStatistics>,
    waiter: Waiter,
    ports: Option<Arc<WorkerPorts>>,
    generation: u64,
    outbound: Outbound,
    inbound: Inbound,
}

struct Outbound {
    frame: Box<[u8]>,
    packer: Packer,
}

struct Inbound {
    received: Received,
    truncated: u64,
    /// Only its memory is kept from one batch to the next.
    batch: Vec<Incoming<'static>>,
    notes: Vec<Note>,
    deliverer: Deliverer,
}

impl Worker {
    pub(crate) fn new(
        core: &Arc<Core>,
        number: usize,
        pinned_to: Option<usize>,
    ) -> io::Result<Self> {
        let waiter = Waiter::new()?;
        waiter.add(&core.bells[number], Ready::BELL)?;
        waiter.add(&core.tun.queues()[number], Ready::TUN)?;
        Ok(Self {
            core: Arc::clone(core),
            number,
            statistics: Arc::new(WorkerStatistics::new(format!("worker {number}"), pinned_to)),
            waiter,
            ports: None,
            generation: 0,
            outbound: Outbound {
                frame: vec![0; FRAME_BYTES].into_boxed_slice(),
                packer: Packer::new(),
            },
            inbound: Inbound {
                received: Received::new(),
                truncated: 0,
                batch: Vec::new(),
                notes: Vec::new(),
                deliverer: Deliverer::new(),
            },
        })
    }

    pub(crate) fn statistics(&self) -> Arc<WorkerStatistics> {
        Arc::clone(&self.statistics)
    }

    /// The thread, until the device stops.
    pub(crate) fn run(mut self) {
        let mut ready = Ready::NOTHING;
        while !self.core.stopping() {
            if self.core.ports.generation() != self.generation {
                self.take_ports();
            }
            let asked = if ready == Ready::NOTHING {
                self.statistics.waits();
                self.waiter.wait()
            } else {
                self.waiter.look()
            };
            match asked {
                Ok(more) => ready |= more,
                Err(error) => return self.fail(&format!("waiting for packets failed: {error}")),
            }
            if ready.has(Ready::BELL) {
                self.core.bells[self.number].clear();
                ready.clear(Ready::BELL);
                continue;
            }
            for sockets in [Ready::LISTENING, Ready::OWN] {
                if ready.has(sockets) && !self.receive(sockets == Ready::OWN) {
                    ready.clear(sockets);
                }
            }
            if ready.has(Ready::TUN) && !self.read() {
                ready.clear(Ready::TUN);
            }
        }
    }

    /// Carries some of what came by TUN. False when there is nothing more.
    fn read(&mut self) -> bool {
        let Self {
            core,
            statistics,
            ports,
            outbound: Outbound { frame, packer },
            ..
        } = self;
        let queue = &core.tun.queues()[self.number];
        let mut full = |peer: &_, batch: &mut Outgoing, bytes| {
            seal_and_send(core, ports.as_deref(), statistics, peer, batch, bytes);
        };
        let mut packets = 0;
        while packets < TURN_PACKETS {
            statistics.sent.system_calls(1);
            match queue.read(frame) {
                Ok(0) => {
                    packer.flush(&mut full);
                    return false;
                }
                Ok(length) => {
                    let packed = packer.pack(
                        &core.tunnel,
                        core.tun.mtu(),
                        &frame[..length],
                        statistics,
                        &mut full,
                    );
                    packets += packed.max(1);
                }
                Err(error) => {
                    packer.flush(&mut full);
                    self.tun_failed(&error);
                    return false;
                }
            }
        }
        true
    }

    /// Carries some of what came by UDP. False when there is nothing more.
    fn receive(&mut self, own: bool) -> bool {
        let Self {
            core,
            statistics,
            ports,
            inbound,
            ..
        } = self;
        let Some(ports) = ports.as_deref() else {
            return false;
        };
        let sockets = if own {
            ports.own.as_ref()
        } else {
            Some(&ports.listening)
        };
        let Some(sockets) = sockets else {
            return false;
        };
        let queue = &core.tun.queues()[self.number];
        let mut datagrams = 0;
        let mut more = true;
        while more && datagrams < TURN_PACKETS {
            let received = inbound.receive(core, sockets, own, queue, statistics);
            datagrams += received;
            more = received > 0 && !inbound.received.drained();
        }
        // Sessions may have begun, so that what waited is to be sent, and timers were set.
        if core.outbox.waits(&core.tunnel) {
            core.send_waiting(Some(ports), statistics);
        }
        core.slow_path.look_at_timers(&core.tunnel);
        more
    }

    /// The port changed, or the link went up or down.
    fn take_ports(&mut self) {
        if let Some(old) = self.ports.take() {
            for descriptor in old.descriptors() {
                self.waiter.remove(descriptor);
            }
        }
        self.generation = self.core.ports.generation();
        let Some(ports) = self.core.ports.of_worker(self.number) else {
            self.statistics.sends_from(0);
            return;
        };
        let listening = ports
            .listening
            .descriptors()
            .map(|it| (it, Ready::LISTENING));
        let own = ports.own.iter().flat_map(Sockets::descriptors);
        for (descriptor, what) in listening.chain(own.map(|it| (it, Ready::OWN))) {
            if let Err(error) = self.waiter.add(descriptor, what) {
                self.fail(&format!("a socket can't be waited for: {error}"));
            }
        }
        let sends_from = ports.own.as_ref().unwrap_or(&ports.listening).port();
        self.statistics.sends_from(sends_from);
        self.ports = Some(ports);
    }

    fn tun_failed(&self, error: &io::Error) {
        if is_gone(error) {
            self.waiter.remove(&self.core.tun.queues()[self.number]);
            self.core.end_because(End::InterfaceGone);
            return;
        }
        log::debug!(
            "{}: reading from the TUN failed: {error}",
            self.statistics.name()
        );
        std::thread::sleep(PAUSE);
    }

    fn fail(&self, why: &str) {
        log::error!("{}: {why}", self.statistics.name());
        self.core.end_because(End::Failed(why.to_owned()));
    }
}

impl Inbound {
    /// Receives, opens and delivers a batch; returns how many datagrams it had.
    fn receive(
        &mut self,
        core: &Core,
        sockets: &Sockets,
        at_own_port: bool,
        queue: &Queue,
        statistics: &WorkerStatistics,
    ) -> usize {
        statistics.received.system_calls(1);
        match sockets.receive(&mut self.received) {
            Ok(0) => return 0,
            Ok(_) => {}
            Err(error) => {
                log::debug!("receiving failed: {error}");
                std::thread::sleep(PAUSE);
                return 0;
            }
        }
        let truncated = self.received.truncated();
        statistics.lost(
            Loss::DatagramTruncated,
            (truncated - self.truncated) as usize,
        );
        self.truncated = truncated;
        let mut batch = recycled(std::mem::take(&mut self.batch));
        collect(core, &mut self.received, &mut batch, &mut self.notes);
        core.tunnel.open(clock::now(), &mut batch);
        let opened = Opened {
            notes: &self.notes,
            at_own_port,
        };
        self.deliverer
            .deliver(core, &mut batch, opened, queue, statistics);
        let datagrams = batch.len();
        self.batch = recycled(batch);
        datagrams
    }
}
