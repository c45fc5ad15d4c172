//! The search for the highest rate that a tunnel carries steadily: without a cap, with one, without again, and then bisection
//! over caps, first of all above what was carried without one.
//!
//! The sender paces itself (`SO_MAX_PACING_RATE`, which TCP obeys by timers of its own since Linux 4.13, whatever the queue
//! and the congestion control): nothing on the machine is changed.

use std::time::{Duration, Instant};

use wirespeed_words::say;

use crate::interleave::sample_with_retry;
use crate::statistics::{coefficient_of_variation, mean};
use crate::{
    Direction, Ends, Load, MeasureError, Progress, Protocol, RateSweep, Sample, SweepStep, Via,
};

/// Seconds of one step, after its warm-up.
const SECONDS: f64 = 4.0;
const WARM_UP: f64 = 1.0;
/// What a step takes in all: iperf3 needs about half a second around it.
const STEP: Duration = Duration::from_millis(5_700);
/// Steadiness is judged over pieces of half a second: shorter ones show the bursts of any sender.
const PIECE: f64 = 0.5;
/// A capped sender that loses nothing varies by a few per cent (BBR by 7 %, for it probes); the one of a collapsing tunnel
/// halves and doubles.
const STEADY: f64 = 0.15;
/// From here on it swings without a cap: then one of about as much is worth having for its steadiness.
pub const SWINGS: f64 = 0.3;
/// Carries the cap: headers and the sender's own rounding take no more than the rest.
const CARRIED: f64 = 0.95;
/// The first cap, as a share of the top, and what is taken for stable without being tried.
const FIRST_CAP: f64 = 0.9;
const FLOOR: f64 = 0.05;
/// A stable cap above what was carried without one: the top was too low, and the next cap is so much higher.
const HIGHER: f64 = 1.15;
/// What a tunnel carries without a cap, it most likely carries with one of this share of it …
const LIKELY: f64 = 0.9;
/// … which is tried after so many that were too much: any stable one tells more than a better bound for it.
const TOO_MUCH: u32 = 2;
/// The search ends when the highest stable cap is known to so much of the top.
const CLOSE_ENOUGH: f64 = 0.08;
const STEPS_AT_MOST: usize = 10;
/// How the rate is capped, as records have it.
const PACING: &str = "TCP pacing";

impl Ends {
    /// Searches for the highest cap that one TCP connection through the tunnel carries (95 % of it and more) steadily.
    /// `peak` is the rate in bit/s that the road may carry: the bare path's, say. No step is begun that would end after
    /// `budget`; the first is always taken.
    ///
    /// # Errors
    /// As [`Ends::sample`].
    pub fn rate_sweep(
        &self,
        direction: Direction,
        peak: f64,
        budget: Duration,
        progress: &dyn Progress,
    ) -> Result<RateSweep, MeasureError> {
        let begun = Instant::now();
        let take = |cap: Option<f64>| -> Result<SweepStep, MeasureError> {
            let share = begun.elapsed().as_secs_f64() / budget.as_secs_f64().max(1.0);
            let left = budget.saturating_sub(begun.elapsed()).as_secs_f64();
            let what = match cap {
                Some(cap) => say!("measure-step-cap", rate = cap / 1e6),
                None => say!("measure-step-no-cap"),
            };
            progress.step(&what, share.min(1.0), left);
            Ok(step(cap, &sample_with_retry(self, &load(direction, cap))?))
        };
        let mut sweep = RateSweep {
            direction,
            capped_by: PACING.to_owned(),
            steps: vec![take(None)?],
            stable_cap: None,
        };
        let peak = if peak.is_finite() { peak } else { 0.0 };
        let mut search = Search::new(&sweep.steps[0], peak);
        while let Some(cap) = search.next()
            && sweep.steps.len() < STEPS_AT_MOST
            && begun.elapsed() + STEP <= budget
        {
            let step = take(Some(cap))?;
            search.tried(cap, step.stable);
            sweep.steps.push(step);
            // A collapsing tunnel may do well for some seconds, and a good one badly. Not instead of the only other cap.
            if sweep.steps.len() == 2 && begun.elapsed() + 2 * STEP <= budget {
                sweep.steps.push(take(None)?);
                search.free = sweep.free().unwrap_or(search.free);
            }
        }
        progress.step(&say!("doctor-step-done"), 1.0, 0.0);
        sweep.stable_cap = search.stable;
        Ok(sweep)
    }
}

impl RateSweep {
    /// What the tunnel did without a cap, all runs taken as one; `None` = there was none.
    pub fn free(&self) -> Option<SweepStep> {
        let runs = || self.steps.iter().filter(|step| step.cap.is_none());
        let goodput = mean(&runs().map(|run| run.goodput).collect::<Vec<_>>())?;
        // The runs are of one length: their variances are averaged, and the one between them is added.
        let variance = |run: &SweepStep| {
            (run.variation * run.goodput).powi(2) + (run.goodput - goodput).powi(2)
        };
        let variance = mean(&runs().map(variance).collect::<Vec<_>>())?;
        let mean_of_known = |figure: fn(&SweepStep) -> Option<f64>| {
            mean(&runs().filter_map(figure).collect::<Vec<_>>())
        };
        Some(SweepStep {
            cap: None,
            goodput,
            variation: if goodput > 0.0 {
                variance.sqrt() / goodput
            } else {
                1.0
            },
            retransmits: mean_of_known(|run| run.retransmits),
            loaded_rtt: mean_of_known(|run| run.loaded_rtt),
            stable: runs().all(|run| run.stable),
        })
    }

    /// How the rate was capped, in the language of the moment. What is not known is told as it is.
    pub fn capped_by_words(&self) -> String {
        match self.capped_by.as_str() {
            PACING => say!("measure-tcp-pacing"),
            other => other.to_owned(),
        }
    }
}

fn load(direction: Direction, cap: Option<f64>) -> Load {
    Load {
        via: Via::Tunnel,
        direction,
        protocol: Protocol::Tcp,
        streams: 1,
        seconds: SECONDS,
        warm_up: WARM_UP,
        congestion_control: None,
        rate: cap,
    }
}

fn step(cap: Option<f64>, sample: &Sample) -> SweepStep {
    let variation = variation(sample);
    let goodput = if sample.stalled { 0.0 } else { sample.rate };
    let carried = cap.is_none_or(|cap| goodput >= cap * CARRIED);
    SweepStep {
        cap,
        goodput,
        variation,
        retransmits: sample
            .retransmits
            .filter(|_| sample.ran > 0.0)
            .map(|segments| segments as f64 / sample.ran),
        loaded_rtt: sample.loaded_rtt.as_ref().and_then(|rtt| rtt.p95),
        stable: goodput > 0.0 && carried && variation <= STEADY,
    }
}

/// Coefficient of variation of the goodput over pieces of [`PIECE`] seconds; 1 where there are too few to say.
fn variation(sample: &Sample) -> f64 {
    let mut pieces = Vec::new();
    let (mut bits, mut seconds) = (0.0, 0.0);
    for interval in sample.intervals.iter().filter(|one| !one.warm_up) {
        bits += interval.rate * interval.seconds;
        seconds += interval.seconds;
        if seconds >= PIECE - 0.01 {
            pieces.push(bits / seconds);
            (bits, seconds) = (0.0, 0.0);
        }
    }
    coefficient_of_variation(&pieces)
        .filter(|variation| variation.is_finite())
        .unwrap_or(1.0)
}

/// Bisection between the highest cap that was stable and the lowest that was not. The steps are few and dear, so it begins
/// where an answer is worth most: above what the tunnel carried without a cap.
struct Search {
    top: f64,
    /// What is known by now of the tunnel without a cap.
    free: SweepStep,
    stable: Option<f64>,
    unstable: Option<f64>,
    /// How many caps were too much.
    missed: u32,
}

impl Search {
    fn new(free: &SweepStep, peak: f64) -> Self {
        Self {
            top: free.goodput.max(peak),
            free: free.clone(),
            stable: None,
            unstable: None,
            missed: 0,
        }
    }

    /// The cap to try next; `None` = it is known well enough.
    fn next(&self) -> Option<f64> {
        // A tunnel that carries nothing has no cap to find.
        (self.top > 0.0).then_some(())?;
        let close = self.top * CLOSE_ENOUGH;
        let between =
            |low: f64, high: f64| (high - low > close).then_some(f64::midpoint(low, high));
        match (self.stable, self.unstable) {
            (None, None) => Some(self.top * FIRST_CAP),
            (Some(stable), None) => (stable > self.free.goodput).then_some(stable * HIGHER),
            (Some(stable), Some(unstable)) => between(stable, unstable),
            (None, Some(unstable)) => {
                let free = self.free.goodput;
                let (likely, floor) = (free * LIKELY, self.top * FLOOR);
                let swings = self.free.variation >= SWINGS;
                let more = || between(free, unstable).filter(|_| !swings && self.missed < TOO_MUCH);
                if likely > floor && unstable - likely > close {
                    more().or(Some(likely))
                } else {
                    between(floor, unstable)
                }
            }
        }
    }

    fn tried(&mut self, cap: f64, stable: bool) {
        if stable {
            self.stable = Some(cap);
        } else {
            self.unstable = Some(cap);
            self.missed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_words::{Language, within};

    use super::*;

    fn run(cap: Option<f64>, goodput: f64, variation: f64, retransmits: Option<f64>) -> SweepStep {
        SweepStep {
            cap,
            goodput,
            variation,
            retransmits,
            loaded_rtt: Some(0.04),
            stable: variation <= STEADY,
        }
    }

    /// What a tunnel that does so without a cap and is stable up to `limit` makes of the search: the caps tried and the one
    /// found.
    fn search(free: &SweepStep, peak: f64, limit: f64) -> (Vec<f64>, Option<f64>) {
        let mut search = Search::new(free, peak);
        let mut tried = Vec::new();
        while let Some(cap) = search.next() {
            tried.push(cap);
            search.tried(cap, cap <= limit);
            assert!(tried.len() < 20, "{tried:?}");
        }
        (tried, search.stable)
    }

    fn steady(goodput: f64) -> SweepStep {
        run(None, goodput, 0.1, Some(0.0))
    }

    #[test]
    fn a_healthy_tunnel_is_known_after_one_cap() {
        let (tried, found) = search(&steady(100.0), 95.0, 100.0);
        assert_eq!((tried, found), (vec![90.0], Some(90.0)));
        assert_eq!(search(&steady(0.0), 0.0, 0.0), (vec![], None));
    }

    #[test]
    fn a_collapsing_one_is_closed_in_on() {
        // The public account: 374 Mbit/s at the start, then between 180 and 90; 150 were sustained.
        let swinging = run(None, 160.0, 0.35, Some(100.0));
        let (tried, found) = search(&swinging, 374.0, 155.0);
        assert!(
            (tried[1] - 144.0).abs() < 1e-9 && tried.len() < 6,
            "{tried:?}"
        );
        let found = found.unwrap();
        assert!(
            found <= 155.0 && found > 155.0 - 374.0 * CLOSE_ENOUGH,
            "{found}"
        );
        assert_eq!(search(&steady(100.0), 0.0, 0.0).1, None);
    }

    #[test]
    fn a_stable_one_is_found_in_the_time_there_is() {
        // Four caps, where little more than what is carried without one is stable.
        for (free, peak, limit) in [
            (40.0, 100.0, 42.0),
            (160.0, 374.0, 155.0),
            (97.0, 100.0, 60.0),
        ] {
            let (tried, _) = search(&steady(free), peak, limit);
            let kept = tried.iter().take(4).any(|cap| *cap <= limit);
            assert!(kept, "{free} {peak}: {tried:?}");
        }
    }

    #[test]
    fn two_caps_are_enough_for_one_worth_having() {
        // A road that gives up above 55 Mbit/s: mean of two runs without a cap, the most of a tenth of a second before.
        for (free, peak) in [
            (40.3, 47.8),
            (26.4, 67.8),
            (40.0, 62.1),
            (22.2, 58.8),
            (38.2, 70.0),
            (38.0, 63.2),
            (35.5, 42.3),
        ] {
            let (tried, _) = search(&steady(free), peak, 55.0);
            let carried = tried.iter().take(2).filter(|cap| **cap <= 55.0);
            let most = carried.fold(0.0, |most: f64, cap| most.max(*cap));
            assert!(most >= 1.15 * free, "{free} {peak}: {tried:?}");
        }
    }

    proptest! {
        #[test]
        fn the_search_always_ends_close_below_the_limit(
            top in 1.0..1e11_f64, share in 0.06..1.2_f64, free in 0.0..=1.0_f64, variation in 0.0..1.0_f64,
        ) {
            let free = run(None, top * free, variation, None);
            let (tried, found) = search(&free, top, top * share);
            // Beside two runs without a cap.
            prop_assert!(tried.len() + 2 <= STEPS_AT_MOST, "{:?}", tried);
            if let Some(found) = found {
                prop_assert!(found <= top * share);
                prop_assert!(found >= top * (share.min(FIRST_CAP) - CLOSE_ENOUGH) - 1e-6 * top);
            } else {
                prop_assert!(share < FLOOR + CLOSE_ENOUGH);
            }
        }
    }

    #[test]
    fn runs_without_a_cap_count_as_one() {
        let sweep = |steps| RateSweep {
            direction: Direction::Upload,
            capped_by: PACING.to_owned(),
            steps,
            stable_cap: None,
        };
        let first = run(None, 40e6, 0.1, Some(100.0));
        let cap = run(Some(50e6), 50e6, 0.0, Some(0.0));
        assert_eq!(sweep(vec![]).free(), None);
        let once = sweep(vec![first.clone(), cap.clone()]).free().unwrap();
        assert!((once.variation - 0.1).abs() < 1e-12 && once.stable);
        assert_eq!((once.goodput, once.retransmits), (40e6, Some(100.0)));
        // 20 and 40, and within each a deviation of 4 Mbit/s: sqrt(10² + 4²) of 30.
        let again = run(None, 20e6, 0.2, Some(300.0));
        let both = sweep(vec![first.clone(), cap, again]).free().unwrap();
        assert_eq!((both.goodput, both.retransmits), (30e6, Some(200.0)));
        let wanted = 116.0_f64.sqrt() / 30.0;
        assert!((both.variation - wanted).abs() < 1e-12 && !both.stable);
        let silent = run(None, 0.0, 1.0, None);
        let known = sweep(vec![first, silent.clone()]).free().unwrap();
        assert_eq!((known.goodput, known.retransmits), (20e6, Some(100.0)));
        let nothing = sweep(vec![silent]).free().unwrap();
        assert!(nothing.retransmits.is_none() && nothing.variation >= 1.0);
    }

    #[test]
    fn what_capped_the_rate_is_told_in_the_readers_language() {
        let mut sweep = RateSweep {
            direction: Direction::Upload,
            capped_by: PACING.to_owned(),
            steps: Vec::new(),
            stable_cap: None,
        };
        let french = |sweep: &RateSweep| within(Language::French, || sweep.capped_by_words());
        assert_eq!(sweep.capped_by_words(), PACING);
        assert_eq!(french(&sweep), "la cadence de TCP (pacing)");
        "a shaper".clone_into(&mut sweep.capped_by);
        assert_eq!(french(&sweep), "a shaper");
    }

    #[test]
    fn steadiness_is_of_half_seconds_after_the_warm_up() {
        let mut json = serde_json::json!({
            "load": load(Direction::Upload, Some(10e6)), "started_at": 0.0, "ran": 4.0, "bytes": 5_000_000, "rate": 10e6,
            "retransmits": 8, "lost": null, "dead_streams": 0, "stalled": false, "congestion_control": null,
            "intervals": [], "loaded_rtt": null, "here": wirespeed_facts::CountersDelta::default(), "far": null,
        });
        let sample = |rate: &dyn Fn(usize) -> f64, json: &mut serde_json::Value| -> Sample {
            json["intervals"] = (0..50)
                .map(|at| {
                    serde_json::json!({
                        "start": at as f64 / 10.0, "seconds": 0.1, "rate": rate(at), "retransmits": null,
                        "congestion_window": null, "rtt": null, "warm_up": at < 10,
                    })
                })
                .collect();
            serde_json::from_value(json.clone()).unwrap()
        };
        // Bursts within half a second, and whatever the warm-up did, don't count.
        let steady = sample(
            &|at| {
                if at < 10 {
                    1e9
                } else {
                    [5e6, 15e6, 10e6, 8e6, 12e6][at % 5]
                }
            },
            &mut json,
        );
        let told = step(Some(10e6), &steady);
        assert!(told.stable && told.variation < 0.01, "{told:?}");
        assert_eq!(told.retransmits, Some(2.0));
        assert!(!step(Some(11e6), &steady).stable);
        assert!(step(None, &steady).stable);
        let swinging = sample(&|at| if at / 10 % 2 == 0 { 15e6 } else { 5e6 }, &mut json);
        let told = step(Some(10e6), &swinging);
        assert!(!told.stable && told.variation > 0.4, "{told:?}");
        json["stalled"] = true.into();
        assert!(!step(None, &sample(&|_| 0.0, &mut json)).stable);
        json["intervals"] = serde_json::json!([]);
        let none: Sample = serde_json::from_value(json).unwrap();
        assert!(variation(&none) >= 1.0);
    }
}
