//! Control messages (`cmsg(3)`): what goes with a datagram beside its bytes and its address.
//!
//! Pure functions over bytes: a header of length (`size_t`), level and type (`int` each), the data, padding to the size
//! of a machine word.

/// The header's bytes: 16 on 64-bit machines, 12 on 32-bit ones, and thus always whole words.
const HEADER_BYTES: usize = size_of::<usize>() + 8;

/// Room for all that is ever sent with a datagram: `IPV6_PKTINFO`, `IPV6_TCLASS` and `UDP_SEGMENT`.
const SENT_BYTES: usize = space(20) + space(4) + space(2);

/// Bytes that a control message with so much data takes.
const fn space(data: usize) -> usize {
    (HEADER_BYTES + data).next_multiple_of(size_of::<usize>())
}

/// Control messages being put together.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub(super) struct Control {
    bytes: [u8; SENT_BYTES],
    used: usize,
}

impl Control {
    pub(super) const EMPTY: Self = Self {
        bytes: [0; SENT_BYTES],
        used: 0,
    };

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Adds a message.
    ///
    /// # Panics
    ///
    /// If more is added than [`SENT_BYTES`] was made for.
    pub(super) fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let length = HEADER_BYTES + data.len();
        let place = &mut self.bytes[self.used..self.used + space(data.len())];
        let (header, body) = place.split_at_mut(HEADER_BYTES);
        let (size, words) = header.split_at_mut(size_of::<usize>());
        size.copy_from_slice(&length.to_ne_bytes());
        words[..4].copy_from_slice(&level.to_ne_bytes());
        words[4..].copy_from_slice(&kind.to_ne_bytes());
        body[..data.len()].copy_from_slice(data);
        self.used += space(data.len());
    }
}

/// A control message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) level: i32,
    pub(super) kind: i32,
    pub(super) data: &'a [u8],
}

/// The control messages in these bytes. Ends at the first that isn't whole.
pub(super) fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (size, after) = rest.split_first_chunk::<{ size_of::<usize>() }>()?;
        let (level, after) = after.split_first_chunk::<4>()?;
        let (kind, _) = after.split_first_chunk::<4>()?;
        let length = usize::from_ne_bytes(*size);
        let data = rest.get(HEADER_BYTES..length)?;
        let next = length.checked_next_multiple_of(size_of::<usize>());
        rest = next.and_then(|next| rest.get(next..)).unwrap_or(&[]);
        Some(Message {
            level: i32::from_ne_bytes(*level),
            kind: i32::from_ne_bytes(*kind),
            data,
        })
    })
}

/// The `int` that a message holds.
pub(super) fn int(data: &[u8]) -> Option<i32> {
    data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_laid_out_as_the_kernel_has_it() {
        let mut control = Control::EMPTY;
        control.push(17, 103, &1452u16.to_ne_bytes());
        let mut expected = Vec::new();
        expected.extend_from_slice(&(HEADER_BYTES + 2).to_ne_bytes());
        expected.extend_from_slice(&17i32.to_ne_bytes());
        expected.extend_from_slice(&103i32.to_ne_bytes());
        expected.extend_from_slice(&1452u16.to_ne_bytes());
        expected.resize(space(2), 0);
        assert_eq!(control.bytes(), expected);
        if size_of::<usize>() == 8 {
            assert_eq!(
                (HEADER_BYTES, space(2), space(12), space(20)),
                (16, 24, 32, 40)
            );
        }
    }

    #[test]
    fn everything_that_is_sent_fits() {
        let mut control = Control::EMPTY;
        for data in [&[1u8; 20][..], &[2; 4], &[3; 2]] {
            control.push(1, 2, data);
        }
        assert_eq!(control.bytes().len(), SENT_BYTES);
        assert_eq!(messages(control.bytes()).count(), 3);
    }

    #[test]
    fn the_last_one_need_not_be_padded() {
        let mut control = Control::EMPTY;
        control.push(0, 1, &[7]);
        let whole = Message {
            level: 0,
            kind: 1,
            data: &[7],
        };
        for end in HEADER_BYTES + 1..=control.bytes().len() {
            assert!(messages(&control.bytes()[..end]).eq([whole]), "{end}");
        }
        assert_eq!(messages(&control.bytes()[..HEADER_BYTES]).count(), 0);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            sent in prop::collection::vec((any::<i32>(), any::<i32>(), prop::collection::vec(any::<u8>(), 0..=8)), 0..=3),
        ) {
            let mut control = Control::EMPTY;
            for (level, kind, data) in &sent {
                control.push(*level, *kind, data);
            }
            let read: Vec<_> = messages(control.bytes()).map(|m| (m.level, m.kind, m.data.to_vec())).collect();
            prop_assert_eq!(read, sent);
        }

        #[test]
        fn rubbish_does_no_harm(bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(20), Just(255), any::<u8>()], 0..200)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER_BYTES + 1);
            for message in messages(&bytes) {
                prop_assert!(message.data.len() <= bytes.len());
                int(message.data);
            }
        }
    }
}
