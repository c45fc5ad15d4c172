//! Round trips: idle and under load, on the road and through the tunnel, or without a change and with it.

use wirespeed_facts::Known;
use wirespeed_measure::statistics::median;
use wirespeed_measure::{Comparison, Direction, RttSummary, Sample, Via};
use wirespeed_tune::Stage;
use wirespeed_words::{say, units};

use super::rows::{Row, rows, words_of};
use super::svg::{Drawn, Entry, Figure, Quantity};
use super::timeline::Loads;
use super::tried;
use crate::measured_text;

/// Without load and under it, outside the tunnel and through it.
pub(super) fn idle_and_loaded(
    idle: [Option<&Known<RttSummary>>; 2],
    comparisons: &[Comparison],
    soaks: &[Sample],
) -> Figure {
    let mut found = Vec::new();
    let names = [say!("html-rtt-idle-road"), say!("html-rtt-idle-tunnel")];
    for ((rtt, name), class) in idle.into_iter().zip(names).zip(["s0", "s1"]) {
        found.extend(
            rtt.and_then(Known::value)
                .and_then(|rtt| row_of(&[rtt], name, class)),
        );
    }
    for comparison in comparisons {
        for (via, class) in [(Via::Bare, "s0"), (Via::Tunnel, "s1")] {
            let title = measured_text::title(comparison);
            let name = match via {
                Via::Bare => say!("html-rtt-loaded-road", what = title),
                Via::Tunnel => say!("html-rtt-loaded-tunnel", what = title),
            };
            found.extend(row_of(&loaded(comparison.of(via)), name, class));
        }
    }
    let mut long = Vec::new();
    for (via, class) in [(Via::Bare, "s0"), (Via::Tunnel, "s1")] {
        for direction in [Direction::Upload, Direction::Download] {
            let of_these = soaks
                .iter()
                .filter(|one| one.load.via == via && one.load.direction == direction);
            let word = direction.word();
            let name = match via {
                Via::Bare => say!("html-rtt-soak-road", direction = word),
                Via::Tunnel => say!("html-rtt-soak-tunnel", direction = word),
            };
            long.extend(row_of(&loaded(of_these), name, class));
        }
    }
    let mut caption = say!("html-rtt-caption");
    if !long.is_empty() {
        caption.push(' ');
        caption.push_str(&say!("html-rtt-caption-soaks"));
    }
    found.extend(long);
    let why = idle.into_iter().flatten().find_map(|rtt| match rtt {
        Known::Unknown(why) => Some(why),
        Known::Value(_) => None,
    });
    let absent = match why {
        Some(why) => say!("html-rtt-absent-because", why = why),
        None => say!("html-rtt-absent"),
    };
    let legend = vec![
        Entry::new("s0", say!("html-road")),
        Entry::new("s1", say!("html-tunnel")),
    ];
    figure(say!("html-rtt-title"), &found, caption, legend, absent)
}

/// Without load and under it, at each stage of a tune.
pub(super) fn of_stages(stages: &[Stage]) -> Figure {
    let mut found = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let name = tried::stage_name(index, stage);
        let idle = say!("html-rtt-stage-idle", stage = &name);
        let loaded = say!("html-rtt-stage-loaded", stage = &name);
        found.extend(stage.idle_rtt.map(|rtt| point(rtt, idle, "s0")));
        found.extend(stage.loaded_rtt.map(|rtt| point(rtt, loaded, "s1")));
    }
    figure(
        say!("html-rtt-title"),
        &found,
        say!("html-rtt-stages-caption"),
        Vec::new(),
        say!("html-rtt-absent"),
    )
}

fn point(seconds: f64, name: String, class: &'static str) -> Row {
    Row {
        name,
        class,
        low: seconds,
        value: seconds,
        high: seconds,
        text: units::time(seconds),
        detail: None,
    }
}

/// Under the loads of two sides, which the rows name.
pub(super) fn loaded_sides(loads: &Loads<'_>) -> Figure {
    let found: Vec<Row> = ["s0", "s1"]
        .into_iter()
        .enumerate()
        .filter_map(|(side, class)| {
            let of_side = loads.taken.iter().filter(|(one, _)| *one == side);
            let all = loaded(of_side.map(|(_, sample)| *sample));
            row_of(&all, loads.sides[side].clone(), class)
        })
        .collect();
    figure(
        say!("html-rtt-loads-title", what = &loads.title),
        &found,
        say!("html-rtt-caption"),
        Vec::new(),
        say!("html-rtt-loads-absent"),
    )
}

fn loaded<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<&'a RttSummary> {
    samples
        .filter_map(|sample| sample.loaded_rtt.as_ref())
        .collect()
}

fn figure(
    title: String,
    found: &[Row],
    caption: String,
    legend: Vec<Entry>,
    absent: String,
) -> Figure {
    let drawn = if found.is_empty() {
        Err(absent)
    } else {
        let (height, body) = rows(found, Quantity::Seconds, (0.0, 0.0), None);
        Ok(Drawn {
            caption,
            legend,
            words: words_of(found),
            height,
            body,
        })
    };
    Figure {
        kind: "rtt",
        title,
        drawn,
    }
}

/// The middle one of several trains, from the smallest of all to the largest of the 95th percentiles.
fn row_of(all: &[&RttSummary], name: String, class: &'static str) -> Option<Row> {
    let of = |figure: fn(&RttSummary) -> Option<f64>| all.iter().filter_map(move |rtt| figure(rtt));
    let medians: Vec<f64> = of(|rtt| rtt.median).collect();
    let value = median(&medians)?;
    let low = of(|rtt| rtt.min).fold(value, f64::min);
    let high = of(|rtt| rtt.p95).fold(value, f64::max);
    Some(Row {
        name,
        class,
        low,
        value,
        high,
        text: units::time(value),
        detail: Some(say!("html-rtt-high", high = units::time(high))),
    })
}
