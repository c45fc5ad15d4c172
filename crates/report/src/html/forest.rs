//! Values with their intervals, row by row: shares of the road, gains of remedies, a sweep of rates.

use maud::html;
use wirespeed_doctor::{CongestionTrial, Goal};
use wirespeed_measure::{Comparison, Estimate, RateSweep, SweepStep};
use wirespeed_tune::Experiment;
use wirespeed_words::{say, units};

use super::rows::{Row, rows, words_of};
use super::svg::{Drawn, Entry, Figure, LEFT, Marks, Quantity, RIGHT, Scale, level, px, upright};
use crate::measured_text;

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
    steps.sort_by(|one, other| {
        let by_cap = key(one).total_cmp(&key(other));
        by_cap.then(one.goodput.total_cmp(&other.goodput))
    });
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
        }
        @if let Some(step) = steps.last().filter(|step| step.cap.is_none()) {
            @let (x, y) = (along.at(open_end), up.at(step.goodput));
            text.mark x=(px(x + 6.0)) y=(px(y - 9.0)) text-anchor="end" { (say!("html-sweep-no-cap")) }
        }
    };
    Figure {
        kind: "sweep",
        title,
        drawn: Ok(Drawn {
            caption: say!(
                "html-sweep-caption",
                found = &found,
                by = sweep.capped_by_words()
            ),
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
