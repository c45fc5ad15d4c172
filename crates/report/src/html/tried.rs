//! What a tune tried: each experiment as a card, and the tunnel before and after.

use maud::{Markup, html};
use wirespeed_doctor::Goal;
use wirespeed_measure::{Direction, Sample};
use wirespeed_tune::{Experiment, Stage};
use wirespeed_words::say;

use super::finding::title_of;
use super::prose::prose;
use super::room;
use super::table::{Cell, table};
use super::timeline::Loads;
use super::verdict::sentence;
use crate::room::{cell, clean, name};
use crate::{tune_text, units};

/// Bytes of a page that experiments have.
const ROOM: usize = 150_000;

/// One remedy after the other.
pub(super) fn experiments(all: &[Experiment]) -> Markup {
    let (cards, left) = room::of_page(ROOM, all, card);
    html! { (cards) (room::more(left)) }
}

fn card(one: &Experiment) -> Markup {
    let heads = [
        say!("html-guard"),
        say!("html-without"),
        say!("html-with"),
        say!("html-guard-held"),
    ];
    let rows: Vec<Vec<Cell>> = one
        .guards
        .iter()
        .map(|guard| {
            vec![
                Cell::text(guard_word(&guard.name)),
                Cell::number(units::in_unit(guard.before, &guard.unit)),
                Cell::number(units::in_unit(guard.after, &guard.unit)),
                Cell::text(match (guard.comparable, guard.held) {
                    (false, _) => say!("html-guard-not-comparable"),
                    (true, true) => say!("html-guard-yes"),
                    (true, false) => say!("html-guard-no"),
                }),
            ]
        })
        .collect();
    html! {
        article class={ "finding " (if one.kept { "kept" } else { "back" }) } data-code=(name(&one.code)) {
            header {
                p.badges { b.badge { (if one.kept { say!("html-kept") } else { say!("html-put-back") }) } }
                h3 { (title_of(&one.code)) }
                p.code { code { (name(&one.code)) } }
            }
            p.because {
                (say!(
                    "html-change",
                    what = cell(&one.setting),
                    before = cell(&tune_text::value(one, &one.before)),
                    after = cell(&tune_text::value(one, &one.after))
                ))
            }
            p { (clean(&measured(one))) " " b { (clean(&gain(one))) } }
            p.note { (prose(&sentence(&one.why))) }
            @if !rows.is_empty() {
                h4 { (say!("html-guards")) }
                (table(&heads, &rows))
            }
            @if one.changes.len() > 1 {
                details {
                    summary { (say!("html-changes", count = one.changes.len())) }
                    ul {
                        @for made in &one.changes {
                            li {
                                (say!(
                                    "html-change-on",
                                    host = name(&made.host),
                                    what = cell(&made.setting.describe()),
                                    before = cell(&tune_text::setting_value(&made.setting, &made.before)),
                                    after = cell(&tune_text::setting_value(&made.setting, &made.after))
                                ))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn measured(one: &Experiment) -> String {
    let before = units::in_unit(one.measured_before, &one.unit);
    let after = units::in_unit(one.measured_after, &one.unit);
    match one.goal {
        Goal::Goodput => say!("html-measured-goodput", before = before, after = after),
        Goal::LoadedRtt => say!("html-measured-rtt", before = before, after = after),
    }
}

fn gain(one: &Experiment) -> String {
    say!(
        "html-measured-gain",
        gain = units::signed(one.gain, &one.unit),
        low = units::signed(one.gain_low, &one.unit),
        high = units::signed(one.gain_high, &one.unit)
    )
}

fn guard_word(guard: &str) -> String {
    match guard {
        "loaded-rtt" => say!("html-guard-loaded-rtt"),
        "goodput" => say!("html-guard-goodput"),
        "drops" => say!("html-guard-drops"),
        "cpu-per-byte" => say!("html-guard-cpu-per-byte"),
        other => name(other),
    }
}

/// The loads of an experiment, one entry for each direction it used; without the change first, then with it, in turn.
pub(super) fn loads(one: &Experiment) -> Vec<Loads<'_>> {
    [Direction::Upload, Direction::Download]
        .into_iter()
        .filter_map(|direction| {
            let samples: Vec<&Sample> = one
                .samples
                .iter()
                .filter(|sample| sample.load.direction == direction)
                .collect();
            (!samples.is_empty()).then(|| Loads {
                title: format!("{}, {}", name(&one.code), direction.word()),
                sides: [say!("html-without"), say!("html-with")],
                taken: samples
                    .into_iter()
                    .enumerate()
                    .map(|(index, sample)| (index % 2, sample))
                    .collect(),
            })
        })
        .collect()
}

/// The tunnel before, and after each remedy that was kept.
pub(super) fn stages(stages: &[Stage]) -> Markup {
    let heads = [
        say!("html-stage"),
        say!("html-stage-upload"),
        say!("html-stage-download"),
        say!("html-stage-rtt"),
    ];
    let known = |value: Option<String>| Cell::number(value.unwrap_or_else(|| "–".to_owned()));
    let rows: Vec<Vec<Cell>> = stages
        .iter()
        .enumerate()
        .map(|(index, stage)| {
            vec![
                Cell::text(stage_name(index, stage)),
                known(stage.upload.map(units::rate)),
                known(stage.download.map(units::rate)),
                known(stage.loaded_rtt.map(units::time)),
            ]
        })
        .collect();
    table(&heads, &rows)
}

/// A stage's place in the row: before everything, or after a remedy that was kept.
pub(super) fn stage_name(index: usize, stage: &Stage) -> String {
    if index == 0 {
        say!("html-stage-before")
    } else {
        say!("html-stage-after", code = name(&stage.label))
    }
}
