//! Short exchanges in the terminal: how many per second, how long each took, and what failed.

use std::collections::BTreeMap;

use wirespeed_measure::statistics::median;
use wirespeed_measure::{ExchangeComparison, ExchangeSample, Percentiles, Via};
use wirespeed_words::say;

use crate::exchange_reasons;
use crate::look::{Look, columns, table, table_or_without};
use crate::record::{failures, is_failure};
use crate::units;

/// Reasons for failures that are told, the most frequent first.
const REASONS: usize = 5;
/// The column of what nine tenths of the exchanges took: the one that its neighbours tell most of.
const NINE_TENTHS: usize = 3;

/// In one clause: `the tunnel makes 83 % of the road's 4200 new connections per second`.
pub(crate) fn carried(exchanges: Option<&ExchangeComparison>) -> Option<String> {
    let exchanges = exchanges?;
    let tunnel = per_second(exchanges, Via::Tunnel)?;
    Some(match (per_second(exchanges, Via::Bare), exchanges.ratio) {
        (Some(bare), Some(ratio)) => say!(
            "report-exchanges-carried",
            share = units::percent(ratio.value),
            road = bare.round(),
            at_once = exchanges.at_once
        ),
        _ => say!(
            "report-exchanges-carried-alone",
            tunnel = tunnel.round(),
            at_once = exchanges.at_once
        ),
    })
}

/// All of it.
pub(crate) fn exchanges(exchanges: &ExchangeComparison, look: &Look) -> String {
    let mut out = String::from("\n");
    let title = match exchanges.samples.first() {
        Some(one) => say!(
            "report-exchanges-sizes",
            at_once = exchanges.at_once,
            request = units::bytes(f64::from(one.request)),
            response = units::bytes(f64::from(one.response))
        ),
        None => say!("report-exchanges", at_once = exchanges.at_once),
    };
    out.push_str(&look.title(&title));
    let sides = [
        (say!("report-road"), Via::Bare),
        (say!("report-tunnel"), Via::Tunnel),
    ];
    let counts: Vec<Vec<String>> = sides
        .iter()
        .filter_map(|(name, via)| {
            let per_second = per_second(exchanges, *via)?;
            let sum = |of: &dyn Fn(&ExchangeSample) -> u64| -> String {
                let all = of_side(exchanges, *via).map(of);
                units::count(all.fold(0, u64::saturating_add) as f64)
            };
            Some(vec![
                name.clone(),
                units::count(per_second.round()),
                sum(&|one| one.completed),
                sum(&failures),
            ])
        })
        .collect();
    let header = [
        String::new(),
        say!("report-exchanges-rate"),
        say!("report-exchanges-completed"),
        say!("report-exchanges-failed"),
    ];
    out.push_str(&table(look, 2, &header, &counts, 1));
    out.push('\n');
    let mut times = Vec::new();
    let parts: [(String, OfSample); 3] = [
        (say!("report-exchanges-connect"), |one| one.connect),
        (say!("report-exchanges-first-byte"), |one| one.first_byte),
        (say!("report-exchanges-total"), |one| one.total),
    ];
    for (what, of) in parts {
        for (name, via) in &sides {
            times.extend(time_row(exchanges, *via, &what, name, of));
        }
    }
    let header = vec![
        String::new(),
        String::new(),
        units::percent(0.5),
        units::percent(0.9),
        units::percent(0.99),
        units::fixed(99.9, 1, "%"),
        say!("report-exchanges-longest"),
    ];
    out.push_str(&table_or_without(look, 2, header, times, 2, NINE_TENTHS));
    if let Some(ratio) = exchanges.ratio {
        let text = say!(
            "report-exchanges-share",
            share = units::percent(ratio.value),
            low = units::percent(ratio.low),
            high = units::percent(ratio.high)
        );
        out.push('\n');
        out.push_str(&look.paragraph(2, &text));
    }
    let labels = [say!("report-label-failed"), say!("report-label-no-end")];
    let label_columns = labels.iter().map(|label| columns(label)).max();
    let indent = label_columns.unwrap_or_default() + 4;
    for (name, via) in &sides {
        let mut failed: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, times) in of_side(exchanges, *via).flat_map(|one| &one.failed) {
            let sum = failed.entry(reason).or_default();
            *sum = sum.saturating_add(*times);
        }
        let mut failed: Vec<(&str, u64)> = failed.into_iter().collect();
        failed.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        for (reason, times) in failed.into_iter().take(REASONS) {
            let text = say!(
                "report-exchanges-times",
                side = name,
                reason = exchange_reasons::told(reason),
                times = times
            );
            let label = &labels[usize::from(!is_failure(reason))];
            out.push_str(&look.labelled(label, indent, &text));
        }
    }
    let unknown = exchanges.bare_unknown.iter();
    for remark in exchanges.remarks.iter().chain(unknown) {
        out.push_str(&look.labelled(&say!("report-label-note"), 8, remark));
    }
    out
}

type OfSample = fn(&ExchangeSample) -> Option<Percentiles>;

/// Each percentile is the median over the samples of one side; the longest is the longest of all.
fn time_row(
    exchanges: &ExchangeComparison,
    via: Via,
    what: &str,
    side: &str,
    of: OfSample,
) -> Option<Vec<String>> {
    let all: Vec<Percentiles> = of_side(exchanges, via).filter_map(of).collect();
    let median_of = |figure: fn(&Percentiles) -> f64| {
        let figures: Vec<f64> = all.iter().map(figure).collect();
        median(&figures).map(units::time)
    };
    let longest = all.iter().map(|one| one.max).max_by(f64::total_cmp)?;
    Some(vec![
        what.to_owned(),
        side.to_owned(),
        median_of(|one| one.p50)?,
        median_of(|one| one.p90)?,
        median_of(|one| one.p99)?,
        median_of(|one| one.p999)?,
        units::time(longest),
    ])
}

fn of_side(exchanges: &ExchangeComparison, via: Via) -> impl Iterator<Item = &ExchangeSample> {
    exchanges.samples.iter().filter(move |one| one.via == via)
}

fn per_second(exchanges: &ExchangeComparison, via: Via) -> Option<f64> {
    let figures: Vec<f64> = of_side(exchanges, via).map(|one| one.per_second).collect();
    median(&figures)
}

#[cfg(test)]
mod tests {
    use wirespeed_doctor::Verdict;
    use wirespeed_facts::CountersDelta;
    use wirespeed_measure::{CUT_OFF, Estimate, NOT_BEGUN, NotMeasured};
    use wirespeed_words::{Language, within};

    use super::*;
    use crate::record::TestRecord;

    fn sample(via: Via, per_second: f64, failed: u64) -> ExchangeSample {
        let times = |by: f64| Percentiles {
            p50: 0.001 * by,
            p90: 0.002 * by,
            p99: 0.003 * by,
            p999: 0.004 * by,
            max: 0.005 * by,
        };
        ExchangeSample {
            via,
            at_once: 1000,
            wanted: 4000,
            completed: 4000 - failed,
            failed: [("connect: timed out".to_owned(), failed)]
                .into_iter()
                .filter(|(_, times)| *times > 0)
                .collect(),
            request: 256,
            response: 4096,
            seconds: 1.0,
            per_second,
            connect: Some(times(1.0)),
            first_byte: Some(times(2.0)),
            total: Some(times(3.0)),
            here: CountersDelta::default(),
            far: None,
        }
    }

    #[test]
    fn the_verdict_is_of_share_and_failures() {
        let found = |share: f64, failed: u64, pairs: usize| ExchangeComparison {
            at_once: 1000,
            ratio: Some(Estimate {
                value: share,
                low: share - 0.01,
                high: share + 0.01,
            }),
            bare_unknown: None,
            samples: (0..pairs)
                .flat_map(|_| {
                    [
                        sample(Via::Bare, 5000.0, 0),
                        sample(Via::Tunnel, 5000.0 * share, failed),
                    ]
                })
                .collect(),
            remarks: Vec::new(),
        };
        let verdict = |one: &ExchangeComparison| TestRecord::verdict_with(&[], Some(one), &[]);
        assert_eq!(verdict(&found(0.95, 0, 5)), Verdict::Healthy);
        assert_eq!(verdict(&found(0.95, 40, 5)), Verdict::Healthy);
        assert_eq!(verdict(&found(0.95, 41, 5)), Verdict::Findings);
        assert_eq!(verdict(&found(0.89, 0, 5)), Verdict::Healthy);
        assert_eq!(verdict(&found(0.88, 0, 5)), Verdict::Findings);
        assert_eq!(verdict(&found(0.5, 0, 4)), Verdict::Unmeasured);
        // Not through the tunnel at all: two samples tell.
        let mut dead = found(0.0, 4000, 2);
        assert_eq!(verdict(&dead), Verdict::Findings);
        dead.samples.truncate(2);
        assert_eq!(verdict(&dead), Verdict::Unmeasured);
        let alone = ExchangeComparison {
            bare_unknown: Some("no address".to_owned()),
            ratio: None,
            ..found(0.95, 0, 5)
        };
        assert_eq!(verdict(&alone), Verdict::Unmeasured);
        let missing = [NotMeasured {
            what: "upload".to_owned(),
            because: "no".to_owned(),
        }];
        let both = TestRecord::verdict_with(&[], Some(&found(0.95, 0, 5)), &missing);
        assert_eq!(both, Verdict::Unmeasured);
    }

    /// On a road that takes 14 s outside the tunnel and 16 s through it, of the 15 s that a sample has.
    #[test]
    fn what_had_no_time_to_end_is_no_failure_and_one_noisy_sample_no_finding() {
        let mut found = ExchangeComparison {
            at_once: 1000,
            ratio: Some(Estimate {
                value: 0.95,
                low: 0.94,
                high: 0.96,
            }),
            bare_unknown: None,
            samples: (0..5)
                .flat_map(|_| [sample(Via::Bare, 280.0, 0), sample(Via::Tunnel, 266.0, 0)])
                .collect(),
            remarks: Vec::new(),
        };
        let verdict = |one: &ExchangeComparison| TestRecord::verdict_with(&[], Some(one), &[]);
        for one in &mut found.samples {
            if one.via == Via::Tunnel {
                one.completed = 3700;
                one.failed.insert(CUT_OFF.to_owned(), 200);
                one.failed.insert(NOT_BEGUN.to_owned(), 100);
            }
        }
        assert_eq!(verdict(&found), Verdict::Healthy);
        let text = exchanges(&found, &Look::new(80, false, false));
        assert!(text.contains("no end  tunnel: under way"), "{text}");
        assert!(!text.contains("failed  tunnel"), "{text}");
        // The peer roams during one sample.
        let noisy = &mut found.samples[3];
        noisy.completed = 3000;
        noisy.failed.insert("answer: timed out".to_owned(), 1000);
        assert_eq!(verdict(&found), Verdict::Healthy);
    }

    #[test]
    fn both_sides_and_their_failures_are_told() {
        let mut found = ExchangeComparison {
            at_once: 1000,
            ratio: Some(Estimate {
                value: 0.8,
                low: 0.75,
                high: 0.85,
            }),
            bare_unknown: None,
            samples: vec![
                sample(Via::Bare, 5000.0, 0),
                sample(Via::Tunnel, 4000.0, 12),
            ],
            remarks: vec!["time was spent before the interval was narrow".to_owned()],
        };
        let look = Look::new(80, false, false);
        let text = exchanges(&found, &look);
        for part in [
            "Short exchanges, 1000 at once, 256 bytes asked and 4096 bytes answered",
            "5000",
            "3988",
            "connect: timed out, 12 times",
            "80 % of the road's",
            "first byte",
            "15.0 ms",
            "note",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let french = within(Language::French, || exchanges(&found, &look));
        for part in [
            "Échanges courts, 1000 à la fois",
            "connexion\u{202f}: délai dépassé, 12 fois",
            "99,9\u{202f}%",
        ] {
            assert!(french.contains(part), "{part} is missing in\n{french}");
        }
        assert!(
            french.lines().all(|line| line.chars().count() <= 80),
            "{french}"
        );
        assert_eq!(
            carried(Some(&found)).unwrap(),
            "the tunnel makes 80 % of the road's 5000 new connections per second (1000 at once)"
        );
        found.samples.remove(0);
        found.ratio = None;
        found.bare_unknown = Some("no address".to_owned());
        assert!(carried(Some(&found)).unwrap().contains("was not measured"));
        assert!(exchanges(&found, &look).contains("no address"));
    }
}
