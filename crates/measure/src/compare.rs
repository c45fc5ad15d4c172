//! Bare against tunnel, interleaved, until the ratio is known well enough.

use std::time::{Duration, Instant};

use wirespeed_words::say;

use crate::interleave::{OVERRUN, goodput, sample_with_retry};
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
    /// Pairs taken in any case; for them the budget may be overrun by half.
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
    /// Five pairs of short samples: a first look.
    pub fn quick(direction: Direction, streams: u32) -> Self {
        Self {
            seconds: 0.7,
            warm_up: 0.3,
            pairs_max: 5,
            // Many connections over a slow road take seconds to begin and to end.
            budget: Duration::from_secs(if streams > 16 { 45 } else { 14 }),
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
        found: empty(plan),
    };
    taking.run()?;
    let mut found = taking.found;
    conclude(&mut found, plan.seed);
    progress.step(&say!("doctor-step-done"), 1.0, 0.0);
    Ok(found)
}

pub(crate) fn empty(plan: &ComparePlan) -> Comparison {
    Comparison {
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
    }
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
            self.remark(say!("measure-remark-wide", pairs = self.plan.pairs_max));
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
                    self.found.bare_unknown = Some(say!("measure-bare-stalled"));
                }
                self.found.samples.push(sample);
                Ok(figure)
            }
            Err(
                error @ (MeasureError::NoConnection { .. }
                | MeasureError::NoAddress { .. }
                | MeasureError::LoadFailed { .. }),
            ) if via == Via::Bare => {
                self.found.bare_unknown = Some(error.said());
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
            self.remark(say!("measure-remark-stalled", samples = stalled));
            return true;
        }
        let done = taken >= self.plan.pairs_min;
        if done && self.narrow() {
            return true;
        }
        if done && self.plan.lengthen && self.swings() && self.length + 1 < LENGTHS.len() {
            self.length += 1;
            let seconds = self.plan.seconds * LENGTHS[self.length];
            self.remark(say!("measure-remark-prolonged", seconds = seconds.round()));
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
        let budget = if done {
            self.plan.budget
        } else {
            self.plan.budget.mul_f64(OVERRUN)
        };
        if self.begun.elapsed() + last_pair.mul_f64(growth) > budget {
            if !done {
                self.remark(say!(
                    "measure-remark-few-pairs",
                    taken = taken,
                    least = self.plan.pairs_min
                ));
            } else if !self.narrow() {
                self.remark(say!("measure-remark-time-spent"));
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
        let what = say!(
            "measure-step-compare",
            direction = self.plan.direction.word(),
            streams = self.plan.streams,
            pair = pair + 1
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
pub(crate) fn conclude(found: &mut Comparison, seed: u64) {
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
        found.remarks.push(say!("measure-remark-one-pair"));
    }
    let short = found.samples.iter().find_map(|sample| {
        let rtt = sample.loaded_rtt.as_ref()?.median?;
        (sample.ran < 10.0 * rtt).then_some((sample.ran, rtt))
    });
    if let Some((ran, rtt)) = short {
        let remark = say!(
            "measure-remark-short",
            seconds = (ran * 10.0).round() / 10.0,
            milliseconds = (rtt * 1e3).round()
        );
        found.remarks.push(remark);
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::CountersDelta;

    use super::*;
    use crate::{CountedBy, Interval, RttSummary};

    fn sample(via: Via, rate: f64) -> Sample {
        Sample {
            load: ComparePlan::careful(Direction::Upload, 1).load(via),
            started_at: 0.0,
            ran: 8.0,
            bytes: rate as u64,
            rate,
            counted_by: CountedBy::Receiver,
            retransmits: None,
            retransmits_with_warm_up: None,
            lost: None,
            dead_streams: 0,
            stalled: rate == 0.0,
            congestion_control: None,
            intervals: Vec::new(),
            loaded_rtt: None,
            windows: None,
            here: CountersDelta::default(),
            far: None,
        }
    }

    fn concluded(pairs: &[(f64, f64)]) -> Comparison {
        let mut found = empty(&ComparePlan::careful(Direction::Upload, 1));
        for (bare, tunnel) in pairs {
            found
                .samples
                .extend([sample(Via::Bare, *bare), sample(Via::Tunnel, *tunnel)]);
            found.pairs.push(Pair {
                bare: *bare,
                tunnel: *tunnel,
                ratio: tunnel / bare,
            });
        }
        conclude(&mut found, 1);
        found
    }

    #[test]
    fn the_ratio_is_the_median_of_the_pairs_and_not_of_the_sides() {
        // The road drifts; within each pair the tunnel has nine tenths of it.
        let found = concluded(&[
            (100.0, 90.0),
            (200.0, 180.0),
            (50.0, 45.0),
            (400.0, 360.0),
            (80.0, 72.0),
        ]);
        let rounded = |value: Option<f64>| value.map(|value| (value * 1e6).round() / 1e6);
        assert_eq!((found.bare, Some(found.tunnel)), (Some(100.0), Some(90.0)));
        assert_eq!(
            (
                rounded(found.ratio_low),
                rounded(found.ratio),
                rounded(found.ratio_high)
            ),
            (Some(0.9), Some(0.9), Some(0.9))
        );
    }

    #[test]
    fn one_pair_has_a_ratio_without_an_interval() {
        let found = concluded(&[(100.0, 50.0)]);
        assert_eq!(
            (found.ratio, found.ratio_low, found.ratio_high),
            (Some(0.5), None, None)
        );
        assert!(found.remarks[0].contains("one pair only"));
    }

    #[test]
    fn without_the_bare_side_there_is_no_ratio() {
        let mut found = empty(&ComparePlan::careful(Direction::Upload, 1));
        found.bare_unknown = Some("refused".to_owned());
        found
            .samples
            .extend([sample(Via::Tunnel, 10.0), sample(Via::Tunnel, 30.0)]);
        conclude(&mut found, 1);
        assert_eq!((found.bare, found.ratio), (None, None));
        assert!((found.tunnel - 20.0).abs() < 1e-9);
    }

    #[test]
    fn samples_of_a_few_round_trips_are_remarked_on() {
        let mut found = empty(&ComparePlan::careful(Direction::Upload, 1));
        let mut short = sample(Via::Tunnel, 10.0);
        short.ran = 1.0;
        let rtt = Some(0.4);
        short.loaded_rtt = Some(RttSummary {
            sent: 9,
            received: 9,
            min: rtt,
            median: rtt,
            p95: rtt,
            max: rtt,
        });
        found.samples.push(short);
        conclude(&mut found, 1);
        assert!(
            found
                .remarks
                .iter()
                .any(|remark| remark.contains("short for a round trip of 400 ms"))
        );
    }

    #[test]
    fn a_saw_tooth_swings_and_a_flat_window_does_not() {
        let with_windows = |window: fn(u64) -> u64| {
            let mut sample = sample(Via::Tunnel, 1e6);
            sample.intervals = (0..60)
                .map(|tenth| Interval {
                    start: tenth as f64 / 10.0,
                    seconds: 0.1,
                    rate: 1e6,
                    retransmits: Some(0),
                    congestion_window: Some(window(tenth)),
                    rtt: None,
                    warm_up: tenth < 5,
                })
                .collect();
            sample
        };
        assert!(swing(&with_windows(|tenth| 10_000 * (1 + tenth % 30))).unwrap() > SWINGING);
        assert!(swing(&with_windows(|tenth| 100_000 + tenth % 3)).unwrap() < 0.01);
    }
}
