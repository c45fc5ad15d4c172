//! What a watch without a load tells: the tunnel's own connections, and what moved meanwhile.

use wirespeed_facts::TcpProgress;
use wirespeed_measure::{Direction, Watched};
use wirespeed_words::say;

use crate::view::sender;
use crate::{End, Evidence};

/// A connection that sent less while it was watched says nothing of windows and queues, bytes.
const ENOUGH: u64 = 1_000_000;

/// The watch of an end.
pub(crate) fn at(evidence: &Evidence, end: End) -> Option<&Watched> {
    let watch = evidence.passive.as_ref()?;
    match end {
        End::Here => Some(&watch.here),
        End::Far => watch.far.as_ref(),
    }
}

/// Why something (`how busy the processors get`) is not known where no load ran.
pub(crate) fn no_load(evidence: &Evidence, what: &str) -> String {
    if evidence.passive.is_some() {
        say!("doctor-no-load-watched", what = what)
    } else {
        say!("doctor-no-load")
    }
}

/// The tunnel's own connections that sent enough in this direction while they were watched.
pub(crate) fn sending(
    evidence: &Evidence,
    direction: Direction,
) -> impl Iterator<Item = &TcpProgress> {
    at(evidence, sender(direction))
        .and_then(|watched| watched.connections.value())
        .into_iter()
        .flatten()
        .filter(|connection| connection.bytes_acked.is_some_and(|bytes| bytes >= ENOUGH))
}

/// Goodput of a connection while it was watched, bit/s.
pub(crate) fn rate_of(connection: &TcpProgress) -> f64 {
    let bytes = connection.bytes_acked.unwrap_or(0) as f64;
    if connection.seconds > 0.0 {
        bytes * 8.0 / connection.seconds
    } else {
        0.0
    }
}
