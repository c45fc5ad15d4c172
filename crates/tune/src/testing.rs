//! What the unit tests of this crate share.

use std::io::Write;

use serde_json::json;
use wirespeed_facts::CountersDelta;
use wirespeed_measure::{Direction, Sample};

/// A load through the tunnel that ran well, as it would stand in a record.
pub(crate) fn sample(direction: Direction, rate: f64, loaded_rtt: f64) -> Sample {
    let rtt = json!({
        "sent": 20, "received": 20, "min": loaded_rtt, "median": loaded_rtt, "p95": loaded_rtt, "max": loaded_rtt
    });
    let load = json!({
        "via": "tunnel", "direction": direction, "protocol": "tcp", "streams": 4, "seconds": 2.0, "warm_up": 0.5,
        "congestion_control": null, "rate": null
    });
    let sample = json!({
        "load": load, "started_at": 0.0, "ran": 2.0, "bytes": (rate / 4.0) as u64, "rate": rate, "retransmits": null,
        "lost": null, "dead_streams": 0, "stalled": false, "congestion_control": null, "intervals": [],
        "loaded_rtt": rtt, "here": CountersDelta::default(), "far": null
    });
    serde_json::from_value(sample).expect("a sample of today's shape")
}

/// Reports a test as skipped.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
