//! Findings as cards: what is wrong, what shows it, and what helps.

use maud::{Markup, html};
use wirespeed_doctor::{EvidenceLine, Finding, Refusal, Remedy, Severity};
use wirespeed_measure::NotMeasured;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::prose::prose;
use super::table::{Cell, table};
use crate::look::clean;
use crate::{readers_words, typed, units};

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

/// Every finding, worst first, with what follows from it.
pub(super) fn findings(all: &[Finding], commands: Commands<'_>) -> Markup {
    let all: Vec<Finding> = all.iter().map(readers_words::finding).collect();
    let roots = all
        .iter()
        .enumerate()
        .filter(|(_, finding)| finding.consequence_of.is_none());
    html! {
        @for (place, finding) in roots {
            @let explained: Vec<&Finding> = all
                .iter()
                .filter(|one| one.cause_in(&all) == Some(place))
                .collect();
            (card(finding, &explained, commands))
        }
    }
}

fn card(finding: &Finding, explained: &[&Finding], commands: Commands<'_>) -> Markup {
    let tried = finding.remedies.iter().any(|one| !one.changes.is_empty());
    html! {
        article class={ "finding " (class_of(finding.severity)) } data-code=(clean(&finding.code)) {
            header {
                p.badges {
                    b.badge { (severity_word(finding.severity)) }
                    span { (place(finding)) }
                    span.sure { (say!("html-sure", share = units::percent(finding.confidence))) }
                }
                h3 { (title_of(&finding.code)) }
                p.code { code { (clean(&finding.code)) } }
            }
            p.because { (prose(&finding.because)) }
            @if !explained.is_empty() {
                p.sub { (say!("html-explains")) }
                ul {
                    @for one in explained {
                        li { code { (clean(&one.code)) } " – " (prose(&one.because)) }
                    }
                }
            }
            @if !finding.evidence.is_empty() {
                h4 { (say!("html-evidence")) }
                (evidence(&finding.evidence))
            }
            @if tried {
                h4 { (say!("html-fix")) }
                p { (say!("html-fix-note")) }
                pre {
                    "wirespeed tune " (clean(&shell_word(commands.interface))) (clean(commands.far_options))
                    " --only " (clean(&finding.code)) (clean(commands.on))
                }
            }
            @if !finding.remedies.is_empty() {
                h4 { (say!("html-remedies", count = finding.remedies.len())) }
                ol.remedies { @for one in &finding.remedies { li { (remedy(one)) } } }
            }
            (refused(&finding.refused))
            p.more { (say!("html-read-on")) " " code { "wirespeed explain " (clean(&finding.code)) } }
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
    title.map_or_else(|| clean(code), |(_, title)| title)
}

fn place(finding: &Finding) -> String {
    let host = clean(&finding.host);
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
        Some(text) => Cell::number(clean(&text)),
        None => Cell::number("–".to_owned()),
    };
    let rows: Vec<Vec<Cell>> = lines
        .iter()
        .map(|line| {
            vec![
                Cell::text(clean(&line.what)),
                Cell::text(clean(&line.r#where)),
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
            pre { (clean(&remedy.commands.join("\n"))) }
        }
        @if notes.iter().any(|(_, text)| !text.is_empty()) {
            details {
                summary { (say!("html-remedy-notes")) }
                dl {
                    @for (name, text) in &notes {
                        @if !text.is_empty() {
                            dt { (name) }
                            dd { @if typed::is_typed(text) { pre { (clean(text)) } } @else { (prose(text)) } }
                        }
                    }
                }
            }
        }
    }
}

/// What people try that would not help.
pub(super) fn refused(refused: &[Refusal]) -> Markup {
    html! {
        @if !refused.is_empty() {
            h4 { (say!("html-refused")) }
            dl.refused {
                @for one in refused.iter().map(readers_words::refusal) { dt { (prose(&one.remedy)) } dd { (prose(&one.why)) } }
            }
        }
    }
}

/// What could not be measured or checked, and why.
pub(super) fn missing(items: &[NotMeasured]) -> Markup {
    let items: Vec<NotMeasured> = items.iter().map(readers_words::not_measured).collect();
    html! {
        dl.missing {
            @for same in items.chunk_by(|one, next| one.what == next.what) {
                dt { (clean(&same[0].what)) }
                @for one in same { dd { (prose(&one.because)) } }
            }
        }
    }
}
