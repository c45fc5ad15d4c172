//! A and B in turn: the experiment under every comparison.
//!
//! Pairs alternate which side goes first (A B, B A, A B, …): a drift over time then helps neither side, and a
//! setting is switched only once per pair.

use std::time::{Duration, Instant};

use wirespeed_words::say;

use crate::statistics::{absolute_gain, bootstrap_median, relative_gain};
use crate::{Ends, Estimate, Load, MeasureError, Progress, Sample};

/// As long as there are too few pairs, a budget is worth so much of itself: on a long path the last of them would
/// fall to a second or two.
pub(crate) const OVERRUN: f64 = 1.5;

/// One side of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// As it was (or bare).
    A,
    /// Changed (or tunnel).
    B,
}

/// How an experiment is run.
#[derive(Debug, Clone)]
pub struct AbPlan {
    /// The load under A.
    pub load_a: Load,
    /// The load under B.
    pub load_b: Load,
    /// The figure that is compared, from one sample; `None` = this sample has none, and its pair does not count.
    pub figure: fn(&Sample) -> Option<f64>,
    /// Pairs taken in any case; for them the budget may be overrun by half.
    pub pairs_min: u32,
    /// Pairs at most.
    pub pairs_max: u32,
    /// No pair is begun that would end after this time.
    pub budget: Duration,
    /// Enough is known when half the width of the relative gain's interval is at most this (0.05 = ±5 %).
    pub target_width: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// What an experiment brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Ab {
    /// Every sample, in the order taken.
    pub samples: Vec<(Side, Sample)>,
    /// The figures of the complete pairs.
    pub pairs: Vec<(f64, f64)>,
    /// B − A, median over the pairs; `None` for fewer than two pairs.
    pub absolute: Option<Estimate>,
    /// (B − A) / A, median over the pairs; `None` for fewer than two pairs whose A is not 0.
    pub relative: Option<Estimate>,
    /// Remarks a reader must see.
    pub remarks: Vec<String>,
}

impl Ab {
    /// The samples of one side, in order.
    pub fn of(&self, side: Side) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |(at, _)| *at == side)
            .map(|(_, sample)| sample)
    }
}

/// Goodput in bit/s; a stalled sample counts as 0.
pub fn goodput(sample: &Sample) -> Option<f64> {
    Some(if sample.stalled { 0.0 } else { sample.rate })
}

/// Median RTT under load in seconds.
pub fn loaded_rtt(sample: &Sample) -> Option<f64> {
    sample.loaded_rtt.as_ref().and_then(|rtt| rtt.median)
}

/// Runs an experiment: `prepare` is called before a sample whenever the side changes (and before the first).
///
/// Which side is prepared when it ends is not defined; the caller puts things back.
///
/// # Errors
/// When a load fails twice in a row, `prepare` fails, or the ends are stopped.
pub fn ab(
    ends: &Ends,
    plan: &AbPlan,
    prepare: &mut dyn FnMut(Side) -> Result<(), String>,
    progress: &dyn Progress,
) -> Result<Ab, MeasureError> {
    let begun = Instant::now();
    let mut found = Ab {
        samples: Vec::new(),
        pairs: Vec::new(),
        absolute: None,
        relative: None,
        remarks: Vec::new(),
    };
    let mut prepared = None;
    for number in 0..plan.pairs_max.max(1) {
        let order = if number % 2 == 0 {
            [Side::A, Side::B]
        } else {
            [Side::B, Side::A]
        };
        let mut figures = [None; 2];
        for side in order {
            report(progress, plan, number, side == order[1], begun);
            if prepared != Some(side) {
                prepare(side).map_err(MeasureError::Preparation)?;
                prepared = Some(side);
            }
            let load = if side == Side::A {
                &plan.load_a
            } else {
                &plan.load_b
            };
            let sample = sample_with_retry(ends, load)?;
            figures[usize::from(side == Side::B)] = (plan.figure)(&sample);
            found.samples.push((side, sample));
        }
        if let [Some(a), Some(b)] = figures {
            found.pairs.push((a, b));
        }
        let taken = number + 1;
        found.relative = relative_gain(&found.pairs, plan.seed);
        let enough = found
            .relative
            .is_some_and(|gain| gain.high - gain.low <= 2.0 * plan.target_width);
        if taken >= plan.pairs_min && enough {
            break;
        }
        let per_pair = begun.elapsed() / taken;
        let budget = if taken < plan.pairs_min {
            plan.budget.mul_f64(OVERRUN)
        } else {
            plan.budget
        };
        if begun.elapsed() + per_pair > budget {
            if taken < plan.pairs_min {
                let least = plan.pairs_min;
                let few = say!("measure-remark-few-pairs", taken = taken, least = least);
                found.remarks.push(few);
            } else if !enough {
                found.remarks.push(say!("measure-remark-time-spent"));
            }
            break;
        }
    }
    found.absolute = absolute_gain(&found.pairs, plan.seed);
    progress.step(&say!("doctor-step-done"), 1.0, 0.0);
    Ok(found)
}

/// Median of the figures of one side, with its interval.
pub fn side_median(found: &Ab, side: Side, seed: u64) -> Option<Estimate> {
    let figures: Vec<f64> = found
        .pairs
        .iter()
        .map(|(a, b)| if side == Side::A { *a } else { *b })
        .collect();
    bootstrap_median(&figures, seed)
}

/// One failure may be chance (a lost SYN, a port taken in between); two in a row are not.
pub(crate) fn sample_with_retry(ends: &Ends, load: &Load) -> Result<Sample, MeasureError> {
    match ends.sample(load) {
        Err(MeasureError::LoadFailed { .. } | MeasureError::NoConnection { .. }) => {
            if !ends.stop.sleep(Duration::from_millis(300)) {
                return Err(MeasureError::Stopped);
            }
            ends.sample(load)
        }
        result => result,
    }
}

fn report(progress: &dyn Progress, plan: &AbPlan, pair: u32, second: bool, begun: Instant) {
    let samples = f64::from(pair * 2 + u32::from(second));
    let all = f64::from(plan.pairs_min.max(pair + 1) * 2);
    let one = plan.load_a.seconds + plan.load_a.warm_up + 0.5;
    let per_sample = if samples > 0.0 {
        begun.elapsed().as_secs_f64() / samples
    } else {
        one
    };
    let what = say!(
        "measure-step-pair",
        pair = pair + 1,
        pairs = plan.pairs_min.max(pair + 1)
    );
    progress.step(&what, samples / all, (all - samples) * per_sample);
}
