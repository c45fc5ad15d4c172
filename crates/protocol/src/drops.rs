//! Why something wasn't worked on or delivered, and how often.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a datagram or a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// Type, reserved bytes or length fit no message.
    #[error("no WireGuard message")]
    Malformed,
    /// No session or handshake of ours has this index; usual after a restart.
    #[error("unknown receiver index")]
    UnknownIndex,
    /// The session's keys are older than 180 s.
    #[error("session too old")]
    Expired,
    /// The tag is wrong: changed on the road, forged, or the preshared keys differ.
    #[error("not authentic")]
    NotAuthentic,
    /// The counter was seen, or is too far behind.
    #[error("replayed or too late")]
    Replayed,
    /// What was inside is no IP packet, or shorter than it says.
    #[error("inner packet malformed")]
    InnerMalformed,
    /// The inner source address isn't among the peer's allowed IPs.
    #[error("inner source address not allowed")]
    SourceNotAllowed,
    /// MAC1 is wrong: the sender doesn't know our public key.
    #[error("MAC1 wrong")]
    BadMac1,
    /// Under load, and the sender hasn't proved its address; a cookie was sent instead of working on the message.
    #[error("under load: cookie sent")]
    CookieSent,
    /// Under load, and the sender has proved its address but sends too many.
    #[error("under load: source over its rate")]
    RateLimited,
    /// The static key in an initiation is no peer's.
    #[error("unknown peer")]
    UnknownPeer,
    /// The timestamp of an initiation isn't later than the peer's last.
    #[error("initiation replayed")]
    InitiationReplayed,
    /// The peer's last initiation is less than 1/50 s ago.
    #[error("initiations too frequent")]
    InitiationTooSoon,
    /// No private key is set.
    #[error("no private key")]
    NoIdentity,
    /// Pushed out of the queue of packets that wait for a session.
    #[error("too many packets wait for a session")]
    StagedOverflow,
    /// Handshakes got no answer for 90 s, so what waited was dropped.
    #[error("no answer to handshakes")]
    GaveUp,
    /// The caller doesn't fetch what is to be sent.
    #[error("too many datagrams wait to be fetched")]
    TransmitOverflow,
    /// Under load, and the sender's address was sent so many cookies that it gets no more this second.
    #[error("under load: too many cookies sent to this source")]
    CookieWithheld,
    /// The interface is down.
    #[error("interface down")]
    InterfaceDown,
}

impl DropReason {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 19] = [
        Self::Malformed,
        Self::UnknownIndex,
        Self::Expired,
        Self::NotAuthentic,
        Self::Replayed,
        Self::InnerMalformed,
        Self::SourceNotAllowed,
        Self::BadMac1,
        Self::CookieSent,
        Self::RateLimited,
        Self::UnknownPeer,
        Self::InitiationReplayed,
        Self::InitiationTooSoon,
        Self::NoIdentity,
        Self::StagedOverflow,
        Self::GaveUp,
        Self::TransmitOverflow,
        Self::CookieWithheld,
        Self::InterfaceDown,
    ];
}

#[derive(Default)]
pub(crate) struct Drops([AtomicU64; DropReason::ALL.len()]);

impl Drops {
    pub(crate) fn count(&self, reason: DropReason) {
        self.add(reason, 1);
    }

    pub(crate) fn add(&self, reason: DropReason, number: usize) {
        if number > 0 {
            self.0[reason as usize].fetch_add(number as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let drops = Drops::default();
        for (at, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
            drops.add(reason, at);
        }
        for (at, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(drops.get(reason), at as u64);
        }
    }
}
