//! Sealing and opening batches, each beside what ring alone takes for the same texts: the difference is ours.

#[path = "support/pair.rs"]
mod pair;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pair::{MTU, Pair, address, packet};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use wirespeed_protocol::{Incoming, Outgoing, Sealed, Verdict};

const SIZES: [usize; 2] = [1420, 64];
const COUNTS: [usize; 3] = [1, 45, 64];
const HEADER_BYTES: usize = 16;
const TAG_BYTES: usize = 16;

/// Batches opened between two readings of the clock.
const POOL: u64 = 8;

fn seal(criterion: &mut Criterion) {
    let pair = Pair::with_session();
    let mut group = criterion.benchmark_group("seal");
    for (bytes, packets) in cases() {
        let name = format!("{packets}x{bytes}");
        group.throughput(Throughput::Elements(packets as u64));
        let slot = bytes + HEADER_BYTES + TAG_BYTES;
        let mut texts = vec![0u8; slot * packets];
        let mut counter = 0;
        let key = ring_key();
        group.bench_function(BenchmarkId::new("ring", &name), |bencher| {
            bencher.iter(|| {
                for text in texts.chunks_exact_mut(slot) {
                    ring_seal(&key, counter, &mut text[HEADER_BYTES..]);
                    counter += 1;
                }
            });
        });
        let mut batch = Outgoing::new(slot * packets, packets);
        group.bench_function(BenchmarkId::new("tunnel", &name), |bencher| {
            bencher.iter(|| {
                batch.clear();
                for _ in 0..packets {
                    batch.reserve(bytes, MTU).unwrap();
                }
                pair.tunnels[0].seal(pair.now, &pair.peers[0], &mut batch)
            });
        });
    }
    group.finish();
}

fn open(criterion: &mut Criterion) {
    let pair = Pair::with_session();
    let mut group = criterion.benchmark_group("open");
    for (bytes, packets) in cases() {
        let name = format!("{packets}x{bytes}");
        group.throughput(Throughput::Elements(packets as u64));
        let slot = bytes + HEADER_BYTES + TAG_BYTES;
        let key = ring_key();
        let mut texts = vec![0u8; slot * packets * POOL as usize];
        group.bench_function(BenchmarkId::new("ring", &name), |bencher| {
            bencher.iter_custom(|iterations| {
                in_pools(iterations, |batches| {
                    let used = &mut texts[..slot * packets * batches];
                    for (text, counter) in used.chunks_exact_mut(slot).zip(0..) {
                        ring_seal(&key, counter, &mut text[HEADER_BYTES..]);
                    }
                    let started = Instant::now();
                    for (text, counter) in used.chunks_exact_mut(slot).zip(0..) {
                        key.open_in_place(nonce(counter), Aad::empty(), &mut text[HEADER_BYTES..])
                            .unwrap();
                    }
                    started.elapsed()
                })
            });
        });
        let packet = packet(bytes);
        let mut batch = Outgoing::new(slot * packets, packets);
        group.bench_function(BenchmarkId::new("tunnel", &name), |bencher| {
            bencher.iter_custom(|iterations| {
                in_pools(iterations, |batches| {
                    let used = &mut texts[..slot * packets * batches];
                    for run in used.chunks_exact_mut(slot * packets) {
                        batch.clear();
                        while batch.push(&packet, MTU) {}
                        let sealed = pair.tunnels[0].seal(pair.now, &pair.peers[0], &mut batch);
                        assert!(matches!(sealed, Sealed::To(_)));
                        run.copy_from_slice(batch.bytes());
                    }
                    let mut runs: Vec<Vec<Incoming<'_>>> = used
                        .chunks_exact_mut(slot * packets)
                        .map(|run| {
                            run.chunks_exact_mut(slot)
                                .map(|bytes| Incoming::new(bytes, address(0)))
                                .collect()
                        })
                        .collect();
                    let started = Instant::now();
                    for run in &mut runs {
                        pair.tunnels[1].open(pair.now, run);
                    }
                    let elapsed = started.elapsed();
                    let delivered = |incoming: &Incoming<'_>| {
                        matches!(incoming.verdict, Verdict::Packet { .. })
                    };
                    assert!(runs.iter().flatten().all(delivered));
                    elapsed
                })
            });
        });
    }
    group.finish();
}

fn cases() -> impl Iterator<Item = (usize, usize)> {
    SIZES
        .into_iter()
        .flat_map(|bytes| COUNTS.map(|packets| (bytes, packets)))
}

/// Times so many batches, some at a time.
fn in_pools(iterations: u64, mut time: impl FnMut(usize) -> Duration) -> Duration {
    let mut left = iterations;
    let mut elapsed = Duration::ZERO;
    while left > 0 {
        let batches = left.min(POOL);
        elapsed += time(batches as usize);
        left -= batches;
    }
    elapsed
}

fn ring_key() -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &[7; 32]).unwrap())
}

fn ring_seal(key: &LessSafeKey, counter: u64, text: &mut [u8]) {
    let (plain, tag_room) = text.split_last_chunk_mut::<TAG_BYTES>().unwrap();
    let tag = key
        .seal_in_place_separate_tag(nonce(counter), Aad::empty(), plain)
        .unwrap();
    tag_room.copy_from_slice(tag.as_ref());
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

criterion_group!(benches, seal, open);
criterion_main!(benches);
