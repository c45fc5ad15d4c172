//! Replay window and allowed IPs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use wirespeed_protocol::internals::Window;
use wirespeed_protocol::{Instant, Options, Prefix, PrivateKey, PublicKey, RouteCache, Tunnel};

/// Counters checked, or addresses looked up, in one iteration.
const RUN: u64 = 45;

fn replay(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(RUN));
    // By how much the counter of each packet is above the last one's.
    for (name, step) in [("in-order", 1), ("every-third-lost", 3), ("far-jumps", 700)] {
        let mut window = Window::default();
        let mut counter = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let accepted = (0..RUN).all(|_| {
                    counter += step;
                    window.accept(counter)
                });
                assert!(accepted);
            });
        });
    }
    let mut window = Window::default();
    let mut base = 0;
    group.bench_function("swapped-pairs", |bencher| {
        bencher.iter(|| {
            base += RUN + 1;
            let accepted = (0..RUN).all(|at| window.accept(base + (at ^ 1)));
            assert!(accepted);
        });
    });
    group.finish();
}

fn allowed_ips(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("allowed-ips");
    group.throughput(Throughput::Elements(RUN));
    for v6 in [false, true] {
        let family = if v6 { "v6" } else { "v4" };
        for peers in [1u32, 100, 10_000] {
            let tunnel = tunnel(peers, v6);
            let mut rng = StdRng::seed_from_u64(2);
            let asked: Vec<IpAddr> = (0..RUN * 1_000)
                .map(|_| address(rng.random_range(0..peers), v6))
                .collect();
            let name = format!("{family}/{peers}");
            let mut runs = asked.chunks_exact(RUN as usize).cycle();
            group.bench_function(BenchmarkId::new("shared", &name), |bencher| {
                bencher.iter(|| {
                    let run = runs.next().unwrap();
                    assert!(run.iter().all(|address| tunnel.route(*address).is_some()));
                });
            });
            let mut cache = RouteCache::default();
            group.bench_function(BenchmarkId::new("cached-random", &name), |bencher| {
                bencher.iter(|| {
                    let run = runs.next().unwrap();
                    let found = |address: &IpAddr| tunnel.route_by(&mut cache, *address).is_some();
                    assert!(run.iter().all(found));
                });
            });
            group.bench_function(BenchmarkId::new("cached-flow", &name), |bencher| {
                bencher.iter(|| {
                    for _ in 0..RUN {
                        assert!(tunnel.route_by(&mut cache, asked[0]).is_some());
                    }
                });
            });
        }
    }
    group.finish();
}

fn setting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("setting");
    group.sample_size(10);
    for peers in [100, 10_000] {
        group.throughput(Throughput::Elements(u64::from(peers)));
        group.bench_function(BenchmarkId::new("peers", peers), |bencher| {
            bencher.iter_with_large_drop(|| tunnel(peers, false));
        });
    }
    group.finish();
}

/// A tunnel whose peers have an address each.
fn tunnel(peers: u32, v6: bool) -> Tunnel {
    let mut rng = StdRng::seed_from_u64(1);
    let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
    tunnel.set_private_key(Some(PrivateKey::from_bytes([1; 32])));
    for number in 0..peers {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&number.to_le_bytes());
        let peer = tunnel
            .add_peer(PublicKey::from_bytes(key), &mut rng)
            .unwrap();
        let address = address(number, v6);
        let length = if v6 { 128 } else { 32 };
        tunnel.allow(&peer, Prefix::new(address, length).unwrap());
    }
    tunnel
}

fn address(number: u32, v6: bool) -> IpAddr {
    if v6 {
        IpAddr::V6(Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(number)))
    } else {
        IpAddr::V4(Ipv4Addr::from_bits(10 << 24 | number))
    }
}

criterion_group!(benches, replay, allowed_ips, setting);
criterion_main!(benches);
