//! What the loads of a direction prove of the sizes that pass.
//!
//! An echo request may be lost where the tunnel's packets are not: hosts and routers limit how many they take, and drop
//! large ones. Full segments that arrive, and in one piece, are proof of the contrary.

use wirespeed_measure::{Direction, Via};

use crate::view::{ENDS, FEWEST_SAMPLES, moved, sender};
use crate::{End, Evidence};

/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;
/// What TCP's timestamps add where both ends use them, bytes.
const TIMESTAMPS: u32 = 12;
/// So many full segments are more than what a connection sends before it hears of the first.
const SEGMENTS: u64 = 50;

/// Counters of packets in pieces, by the names of what could not be relied on.
const OF_PIECES: [&str; 2] = ["protocols.Ip.", "protocols.Ip6."];

/// The inner packet, in bytes, that the loads of this direction were made of and that arrived all along: the smallest
/// such size of any load. `None` where too few loads tell. By `tcp_info`'s segment size, which shrinks where TCP has
/// found out by itself (`tcp_mtu_probing`), by an error or by a clamp.
pub(super) fn arrived(evidence: &Evidence, direction: Direction) -> Option<u32> {
    let stamped = ENDS.into_iter().all(|end| has_timestamps(evidence, end));
    let headers = HEADERS + if stamped { TIMESTAMPS } else { 0 };
    let samples = evidence.samples(direction, Via::Tunnel);
    if samples.iter().any(|sample| sample.stalled) {
        return None;
    }
    let sizes: Vec<u32> = samples
        .into_iter()
        .filter_map(|sample| {
            let segment = sample.windows.as_ref()?.segment?;
            let enough = u64::from(segment).saturating_mul(SEGMENTS);
            (segment > 0 && sample.bytes >= enough).then(|| segment.saturating_add(headers))
        })
        .collect();
    if sizes.len() < FEWEST_SAMPLES {
        return None;
    }
    let mtu = evidence.tunnel(sender(direction))?.mtu;
    sizes.into_iter().min().map(|size| size.min(mtu))
}

/// Payload that all loads of this direction carried through the tunnel, bytes.
pub(super) fn bytes(evidence: &Evidence, direction: Direction) -> u64 {
    let samples = evidence.samples(direction, Via::Tunnel).into_iter();
    samples.fold(0, |sum, sample| sum.saturating_add(sample.bytes))
}

fn has_timestamps(evidence: &Evidence, end: End) -> bool {
    let sysctls = evidence.facts(end).map(|facts| &facts.sysctls);
    let set = sysctls.and_then(|sysctls| sysctls.get("net.ipv4.tcp_timestamps")?.value());
    set.is_some_and(|set| set.trim() != "0")
}

/// Were both ends watched in every load, so that packets in pieces would have been seen?
pub(super) fn pieces_would_show(evidence: &Evidence, direction: Direction) -> bool {
    let samples = evidence.samples(direction, Via::Tunnel);
    samples.iter().all(|sample| {
        ENDS.into_iter().all(|end| {
            moved(sample, end).is_some_and(|moved| {
                let unsure = |name: &String| OF_PIECES.iter().any(|of| name.starts_with(of));
                !moved.protocols.is_empty() && !moved.unreliable.iter().any(unsure)
            })
        })
    })
}
