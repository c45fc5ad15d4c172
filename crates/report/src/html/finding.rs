//! Findings as cards: what is wrong, what shows it, and what helps.

use maud::{Markup, html};
use wirespeed_doctor::{EvidenceLine, Finding, Refusal, Remedy, Severity};
use wirespeed_measure::NotMeasured;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::prose::prose;
use super::room;
use super::table::{Cell, table};
use crate::room::{cell, commands, name};
use crate::{places, readers_words, typed, units};

/// What the commands of a report begin with and end in.
#[derive(Clone, Copy, Default)]
pub(super) struct Commands<'a> {
    /// The tunnel's interface.
    pub(super) interface: &'a str,
    /// Options that the user gave (` --far ssh://…`).
    pub(super) far_options: &'a str,
    /// Where they are to be typed (`  # on gw1`), when not here.
    pub(super) on: &'a str,
}

impl Commands<'_> {
    /// The tune that tries what is said of a finding.
    fn tune(self, code: &str) -> String {
        let (interface, far_options, on) = (shell_word(self.interface), self.far_options, self.on);
        format!("wirespeed tune {interface}{far_options} --only {code}{on}")
    }
}

/// Bytes of a page that findings have, that what follows from one has, and what could not be measured or would not help.
const ROOM: usize = 150_000;
const ROOM_EXPLAINED: usize = 20_000;
const ROOM_LISTED: usize = 40_000;

/// Every finding, worst first, with what follows from it.
pub(super) fn findings(all: &[Finding], fix: Commands<'_>) -> Markup {
    let causes: Vec<Option<usize>> = all.iter().map(|one| one.cause_in(all)).collect();
    let roots = all
        .iter()
        .enumerate()
        .filter(|(_, finding)| finding.consequence_of.is_none());
    let (cards, left) = room::of_page(ROOM, roots, |(place, finding)| {
        let explained = all.iter().zip(&causes);
        let explained = explained.filter(|(_, cause)| **cause == Some(place));
        let finding = readers_words::finding(finding);
        card(&finding, explained.map(|(one, _)| one), fix)
    });
    html! { (cards) (room::more(left)) }
}

fn card<'a>(
    finding: &Finding,
    explained: impl Iterator<Item = &'a Finding>,
    fix: Commands<'_>,
) -> Markup {
    let (explained, left) = room::of_page(ROOM_EXPLAINED, explained, |one| {
        html! { li { code { (name(&one.code)) } " – " (prose(&places::told(&one.because))) } }
    });
    let tried = finding.remedies.iter().any(|one| !one.changes.is_empty());
    html! {
        article class={ "finding " (class_of(finding.severity)) } data-code=(name(&finding.code)) {
            header {
                p.badges {
                    b.badge { (severity_word(finding.severity)) }
                    span { (place(finding)) }
                    span.sure { (say!("html-sure", share = units::percent(finding.confidence))) }
                }
                h3 { (title_of(&finding.code)) }
                p.code { code { (name(&finding.code)) } }
            }
            p.because { (prose(&finding.because)) }
            @if !explained.0.is_empty() {
                p.sub { (say!("html-explains")) }
                ul { (explained) }
                (room::more(left))
            }
            @if !finding.evidence.is_empty() {
                h4 { (say!("html-evidence")) }
                (evidence(&finding.evidence))
            }
            @if tried {
                h4 { (say!("html-fix")) }
                p { (say!("html-fix-note")) }
                (pre(&[fix.tune(&finding.code)]))
            }
            @if !finding.remedies.is_empty() {
                h4 { (say!("html-remedies", count = finding.remedies.len())) }
                ol.remedies { @for one in &finding.remedies { li { (remedy(one)) } } }
            }
            (refused(&finding.refused))
            p.more { (say!("html-read-on")) " " code { "wirespeed explain " (name(&finding.code)) } }
        }
    }
}

fn class_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

fn severity_word(severity: Severity) -> String {
    match severity {
        Severity::Critical => say!("html-severity-critical"),
        Severity::Warning => say!("html-severity-warning"),
        Severity::Info => say!("html-severity-info"),
    }
}

/// The title of a cause; a code of another version stands for itself.
pub(super) fn title_of(code: &str) -> String {
    let known = wirespeed_doctor::codes();
    let title = known.into_iter().find(|(one, _)| *one == code);
    title.map_or_else(|| name(code), |(_, title)| title)
}

fn place(finding: &Finding) -> String {
    let host = name(&finding.host);
    match finding.direction {
        Some(direction) => say!(
            "html-place-direction",
            host = host,
            direction = direction.word()
        ),
        None => say!("html-place", host = host),
    }
}

fn evidence(lines: &[EvidenceLine]) -> Markup {
    let heads = [
        say!("html-evidence-what"),
        say!("html-evidence-where"),
        say!("html-evidence-before"),
        say!("html-evidence-after"),
    ];
    let known = |value: Option<String>| match value {
        Some(text) => Cell::number(text),
        None => Cell::number("–".to_owned()),
    };
    let rows: Vec<Vec<Cell>> = lines
        .iter()
        .map(|line| {
            vec![
                Cell::text(line.what.clone()),
                Cell::text(line.r#where.clone()),
                known(units::value(&line.before, &line.unit)),
                known(units::value(&line.after, &line.unit)),
            ]
        })
        .collect();
    table(&heads, &rows)
}

fn remedy(remedy: &Remedy) -> Markup {
    let notes = [
        (say!("html-risk"), remedy.risk.clone()),
        (say!("html-keep"), remedy.persistence.clone()),
        (say!("html-undo"), remedy.undo.clone()),
    ];
    html! {
        p { (prose(&remedy.title)) }
        @if !remedy.commands.is_empty() {
            (pre(&remedy.commands))
        } @else if !remedy.changes.is_empty() {
            p.note { (prose(&say!("html-remedy-by-tune"))) }
        }
        @if notes.iter().any(|(_, text)| !text.is_empty()) {
            details {
                summary { (say!("html-remedy-notes")) }
                dl {
                    @for (name, text) in &notes {
                        @if !text.is_empty() {
                            dt { (name) }
                            dd { @if typed::is_typed(text) { (pre(&text.lines().collect::<Vec<_>>())) } @else { (prose(text)) } }
                        }
                    }
                }
            }
        }
    }
}

fn pre<T: AsRef<str>>(lines: &[T]) -> Markup {
    html! { pre { (commands(lines).join("\n")) } }
}

/// What people try that would not help.
pub(super) fn refused(refused: &[Refusal]) -> Markup {
    html! {
        @if !refused.is_empty() {
            @let (listed, left) = room::of_page(ROOM_LISTED, refused, |one| {
                let one = readers_words::refusal(one);
                html! { dt { (prose(&one.remedy)) } dd { (prose(&one.why)) } }
            });
            h4 { (say!("html-refused")) }
            dl.refused { (listed) }
            (room::more(left))
        }
    }
}

/// What could not be measured or checked, and why.
pub(super) fn missing(items: &[NotMeasured]) -> Markup {
    let before = std::iter::once(None).chain(items.iter().map(Some));
    let (listed, left) = room::of_page(ROOM_LISTED, items.iter().zip(before), |(one, before)| {
        let told = readers_words::not_measured(one);
        html! {
            @if before.is_none_or(|before| before.what != one.what) { dt { (cell(&told.what)) } }
            dd { (prose(&told.because)) }
        }
    });
    html! {
        dl.missing { (listed) }
        (room::more(left))
    }
}
