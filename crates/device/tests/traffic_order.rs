//! The order within a flow is never broken, however many threads share the work.
//!
//! Numbered datagrams of many flows go both ways at once. More than can be carried, so that all queues are full and many are lost, but none comes after one
//! that was sent later, and none twice. The road is a veth, which keeps the order of what one core sends.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use support::peers::{self, End, Outer, Program, Tunnel};

mod support {
    #[allow(dead_code, reason = "other tests use the rest")]
    pub(crate) mod peers;
}

const FLOWS: usize = 48;
const LASTS: Duration = Duration::from_secs(3);

#[test]
fn four_workers_keep_the_order() {
    keeps_order(
        "four_workers_keep_the_order",
        "--workers 4 --pin",
        Outer::V4,
    );
}

#[test]
fn four_workers_spread_over_ports_keep_the_order() {
    let name = "four_workers_spread_over_ports_keep_the_order";
    keeps_order(name, "--workers 4 --pin --spread", Outer::V4);
}

#[test]
fn the_pipeline_keeps_the_order() {
    let name = "the_pipeline_keeps_the_order";
    keeps_order(name, "--engine pipeline --workers 4", Outer::V6);
}

#[test]
fn one_worker_keeps_the_order() {
    keeps_order("one_worker_keeps_the_order", "", Outer::V6);
}

fn keeps_order(name: &str, options: &'static str, outer: Outer) {
    if let Some(reason) = peers::missing(&[Program::Wirespeed]) {
        return peers::skip(name, &reason);
    }
    let ours = (Program::Wirespeed, options);
    let tunnel = Tunnel::up_with(ours, ours, outer);
    let (a, b) = (&tunnel.a, &tunnel.b);
    a.ping(b.inner(Outer::V4), "-c 1 -W 5").unwrap();
    let all: Vec<_> = [(a, b), (b, a)]
        .into_iter()
        .flat_map(|(from, to)| flows(from, to))
        .collect();
    let (mut sent, mut received) = (0, 0);
    for (sender, receiver) in all {
        sent += sender.join().unwrap();
        received += receiver.join().unwrap();
    }
    assert!(received > 5_000, "{received} of {sent} datagrams arrived");
    eprintln!("{name}: {received} of {sent} datagrams, in order");
}

type Counting = JoinHandle<usize>;

/// Numbered datagrams from here to there, by several threads.
fn flows(from: &End, to: &End) -> Vec<(Counting, Counting)> {
    const THREADS: usize = 4;
    (0..THREADS)
        .map(|number| {
            let family = if number % 2 == 0 {
                Outer::V4
            } else {
                Outer::V6
            };
            let (source, target) = (from.inner(family), to.inner(family));
            let receivers = to
                .inside(move || bind(target, FLOWS / THREADS))
                .join()
                .unwrap();
            let addresses: Vec<_> = receivers
                .iter()
                .map(|it| it.local_addr().unwrap())
                .collect();
            let senders = from
                .inside(move || bind(source, FLOWS / THREADS))
                .join()
                .unwrap();
            (
                thread::spawn(move || send(&senders, &addresses)),
                thread::spawn(move || receive(&receivers)),
            )
        })
        .collect()
}

fn bind(address: IpAddr, number: usize) -> Vec<UdpSocket> {
    (0..number)
        .map(|_| {
            let socket = UdpSocket::bind((address, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        })
        .collect()
}

/// Sends bursts of all flows in turn for a while.
fn send(sockets: &[UdpSocket], to: &[SocketAddr]) -> usize {
    let end = Instant::now() + LASTS;
    let mut numbers = vec![0u64; sockets.len()];
    let mut bytes = [0; 1_300];
    let mut length = 8;
    while Instant::now() < end {
        for ((socket, to), number) in sockets.iter().zip(to).zip(&mut numbers) {
            for _ in 0..4 {
                bytes[..8].copy_from_slice(&number.to_be_bytes());
                length = 8 + (length * 7 + 13) % (bytes.len() - 8);
                if socket.send_to(&bytes[..length], to).is_ok() {
                    *number += 1;
                }
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    numbers.iter().sum::<u64>() as usize
}

/// Receives until nothing has come for a while, and checks the order.
fn receive(sockets: &[UdpSocket]) -> usize {
    let mut last = vec![None; sockets.len()];
    let mut received = 0;
    let mut silent_since = Instant::now();
    let mut bytes = [0; 2_048];
    while silent_since.elapsed() < Duration::from_secs(2) {
        let mut any = false;
        for (socket, last) in sockets.iter().zip(&mut last) {
            while let Ok(length) = socket.recv(&mut bytes) {
                any = true;
                received += 1;
                assert!(length >= 8);
                let number = bytes[..8]
                    .iter()
                    .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
                assert!(
                    last.is_none_or(|last| number > last),
                    "{number} came after {last:?}"
                );
                *last = Some(number);
            }
        }
        if any {
            silent_since = Instant::now();
        } else {
            thread::sleep(Duration::from_micros(200));
        }
    }
    received
}
