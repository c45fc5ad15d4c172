//! Throughput and congestion window over time in the terminal: a sparkline for each side, with its scale and its figures
//! beside it.

use wirespeed_measure::{Comparison, Direction, Interval, Sample, Via};
use wirespeed_tune::Experiment;
use wirespeed_words::say;

use crate::doctor_text::told;
use crate::look::{Look, columns};
use crate::measured_text;
use crate::spark::{self, Fitted, Run, Stretch};
use crate::units;

/// Columns before the name of a line, and between name, line and figures.
const INDENT: usize = 2;
/// Columns for the figures, unless they turn out to need more.
const FIGURES: usize = 16;
/// A line has these characters even where the figures leave it less.
const LEAST: usize = 8;

/// What is drawn over time.
#[derive(Debug, Clone, Copy)]
enum What {
    Rate,
    Window,
}

impl What {
    fn of(self, interval: &Interval) -> Option<f64> {
        match self {
            Self::Rate => Some(interval.rate),
            Self::Window => interval.congestion_window.map(|bytes| bytes as f64),
        }
    }

    fn in_words(self, value: f64) -> String {
        match self {
            Self::Rate => units::rate(value),
            Self::Window => units::bytes(value.round()),
        }
    }
}

/// The loads of one side, in the order taken.
struct Side<'a> {
    name: String,
    loads: Vec<&'a Sample>,
}

impl Side<'_> {
    fn runs(&self, what: What) -> Vec<Run> {
        self.loads.iter().map(|load| run(load, what)).collect()
    }
}

/// What has to be said below lines for them to be understood.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    drawn: bool,
    parted: bool,
    gaps: bool,
}

impl Remarks {
    /// A side was drawn.
    fn note(&mut self, fitted: &Fitted, side: usize) {
        self.drawn = true;
        self.parted |= fitted.parted && fitted.sides[side].len() > 1;
        self.gaps |= fitted.has_gaps(side);
    }

    /// Nothing when nothing was drawn.
    pub(crate) fn paragraph(&self, look: &Look) -> String {
        if !self.drawn {
            return String::new();
        }
        let mut all = vec![if self.parted {
            say!("report-over-time-parted")
        } else {
            say!("report-over-time-whole")
        }];
        if self.gaps {
            let gap = spark::gap(look.ascii).to_string();
            all.push(say!("report-over-time-gap", gap = gap));
        }
        look.paragraph(INDENT, &all.join(" "))
    }
}

/// The throughput of road and tunnel in every comparison; nothing when no load was measured in intervals.
pub(crate) fn throughput(comparisons: &[Comparison], look: &Look) -> String {
    let mut remarks = Remarks::default();
    let mut lines = String::new();
    for comparison in comparisons {
        let title = measured_text::title(comparison);
        let sides = sides_of(comparison);
        lines.push_str(&drawn(&title, What::Rate, &sides, look, &mut remarks));
    }
    under(&say!("report-over-time"), &lines, &remarks, look)
}

/// The tunnel's throughput on the scale of its road, a line for each direction whose road was measured: of the comparison
/// that carries least.
pub(crate) fn tunnels(comparisons: &[Comparison], look: &Look) -> String {
    let worst: Vec<&Comparison> = [Direction::Upload, Direction::Download]
        .into_iter()
        .filter_map(|direction| {
            let of_direction = comparisons
                .iter()
                .filter(|one| one.direction == direction && one.bare.is_some());
            let share = |one: &Comparison| one.ratio.unwrap_or(f64::INFINITY);
            of_direction.min_by(|one, other| share(one).total_cmp(&share(other)))
        })
        .collect();
    let names = worst.iter().map(|one| columns(&one.direction.word()));
    let width = names.max().unwrap_or_default();
    // All of them with one step; each direction has its own scale.
    let runs: Vec<Vec<Run>> = worst
        .iter()
        .flat_map(|one| sides_of(one))
        .map(|side| side.runs(What::Rate))
        .collect();
    let top = |fitted: &Fitted, road: usize| {
        let both = [road, road + 1].into_iter();
        let highest = both.filter_map(|side| Some(fitted.span(side)?.1));
        highest.fold(0.0, f64::max)
    };
    let figures = |fitted: &Fitted| -> Vec<String> {
        let of_direction = |index: usize| match fitted.span(2 * index + 1) {
            Some((low, high)) => {
                let top = units::rate(top(fitted, 2 * index));
                let span = span(What::Rate, low, high, look);
                // Where the two have different units, each keeps its own.
                let span = match (parted(&units::rate(low)), parted(&span), parted(&top)) {
                    (Some((_, lower)), Some((number, unit)), Some((_, same)))
                        if lower == unit && unit == same =>
                    {
                        number
                    }
                    _ => span.as_str(),
                };
                say!("report-over-time-of", span = span, most = &top)
            }
            None => String::new(),
        };
        (0..worst.len()).map(of_direction).collect()
    };
    let Some((fitted, figures)) = fitted(&runs, width, look, &figures) else {
        return String::new();
    };
    let (mut lines, mut remarks) = (String::new(), Remarks::default());
    for (index, (comparison, figures)) in worst.iter().zip(&figures).enumerate() {
        let (road, tunnel) = (2 * index, 2 * index + 1);
        if fitted.span(tunnel).is_some() {
            let marks = fitted.draw(tunnel, top(&fitted, road), look.ascii);
            let name = comparison.direction.word();
            lines.push_str(&line(&name, width, &marks, figures));
            remarks.note(&fitted, tunnel);
        }
    }
    lines.push_str(&look.paragraph(
        INDENT,
        &say!(
            "report-over-time-top",
            full = spark::full(look.ascii).to_string(),
            step = step(fitted.step)
        ),
    ));
    under(&say!("report-over-time-tunnel"), &lines, &remarks, look)
}

/// Throughput and window of a comparison, among its details.
pub(crate) fn details(comparison: &Comparison, look: &Look, remarks: &mut Remarks) -> String {
    let sides = sides_of(comparison);
    let mut out = String::new();
    for (title, what) in [
        (say!("report-over-time-rate"), What::Rate),
        (say!("report-over-time-window"), What::Window),
    ] {
        out.push_str(&drawn(&title, what, &sides, look, remarks));
    }
    out
}

/// The throughput without a change and with it, direction by direction, among the details of an experiment.
pub(crate) fn experiment(experiment: &Experiment, look: &Look) -> String {
    let mut remarks = Remarks::default();
    let mut out = String::new();
    for direction in [Direction::Upload, Direction::Download] {
        let of_direction = experiment.samples.iter();
        let of_direction = of_direction.filter(|sample| sample.load.direction == direction);
        // As it was and changed, in turn.
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for (index, sample) in of_direction.enumerate() {
            if index % 2 == 0 {
                without.push(sample);
            } else {
                with.push(sample);
            }
        }
        let sides = [
            Side {
                name: say!("report-over-time-without"),
                loads: without,
            },
            Side {
                name: say!("report-over-time-with"),
                loads: with,
            },
        ];
        let title = say!("report-over-time-direction", direction = direction.word());
        out.push_str(&drawn(&title, What::Rate, &sides, look, &mut remarks));
    }
    out.push_str(&remarks.paragraph(look));
    out
}

fn sides_of(comparison: &Comparison) -> [Side<'_>; 2] {
    let side = |name: String, via: Via| Side {
        name,
        loads: comparison.of(via).collect(),
    };
    [
        side(say!("report-road"), Via::Bare),
        side(say!("report-tunnel"), Via::Tunnel),
    ]
}

/// The stretches of a load that count.
fn run(sample: &Sample, what: What) -> Run {
    let counted = sample.intervals.iter().filter(|one| !one.warm_up);
    counted
        .filter_map(|one| {
            Some(Stretch {
                start: one.start,
                seconds: one.seconds,
                value: what.of(one)?,
            })
        })
        .collect()
}

/// What it is, with the scale that both sides have in common, and below it a line for each.
fn drawn(
    title: &str,
    what: What,
    sides: &[Side<'_>; 2],
    look: &Look,
    remarks: &mut Remarks,
) -> String {
    let there = || sides.iter().filter(|side| !side.loads.is_empty());
    let runs: Vec<Vec<Run>> = there().map(|side| side.runs(what)).collect();
    let width = there().map(|side| columns(&side.name)).max();
    let width = width.unwrap_or_default();
    let figures = |fitted: &Fitted| -> Vec<String> {
        let span_of = |side| match fitted.span(side) {
            Some((low, high)) => span(what, low, high, look),
            None => String::new(),
        };
        (0..fitted.sides.len()).map(span_of).collect()
    };
    let Some((fitted, figures)) = fitted(&runs, width, look, &figures) else {
        return String::new();
    };
    let scale = say!(
        "report-over-time-scale",
        full = spark::full(look.ascii).to_string(),
        most = what.in_words(fitted.most()),
        step = step(fitted.step)
    );
    let mut out = look.paragraph(INDENT, &told(title, &scale));
    for (index, (side, figures)) in there().zip(&figures).enumerate() {
        let marks = fitted.draw(index, fitted.most(), look.ascii);
        remarks.note(&fitted, index);
        out.push_str(&line(&side.name, width, &marks, figures));
    }
    out
}

/// Sides with as many characters as a line has room for beside a name of `width` and these figures, and the figures.
fn fitted(
    sides: &[Vec<Run>],
    width: usize,
    look: &Look,
    figures: &dyn Fn(&Fitted) -> Vec<String>,
) -> Option<(Fitted, Vec<String>)> {
    let mut reserved = FIGURES;
    loop {
        let taken = INDENT + width + INDENT + INDENT + reserved;
        let fitted = spark::fit(sides, look.width.saturating_sub(taken).max(LEAST))?;
        let figures = figures(&fitted);
        let needed = figures.iter().map(|one| columns(one)).max();
        // Means over longer times have other figures, which may be longer; each time there is less to change.
        match needed {
            Some(needed) if needed > reserved => reserved = needed,
            _ => return Some((fitted, figures)),
        }
    }
}

fn line(name: &str, width: usize, marks: &str, figures: &str) -> String {
    let indent = " ".repeat(INDENT);
    let pad = " ".repeat(width.saturating_sub(columns(name)));
    let line = format!("{indent}{name}{pad}{indent}{marks}{indent}{figures}");
    format!("{}\n", line.trim_end())
}

/// Tenths of a second, or seconds: no more digits than a step has.
fn step(seconds: f64) -> String {
    let places = usize::from(seconds < 1.0);
    if seconds < 90.0 {
        units::fixed(seconds, places, "s")
    } else {
        units::time(seconds)
    }
}

/// `88.1–96.4 Mbit/s`: the unit once where both have it.
fn span(what: What, low: f64, high: f64, look: &Look) -> String {
    let dash = if look.ascii { "-" } else { "–" };
    let (low, high) = (what.in_words(low), what.in_words(high));
    if low == high {
        return high;
    }
    match (parted(&low), parted(&high)) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}{dash}{high}"),
        _ => format!("{low} {dash} {high}"),
    }
}

/// A number, and its unit.
fn parted(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once([' ', '\u{202f}'])
}

fn under(heading: &str, lines: &str, remarks: &Remarks, look: &Look) -> String {
    if !remarks.drawn {
        return String::new();
    }
    format!(
        "\n{}\n{lines}{}",
        look.bold(heading),
        remarks.paragraph(look)
    )
}
