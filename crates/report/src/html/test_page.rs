//! The report of a test.

use maud::html;
use wirespeed_doctor::Verdict;
use wirespeed_words::say;

use super::page::{Top, page};
use super::verdict::{self, Answer, sentence};
use super::{
    about, charts, forest, load_figures, machine_figures, machines_section, measured, missing,
    round_trips, section,
};
use crate::exchange_text;
use crate::measured_text::carried;
use crate::record::{HEALTHY_RATIO, TestRecord};
use crate::room::drawn;

/// Bare against tunnel.
pub fn test(record: &TestRecord) -> String {
    let comparisons = &record.comparisons;
    let said = carried(comparisons).or_else(|| exchange_text::carried(record.exchanges.as_ref()));
    let (mut word, tone) = verdict::word(record.verdict);
    if record.verdict == Verdict::Unmeasured && said.is_some() {
        word = say!("html-incomplete");
    }
    let mut sentences =
        vec![said.map_or_else(|| say!("html-nothing-measured"), |said| sentence(&said))];
    if record.verdict == Verdict::Findings {
        sentences.push(say!("html-doctor-finds-out"));
    }
    let answer = Answer {
        tone,
        word,
        sentences,
    };
    let drawn = drawn(comparisons);
    let mut figures = vec![forest::shares(&drawn, HEALTHY_RATIO)];
    figures.extend(load_figures(&drawn));
    figures.push(round_trips::idle_and_loaded(
        [Some(&record.idle_rtt_bare), Some(&record.idle_rtt_tunnel)],
        &drawn,
        &[],
    ));
    figures.extend(machine_figures(&record.machines, comparisons, &[]));
    let measured = html! {
        (measured::comparisons(comparisons))
        @if let Some(exchanges) = &record.exchanges { (measured::exchanges(exchanges)) }
    };
    let mut sections = vec![
        section(
            "verdict",
            String::new(),
            html! {
                (answer.markup())
                (verdict::tiles(comparisons, Some(&record.idle_rtt_tunnel), HEALTHY_RATIO))
            },
        ),
        section("charts", say!("html-charts"), charts(&figures, comparisons)),
        section("measurements", say!("html-measurements"), measured),
    ];
    sections.extend(missing(&record.not_measured));
    sections.push(machines_section(&record.machines, None));
    let top = Top {
        kind: say!("html-kind-test"),
        about: about(&record.interface, &record.machines),
        when: Some(record.started_at),
        how: Some(say!("html-footer-how")),
    };
    page(&top, &sections)
}
