//! Charts over time: throughput of two sides in turn, and the sender's window above what it sent again.

use std::fmt::Write as _;

use maud::{Markup, html};
use wirespeed_doctor::End;
use wirespeed_measure::statistics::median;
use wirespeed_measure::{Comparison, PassiveWatch, Sample, Via};
use wirespeed_words::{say, units};

use super::series::{Point, Run, Timeline, What, timeline};
use super::svg::{Drawn, Entry, Figure, LEFT, Marks, Quantity, RIGHT, Scale, plain, px, upright};
use crate::measured_text;
use crate::record::MachineRecord;

/// The loads of two sides: road and tunnel, or without and with a change.
pub(super) struct Loads<'a> {
    /// Which loads (`upload TCP, 1 stream`).
    pub(super) title: String,
    pub(super) sides: [String; 2],
    /// Side and load, in the order taken.
    pub(super) taken: Vec<(usize, &'a Sample)>,
}

impl<'a> Loads<'a> {
    pub(super) fn of(comparison: &'a Comparison) -> Self {
        let side = |sample: &Sample| usize::from(sample.load.via == Via::Tunnel);
        let samples = comparison.samples.iter();
        Self {
            title: measured_text::title(comparison),
            sides: [say!("html-road"), say!("html-tunnel")],
            taken: samples.map(|sample| (side(sample), sample)).collect(),
        }
    }

    /// Where none was measured; its charts say so.
    pub(super) fn none() -> Self {
        Self {
            title: say!("html-no-loads"),
            sides: [String::new(), String::new()],
            taken: Vec::new(),
        }
    }
}

const TOP: f64 = 26.0;

/// Throughput over time.
pub(super) fn throughput(loads: &Loads<'_>) -> Figure {
    let title = say!("html-throughput-title", what = &loads.title);
    let Some(line) = timeline(&loads.taken, What::Rate) else {
        return Figure {
            kind: "throughput",
            title,
            drawn: Err(say!("html-throughput-absent")),
        };
    };
    let words: Vec<String> = sides_of(&line)
        .map(|side| {
            let of_side = loads.taken.iter().filter(|(one, _)| *one == side);
            let rates: Vec<f64> = of_side.clone().map(|(_, sample)| sample.rate).collect();
            let stalled = of_side.filter(|(_, sample)| sample.stalled).count();
            let (low, high) = span(&rates);
            let words = say!(
                "html-throughput-words",
                side = &loads.sides[side],
                runs = rates.len(),
                median = units::rate(median(&rates).unwrap_or_default()),
                low = units::rate(low),
                high = units::rate(high)
            );
            if stalled == 0 {
                words
            } else {
                format!(
                    "{words} {}",
                    say!("html-throughput-stalled", count = stalled)
                )
            }
        })
        .collect();
    Figure {
        kind: "throughput",
        title,
        drawn: Ok(Drawn {
            caption: caption(&line),
            legend: legend(&line, &loads.sides),
            words: words.join(" "),
            height: 190.0,
            body: panel(&line, Quantity::Rate, TOP, 160.0, Some(&of_load())),
        }),
    }
}

/// The congestion window over time, and below it what was sent again.
pub(super) fn window(loads: &Loads<'_>) -> Figure {
    let title = say!("html-window-title", what = &loads.title);
    let window = timeline(&loads.taken, What::Window);
    let again = timeline(&loads.taken, What::Retransmits);
    let drawn = match (window, again) {
        (None, None) if loads.taken.is_empty() => Err(say!("html-window-absent-no-load")),
        (None, None) => Err(say!("html-window-absent")),
        (window, again) => Ok(window_drawn(loads, window.as_ref(), again.as_ref())),
    };
    Figure {
        kind: "window",
        title,
        drawn,
    }
}

fn window_drawn(loads: &Loads<'_>, window: Option<&Timeline>, again: Option<&Timeline>) -> Drawn {
    let mut words = Vec::new();
    for side in 0..2 {
        let windows: Vec<f64> = values(window, side).collect();
        let (low, high) = span(&windows);
        if let Some(median) = median(&windows) {
            words.push(say!(
                "html-window-words",
                side = &loads.sides[side],
                median = units::bytes(median.round()),
                low = units::bytes(low.round()),
                high = units::bytes(high.round())
            ));
        }
        let resent: Vec<f64> = values(again, side).collect();
        if !resent.is_empty() {
            words.push(say!(
                "html-retransmits-words",
                side = &loads.sides[side],
                count = resent.iter().sum::<f64>().round()
            ));
        }
    }
    let absent = |y: f64, text: String| {
        html! { text.mark x=(px(LEFT)) y=(px(y)) { (text) } }
    };
    let body = html! {
        text.panel x=(px(LEFT)) y="12" { (say!("html-window-panel")) }
        @match window {
            Some(line) => (panel(line, Quantity::Bytes, 34.0, 118.0, None)),
            None => (absent(70.0, say!("html-window-unknown"))),
        }
        text.panel x=(px(LEFT)) y="142" { (say!("html-retransmits-panel")) }
        @match again {
            Some(line) => (bars(line, 164.0, 216.0)),
            None => (absent(180.0, say!("html-retransmits-unknown"))),
        }
    };
    let line = window.or(again);
    Drawn {
        caption: line.map(caption).unwrap_or_default(),
        legend: line.map_or_else(Vec::new, |line| legend(line, &loads.sides)),
        words: words.join(" "),
        height: 246.0,
        body,
    }
}

/// What flowed by itself: received and sent through the tunnel, slice by slice.
pub(super) fn watched(passive: &PassiveWatch, machines: &[MachineRecord]) -> Figure {
    let interface = machines
        .iter()
        .find(|machine| machine.end == End::Here)
        .and_then(|machine| machine.interface.clone())
        .unwrap_or_default();
    let title = say!("html-watched-title", interface = &interface);
    let mut runs: [Vec<Point>; 2] = [Vec::new(), Vec::new()];
    let mut begin = 0.0;
    let slices = &passive.here.slices;
    // A watch lasts an hour at most, in slices of a second or so.
    let together = slices.len().div_ceil(280).max(1);
    for chunk in slices.chunks(together) {
        let seconds: f64 = chunk.iter().map(|slice| slice.seconds).sum();
        let moved = |of: fn(&wirespeed_facts::LinkCounters) -> u64| -> f64 {
            let links = chunk.iter().filter_map(|slice| slice.links.get(&interface));
            links.map(|link| of(link) as f64 * 8.0).sum()
        };
        let bits = [moved(|link| link.rx_bytes), moved(|link| link.tx_bytes)];
        for (run, bits) in runs.iter_mut().zip(bits) {
            if seconds > 0.0 {
                let value = bits / seconds;
                run.push(Point {
                    from: begin,
                    to: begin + seconds,
                    value,
                    low: value,
                    high: value,
                    warm_up: false,
                });
            }
        }
        begin += seconds.max(0.0);
    }
    let sides = [say!("html-watched-in"), say!("html-watched-out")];
    let words: Vec<String> = runs
        .iter()
        .zip(&sides)
        .map(|(points, side)| {
            let rates: Vec<f64> = points.iter().map(|point| point.value).collect();
            say!(
                "html-watched-words",
                side = side,
                median = units::rate(median(&rates).unwrap_or_default()),
                high = units::rate(span(&rates).1)
            )
        })
        .collect();
    if runs.iter().all(Vec::is_empty) {
        return Figure {
            kind: "throughput",
            title,
            drawn: Err(say!("html-watched-absent")),
        };
    }
    let runs = runs.into_iter().enumerate();
    let line = Timeline {
        runs: runs.map(|(side, points)| Run { side, points }).collect(),
        seconds: begin,
        step: begin / slices.len().max(1) as f64 * together as f64,
        means_only: false,
    };
    Figure {
        kind: "throughput",
        title,
        drawn: Ok(Drawn {
            caption: String::new(),
            legend: legend(&line, &sides),
            words: words.join(" "),
            height: 190.0,
            body: panel(
                &line,
                Quantity::Rate,
                TOP,
                160.0,
                Some(&say!("html-watched-seconds")),
            ),
        }),
    }
}

fn sides_of(line: &Timeline) -> impl Iterator<Item = usize> {
    (0..2).filter(|side| line.runs.iter().any(|run| run.side == *side))
}

fn legend(line: &Timeline, sides: &[String; 2]) -> Vec<Entry> {
    sides_of(line)
        .map(|side| Entry::new(format!("s{side}"), sides[side].clone()))
        .collect()
}

/// How fine the points are, and what is faint.
fn caption(line: &Timeline) -> String {
    let mut out = if line.means_only {
        say!("html-caption-means")
    } else {
        say!("html-caption-step", step = plain(line.step))
    };
    let warm_up = line.runs.iter().flat_map(|run| &run.points);
    if warm_up.clone().any(|point| point.warm_up) {
        out.push(' ');
        out.push_str(&say!("html-caption-warm-up"));
    }
    out
}

fn values(line: Option<&Timeline>, side: usize) -> impl Iterator<Item = f64> {
    line.into_iter()
        .flat_map(|line| &line.runs)
        .filter(move |run| run.side == side)
        .flat_map(|run| &run.points)
        .filter(|point| !point.warm_up)
        .map(|point| point.value)
}

/// Least and most.
fn span(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().min_by(f64::total_cmp);
    let high = values.iter().copied().max_by(f64::total_cmp);
    (low.unwrap_or_default(), high.unwrap_or_default())
}

fn time_scale(line: &Timeline) -> (Marks, Scale) {
    let marks = Marks::new(Quantity::Count, 0.0, line.seconds, 5);
    let inside: Vec<(f64, String)> = marks
        .marks
        .into_iter()
        .filter(|(value, _)| *value <= line.seconds)
        .collect();
    let marks = Marks {
        marks: inside,
        unit: String::new(),
    };
    let scale = Scale {
        from: 0.0,
        to: line.seconds,
        low: LEFT,
        high: RIGHT,
    };
    (marks, scale)
}

/// From nothing to the highest point, with about so many marks.
fn level_scale(
    line: &Timeline,
    quantity: Quantity,
    marks: usize,
    top: f64,
    bottom: f64,
) -> (Marks, Scale) {
    let points = line.runs.iter().flat_map(|run| &run.points);
    let most = points.map(|point| point.value).fold(0.0, f64::max);
    let marks = Marks::new(quantity, 0.0, most, marks);
    let scale = Scale {
        from: 0.0,
        to: marks.last(),
        low: bottom,
        high: top,
    };
    (marks, scale)
}

/// What the level axis of loads is called.
fn of_load() -> String {
    say!("html-seconds-of-load")
}

/// The level axis of seconds, with its numbers and its name below.
fn seconds(line: &Timeline, bottom: f64, name: &str) -> Markup {
    let (marks, scale) = time_scale(line);
    let room = name.chars().count() as f64 * 5.8 + 16.0;
    html! {
        line.axis x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(bottom)) y2=(px(bottom)) {}
        @for (value, text) in &marks.marks {
            @let x = scale.at(*value);
            @if x < RIGHT - room {
                text.mark x=(px(x)) y=(px(bottom + 14.0)) text-anchor="middle" { (text) }
            }
        }
        text.mark x=(px(RIGHT)) y=(px(bottom + 14.0)) text-anchor="end" { (name) }
    }
}

/// Lines of both sides from `top` to `bottom`, above a level axis where that is named.
fn panel(line: &Timeline, quantity: Quantity, top: f64, bottom: f64, axis: Option<&str>) -> Markup {
    let (marks, up) = level_scale(line, quantity, 4, top, bottom);
    let (_, along) = time_scale(line);
    html! {
        (upright(&marks, up))
        @for run in &line.runs {
            @for warm_up in [true, false] {
                @let (outline, area) = paths(run, warm_up, along, up);
                @if !outline.is_empty() {
                    @let faint = if warm_up { " faint" } else { "" };
                    path class={ "area s" (run.side) (faint) } d=(area) {}
                    path class={ "line s" (run.side) (faint) } d=(outline) {}
                }
            }
        }
        @if let Some(name) = axis { (seconds(line, bottom, name)) }
    }
}

/// A line through the points of a run, and the area below it. The warm-up's line leads up to the first point that counts.
fn paths(run: &Run, warm_up: bool, along: Scale, up: Scale) -> (String, String) {
    let kept: Vec<&Point> = run
        .points
        .iter()
        .enumerate()
        .filter(|(index, point)| {
            let follows = warm_up && *index > 0 && run.points[index - 1].warm_up;
            point.warm_up == warm_up || follows
        })
        .map(|(_, point)| point)
        .collect();
    let places: Vec<(f64, f64)> = match kept.as_slice() {
        [] => return (String::new(), String::new()),
        // The one point of a warm-up without anything behind it, or the mean of a load.
        [one] => vec![(one.from, one.value), (one.to, one.value)],
        several => {
            let mut places: Vec<(f64, f64)> = several
                .iter()
                .map(|point| (point.middle(), point.value))
                .collect();
            if let (Some(first), Some(last)) = (several.first(), several.last()) {
                if first.warm_up == warm_up && (warm_up || !starts_warm(run)) {
                    places.insert(0, (first.from, first.value));
                }
                if !warm_up {
                    places.push((last.to, last.value));
                }
            }
            places
        }
    };
    let mut outline = String::new();
    for (index, (at, value)) in places.iter().enumerate() {
        let word = if index == 0 { 'M' } else { 'L' };
        let (x, y) = (px(along.at(*at)), px(up.at(*value)));
        let _ = write!(outline, "{word}{x} {y}");
    }
    let (first, last) = (places[0].0, places[places.len() - 1].0);
    let area = format!(
        "{outline}V{}H{}Z",
        px(up.low),
        px(along.at(first.min(last)))
    );
    (outline, area)
}

fn starts_warm(run: &Run) -> bool {
    run.points.first().is_some_and(|point| point.warm_up)
}

/// Bars of what was sent again.
fn bars(line: &Timeline, top: f64, bottom: f64) -> Markup {
    let (marks, up) = level_scale(line, Quantity::Count, 2, top, bottom);
    let (_, along) = time_scale(line);
    html! {
        (upright(&marks, up))
        @for run in &line.runs {
            @for point in run.points.iter().filter(|point| point.value > 0.0) {
                @let (x, y) = (along.at(point.from), up.at(point.value));
                @let width = (along.at(point.to) - x - 0.4).max(1.0);
                @let faint = if point.warm_up { " faint" } else { "" };
                rect class={ "bar s" (run.side) (faint) } x=(px(x)) y=(px(y)) width=(px(width)) height=(px(bottom - y)) {}
            }
        }
        (seconds(line, bottom, &of_load()))
    }
}
