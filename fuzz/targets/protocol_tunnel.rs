//! Any datagrams at a tunnel with an established session, changed messages of its own among them:
//! nothing is delivered that wasn't sent, nothing twice, and afterwards the session still works.

#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use rand::SeedableRng;
use rand::rngs::StdRng;
use wirespeed_protocol::{
    Incoming, Now, Options, Outgoing, Prefix, PrivateKey, Sealed, Tunnel, Verdict,
};

const PACKET: [u8; 20] = [
    0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1,
];

#[derive(Arbitrary, Debug)]
enum Datagram {
    /// Anything.
    Raw(Vec<u8>),
    /// Of this type, and so long that it passes for one.
    Typed(u8, Vec<u8>),
    /// One that was really sent, with these bytes changed.
    Real(u8, Vec<(u16, u8)>),
    /// A fresh one, with these bytes changed.
    Fresh(Vec<(u16, u8)>),
}

fuzz_target!(|batches: Vec<Vec<Datagram>>| {
    let mut rng = StdRng::seed_from_u64(1);
    let now = Now::default();
    let keys = [1, 2].map(|byte| PrivateKey::from_bytes([byte; 32]));
    let addresses = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 51_820)));
    let [a, b] = [0, 1].map(|own| {
        let tunnel = Tunnel::new(now.instant, Options::default(), &mut rng);
        tunnel.set_private_key(Some(keys[own].clone()));
        let peer = tunnel.add_peer(keys[1 - own].public(), &mut rng).unwrap();
        tunnel.allow(&peer, Prefix::new([10, 0, 0, 1].into(), 32).unwrap());
        tunnel.set_endpoint(now, &peer, addresses[1 - own]);
        tunnel
    });
    let peer = a.route([10, 0, 0, 1].into()).unwrap();
    let mut batch = Outgoing::new(2_000, 1);
    let mut fresh = || {
        batch.clear();
        assert!(batch.push(&PACKET, 1420));
        match a.seal(now, &peer, &mut batch) {
            Sealed::To(_) => Some(batch.bytes().to_vec()),
            _ => None,
        }
    };

    assert_eq!(fresh(), None);
    a.timers(now, &mut rng);
    let mut sent = vec![a.poll_transmit().unwrap().bytes];
    b.handshake(now, addresses[0], &sent[0], &mut rng).unwrap();
    sent.push(b.poll_transmit().unwrap().bytes);
    a.handshake(now, addresses[1], &sent[1], &mut rng).unwrap();
    sent.push(a.poll_transmit().unwrap().bytes);
    let mut unchanged = 1;
    let mut delivered = 0;
    let mut first = sent[2].clone();
    delivered += give(&b, now, addresses[0], &mut [&mut first], &mut rng);

    for datagrams in batches {
        let mut bytes: Vec<Vec<u8>> = datagrams
            .into_iter()
            .map(|datagram| match datagram {
                Datagram::Raw(bytes) => bytes,
                Datagram::Typed(kind, mut bytes) => {
                    let length = match kind % 4 {
                        0 => 148,
                        1 => 92,
                        2 => 64,
                        _ => bytes.len().max(32),
                    };
                    bytes.resize(length, 0);
                    bytes[..4].copy_from_slice(&[kind % 4 + 1, 0, 0, 0]);
                    bytes
                }
                Datagram::Real(which, changes) => {
                    changed(sent[usize::from(which) % sent.len()].clone(), &changes)
                }
                Datagram::Fresh(changes) => {
                    let whole = fresh().unwrap();
                    let bytes = changed(whole.clone(), &changes);
                    unchanged += usize::from(bytes == whole);
                    bytes
                }
            })
            .collect();
        let mut slices: Vec<&mut [u8]> = bytes.iter_mut().map(Vec::as_mut_slice).collect();
        delivered += give(&b, now, addresses[0], &mut slices, &mut rng);
    }
    assert_eq!(delivered, unchanged);
    let mut last = fresh().unwrap();
    assert_eq!(give(&b, now, addresses[0], &mut [&mut last], &mut rng), 1);
});

fn changed(mut bytes: Vec<u8>, changes: &[(u16, u8)]) -> Vec<u8> {
    for (at, bits) in changes {
        let at = usize::from(*at) % bytes.len();
        bytes[at] ^= bits;
    }
    bytes
}

/// Lets the tunnel have the datagrams; returns how many packets come out of it.
fn give(
    tunnel: &Tunnel,
    now: Now,
    source: SocketAddr,
    datagrams: &mut [&mut [u8]],
    rng: &mut StdRng,
) -> usize {
    let mut batch: Vec<Incoming<'_>> = datagrams
        .iter_mut()
        .map(|bytes| Incoming::new(bytes, source))
        .collect();
    tunnel.open(now, &mut batch);
    let mut delivered = 0;
    for incoming in &batch {
        match incoming.verdict {
            Verdict::Handshake => {
                let _counted = tunnel.handshake(now, source, incoming.bytes, rng);
            }
            Verdict::Packet { .. } => {
                assert_eq!(incoming.packet(), Some(&PACKET[..]));
                delivered += 1;
            }
            Verdict::Keepalive | Verdict::Dropped(_) => {}
            ref verdict => panic!("left undecided: {verdict:?}"),
        }
    }
    while tunnel.poll_transmit().is_some() {}
    delivered
}
