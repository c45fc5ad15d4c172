//! What reading a machine costs: `cargo bench -p wirespeed-facts`. Needs root and wireguard-go.
//!
//! The limits are the product's own promises: a snapshot of a tunnel with 1,000 peers takes less than 200 ms, the
//! counters, which are read before and after every load, less than 20 ms.

#[path = "../tests/support/lab.rs"]
mod lab;

use criterion::Criterion;
use wirespeed_facts::{ConnectionsWanted, Scope, connections, counters, snapshot};

use lab::{Lab, missing};

fn main() {
    if let Some(reason) = missing() {
        eprintln!("SKIPPED the benchmark of snapshots: {reason}");
        return;
    }
    let lab = Lab::new();
    lab.connect();
    let [near, far] = &lab.ends;
    far.take_peers(1000);
    near.inside(|| reading("1 peer"));
    far.inside(|| reading("1,000 peers"));
    Criterion::default().configure_from_args().final_summary();
}

/// In the network namespace of the calling thread.
fn reading(peers: &str) {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let scope = Scope::default();
    criterion.bench_function(&format!("snapshot, {peers}"), |bench| {
        bench.iter(|| snapshot(&scope));
    });
    criterion.bench_function(&format!("counters, {peers}"), |bench| {
        bench.iter(|| counters(&scope));
    });
    criterion.bench_function(&format!("connections, {peers}"), |bench| {
        bench.iter(|| connections(&ConnectionsWanted::default()));
    });
}
