//! The report of a chain of hops.

use maud::html;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::doctor_page::{doctor_sections, doctor_top};
use super::finding::Commands;
use super::page::{Top, page};
use super::prose::prose;
use super::svg::grid;
use super::verdict::{self, Answer, sentence};
use super::{chain, missing, section};
use crate::record::HopsRecord;
use crate::room::{clean, name};
use crate::{readers_words, typed};

/// A chain of hops, and the doctor's look at its worst one.
pub fn hops(record: &HopsRecord) -> String {
    let report = &readers_words::hops(&record.report);
    let (word, tone) = verdict::word(report.verdict);
    let because = report.worst.as_ref().map(|worst| sentence(&worst.because));
    let answer = Answer {
        tone,
        word,
        sentences: vec![because.unwrap_or_else(|| say!("html-nothing-measured"))],
    };
    let mut sections = vec![
        section(
            "verdict",
            String::new(),
            html! {
                (answer.markup())
                @for remark in &report.remarks { p.note { (prose(&sentence(remark))) } }
            },
        ),
        section(
            "hops",
            say!("html-hops"),
            html! { (grid(&[chain::figure(report)])) (chain::rows(report)) },
        ),
    ];
    sections.extend(missing(&report.measured.not_measured));
    if let Some(doctor) = &record.doctor {
        let from = doctor
            .machines
            .first()
            .map_or("here", |one| one.name.as_str());
        let to = doctor.far_name().unwrap_or_default();
        let on = match from {
            "here" => String::new(),
            other => typed::behind(other),
        };
        let far = format!(" --far {}", shell_word(to));
        let commands = Commands {
            interface: &doctor.interface,
            far_options: &far,
            on: &on,
        };
        let top = doctor_top(doctor);
        let title = say!("html-hop-doctor", what = top.about);
        let inner = doctor_sections(doctor, commands);
        sections.push(section(
            "doctor",
            title,
            html! {
                @for one in inner {
                    @if !one.title.is_empty() { h3.part { (clean(&one.title)) } }
                    (one.body)
                }
            },
        ));
    }
    let machines = report.measured.hops.iter();
    let first = machines.clone().next().map(|hop| hop.from.as_str());
    let last = machines.last().map(|hop| hop.to.as_str());
    let top = Top {
        kind: say!("html-kind-hops"),
        about: format!(
            "{} → {}",
            name(first.unwrap_or("–")),
            name(last.unwrap_or("–"))
        ),
        when: report.measured.started_at.or_else(|| {
            let doctor = record.doctor.as_ref()?;
            Some(doctor.machines.first()?.facts.taken_at)
        }),
        how: Some(say!("html-footer-how")),
    };
    page(&top, &sections)
}
