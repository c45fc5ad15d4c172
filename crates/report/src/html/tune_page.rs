//! The report of a tune.

use maud::{Markup, html};
use wirespeed_doctor::{Diagnosis, End, Verdict};
use wirespeed_tune::{ChangeMade, Outcome};
use wirespeed_words::say;

use super::finding::{self, Commands};
use super::machines::{self, During, Group};
use super::page::{Section, Top, page};
use super::prose::prose;
use super::svg::{Figure, grid};
use super::timeline::Loads;
use super::verdict::{Answer, Tone};
use super::{forest, round_trips, section, timeline, tried};
use crate::changes_text::put_back_words;
use crate::record::TuneRecord;
use crate::room::{commands, name};
use crate::tune_text::change_words;
use crate::{places, readers_words, units};

/// Experiments whose loads are drawn over time; a page of more would take as long to open.
const MOST_DRAWN: usize = 12;

/// What a tune did. `far_options` are those the user gave (` --far ssh://…`), for the commands it suggests.
pub fn tune(record: &TuneRecord, far_options: &str) -> String {
    let outcome = &readers_words::outcome(&record.outcome);
    let experiments = &outcome.experiments;
    let kept = experiments.iter().filter(|one| one.kept).count();
    let (word, tone) = match (experiments.len(), kept) {
        (0, _) => (say!("html-nothing-tried"), Tone::Neutral),
        (_, 0) => (say!("html-nothing-kept"), Tone::Warn),
        _ => (say!("html-kept-count", count = kept), Tone::Good),
    };
    let left: Vec<&str> = outcome
        .diagnosis
        .findings
        .iter()
        .filter(|one| one.consequence_of.is_none())
        .map(|one| one.code.as_str())
        .collect();
    let mut sentences = vec![
        say!("html-tried-count", count = experiments.len()),
        match outcome.diagnosis.verdict {
            Verdict::Healthy => say!("html-nothing-left"),
            Verdict::Findings => say!("html-left", codes = left.join(", ")),
            Verdict::Unmeasured => say!("html-left-unknown"),
        },
    ];
    sentences.extend(outcome.ended_early.clone());
    let answer = Answer {
        tone,
        word,
        sentences,
    };
    // What they came to comes first: each of them has figures of its own, and they may be many.
    let mut figures = forest::gains(experiments);
    figures.push(round_trips::of_stages(&outcome.stages));
    let drawn = experiments.iter().take(MOST_DRAWN);
    let mut all_loads: Vec<Vec<Loads<'_>>> = drawn.map(tried::loads).collect();
    if all_loads.iter().all(Vec::is_empty) {
        all_loads.push(vec![Loads::none()]);
    }
    for loads in &all_loads {
        figures.extend(loads.iter().map(timeline::throughput));
        figures.extend(loads.iter().map(timeline::window));
        // Where no load ran, the stages above have what is known of round trips.
        let ran = loads.iter().filter(|one| !one.taken.is_empty());
        figures.extend(ran.map(round_trips::loaded_sides));
    }
    figures.extend(tune_machines(record));
    let mut sections = vec![section(
        "verdict",
        String::new(),
        html! { (answer.markup()) (go_on(record, far_options)) (recovered(outcome)) },
    )];
    if outcome.stages.len() > 1 {
        let body = tried::stages(&outcome.stages);
        sections.push(section("stages", say!("html-stages"), body));
    }
    if !experiments.is_empty() {
        let body = tried::experiments(experiments);
        sections.push(section("experiments", say!("html-experiments"), body));
    }
    let not_drawn = experiments.len().saturating_sub(MOST_DRAWN);
    sections.push(section(
        "charts",
        say!("html-charts"),
        html! {
            (grid(&figures))
            @if not_drawn > 0 { p.note { (say!("html-loads-not-drawn", count = not_drawn)) } }
        },
    ));
    sections.extend(left_over(
        &outcome.diagnosis,
        &outcome.interface,
        far_options,
    ));
    if !outcome.not_tried.is_empty() {
        let body = html! { div.card { (finding::missing(&outcome.not_tried)) } };
        sections.push(section("not-tried", say!("html-not-tried"), body));
    }
    let samples = experiments.iter().flat_map(|one| &one.samples);
    let top = Top {
        kind: say!("html-kind-tune"),
        about: name(&outcome.interface),
        // Records of earlier releases have the moment of their loads alone.
        when: outcome
            .started_at
            .or_else(|| samples.map(|one| one.started_at).min_by(f64::total_cmp)),
        how: (!experiments.is_empty()).then(|| say!("html-footer-tune")),
    };
    page(&top, &sections)
}

/// What a tune left standing.
fn left_over(diagnosis: &Diagnosis, interface: &str, far_options: &str) -> Option<Section> {
    let commands = Commands {
        interface,
        far_options,
        on: "",
    };
    (!diagnosis.findings.is_empty()).then(|| {
        section(
            "findings",
            say!("html-findings-left"),
            finding::findings(&diagnosis.findings, commands),
        )
    })
}

fn go_on(record: &TuneRecord, far_options: &str) -> Markup {
    let typed = |what: &str| commands(&[format!("wirespeed tune {what}{far_options}")]).join("");
    html! {
        @if !record.outcome.kept.is_empty() {
            div.card {
                @match record.outcome.confirm_within {
                    Some(seconds) if !record.confirmed => {
                        p { (say!("html-confirm", time = units::time(seconds))) }
                        pre { (typed("confirm")) }
                    }
                    _ => p { (say!("html-confirmed")) },
                }
                (over_restarts(&record.outcome.kept))
                p { (say!("html-how-to-undo")) }
                pre { (typed("undo")) }
            }
        }
    }
}

/// Where each change is written down to stay.
fn over_restarts(kept: &[ChangeMade]) -> Markup {
    html! {
        details {
            summary { (say!("report-keep-all")) }
            dl {
                @for made in kept {
                    dt { (change_words(made)) }
                    dd { (prose(&made.setting.persistence(&made.after))) }
                }
            }
        }
    }
}

/// What an earlier tune had left, and what became of it.
fn recovered(outcome: &Outcome) -> Markup {
    html! {
        @if !outcome.recovered.is_empty() {
            div.card {
                @for (host, put_back) in &outcome.recovered {
                    p { (prose(&say!("report-tune-recovered", host = host, what = put_back_words(put_back)))) }
                }
            }
        }
    }
}

/// The cores and drops of both ends, by what was tried.
fn tune_machines(record: &TuneRecord) -> Vec<Figure> {
    let experiments = &record.outcome.experiments;
    let ends = [
        (End::Here, places::told("here")),
        (End::Far, say!("html-far")),
    ];
    let mut figures: Vec<Figure> = ends
        .iter()
        .map(|(end, host)| {
            let groups: Vec<Group<'_>> = experiments
                .iter()
                .flat_map(tried::loads)
                .flat_map(|loads| {
                    [0, 1].map(|side| {
                        let of_side = loads.taken.iter().filter(|(one, _)| *one == side);
                        let name = format!("{}, {}", loads.title, loads.sides[side]);
                        machines::group(name, of_side.map(|(_, sample)| *sample), *end)
                    })
                })
                .collect();
            machines::heat(host, &groups, During::Loads)
        })
        .collect();
    let samples = || experiments.iter().flat_map(|one| &one.samples);
    let drops: Vec<_> = ends
        .iter()
        .map(|(end, host)| {
            let group = machines::group(String::new(), samples(), *end);
            (host.clone(), group.deltas)
        })
        .collect();
    figures.push(machines::drops(&drops, During::Loads));
    figures
}
