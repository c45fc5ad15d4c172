//! Frames of the TUN to datagrams.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wirespeed_protocol::{Outgoing, Peer, PeerId, RouteCache, Sealed, Tunnel, wire};

use crate::clock;
use crate::common::Core;
use crate::ports::WorkerPorts;
use crate::split::Frame;
use crate::statistics::{Loss, WorkerStatistics};
use crate::udp::blames_source;

/// Packets in a batch. A GSO train may have as many.
const BATCH_PACKETS: usize = 64;

/// Datagrams of a batch together: what one GSO train may have. At the usual MTU that is 45 packets.
const BATCH_BYTES: usize = 65_507;

/// Batches open at once, so that the packets of several peers that come in turn still make trains.
const LANES: usize = 8;

/// Packets after which the packer looks at its lanes although the kernel has more: some 0.2 ms.
const ROUND_PACKETS: usize = 192;

/// A batch for what [`Packer`] does.
pub(crate) fn new_batch() -> Outgoing {
    Outgoing::new(BATCH_BYTES, BATCH_PACKETS)
}

/// Sorts the packets of frames into batches by peer. The order of a peer's packets stays, and consecutive
/// frames share a batch: a super-packet of 64 KiB is 47 packets, of which 45 fill a train and two begin the next.
///
/// The kernel may have more for as long as somebody sends faster than we do. So that a peer with few packets doesn't wait
/// for one with many, and routes aren't those of long ago, packets are counted in rounds: none waits for more than two.
pub(crate) struct Packer {
    lanes: Vec<Lane>,
    routes: RouteCache,
    frames: u64,
    round: u64,
    packets_in_round: usize,
}

/// The open batch of a peer.
struct Lane {
    batch: Outgoing,
    /// Bytes of the datagrams in it.
    used: usize,
    inner_bytes: usize,
    peer: Option<Arc<Peer>>,
    /// The inner destination that last led here in this round, so that a flow needs no look-up.
    destination: Option<IpAddr>,
    /// The round in which its first packet came.
    begun: u64,
    /// The frame it was last used for.
    last_frame: u64,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self {
            lanes: Vec::with_capacity(LANES),
            routes: RouteCache::default(),
            frames: 0,
            round: 0,
            packets_in_round: 0,
        }
    }

    /// Puts the packets of a frame into the batch of their peer. `full` is handed each batch that has no room left, with
    /// the bytes of its inner packets, and leaves it empty. Returns the number of packets.
    pub(crate) fn pack(
        &mut self,
        tunnel: &Tunnel,
        mtu: usize,
        frame: &[u8],
        statistics: &WorkerStatistics,
        mut full: impl FnMut(&Arc<Peer>, &mut Outgoing, usize),
    ) -> usize {
        let frame = match Frame::parse(frame) {
            Ok(frame) => frame,
            Err(error) => {
                log::debug!("frame dropped: {error}");
                statistics.lost(Loss::FrameMalformed, 1);
                return 0;
            }
        };
        let packets = frame.packets();
        self.frames += 1;
        if self.packets_in_round >= ROUND_PACKETS {
            self.end_round(&mut full);
        }
        self.packets_in_round += packets;
        let round = self.round;
        let Some(lane) = self.lane(tunnel, frame.destination(), &mut full) else {
            statistics.lost(Loss::NoPeer, packets);
            return packets;
        };
        for at in 0..packets {
            let length = frame.packet_length(at);
            if lane.batch.len() == BATCH_PACKETS
                || lane.used + datagram_bytes(length, mtu) > BATCH_BYTES
            {
                lane.hand_over(&mut full);
            }
            if lane.batch.is_empty() {
                lane.begun = round;
            }
            if let Some(place) = lane.batch.reserve(length, mtu) {
                frame.write_packet(at, place);
                lane.used += datagram_bytes(length, mtu);
                lane.inner_bytes += length;
            } else {
                statistics.lost(Loss::PacketTooLong, 1);
            }
        }
        // A train that can't grow needn't wait for the next frame.
        if lane.batch.len() == BATCH_PACKETS || lane.used + datagram_bytes(mtu, mtu) > BATCH_BYTES {
            lane.hand_over(&mut full);
        }
        packets
    }

    /// There is nothing more to read for now: hands over what is open. Routes are looked up anew after that.
    pub(crate) fn flush(&mut self, mut full: impl FnMut(&Arc<Peer>, &mut Outgoing, usize)) {
        for lane in &mut self.lanes {
            lane.hand_over(&mut full);
            lane.peer = None;
            lane.destination = None;
        }
    }

    /// Hands over what has waited since an earlier round.
    fn end_round(&mut self, full: &mut impl FnMut(&Arc<Peer>, &mut Outgoing, usize)) {
        for lane in &mut self.lanes {
            if lane.begun < self.round {
                lane.hand_over(full);
            }
            lane.destination = None;
        }
        self.round += 1;
        self.packets_in_round = 0;
    }

    /// The lane for packets to this address; `None` when no peer has it.
    fn lane(
        &mut self,
        tunnel: &Tunnel,
        destination: IpAddr,
        full: &mut impl FnMut(&Arc<Peer>, &mut Outgoing, usize),
    ) -> Option<&mut Lane> {
        let known = |lane: &Lane| lane.destination == Some(destination);
        let at = if let Some(at) = self.lanes.iter().position(known) {
            at
        } else {
            let peer = tunnel.route_by(&mut self.routes, destination)?;
            open(&mut self.lanes, peer, full)
        };
        let lane = &mut self.lanes[at];
        lane.destination = Some(destination);
        lane.last_frame = self.frames;
        Some(lane)
    }
}

/// The lane of this peer; if it has none a free one, or else the one that was used longest ago.
fn open(
    lanes: &mut Vec<Lane>,
    peer: &Arc<Peer>,
    full: &mut impl FnMut(&Arc<Peer>, &mut Outgoing, usize),
) -> usize {
    let is_ours = |lane: &Lane| lane.peer.as_ref() == Some(peer);
    if let Some(at) = lanes.iter().position(is_ours) {
        return at;
    }
    let free = lanes.iter().position(|lane| lane.peer.is_none());
    let at = match free {
        Some(at) => at,
        None if lanes.len() < LANES => {
            lanes.push(Lane::new());
            lanes.len() - 1
        }
        None => {
            let ages = lanes.iter().enumerate();
            ages.min_by_key(|(_, lane)| lane.last_frame)
                .map_or(0, |(at, _)| at)
        }
    };
    let lane = &mut lanes[at];
    lane.hand_over(full);
    lane.peer = Some(Arc::clone(peer));
    at
}

impl Lane {
    fn new() -> Self {
        Self {
            batch: new_batch(),
            used: 0,
            inner_bytes: 0,
            peer: None,
            destination: None,
            begun: 0,
            last_frame: 0,
        }
    }

    fn hand_over(&mut self, full: &mut impl FnMut(&Arc<Peer>, &mut Outgoing, usize)) {
        if let Some(peer) = self.peer.as_ref().filter(|_| !self.batch.is_empty()) {
            full(peer, &mut self.batch, self.inner_bytes);
        }
        self.batch.clear();
        self.used = 0;
        self.inner_bytes = 0;
    }
}

/// How long the datagram of a packet is; at most, when the packet is longer than the MTU.
fn datagram_bytes(length: usize, mtu: usize) -> usize {
    let padded = if length <= mtu {
        length.next_multiple_of(wire::PADDING_MULTIPLE).min(mtu)
    } else {
        length + wire::PADDING_MULTIPLE - 1
    };
    padded + wire::DATA_OVERHEAD_BYTES
}

/// Encrypts a batch and sends it, or leaves its packets to wait for a session. The batch is empty then.
pub(crate) fn seal_and_send(
    core: &Core,
    ports: Option<&WorkerPorts>,
    statistics: &WorkerStatistics,
    peer: &Arc<Peer>,
    batch: &mut Outgoing,
    inner_bytes: usize,
) {
    if ports.is_none() {
        statistics.lost(Loss::NoSocket, batch.len());
        batch.clear();
        return;
    }
    statistics.sent.batch(batch.len(), inner_bytes);
    match core.tunnel.seal(clock::now(), peer, batch) {
        Sealed::To(destination) => send(core, ports, statistics, peer.id(), destination, batch),
        // A session may have come in between, and then the packets were sent with it.
        Sealed::Staged if core.outbox.waits(&core.tunnel) => core.send_waiting(ports, statistics),
        Sealed::Staged | Sealed::Nothing => {}
    }
    batch.clear();
    core.slow_path.look_at_timers(&core.tunnel);
}

/// Sends a sealed batch, behind everything that is older.
pub(crate) fn send(
    core: &Core,
    ports: Option<&WorkerPorts>,
    statistics: &WorkerStatistics,
    peer: PeerId,
    destination: SocketAddr,
    batch: &Outgoing,
) {
    let Some(ports) = ports else {
        statistics.lost(Loss::NoSocket, batch.len());
        return;
    };
    // Asked after sealing: packets that waited when a session appeared are in the outbox by now, or will be sealed later.
    if core.outbox.waits(&core.tunnel) {
        core.send_waiting(Some(ports), statistics);
    }
    let sockets = match (&ports.own, &core.spread) {
        (Some(own), Some(spread)) if spread.allowed(peer, destination) => own,
        _ => &ports.listening,
    };
    let from = core.sticky.source(peer, destination);
    let mut sent = sockets.send(batch, destination, from);
    let mut system_calls = sent.system_calls;
    let blamed = from.is_some() && sent.error.as_ref().is_some_and(blames_source);
    if blamed && sent.datagrams == 0 {
        core.sticky.forget(peer);
        sent = sockets.send(batch, destination, None);
        system_calls += sent.system_calls;
    }
    statistics.sent.system_calls(system_calls as usize);
    statistics
        .sent
        .datagrams(sent.datagrams as usize, sent.bytes as usize);
    if let Some(error) = sent.error {
        log::debug!("sending to {destination}: {error}");
        statistics.lost(Loss::SendFailed, sent.failed as usize);
    }
}

#[cfg(test)]
mod tests;
