//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Each takes any bytes, gives them to a parser as the crate itself would, and panics when what comes out breaks a
//! promise. Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use crate::{RoadDirection, Scenario, state};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// A scenario file.
pub fn scenario(toml: &[u8]) {
    let Ok(text) = std::str::from_utf8(toml) else {
        return;
    };
    match Scenario::parse(text, "fuzz.toml") {
        Ok(scenario) => sound(&scenario),
        Err(error) => assert!(error.to_string().contains("fuzz.toml"), "{error}"),
    }
}

fn sound(scenario: &Scenario) {
    for direction in [RoadDirection::Up, RoadDirection::Down] {
        let way = scenario.road.way(direction);
        if let (Some(rate), Some(queue)) = (way.rate, way.queue) {
            assert!(queue.bytes(rate) > 0);
        }
    }
    for host in scenario.topology.hosts() {
        let own = scenario.host(host);
        assert!(own.sysctls.keys().all(|name| name.starts_with("net.")));
    }
    // A lab's file keeps it, and `lab status` reads it there.
    let kept = serde_json::to_vec(scenario).expect("a scenario can be kept");
    let again: Scenario = serde_json::from_slice(&kept).expect("what was kept can be read");
    assert_eq!(&again, scenario);
}

/// The file of a lab.
pub fn lab(json: &[u8]) {
    let id = "fuzz".parse().expect("an identifier");
    let Some(lab) = state::parse(&String::from_utf8_lossy(json), &id) else {
        return;
    };
    let [first, second] = lab.ends();
    assert_ne!(first.tunnel_interface, None);
    assert_ne!(second.tunnel_interface, None);
    for address in lab.addresses() {
        lab.host(&address.host)
            .expect("an address belongs to a host of the lab");
    }
    let kept = serde_json::to_string(&lab).expect("a lab can be kept");
    assert!(
        state::parse(&kept, &id).is_some(),
        "what was kept can be read"
    );
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_read() {
        corpus("lab_scenario", super::scenario);
        corpus("lab_state", super::lab);
    }
}
