//! Lists in the terminal: some of each, and how many more there are, which the details have.

use wirespeed_measure::NotMeasured;
use wirespeed_words::say;

use crate::doctor_text::told;
use crate::look::Look;
use crate::readers_words;

/// What could not be measured or tried, and what would not help, shown without `-v`.
pub(crate) const LISTED: usize = 12;

/// A list of what could not be measured or tried, and why, below its heading.
pub(crate) fn all_missing(heading: &str, items: &[NotMeasured], look: &Look) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", look.bold(heading));
    let shown = at_most(LISTED, look);
    for item in items.iter().take(shown) {
        out.push_str(&missing(item, look));
    }
    out.push_str(&more(items.len(), shown, look));
    out
}

/// A line of such a list.
pub(crate) fn missing(item: &NotMeasured, look: &Look) -> String {
    let item = readers_words::not_measured(item);
    look.hanging("  - ", 4, &told(&item.what, &item.because))
}

/// How many of a list are shown: all of them among the details.
pub(crate) fn at_most(shown: usize, look: &Look) -> usize {
    if look.details { usize::MAX } else { shown }
}

/// How many are left of a list of which some are shown.
pub(crate) fn more(all: usize, shown: usize, look: &Look) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        left => look.paragraph(4, &say!("report-more", left = left)),
    }
}
