//! What every chart is made of: scales, axes and the frame with its alternative text.
//!
//! The charts are markup like the rest of the page, so the same escaping holds for the names in them, and their colours are
//! classes: one drawing serves light and dark screens and paper. A charting library would fix colours and places of text when it
//! draws (plotters' SVG backend writes both into each element and has no titles for what it draws).

use maud::{Markup, html};
use wirespeed_words::{say, units};

use super::prose::prose;
use crate::room::{clean, cut};

/// Charts are drawn as wide as the column of a telephone, in CSS pixels, and grow with theirs.
pub(super) const WIDTH: f64 = 360.0;
/// Where the plotted area ends on the right.
pub(super) const RIGHT: f64 = 352.0;
/// Room for the numbers of an axis on the left.
pub(super) const LEFT: f64 = 40.0;
/// Letters of the words that tell a chart.
const MOST_WORDS: usize = 8000;

/// A chart on the page, or why there is none.
pub(super) struct Figure {
    /// Which chart (`throughput`), for styles and tests.
    pub(super) kind: &'static str,
    pub(super) title: String,
    pub(super) drawn: Result<Drawn, String>,
}

/// A chart that has something to show.
pub(super) struct Drawn {
    /// What to know when reading it.
    pub(super) caption: String,
    /// Names of the two sides of a comparison, in the order of the classes `s0` and `s1`.
    pub(super) legend: Vec<Entry>,
    /// The figures in words, for those who can't see them.
    pub(super) words: String,
    pub(super) height: f64,
    pub(super) body: Markup,
}

/// One entry of a legend.
pub(super) struct Entry {
    pub(super) class: String,
    pub(super) name: String,
}

impl Entry {
    pub(super) fn new(class: impl Into<String>, name: String) -> Self {
        Self {
            class: class.into(),
            name,
        }
    }
}

/// The charts of a section, in a grid.
pub(super) fn grid(figures: &[Figure]) -> Markup {
    html! {
        div.charts {
            @for (index, one) in figures.iter().enumerate() { (figure(one, index)) }
        }
    }
}

fn figure(one: &Figure, index: usize) -> Markup {
    let id = format!("{}-{index}", one.kind);
    html! {
        figure data-chart=(one.kind) data-drawn=(one.drawn.is_ok()) {
            figcaption {
                h3 { (clean(&one.title)) }
                @if let Ok(drawn) = &one.drawn {
                    @if !drawn.legend.is_empty() {
                        ul.legend {
                            @for entry in &drawn.legend { li { i class=(entry.class) {} (clean(&entry.name)) } }
                        }
                    }
                }
            }
            @match &one.drawn {
                Ok(drawn) => {
                    svg viewBox={ "0 0 " (px(WIDTH)) " " (px(drawn.height)) } role="img" aria-labelledby={ (id) "-title " (id) "-words" } {
                        title id={ (id) "-title" } { (clean(&one.title)) }
                        desc id={ (id) "-words" } { (cut(&drawn.words, MOST_WORDS)) }
                        (drawn.body)
                    }
                    @if !drawn.caption.is_empty() { p.caption { (clean(&drawn.caption)) } }
                }
                Err(why) => { p.absent { b { (say!("html-no-chart")) } " " (prose(why)) } }
            }
        }
    }
}

/// From a quantity to its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Place of `from`.
    pub(super) low: f64,
    /// Place of `to`.
    pub(super) high: f64,
}

impl Scale {
    /// The place of a value; beyond the ends of the scale, its end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let span = self.to - self.from;
        let share = if span > 0.0 {
            ((value - self.from) / span).clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.low + share * (self.high - self.low)
    }
}

/// What the numbers of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// bit/s.
    Rate,
    Bytes,
    Seconds,
    /// 0 to 1.
    Share,
    Count,
}

impl Quantity {
    /// Of the unit of an experiment or an evidence line.
    pub(super) fn of_unit(unit: &str) -> Self {
        match unit {
            "bit/s" => Self::Rate,
            "bytes" => Self::Bytes,
            "s" => Self::Seconds,
            "share" | "ratio" => Self::Share,
            _ => Self::Count,
        }
    }

    /// The unit that suits numbers up to `largest`: what to divide by, and its name.
    fn unit(self, largest: f64) -> (f64, String) {
        let powers = |step: f64, first: f64| {
            let mut by = first;
            while largest >= by * step && by < 1e30 {
                by *= step;
            }
            by
        };
        // The name as a number of that size has it behind it.
        let name = |text: String| {
            let unit = text.rsplit(['\u{202f}', ' ']).next().unwrap_or_default();
            unit.to_owned()
        };
        match self {
            Self::Rate => {
                let by = powers(1000.0, 1.0);
                (by, name(units::rate(by)))
            }
            Self::Bytes => {
                let by = powers(1024.0, 1.0);
                let shown = if by > 1.0 { 20.0 * by } else { by };
                (by, name(units::bytes(shown)))
            }
            Self::Seconds => {
                let by = powers(1000.0, 1e-6).min(1.0);
                (by, name(units::time(2.0 * by)))
            }
            Self::Share => (0.01, "%".to_owned()),
            Self::Count => (1.0, String::new()),
        }
    }
}

/// The marks of an axis: round numbers of one unit.
pub(super) struct Marks {
    /// Value and text.
    pub(super) marks: Vec<(f64, String)>,
    /// Unit of all of them.
    pub(super) unit: String,
}

impl Marks {
    /// Marks around all of `low` to `high`, some `wanted` of them.
    pub(super) fn new(quantity: Quantity, low: f64, high: f64, wanted: usize) -> Self {
        let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
        let (low, mut high) = (finite(low), finite(high));
        if high <= low {
            high = low + if low == 0.0 { 1.0 } else { low.abs() };
        }
        let (by, unit) = quantity.unit(low.abs().max(high.abs()));
        let least = if quantity == Quantity::Count {
            1.0
        } else {
            0.0
        };
        let step = round_step((high - low) / by / wanted as f64).max(least);
        let first = (low / by / step + 1e-9).floor();
        let last = (high / by / step - 1e-9).ceil();
        let marks = (0..=((last - first) as usize).min(4 * wanted))
            .map(|index| (first + index as f64) * step)
            .map(|number| (number * by, plain(number)))
            .collect();
        Self { marks, unit }
    }

    pub(super) fn first(&self) -> f64 {
        self.marks.first().map_or(0.0, |mark| mark.0)
    }

    pub(super) fn last(&self) -> f64 {
        self.marks.last().map_or(1.0, |mark| mark.0)
    }
}

/// 1, 2 or 5 times a power of ten, and at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    if !power.is_finite() || power <= 0.0 {
        return 1.0;
    }
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|times| times * power)
        .find(|round| *round >= step * 0.999)
        .unwrap_or(10.0 * power)
}

/// A round number as the language writes it, without zeros behind its places.
pub(super) fn plain(number: f64) -> String {
    let text = units::count((number * 1e6).round() / 1e6);
    if text.contains(['.', ',']) {
        text.trim_end_matches('0')
            .trim_end_matches(['.', ','])
            .to_owned()
    } else {
        text.replace('-', "−")
    }
}

/// Lines across at the marks of an upright axis, their numbers, and the unit above.
pub(super) fn upright(marks: &Marks, scale: Scale) -> Markup {
    html! {
        @for (value, text) in &marks.marks {
            @let y = scale.at(*value);
            line.grid x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(y)) y2=(px(y)) {}
            text.mark x=(px(LEFT - 5.0)) y=(px(y + 4.0)) text-anchor="end" { (text) }
        }
        text.mark x="0" y=(px(scale.high - 9.0)) { (marks.unit) }
    }
}

/// Lines up and down at the marks of a level axis between two heights, with the numbers and the unit below.
pub(super) fn level(marks: &Marks, scale: Scale, top: f64, bottom: f64) -> Markup {
    let mut places = marks
        .marks
        .iter()
        .map(|(value, text)| (scale.at(*value), text));
    let last = places.next_back();
    // The last number has the unit, and all the room that needs.
    let last = last.map(|(x, text)| (x, x.max(RIGHT), format!("{text} {}", marks.unit)));
    let taken = last
        .as_ref()
        .map_or(f64::INFINITY, |(_, end, text)| end - letters(text));
    html! {
        @for (x, text) in places {
            line.grid x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(bottom)) {}
            @if x + letters(text) / 2.0 + 4.0 < taken {
                text.mark x=(px(x)) y=(px(bottom + 14.0)) text-anchor="middle" { (text) }
            }
        }
        @if let Some((x, end, text)) = &last {
            line.grid x1=(px(*x)) x2=(px(*x)) y1=(px(top)) y2=(px(bottom)) {}
            text.mark x=(px(*end)) y=(px(bottom + 14.0)) text-anchor="end" { (text) }
        }
    }
}

/// A place or a size as an attribute: a tenth of a pixel is fine enough.
pub(super) fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A text that takes no more than so many pixels: cut in the middle, where names differ least.
pub(super) fn fit(text: &str, pixels: f64) -> String {
    let text = clean(text);
    if letters(&text) <= pixels {
        return text;
    }
    let half = (pixels - letter('…')) / 2.0;
    let all: Vec<char> = text.chars().collect();
    if all.len() < 3 {
        return text;
    }
    // At least one letter at either end.
    let front = reach(all.iter(), half).max(1);
    let back = reach(all.iter().rev(), half).max(1);
    let mut out: String = all[..front].iter().collect();
    out.push('…');
    out.extend(&all[all.len() - back..]);
    out
}

/// How many letters take no more than so many pixels.
fn reach<'a>(letters: impl Iterator<Item = &'a char>, pixels: f64) -> usize {
    letters
        .scan(0.0, |width, one| {
            *width += letter(*one);
            Some(*width)
        })
        .take_while(|width| *width <= pixels)
        .count()
}

/// Pixels that a text of a chart takes at most.
pub(super) fn letters(text: &str) -> f64 {
    text.chars().map(letter).sum()
}

/// Pixels of one letter at 11 of them, in the widest of the fonts that a page may have (`DejaVu Sans`).
fn letter(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | '’' | '/' | '-'
        | ' ' | '\u{a0}' | '\u{202f}' => 3.9,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' => 4.5,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 10.9,
        '→' | '←' | '<' | '>' | '=' | '+' | '−' | '~' | '#' => 9.3,
        _ if c.is_ascii_uppercase() => 8.2,
        // Beyond the alphabets: signs as wide as they are high.
        '\u{2e80}'.. => 11.5,
        _ => 6.8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirespeed_words::{Language, within};

    #[test]
    fn marks_are_round_numbers_of_a_unit_that_suits() {
        let texts = |marks: &Marks| {
            let numbers: Vec<&str> = marks.marks.iter().map(|mark| mark.1.as_str()).collect();
            format!("{} {}", numbers.join(" "), marks.unit)
        };
        for (marks, expected) in [
            (Marks::new(Quantity::Rate, 0.0, 93e6, 4), "0 50 100 Mbit/s"),
            (
                Marks::new(Quantity::Rate, 0.0, 1.9e9, 4),
                "0 0.5 1 1.5 2 Gbit/s",
            ),
            (
                Marks::new(Quantity::Bytes, 0.0, 3.0 * 1024.0 * 1024.0, 4),
                "0 1 2 3 MiB",
            ),
            (
                Marks::new(Quantity::Seconds, 0.0, 0.043, 4),
                "0 20 40 60 ms",
            ),
            (Marks::new(Quantity::Share, 0.0, 1.0, 4), "0 50 100 %"),
            (Marks::new(Quantity::Count, 0.0, 0.0, 4), "0 1 "),
            (Marks::new(Quantity::Rate, -3e6, 9e6, 4), "−5 0 5 10 Mbit/s"),
        ] {
            assert_eq!(texts(&marks), expected);
        }
        let french = within(Language::French, || {
            texts(&Marks::new(Quantity::Bytes, 0.0, 1.5 * 1024.0 * 1024.0, 4))
        });
        assert_eq!(french, "0 0,5 1 1,5 Mio");
        assert!(
            Marks::new(Quantity::Rate, 0.0, f64::INFINITY, 4)
                .marks
                .len()
                > 1
        );
        assert!(Marks::new(Quantity::Rate, 0.0, 1e308, 4).marks.len() < 20);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(fit("wg0", 60.0), "wg0");
        assert_eq!(
            fit("ssh://root@a-very-long-name.example.org", 62.0),
            "ssh:….org"
        );
        for name in ["W".repeat(300), "漢".repeat(300), "i".repeat(300)] {
            let cut = fit(&name, 100.0);
            assert!(cut.contains('…') && letters(&cut) <= 100.0, "{cut}");
        }
        assert_eq!(fit("WWW", 1.0), "W…W");
    }

    #[test]
    fn places_are_numbers_whatever_the_value() {
        let scale = Scale {
            from: 0.0,
            to: 1.0,
            low: 100.0,
            high: 0.0,
        };
        assert_eq!(px(scale.at(2.0)), "0");
        assert_eq!(px(scale.at(0.25)), "75");
        assert_eq!(px(f64::NAN), "0");
    }
}
