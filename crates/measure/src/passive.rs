//! Watching without a load: what moved on a machine, slice by slice, and what the tunnel's own connections did.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirespeed_facts::{ConnectionsWanted, Known, Scope};

use crate::Watched;

/// Slices of a second, or as many as this.
const SLICES_AT_MOST: f64 = 120.0;
/// Longest watch.
pub(crate) const SECONDS_AT_MOST: f64 = 3_600.0;
/// How often a wait looks up.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What to watch, and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PassivePlan {
    pub(crate) scope: Scope,
    pub(crate) connections: ConnectionsWanted,
    pub(crate) seconds: f64,
}

/// Watches until the time is over, or `keep_going` says no: then what was seen until then is told.
pub(crate) fn run(plan: &PassivePlan, keep_going: &dyn Fn() -> bool) -> Result<Watched, String> {
    if !(plan.seconds > 0.0 && plan.seconds <= SECONDS_AT_MOST) {
        return Err(format!("a watch lasts up to {SECONDS_AT_MOST} s"));
    }
    let slices = plan.seconds.round().clamp(1.0, SLICES_AT_MOST) as u32;
    let begun = Instant::now();
    let first_connections = wirespeed_facts::connections(&plan.connections);
    let first = wirespeed_facts::counters(&plan.scope);
    let mut before = first.clone();
    let mut told = Vec::new();
    for slice in 1..=slices {
        let share = f64::from(slice) / f64::from(slices);
        let until = begun + Duration::from_secs_f64(plan.seconds * share);
        let in_full = wait(until, keep_going);
        let now = wirespeed_facts::counters(&plan.scope);
        told.push(now.delta(&before));
        before = now;
        if !in_full {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let connections = wirespeed_facts::connections(&plan.connections);
    let open = connections
        .value()
        .map(|now| (now.wanted.len() + now.left_out) as u64);
    let progress = match (first_connections, connections) {
        (Known::Value(first), Known::Value(now)) => Known::Value(now.since(&first)),
        (Known::Unknown(why), _) | (_, Known::Unknown(why)) => Known::Unknown(why),
    };
    Ok(Watched {
        seconds,
        counters: before.delta(&first),
        slices: told,
        connections: progress,
        open,
    })
}

/// `false` = it was cut short.
fn wait(until: Instant, keep_going: &dyn Fn() -> bool) -> bool {
    while keep_going() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_UP));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seconds: f64) -> PassivePlan {
        PassivePlan {
            scope: Scope::default(),
            connections: ConnectionsWanted::default(),
            seconds,
        }
    }

    #[test]
    fn a_watch_lasts_as_long_as_asked() {
        let watched = run(&plan(0.3), &|| true).unwrap();
        assert!((0.3..2.0).contains(&watched.seconds), "{}", watched.seconds);
        assert_eq!(watched.slices.len(), 1);
        let watched = run(&plan(2.0), &|| true).unwrap();
        assert_eq!(watched.slices.len(), 2);
        assert!(watched.connections.value().is_some_and(Vec::is_empty));
    }

    #[test]
    fn a_watch_that_is_cut_short_tells_what_it_saw() {
        let begun = Instant::now();
        let watched = run(&plan(60.0), &|| {
            begun.elapsed() < Duration::from_millis(200)
        })
        .unwrap();
        assert!(watched.seconds < 3.0 && watched.slices.len() == 1);
        for seconds in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(run(&plan(seconds), &|| true).is_err());
        }
    }
}
