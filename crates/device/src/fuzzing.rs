//! Entry points for the fuzz targets of the workspace: what comes from outside must not panic, and keeps its promises.

use crate::control::Interface;
use crate::control::fake::FakeInterface;
use crate::control::uapi::Uapi;

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// Bytes on a connection to the UAPI: each answer ends with a status, and what is then shown sets the same again.
///
/// # Panics
///
/// When that isn't so.
pub fn uapi(data: &[u8]) {
    let interface = FakeInterface::new();
    let answer = converse(&interface, data);
    assert!(answer.is_empty() || answer.ends_with(b"\n\n"));
    let answers = answer
        .split(|byte| *byte == b'\n')
        .filter(|line| line.is_empty());
    let statuses = answer
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"errno="));
    assert!(answer.is_empty() || statuses.count() + 1 == answers.count());

    let shown = converse(&interface, b"get=1\n\n");
    let copy = FakeInterface::new();
    let set = [b"set=1\n", &settings(&shown)[..], b"\n"].concat();
    assert_eq!(converse(&copy, &set), b"errno=0\n\n");
    assert_eq!(converse(&copy, b"get=1\n\n"), shown);
    assert_eq!(copy.tunnel().public_key(), interface.tunnel().public_key());
}

fn converse(interface: &FakeInterface, input: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    Uapi::default().converse(interface, input, &mut answer);
    answer
}

/// The lines of an answer that can be set.
fn settings(answer: &[u8]) -> Vec<u8> {
    const FIGURES: [&[u8]; 5] = [
        b"errno=",
        b"last_handshake_time_sec=",
        b"last_handshake_time_nsec=",
        b"tx_bytes=",
        b"rx_bytes=",
    ];
    answer
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.len() > 1 && !FIGURES.iter().any(|figure| line.starts_with(figure)))
        .flatten()
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_borne() {
        corpus("device_uapi", super::uapi);
    }
}
