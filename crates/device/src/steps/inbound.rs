//! Datagrams to frames of the TUN.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use wirespeed_protocol::{Incoming, PeerId, Verdict, carry_ecn_in};

use crate::common::Core;
use crate::join::Joiner;
use crate::slow_path;
use crate::spread::Spread;
use crate::statistics::{Loss, WorkerStatistics};
use crate::tun::Queue;
use crate::udp::{LocalAddress, Received};

/// How long the kernel may keep us from delivering before a packet is dropped.
const TUN_BUSY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// What came with a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    traffic_class: u8,
    local: Option<LocalAddress>,
}

/// An empty list in the memory of another. Nothing is allocated, since both have elements of the same size.
pub(crate) fn recycled<'a>(mut list: Vec<Incoming<'_>>) -> Vec<Incoming<'a>> {
    list.clear();
    list.into_iter()
        .map(|_| unreachable!("the list is empty"))
        .collect()
}

/// Lays out what was received: the datagrams for the protocol, and what came with each.
pub(crate) fn collect<'a>(
    core: &Core,
    received: &'a mut Received,
    batch: &mut Vec<Incoming<'a>>,
    notes: &mut Vec<Note>,
) {
    notes.clear();
    let mut last: Option<(SocketAddr, SocketAddr)> = None;
    for datagram in received.datagrams() {
        notes.push(Note {
            traffic_class: datagram.traffic_class,
            local: datagram.local,
        });
        let source = match (&core.spread, last) {
            (None, _) => datagram.source,
            // A peer may have several sessions, but hardly two peers one address: good enough for who knows whom.
            (Some(_), Some((source, counts_as))) if source == datagram.source => counts_as,
            (Some(_), _) => {
                let counts_as =
                    Spread::canonical_source(&core.tunnel, datagram.bytes, datagram.source);
                last = Some((datagram.source, counts_as));
                counts_as
            }
        };
        batch.push(Incoming::new(datagram.bytes, source));
    }
}

/// Where opened datagrams came in.
#[derive(Clone, Copy)]
pub(crate) struct Opened<'a> {
    pub(crate) notes: &'a [Note],
    /// At a worker's own port and not at the listen port.
    pub(crate) at_own_port: bool,
}

/// Hands inner packets to the kernel, joined to super-packets.
pub(crate) struct Deliverer {
    joiner: Joiner,
}

impl Deliverer {
    pub(crate) fn new() -> Self {
        Self {
            joiner: Joiner::new(),
        }
    }

    /// Delivers what the protocol accepted, and hands messages of handshakes to the slow path.
    pub(crate) fn deliver(
        &mut self,
        core: &Core,
        batch: &mut [Incoming<'_>],
        opened: Opened<'_>,
        queue: &Queue,
        statistics: &WorkerStatistics,
    ) {
        let mut heard: Option<(PeerId, SocketAddr, Option<LocalAddress>)> = None;
        let (mut packets, mut bytes, mut datagram_bytes) = (0, 0, 0);
        for (incoming, note) in batch.iter_mut().zip(opened.notes) {
            datagram_bytes += incoming.bytes.len();
            match &incoming.verdict {
                Verdict::Packet { range, peer } => {
                    let now_heard = Some((*peer, incoming.source, note.local));
                    if heard != now_heard {
                        heard = now_heard;
                        learn(core, *peer, incoming.source, note.local, opened.at_own_port);
                    }
                    packets += 1;
                    bytes += range.len();
                    if let Some(packet) = incoming.packet_mut() {
                        carry_ecn_in(note.traffic_class, packet);
                    }
                }
                Verdict::Handshake => slow_path::hand_over(
                    core,
                    incoming.bytes,
                    incoming.source,
                    note.local,
                    statistics,
                ),
                _ => {}
            }
        }
        statistics.received.datagrams(batch.len(), datagram_bytes);
        if packets == 0 {
            return;
        }
        statistics.received.batch(packets, bytes);
        let inner = batch.iter().filter_map(Incoming::packet);
        self.joiner.join(inner, &core.offloads, |parts, packets| {
            statistics.received.system_calls(1);
            if let Err(error) = write(queue, parts) {
                log::debug!("{packets} inner packets not delivered: {error}");
                statistics.lost(Loss::TunWriteFailed, packets);
            }
        });
    }
}

/// The peer was heard: it will be answered from the address it sent to.
fn learn(
    core: &Core,
    peer: PeerId,
    source: SocketAddr,
    local: Option<LocalAddress>,
    at_own_port: bool,
) {
    if let Some(local) = local {
        core.sticky.learn(peer, source, local);
    }
    if let Some(spread) = core.spread.as_ref().filter(|_| at_own_port) {
        spread.follows(peer, source);
    }
}

/// Writes a frame; when the kernel is busy it gets a moment.
fn write(queue: &Queue, parts: &[IoSlice<'_>]) -> io::Result<()> {
    match queue.write(parts) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let _ = poll(&mut [PollFd::new(queue, PollFlags::OUT)], Some(&TUN_BUSY));
            queue.write(parts)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_recycled_in_place() {
        let source = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut bytes = [[0u8; 4]; 3];
        let mut list = Vec::with_capacity(64);
        list.extend(bytes.iter_mut().map(|bytes| Incoming::new(bytes, source)));
        let (at, capacity) = (list.as_ptr().addr(), list.capacity());
        let again: Vec<Incoming<'_>> = recycled(list);
        assert!(again.is_empty());
        assert_eq!((again.as_ptr().addr(), again.capacity()), (at, capacity));
    }
}
