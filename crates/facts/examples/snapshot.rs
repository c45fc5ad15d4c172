//! Prints a snapshot as JSON and how long it and a reading of the counters took. Takes the interface's name, or
//! nothing for all.

use std::time::Instant;

use wirespeed_facts::{Scope, counters, snapshot};

fn main() -> Result<(), serde_json::Error> {
    let scope = Scope {
        interface: std::env::args().nth(1),
        peer: None,
    };
    let start = Instant::now();
    let facts = snapshot(&scope);
    let snapshot_took = start.elapsed();
    println!("{}", serde_json::to_string_pretty(&facts)?);
    let start = Instant::now();
    let later = counters(&scope);
    eprintln!("snapshot {snapshot_took:?}, counters {:?}", start.elapsed());
    eprintln!("{}", serde_json::to_string(&later.delta(&facts.counters))?);
    Ok(())
}
