//! A sealed batch cut into trains: runs of datagrams that the kernel takes in one message and cuts up itself.

use std::iter::Peekable;

/// Datagrams in a train, at most. The kernel's own limit was 64 up to Linux 6.8 and is 128 since.
pub(super) const MAX_SEGMENTS: u32 = 64;

/// Bytes in a train, at most: with the headers of UDP (8), IPv6 (40) and Ethernet with two VLAN tags (22) it stays below
/// the 65,536 that network cards take; a longer one would be cut up in software, and from 65,508 on refused.
pub(super) const MAX_TRAIN_BYTES: usize = 65_535 - 8 - 40 - 22;

/// What goes to the kernel in one message: a datagram, or several of equal size of which only the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Train<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes of each datagram but the last.
    pub(super) segment: usize,
    pub(super) datagrams: u32,
    pub(super) traffic_class: u8,
}

impl<'a> Train<'a> {
    pub(super) const NONE: Self = Self {
        bytes: &[],
        segment: 0,
        datagrams: 0,
        traffic_class: 0,
    };

    pub(super) fn single(bytes: &'a [u8], traffic_class: u8) -> Self {
        Self {
            bytes,
            segment: bytes.len(),
            datagrams: 1,
            traffic_class,
        }
    }

    /// Whether the kernel has to cut it up.
    pub(super) fn is_long(&self) -> bool {
        self.datagrams > 1
    }

    /// Its datagrams, each by itself.
    pub(super) fn singles(&self) -> impl Iterator<Item = Train<'a>> {
        let traffic_class = self.traffic_class;
        self.bytes
            .chunks(self.segment.max(1))
            .map(move |bytes| Self::single(bytes, traffic_class))
    }
}

/// Cuts `bytes` into trains, by the length and the traffic class of each datagram in it. Datagrams longer than `longest`
/// travel alone; 0 means that all do.
pub(super) fn cut(
    bytes: &[u8],
    datagrams: impl Iterator<Item = (usize, u8)>,
    longest: usize,
) -> impl Iterator<Item = Train<'_>> {
    let mut rest = bytes;
    let mut datagrams = datagrams.peekable();
    std::iter::from_fn(move || {
        let (segment, traffic_class) = datagrams.next()?;
        let (total, followers) = if segment <= longest {
            couple(segment, traffic_class, &mut datagrams)
        } else {
            (segment, 0)
        };
        let (bytes, after) = rest.split_at_checked(total)?;
        rest = after;
        Some(Train {
            bytes,
            segment,
            datagrams: 1 + followers,
            traffic_class,
        })
    })
}

/// Takes the datagrams that fit behind one of this kind: the bytes with it, and how many they are.
fn couple(
    segment: usize,
    traffic_class: u8,
    datagrams: &mut Peekable<impl Iterator<Item = (usize, u8)>>,
) -> (usize, u32) {
    let mut total = segment;
    let mut followers = 0;
    let mut last = segment;
    while last == segment && followers + 1 < MAX_SEGMENTS {
        let fits = |&(length, class): &(usize, u8)| {
            class == traffic_class
                && (1..=segment).contains(&length)
                && total + length <= MAX_TRAIN_BYTES
        };
        let Some((length, _)) = datagrams.next_if(fits) else {
            break;
        };
        total += length;
        followers += 1;
        last = length;
    }
    (total, followers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANY: usize = usize::MAX;

    /// How many datagrams each train has.
    fn counts(datagrams: &[(usize, u8)], longest: usize) -> Vec<u32> {
        let bytes = vec![0; datagrams.iter().map(|(length, _)| length).sum()];
        cut(&bytes, datagrams.iter().copied(), longest)
            .map(|train| train.datagrams)
            .collect()
    }

    #[test]
    fn a_super_packet_is_one_train() {
        assert_eq!(counts(&[(1452, 0); 45], ANY), [45]);
        let mut with_tail = vec![(1452, 0); 44];
        with_tail.push((700, 0));
        assert_eq!(counts(&with_tail, ANY), [45]);
    }

    #[test]
    fn a_train_ends_where_it_must() {
        for (datagrams, expected) in [
            (&[(100, 0), (100, 0), (50, 0), (50, 0)][..], &[3, 1][..]),
            (&[(100, 0), (101, 0)], &[1, 1]),
            (&[(100, 0), (100, 1), (100, 1)], &[1, 2]),
            (&[(100, 0), (0, 0), (100, 0)], &[1, 1, 1]),
            (&[(32, 0); 130], &[64, 64, 2]),
            (&[(1452, 0); 46], &[45, 1]),
            (&[(60_000, 0), (6_000, 0), (1, 0)], &[1, 2]),
            (&[(70_000, 0), (1, 0)], &[1, 1]),
            (&[], &[]),
        ] {
            assert_eq!(counts(datagrams, ANY), expected, "{datagrams:?}");
        }
    }

    #[test]
    fn what_is_too_long_for_the_path_travels_alone() {
        assert_eq!(
            counts(&[(1452, 0), (1452, 0), (100, 0), (100, 0)], 1232),
            [1, 1, 2]
        );
        assert_eq!(counts(&[(100, 0); 3], 0), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_kernel_would_cut_it_so(
            datagrams in prop::collection::vec((prop_oneof![Just(1452usize), Just(112), 0..3000usize], 0..2u8), 0..200),
            longest in prop_oneof![Just(ANY), Just(0), 0..3000usize],
        ) {
            let total = datagrams.iter().map(|(length, _)| length).sum();
            let bytes: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
            let mut rest = &bytes[..];
            let mut seen = Vec::new();
            for train in cut(&bytes, datagrams.iter().copied(), longest) {
                prop_assert_eq!(&rest[..train.bytes.len()], train.bytes);
                rest = &rest[train.bytes.len()..];
                prop_assert!(train.datagrams <= MAX_SEGMENTS);
                if train.is_long() {
                    prop_assert!(train.bytes.len() <= MAX_TRAIN_BYTES && train.segment <= longest);
                    let singles: Vec<_> = train.singles().collect();
                    prop_assert_eq!(singles.len(), train.datagrams as usize);
                    seen.extend(singles.iter().map(|single| (single.bytes.len(), single.traffic_class)));
                } else {
                    seen.push((train.bytes.len(), train.traffic_class));
                }
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(seen, datagrams);
        }
    }
}
