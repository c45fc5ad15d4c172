//! Real sockets: over the loopback, and over a veth pair between two namespaces.

mod namespaces;
mod over_loopback;
mod over_veth;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::*;
use crate::offloads::Offload;

/// How long a test waits for what it sent.
const ARRIVAL: Duration = Duration::from_secs(3);

/// A datagram as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrived {
    bytes: Vec<u8>,
    source: SocketAddr,
    local: Option<LocalAddress>,
    traffic_class: u8,
}

/// Sockets on a port of the kernel's choice, without these offloads.
fn sockets(without: &[Offload]) -> (Sockets, Arc<Offloads>) {
    let offloads = Arc::new(Offloads::new(without));
    let sockets = Sockets::bind(&BindOptions::default(), &offloads).unwrap();
    (sockets, offloads)
}

/// Bytes for datagrams of these lengths, all different.
fn payload(datagrams: &[(usize, u8)]) -> Vec<u8> {
    let total = datagrams.iter().map(|(length, _)| length).sum();
    (0..total)
        .map(|at: usize| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

fn send(
    sockets: &Sockets,
    datagrams: &[(usize, u8)],
    to: SocketAddr,
    from: Option<LocalAddress>,
) -> Sent {
    sockets.send_pieces(&payload(datagrams), datagrams.iter().copied(), to, from)
}

/// Receives until so many datagrams have come; fewer when no more come. Also says how many messages that took.
fn receive(sockets: &Sockets, expected: usize) -> (Vec<Arrived>, usize) {
    let mut received = Received::new();
    let (mut arrived, mut messages) = (Vec::new(), 0);
    let until = Instant::now() + ARRIVAL;
    while arrived.len() < expected && Instant::now() < until {
        let count = sockets.receive(&mut received).unwrap();
        if count == 0 {
            wait(sockets.descriptors());
            continue;
        }
        assert_eq!(count, received.datagrams().count());
        messages += received.messages();
        arrived.extend(received.datagrams().map(|datagram| Arrived {
            bytes: datagram.bytes.to_vec(),
            source: datagram.source,
            local: datagram.local,
            traffic_class: datagram.traffic_class,
        }));
        assert_eq!(received.truncated(), 0);
    }
    (arrived, messages)
}

/// Waits for something to be received, at most 0.3 s.
fn wait<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) {
    let mut polled: Vec<_> = sockets
        .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
        .collect();
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 300_000_000,
    };
    rustix::event::poll(&mut polled, Some(&limit)).unwrap();
}

/// Checks that exactly these datagrams have come, in order, from this address to that.
fn assert_whole(arrived: &[Arrived], datagrams: &[(usize, u8)], from: SocketAddr, to: SocketAddr) {
    assert_eq!(arrived.len(), datagrams.len());
    let bytes = payload(datagrams);
    let mut rest = &bytes[..];
    for (at, (datagram, (length, class))) in arrived.iter().zip(datagrams).enumerate() {
        let (expected, after) = rest.split_at(*length);
        rest = after;
        assert!(datagram.bytes == expected, "contents of number {at}");
        assert_eq!(datagram.traffic_class, *class, "class of number {at}");
        assert_eq!(datagram.source, from, "source of number {at}");
        assert_eq!(
            datagram.local.unwrap().address,
            to.ip(),
            "local address of number {at}"
        );
    }
}

/// Reports a test that this machine can't run.
fn skip(test: &str, reason: &str) {
    use std::io::Write;
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut options = std::fs::OpenOptions::new();
        let file = options.append(true).create(true).open(file);
        writeln!(file.unwrap(), "{line}").unwrap();
    }
}
