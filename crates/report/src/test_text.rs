//! The test's answer in the terminal.

use wirespeed_doctor::{End, Verdict};

use crate::diff::{Against, Change};
use crate::exchange_text;
use crate::look::{Look, clean, table};
use crate::measured_text;
use crate::record::TestRecord;
use crate::units;

/// Bare against tunnel.
pub fn test(record: &TestRecord, look: &Look) -> String {
    let far = record
        .machines
        .iter()
        .find(|machine| machine.end == End::Far);
    let tunnel = match far {
        Some(far) => format!("{} (to {})", record.interface, clean(&far.name)),
        None => record.interface.clone(),
    };
    let carried = measured_text::carried(&record.comparisons)
        .or_else(|| exchange_text::carried(record.exchanges.as_ref()));
    let mut out = match (record.verdict, carried) {
        (Verdict::Healthy, Some(carried)) => look.hanging(
            &format!("{}  ", look.good("healthy")),
            9,
            &format!("{tunnel}: {carried}."),
        ),
        (Verdict::Findings, Some(carried)) => {
            let text = format!("{tunnel}: {carried}. `wirespeed doctor` finds out why.");
            look.hanging(&format!("{}  ", look.warn("slow")), 6, &text)
        }
        (_, Some(carried)) => {
            let text = format!("{tunnel}: {carried}.");
            let comparable = record.comparisons.iter().any(|one| one.ratio.is_some())
                || record.exchanges.iter().any(|one| one.ratio.is_some());
            let word = if comparable {
                "incomplete"
            } else {
                "not comparable"
            };
            let lead = format!("{}  ", look.warn(word));
            look.hanging(&lead, word.len() + 2, &text)
        }
        (_, None) => look.hanging(
            &format!("{}  ", look.warn("unmeasured")),
            12,
            &format!("{tunnel}: nothing could be measured."),
        ),
    };
    out.push_str(&measured_text::road(&record.comparisons, look));
    for comparison in &record.comparisons {
        for remark in &comparison.remarks {
            let lead = measured_text::title(comparison);
            out.push_str(&look.hanging("  note  ", 8, &clean(&format!("{lead}: {remark}"))));
        }
    }
    if let Some(exchanges) = &record.exchanges {
        out.push_str(&exchange_text::exchanges(exchanges, look));
    }
    if !record.not_measured.is_empty() {
        out.push('\n');
        out.push_str(&look.bold("Not measured"));
        out.push('\n');
        for item in &record.not_measured {
            out.push_str(&look.hanging(
                "  - ",
                4,
                &clean(&format!("{}: {}", item.what, item.because)),
            ));
        }
    }
    if look.details {
        out.push_str(&measured_text::comparisons(&record.comparisons, look));
        out.push_str(&measured_text::machines(&record.machines, None, look));
    }
    out
}

/// This record against an earlier one.
pub fn against(against: &Against, look: &Look) -> String {
    let mut out = String::from("\n");
    out.push_str(&look.bold("Against the earlier record"));
    out.push('\n');
    if against.changes.is_empty() {
        out.push_str(&look.paragraph(2, "The two records have no comparison in common."));
    } else {
        let rows: Vec<Vec<String>> = against.changes.iter().map(change_row).collect();
        out.push_str(&table(
            look,
            2,
            &["", "streams", "share then", "now", "tunnel then", "now", ""],
            &rows,
            1,
        ));
    }
    if !against.machines.is_empty() {
        out.push('\n');
        out.push_str(&look.paragraph(2, "What differs in the machines:"));
        for difference in &against.machines {
            let text = format!(
                "{}, {}: {} → {}",
                difference.machine, difference.what, difference.then, difference.now
            );
            out.push_str(&look.hanging("  - ", 4, &clean(&text)));
        }
    }
    out
}

fn change_row(change: &Change) -> Vec<String> {
    let verdict = match (change.ratio_change, change.overlap) {
        (Some(_), Some(true)) => "no clear change",
        (Some(by), Some(false)) if by > 0.0 => "better",
        (Some(_), Some(false)) => "worse",
        _ => "not comparable",
    };
    let share = |ratio: Option<f64>| ratio.map_or_else(|| "?".to_owned(), units::percent);
    vec![
        measured_text::direction_word(change.direction),
        change.streams.to_string(),
        share(change.then.ratio),
        share(change.now.ratio),
        units::rate(change.then.tunnel),
        units::rate(change.now.tunnel),
        verdict.to_owned(),
    ]
}
