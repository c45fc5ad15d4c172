//! From the intervals of many loads to the few points that a chart can show.

use wirespeed_measure::{Interval, Sample};

/// Points of a chart, all runs together, at most.
const MOST_POINTS: usize = 280;
/// With more runs than these, those of a side are one line, for no eye could part them.
const MOST_RUNS: usize = 60;
/// Loads this long are shown second by second; shorter ones finer.
const LONG: f64 = 4.0;
/// The finest step, seconds: iperf3's smallest interval.
const FINEST: f64 = 0.1;

/// One point: a stretch of time and what was measured in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Mean over the stretch (sum for [`What::Retransmits`]).
    pub(super) value: f64,
    /// Least and most of its parts.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Does not count.
    pub(super) warm_up: bool,
}

impl Point {
    pub(super) fn middle(&self) -> f64 {
        f64::midpoint(self.from, self.to)
    }
}

/// Points that belong together, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// 0 or 1: the side of the comparison.
    pub(super) side: usize,
    pub(super) points: Vec<Point>,
}

/// Runs one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timeline {
    pub(super) runs: Vec<Run>,
    /// Seconds of load, all together.
    pub(super) seconds: f64,
    /// Seconds that a point stands for.
    pub(super) step: f64,
    /// Some load has no intervals, and only its mean is shown.
    pub(super) means_only: bool,
}

/// What to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Rate,
    Window,
    Retransmits,
}

/// The loads one after the other; `None` when none of them has such figures.
pub(super) fn timeline(taken: &[(usize, &Sample)], what: What) -> Option<Timeline> {
    let lengths: Vec<f64> = taken.iter().map(|(_, sample)| length(sample)).collect();
    let total: f64 = lengths.iter().sum();
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    if total <= 0.0 || !total.is_finite() {
        return None;
    }
    let finest = if longest >= LONG { 1.0 } else { FINEST };
    let step = round_up(total / MOST_POINTS as f64).max(finest);
    // Runs stand apart, but for so many that the gaps would be all there is.
    let gap = if taken.len() > MOST_RUNS {
        0.0
    } else {
        total * 0.01
    };
    let mut runs = Vec::new();
    let mut means_only = false;
    let mut begin = 0.0;
    for ((side, sample), length) in taken.iter().zip(&lengths) {
        let points = match points(sample, what, step) {
            points if !points.is_empty() => points,
            _ => {
                means_only = true;
                mean(sample, what).into_iter().collect()
            }
        };
        if !points.is_empty() {
            let points = points.into_iter().map(|point| Point {
                from: point.from + begin,
                to: point.to + begin,
                ..point
            });
            runs.push(Run {
                side: *side,
                points: points.collect(),
            });
        }
        begin += length + gap;
    }
    if runs.is_empty() {
        return None;
    }
    let mut step = step;
    if runs.len() > MOST_RUNS {
        (runs, step) = joined(&runs, what, step);
    }
    Some(Timeline {
        runs,
        seconds: (begin - gap).max(f64::MIN_POSITIVE),
        step,
        means_only,
    })
}

/// Seconds from the beginning of a load to its end.
fn length(sample: &Sample) -> f64 {
    let told = sample.load.warm_up + sample.ran;
    let last = sample
        .intervals
        .iter()
        .map(|one| one.start + one.seconds)
        .fold(0.0, f64::max);
    told.max(last).clamp(0.0, 1e6)
}

fn of_interval(interval: &Interval, what: What) -> Option<f64> {
    let value = match what {
        What::Rate => Some(interval.rate),
        What::Window => interval.congestion_window.map(|bytes| bytes as f64),
        What::Retransmits => interval.retransmits.map(|count| count as f64),
    };
    value.filter(|value| value.is_finite())
}

/// The intervals of a load in stretches of `step`, from its own beginning on.
fn points(sample: &Sample, what: What, step: f64) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut weight = 0.0;
    for interval in &sample.intervals {
        let Some(value) = of_interval(interval, what) else {
            continue;
        };
        let (from, to) = (interval.start, interval.start + interval.seconds);
        let middle = f64::midpoint(from, to);
        if !middle.is_finite() || interval.seconds <= 0.0 {
            continue;
        }
        let same = points.last().is_some_and(|last| {
            (last.from / step + 1e-6).floor() >= (middle / step).floor()
                && last.warm_up == interval.warm_up
        });
        if let (true, Some(last)) = (same, points.last_mut()) {
            last.value = if what == What::Retransmits {
                last.value + value
            } else {
                (last.value * weight + value * interval.seconds) / (weight + interval.seconds)
            };
            weight += interval.seconds;
            last.to = to.max(last.to);
            last.low = last.low.min(value);
            last.high = last.high.max(value);
        } else {
            weight = interval.seconds;
            points.push(Point {
                from,
                to,
                value,
                low: value,
                high: value,
                warm_up: interval.warm_up,
            });
        }
    }
    points
}

/// A load without intervals: its mean over all of it.
fn mean(sample: &Sample, what: What) -> Option<Point> {
    let value = match what {
        What::Rate => sample.rate,
        What::Window => sample.windows.as_ref()?.congestion_window? as f64,
        What::Retransmits => sample.retransmits? as f64,
    };
    value.is_finite().then(|| Point {
        from: sample.load.warm_up.clamp(0.0, 1e6),
        to: length(sample),
        value,
        low: value,
        high: value,
        warm_up: false,
    })
}

/// The runs of each side as one, with neighbours taken together until they are few enough.
fn joined(runs: &[Run], what: What, step: f64) -> (Vec<Run>, f64) {
    let mut out = Vec::new();
    let mut most = 1;
    for side in 0..2 {
        let points: Vec<Point> = runs
            .iter()
            .filter(|run| run.side == side)
            .flat_map(|run| &run.points)
            .filter(|point| !point.warm_up)
            .copied()
            .collect();
        let together = points.len().div_ceil(MOST_POINTS / 2).max(1);
        most = most.max(together);
        let points: Vec<Point> = points
            .chunks(together)
            .filter_map(|chunk| {
                let (first, last) = (chunk.first()?, chunk.last()?);
                let sum: f64 = chunk.iter().map(|point| point.value).sum();
                let value = match what {
                    What::Retransmits => sum,
                    What::Rate | What::Window => sum / chunk.len() as f64,
                };
                Some(Point {
                    from: first.from,
                    to: last.to,
                    value,
                    low: chunk.iter().map(|point| point.low).fold(value, f64::min),
                    high: chunk.iter().map(|point| point.high).fold(value, f64::max),
                    warm_up: false,
                })
            })
            .collect();
        if !points.is_empty() {
            out.push(Run { side, points });
        }
    }
    (out, step * most as f64)
}

/// 1, 2 or 5 times a power of ten.
fn round_up(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|times| times * power)
        .find(|round| *round >= step * 0.999)
        .unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(seconds: f64, tenths: usize) -> Sample {
        let mut json = json!({
            "load": {"via": "tunnel", "direction": "upload", "protocol": "tcp", "streams": 1,
                     "seconds": seconds, "warm_up": 1.0, "congestion_control": null, "rate": null},
            "started_at": 0.0, "ran": seconds, "bytes": 0, "rate": 42.0, "retransmits": 7, "lost": null,
            "dead_streams": 0, "stalled": false, "congestion_control": null, "intervals": [],
            "loaded_rtt": null, "here": wirespeed_facts::CountersDelta::default(), "far": null,
        });
        json["intervals"] = (0..tenths)
            .map(|at| {
                json!({"start": at as f64 * 0.1, "seconds": 0.1, "rate": (at % 10) as f64 * 1e6, "retransmits": 1,
                       "congestion_window": null, "rtt": null, "warm_up": at < 10})
            })
            .collect();
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn tenths_of_a_second_become_seconds() {
        let sample = sample(10.0, 110);
        let rate = timeline(&[(0, &sample), (1, &sample)], What::Rate).unwrap();
        assert_eq!(
            (rate.runs.len(), rate.step, rate.means_only),
            (2, 1.0, false)
        );
        assert!((rate.seconds - 22.22).abs() < 0.01, "{}", rate.seconds);
        let points = &rate.runs[1].points;
        assert_eq!(points.len(), 11);
        assert!(points[0].warm_up && !points[1].warm_up);
        assert!((points[3].value - 4.5e6).abs() < 1.0, "{:?}", points[3]);
        assert_eq!((points[3].low, points[3].high), (0.0, 9e6));
        let sent_again = timeline(&[(0, &sample)], What::Retransmits).unwrap();
        assert!((sent_again.runs[0].points[5].value - 10.0).abs() < 1e-9);
        assert_eq!(timeline(&[(0, &sample)], What::Window), None);
    }

    #[test]
    fn a_load_without_intervals_has_its_mean() {
        let sample = sample(10.0, 0);
        let rate = timeline(&[(0, &sample)], What::Rate).unwrap();
        assert!(rate.means_only);
        let point = rate.runs[0].points[0];
        assert_eq!((point.from, point.to, point.value), (1.0, 11.0, 42.0));
        assert_eq!(timeline(&[], What::Rate), None);
    }

    #[test]
    fn an_hour_is_thinned() {
        let points = |timeline: &Timeline| -> usize {
            timeline.runs.iter().map(|run| run.points.len()).sum()
        };
        let long = sample(3600.0, 36_000);
        assert!(points(&timeline(&[(0, &long)], What::Rate).unwrap()) <= MOST_POINTS);
        let short = sample(10.0, 110);
        let many: Vec<(usize, &Sample)> = (0..360).map(|index| (index % 2, &short)).collect();
        let thinned = timeline(&many, What::Rate).unwrap();
        assert_eq!(thinned.runs.len(), 2);
        assert!(points(&thinned) <= MOST_POINTS, "{}", points(&thinned));
        assert!(thinned.step > 10.0);
    }
}
