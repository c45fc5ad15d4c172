//! Sparklines: figures over time, a line of characters for each side.
//!
//! Every side of a comparison is fitted with the others, so that a character stands for the same time in each of them, and
//! is drawn on a scale that the caller has them share. [`fit`] decides how many seconds a character stands for; [`Fitted::draw`]
//! makes the characters.

/// From nothing to the top of the scale.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same where only ASCII can be shown.
const DIGITS: [char; 10] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
/// The finest step, seconds: iperf3's smallest interval.
const FINEST: f64 = 0.1;
/// A character's time was measured when this share of it was.
const ENOUGH: f64 = 0.25;
/// Powers of ten of the steps that are tried: from a tenth of a second to over 10 years.
const POWERS: i32 = 10;

/// What was measured in some stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    /// Seconds from some beginning that all stretches of a run have in common.
    pub(crate) start: f64,
    /// How long it was.
    pub(crate) seconds: f64,
    /// The mean in it.
    pub(crate) value: f64,
}

impl Stretch {
    fn end(&self) -> f64 {
        self.start + self.seconds
    }

    fn is_sound(&self) -> bool {
        self.value.is_finite()
            && self.value >= 0.0
            && self.start.is_finite()
            && self.end() > self.start
            && self.end().is_finite()
    }
}

/// The stretches of one load; none when it was not measured in stretches.
pub(crate) type Run = Vec<Stretch>;

/// The characters of one side: the mean of each, run by run; `None` where nothing was measured.
pub(crate) type Cells = Vec<Vec<Option<f64>>>;

/// Sides with one step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fitted {
    /// Seconds that a character stands for.
    pub(crate) step: f64,
    /// Each side's characters, in the order given.
    pub(crate) sides: Vec<Cells>,
    /// A space parts the runs of a side.
    pub(crate) parted: bool,
}

/// The sides in at most `room` characters each; `None` when nothing was measured in stretches.
pub(crate) fn fit(sides: &[Vec<Run>], room: usize) -> Option<Fitted> {
    let sides: Vec<Vec<Run>> = sides
        .iter()
        .map(|runs| runs.iter().map(sound).collect())
        .collect();
    let finest = usual(&sides)?;
    let room = room.max(1);
    let mut steps = steps_from(finest);
    let step = steps.find(|step| sides.iter().all(|runs| columns(runs, *step) <= room));
    match step {
        Some(step) => Some(Fitted {
            step,
            sides: sides.iter().map(|runs| cells(runs, step)).collect(),
            parted: true,
        }),
        None => Some(together(&sides, room)),
    }
}

impl Fitted {
    /// The line of a side on a scale from 0 to `most`.
    pub(crate) fn draw(&self, side: usize, most: f64, ascii: bool) -> String {
        let runs = self.sides.get(side).map_or(&[][..], Vec::as_slice);
        let lines: Vec<String> = runs
            .iter()
            .map(|cells| cells.iter().map(|cell| mark(*cell, most, ascii)).collect())
            .collect();
        lines.join(if self.parted { " " } else { "" })
    }

    /// The lowest and the highest figure that a side shows.
    pub(crate) fn span(&self, side: usize) -> Option<(f64, f64)> {
        let shown = self.sides.get(side)?.iter().flatten().flatten().copied();
        let low = shown.clone().min_by(f64::total_cmp)?;
        let high = shown.max_by(f64::total_cmp)?;
        Some((low, high))
    }

    /// The highest figure of all sides.
    pub(crate) fn most(&self) -> f64 {
        let all = (0..self.sides.len()).filter_map(|side| self.span(side));
        all.map(|(_, high)| high).fold(0.0, f64::max)
    }

    /// Was something of a side not measured?
    pub(crate) fn has_gaps(&self, side: usize) -> bool {
        let cells = self.sides.get(side).into_iter().flatten().flatten();
        cells.into_iter().any(Option::is_none)
    }
}

/// What stands where nothing was measured.
pub(crate) fn gap(ascii: bool) -> char {
    if ascii { '.' } else { '·' }
}

/// What stands for the top of the scale.
pub(crate) fn full(ascii: bool) -> char {
    if ascii { DIGITS[9] } else { BLOCKS[7] }
}

fn mark(cell: Option<f64>, most: f64, ascii: bool) -> char {
    let Some(value) = cell else {
        return gap(ascii);
    };
    let marks = if ascii { &DIGITS[..] } else { &BLOCKS[..] };
    let share = if most > 0.0 { value / most } else { 0.0 };
    // A mean of equal figures may be one a hair below them.
    let level = (share.clamp(0.0, 1.0) * marks.len() as f64 + 1e-6) as usize;
    marks[level.min(marks.len() - 1)]
}

/// Without what has no place on a line, in the order of time.
fn sound(run: &Run) -> Run {
    let mut run: Run = run.iter().filter(|one| one.is_sound()).copied().collect();
    run.sort_by(|one, other| one.start.total_cmp(&other.start));
    run
}

/// The length that half of the stretches have at most.
fn usual(sides: &[Vec<Run>]) -> Option<f64> {
    let all = sides.iter().flatten().flatten();
    let mut lengths: Vec<f64> = all.map(|one| one.seconds).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied()
}

/// 1, 2 and 5 times the powers of ten, from about `finest` on.
fn steps_from(finest: f64) -> impl Iterator<Item = f64> {
    (0..POWERS)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| FINEST * digit * 10f64.powi(power)))
        .filter(move |step| *step >= finest * 0.9)
}

/// Seconds from the first beginning to the last end.
fn length(run: &Run) -> f64 {
    let end = run.iter().map(Stretch::end).fold(0.0, f64::max);
    run.first().map_or(0.0, |first| end - first.start)
}

/// Characters of a run: what is left at its end goes to the last one, or is one when it is half a step or more.
fn count(run: &Run, step: f64) -> usize {
    ((length(run) / step).round() as usize).max(1)
}

/// Characters of a side, with a space between two runs.
fn columns(runs: &[Run], step: f64) -> usize {
    let spaces = runs.len().saturating_sub(1);
    let each = runs.iter().map(|run| count(run, step));
    each.fold(spaces, usize::saturating_add)
}

/// The means of characters of `step` seconds.
fn cells(runs: &[Run], step: f64) -> Cells {
    runs.iter().map(|run| of_run(run, step)).collect()
}

fn of_run(run: &Run, step: f64) -> Vec<Option<f64>> {
    let count = count(run, step);
    let Some(first) = run.first() else {
        return vec![None];
    };
    let last = (length(run) / step).max(count as f64);
    let edge = |index: usize| if index == count { last } else { index as f64 };
    // For each character, how much of it was measured (in steps), and the sum of what was.
    let mut sums = vec![(0.0, 0.0); count];
    for one in run {
        let (from, to) = (
            (one.start - first.start) / step,
            (one.end() - first.start) / step,
        );
        let begin = (from as usize).min(count - 1);
        for (index, (measured, sum)) in sums.iter_mut().enumerate().skip(begin) {
            if edge(index) >= to {
                break;
            }
            let overlap = to.min(edge(index + 1)) - from.max(edge(index));
            if overlap > 0.0 {
                *measured += overlap;
                *sum += overlap * one.value;
            }
        }
    }
    sums.into_iter()
        .map(|(measured, sum)| (measured >= ENOUGH).then(|| sum / measured))
        .collect()
}

/// More runs than there is room for with a space between two: one character for one or several of them.
fn together(sides: &[Vec<Run>], room: usize) -> Fitted {
    let most = sides.iter().map(Vec::len).max().unwrap_or_default();
    let many = most.div_ceil(room).max(1);
    let mean = |runs: &[Run]| -> Option<f64> {
        let all = runs.iter().flatten();
        let seconds: f64 = all.clone().map(|one| one.seconds).sum();
        let sum: f64 = all.map(|one| one.seconds * one.value).sum();
        (seconds > 0.0).then(|| sum / seconds)
    };
    let seconds: f64 = sides.iter().flatten().map(length).sum();
    let characters: usize = sides.iter().map(|runs| runs.len().div_ceil(many)).sum();
    Fitted {
        step: seconds / characters.max(1) as f64,
        sides: sides
            .iter()
            .map(|runs| vec![runs.chunks(many).map(mean).collect()])
            .collect(),
        parted: false,
    }
}

#[cfg(test)]
mod tests;
