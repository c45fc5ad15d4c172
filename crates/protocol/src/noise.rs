//! The handshake `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` with the constants of the whitepaper (5.4).
//!
//! ```text
//! <- s
//! ...
//! -> e, es, s, ss, {timestamp}      initiate   → read_initiation
//! <- e, ee, se, psk, {}             read_response ← respond
//! ```
//!
//! Pure functions from keys and messages to keys and messages: no state is kept here.

use std::sync::LazyLock;

use rand_core::CryptoRng;

use crate::aead::{Key, TAG_BYTES};
use crate::hash::{HASH_BYTES, Secret, hash, kdf};
use crate::keys::{KEY_BYTES, PresharedKey, PrivateKey, PublicKey};
use crate::message::{Initiation, Response};
use crate::time::Tai64n;

const CONSTRUCTION: &[u8] = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const IDENTIFIER: &[u8] = b"WireGuard v1 zx2c4 Jason@zx2c4.com";

static INITIAL_CHAINING_KEY: LazyLock<[u8; HASH_BYTES]> = LazyLock::new(|| hash(&[CONSTRUCTION]));
static INITIAL_HASH: LazyLock<[u8; HASH_BYTES]> =
    LazyLock::new(|| hash(&[&*INITIAL_CHAINING_KEY, IDENTIFIER]));

/// The secrets of a finished handshake, one for each direction.
pub(crate) struct TransportSecrets {
    pub(crate) from_initiator: Secret,
    pub(crate) from_responder: Secret,
}

/// What the initiator remembers until the response comes.
pub(crate) struct Initiated {
    ephemeral: PrivateKey,
    state: Symmetric,
}

/// An initiation whose sender is known, but whose timestamp is still sealed.
pub(crate) struct Introduced {
    pub(crate) initiator: PublicKey,
    ephemeral: PublicKey,
    state: Symmetric,
}

/// An authentic initiation.
pub(crate) struct Received {
    pub(crate) timestamp: Tai64n,
    initiator: PublicKey,
    ephemeral: PublicKey,
    state: Symmetric,
}

/// Starts a handshake. `None` when the peer's key is of low order (`static_static` is then `None`, too).
pub(crate) fn initiate(
    own_public: &PublicKey,
    peer: &PublicKey,
    static_static: Option<&Secret>,
    timestamp: Tai64n,
    sender: u32,
    rng: &mut dyn CryptoRng,
) -> Option<(Initiation, Initiated)> {
    let mut state = Symmetric::new(peer);
    let ephemeral = fresh(rng);
    let ephemeral_public = ephemeral.public();
    state.mix_ephemeral(&ephemeral_public);

    let key = state.mix_key(&ephemeral.agree(peer)?);
    let static_sealed = state.seal(&key, own_public.as_bytes());

    let key = state.mix_key(static_static?);
    let timestamp_sealed = state.seal(&key, timestamp.as_bytes());

    let message = Initiation {
        sender,
        ephemeral: *ephemeral_public.as_bytes(),
        static_sealed,
        timestamp_sealed,
    };
    Some((message, Initiated { ephemeral, state }))
}

/// Reads who sent an initiation. `None` when it isn't meant for us, or forged.
pub(crate) fn read_introduction(
    message: &Initiation,
    own: &PrivateKey,
    own_public: &PublicKey,
) -> Option<Introduced> {
    let mut state = Symmetric::new(own_public);
    let ephemeral = PublicKey::from_bytes(message.ephemeral);
    state.mix_ephemeral(&ephemeral);
    let key = state.mix_key(&own.agree(&ephemeral)?);
    let initiator = PublicKey::from_bytes(state.open(&key, &message.static_sealed)?);
    Some(Introduced {
        initiator,
        ephemeral,
        state,
    })
}

impl Introduced {
    /// Reads the rest with the secret shared with that sender. `None` when forged.
    pub(crate) fn read_timestamp(
        mut self,
        message: &Initiation,
        static_static: Option<&Secret>,
    ) -> Option<Received> {
        let key = self.state.mix_key(static_static?);
        let timestamp = self.state.open(&key, &message.timestamp_sealed)?;
        Some(Received {
            timestamp: Tai64n::from_bytes(timestamp),
            initiator: self.initiator,
            ephemeral: self.ephemeral,
            state: self.state,
        })
    }
}

/// Answers an initiation. `None` when one of the initiator's keys is of low order.
pub(crate) fn respond(
    received: Received,
    initiators_index: u32,
    psk: &PresharedKey,
    sender: u32,
    rng: &mut dyn CryptoRng,
) -> Option<(Response, TransportSecrets)> {
    let mut state = received.state;
    let ephemeral = fresh(rng);
    let ephemeral_public = ephemeral.public();
    state.mix_ephemeral(&ephemeral_public);
    state.mix_key(&ephemeral.agree(&received.ephemeral)?);
    state.mix_key(&ephemeral.agree(&received.initiator)?);
    let key = state.mix_psk(psk);
    let nothing_sealed = state.seal(&key, &[]);
    let message = Response {
        sender,
        receiver: initiators_index,
        ephemeral: *ephemeral_public.as_bytes(),
        nothing_sealed,
    };
    Some((message, state.split()))
}

/// Reads the answer. `None` when forged; the handshake then goes on waiting, so `initiated` is left as it was.
pub(crate) fn read_response(
    message: &Response,
    initiated: &Initiated,
    own: &PrivateKey,
    psk: &PresharedKey,
) -> Option<TransportSecrets> {
    let mut state = initiated.state.clone();
    let ephemeral = PublicKey::from_bytes(message.ephemeral);
    state.mix_ephemeral(&ephemeral);
    state.mix_key(&initiated.ephemeral.agree(&ephemeral)?);
    state.mix_key(&own.agree(&ephemeral)?);
    let key = state.mix_psk(psk);
    let [] = state.open(&key, &message.nothing_sealed)?;
    Some(state.split())
}

fn fresh(rng: &mut dyn CryptoRng) -> PrivateKey {
    let mut bytes = Secret::default();
    rng.fill_bytes(bytes.as_mut_slice());
    PrivateKey::from_bytes(*bytes)
}

/// Noise's symmetric state: the chaining key, which gathers secrets, and the hash, which gathers the transcript.
#[derive(Clone)]
struct Symmetric {
    chaining_key: Secret,
    hash: Secret,
}

impl Symmetric {
    fn new(responder: &PublicKey) -> Self {
        Self {
            chaining_key: Secret::new(*INITIAL_CHAINING_KEY),
            hash: Secret::new(hash(&[&*INITIAL_HASH, responder.as_bytes()])),
        }
    }

    fn mix_hash(&mut self, bytes: &[u8]) {
        *self.hash = hash(&[self.hash.as_slice(), bytes]);
    }

    /// With a preshared key in the pattern, Noise mixes ephemerals into the chaining key, too.
    fn mix_ephemeral(&mut self, ephemeral: &PublicKey) {
        self.mix_hash(ephemeral.as_bytes());
        let [chaining_key] = kdf(&self.chaining_key, ephemeral.as_bytes());
        self.chaining_key = chaining_key;
    }

    fn mix_key(&mut self, secret: &Secret) -> Secret {
        let [chaining_key, key] = kdf(&self.chaining_key, secret.as_slice());
        self.chaining_key = chaining_key;
        key
    }

    fn mix_psk(&mut self, psk: &PresharedKey) -> Secret {
        let [chaining_key, extra, key] = kdf(&self.chaining_key, psk.as_bytes());
        self.chaining_key = chaining_key;
        self.mix_hash(extra.as_slice());
        key
    }

    /// Seals `plain` into `SEALED` bytes, which are `plain`'s and the tag's. Each key seals once, so its nonce is zero.
    fn seal<const SEALED: usize>(&mut self, key: &Secret, plain: &[u8]) -> [u8; SEALED] {
        let mut sealed = [0; SEALED];
        sealed[..SEALED - TAG_BYTES].copy_from_slice(plain);
        Key::new(key).seal(0, self.hash.as_slice(), &mut sealed);
        self.mix_hash(&sealed);
        sealed
    }

    fn open<const PLAIN: usize>(&mut self, key: &Secret, sealed: &[u8]) -> Option<[u8; PLAIN]> {
        let mut opened = [0; KEY_BYTES + TAG_BYTES];
        let opened = opened.get_mut(..sealed.len())?;
        opened.copy_from_slice(sealed);
        if !Key::new(key).open(0, self.hash.as_slice(), opened) {
            return None;
        }
        self.mix_hash(sealed);
        opened[..sealed.len() - TAG_BYTES].try_into().ok()
    }

    fn split(self) -> TransportSecrets {
        let [from_initiator, from_responder] = kdf(&self.chaining_key, &[]);
        TransportSecrets {
            from_initiator,
            from_responder,
        }
    }
}

#[cfg(test)]
mod tests;
