//! Values with their intervals, row by row: shares of the road, gains of remedies, round trips, a sweep of rates.

use maud::{Markup, html};
use wirespeed_doctor::{CongestionTrial, Goal};
use wirespeed_facts::Known;
use wirespeed_measure::{Comparison, Estimate, RateSweep, RttSummary, Sample, SweepStep, Via};
use wirespeed_tune::Experiment;
use wirespeed_words::{say, units};

use super::svg::{
    Drawn, Entry, Figure, LEFT, Marks, Quantity, RIGHT, Scale, WIDTH, fit, level, px, upright,
};
use crate::measured_text;

/// One row: a point between two ends.
struct Row {
    name: String,
    /// Class of the mark.
    class: &'static str,
    low: f64,
    value: f64,
    high: f64,
    /// What stands at the right of its name.
    text: String,
    /// What stands below, where there is too much to say.
    detail: Option<String>,
}

impl Row {
    fn words(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.text),
            None => self.text.clone(),
        }
    }
}

const ROW: f64 = 34.0;
/// With a line of details.
const TALL: f64 = 50.0;
const TOP: f64 = 8.0;
const SIDE: f64 = 8.0;

/// Rows below each other on one level axis; `line` is a place on it with its name.
fn rows(
    rows: &[Row],
    quantity: Quantity,
    ends: (f64, f64),
    line: Option<&(f64, String)>,
) -> (f64, Markup) {
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let low = rows
        .iter()
        .map(|row| finite(row.low))
        .fold(ends.0, f64::min);
    let high = rows
        .iter()
        .map(|row| finite(row.high))
        .fold(ends.1, f64::max);
    let marks = Marks::new(quantity, low, high, 6);
    let along = Scale {
        from: marks.first(),
        to: marks.last(),
        low: SIDE + 4.0,
        high: WIDTH - SIDE,
    };
    let head = if line.is_some() { 14.0 } else { 0.0 };
    let tall = rows.iter().any(|row| row.detail.is_some());
    let step = if tall { TALL } else { ROW };
    let bottom = TOP + head + rows.len() as f64 * step + 2.0;
    let body = html! {
        (level(&marks, along, TOP + head, bottom))
        @if let Some((value, name)) = line {
            @let x = along.at(*value);
            line.limit x1=(px(x)) x2=(px(x)) y1=(px(TOP + head - 4.0)) y2=(px(bottom)) {}
            @let anchor = if x > WIDTH / 2.0 { "end" } else { "start" };
            text.mark x=(px(if x > WIDTH / 2.0 { x + 4.0 } else { x - 4.0 })) y="12" text-anchor=(anchor) { (name) }
        }
        @for (index, row) in rows.iter().enumerate() {
            @let y = TOP + head + index as f64 * step + 25.0;
            @let room = WIDTH - 2.0 * SIDE - row.text.chars().count() as f64 * 6.4 - 12.0;
            text.row x=(px(SIDE + 4.0)) y=(px(y - 9.0)) { (fit(&row.name, room)) }
            @if let Some(detail) = &row.detail {
                text.mark x=(px(WIDTH - SIDE)) y=(px(y + 17.0)) text-anchor="end" { (detail) }
            }
            text.value x=(px(WIDTH - SIDE)) y=(px(y - 9.0)) text-anchor="end" { (row.text) }
            @let (from, to) = (along.at(row.low), along.at(row.high));
            line class={ "span " (row.class) } x1=(px(from)) x2=(px(to)) y1=(px(y)) y2=(px(y)) {}
            line class={ "end " (row.class) } x1=(px(from)) x2=(px(from)) y1=(px(y - 4.0)) y2=(px(y + 4.0)) {}
            line class={ "end " (row.class) } x1=(px(to)) x2=(px(to)) y1=(px(y - 4.0)) y2=(px(y + 4.0)) {}
            circle class={ "dot " (row.class) } cx=(px(along.at(row.value))) cy=(px(y)) r="4.5" {}
        }
    };
    (bottom + 22.0, body)
}

fn words_of(rows: &[Row]) -> String {
    let words: Vec<String> = rows
        .iter()
        .map(|row| say!("html-row-words", name = &row.name, text = row.words()))
        .collect();
    words.join(" ")
}

/// What the tunnel carries of its road.
pub(super) fn shares(comparisons: &[Comparison], healthy: f64) -> Figure {
    let found: Vec<Row> = comparisons
        .iter()
        .filter_map(|comparison| {
            let value = comparison.ratio?;
            let low = comparison.ratio_low.unwrap_or(value);
            let high = comparison.ratio_high.unwrap_or(value);
            Some(Row {
                name: measured_text::title(comparison),
                class: if high < healthy { "below" } else { "s1" },
                low,
                value,
                high,
                text: with_interval(value, low, high),
                detail: None,
            })
        })
        .collect();
    let unknown = comparisons.iter().find_map(|one| one.bare_unknown.as_ref());
    let drawn = if found.is_empty() {
        Err(match unknown {
            Some(why) => say!("html-shares-absent-because", why = why),
            None => say!("html-shares-absent"),
        })
    } else {
        let limit = say!("html-shares-limit", share = units::percent(healthy));
        let (height, body) = rows(&found, Quantity::Share, (0.0, 1.0), Some(&(healthy, limit)));
        Ok(Drawn {
            caption: say!("html-shares-caption"),
            legend: Vec::new(),
            words: words_of(&found),
            height,
            body,
        })
    };
    Figure {
        kind: "shares",
        title: say!("html-shares-title"),
        drawn,
    }
}

fn between(low: f64, high: f64, unit: &str) -> String {
    say!(
        "html-interval",
        low = units::signed(low, unit),
        high = units::signed(high, unit)
    )
}

fn with_interval(value: f64, low: f64, high: f64) -> String {
    say!(
        "html-with-interval",
        value = units::percent(value),
        low = units::percent(low),
        high = units::percent(high)
    )
}

/// Round trips without load and under it, outside the tunnel and through it.
pub(super) fn round_trips(
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
            let all: Vec<&RttSummary> = comparison
                .of(via)
                .filter_map(|sample| sample.loaded_rtt.as_ref())
                .collect();
            found.extend(row_of(&all, name, class));
        }
    }
    for (via, class) in [(Via::Bare, "s0"), (Via::Tunnel, "s1")] {
        for direction in [
            wirespeed_measure::Direction::Upload,
            wirespeed_measure::Direction::Download,
        ] {
            let of_these = soaks
                .iter()
                .filter(|one| one.load.via == via && one.load.direction == direction);
            let all: Vec<&RttSummary> =
                of_these.filter_map(|one| one.loaded_rtt.as_ref()).collect();
            let word = direction.word();
            let name = match via {
                Via::Bare => say!("html-rtt-soak-road", direction = word),
                Via::Tunnel => say!("html-rtt-soak-tunnel", direction = word),
            };
            found.extend(row_of(&all, name, class));
        }
    }
    let why = idle.into_iter().flatten().find_map(|rtt| match rtt {
        Known::Unknown(why) => Some(why),
        Known::Value(_) => None,
    });
    let drawn = if found.is_empty() {
        Err(match why {
            Some(why) => say!("html-rtt-absent-because", why = why),
            None => say!("html-rtt-absent"),
        })
    } else {
        let (height, body) = rows(&found, Quantity::Seconds, (0.0, 0.0), None);
        Ok(Drawn {
            caption: say!("html-rtt-caption"),
            legend: vec![
                Entry::new("s0", say!("html-road")),
                Entry::new("s1", say!("html-tunnel")),
            ],
            words: words_of(&found),
            height,
            body,
        })
    };
    Figure {
        kind: "rtt",
        title: say!("html-rtt-title"),
        drawn,
    }
}

/// The middle one of several trains, from the smallest of all to the largest of the 95th percentiles.
fn row_of(all: &[&RttSummary], name: String, class: &'static str) -> Option<Row> {
    let of = |figure: fn(&RttSummary) -> Option<f64>| all.iter().filter_map(move |rtt| figure(rtt));
    let medians: Vec<f64> = of(|rtt| rtt.median).collect();
    let value = wirespeed_measure::statistics::median(&medians)?;
    let low = of(|rtt| rtt.min).fold(value, f64::min);
    let high = of(|rtt| rtt.p95).fold(value, f64::max);
    Some(Row {
        name,
        class,
        low,
        value,
        high,
        text: say!(
            "html-rtt-text",
            median = units::time(value),
            high = units::time(high)
        ),
        detail: None,
    })
}

/// What each remedy gained, one chart for each unit.
pub(super) fn gains(experiments: &[Experiment]) -> Vec<Figure> {
    let absent = || Figure {
        kind: "gains",
        title: say!("html-gains-title"),
        drawn: Err(say!("html-gains-absent")),
    };
    let mut figures = Vec::new();
    for (goal, title) in [
        (Goal::Goodput, say!("html-gains-title-goodput")),
        (Goal::LoadedRtt, say!("html-gains-title-rtt")),
    ] {
        let of_goal: Vec<&Experiment> = experiments.iter().filter(|one| one.goal == goal).collect();
        let Some(first) = of_goal.first() else {
            continue;
        };
        let found: Vec<Row> = of_goal
            .iter()
            .map(|one| Row {
                name: one.code.clone(),
                class: if one.kept { "kept" } else { "back" },
                low: one.gain_low,
                value: one.gain,
                high: one.gain_high,
                text: units::signed(one.gain, &one.unit),
                detail: Some(between(one.gain_low, one.gain_high, &one.unit)),
            })
            .collect();
        figures.push(gain_figure(
            title,
            &found,
            Quantity::of_unit(&first.unit),
            gain_legend(&of_goal),
        ));
    }
    if figures.is_empty() {
        figures.push(absent());
    }
    figures
}

fn gain_legend(experiments: &[&Experiment]) -> Vec<Entry> {
    let mut legend = Vec::new();
    if experiments.iter().any(|one| one.kept) {
        legend.push(Entry::new("kept", say!("html-kept")));
    }
    if experiments.iter().any(|one| !one.kept) {
        legend.push(Entry::new("back", say!("html-put-back")));
    }
    legend
}

/// Other congestion controls that the doctor tried on sockets of its own; the only remedies it tries.
pub(super) fn trials(trials: &[CongestionTrial]) -> Figure {
    let found: Vec<Row> = trials
        .iter()
        .map(|trial| {
            let Estimate { value, low, high } = trial.gain;
            Row {
                name: say!(
                    "html-trial-name",
                    tried = &trial.tried,
                    current = &trial.current,
                    direction = trial.direction.word()
                ),
                class: if low > 0.0 { "kept" } else { "back" },
                low,
                value,
                high,
                text: units::signed(value, "share"),
                detail: Some(between(low, high, "share")),
            }
        })
        .collect();
    if found.is_empty() {
        return Figure {
            kind: "gains",
            title: say!("html-gains-title"),
            drawn: Err(say!("html-gains-absent-doctor")),
        };
    }
    let mut legend = Vec::new();
    if found.iter().any(|row| row.class == "kept") {
        legend.push(Entry::new("kept", say!("html-helps")));
    }
    if found.iter().any(|row| row.class == "back") {
        legend.push(Entry::new("back", say!("html-no-clear-gain")));
    }
    gain_figure(say!("html-trials-title"), &found, Quantity::Share, legend)
}

fn gain_figure(title: String, found: &[Row], quantity: Quantity, legend: Vec<Entry>) -> Figure {
    let (height, body) = rows(
        found,
        quantity,
        (0.0, 0.0),
        Some(&(0.0, say!("html-no-gain"))),
    );
    Figure {
        kind: "gains",
        title,
        drawn: Ok(Drawn {
            caption: say!("html-gains-caption"),
            legend,
            words: words_of(found),
            height,
            body,
        }),
    }
}

/// The rates that were tried: what arrived of each cap, and how long packets waited.
pub(super) fn sweep(sweep: &RateSweep) -> Figure {
    let title = say!("html-sweep-title", direction = sweep.direction.word());
    if sweep.steps.is_empty() {
        return no_sweep();
    }
    let mut steps: Vec<&SweepStep> = sweep.steps.iter().collect();
    let key = |step: &SweepStep| step.cap.unwrap_or(f64::INFINITY);
    steps.sort_by(|one, other| key(one).total_cmp(&key(other)));
    let capped = || steps.iter().filter_map(|step| step.cap);
    let highest_cap = capped().fold(0.0, f64::max);
    // Without a cap there is no place on the axis: it stands behind the highest.
    let open_end =
        highest_cap.max(steps.iter().map(|step| step.goodput).fold(0.0, f64::max)) * 1.15;
    let up_marks = Marks::new(Quantity::Rate, 0.0, open_end / 1.15, 4);
    let along_marks = Marks::new(Quantity::Rate, 0.0, open_end, 4);
    let (top, bottom) = (26.0, 170.0);
    let up = Scale {
        from: 0.0,
        to: up_marks.last(),
        low: bottom,
        high: top,
    };
    let along = Scale {
        from: 0.0,
        to: along_marks.last(),
        low: LEFT,
        high: RIGHT,
    };
    let diagonal = along_marks.last().min(up_marks.last());
    let words: Vec<String> = steps
        .iter()
        .map(|step| {
            let cap = step
                .cap
                .map_or_else(|| say!("html-sweep-no-cap"), units::rate);
            let goodput = units::rate(step.goodput);
            if step.stable {
                say!("html-sweep-words-stable", cap = cap, goodput = goodput)
            } else {
                say!("html-sweep-words-unstable", cap = cap, goodput = goodput)
            }
        })
        .collect();
    let found = match sweep.stable_cap {
        Some(cap) => say!("html-sweep-found", cap = units::rate(cap)),
        None => say!("html-sweep-none-stable"),
    };
    let body = html! {
        (upright(&up_marks, up))
        (level(&along_marks, along, bottom, bottom))
        line.axis x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(bottom)) y2=(px(bottom)) {}
        line.ideal x1=(px(along.at(0.0))) y1=(px(up.at(0.0))) x2=(px(along.at(diagonal))) y2=(px(up.at(diagonal))) {}
        @if let Some(cap) = sweep.stable_cap {
            line.limit x1=(px(along.at(cap))) x2=(px(along.at(cap))) y1=(px(top)) y2=(px(bottom)) {}
        }
        @for (step, said) in steps.iter().zip(&words) {
            @let (x, y) = (along.at(step.cap.unwrap_or(open_end)), up.at(step.goodput));
            @if step.stable {
                circle class="dot kept" cx=(px(x)) cy=(px(y)) r="4.5" { title { (said) } }
            } @else {
                path class="cross" d={ "M" (px(x - 4.0)) " " (px(y - 4.0)) "l8 8m0-8l-8 8" } { title { (said) } }
            }
            @if step.cap.is_none() {
                text.mark x=(px(x + 6.0)) y=(px(y - 9.0)) text-anchor="end" { (say!("html-sweep-no-cap")) }
            }
        }
    };
    Figure {
        kind: "sweep",
        title,
        drawn: Ok(Drawn {
            caption: say!("html-sweep-caption", found = &found, by = &sweep.capped_by),
            legend: vec![
                Entry::new("kept", say!("html-sweep-stable")),
                Entry::new("cross", say!("html-sweep-unstable")),
            ],
            words: format!("{found} {}", words.join(" ")),
            height: 194.0,
            body,
        }),
    }
}

/// No rates were tried.
pub(super) fn no_sweep() -> Figure {
    Figure {
        kind: "sweep",
        title: say!("html-sweep-title-absent"),
        drawn: Err(say!("html-sweep-absent")),
    }
}
