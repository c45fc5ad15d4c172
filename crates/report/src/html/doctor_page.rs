//! The report of a diagnosis.

use maud::html;
use wirespeed_doctor::Verdict;
use wirespeed_words::say;

use super::finding::{self, Commands};
use super::machines::During;
use super::page::{Section, Top, page};
use super::svg::Figure;
use super::verdict::{self, Answer, Tone, sentence};
use super::{
    about, charts, ends_of, forest, load_figures, machine_figures, machines, machines_section,
    measured, missing, round_trips, section, timeline,
};
use crate::measured_text::carried;
use crate::record::{DoctorRecord, HEALTHY_RATIO};
use crate::room::drawn;
use crate::{places, watched_text};

/// The doctor's answer. `far_options` are those the user gave (` --far ssh://…`), for the commands it suggests.
pub fn doctor(record: &DoctorRecord, far_options: &str) -> String {
    let commands = Commands {
        interface: &record.interface,
        far_options,
        on: "",
    };
    page(&doctor_top(record), &doctor_sections(record, commands))
}

pub(super) fn doctor_top(record: &DoctorRecord) -> Top {
    Top {
        kind: say!("html-kind-doctor"),
        about: about(&record.interface, &record.machines),
        when: record.machines.first().map(|one| one.facts.taken_at),
        how: if record.measurements.passive.is_some() {
            Some(say!("html-footer-watched"))
        } else {
            (!record.measurements.comparisons.is_empty()).then(|| say!("html-footer-how"))
        },
    }
}

pub(super) fn doctor_sections(record: &DoctorRecord, commands: Commands<'_>) -> Vec<Section> {
    let measured = &record.measurements;
    let comparisons = &measured.comparisons;
    let mut sections = vec![section(
        "verdict",
        String::new(),
        html! {
            (doctor_answer(record).markup())
            (verdict::tiles(comparisons, measured.passive.is_none().then_some(&measured.idle_rtt_tunnel), HEALTHY_RATIO))
        },
    )];
    if !record.findings.is_empty() {
        sections.push(section(
            "findings",
            say!("html-findings"),
            finding::findings(&record.findings, commands),
        ));
    }
    if !record.refused.is_empty() {
        sections.push(section(
            "refused",
            say!("html-refused-here"),
            html! { div.card { (finding::refused(&record.refused)) } },
        ));
    }
    sections.push(section(
        "charts",
        say!("html-charts"),
        charts(&doctor_figures(record), comparisons),
    ));
    sections.push(section(
        "measurements",
        say!("html-measurements"),
        html! {
            @match &measured.passive {
                Some(passive) => (measured::watched(record, passive)),
                None => {
                    (measured::comparisons(comparisons))
                    details { summary { (say!("html-probes")) } (measured::probes(measured)) }
                },
            }
        },
    ));
    sections.extend(missing(&record.not_checked));
    sections.push(machines_section(&record.machines, record.peer.as_deref()));
    sections
}

fn doctor_answer(record: &DoctorRecord) -> Answer {
    let comparisons = &record.measurements.comparisons;
    let said = carried(comparisons).or_else(|| watched_text::watched(record));
    let said = said.as_deref().map(sentence);
    let watched = record.measurements.passive.is_some();
    let idle = record.measurements.idle_rtt_tunnel.value().is_some();
    let (word, tone, more) = match record.verdict {
        Verdict::Healthy => (
            say!("html-healthy"),
            Tone::Good,
            Some(say!("html-nothing-wrong")),
        ),
        Verdict::Findings => {
            let (word, tone) = verdict::found(&record.findings);
            (word, tone, None)
        }
        Verdict::Unmeasured if watched => (
            say!("html-watched"),
            Tone::Neutral,
            Some(say!("html-nothing-shows")),
        ),
        Verdict::Unmeasured => (
            say!("html-unmeasured"),
            Tone::Neutral,
            Some(if said.is_some() || idle {
                say!("html-too-little")
            } else {
                say!("html-nothing-measured")
            }),
        ),
    };
    Answer {
        tone,
        word,
        sentences: said.into_iter().chain(more).collect(),
    }
}

fn doctor_figures(record: &DoctorRecord) -> Vec<Figure> {
    let measured = &record.measurements;
    let comparisons = &measured.comparisons;
    let mut figures = Vec::new();
    if let Some(passive) = &measured.passive {
        figures.push(timeline::watched(passive, &record.machines));
        for machine in &record.machines {
            let groups = [machines::watched(passive, machine.end)];
            let host = places::name(&machine.name);
            figures.push(machines::heat(&host, &groups, During::Watch));
        }
        let ends = ends_of(&record.machines, |end| {
            machines::watched(passive, end).deltas
        });
        figures.push(machines::drops(&ends, During::Watch));
        return figures;
    }
    let drawn = drawn(comparisons);
    figures.push(forest::shares(&drawn, HEALTHY_RATIO));
    figures.extend(load_figures(&drawn));
    figures.push(round_trips::idle_and_loaded(
        [
            Some(&measured.idle_rtt_bare),
            Some(&measured.idle_rtt_tunnel),
        ],
        &drawn,
        &measured.soaks,
    ));
    figures.extend(machine_figures(
        &record.machines,
        comparisons,
        &measured.soaks,
    ));
    figures.extend(measured.sweeps.iter().map(forest::sweep));
    if measured.sweeps.is_empty() {
        figures.push(forest::no_sweep());
    }
    figures.push(forest::trials(&measured.congestion_trials));
    figures
}
