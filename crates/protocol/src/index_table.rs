//! Which session or handshake a message from outside is for: the indices we chose.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, RwLock};

use rand_core::CryptoRng;

use crate::keypair::Keypair;
use crate::lock::Shared;
use crate::peer::Peer;

/// What an index stands for.
#[derive(Clone)]
pub(crate) enum Indexed {
    /// A handshake with this peer that isn't finished.
    Handshake(Arc<Peer>),
    /// A session with this peer.
    Session(Arc<Peer>, Arc<Keypair>),
}

impl Indexed {
    pub(crate) const fn peer(&self) -> &Arc<Peer> {
        match self {
            Self::Handshake(peer) | Self::Session(peer, _) => peer,
        }
    }
}

#[derive(Default)]
pub(crate) struct IndexTable {
    entries: RwLock<HashMap<u32, Indexed, BuildHasherDefault<Spread>>>,
}

/// Hashes an index by one multiplication. The indices in the table were drawn at random by us, so nobody can choose
/// them to collide.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, index: u32) {
        self.0 = (self.0 ^ u64::from(index)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl IndexTable {
    /// Chooses an unused index at random for a handshake.
    pub(crate) fn allocate(&self, peer: &Arc<Peer>, rng: &mut dyn CryptoRng) -> u32 {
        let mut entries = self.entries.writing();
        loop {
            let index = rng.next_u32();
            if let Entry::Vacant(vacant) = entries.entry(index) {
                vacant.insert(Indexed::Handshake(Arc::clone(peer)));
                return index;
            }
        }
    }

    /// The handshake of this index has become a session.
    pub(crate) fn promote(&self, peer: &Arc<Peer>, keypair: &Arc<Keypair>) {
        self.entries.writing().insert(
            keypair.local_index,
            Indexed::Session(Arc::clone(peer), Arc::clone(keypair)),
        );
    }

    pub(crate) fn get(&self, index: u32) -> Option<Indexed> {
        self.entries.reading().get(&index).cloned()
    }

    pub(crate) fn remove(&self, index: u32) {
        self.entries.writing().remove(&index);
    }

    pub(crate) fn remove_sessions<'a>(&self, over: impl IntoIterator<Item = &'a Arc<Keypair>>) {
        for keypair in over {
            self.remove(keypair.local_index);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.reading().len()
    }
}
