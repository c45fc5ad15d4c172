//! The internet checksum (RFC 1071): one's complement sums of 16-bit words.
//!
//! A sum doesn't depend on the order of its words, nor, but for swapping its result, on the order of bytes within them. So words
//! are taken as they are in memory, 64 bits at a time, and the result is put back the same way.

/// A one's complement sum under way, in the byte order of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of these bytes. An odd last one counts as if a zero followed.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sum(bytes))
    }

    /// The pseudo-header of RFC 793 and RFC 8200: `addresses` are source and destination as they are in the packet, one
    /// behind the other.
    #[inline]
    pub fn of_pseudo_header(addresses: &[u8], protocol: u8, length: usize) -> Self {
        Self::of(addresses)
            .and_u16(u16::from(protocol))
            .and_u32(length as u32)
    }

    /// Both together.
    #[inline]
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (sum, carried) = self.0.overflowing_add(other.0);
        // After a carry the sum is at most 2⁶⁴ − 2, so there is room for it.
        Self(sum + u64::from(carried))
    }

    /// With the bytes that follow, if so far there was an even number of them.
    #[inline]
    #[must_use]
    pub fn and_bytes(self, bytes: &[u8]) -> Self {
        self.and(Self::of(bytes))
    }

    /// With a word more.
    #[inline]
    #[must_use]
    pub fn and_u16(self, value: u16) -> Self {
        self.and(Self(u64::from(value.to_be())))
    }

    /// With two words more.
    #[inline]
    #[must_use]
    pub fn and_u32(self, value: u32) -> Self {
        self.and(Self(u64::from(value.to_be())))
    }

    /// Without a word that was added before.
    #[inline]
    #[must_use]
    pub fn without_u16(self, value: u16) -> Self {
        self.and(Self(u64::from(!value.to_be())))
    }

    /// The sum in 16 bits, as it is stored in a packet whose checksum someone else is to complete.
    #[inline]
    pub fn folded(self) -> [u8; 2] {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        (sum as u16).to_ne_bytes()
    }

    /// The checksum, as it is stored in a packet.
    #[inline]
    pub fn checksum(self) -> [u8; 2] {
        self.folded().map(|byte| !byte)
    }

    /// Whether this is the sum of bytes that contain their own checksum.
    #[inline]
    pub fn is_valid(self) -> bool {
        self.folded() == [0xff; 2]
    }
}

/// Adds up words of 64 bits in lanes of 128, which costs one addition and one addition of the carry for each, and leaves
/// the processor four of these chains to work on at once.
fn sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut lanes = [0u128; 4];
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u128::from(u64::from_ne_bytes(*word));
        }
    }
    let (words, rest) = rest.as_chunks::<8>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane += u128::from(u64::from_ne_bytes(*word));
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        lanes[3] += u128::from(u64::from_ne_bytes(last));
    }
    let total: u128 = lanes.iter().sum();
    Sum(total as u64).and(Sum((total >> 64) as u64)).0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 by the letter.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// 0 and 0xffff are the same number.
    fn same(sum: Sum, expected: u16) -> bool {
        u16::from_be_bytes(sum.folded()) % 0xffff == expected % 0xffff
    }

    #[test]
    fn the_example_of_the_rfc() {
        let sum = Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), [0xdd, 0xf2]);
        assert_eq!(sum.checksum(), [0x22, 0x0d]);
    }

    #[test]
    fn nothing_and_everything() {
        assert_eq!(Sum::of(&[]).folded(), [0, 0]);
        for length in [1usize, 2, 7, 8, 31, 32, 33, 1_400, 65_535] {
            let ones = vec![0xff; length];
            assert!(same(Sum::of(&ones), naive(&ones)), "{length}");
        }
    }

    proptest! {
        #[test]
        fn a_sum_is_that_of_the_rfc(bytes in prop::collection::vec(any::<u8>(), 0..2_000), cut in 0usize..1_000) {
            prop_assert!(same(Sum::of(&bytes), naive(&bytes)));
            let cut = (2 * cut).min(bytes.len());
            prop_assert!(same(Sum::of(&bytes[..cut]).and_bytes(&bytes[cut..]), naive(&bytes)));
        }

        #[test]
        fn a_word_can_be_added_and_taken_away(bytes in prop::collection::vec(any::<u8>(), 0..99), word: u16, two: u32) {
            let sum = Sum::of(&bytes);
            prop_assert!(same(sum.and_u16(word).without_u16(word), naive(&bytes)));
            let mut longer = bytes.clone();
            longer.resize(bytes.len().next_multiple_of(2), 0);
            longer.extend_from_slice(&word.to_be_bytes());
            longer.extend_from_slice(&two.to_be_bytes());
            prop_assert!(same(sum.and_u16(word).and_u32(two), naive(&longer)));
        }

        #[test]
        fn bytes_with_their_checksum_are_valid(mut bytes in prop::collection::vec(any::<u8>(), 2..99), flip in any::<prop::sample::Index>()) {
            bytes[..2].fill(0);
            let checksum = Sum::of(&bytes).checksum();
            bytes[..2].copy_from_slice(&checksum);
            prop_assert!(Sum::of(&bytes).is_valid());
            let at = flip.index(bytes.len());
            bytes[at] ^= 1;
            prop_assert!(!Sum::of(&bytes).is_valid());
        }
    }
}
