//! Medians, percentiles and bootstrap intervals.
//!
//! All functions ignore values that are not finite, and give `None` rather than a NaN when too few are left.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Estimate;

/// Resamples of one bootstrap: the ends of a 95 % interval then move by less than the last digit shown.
const RESAMPLES: usize = 4_000;

/// The value in the middle (mean of the two in the middle for an even count).
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = finite(values);
    median_in_place(&mut sorted)
}

/// The value below which `share` (0 to 1) of the values lie, interpolated linearly between neighbours.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = finite(values);
    sorted.sort_unstable_by(f64::total_cmp);
    percentile_of_sorted(&sorted, share)
}

/// Arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    if values.is_empty() {
        return None;
    }
    // Divided before summing, so that huge values can't overflow.
    let count = values.len() as f64;
    Some(values.iter().map(|value| value / count).sum())
}

/// Standard deviation over mean: how much the values swing. `None` for fewer than two values or a mean of 0.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let mean = mean(&values)?;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let variance: f64 = values
        .iter()
        .map(|value| ((value - mean) / mean).powi(2))
        .sum::<f64>()
        / (values.len() - 1) as f64;
    Some(variance.sqrt()).filter(|deviation| deviation.is_finite())
}

/// Median with its 95 % confidence interval: percentile bootstrap over the values.
///
/// `None` for fewer than two values: one value says nothing of its own spread. With fewer than six values the
/// interval spans from the smallest to the largest value and covers less than 95 % (94 % for five, 75 % for three):
/// the median can't do better with so few. The same `seed` gives the same interval.
pub fn bootstrap_median(values: &[f64], seed: u64) -> Option<Estimate> {
    let values = finite(values);
    if values.len() < 2 {
        return None;
    }
    let value = median(&values)?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut resample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            for slot in &mut resample {
                *slot = values[random.random_range(0..values.len())];
            }
            median_in_place(&mut resample)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let low = percentile_of_sorted(&medians, 0.025)?.min(value);
    let high = percentile_of_sorted(&medians, 0.975)?.max(value);
    Some(Estimate { value, low, high })
}

/// B − A over pairs `(a, b)`, in the unit of the values.
pub fn absolute_gain(pairs: &[(f64, f64)], seed: u64) -> Option<Estimate> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    bootstrap_median(&differences, seed)
}

/// (B − A) / A over pairs `(a, b)`: 0.2 = 20 % more. Pairs whose A is 0 have no ratio and are left out.
pub fn relative_gain(pairs: &[(f64, f64)], seed: u64) -> Option<Estimate> {
    let gains: Vec<f64> = pairs
        .iter()
        .filter(|(a, _)| *a > 0.0)
        .map(|(a, b)| (b - a) / a)
        .collect();
    bootstrap_median(&gains, seed)
}

fn finite(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect()
}

fn median_in_place(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    percentile_of_sorted(values, 0.5)
}

fn percentile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    if share.is_nan() {
        return None;
    }
    let position = share.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let part = position - below as f64;
    // A weighted sum rather than `low + part × (high − low)`: the difference of two huge values overflows.
    let value = sorted[below] * (1.0 - part) + sorted[above] * part;
    Some(value.clamp(sorted[below], sorted[above]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0]), Some(5.0));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[f64::NAN, 2.0, f64::INFINITY]), Some(2.0));
    }

    #[test]
    fn percentiles_interpolate_between_neighbours() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.95), Some(95.0));
        assert_eq!(percentile(&[0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(percentile(&[1.0, 2.0], 7.0), Some(2.0));
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let estimate = bootstrap_median(&[0.97; 5], 1).unwrap();
        assert_eq!(
            (estimate.low, estimate.value, estimate.high),
            (0.97, 0.97, 0.97)
        );
        let zeros = bootstrap_median(&[0.0; 3], 1).unwrap();
        assert_eq!((zeros.low, zeros.value, zeros.high), (0.0, 0.0, 0.0));
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(bootstrap_median(&[1.0], 1), None);
        assert_eq!(absolute_gain(&[(1.0, 2.0)], 1), None);
        assert_eq!(relative_gain(&[(0.0, 2.0), (0.0, 3.0)], 1), None);
    }

    #[test]
    fn five_pairs_span_from_the_smallest_to_the_largest() {
        let estimate = bootstrap_median(&[5.0, 1.0, 3.0, 2.0, 4.0], 42).unwrap();
        assert_eq!(
            (estimate.low, estimate.value, estimate.high),
            (1.0, 3.0, 5.0)
        );
    }

    #[test]
    fn a_clear_gain_excludes_zero_and_no_gain_includes_it() {
        let clear = [
            (100.0, 118.0),
            (104.0, 121.0),
            (97.0, 119.0),
            (101.0, 122.0),
            (99.0, 117.0),
        ];
        assert!(relative_gain(&clear, 3).unwrap().low > 0.1);
        assert!(absolute_gain(&clear, 3).unwrap().low > 10.0);
        let none = [
            (100.0, 103.0),
            (100.0, 96.0),
            (100.0, 101.0),
            (100.0, 99.0),
            (100.0, 100.0),
        ];
        let gain = relative_gain(&none, 3).unwrap();
        assert!(gain.low < 0.0 && gain.high > 0.0);
    }

    #[test]
    fn more_pairs_narrow_the_interval() {
        let wave = |count: u32| -> Vec<f64> {
            (0..count).map(|i| 1.0 + f64::from(i % 7) / 70.0).collect()
        };
        let few = bootstrap_median(&wave(7), 9).unwrap();
        let many = bootstrap_median(&wave(70), 9).unwrap();
        assert!(many.high - many.low < few.high - few.low);
    }

    #[test]
    fn swinging_values_vary_and_steady_ones_do_not() {
        assert_eq!(coefficient_of_variation(&[5.0; 8]), Some(0.0));
        assert!(coefficient_of_variation(&[1.0, 9.0, 1.0, 9.0]).unwrap() > 0.5);
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), None);
        assert_eq!(coefficient_of_variation(&[1.0]), None);
    }

    proptest! {
        // Each case is thousands of resamples.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_interval_holds_the_estimate(values in prop::collection::vec(-1e12..1e12f64, 2..30), seed: u64) {
            let estimate = bootstrap_median(&values, seed).unwrap();
            let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(smallest <= estimate.low && estimate.low <= estimate.value);
            prop_assert!(estimate.value <= estimate.high && estimate.high <= largest);
            prop_assert_eq!(bootstrap_median(&values, seed), Some(estimate));
        }

        #[test]
        fn the_order_of_the_values_does_not_move_the_estimate(mut values in prop::collection::vec(-1e6..1e6f64, 2..12)) {
            let before = bootstrap_median(&values, 5).map(|estimate| estimate.value);
            values.reverse();
            prop_assert_eq!(bootstrap_median(&values, 5).map(|estimate| estimate.value), before);
        }

        #[test]
        fn never_a_nan(values in prop::collection::vec(prop::num::f64::ANY, 0..12), share: f64, seed: u64) {
            for value in [median(&values), percentile(&values, share), mean(&values), coefficient_of_variation(&values)] {
                prop_assert!(value.is_none_or(|value| !value.is_nan()));
            }
            if let Some(estimate) = bootstrap_median(&values, seed) {
                prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
            }
        }
    }
}
