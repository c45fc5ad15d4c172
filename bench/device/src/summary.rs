//! From samples to a table: medians and spreads, and ratios within the rounds.

use std::collections::BTreeMap;

use serde::Serialize;
use wirespeed_measure::Estimate;
use wirespeed_measure::statistics::{bootstrap_median, median, percentile};

use crate::implementation::{BARE, DEBIAN, INLINE, Implementation, TAILSCALE, WIREGUARD_GO};
use crate::model::{Metric, Sample};
use crate::rows::{Limit, Reference, Row};

/// A row's summary.
#[derive(Debug, Serialize)]
pub(crate) struct RowSummary {
    pub(crate) row: &'static str,
    pub(crate) cells: Vec<Cell>,
    pub(crate) aims: Vec<Judged>,
}

/// One implementation in one row.
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) implementation: &'static str,
    pub(crate) figures: BTreeMap<Metric, Spread>,
    /// Median of the time between the cores beside its samples, nanoseconds.
    pub(crate) core_to_core: Option<f64>,
    /// Samples that failed, and why the last one did.
    pub(crate) failed: usize,
    pub(crate) failure: Option<String>,
    /// Samples that were only had at the second try.
    pub(crate) retried: usize,
}

/// A figure over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) samples: usize,
    /// Ratios to those we are judged by, as the median over the rounds in which both were measured.
    pub(crate) ratios: BTreeMap<&'static str, Ratio>,
}

/// A ratio, with its 95 % interval where there are enough rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) pairs: usize,
}

/// What became of an aim.
#[derive(Debug, Serialize)]
pub(crate) struct Judged {
    pub(crate) metric: Metric,
    /// In words.
    pub(crate) aim: String,
    pub(crate) measured: Option<String>,
    /// `None` = could not be judged.
    pub(crate) reached: Option<bool>,
}

/// Names by which ratios are taken: Debian's wireguard-go stands in for the current one.
pub(crate) fn references(implementations: &[Implementation]) -> Vec<(Reference, &'static str)> {
    let here = |name: &str| {
        implementations
            .iter()
            .any(|implementation| implementation.name == name)
    };
    let go = [WIREGUARD_GO, DEBIAN].into_iter().find(|name| here(name));
    let tailscale = Some(TAILSCALE).filter(|name| here(name));
    go.map(|name| (Reference::WireguardGo, name))
        .into_iter()
        .chain(tailscale.map(|name| (Reference::Tailscale, name)))
        .collect()
}

/// Sums up a row.
pub(crate) fn of_row(
    row: &Row,
    implementations: &[Implementation],
    samples: &[Sample],
    seed: u64,
) -> RowSummary {
    let references = references(implementations);
    let cells: Vec<Cell> = implementations
        .iter()
        .filter_map(|implementation| {
            let of = |name: &'static str| {
                samples
                    .iter()
                    .filter(move |sample| sample.row == row.name && sample.implementation == name)
            };
            let own: Vec<&Sample> = of(implementation.name).collect();
            if own.is_empty() {
                return None;
            }
            let mut metrics: Vec<Metric> = own
                .iter()
                .flat_map(|sample| sample.figures.keys().copied())
                .collect();
            metrics.sort_unstable();
            metrics.dedup();
            let figures = metrics
                .into_iter()
                .filter_map(|metric| {
                    let ratios = references
                        .iter()
                        .filter(|(_, name)| *name != implementation.name)
                        .filter_map(|(_, name)| {
                            let theirs: Vec<&Sample> = of(name).collect();
                            ratio(&own, &theirs, metric, seed).map(|ratio| (*name, ratio))
                        })
                        .collect();
                    spread(&own, metric, ratios).map(|spread| (metric, spread))
                })
                .collect();
            let distances: Vec<f64> = own
                .iter()
                .filter_map(|sample| sample.core_to_core)
                .collect();
            Some(Cell {
                implementation: implementation.name,
                figures,
                core_to_core: median(&distances),
                failed: own.iter().filter(|sample| sample.error.is_some()).count(),
                retried: own
                    .iter()
                    .filter(|sample| sample.error.is_none() && sample.retried.is_some())
                    .count(),
                failure: own.iter().rev().find_map(|sample| sample.error.clone()),
            })
        })
        .collect();
    let aims = row
        .aims
        .iter()
        .map(|aim| judge(aim.metric, aim.limit, &cells, &references))
        .collect();
    RowSummary {
        row: row.name,
        cells,
        aims,
    }
}

fn spread(
    own: &[&Sample],
    metric: Metric,
    ratios: BTreeMap<&'static str, Ratio>,
) -> Option<Spread> {
    let values: Vec<f64> = own
        .iter()
        .filter_map(|sample| sample.figures.get(&metric).copied())
        .collect();
    Some(Spread {
        median: median(&values)?,
        min: percentile(&values, 0.0)?,
        max: percentile(&values, 1.0)?,
        samples: values.len(),
        ratios,
    })
}

/// The median over the rounds of own / theirs.
fn ratio(own: &[&Sample], theirs: &[&Sample], metric: Metric, seed: u64) -> Option<Ratio> {
    let in_round = |samples: &[&Sample], round: u32| {
        samples
            .iter()
            .find(|sample| sample.round == round)
            .and_then(|sample| sample.figures.get(&metric).copied())
    };
    let ratios: Vec<f64> = own
        .iter()
        .filter_map(|sample| {
            let theirs = in_round(theirs, sample.round).filter(|value| *value > 0.0)?;
            Some(sample.figures.get(&metric)? / theirs)
        })
        .collect();
    let interval = bootstrap_median(&ratios, seed).map(|Estimate { low, high, .. }| (low, high));
    Some(Ratio {
        value: median(&ratios)?,
        interval,
        pairs: ratios.len(),
    })
}

fn judge(
    metric: Metric,
    limit: Limit,
    cells: &[Cell],
    references: &[(Reference, &'static str)],
) -> Judged {
    let spread = |name: &str| {
        cells
            .iter()
            .find(|cell| cell.implementation == name)
            .and_then(|cell| cell.figures.get(&metric))
    };
    let own = spread(INLINE);
    let name = |reference: Reference| {
        references
            .iter()
            .find(|(known, _)| *known == reference)
            .map(|(_, name)| *name)
    };
    let title = |reference: Reference| {
        name(reference).unwrap_or(match reference {
            Reference::WireguardGo => WIREGUARD_GO,
            Reference::Tailscale => TAILSCALE,
        })
    };
    let times = |reference: Reference| {
        own.and_then(|own| own.ratios.get(name(reference)?))
            .copied()
    };
    let (aim, measured, reached) = match limit {
        Limit::AtLeastTimes(reference, factor) => {
            let ratio = times(reference);
            (
                format!("≥ {factor} × {}", title(reference)),
                ratio.map(show_ratio),
                ratio.map(|ratio| ratio.value >= factor),
            )
        }
        Limit::AtMostTimes(reference, factor) => {
            let ratio = times(reference);
            (
                format!("≤ {factor} × {}", title(reference)),
                ratio.map(show_ratio),
                ratio.map(|ratio| ratio.value <= factor),
            )
        }
        Limit::NoMoreThan(reference) => {
            let theirs = name(reference).and_then(spread).map(|spread| spread.median);
            let bare = spread(BARE).map_or(0.0, |spread| spread.median);
            let measured = own.zip(theirs).map(|(own, theirs)| {
                format!(
                    "{}, {} there and {} bare",
                    metric.show(own.median),
                    metric.show(theirs),
                    metric.show(bare)
                )
            });
            let reached = own
                .zip(theirs)
                .map(|(own, theirs)| own.median <= theirs.max(bare));
            (
                format!("no more than {} or bare", title(reference)),
                measured,
                reached,
            )
        }
        Limit::AtLeast(value) => (
            format!("≥ {}", metric.show(value)),
            own.map(|own| metric.show(own.median)),
            own.map(|own| own.median >= value),
        ),
        Limit::AtMost(value) => (
            format!("≤ {}", metric.show(value)),
            own.map(|own| metric.show(own.median)),
            own.map(|own| own.median <= value),
        ),
    };
    Judged {
        metric,
        aim,
        measured,
        reached,
    }
}

/// `1.83 × [1.71–1.95]`.
pub(crate) fn show_ratio(ratio: Ratio) -> String {
    match ratio.interval {
        Some((low, high)) => format!("{:.2} × [{low:.2}–{high:.2}]", ratio.value),
        None => format!("{:.2} ×", ratio.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Figures;
    use crate::rows::ROWS;

    fn implementation(name: &'static str) -> Implementation {
        Implementation {
            name,
            version: String::new(),
            program: Some(name.into()),
            arguments: &[],
            every_round: true,
        }
    }

    fn sample(implementation: &'static str, round: u32, rate: Option<f64>) -> Sample {
        Sample {
            row: "tcp-1-up",
            implementation,
            round,
            position: 0,
            started_at: 0.0,
            took: 0.0,
            core_to_core: Some(100.0),
            others_running: Some(0),
            figures: rate
                .map(|rate| Figures::from([(Metric::Rate, rate)]))
                .unwrap_or_default(),
            retried: None,
            error: rate.is_none().then(|| "no".to_owned()),
        }
    }

    fn summary(samples: &[Sample], names: &[&'static str]) -> RowSummary {
        let implementations: Vec<_> = names.iter().map(|name| implementation(name)).collect();
        of_row(&ROWS[0], &implementations, samples, 1)
    }

    #[test]
    fn ratios_are_within_rounds() {
        // The machine doubles its speed in the second round; the ratio stays.
        let samples = [
            sample(INLINE, 1, Some(20.0)),
            sample(WIREGUARD_GO, 1, Some(10.0)),
            sample(INLINE, 2, Some(40.0)),
            sample(WIREGUARD_GO, 2, Some(20.0)),
            sample(INLINE, 3, Some(900.0)),
            sample(WIREGUARD_GO, 3, None),
        ];
        let summary = summary(&samples, &[INLINE, WIREGUARD_GO]);
        let rate = &summary.cells[0].figures[&Metric::Rate];
        assert_eq!(
            (rate.median, rate.min, rate.max, rate.samples),
            (40.0, 20.0, 900.0, 3)
        );
        let ratio = rate.ratios[WIREGUARD_GO];
        assert_eq!(
            (ratio.value, ratio.interval, ratio.pairs),
            (2.0, Some((2.0, 2.0)), 2)
        );
        assert_eq!(
            (summary.cells[1].failed, summary.cells[1].failure.as_deref()),
            (1, Some("no"))
        );
        assert_eq!(summary.aims[0].reached, Some(true));
        assert_eq!(summary.aims[1].reached, None, "nobody to compare with");
    }

    #[test]
    fn debians_stands_in() {
        let samples = [sample(INLINE, 1, Some(10.0)), sample(DEBIAN, 1, Some(10.0))];
        let summary = summary(&samples, &[INLINE, DEBIAN]);
        assert_eq!(summary.aims[0].aim, "≥ 1.7 × wireguard-go-debian");
        assert_eq!(
            (summary.aims[0].measured.as_deref(), summary.aims[0].reached),
            (Some("1.00 ×"), Some(false))
        );
    }
}
