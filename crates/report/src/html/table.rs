//! Tables: side by side on a wide page, one block for each row on a telephone.

use maud::{Markup, html};
use wirespeed_words::say;

use super::prose::prose;
use crate::room;

/// Rows of one table; the record has all of them.
const MOST_ROWS: usize = 60;
/// Letters of a word from which on it may be broken where figures stay whole.
const LONG_WORD: usize = 24;

/// One cell.
pub(super) struct Cell {
    text: String,
    number: bool,
}

impl Cell {
    pub(super) fn text(text: String) -> Self {
        Self {
            text,
            number: false,
        }
    }

    /// Stands at the right, with figures of one width.
    pub(super) fn number(text: String) -> Self {
        Self { text, number: true }
    }

    fn class(&self) -> Option<&'static str> {
        let mut words = self.text.split_whitespace();
        let long = words.any(|word| word.chars().count() >= LONG_WORD);
        self.number
            .then_some(if long { "number long" } else { "number" })
    }
}

/// A table whose heads are said again in every cell where there is no room for columns.
pub(super) fn table(heads: &[String], rows: &[Vec<Cell>]) -> Markup {
    let numbers = |column: usize| {
        rows.first()
            .and_then(|row| row.get(column))
            .is_some_and(|cell| cell.number)
    };
    html! {
        table {
            thead {
                tr {
                    @for (column, head) in heads.iter().enumerate() {
                        th scope="col" class=[numbers(column).then_some("number")] { (head) }
                    }
                }
            }
            tbody {
                @for row in rows.iter().take(MOST_ROWS) {
                    tr {
                        @for (cell, head) in row.iter().zip(heads) {
                            td data-head=(head) class=[cell.class()] { (prose(&room::cell(&cell.text))) }
                        }
                    }
                }
            }
        }
        @if rows.len() > MOST_ROWS {
            p.caption { (say!("html-more", count = rows.len() - MOST_ROWS)) }
        }
    }
}
