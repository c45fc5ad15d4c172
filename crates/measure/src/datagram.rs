//! The datagrams of sequence and segmentation probes: a token, a number, a kind, and content that follows from both.
//!
//! ```text
//! 0       8        16     17        24
//! | token | number | kind | nothing | content … |
//! ```

/// Bytes before the content.
pub(crate) const HEADER: usize = 24;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Opens the way: from here to the far end, whoever sends then.
    Hello,
    /// Answers it.
    Welcome,
    /// One of the numbered ones.
    Data,
    /// One of those, sent in a train that the kernel or the card cut up.
    Segment,
    /// There are no more; its number is how many there were.
    End,
}

const KINDS: [(Kind, u8); 5] = [
    (Kind::Hello, 1),
    (Kind::Welcome, 2),
    (Kind::Data, 3),
    (Kind::Segment, 4),
    (Kind::End, 5),
];

/// Kind and number of a datagram; `None` = it is none of this probe's.
pub(crate) fn read(datagram: &[u8], token: u64) -> Option<(Kind, u64)> {
    let header = datagram.first_chunk::<HEADER>()?;
    let (theirs, rest) = header.split_first_chunk::<8>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (kind, nothing) = rest.split_first()?;
    let ours = u64::from_be_bytes(*theirs) == token && nothing.iter().all(|byte| *byte == 0);
    let (kind, _) = KINDS.iter().find(|(_, code)| code == kind)?;
    ours.then_some((*kind, u64::from_be_bytes(*number)))
}

/// Writes the header. A buffer shorter than [`HEADER`] is left alone.
pub(crate) fn write(datagram: &mut [u8], token: u64, kind: Kind, number: u64) {
    let Some(header) = datagram.first_chunk_mut::<HEADER>() else {
        return;
    };
    *header = [0; HEADER];
    header[..8].copy_from_slice(&token.to_be_bytes());
    header[8..16].copy_from_slice(&number.to_be_bytes());
    header[16] = KINDS
        .iter()
        .find(|(one, _)| *one == kind)
        .map_or(0, |(_, code)| *code);
}

/// A datagram without content.
pub(crate) fn bare(token: u64, kind: Kind, number: u64) -> [u8; HEADER] {
    let mut datagram = [0; HEADER];
    write(&mut datagram, token, kind, number);
    datagram
}

/// Writes the content that belongs to this number.
pub(crate) fn fill(datagram: &mut [u8], token: u64, number: u64) {
    let content = datagram.get_mut(HEADER..).unwrap_or_default();
    let words = content.chunks_mut(8).zip(words(token, number));
    for (bytes, word) in words {
        bytes.copy_from_slice(&word.to_be_bytes()[..bytes.len()]);
    }
}

/// Is the content the one that belongs to this number?
pub(crate) fn is_whole(datagram: &[u8], token: u64, number: u64) -> bool {
    let content = datagram.get(HEADER..).unwrap_or_default();
    content
        .chunks(8)
        .zip(words(token, number))
        .all(|(bytes, word)| *bytes == word.to_be_bytes()[..bytes.len()])
}

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): no two numbers look alike, so
/// that content in the wrong place is noticed.
fn words(token: u64, number: u64) -> impl Iterator<Item = u64> {
    let mut state = token ^ number.wrapping_mul(0xd134_2543_de82_ef95);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_datagram_is_read_as_it_was_written() {
        for (kind, _) in KINDS {
            let mut datagram = [7; 61];
            write(&mut datagram, 5, kind, 42);
            fill(&mut datagram, 5, 42);
            assert_eq!(read(&datagram, 5), Some((kind, 42)));
            assert!(is_whole(&datagram, 5, 42) && !is_whole(&datagram, 5, 43));
            assert_eq!(read(&datagram, 6), None);
            assert_eq!(read(&datagram[..HEADER - 1], 5), None);
            datagram[60] ^= 1;
            assert!(!is_whole(&datagram, 5, 42));
        }
    }

    proptest! {
        #[test]
        fn only_what_was_written_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..64), token: u64) {
            if let Some((kind, number)) = read(&bytes, token) {
                prop_assert_eq!(&bytes[..HEADER], &bare(token, kind, number));
            }
            let _ = is_whole(&bytes, token, 1);
        }

        #[test]
        fn a_flipped_bit_never_passes_for_content(length in HEADER + 1..200_usize, number: u64, at: prop::sample::Index, bit in 0..8_u32) {
            let mut datagram = vec![0; length];
            fill(&mut datagram, 9, number);
            prop_assert!(is_whole(&datagram, 9, number));
            datagram[HEADER + at.index(length - HEADER)] ^= 1 << bit;
            prop_assert!(!is_whole(&datagram, 9, number));
        }
    }
}
