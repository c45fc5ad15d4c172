//! Bare against tunnel, interleaved, until the ratio is known well enough.

use std::time::{Duration, Instant};

use crate::interleave::{goodput, sample_with_retry};
use crate::statistics::{bootstrap_median, coefficient_of_variation, mean, median};
use crate::{
    Comparison, Direction, Ends, Load, MeasureError, Pair, Progress, Protocol, Sample, Via,
};

/// A sender whose window (or rate) swings by more than this share of its mean from second to second has not settled.
const SWINGING: f64 = 0.25;
/// Longer and longer samples, as multiples of the first length.
const LENGTHS: [f64; 3] = [1.0, 2.0, 6.0];
/// So many stalled pairs settle it: more of them would cost minutes and say the same.
const STALLED_PAIRS_ENOUGH: usize = 2;

/// How a comparison is made.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparePlan {
    /// Who sends.
    pub direction: Direction,
    /// Parallel connections.
    pub streams: u32,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Rate in bit/s, all streams together (UDP).
    pub rate: Option<f64>,
    /// Seconds of one sample after its warm-up.
    pub seconds: f64,
    /// Seconds thrown away at the start of each.
    pub warm_up: f64,
    /// Pairs taken in any case, within the budget.
    pub pairs_min: u32,
    /// Pairs at most.
    pub pairs_max: u32,
    /// No pair is begun that would end after this time.
    pub budget: Duration,
    /// Enough is known when half the width of the ratio's interval is at most this share of it (0.05 = ±5 %).
    pub target_width: f64,
    /// Lengthen samples (×2, ×6) while the interval is wide because the sender's window swings.
    pub lengthen: bool,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl ComparePlan {
    /// Short samples, few pairs: a first look.
    pub fn quick(direction: Direction, streams: u32) -> Self {
        Self {
            seconds: 0.7,
            warm_up: 0.3,
            pairs_min: 3,
            pairs_max: 3,
            budget: Duration::from_secs(10),
            lengthen: false,
            ..Self::careful(direction, streams)
        }
    }

    /// Five pairs and more, until the interval is within ±5 %.
    pub fn careful(direction: Direction, streams: u32) -> Self {
        Self {
            direction,
            streams,
            protocol: Protocol::Tcp,
            rate: None,
            seconds: 8.0,
            warm_up: 2.0,
            pairs_min: 5,
            pairs_max: 15,
            budget: Duration::from_secs(300),
            target_width: 0.05,
            lengthen: true,
            seed: 1,
        }
    }

    /// The load of one sample.
    pub fn load(&self, via: Via) -> Load {
        Load {
            via,
            direction: self.direction,
            protocol: self.protocol,
            streams: self.streams,
            seconds: self.seconds,
            warm_up: self.warm_up,
            congestion_control: None,
            rate: self.rate,
        }
    }
}

/// Compares the tunnel with the bare path in pairs, taken in the order bare–tunnel, tunnel–bare, bare–tunnel, …
///
/// When the bare path can't be measured, the tunnel alone is, and the comparison says why.
///
/// # Errors
/// When the tunnel can't be measured either, or the ends are stopped.
pub fn compare(
    ends: &Ends,
    plan: &ComparePlan,
    progress: &dyn Progress,
) -> Result<Comparison, MeasureError> {
    let mut taking = Taking {
        ends,
        plan,
        progress,
        begun: Instant::now(),
        length: 0,
        found: Comparison {
            direction: plan.direction,
            streams: plan.streams,
            protocol: plan.protocol,
            bare: None,
            tunnel: 0.0,
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            pairs: Vec::new(),
            bare_unknown: None,
            remarks: Vec::new(),
            samples: Vec::new(),
        },
    };
    taking.run()?;
    let mut found = taking.found;
    conclude(&mut found, plan.seed);
    progress.step("done", 1.0, 0.0);
    Ok(found)
}

struct Taking<'a> {
    ends: &'a Ends,
    plan: &'a ComparePlan,
    progress: &'a dyn Progress,
    begun: Instant,
    /// Index into [`LENGTHS`].
    length: usize,
    found: Comparison,
}

impl Taking<'_> {
    fn run(&mut self) -> Result<(), MeasureError> {
        for number in 0..self.plan.pairs_max.max(1) {
            let pair_begun = Instant::now();
            let order = if number % 2 == 0 {
                [Via::Bare, Via::Tunnel]
            } else {
                [Via::Tunnel, Via::Bare]
            };
            let mut figures = [None; 2];
            for (place, via) in order.into_iter().enumerate() {
                if via == Via::Bare && self.found.bare_unknown.is_some() {
                    continue;
                }
                self.report(number, place);
                figures[usize::from(via == Via::Tunnel)] = self.take(via)?;
            }
            if let [Some(bare), Some(tunnel)] = figures {
                let ratio = if bare > 0.0 { tunnel / bare } else { 0.0 };
                self.found.pairs.push(Pair {
                    bare,
                    tunnel,
                    ratio,
                });
            }
            if self.enough(number + 1, pair_begun.elapsed()) {
                return Ok(());
            }
        }
        if !self.narrow() {
            self.remark(format!(
                "after {} pairs the interval is still wide",
                self.plan.pairs_max
            ));
        }
        Ok(())
    }

    /// One sample of one side; `None` when the bare side turned out to be out of reach.
    fn take(&mut self, via: Via) -> Result<Option<f64>, MeasureError> {
        let mut load = self.plan.load(via);
        load.seconds *= LENGTHS[self.length];
        match sample_with_retry(self.ends, &load) {
            Ok(sample) => {
                let figure = goodput(&sample);
                // A bare path that stalls is no yardstick.
                if via == Via::Bare && sample.stalled {
                    self.found.bare_unknown =
                        Some("the bare path stalled: nothing arrived".to_owned());
                }
                self.found.samples.push(sample);
                Ok(figure)
            }
            Err(
                error @ (MeasureError::NoConnection { .. }
                | MeasureError::NoAddress { .. }
                | MeasureError::LoadFailed { .. }),
            ) if via == Via::Bare => {
                self.found.bare_unknown = Some(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn enough(&mut self, taken: u32, last_pair: Duration) -> bool {
        let stalled = self
            .found
            .of(Via::Tunnel)
            .filter(|sample| sample.stalled)
            .count();
        if stalled >= STALLED_PAIRS_ENOUGH && stalled == self.found.of(Via::Tunnel).count() {
            self.remark(format!(
                "the tunnel stalled in all of {stalled} samples; more were not taken"
            ));
            return true;
        }
        let done = taken >= self.plan.pairs_min;
        if done && self.narrow() {
            return true;
        }
        if done && self.plan.lengthen && self.swings() && self.length + 1 < LENGTHS.len() {
            self.length += 1;
            let seconds = self.plan.seconds * LENGTHS[self.length];
            self.remark(format!(
                "the sender's window still swings: samples prolonged to {seconds:.0} s"
            ));
        }
        let growth = if self
            .found
            .samples
            .last()
            .is_some_and(|sample| sample.load.seconds < self.seconds())
        {
            LENGTHS[self.length] / LENGTHS[self.length - 1]
        } else {
            1.0
        };
        if self.begun.elapsed() + last_pair.mul_f64(growth) > self.plan.budget {
            if !done {
                self.remark(format!(
                    "time for {taken} of at least {} pairs only",
                    self.plan.pairs_min
                ));
            } else if !self.narrow() {
                self.remark("time was spent before the interval was narrow".to_owned());
            }
            return true;
        }
        false
    }

    fn seconds(&self) -> f64 {
        self.plan.seconds * LENGTHS[self.length]
    }

    /// Is the ratio known well enough? Without a bare side it is the tunnel's goodput that must be.
    fn narrow(&self) -> bool {
        let values: Vec<f64> = if self.found.bare_unknown.is_some() {
            self.found.of(Via::Tunnel).filter_map(goodput).collect()
        } else {
            self.found.pairs.iter().map(|pair| pair.ratio).collect()
        };
        bootstrap_median(&values, self.plan.seed).is_some_and(|ratio| {
            ratio.high - ratio.low <= 2.0 * self.plan.target_width * ratio.value
        })
    }

    fn swings(&self) -> bool {
        self.found
            .of(Via::Tunnel)
            .last()
            .and_then(swing)
            .is_some_and(|swing| swing > SWINGING)
    }

    fn remark(&mut self, remark: String) {
        self.found.remarks.push(remark);
    }

    fn report(&self, pair: u32, place: usize) {
        let samples = f64::from(pair) * 2.0 + place as f64;
        let all = f64::from(self.plan.pairs_min.max(pair + 1)) * 2.0;
        let planned = self.seconds() + self.plan.warm_up + 0.5;
        let each = if samples > 0.0 {
            self.begun.elapsed().as_secs_f64() / samples
        } else {
            planned
        };
        let direction = match self.plan.direction {
            Direction::Upload => "upload",
            Direction::Download => "download",
        };
        let what = format!(
            "{direction}, {} streams: pair {}",
            self.plan.streams,
            pair + 1
        );
        self.progress
            .step(&what, samples / all, (all - samples) * each);
    }
}

/// How much the sender's window swings from second to second (its rate, where the window is not told).
fn swing(sample: &Sample) -> Option<f64> {
    let settled: Vec<_> = sample
        .intervals
        .iter()
        .filter(|interval| !interval.warm_up)
        .collect();
    let windows: Option<Vec<f64>> = settled
        .iter()
        .map(|interval| interval.congestion_window.map(|window| window as f64))
        .collect();
    let values = windows.unwrap_or_else(|| settled.iter().map(|interval| interval.rate).collect());
    let seconds: Vec<f64> = values.chunks(10).filter_map(mean).collect();
    coefficient_of_variation(&seconds)
}

/// Fills in what follows from the samples and pairs.
fn conclude(found: &mut Comparison, seed: u64) {
    let medians = |via: Via| {
        let rates: Vec<f64> = found.of(via).filter_map(goodput).collect();
        median(&rates)
    };
    let (bare, tunnel) = (medians(Via::Bare), medians(Via::Tunnel));
    found.tunnel = tunnel.unwrap_or(0.0);
    if found.bare_unknown.is_some() {
        return;
    }
    found.bare = bare;
    let ratios: Vec<f64> = found.pairs.iter().map(|pair| pair.ratio).collect();
    found.ratio = median(&ratios);
    let interval = bootstrap_median(&ratios, seed);
    found.ratio_low = interval.map(|interval| interval.low);
    found.ratio_high = interval.map(|interval| interval.high);
    if ratios.len() == 1 {
        found
            .remarks
            .push("one pair only: the ratio has no interval".to_owned());
    }
    let short = found.samples.iter().find_map(|sample| {
        let rtt = sample.loaded_rtt.as_ref()?.median?;
        (sample.ran < 10.0 * rtt).then_some((sample.ran, rtt))
    });
    if let Some((ran, rtt)) = short {
        let remark = format!(
            "samples of {ran:.1} s are short for a round trip of {:.0} ms",
            rtt * 1e3
        );
        found.remarks.push(remark);
    }
}
