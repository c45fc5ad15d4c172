//! Datagrams on their way out, one behind the other in one buffer, as a GSO send takes them.

use crate::aead::TAG_BYTES;
use crate::inner::outer_traffic_class;
use crate::keypair::Keypair;
use crate::message::{DATA_HEADER_BYTES, DATA_OVERHEAD_BYTES, PADDING_MULTIPLE};

/// A batch of inner packets for one peer, and after sealing the datagrams they became.
///
/// The inner packets are written where they will be sealed: [`reserve`](Self::reserve) gives the place, with room left
/// for header, padding and tag, so that nothing is copied later. The buffer belongs to the caller and is used
/// again after [`clear`](Self::clear); it is never reallocated.
pub struct Outgoing {
    bytes: Box<[u8]>,
    used: usize,
    slots: Vec<Slot>,
    max_packets: usize,
    sealed: bool,
}

struct Slot {
    start: usize,
    end: usize,
    inner_bytes: usize,
    traffic_class: u8,
}

/// A datagram ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedDatagram<'a> {
    /// The UDP payload.
    pub bytes: &'a [u8],
    /// What the outer header's traffic class (TOS) has to be: ECN only.
    pub traffic_class: u8,
}

impl Outgoing {
    /// A buffer for datagrams of together `bytes`, at most `packets` of them.
    pub fn new(bytes: usize, packets: usize) -> Self {
        Self {
            bytes: vec![0; bytes].into_boxed_slice(),
            used: 0,
            slots: Vec::with_capacity(packets),
            max_packets: packets,
            sealed: false,
        }
    }

    /// The place for an inner packet of `length` bytes, to be filled by the caller; 0 makes a keepalive.
    /// `mtu` is the tunnel's (0: none), beyond which no packet is padded. `None` when the batch is full or sealed.
    pub fn reserve(&mut self, length: usize, mtu: usize) -> Option<&mut [u8]> {
        let padded = padded_length(length, mtu);
        let start = self.used;
        let end = start
            .checked_add(padded)?
            .checked_add(DATA_OVERHEAD_BYTES)?;
        if self.sealed || self.slots.len() >= self.max_packets || end > self.bytes.len() {
            return None;
        }
        let inner = start + DATA_HEADER_BYTES;
        self.bytes[inner + length..inner + padded].fill(0);
        self.slots.push(Slot {
            start,
            end,
            inner_bytes: length,
            traffic_class: 0,
        });
        self.used = end;
        Some(&mut self.bytes[inner..inner + length])
    }

    /// Copies an inner packet in. False when the batch is full or sealed.
    pub fn push(&mut self, packet: &[u8], mtu: usize) -> bool {
        self.reserve(packet.len(), mtu)
            .map(|place| place.copy_from_slice(packet))
            .is_some()
    }

    /// How many packets are in it.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Empties it for the next batch.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.used = 0;
        self.sealed = false;
    }

    /// The datagrams, in the order of their packets; none before the batch is sealed.
    pub fn datagrams(&self) -> impl Iterator<Item = SealedDatagram<'_>> {
        self.sealed
            .then_some(&self.slots)
            .into_iter()
            .flatten()
            .map(|slot| SealedDatagram {
                bytes: &self.bytes[slot.start..slot.end],
                traffic_class: slot.traffic_class,
            })
    }

    /// The datagrams as one piece without gaps, to be cut by the lengths of [`datagrams`](Self::datagrams);
    /// empty before the batch is sealed.
    pub fn bytes(&self) -> &[u8] {
        if self.sealed {
            &self.bytes[..self.used]
        } else {
            &[]
        }
    }

    /// Whether any packet is more than a keepalive.
    pub(crate) fn has_data(&self) -> bool {
        self.slots.iter().any(|slot| slot.inner_bytes > 0)
    }

    /// Makes datagrams of all packets, with counters from `first_counter` on.
    pub(crate) fn seal(&mut self, keypair: &Keypair, first_counter: u64) {
        if self.sealed {
            return;
        }
        let sealer = keypair.sealer();
        for (counter, slot) in (first_counter..).zip(&mut self.slots) {
            let bytes = &mut self.bytes[slot.start..slot.end];
            slot.traffic_class = outer_traffic_class(inner(bytes, slot.inner_bytes));
            sealer.seal(counter, bytes);
        }
        self.sealed = true;
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// The packets as they are before sealing, each with its own memory, to be sealed later. Keepalives are left out.
    pub(crate) fn unsealed(&self) -> impl Iterator<Item = Staged> {
        (!self.sealed)
            .then_some(&self.slots)
            .into_iter()
            .flatten()
            .filter(|slot| slot.inner_bytes > 0)
            .map(|slot| {
                let bytes = self.bytes[slot.start..slot.end].to_vec();
                Staged {
                    traffic_class: outer_traffic_class(inner(&bytes, slot.inner_bytes)),
                    bytes,
                }
            })
    }
}

/// A packet that waits for a session, in a buffer with room for header and tag.
pub(crate) struct Staged {
    pub(crate) bytes: Vec<u8>,
    pub(crate) traffic_class: u8,
}

impl Staged {
    pub(crate) fn keepalive() -> Self {
        Self {
            bytes: vec![0; DATA_OVERHEAD_BYTES],
            traffic_class: 0,
        }
    }

    pub(crate) fn is_data(&self) -> bool {
        self.bytes.len() > DATA_HEADER_BYTES + TAG_BYTES
    }
}

fn inner(slot: &[u8], length: usize) -> &[u8] {
    &slot[DATA_HEADER_BYTES..DATA_HEADER_BYTES + length]
}

/// How long a packet is once padded: to the next multiple of 16, unless the MTU comes first. A packet above the MTU
/// is padded as if it were cut into MTU-sized pieces, which is what the kernel's driver does.
fn padded_length(length: usize, mtu: usize) -> usize {
    if mtu == 0 {
        return length.next_multiple_of(PADDING_MULTIPLE);
    }
    let last = if length > mtu { length % mtu } else { length };
    length + last.next_multiple_of(PADDING_MULTIPLE).min(mtu) - last
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash::Secret;
    use crate::keypair::plaintext_range;
    use crate::noise::TransportSecrets;
    use crate::time::Instant;

    fn keypair(we_initiated: bool) -> Keypair {
        let secrets = TransportSecrets {
            from_initiator: Secret::new([1; 32]),
            from_responder: Secret::new([2; 32]),
        };
        Keypair::new(&secrets, we_initiated, 1, 1, Instant::default())
    }

    #[test]
    fn padding_stops_at_the_mtu() {
        for (length, mtu, padded) in [
            (0, 1420, 0),
            (1, 1420, 16),
            (16, 1420, 16),
            (1408, 1420, 1408),
            (1409, 1420, 1420),
            (1420, 1420, 1420),
            (1421, 1420, 1436),
            (2840, 1420, 2840),
            (1420, 0, 1424),
            (5, 3, 6),
        ] {
            assert_eq!(padded_length(length, mtu), padded, "{length} of {mtu}");
        }
    }

    #[test]
    fn nothing_leaves_unsealed() {
        let mut batch = Outgoing::new(1_000, 4);
        assert!(batch.push(&[0x45; 100], 1420));
        assert_eq!((batch.datagrams().count(), batch.bytes().len()), (0, 0));
        batch.seal(&keypair(true), 0);
        assert_eq!((batch.datagrams().count(), batch.bytes().len()), (1, 144));
        assert!(
            !batch.push(&[0x45; 100], 1420),
            "a sealed batch takes no more"
        );
        assert_eq!(batch.unsealed().count(), 0);
        batch.clear();
        assert!(batch.push(&[0x45; 100], 1420));
        assert_eq!(batch.bytes().len(), 0);
    }

    #[test]
    fn a_full_batch_says_so() {
        let mut by_count = Outgoing::new(1_000, 2);
        assert!(by_count.push(&[1], 1420) && by_count.push(&[2], 1420));
        assert!(!by_count.push(&[3], 1420));
        let mut by_bytes = Outgoing::new(100, 9);
        assert!(by_bytes.push(&[1; 16], 1420) && by_bytes.push(&[1; 16], 1420));
        assert!(!by_bytes.push(&[], 1420));
        assert!(by_bytes.reserve(usize::MAX - 20, 0).is_none());
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_in_order(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1500), 0..20), mtu in 1280usize..1500,
            first in 0u64..1000,
        ) {
            let mut batch = Outgoing::new(1 << 16, 20);
            // A used buffer must not shine through.
            while batch.push(&[0xee; 999], 0) {}
            batch.clear();
            for packet in &packets {
                prop_assert!(batch.push(packet, mtu));
            }
            batch.seal(&keypair(true), first);
            let opener = keypair(false).opener();
            let mut joined = Vec::new();
            for ((at, packet), datagram) in packets.iter().enumerate().zip(batch.datagrams()) {
                joined.extend_from_slice(datagram.bytes);
                prop_assert_eq!(datagram.traffic_class, outer_traffic_class(packet));
                let mut bytes = datagram.bytes.to_vec();
                prop_assert_eq!(opener.open_any(&mut bytes), Some(first + at as u64));
                let plain = &bytes[plaintext_range(&bytes)];
                prop_assert_eq!(&plain[..packet.len()], &packet[..]);
                prop_assert!(plain[packet.len()..].iter().all(|byte| *byte == 0));
                prop_assert!(plain.len() <= mtu.max(packet.len() + 15));
                prop_assert!(packet.len() > mtu || plain.len() % 16 == 0 || plain.len() == mtu);
            }
            prop_assert_eq!(joined, batch.bytes());
        }
    }
}
