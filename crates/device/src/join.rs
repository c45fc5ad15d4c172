//! Inner packets in order of arrival → as few writes to the TUN as possible.
//!
//! Consecutive segments of a TCP connection go to the kernel as one super-packet, by the rules of the kernel's own
//! `tcp_gro_receive`: cut again they are the same packets. So do UDP datagrams of one flow, where the kernel takes them. Several flows may
//! be mixed; each keeps its order, and what can't be joined stays where it was in its flow.
//!
//! ```text
//! packet ─ understood? ─ no ──────────────────→ its flow's (or addresses') super-packet is written, then the packet
//!              │
//!          same flow waits? ─ no ─────────────→ waits for a second (up to 16 flows do)
//!              │
//!          continues it? ─ no ────────────────→ the super-packet is written, the packet waits
//!              │
//!          checksums right? → appended; a short, pushed or last segment ends the super-packet
//! ```
//!
//! Checksums are verified before joining, since a joined packet gets a new one and corrupt data would become valid.

mod segment;

use std::io::IoSlice;

use self::segment::{FIN_PSH, MAX_PACKET_BYTES, Seen, Segment, look_at};
use crate::checksum::Sum;
use crate::offloads::{Offload, Offloads};
use crate::split::{TCP, TCP_CHECKSUM, TCP_CWR, UDP, UDP_CHECKSUM, put_u16};
use crate::tun::vnet::{
    GSO_ECN, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CHECKSUM, PLAIN, VNET_HEADER_BYTES, VnetHeader,
};

/// Flows that wait at once; a further one makes the one that has waited longest go.
const MAX_FLOWS: usize = 16;

/// Packets in one write of TCP. `writev` takes 1,024 pieces.
const MAX_TCP_PACKETS: usize = 512;

/// Packets in one write of UDP. The kernel took 64 before it took 128.
const MAX_UDP_PACKETS: usize = 64;

/// The longest headers: IPv6 and TCP with all options.
const MAX_HEADER_BYTES: usize = 100;

/// Joins batches of packets. It keeps nothing but memory from one batch to the next.
#[derive(Default)]
pub struct Joiner {
    flows: Vec<Flow<'static>>,
    pieces: Vec<Piece<'static>>,
    parts: Vec<IoSlice<'static>>,
}

/// Packets of one flow that wait to be written together.
struct Flow<'a> {
    first: Segment<'a>,
    /// What flags of later segments the header has to carry.
    flags: u8,
    packets: usize,
    payload_bytes: usize,
    /// Whether the first one's checksums were found right.
    verified: bool,
    /// The pieces behind the first packet, as a list within all pieces.
    head: usize,
    tail: usize,
}

/// The payload of a packet, and where the next one of its flow is.
struct Piece<'a> {
    payload: &'a [u8],
    next: usize,
}

/// The end of a list of pieces.
const NONE: usize = usize::MAX;

/// Which kinds are to be joined.
#[derive(Clone, Copy)]
struct Wanted {
    tcp4: bool,
    tcp6: bool,
    udp: bool,
}

impl Joiner {
    /// A joiner without memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins a batch, and hands each result to `write`: first the header for the TUN, then the packet, or headers of our own making and
    /// payloads of the packets given; and how many packets are in it.
    pub fn join<'a>(
        &mut self,
        packets: impl Iterator<Item = &'a [u8]>,
        offloads: &Offloads,
        write: impl FnMut(&[IoSlice<'_>], usize),
    ) {
        let mut batch = Batch {
            flows: recycled(std::mem::take(&mut self.flows)),
            pieces: recycled(std::mem::take(&mut self.pieces)),
            parts: recycled(std::mem::take(&mut self.parts)),
            wanted: Wanted::of(offloads),
            write,
        };
        for packet in packets {
            batch.take(packet);
        }
        while !batch.flows.is_empty() {
            batch.write_flow(0);
        }
        self.flows = recycled(batch.flows);
        self.pieces = recycled(batch.pieces);
        self.parts = batch.parts;
    }
}

impl Wanted {
    fn of(offloads: &Offloads) -> Self {
        let checksum = offloads.on(Offload::TunChecksum);
        Self {
            tcp4: checksum && offloads.on(Offload::TunTso4),
            tcp6: checksum && offloads.on(Offload::TunTso6),
            udp: checksum && offloads.on(Offload::TunUso),
        }
    }

    fn wants(self, segment: &Segment<'_>) -> bool {
        match (segment.udp, segment.is_v4()) {
            (true, _) => self.udp,
            (false, true) => self.tcp4,
            (false, false) => self.tcp6,
        }
    }
}

/// One batch under way.
struct Batch<'a, W> {
    flows: Vec<Flow<'a>>,
    pieces: Vec<Piece<'a>>,
    parts: Vec<IoSlice<'static>>,
    wanted: Wanted,
    write: W,
}

impl<'a, W: FnMut(&[IoSlice<'_>], usize)> Batch<'a, W> {
    fn take(&mut self, packet: &'a [u8]) {
        let segment = match look_at(packet) {
            Seen::Segment(segment) => segment,
            Seen::OfFlow(key) => {
                self.write_flows_that(|flow| flow.first.key() == key);
                return self.write_single(packet);
            }
            Seen::Between(addresses) => {
                self.write_flows_that(|flow| flow.first.addresses() == addresses);
                return self.write_single(packet);
            }
            Seen::Garbage => return self.write_single(packet),
        };
        if !self.wanted.wants(&segment) {
            // Nothing of its flow can be waiting.
            return self.write_single(packet);
        }
        let waiting = (self.flows.iter()).position(|flow| flow.first.is_same_flow(&segment));
        if let Some(at) = waiting {
            if self.append(at, &segment) {
                if self.flows[at].is_complete(&segment) {
                    self.write_flow(at);
                }
                return;
            }
            self.write_flow(at);
        }
        if segment.flags & FIN_PSH != 0 {
            // Nothing may follow it.
            return self.write_single(packet);
        }
        if self.flows.len() == MAX_FLOWS {
            self.write_flow(0);
        }
        self.flows.push(Flow {
            first: segment,
            flags: 0,
            packets: 1,
            payload_bytes: segment.payload().len(),
            verified: false,
            head: NONE,
            tail: NONE,
        });
    }

    /// Appends a segment to a flow that waits; false when it doesn't continue it, or when one of them is corrupt.
    fn append(&mut self, at: usize, segment: &Segment<'a>) -> bool {
        let flow = &mut self.flows[at];
        let most = if segment.udp {
            MAX_UDP_PACKETS
        } else {
            MAX_TCP_PACKETS
        };
        if flow.packets == most
            || segment.payload_offset() + flow.payload_bytes + segment.payload().len()
                > MAX_PACKET_BYTES
            || !segment.continues(&flow.first, flow.packets, flow.payload_bytes)
        {
            return false;
        }
        if !flow.verified {
            if !flow.first.has_valid_checksums() {
                return false;
            }
            flow.verified = true;
        }
        if !segment.has_valid_checksums() {
            return false;
        }
        let new = self.pieces.len();
        self.pieces.push(Piece {
            payload: segment.payload(),
            next: NONE,
        });
        match flow.tail {
            NONE => flow.head = new,
            tail => self.pieces[tail].next = new,
        }
        flow.tail = new;
        flow.packets += 1;
        flow.payload_bytes += segment.payload().len();
        flow.flags |= segment.flags & FIN_PSH;
        true
    }

    fn write_flows_that(&mut self, is_meant: impl Fn(&Flow<'a>) -> bool) {
        let mut at = 0;
        while at < self.flows.len() {
            if is_meant(&self.flows[at]) {
                self.write_flow(at);
            } else {
                at += 1;
            }
        }
    }

    fn write_single(&mut self, packet: &[u8]) {
        (self.write)(&[IoSlice::new(&PLAIN), IoSlice::new(packet)], 1);
    }

    fn write_flow(&mut self, at: usize) {
        let flow = self.flows.remove(at);
        if flow.packets == 1 {
            return self.write_single(flow.first.packet);
        }
        let headers = flow.headers();
        let mut parts = recycled(std::mem::take(&mut self.parts));
        parts.push(IoSlice::new(headers.bytes()));
        parts.push(IoSlice::new(flow.first.payload()));
        let mut next = flow.head;
        while let Some(piece) = self.pieces.get(next) {
            parts.push(IoSlice::new(piece.payload));
            next = piece.next;
        }
        (self.write)(&parts, flow.packets);
        self.parts = recycled(parts);
    }
}

impl Flow<'_> {
    /// Whether nothing can follow this segment, its last.
    fn is_complete(&self, last: &Segment<'_>) -> bool {
        last.flags & FIN_PSH != 0 || last.payload().len() < self.first.payload().len()
    }

    /// The headers of the super-packet.
    fn headers(&self) -> Headers {
        let first = &self.first;
        let header_length = first.payload_offset();
        let mut headers = Headers {
            bytes: [0; VNET_HEADER_BYTES + MAX_HEADER_BYTES],
            length: VNET_HEADER_BYTES + header_length,
        };
        let (vnet, packet) = headers.bytes.split_at_mut(VNET_HEADER_BYTES);
        let packet = &mut packet[..header_length];
        packet.copy_from_slice(&first.packet[..header_length]);

        let length = header_length + self.payload_bytes;
        if first.is_v4() {
            put_u16(packet, 2, length as u16);
            put_u16(packet, 10, 0);
            let checksum = Sum::of(&packet[..first.transport]).checksum();
            packet[10..12].copy_from_slice(&checksum);
        } else {
            put_u16(packet, 4, (length - first.transport) as u16);
        }

        let transport_length = length - first.transport;
        let (protocol, checksum_offset) = if first.udp {
            put_u16(packet, first.transport + 4, transport_length as u16);
            (UDP, UDP_CHECKSUM)
        } else {
            packet[first.transport + 13] |= self.flags;
            (TCP, TCP_CHECKSUM)
        };
        // The kernel, or whoever gets the packet from it, adds the rest.
        let partial = Sum::of_pseudo_header(first.addresses(), protocol, transport_length).folded();
        let at = first.transport + checksum_offset;
        packet[at..at + 2].copy_from_slice(&partial);

        let kind = match (first.udp, first.is_v4()) {
            (true, _) => GSO_UDP_L4,
            (false, true) => GSO_TCPV4,
            (false, false) => GSO_TCPV6,
        };
        let congestion = !first.udp && first.flags & TCP_CWR != 0;
        let header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: if congestion { kind | GSO_ECN } else { kind },
            header_length: header_length as u16,
            gso_size: first.payload().len() as u16,
            checksum_start: first.transport as u16,
            checksum_offset: checksum_offset as u16,
        };
        vnet.copy_from_slice(&header.to_bytes());
        headers
    }
}

/// The headers of a super-packet, made anew.
struct Headers {
    bytes: [u8; VNET_HEADER_BYTES + MAX_HEADER_BYTES],
    length: usize,
}

impl Headers {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// An empty vector with the memory of a used one, of which only a lifetime differs.
fn recycled<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    // Collecting in place is how the standard library does this; a test sees to it.
    used.into_iter().map(|_| unreachable!()).collect()
}

#[cfg(test)]
mod tests;
