//! Collects the evidence without a load: what flows by itself, watched for a while.

use wirespeed_measure::{Ends, MeasureError, NotMeasured, Progress};
use wirespeed_words::say;

use crate::Evidence;
use crate::investigate::blank;

/// Watches both ends (the far one where wirespeed runs there) for `seconds`. Sends nothing through the tunnel or beside
/// it, and changes nothing.
///
/// # Errors
/// When a machine is gone or [`Ends::stop`] was set.
pub fn watch(ends: &Ends, seconds: f64, progress: &dyn Progress) -> Result<Evidence, MeasureError> {
    // What was read when the ends were found out is a moment old, and another snapshot would be a load of its own.
    let mut evidence = blank(ends, ends.here_facts.clone(), ends.far_facts.clone(), None);
    evidence.passive = Some(ends.watch(seconds, progress)?);
    evidence.not_measured.push(NotMeasured {
        what: say!("doctor-comparison"),
        because: say!("doctor-comparison-passive"),
    });
    progress.step(&say!("doctor-step-done"), 1.0, 0.0);
    Ok(evidence)
}
