//! The loads: bare against tunnel, and one longer load of several streams.

use std::time::Duration;

use wirespeed_measure::{ComparePlan, Direction, Load, MeasureError, Protocol, Via, compare};
use wirespeed_words::say;

use super::{Driver, LOADS_UNTIL, PROBES_ABOUT, Part, SEED, is_final};
use crate::causes::{bloated, congestion_suspected, soaked};
use crate::probe::{SEVERAL, several};
use crate::slow_start;
use crate::view::comparison_of;

/// The loads of one direction, where nobody gave another budget: both, with probes before and longer loads after them,
/// are over within a minute. Five pairs take 22 s at 20 ms.
const LOADS_AT_MOST: Duration = Duration::from_millis(22_500);

/// Warm-up, and the whole with it, of a load on a road that is not long, seconds; iperf3 runs whole ones only.
const SHORT: (f64, f64) = (0.3, 1.0);
const CAREFUL: (f64, f64) = (0.5, 2.0);
/// Round trips of a whole load, and of its warm-up, at least …
const WHOLE_ROUND_TRIPS: f64 = 20.0;
const WARM_UP_ROUND_TRIPS: f64 = 10.0;
/// … but no load is longer, seconds: a satellite's road would take minutes.
const SECONDS_AT_MOST: f64 = 3.0;
/// Loads of one direction: five pairs.
const LOADS: f64 = 10.0;

impl Driver<'_> {
    pub(super) fn load(&mut self) -> Result<(), MeasureError> {
        let directions = self.options.directions.clone();
        let done = PROBES_ABOUT.as_secs_f64() / self.budget.as_secs_f64();
        if self.options.budget.is_none() {
            self.budget += self.longer() * directions.len() as u32;
        }
        let mut silent: Option<String> = None;
        for (index, direction) in directions.iter().enumerate() {
            let what = comparison_of(*direction);
            if let Some(because) = &silent {
                self.not_measured(&what, because.clone());
                continue;
            }
            let left = self.left(index, directions.len());
            let share = (LOADS_UNTIL - done) / directions.len() as f64;
            let part = Part {
                whole: self.progress,
                from: done + share * index as f64,
                share,
                more: left.as_secs_f64() * (directions.len() - index - 1) as f64,
            };
            match compare(self.ends, &self.plan(*direction, left), &part) {
                Ok(comparison) => self.evidence.comparisons.push(comparison),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    self.not_measured(&what, error.said());
                    // What answers nothing one way will not answer the other way either.
                    let heard = self
                        .evidence
                        .idle_rtt_tunnel
                        .value()
                        .is_some_and(|rtt| rtt.received > 0);
                    if !heard
                        || matches!(
                            error,
                            MeasureError::NothingFar | MeasureError::NoIperf3 { .. }
                        )
                    {
                        silent = Some(error.said());
                    }
                }
            }
        }
        Ok(())
    }

    /// Time for the next of several directions.
    fn left(&self, index: usize, all: usize) -> Duration {
        // The rest is for the longer loads and the trial.
        let loads = self
            .budget
            .mul_f64(if self.options.quick { 0.85 } else { 0.75 });
        let share = loads.saturating_sub(self.begun.elapsed()) / (all - index).max(1) as u32;
        match self.options.budget {
            Some(_) => share,
            None => share.min(LOADS_AT_MOST + self.longer()),
        }
    }

    fn plan(&self, direction: Direction, budget: Duration) -> ComparePlan {
        let (warm_up, seconds) = self.lengths(self.options.quick);
        let pairs_max = if self.options.quick { 5 } else { 8 };
        ComparePlan {
            seconds,
            warm_up,
            pairs_min: 5,
            pairs_max,
            budget,
            target_width: 0.05,
            lengthen: false,
            seed: SEED,
            ..ComparePlan::careful(direction, 1)
        }
    }

    /// Seconds of a load's warm-up and of what counts: slow start and its overshoot take some ten round trips, and what a
    /// sender carries while it recovers from them is no measure of a road either.
    pub(super) fn lengths(&self, short: bool) -> (f64, f64) {
        let (warm_up, least) = usual(short);
        let round_trip = slow_start::round_trip(&self.evidence);
        let whole = (WHOLE_ROUND_TRIPS * round_trip)
            .ceil()
            .clamp(least, SECONDS_AT_MOST);
        let warm_up = (WARM_UP_ROUND_TRIPS * round_trip).clamp(warm_up, whole / 2.0);
        (warm_up, whole - warm_up)
    }

    /// What the loads of one direction take beyond their usual time on a road as long as this one.
    pub(super) fn longer(&self) -> Duration {
        let (warm_up, seconds) = self.lengths(self.options.quick);
        let (_, usual) = usual(self.options.quick);
        Duration::from_secs_f64(LOADS * (warm_up + seconds - usual + self.talk()))
    }

    /// What iperf3's control connection takes beside each load, seconds: some seven round trips.
    pub(super) fn talk(&self) -> f64 {
        7.0 * slow_start::round_trip(&self.evidence).min(1.0)
    }

    /// One longer load of several streams where the short ones could not tell whether a deep queue fills.
    pub(super) fn soak(&mut self) -> Result<(), MeasureError> {
        let directions: Vec<Direction> = self
            .options
            .directions
            .iter()
            .copied()
            .filter(|direction| self.wants_soak(*direction))
            .collect();
        for (index, direction) in directions.iter().enumerate() {
            let done = LOADS_UNTIL + (0.9 - LOADS_UNTIL) * index as f64 / directions.len() as f64;
            for via in [Via::Tunnel, Via::Bare] {
                // Outside only to tell whose queue it is, where that is not known yet.
                if via == Via::Bare
                    && (!soaked(&self.evidence, *direction, Via::Tunnel)
                        || bloated(&self.evidence, *direction))
                {
                    continue;
                }
                let what = several(*direction);
                let load = self.soak_load(via, *direction);
                let time = Duration::from_secs_f64(load.warm_up + load.seconds + 1.0);
                if self.budget.saturating_sub(self.begun.elapsed()) < time {
                    self.not_measured(&what, say!("doctor-no-time"));
                    continue;
                }
                let left = (directions.len() - index) as f64 * time.as_secs_f64();
                self.progress.step(&what, done, left);
                self.take_soak(via, *direction)?;
            }
        }
        Ok(())
    }

    pub(super) fn take_soak(&mut self, via: Via, direction: Direction) -> Result<(), MeasureError> {
        let sample = self.ends.sample(&self.soak_load(via, direction));
        let sample = self.keep(&several(direction), sample)?;
        self.evidence.soaks.extend(sample.value().cloned());
        Ok(())
    }

    /// Not where the answer is known already, or where full packets do not arrive, or loss keeps queues empty.
    fn wants_soak(&self, direction: Direction) -> bool {
        let evidence = &self.evidence;
        evidence.comparison(direction).is_some()
            && !evidence.stalled(direction)
            && !bloated(evidence, direction)
            && !congestion_suspected(evidence, direction)
    }

    fn soak_load(&self, via: Via, direction: Direction) -> Load {
        let (seconds, warm_up) = if self.options.quick {
            (1.3, 0.7)
        } else {
            (2.0, 0.8)
        };
        Load {
            via,
            direction,
            protocol: Protocol::Tcp,
            streams: SEVERAL,
            seconds,
            warm_up,
            congestion_control: None,
            rate: None,
        }
    }
}

fn usual(short: bool) -> (f64, f64) {
    if short { SHORT } else { CAREFUL }
}
