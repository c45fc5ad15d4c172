//! The kernel's and wireguard-go's arrangement: one thread reads, many encrypt or decrypt, one writes in the order of reading.
//!
//! ```text
//! TUN ─→ reader ─→ ring of batches ─→ sender ─→ UDP
//!                    ↑ sealers ↓
//! UDP ─→ receiver ─→ ring of batches ─→ writer ─→ TUN
//! ```
//!
//! One flow can fill several cores so, but each batch crosses three of them, which costs more than it gains when they are far from each other.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use wirespeed_protocol::{Incoming, Outgoing, Peer, Sending, Session, Verdict};

use super::ready::{Ready, Waiter};
use super::ring::{Jobs, Ring};
use super::{pick, spawn};
use crate::clock;
use crate::common::Core;
use crate::control::End;
use crate::ports::WorkerPorts;
use crate::split::FRAME_BYTES;
use crate::statistics::{Loss, WorkerStatistics};
use crate::steps::{Deliverer, Note, Opened, Packer, collect, new_batch, recycled, send};
use crate::tun::is_gone;
use crate::udp::Received;

/// Threads that wait for descriptors: the reader and the receiver.
pub(crate) const BELLS: usize = 2;

const READER_BELL: usize = 0;
const RECEIVER_BELL: usize = 1;

/// Batches on their way out: 2 MiB.
const SEALINGS: usize = 32;

/// Batches on their way in.
const OPENINGS: usize = 16;

/// A pause after an error nobody expected, instead of a loop of errors that fills a core.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Pipeline {
    stages: Arc<Stages>,
    reader_waiter: Waiter,
    receiver_waiter: Waiter,
    reader: Arc<WorkerStatistics>,
    sender: Arc<WorkerStatistics>,
    receiver: Arc<WorkerStatistics>,
    writer: Arc<WorkerStatistics>,
    sealers: Vec<Arc<WorkerStatistics>>,
}

struct Stages {
    core: Arc<Core>,
    sealing: Ring<Sealing>,
    opening: Ring<Opening>,
    jobs: Jobs<Job>,
}

#[derive(Clone, Copy)]
enum Job {
    Seal(usize),
    Open(usize),
}

/// A batch on its way out.
struct Sealing {
    batch: Outgoing,
    peer: Option<Arc<Peer>>,
    sending: Option<Sending>,
    destination: Option<std::net::SocketAddr>,
}

/// A batch on its way in.
struct Opening {
    received: Received,
    verdicts: Vec<Verdict>,
    sessions: Vec<Session>,
}

impl Stages {
    fn close(&self) {
        self.sealing.close();
        self.opening.close();
        self.jobs.close();
    }
}

/// When one stage ends, all do.
struct ClosesAll<'a>(&'a Stages);

impl Drop for ClosesAll<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Pipeline {
    pub(crate) fn new(core: &Arc<Core>, workers: usize, cores: &[usize]) -> io::Result<Self> {
        let statistics = |name: &str| Arc::new(WorkerStatistics::new(name, None));
        let reader_waiter = Waiter::new()?;
        reader_waiter.add(&core.bells[READER_BELL], Ready::BELL)?;
        reader_waiter.add(&core.tun.queues()[0], Ready::TUN)?;
        let receiver_waiter = Waiter::new()?;
        receiver_waiter.add(&core.bells[RECEIVER_BELL], Ready::BELL)?;
        Ok(Self {
            stages: Arc::new(Stages {
                core: Arc::clone(core),
                sealing: Ring::new((0..SEALINGS).map(|_| Sealing {
                    batch: new_batch(),
                    peer: None,
                    sending: None,
                    destination: None,
                })),
                opening: Ring::new((0..OPENINGS).map(|_| Opening {
                    received: Received::new(),
                    verdicts: Vec::new(),
                    sessions: Vec::new(),
                })),
                jobs: Jobs::new(),
            }),
            reader_waiter,
            receiver_waiter,
            reader: statistics("tun reader"),
            sender: statistics("udp sender"),
            receiver: statistics("udp receiver"),
            writer: statistics("tun writer"),
            sealers: (0..workers)
                .map(|at| {
                    let name = format!("sealer {at}");
                    Arc::new(WorkerStatistics::new(name, pick(cores, at)))
                })
                .collect(),
        })
    }

    pub(crate) fn statistics(&self) -> Vec<Arc<WorkerStatistics>> {
        [&self.reader, &self.sender, &self.receiver, &self.writer]
            .into_iter()
            .chain(&self.sealers)
            .map(Arc::clone)
            .collect()
    }

    pub(crate) fn spawn(self, threads: &mut Vec<JoinHandle<()>>) -> io::Result<()> {
        let core = &self.stages.core;
        for statistics in &self.sealers {
            let stages = Arc::clone(&self.stages);
            threads.push(spawn(core, statistics, move || work(&stages))?);
        }
        let (stages, statistics) = (Arc::clone(&self.stages), Arc::clone(&self.sender));
        threads.push(spawn(core, &self.sender, move || {
            send_all(&stages, &statistics);
        })?);
        let (stages, statistics) = (Arc::clone(&self.stages), Arc::clone(&self.writer));
        threads.push(spawn(core, &self.writer, move || {
            write_all(&stages, &statistics);
        })?);
        let (stages, statistics) = (Arc::clone(&self.stages), Arc::clone(&self.receiver));
        let waiter = self.receiver_waiter;
        threads.push(spawn(core, &self.receiver, move || {
            receive_all(&stages, &waiter, &statistics);
        })?);
        let (stages, statistics) = (Arc::clone(&self.stages), Arc::clone(&self.reader));
        let waiter = self.reader_waiter;
        threads.push(spawn(core, &self.reader, move || {
            read_all(&stages, &waiter, &statistics);
        })?);
        Ok(())
    }
}

/// The reader: frames to batches, with the right to seal each.
fn read_all(stages: &Stages, waiter: &Waiter, statistics: &WorkerStatistics) {
    let _all = ClosesAll(stages);
    let core = &*stages.core;
    let queue = &core.tun.queues()[0];
    let mut frame = vec![0; FRAME_BYTES].into_boxed_slice();
    let mut packer = Packer::new();
    let mut full = |peer: &Arc<Peer>, batch: &mut Outgoing, bytes| {
        hand_to_sealers(stages, statistics, peer, batch, bytes);
    };
    while !core.stopping() {
        statistics.sent.system_calls(1);
        match queue.read(&mut frame) {
            Ok(0) => packer.flush(&mut full),
            Ok(length) => {
                packer.pack(
                    &core.tunnel,
                    core.tun.mtu(),
                    &frame[..length],
                    statistics,
                    &mut full,
                );
                continue;
            }
            Err(error) => {
                packer.flush(&mut full);
                if is_gone(&error) {
                    return core.end_because(End::InterfaceGone);
                }
                log::debug!("reading from the TUN failed: {error}");
                std::thread::sleep(PAUSE);
            }
        }
        statistics.waits();
        match waiter.wait() {
            Ok(ready) if ready.has(Ready::BELL) => core.bells[READER_BELL].clear(),
            Ok(_) => {}
            Err(error) => {
                return fail(core, &format!("waiting for the TUN failed: {error}"));
            }
        }
    }
}

fn hand_to_sealers(
    stages: &Stages,
    statistics: &WorkerStatistics,
    peer: &Arc<Peer>,
    batch: &mut Outgoing,
    inner_bytes: usize,
) {
    let core = &*stages.core;
    if !core.is_up() {
        statistics.lost(Loss::NoSocket, batch.len());
        return;
    }
    statistics.sent.batch(batch.len(), inner_bytes);
    let now = clock::now();
    if let Some(sending) = core.tunnel.begin_send(now, peer, batch.len()) {
        let Some(slot) = stages.sealing.to_fill() else {
            return;
        };
        {
            let mut sealing = stages.sealing.slot(slot);
            std::mem::swap(&mut sealing.batch, batch);
            sealing.destination = Some(sending.destination());
            sealing.sending = Some(sending);
            sealing.peer = Some(Arc::clone(peer));
        }
        stages.sealing.filled();
        stages.jobs.push(Job::Seal(slot));
    } else {
        core.tunnel.stage(now, peer, batch);
        if core.outbox.waits(&core.tunnel) {
            core.send_waiting(core.ports.of_worker(0).as_deref(), statistics);
        }
        core.slow_path.look_at_timers(&core.tunnel);
    }
}

/// A sealer: whatever is to be encrypted or decrypted.
fn work(stages: &Stages) {
    let core = &*stages.core;
    let mut memory = Vec::new();
    let mut notes = Vec::new();
    while let Some(job) = stages.jobs.pop() {
        match job {
            Job::Seal(slot) => {
                {
                    let Sealing { batch, sending, .. } = &mut *stages.sealing.slot(slot);
                    let sealed = sending.take().is_some_and(|sending| sending.seal(batch));
                    debug_assert!(sealed, "the batch is the one counters were taken for");
                }
                stages.sealing.worked(slot);
            }
            Job::Open(slot) => {
                memory = decrypt(core, &mut stages.opening.slot(slot), memory, &mut notes);
                stages.opening.worked(slot);
            }
        }
    }
}

/// Decrypts what belongs to a session; the rest is left as it is for the writer.
fn decrypt(
    core: &Core,
    opening: &mut Opening,
    memory: Vec<Incoming<'static>>,
    notes: &mut Vec<Note>,
) -> Vec<Incoming<'static>> {
    let now = clock::now();
    let mut batch = recycled(memory);
    collect(core, &mut opening.received, &mut batch, notes);
    opening.sessions.clear();
    for at in 0..batch.len() {
        if batch[at].verdict == Verdict::Pending
            && let Ok(session) = core.tunnel.session(batch[at].bytes)
        {
            session.open(now, &mut batch[at..]);
            opening.sessions.push(session);
        }
    }
    opening.verdicts.clear();
    let verdicts = batch
        .iter_mut()
        .map(|incoming| std::mem::replace(&mut incoming.verdict, Verdict::Pending));
    opening.verdicts.extend(verdicts);
    recycled(batch)
}

/// The sender: sealed batches, in the order of reading.
fn send_all(stages: &Stages, statistics: &WorkerStatistics) {
    let _all = ClosesAll(stages);
    let core = &*stages.core;
    while let Some(slot) = stages.sealing.to_take() {
        {
            let sealing = &mut *stages.sealing.slot(slot);
            // Not kept while we wait, so that a port is free as soon as it is given up.
            let ports = core.ports.of_worker(0);
            if let (Some(peer), Some(destination)) = (sealing.peer.take(), sealing.destination) {
                core.tunnel.sent(clock::now(), &peer, &sealing.batch);
                let batch = &sealing.batch;
                send(
                    core,
                    ports.as_deref(),
                    statistics,
                    peer.id(),
                    destination,
                    batch,
                );
            }
            sealing.batch.clear();
        }
        stages.sealing.taken();
        core.slow_path.look_at_timers(&core.tunnel);
    }
}

/// The receiver: datagrams to batches.
fn receive_all(stages: &Stages, waiter: &Waiter, statistics: &WorkerStatistics) {
    let _all = ClosesAll(stages);
    let core = &*stages.core;
    let mut ports: Option<Arc<WorkerPorts>> = None;
    let mut generation = 0;
    while !core.stopping() {
        if core.ports.generation() != generation {
            generation = core.ports.generation();
            if let Some(old) = ports.take() {
                old.descriptors().for_each(|socket| waiter.remove(socket));
            }
            ports = core.ports.of_worker(0);
            let sockets = ports
                .as_deref()
                .into_iter()
                .flat_map(WorkerPorts::descriptors);
            for socket in sockets {
                if let Err(error) = waiter.add(socket, Ready::LISTENING) {
                    return fail(core, &format!("a socket can't be waited for: {error}"));
                }
            }
            statistics.sends_from(ports.as_ref().map_or(0, |ports| ports.listening.port()));
        }
        statistics.waits();
        match waiter.wait() {
            Ok(ready) if ready.has(Ready::BELL) => {
                core.bells[RECEIVER_BELL].clear();
                continue;
            }
            Ok(_) => {}
            Err(error) => return fail(core, &format!("waiting for datagrams failed: {error}")),
        }
        while let Some(ports) = &ports {
            if core.stopping() || !receive(stages, ports, statistics) {
                break;
            }
        }
    }
}

/// One batch. False when there was nothing.
fn receive(stages: &Stages, ports: &WorkerPorts, statistics: &WorkerStatistics) -> bool {
    let Some(slot) = stages.opening.to_fill() else {
        return false;
    };
    {
        let opening = &mut *stages.opening.slot(slot);
        let truncated = opening.received.truncated();
        statistics.received.system_calls(1);
        match ports.listening.receive(&mut opening.received) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => {
                log::debug!("receiving failed: {error}");
                std::thread::sleep(PAUSE);
                return false;
            }
        }
        let truncated = opening.received.truncated() - truncated;
        statistics.lost(Loss::DatagramTruncated, truncated as usize);
    }
    stages.opening.filled();
    stages.jobs.push(Job::Open(slot));
    true
}

/// The writer: decrypted batches, in the order of receiving.
fn write_all(stages: &Stages, statistics: &WorkerStatistics) {
    let _all = ClosesAll(stages);
    let core = &*stages.core;
    let queue = &core.tun.queues()[0];
    let mut deliverer = Deliverer::new();
    let mut memory = Vec::new();
    let mut notes = Vec::new();
    while let Some(slot) = stages.opening.to_take() {
        {
            let Opening {
                received,
                verdicts,
                sessions,
            } = &mut *stages.opening.slot(slot);
            let now = clock::now();
            let mut batch = recycled(memory);
            collect(core, received, &mut batch, &mut notes);
            for (incoming, verdict) in batch.iter_mut().zip(verdicts.drain(..)) {
                incoming.verdict = verdict;
            }
            for session in sessions.drain(..) {
                core.tunnel.accept(now, &session, &mut batch);
            }
            for incoming in &mut batch {
                if incoming.verdict == Verdict::Pending {
                    core.tunnel.open(now, std::slice::from_mut(incoming));
                }
            }
            let opened = Opened {
                notes: &notes,
                at_own_port: false,
            };
            deliverer.deliver(core, &mut batch, opened, queue, statistics);
            memory = recycled(batch);
        }
        stages.opening.taken();
        if core.outbox.waits(&core.tunnel) {
            core.send_waiting(core.ports.of_worker(0).as_deref(), statistics);
        }
        core.slow_path.look_at_timers(&core.tunnel);
    }
}

fn fail(core: &Core, why: &str) {
    log::error!("{why}");
    core.end_because(End::Failed(why.to_owned()));
}
