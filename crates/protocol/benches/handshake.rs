//! What each step of a handshake costs, and what each message of a flood does.

#[path = "support/pair.rs"]
mod pair;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pair::Pair;
use wirespeed_protocol::WallTime;
use wirespeed_protocol::wire::Kind;

/// After this no session may be used any more, so that the next packet begins a handshake.
const LONGER_THAN_A_SESSION: Duration = Duration::from_secs(200);

/// Where MAC1 is in an initiation.
const MAC1_AT: usize = 116;

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handshake");
    group.throughput(Throughput::Elements(1));
    for (name, step) in [
        ("initiate", Kind::Initiation),
        ("respond", Kind::Response),
        ("finish", Kind::Data),
    ] {
        let mut pair = Pair::with_session();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| (0..iterations).map(|_| time(&mut pair, step)).sum());
        });
    }
    group.finish();
}

/// A whole handshake, of which the step that makes this kind of message is timed.
fn time(pair: &mut Pair, step: Kind) -> Duration {
    pair.now.instant = pair.now.instant + LONGER_THAN_A_SESSION;
    pair.now.wall = WallTime(pair.now.wall.0 + LONGER_THAN_A_SESSION);
    pair.stage();
    let mut took = [Duration::ZERO; 3];
    let started = Instant::now();
    pair.tunnels[0].timers(pair.now, &mut pair.rng);
    took[0] = started.elapsed();
    let initiation = pair.tunnels[0].poll_transmit().unwrap().bytes;

    let started = Instant::now();
    let response = pair.deliver(1, &initiation).unwrap();
    took[1] = started.elapsed();

    let started = Instant::now();
    let data = pair.deliver(0, &response);
    took[2] = started.elapsed();
    assert!(data.is_some());
    while pair.tunnels[0].poll_transmit().is_some() {}
    match step {
        Kind::Initiation => took[0],
        Kind::Response => took[1],
        _ => took[2],
    }
}

fn flood(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flood");
    group.throughput(Throughput::Elements(1));
    let mut pair = Pair::new();
    let valid = pair.initiation();
    let mut forged = valid.clone();
    forged[MAC1_AT] ^= 1;
    // A cookie nobody sent.
    let mut guessed = valid.clone();
    guessed[MAC1_AT + 16..].fill(0xa5);
    pair.tunnels[1].force_load(true);
    for (name, message, sources) in [
        ("wrong-mac1", &forged, 1 << 24),
        ("no-cookie", &valid, 1 << 24),
        ("wrong-cookie", &guessed, 1 << 24),
        ("no-cookie-same-source", &valid, 1),
    ] {
        let mut number = 0u32;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number = number.wrapping_add(0x9e37_79b1);
                let source = SocketAddr::from(((number % sources).to_be_bytes(), 1_000));
                // 50,000 a second.
                pair.now.instant = pair.now.instant + Duration::from_micros(20);
                let judged = pair.tunnels[1].handshake(pair.now, source, message, &mut pair.rng);
                assert!(judged.is_err());
                pair.tunnels[1].poll_transmit()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, steps, flood);
criterion_main!(benches);
