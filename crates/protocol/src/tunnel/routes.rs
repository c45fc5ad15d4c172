//! The allowed IPs, shared by all threads, and what each of them remembers of it.
//!
//! A lock with many readers is written by each of them, and so is the counter of an `Arc` they take. With a look-up for
//! each packet that would be the one place where all cores meet. So a thread has a [`RouteCache`], which is good until
//! the number of the table's changes, which they only read, is another.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use crate::allowed_ips::AllowedIps;
use crate::lock::Shared;
use crate::peer::{Peer, PeerId};

type Table = AllowedIps<PeerId, Arc<Peer>>;

pub(crate) struct Routes {
    changes: Apart<AtomicU64>,
    table: RwLock<Table>,
}

/// What nobody writes shall not share a cache line with what many do.
#[repr(align(128))]
struct Apart<T>(T);

/// What one thread remembers of where packets go, for [`Tunnel::route_by`](super::Tunnel::route_by). For use with one
/// tunnel only.
pub struct RouteCache {
    /// The table's number of changes, plus one, when all of this was so; 0 for never.
    as_of: u64,
    places: Box<[Option<Known>]>,
}

type Known = (IpAddr, Arc<Peer>);

const PLACE_BITS: u32 = 8;

impl Default for RouteCache {
    fn default() -> Self {
        Self {
            as_of: 0,
            places: vec![None; 1 << PLACE_BITS].into_boxed_slice(),
        }
    }
}

impl Routes {
    pub(crate) const fn new() -> Self {
        Self {
            changes: Apart(AtomicU64::new(0)),
            table: RwLock::new(AllowedIps::new()),
        }
    }

    pub(crate) fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.reading()
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        let mut table = self.table.writing();
        let result = change(&mut table);
        // Whoever sees this number finds the change; whoever saw the one before asks again.
        self.changes.0.fetch_add(1, Ordering::Release);
        result
    }

    pub(crate) fn look_up<'a>(
        &self,
        cache: &'a mut RouteCache,
        destination: IpAddr,
    ) -> Option<&'a Arc<Peer>> {
        let as_of = self.changes.0.load(Ordering::Acquire) + 1;
        if cache.as_of != as_of {
            cache.places.fill(None);
            cache.as_of = as_of;
        }
        let place = &mut cache.places[place(destination)];
        if place
            .as_ref()
            .is_none_or(|(known, _)| *known != destination)
        {
            let table = self.table();
            let (_, peer) = table.look_up(destination)?;
            *place = Some((destination, Arc::clone(peer)));
        }
        place.as_ref().map(|(_, peer)| peer)
    }
}

fn place(destination: IpAddr) -> usize {
    let bits = match destination {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 ^ (v6.to_bits() as u64).rotate_left(32),
    };
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::allowed_ips::Prefix;
    use crate::keys::PublicKey;

    fn peer(number: u64) -> Arc<Peer> {
        let key = PublicKey::from_bytes([number as u8; 32]);
        Arc::new(Peer::new(PeerId(number), key, Duration::ZERO))
    }

    #[test]
    fn a_cache_lets_go_of_peers_that_lost_their_addresses() {
        let routes = Routes::new();
        let (a, address) = (peer(1), IpAddr::from([10, 0, 0, 1]));
        let mut cache = RouteCache::default();
        assert!(routes.look_up(&mut cache, address).is_none());
        let prefix = Prefix::new(address, 32).unwrap();
        routes.change(|table| table.insert(prefix, a.id(), Arc::clone(&a)));
        assert_eq!(routes.look_up(&mut cache, address), Some(&a));
        routes.change(|table| table.remove_all(a.id()));
        assert_eq!(routes.look_up(&mut cache, address), None);
        assert_eq!(Arc::strong_count(&a), 1);
    }

    proptest! {
        /// The table itself is the model.
        #[test]
        fn a_cache_says_what_the_table_says(
            steps in prop::collection::vec((0..4u64, 0..6u8, 24..=32u8, prop::collection::vec(0..6u8, 0..20)), 1..30),
        ) {
            let peers: Vec<_> = (0..4).map(peer).collect();
            let routes = Routes::new();
            let mut cache = RouteCache::default();
            for (owner, host, length, asked) in steps {
                let prefix = Prefix::new([10, 0, host, host].into(), length).unwrap();
                routes.change(|table| {
                    if !table.remove(prefix, PeerId(owner)) {
                        table.insert(prefix, PeerId(owner), Arc::clone(&peers[owner as usize]));
                    }
                });
                for host in asked {
                    for address in [IpAddr::from([10, 0, host, host]), IpAddr::from([0, 0, host, host])] {
                        let expected = routes.table().look_up(address).map(|(id, _)| id);
                        prop_assert_eq!(routes.look_up(&mut cache, address).map(|peer| peer.id()), expected);
                    }
                }
            }
        }
    }
}
