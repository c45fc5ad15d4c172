//! Collects the evidence: facts, probes, loads, and a trial where loss makes that worth a try.
//!
//! The order matters. Who is heard over the idle tunnel comes first, because anything sent through it changes the
//! answer; sizes come before loads, because they are cheap; the trial comes last, because only the loads can tell
//! whether it is worth its time. What fails becomes a line of `not_measured`; only a machine that is gone or a stop
//! ends the whole.

use std::time::{Duration, Instant};

use wirespeed_facts::{CountersDelta, Known};
use wirespeed_measure::{
    AbPlan, ComparePlan, Direction, Ends, FarEnd, Load, MeasureError, NotMeasured, Progress,
    Protocol, Side, Via, ab, compare, goodput,
};
use wirespeed_reach::ReachError;

use crate::causes::{bloated, congestion_suspected, queue_on_the_road, sender_uses, soaked};
use crate::view::{DIRECTIONS, FEWEST_PAIRS, sender, word};
use crate::{CongestionTrial, Evidence, FarKind, IdleReturn};

/// What is tried in place of a congestion control that backs off from loss.
const TRIED: &str = "bbr";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// Seed of every bootstrap, so that the same samples always give the same interval.
const SEED: u64 = 1;
/// What the probes take on a tunnel in which nothing is lost.
const PROBES_ABOUT: Duration = Duration::from_secs(6);
/// The shortest time in which a trial can take its pairs; the first direction that needs one gets it in any case.
const TRIAL_LEAST: Duration = Duration::from_secs(16);
const TRIAL_AT_MOST: Duration = Duration::from_secs(25);

/// The share of the whole after which the loads of the comparisons are over.
const LOADS_UNTIL: f64 = 0.8;
/// Streams of the longer load: enough to fill a queue in seconds though each of them watches the delay.
const SOAK_STREAMS: u32 = 8;

/// How far to go.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Under 45 s on a healthy tunnel, with shorter samples and so wider intervals.
    pub quick: bool,
    /// What the user expects of the line, bit/s.
    pub expect: Option<f64>,
    /// Directions to load and probe.
    pub directions: Vec<Direction>,
    /// Time for everything; `None` = 43 s when quick, else 100 s (a healthy tunnel is done in about a minute). Where
    /// loss calls for a trial, that one's 16 s come on top if need be.
    pub budget: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quick: false,
            expect: None,
            directions: DIRECTIONS.to_vec(),
            budget: None,
        }
    }
}

/// Collects everything the checks look at. Changes nothing on any machine.
///
/// [`Ends::stop`] ends it within a second or two.
///
/// # Errors
/// When a machine is gone or [`Ends::stop`] was set; whatever else fails is in [`Evidence::not_measured`].
pub fn investigate(
    ends: &Ends,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Evidence, MeasureError> {
    let mut driver = Driver::new(ends, options, progress)?;
    driver.probe()?;
    driver.load()?;
    driver.soak()?;
    driver.try_congestion()?;
    progress.step("done", 1.0, 0.0);
    Ok(driver.evidence)
}

struct Driver<'a> {
    ends: &'a Ends,
    options: &'a Options,
    progress: &'a dyn Progress,
    begun: Instant,
    budget: Duration,
    evidence: Evidence,
}

impl<'a> Driver<'a> {
    fn new(
        ends: &'a Ends,
        options: &'a Options,
        progress: &'a dyn Progress,
    ) -> Result<Self, MeasureError> {
        let begun = Instant::now();
        progress.step("facts", 0.0, 0.0);
        let (here, far) = ends.snapshot()?;
        let budget = options
            .budget
            .unwrap_or(Duration::from_secs(if options.quick { 43 } else { 100 }));
        let pending = || Known::because("not measured");
        let evidence = Evidence {
            interface: ends.interface.clone(),
            far_interface: ends.far_interface.clone(),
            peer: Some(ends.peer.clone()),
            far_kind: match &ends.far {
                FarEnd::Wirespeed(_) => FarKind::Wirespeed,
                FarEnd::Iperf3 { .. } => FarKind::Iperf3,
                FarEnd::Nothing => FarKind::Nothing,
            },
            here_name: ends.here.name().to_owned(),
            far_name: ends.far_name(),
            here,
            far,
            idle_return: Known::because("not measured"),
            idle_rtt_bare: pending(),
            idle_rtt_tunnel: pending(),
            path_mtu: Vec::new(),
            tunnel_sweep: Vec::new(),
            comparisons: Vec::new(),
            congestion_trials: Vec::new(),
            soaks: Vec::new(),
            sequences: Vec::new(),
            segmentation: Vec::new(),
            sweeps: Vec::new(),
            exchanges: Vec::new(),
            passive: None,
            expected_rate: options.expect,
            not_measured: Vec::new(),
            probing_here: None,
            probing_far: None,
        };
        Ok(Self {
            ends,
            options,
            progress,
            begun,
            budget,
            evidence,
        })
    }

    fn probe(&mut self) -> Result<(), MeasureError> {
        let ends = self.ends;
        let before = ends.counters()?;
        self.step("who is heard over the idle tunnel", 0.0);
        let order = ends.idle_return().map(|pings| IdleReturn {
            far_first: pings.far_first,
            here_then: pings.here_then,
            far_after: pings.far_after,
            translated_to: ends.translated_to.clone(),
        });
        self.evidence.idle_return = self.keep("the order of events on the idle tunnel", order)?;
        self.step("idle round-trip times", 0.3);
        // The interval keeps a train within a second; the median of ten is what counts.
        let outside = ends.idle_rtt(Via::Bare, 10, 0.05);
        self.evidence.idle_rtt_bare = self.keep("RTT outside the tunnel", outside)?;
        let inside = ends.idle_rtt(Via::Tunnel, 10, 0.05);
        self.evidence.idle_rtt_tunnel = self.keep("RTT through the tunnel", inside)?;
        for direction in self.options.directions.clone() {
            self.step(&format!("path MTU, {}", word(direction)), 0.5);
            let found = ends.path_mtu(direction);
            let probe = self.keep(&format!("path MTU, {}", word(direction)), found)?;
            self.evidence.path_mtu.extend(probe.value().cloned());
            let found = ends.tunnel_sweep(direction);
            let sweep = self.keep(
                &format!("sizes inside the tunnel, {}", word(direction)),
                found,
            )?;
            self.evidence.tunnel_sweep.extend(sweep.value().cloned());
        }
        let after = ends.counters()?;
        let moved: (CountersDelta, Option<CountersDelta>) = (
            after.0.delta(&before.0),
            after
                .1
                .zip(before.1)
                .map(|(after, before)| after.delta(&before)),
        );
        self.evidence.probing_here = Some(moved.0);
        self.evidence.probing_far = moved.1;
        Ok(())
    }

    fn load(&mut self) -> Result<(), MeasureError> {
        let directions = self.options.directions.clone();
        let mut silent: Option<String> = None;
        for (index, direction) in directions.iter().enumerate() {
            let what = format!("bare against tunnel, {}", word(*direction));
            if let Some(because) = &silent {
                self.not_measured(&what, because.clone());
                continue;
            }
            let left = self.left(index, directions.len());
            let done = PROBES_ABOUT.as_secs_f64() / self.budget.as_secs_f64();
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
                    self.not_measured(&what, error.to_string());
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
                        silent = Some(error.to_string());
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
        loads.saturating_sub(self.begun.elapsed()) / (all - index).max(1) as u32
    }

    fn plan(&self, direction: Direction, budget: Duration) -> ComparePlan {
        let (seconds, warm_up, pairs_max) = if self.options.quick {
            (0.7, 0.3, 5)
        } else {
            (1.5, 0.5, 8)
        };
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

    /// One longer load of several streams where the short ones could not tell whether a deep queue fills.
    fn soak(&mut self) -> Result<(), MeasureError> {
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
                let asked = soaked(&self.evidence, *direction, Via::Tunnel)
                    && !queue_on_the_road(&self.evidence, *direction);
                if via == Via::Bare && !asked {
                    continue;
                }
                let what = format!(
                    "a longer load of {SOAK_STREAMS} streams, {}",
                    word(*direction)
                );
                let load = self.soak_load(via, *direction);
                let time = Duration::from_secs_f64(load.warm_up + load.seconds + 1.0);
                if self.budget.saturating_sub(self.begun.elapsed()) < time {
                    self.not_measured(&what, "no time was left for it".to_owned());
                    continue;
                }
                let left = (directions.len() - index) as f64 * time.as_secs_f64();
                self.progress.step(&what, done, left);
                let sample = self.ends.sample(&load);
                let sample = self.keep(&what, sample)?;
                self.evidence.soaks.extend(sample.value().cloned());
            }
        }
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
            (3.0, 1.0)
        };
        Load {
            via,
            direction,
            protocol: Protocol::Tcp,
            streams: SOAK_STREAMS,
            seconds,
            warm_up,
            congestion_control: None,
            rate: None,
        }
    }

    fn try_congestion(&mut self) -> Result<(), MeasureError> {
        let suspected: Vec<Direction> = self
            .options
            .directions
            .iter()
            .copied()
            .filter(|direction| congestion_suspected(&self.evidence, *direction))
            .collect();
        for (index, direction) in suspected.iter().enumerate() {
            let what = format!("another congestion control, {}", word(*direction));
            // A share of what is left; where that is too little for one trial, the first gets what it needs.
            let mut left = self.budget.saturating_sub(self.begun.elapsed());
            if index == 0 {
                left = left.max(TRIAL_LEAST);
            }
            let time = (left / (suspected.len() - index) as u32).clamp(TRIAL_LEAST, TRIAL_AT_MOST);
            if let Some(because) = self.cannot_try(*direction) {
                self.not_measured(&what, because);
            } else if left < TRIAL_LEAST {
                self.not_measured(
                    &what,
                    format!(
                        "{:.0} s are left, too few for it: run without --quick",
                        left.as_secs_f64()
                    ),
                );
            } else {
                let share = 0.1 / suspected.len() as f64;
                let part = Part {
                    whole: self.progress,
                    from: 0.9 + share * index as f64,
                    share,
                    more: 0.0,
                };
                match self.trial(*direction, time, &part) {
                    Ok(Some(trial)) => self.evidence.congestion_trials.push(trial),
                    Ok(None) => self.not_measured(&what, "too few pairs could be taken".to_owned()),
                    Err(error) if is_final(&error) => return Err(error),
                    Err(error) => self.not_measured(&what, error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Why the sender cannot use the other one; what is not known is tried.
    fn cannot_try(&self, direction: Direction) -> Option<String> {
        let facts = self.evidence.facts(sender(direction))?;
        let available = facts.sysctls.get(AVAILABLE)?.value()?;
        let missing = !available.split_whitespace().any(|name| name == TRIED);
        missing.then(|| {
            let host = self.evidence.name(sender(direction));
            format!(
                "{host} has no {TRIED} (it has {}); modprobe tcp_{TRIED} there",
                available.trim()
            )
        })
    }

    fn trial(
        &self,
        direction: Direction,
        budget: Duration,
        progress: &dyn Progress,
    ) -> Result<Option<CongestionTrial>, MeasureError> {
        let load = |congestion_control: Option<&str>| Load {
            via: Via::Tunnel,
            direction,
            protocol: Protocol::Tcp,
            streams: 1,
            seconds: 0.7,
            warm_up: 0.3,
            congestion_control: congestion_control.map(str::to_owned),
            rate: None,
        };
        let plan = AbPlan {
            load_a: load(None),
            load_b: load(Some(TRIED)),
            figure: goodput,
            pairs_min: FEWEST_PAIRS as u32,
            pairs_max: 8,
            budget,
            target_width: 0.05,
            seed: SEED,
        };
        let found = ab(self.ends, &plan, &mut |_: Side| Ok(()), progress)?;
        Ok(found.relative.map(|gain| CongestionTrial {
            direction,
            current: sender_uses(&self.evidence, direction)
                .unwrap_or_else(|| "the default".to_owned()),
            tried: TRIED.to_owned(),
            gain,
            samples: found
                .samples
                .into_iter()
                .map(|(_, sample)| sample)
                .collect(),
        }))
    }

    /// A result, or a line of `not_measured` and the reason in its place.
    fn keep<T>(
        &mut self,
        what: &str,
        result: Result<T, MeasureError>,
    ) -> Result<Known<T>, MeasureError> {
        match result {
            Ok(value) => Ok(Known::Value(value)),
            Err(error) if is_final(&error) => Err(error),
            Err(error) => {
                self.not_measured(what, error.to_string());
                Ok(Known::because(error.to_string()))
            }
        }
    }

    fn not_measured(&mut self, what: &str, because: String) {
        self.evidence.not_measured.push(NotMeasured {
            what: what.to_owned(),
            because,
        });
    }

    /// Reports a step of the probes; `done` is the share of the probes.
    fn step(&self, what: &str, done: f64) {
        let probes = PROBES_ABOUT.as_secs_f64();
        let whole = self.budget.as_secs_f64().max(probes);
        let loads = if self.options.quick { 28.0 } else { 50.0 };
        self.progress
            .step(what, done * probes / whole, loads + probes * (1.0 - done));
    }
}

/// After this nothing else can be measured.
fn is_final(error: &MeasureError) -> bool {
    matches!(
        error,
        MeasureError::Stopped
            | MeasureError::Reach(
                ReachError::Died { .. }
                    | ReachError::Silent { .. }
                    | ReachError::Rubbish { .. }
                    | ReachError::NotStarted { .. }
            )
    )
}

/// One part of the whole: its own 0 to 1 is a share of the whole's.
struct Part<'a> {
    whole: &'a dyn Progress,
    from: f64,
    share: f64,
    /// Seconds that come after this part.
    more: f64,
}

impl Progress for Part<'_> {
    fn step(&self, what: &str, done: f64, seconds_left: f64) {
        self.whole.step(
            what,
            self.from + self.share * done.clamp(0.0, 1.0),
            seconds_left + self.more,
        );
    }
}
