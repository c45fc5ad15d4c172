//! The doctor on a machine that has other work, too.

use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a run of the doctor on a tunnel without a fault prints, and how long it took. Where it found nothing and says itself that
/// the loads were too few or too unsteady to call the tunnel healthy, it is asked once more.
pub(crate) fn settled(case: &str, doctor: impl Fn() -> Output) -> (Output, Duration) {
    let first = timed(&doctor);
    let Some(why) = unsettled(&first.0.stdout) else {
        return first;
    };
    eprintln!("{case}: {why}; asked once more");
    timed(doctor)
}

/// What one run prints, and how long it took.
pub(crate) fn timed(doctor: impl Fn() -> Output) -> (Output, Duration) {
    let begun = Instant::now();
    (doctor(), begun.elapsed())
}

fn unsettled(stdout: &[u8]) -> Option<String> {
    let report: Value = serde_json::from_slice(stdout).ok()?;
    let nothing = report["findings"].as_array()?.is_empty();
    let reasons = report["not_checked"].as_array()?.iter();
    reasons
        .filter_map(|one| one["because"].as_str())
        .find(|because| because.contains("too unsteady") || because.contains("too few to call"))
        .filter(|_| nothing && report["verdict"] == "unmeasured")
        .map(str::to_owned)
}
