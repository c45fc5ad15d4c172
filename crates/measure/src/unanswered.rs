//! Which peers are sent to and do not answer.

use std::collections::BTreeMap;

use wirespeed_facts::CountersDelta;

use crate::PeerWatched;

/// Bytes sent to peers since each was last heard, slice by slice.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// Bytes, and the time at the end of the first slice with any.
    by_peer: BTreeMap<String, (u64, f64)>,
}

impl Unanswered {
    /// Takes in what moved in a slice that ended `at` (seconds of the machine's clock).
    pub(crate) fn add(&mut self, slice: &CountersDelta, at: f64) {
        // A peer whose counters went back or that is new begins anew.
        for name in &slice.unreliable {
            if let Some(key) = name.strip_prefix("peers.") {
                self.by_peer.remove(key);
            }
        }
        for (key, moved) in &slice.peers {
            if moved.rx_bytes > 0 {
                self.by_peer.remove(key);
            } else if moved.tx_bytes > 0 {
                let (bytes, _) = self.by_peer.entry(key.clone()).or_insert((0, at));
                *bytes = bytes.saturating_add(moved.tx_bytes);
            }
        }
    }

    /// How things stand `at` the end, with the handshakes' ages: a row for each peer that had one or is not answering.
    pub(crate) fn by_peer(
        &self,
        handshakes: &BTreeMap<String, f64>,
        at: f64,
    ) -> BTreeMap<String, PeerWatched> {
        self.by_peer
            .keys()
            .chain(handshakes.keys())
            .map(|key| {
                let (unanswered, since) = self.by_peer.get(key).copied().unwrap_or((0, at));
                let watched = PeerWatched {
                    handshake_age: handshakes.get(key).copied(),
                    unanswered,
                    unanswered_for: (at - since).max(0.0),
                };
                (key.clone(), watched)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::PeerCounters;

    use super::*;

    fn slice(rx_bytes: u64, tx_bytes: u64) -> CountersDelta {
        let moved = PeerCounters { rx_bytes, tx_bytes };
        CountersDelta {
            peers: BTreeMap::from([("key".to_owned(), moved)]),
            ..CountersDelta::default()
        }
    }

    fn after(slices: &[CountersDelta]) -> PeerWatched {
        let mut unanswered = Unanswered::default();
        let mut at = 100.0;
        for slice in slices {
            at += 1.0;
            unanswered.add(slice, at);
        }
        let handshakes = BTreeMap::from([("key".to_owned(), 7.0)]);
        unanswered.by_peer(&handshakes, at)["key"]
    }

    #[test]
    fn what_was_sent_since_a_peer_was_last_heard_counts() {
        let silent = after(&[slice(0, 900), slice(92, 400), slice(0, 148), slice(0, 148)]);
        assert_eq!(silent.unanswered, 296);
        assert!((silent.unanswered_for - 1.0).abs() < 1e-9);
        assert_eq!(silent.handshake_age, Some(7.0));
        let heard = after(&[slice(0, 148), slice(32, 0)]);
        assert_eq!((heard.unanswered, heard.unanswered_for), (0, 0.0));
    }

    #[test]
    fn a_peer_that_was_made_anew_begins_anew() {
        let mut anew = CountersDelta::default();
        anew.unreliable.push("peers.key".to_owned());
        assert_eq!(after(&[slice(0, 148), anew]).unanswered, 0);
    }
}
