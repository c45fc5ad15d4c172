//! Counters of the workers.
//!
//! Each counter is written by one thread alone, so counting is a plain load and store; anybody may read it meanwhile.

use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use wirespeed_protocol::DropReason;

/// Why the device itself, not the protocol, delivered something not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// No peer has the inner destination among its allowed IPs.
    NoPeer,
    /// The kernel handed out a frame that makes no sense.
    FrameMalformed,
    /// An inner packet that fits in no datagram.
    PacketTooLong,
    /// There are no sockets: the interface is going down, or its port couldn't be bound.
    NoSocket,
    /// The kernel refused to send (no route, forbidden by a filter).
    SendFailed,
    /// Too many handshake messages wait.
    HandshakeQueueFull,
    /// A datagram longer than any of ours.
    DatagramTruncated,
    /// The kernel didn't take the inner packet.
    TunWriteFailed,
}

impl Loss {
    pub(crate) const ALL: [Self; 8] = [
        Self::NoPeer,
        Self::FrameMalformed,
        Self::PacketTooLong,
        Self::NoSocket,
        Self::SendFailed,
        Self::HandshakeQueueFull,
        Self::DatagramTruncated,
        Self::TunWriteFailed,
    ];
}

/// The counters of one thread. A cache line (and the one fetched with it) is never shared with another thread's.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerStatistics {
    name: String,
    core: Option<usize>,
    thread: AtomicI32,
    port: AtomicU16,
    waits: Counter,
    pub(crate) sent: Direction,
    pub(crate) received: Direction,
    lost: [Counter; Loss::ALL.len()],
}

/// What went one way.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    packets: Counter,
    bytes: Counter,
    datagrams: Counter,
    datagram_bytes: Counter,
    system_calls: Counter,
    batches: Counter,
    batch_sizes: [Counter; BATCH_SIZES],
}

/// Batches of 1, 2–3, 4–7, … and of 128 or more packets.
const BATCH_SIZES: usize = 8;

#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self, number: u64) {
        self.0
            .store(self.get().wrapping_add(number), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl WorkerStatistics {
    pub(crate) fn new(name: impl Into<String>, core: Option<usize>) -> Self {
        Self {
            name: name.into(),
            core,
            thread: AtomicI32::new(0),
            port: AtomicU16::new(0),
            waits: Counter::default(),
            sent: Direction::default(),
            received: Direction::default(),
            lost: Default::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn core(&self) -> Option<usize> {
        self.core
    }

    /// Told by the thread itself, so that what the kernel says of it can be put beside this.
    pub(crate) fn is_this_thread(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Relaxed);
    }

    /// The UDP port it sends from.
    pub(crate) fn sends_from(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// Nothing was to do, so the thread sleeps.
    pub(crate) fn waits(&self) {
        self.waits.add(1);
    }

    pub(crate) fn lost(&self, loss: Loss, packets: usize) {
        self.lost[loss as usize].add(packets as u64);
    }

    pub(crate) fn losses(&self, loss: Loss) -> u64 {
        self.lost[loss as usize].get()
    }

    pub(crate) fn to_json(&self) -> Value {
        let thread = self.thread.load(Ordering::Relaxed);
        let port = self.port.load(Ordering::Relaxed);
        json!({
            "name": self.name,
            "thread": (thread != 0).then_some(thread),
            "core": self.core,
            "port": (port != 0).then_some(port),
            "waits": self.waits.get(),
            "sent": self.sent.to_json(),
            "received": self.received.to_json(),
        })
    }
}

impl Direction {
    /// A batch of inner packets, of together so many bytes.
    pub(crate) fn batch(&self, packets: usize, bytes: usize) {
        let Some(size) = packets.checked_ilog2() else {
            return;
        };
        self.packets.add(packets as u64);
        self.bytes.add(bytes as u64);
        self.batches.add(1);
        self.batch_sizes[BATCH_SIZES.min(size as usize + 1) - 1].add(1);
    }

    /// Datagrams, of together so many bytes of payload.
    pub(crate) fn datagrams(&self, number: usize, bytes: usize) {
        self.datagrams.add(number as u64);
        self.datagram_bytes.add(bytes as u64);
    }

    pub(crate) fn system_calls(&self, number: usize) {
        self.system_calls.add(number as u64);
    }

    fn to_json(&self) -> Value {
        json!({
            "packets": self.packets.get(),
            "bytes": self.bytes.get(),
            "datagrams": self.datagrams.get(),
            "datagram_bytes": self.datagram_bytes.get(),
            "system_calls": self.system_calls.get(),
            "batches": self.batches.get(),
            "batch_sizes": self.batch_sizes.each_ref().map(Counter::get),
        })
    }
}

/// All drops by reason: the protocol's, which `dropped` tells, and the device's, of all threads together.
pub(crate) fn drops(
    dropped: impl Fn(DropReason) -> u64,
    workers: &[impl AsRef<WorkerStatistics>],
) -> Value {
    let protocol = DropReason::ALL
        .into_iter()
        .map(|reason| (kebab(&format!("{reason:?}")), dropped(reason)));
    let device = Loss::ALL.into_iter().map(|loss| {
        let all = workers.iter().map(|worker| worker.as_ref().losses(loss));
        (kebab(&format!("{loss:?}")), all.sum())
    });
    protocol
        .chain(device)
        .map(|(name, count)| (name, Value::from(count)))
        .collect::<Map<_, _>>()
        .into()
}

/// `NotAuthentic` is `not-authentic`.
fn kebab(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    kebab
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn batches_are_counted_by_powers_of_two() {
        let worker = WorkerStatistics::new("worker 0", Some(1));
        for packets in [0, 1, 2, 3, 45, 64, 128, 5_000] {
            worker.sent.batch(packets, packets * 10);
        }
        let json = worker.to_json();
        assert_eq!(json["core"], 1);
        assert_eq!(json["thread"], Value::Null);
        assert_eq!(json["sent"]["packets"], 5_243);
        assert_eq!(json["sent"]["bytes"], 52_430);
        assert_eq!(json["sent"]["batches"], 7);
        assert_eq!(json["sent"]["batch_sizes"], json!([1, 2, 0, 0, 0, 1, 1, 2]));
        assert_eq!(json["received"]["packets"], 0);
    }

    #[test]
    fn each_loss_has_its_own_count_and_name() {
        let workers = [0, 1].map(|_| Arc::new(WorkerStatistics::new("", None)));
        for (at, loss) in Loss::ALL.into_iter().enumerate() {
            assert_eq!(loss as usize, at);
            workers[at % 2].lost(loss, at + 1);
        }
        workers[0].lost(Loss::TunWriteFailed, 100);
        workers[1].lost(Loss::TunWriteFailed, 1_000);
        let drops = drops(|reason| reason as u64, &workers);
        assert_eq!(drops["no-peer"], 1);
        assert_eq!(drops["tun-write-failed"], 1_100 + Loss::ALL.len());
        assert_eq!(drops["bad-mac1"], 7);
        assert_eq!(
            drops.as_object().unwrap().len(),
            Loss::ALL.len() + DropReason::ALL.len()
        );
    }

    #[test]
    fn the_thread_can_be_found() {
        let worker = WorkerStatistics::new("worker 0", None);
        worker.is_this_thread();
        worker.sends_from(51_820);
        let json = worker.to_json();
        assert!(json["thread"].as_i64().unwrap() > 0);
        assert_eq!(json["port"], 51_820);
    }
}
