//! BLAKE2s as the handshake uses it: plain, keyed, and in HKDF (whitepaper, 5.4).

use blake2::digest::consts::U16;
use blake2::digest::{Digest, FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac};
use zeroize::Zeroizing;

/// Bytes of a hash, a chaining key, or any key made of one.
pub(crate) const HASH_BYTES: usize = 32;

/// Bytes of a MAC or a cookie.
pub(crate) const MAC_BYTES: usize = 16;

/// A hash whose content is secret.
pub(crate) type Secret = Zeroizing<[u8; HASH_BYTES]>;

/// HASH of the parts, one behind the other.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; HASH_BYTES] {
    let mut state = Blake2s256::new();
    for part in parts {
        Update::update(&mut state, part);
    }
    state.finalize().into()
}

/// MAC of the parts: BLAKE2s' own keyed mode, 16 bytes out. `key` has at most 32 bytes.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    let mut state = <Blake2sMac<U16> as KeyInit>::new_from_slice(key)
        .expect("keys of this protocol have 16 or 32 bytes, BLAKE2s takes up to 32");
    for part in parts {
        Update::update(&mut state, part);
    }
    state.finalize_fixed().into()
}

/// KDF with as many outputs as asked for (HKDF over HMAC-BLAKE2s).
pub(crate) fn kdf<const N: usize>(chaining_key: &[u8; HASH_BYTES], input: &[u8]) -> [Secret; N] {
    let secret = hmac(chaining_key, &[input]);
    let mut previous = Secret::default();
    std::array::from_fn(|at| {
        let number = [at as u8 + 1];
        previous = if at == 0 {
            hmac(&secret, &[&number])
        } else {
            hmac(&secret, &[&*previous, &number])
        };
        previous.clone()
    })
}

/// HMAC-BLAKE2s. The key is at most as long as a hash here, so it never needs hashing itself.
fn hmac(key: &[u8; HASH_BYTES], parts: &[&[u8]]) -> Secret {
    const BLOCK_BYTES: usize = 64;
    let padded = |pad: u8| {
        let mut block = Zeroizing::new([pad; BLOCK_BYTES]);
        for (byte, key_byte) in block.iter_mut().zip(key) {
            *byte ^= key_byte;
        }
        block
    };
    let mut inner = Blake2s256::new();
    Update::update(&mut inner, padded(0x36).as_slice());
    for part in parts {
        Update::update(&mut inner, part);
    }
    let inner: Secret = Zeroizing::new(inner.finalize().into());
    Zeroizing::new(hash(&[padded(0x5c).as_slice(), inner.as_slice()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7693, appendix B.
    #[test]
    fn hashes_the_vector_of_the_rfc() {
        assert_eq!(
            hash(&[b"a", b"bc"]),
            [
                0x50, 0x8c, 0x5e, 0x8c, 0x32, 0x7c, 0x14, 0xe2, 0xe1, 0xa7, 0x2b, 0xa3, 0x4e, 0xeb,
                0x45, 0x2f, 0x37, 0x45, 0x8b, 0x20, 0x9e, 0xd6, 0x3a, 0x29, 0x4d, 0x99, 0x9b, 0x4c,
                0x86, 0x67, 0x59, 0x82
            ]
        );
    }

    #[test]
    fn parts_hash_as_one() {
        assert_eq!(mac(&[1; 32], &[b"ab", b"c"]), mac(&[1; 32], &[b"abc"]));
        assert_ne!(mac(&[1; 32], &[b"abc"]), mac(&[1; 16], &[b"abc"]));
    }

    #[test]
    fn fewer_outputs_are_the_first_of_more() {
        let [one] = kdf::<1>(&[4; 32], b"input");
        let [first, second] = kdf::<2>(&[4; 32], b"input");
        let [a, b, third] = kdf::<3>(&[4; 32], b"input");
        assert_eq!((*one, *first, *second), (*a, *a, *b));
        assert_ne!(*b, *third);
    }
}
