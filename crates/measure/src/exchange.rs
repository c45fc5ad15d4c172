//! Many short exchanges, bare against tunnel, interleaved: what a server of many clients lives on.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use wirespeed_reach::Machine;
use wirespeed_words::say;

use crate::exchange_client::{ExchangeRun, ExchangesDone, NOT_BEGUN};
use crate::exchange_server::ExchangeServe;
use crate::interleave::OVERRUN;
use crate::load::{BothCounters, deltas};
use crate::operations::{EXCHANGE_RUN, EXCHANGE_SERVE, EXCHANGE_SERVED, Number};
use crate::sequence_probe::refused;
use crate::statistics::bootstrap_median;
use crate::{Ends, ExchangeComparison, ExchangeSample, MeasureError, Progress, Via};

/// How long a server may take to start and to end.
const SERVER_WITHIN: Duration = Duration::from_secs(10);
/// What agent and line may take beyond a sample.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// One exchange: three lost SYNs are waited for (1 + 2 + 4 s).
const EACH_WITHIN: f64 = 7.5;
/// A tunnel through which nothing completes is not asked more often than this.
const FAILURES_ENOUGH: usize = 2;

/// How exchanges are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangePlan {
    /// Connections under way at the same time, up to 20,000.
    pub at_once: u32,
    /// Connections of one sample.
    pub wanted: u64,
    /// Bytes asked with, 16 to 65,536.
    pub request: u32,
    /// Bytes answered, up to 1,048,576.
    pub response: u32,
    /// Seconds of one sample at most.
    pub seconds: f64,
    /// Pairs taken in any case; for them the budget may be overrun by half.
    pub pairs_min: u32,
    /// Pairs at most.
    pub pairs_max: u32,
    /// No pair is begun that would end after this time.
    pub budget: Duration,
    /// Enough is known when half the width of the ratio's interval is at most this share of it.
    pub target_width: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl ExchangePlan {
    /// Five pairs of short samples.
    pub fn quick(at_once: u32) -> Self {
        Self {
            wanted: (u64::from(at_once) * 2).max(1_000),
            pairs_max: 5,
            budget: Duration::from_secs(20),
            ..Self::careful(at_once)
        }
    }

    /// Five pairs and more, until the interval is within ±5 %. A request and an answer as of a small page.
    pub fn careful(at_once: u32) -> Self {
        Self {
            at_once,
            wanted: (u64::from(at_once) * 4).max(2_000),
            request: 256,
            response: 4096,
            seconds: 15.0,
            pairs_min: 5,
            pairs_max: 12,
            budget: Duration::from_secs(90),
            target_width: 0.05,
            seed: 1,
        }
    }
}

/// Compares short exchanges outside and through the tunnel, in pairs taken in the order bare–tunnel, tunnel–bare, …
///
/// When the bare side can't be measured, the tunnel alone is, and the comparison says why.
///
/// # Errors
/// When wirespeed does not run at the far end, the tunnel can't be measured (a sample in which exchanges fail is one,
/// with their reasons), or the ends are stopped.
pub fn exchanges(
    ends: &Ends,
    plan: &ExchangePlan,
    progress: &dyn Progress,
) -> Result<ExchangeComparison, MeasureError> {
    let begun = Instant::now();
    let mut found = ExchangeComparison {
        at_once: plan.at_once,
        ratio: None,
        bare_unknown: None,
        samples: Vec::new(),
        remarks: Vec::new(),
    };
    let mut ratios = Vec::new();
    for number in 0..plan.pairs_max.max(1) {
        let order = if number % 2 == 0 {
            [Via::Bare, Via::Tunnel]
        } else {
            [Via::Tunnel, Via::Bare]
        };
        let mut figures = [None; 2];
        for (place, via) in order.into_iter().enumerate() {
            if via == Via::Bare && found.bare_unknown.is_some() {
                continue;
            }
            tell(progress, plan, number, place, begun);
            let sample = match ends.exchange_sample(plan, via) {
                Ok(sample) => sample,
                Err(MeasureError::Stopped) => return Err(MeasureError::Stopped),
                Err(error) if via == Via::Bare && ends.address(Via::Tunnel).is_ok() => {
                    found.bare_unknown = Some(error.said());
                    continue;
                }
                Err(error) => return Err(error),
            };
            if via == Via::Bare && sample.completed == 0 {
                found.bare_unknown = Some(say!(
                    "measure-no-exchange-outside",
                    why = main_failure(&sample)
                ));
            }
            figures[usize::from(via == Via::Tunnel)] = Some(sample.per_second);
            found.samples.push(sample);
        }
        if let [Some(bare), Some(tunnel)] = figures
            && bare > 0.0
        {
            ratios.push(tunnel / bare);
        }
        found.ratio = bootstrap_median(&ratios, plan.seed);
        if enough(&mut found, plan, number + 1, begun) {
            break;
        }
    }
    if found.bare_unknown.is_some() {
        // Pairs from before it was lost are no comparison any more.
        found.ratio = found
            .ratio
            .filter(|_| ratios.len() >= plan.pairs_min as usize);
    }
    progress.step(&say!("doctor-step-done"), 1.0, 0.0);
    Ok(found)
}

fn enough(found: &mut ExchangeComparison, plan: &ExchangePlan, taken: u32, begun: Instant) -> bool {
    let through: Vec<&ExchangeSample> = found
        .samples
        .iter()
        .filter(|sample| sample.via == Via::Tunnel)
        .collect();
    if through.len() >= FAILURES_ENOUGH && through.iter().all(|sample| sample.completed == 0) {
        found
            .remarks
            .push(say!("measure-remark-no-exchange", samples = through.len()));
        return true;
    }
    let done = taken >= plan.pairs_min;
    let narrow = found
        .ratio
        .is_some_and(|ratio| ratio.high - ratio.low <= 2.0 * plan.target_width * ratio.value);
    if done && (narrow || found.bare_unknown.is_some()) {
        return true;
    }
    let budget = if done {
        plan.budget
    } else {
        plan.budget.mul_f64(OVERRUN)
    };
    if begun.elapsed() + begun.elapsed() / taken > budget {
        found.remarks.push(if done {
            say!("measure-remark-time-spent")
        } else {
            say!(
                "measure-remark-few-pairs",
                taken = taken,
                least = plan.pairs_min
            )
        });
        return true;
    }
    false
}

fn main_failure(sample: &ExchangeSample) -> String {
    let begun = sample.failed.iter().filter(|(why, _)| *why != NOT_BEGUN);
    let most = begun.max_by_key(|(_, times)| **times);
    most.map_or_else(|| say!("measure-no-reason"), |(reason, _)| reason.clone())
}

fn tell(progress: &dyn Progress, plan: &ExchangePlan, pair: u32, place: usize, begun: Instant) {
    let samples = f64::from(pair * 2 + place as u32);
    let all = f64::from(plan.pairs_min.max(pair + 1) * 2);
    let each = if samples > 0.0 {
        begun.elapsed().as_secs_f64() / samples
    } else {
        1.0
    };
    let what = say!(
        "measure-step-exchanges",
        at_once = plan.at_once,
        pair = pair + 1,
        pairs = plan.pairs_min.max(pair + 1)
    );
    progress.step(&what, samples / all, (all - samples) * each);
}

/// What was done, between the counters before and after.
type Counted = (BothCounters, ExchangesDone, BothCounters);

impl Ends {
    /// One sample: a server there, the client here.
    fn exchange_sample(
        &self,
        plan: &ExchangePlan,
        via: Via,
    ) -> Result<ExchangeSample, MeasureError> {
        self.check_stop()?;
        let far = self
            .far_machine()
            .ok_or_else(|| MeasureError::ProbeFailed {
                what: what(),
                machine: self.here.name().to_owned(),
                because: say!("measure-far-needed"),
            })?;
        let address = self.address(via)?;
        let token = rand::random();
        let port = self.serve_exchanges(far, plan, via, address, token)?;
        let run = ExchangeRun {
            token,
            to: SocketAddr::new(address, port),
            device: self.here_device(via),
            at_once: plan.at_once,
            wanted: plan.wanted,
            request: plan.request,
            response: plan.response,
            seconds: plan.seconds,
            each_within: EACH_WITHIN,
        };
        let done = self.run_exchanges(&run);
        // In any case, so that no server stays behind.
        let served: Result<(), MeasureError> = self.call(
            far,
            EXCHANGE_SERVED,
            &Number { number: token },
            SERVER_WITHIN,
        );
        let (before, done, after) = done?;
        served.map_err(|error| refused(&what(), error))?;
        self.still_there(&after)?;
        let (here, far) = deltas(&before, &after);
        Ok(ExchangeSample {
            via,
            at_once: plan.at_once,
            wanted: plan.wanted,
            completed: done.completed,
            failed: done.failed,
            request: plan.request,
            response: plan.response,
            seconds: done.seconds,
            per_second: if done.seconds > 1e-6 {
                done.completed as f64 / done.seconds
            } else {
                0.0
            },
            connect: done.connect,
            first_byte: done.first_byte,
            total: done.total,
            here,
            far,
        })
    }

    fn serve_exchanges(
        &self,
        far: &Machine,
        plan: &ExchangePlan,
        via: Via,
        address: IpAddr,
        token: u64,
    ) -> Result<u16, MeasureError> {
        let serve = ExchangeServe {
            token,
            to: address,
            own: self.far_has(address),
            device: self.far_device(via),
            at_once: plan.at_once,
            seconds: plan.seconds + 30.0,
        };
        self.call(far, EXCHANGE_SERVE, &serve, SERVER_WITHIN)
            .map_err(|error| refused(&what(), error))
    }

    fn run_exchanges(&self, run: &ExchangeRun) -> Result<Counted, MeasureError> {
        let before = self.counters()?;
        let limit = Duration::from_secs_f64(run.seconds.clamp(0.0, 600.0)) + ANSWER_WITHIN;
        let done = self
            .call(&self.here, EXCHANGE_RUN, run, limit)
            .map_err(|error| refused(&what(), error))?;
        Ok((before, done, self.counters()?))
    }
}

/// What is measured, in words.
fn what() -> String {
    say!("measure-what-exchanges")
}
