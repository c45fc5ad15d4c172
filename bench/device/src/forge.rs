//! The MACs of handshake messages, as whoever knows the receiver's public key can make them (whitepaper, 5.4.4 and 5.4.7).
//!
//! With MAC1 a forged initiation gets past the first check and costs its receiver a key agreement. A cookie's MAC2 lets an
//! initiation that was made beforehand be sent once more.

use blake2::digest::consts::U16;
use blake2::digest::{Digest, FixedOutput, KeyInit as _, Update};
use blake2::{Blake2s256, Blake2sMac};
use chacha20poly1305::{AeadInOut, XChaCha20Poly1305};
use rand::RngExt;
use wirespeed_protocol::PublicKey;
use wirespeed_protocol::wire::{CookieReply, INITIATION_BYTES};

const MAC_BYTES: usize = 16;
/// Where MAC1 and MAC2 of an initiation begin.
const MAC1_AT: usize = INITIATION_BYTES - 2 * MAC_BYTES;
const MAC2_AT: usize = INITIATION_BYTES - MAC_BYTES;

/// A whole initiation.
pub(crate) type Initiation = [u8; INITIATION_BYTES];

/// An initiation of nobody with a right MAC1.
pub(crate) fn initiation(receiver: &PublicKey) -> Initiation {
    let mut message = [0; INITIATION_BYTES];
    rand::rng().fill(&mut message[4..MAC1_AT]);
    message[0] = 1;
    let key: [u8; 32] = keyed(*b"mac1----", receiver);
    let mac1 = mac(&key, &message[..MAC1_AT]);
    message[MAC1_AT..MAC2_AT].copy_from_slice(&mac1);
    message
}

/// Puts MAC2 on an initiation that was answered by a cookie; false when the reply doesn't belong to it.
pub(crate) fn add_cookie(
    message: &mut Initiation,
    receiver: &PublicKey,
    reply: &CookieReply,
) -> bool {
    let (sealed, tag) = reply.cookie_sealed.split_at(MAC_BYTES);
    let mut cookie = [0; MAC_BYTES];
    cookie.copy_from_slice(sealed);
    let mut tag_bytes = [0; 16];
    tag_bytes.copy_from_slice(tag);
    let key: [u8; 32] = keyed(*b"cookie--", receiver);
    let opened = XChaCha20Poly1305::new(&key.into()).decrypt_inout_detached(
        &reply.nonce.into(),
        &message[MAC1_AT..MAC2_AT],
        cookie.as_mut_slice().into(),
        &tag_bytes.into(),
    );
    if opened.is_ok() {
        let mac2 = mac(&cookie, &message[..MAC2_AT]);
        message[MAC2_AT..].copy_from_slice(&mac2);
    }
    opened.is_ok()
}

fn keyed(label: [u8; 8], receiver: &PublicKey) -> [u8; 32] {
    let mut hash = Blake2s256::new();
    Update::update(&mut hash, &label);
    Update::update(&mut hash, receiver.as_bytes());
    hash.finalize().into()
}

fn mac(key: &[u8], message: &[u8]) -> [u8; MAC_BYTES] {
    let Ok(mut mac) = <Blake2sMac<U16>>::new_from_slice(key) else {
        unreachable!("keys here have 16 or 32 bytes, BLAKE2s takes up to 32");
    };
    Update::update(&mut mac, message);
    mac.finalize_fixed().into()
}

#[cfg(test)]
mod tests {
    use wirespeed_protocol::{DropReason, Instant, Now, Options, PrivateKey, Tunnel};

    use super::*;

    fn receiver() -> (Tunnel, PublicKey) {
        let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rand::rng());
        let key = PrivateKey::from_bytes([7; 32]);
        tunnel.set_private_key(Some(key.clone()));
        (tunnel, key.public())
    }

    #[test]
    fn a_forged_initiation_gets_past_mac1_and_no_further() {
        let (tunnel, key) = receiver();
        let source = "192.0.2.1:7".parse().unwrap();
        let taken = tunnel.handshake(Now::default(), source, &initiation(&key), &mut rand::rng());
        assert_eq!(taken, Err(DropReason::NotAuthentic));
    }

    #[test]
    fn a_cookie_opens_the_door_under_load() {
        let (tunnel, key) = receiver();
        tunnel.force_load(true);
        let source = "192.0.2.1:7".parse().unwrap();
        let mut message = initiation(&key);
        let taken = tunnel.handshake(Now::default(), source, &message, &mut rand::rng());
        assert_eq!(taken, Err(DropReason::CookieSent));
        let reply = CookieReply::parse(&tunnel.poll_transmit().unwrap().bytes).unwrap();
        assert!(
            !add_cookie(&mut initiation(&key), &key, &reply),
            "it answers another message"
        );
        assert!(add_cookie(&mut message, &key, &reply));
        let taken = tunnel.handshake(Now::default(), source, &message, &mut rand::rng());
        assert_eq!(taken, Err(DropReason::NotAuthentic), "it is worked on now");
    }
}
