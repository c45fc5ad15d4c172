//! The frame of a report: one file that loads nothing and runs nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use wirespeed_words::{language, say};

use super::palette;
use crate::room::clean;

/// What a browser may do with the page: show it, with the styles in it. No script runs, nothing is loaded, nothing is sent.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("style.css");

/// What stands on top of a report.
pub(super) struct Top {
    /// What kind of report (`Diagnosis`).
    pub(super) kind: String,
    /// What it is about (`wg0 → gw2`).
    pub(super) about: String,
    /// When it was measured, seconds since the Unix epoch.
    pub(super) when: Option<f64>,
    /// How it was measured, at the foot, where the page shows what was.
    pub(super) how: Option<String>,
}

/// One file.
pub(super) fn page(top: &Top, sections: &[Section]) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang=(language().tag()) {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="robots" content="noindex";
                meta name="generator" content={ "wirespeed " (env!("CARGO_PKG_VERSION")) };
                title { (clean(&top.about)) " – " (top.kind) " – wirespeed" }
                style { (PreEscaped(palette::properties())) (PreEscaped(STYLE)) }
            }
            body {
                header.top {
                    p.brand { "wirespeed" }
                    p.kind {
                        (top.kind)
                        @if let Some(when) = top.when.and_then(moment) {
                            " · " time datetime={ (when.replace(' ', "T")) "Z" } { (when) " UTC" }
                        }
                    }
                    h1 { (clean(&top.about)) }
                }
                main {
                    @for section in sections {
                        section id=(section.id) {
                            @if !section.title.is_empty() { h2 { (clean(&section.title)) } }
                            (section.body)
                        }
                    }
                }
                footer {
                    @if let Some(how) = &top.how { p { (how) } }
                    p { (say!("html-footer-made", version = env!("CARGO_PKG_VERSION"))) }
                }
            }
        }
    };
    markup.into_string()
}

/// A part of a report.
pub(super) struct Section {
    pub(super) id: &'static str,
    /// Empty where the part needs none.
    pub(super) title: String,
    pub(super) body: Markup,
}

/// `2026-11-21 16:55`, in UTC; `None` for what is no moment of the years 1970 to 9999.
fn moment(seconds: f64) -> Option<String> {
    if !(0.0..253_402_300_800.0).contains(&seconds) {
        return None;
    }
    let minutes = (seconds / 60.0) as u64;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Days of the era of 400 years that begins on 1 March 0000 ("chrono-compatible low-level date algorithms", Howard Hinnant).
    let from_era = days + 719_468;
    let (era, day) = (from_era / 146_097, from_era % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (
        day - (153 * month + 2) / 5 + 1,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (minute / 60, minute % 60);
    Some(format!(
        "{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_days_of_the_calendar() {
        for (seconds, expected) in [
            (0.0, Some("1970-01-01 00:00")),
            (951_782_400.0, Some("2000-02-29 00:00")),
            (1_795_247_141.2, Some("2026-11-21 07:45")),
            (4_107_542_399.0, Some("2100-02-28 23:59")),
            (-1.0, None),
            (f64::NAN, None),
            (1e300, None),
        ] {
            assert_eq!(moment(seconds).as_deref(), expected, "{seconds}");
        }
    }
}
