//! Rows below each other on one level axis: a name, and a point between two ends.

use maud::{Markup, html};
use wirespeed_words::say;

use super::svg::{Marks, Quantity, Scale, WIDTH, fit, letters, level, px};

/// One row: a point between two ends.
pub(super) struct Row {
    pub(super) name: String,
    /// Class of the mark.
    pub(super) class: &'static str,
    pub(super) low: f64,
    pub(super) value: f64,
    pub(super) high: f64,
    /// What stands at the right of its name.
    pub(super) text: String,
    /// More of it: in brackets where there is room, else below.
    pub(super) detail: Option<String>,
}

impl Row {
    fn words(&self) -> String {
        match &self.detail {
            Some(detail) => say!("html-row-detail", text = &self.text, detail = detail),
            None => self.text.clone(),
        }
    }
}

const ROW: f64 = 34.0;
/// With a line of details.
const TALL: f64 = 50.0;
const TOP: f64 = 8.0;
const SIDE: f64 = 8.0;
/// Where a row's name begins: behind a line at the lowest end of the axis.
const NAME: f64 = SIDE + 8.0;
/// What a row's name and figures have together.
const ROOM: f64 = WIDTH - SIDE - NAME;
/// Between a row's name and its figures.
const APART: f64 = 12.0;
/// A row's figures are no longer than this, so that its name has room, too.
const TEXT: f64 = 200.0;
/// Figures are bold.
const BOLD: f64 = 1.1;

/// The rows as a drawing, and its height; `line` is a place on the axis with its name.
pub(super) fn rows(
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
    let beside = |row: &Row| letters(&row.name) + APART + letters(&row.words()) * BOLD <= ROOM;
    let fits = rows.iter().all(beside);
    let tall = !fits && rows.iter().any(|row| row.detail.is_some());
    let most = if fits { ROOM } else { TEXT } / BOLD;
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
            @let text = if tall { fit(&row.text, most) } else { fit(&row.words(), most) };
            text.row x=(px(NAME)) y=(px(y - 9.0)) { (fit(&row.name, ROOM - APART - letters(&text) * BOLD)) }
            text.value x=(px(WIDTH - SIDE)) y=(px(y - 9.0)) text-anchor="end" { (text) }
            @if let Some(detail) = row.detail.as_ref().filter(|_| tall) {
                text.mark x=(px(WIDTH - SIDE)) y=(px(y + 17.0)) text-anchor="end" { (fit(detail, ROOM)) }
            }
            @let (from, to) = (along.at(row.low), along.at(row.high));
            line class={ "span " (row.class) } x1=(px(from)) x2=(px(to)) y1=(px(y)) y2=(px(y)) {}
            line class={ "end " (row.class) } x1=(px(from)) x2=(px(from)) y1=(px(y - 4.0)) y2=(px(y + 4.0)) {}
            line class={ "end " (row.class) } x1=(px(to)) x2=(px(to)) y1=(px(y - 4.0)) y2=(px(y + 4.0)) {}
            circle class={ "dot " (row.class) } cx=(px(along.at(row.value))) cy=(px(y)) r="4.5" {}
        }
    };
    (bottom + 22.0, body)
}

/// The same in words.
pub(super) fn words_of(rows: &[Row]) -> String {
    let words: Vec<String> = rows
        .iter()
        .map(|row| say!("html-row-words", name = &row.name, text = row.words()))
        .collect();
    words.join(" ")
}
