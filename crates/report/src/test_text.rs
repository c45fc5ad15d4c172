//! The test's answer in the terminal.

use wirespeed_doctor::{End, Verdict};
use wirespeed_words::say;

use crate::diff::{self, Against, Change};
use crate::doctor_text::told;
use crate::exchange_text;
use crate::lists::{all_missing, at_most, more};
use crate::look::{Look, table};
use crate::measured_text::{self, or_unknown};
use crate::over_time;
use crate::record::TestRecord;
use crate::room::{drawn, name};
use crate::units;

/// Remarks on comparisons shown without `-v`.
const REMARKS_SHOWN: usize = 20;

/// Bare against tunnel.
pub fn test(record: &TestRecord, look: &Look) -> String {
    let far = record
        .machines
        .iter()
        .find(|machine| machine.end == End::Far);
    let tunnel = match far {
        Some(far) => say!(
            "report-tunnel-to",
            interface = name(&record.interface),
            far = name(&far.name)
        ),
        None => name(&record.interface),
    };
    let carried = measured_text::carried(&record.comparisons)
        .or_else(|| exchange_text::carried(record.exchanges.as_ref()));
    let mut out = match (record.verdict, carried) {
        (Verdict::Healthy, Some(carried)) => {
            let text = say!("report-said", tunnel = tunnel, said = carried);
            look.verdict(&say!("report-word-healthy"), Look::good, &text)
        }
        (Verdict::Findings, Some(carried)) => {
            let text = say!("report-test-slow", tunnel = tunnel, carried = carried);
            look.verdict(&say!("report-word-slow"), Look::warn, &text)
        }
        (_, Some(carried)) => {
            let text = say!("report-said", tunnel = tunnel, said = carried);
            let comparable = record.comparisons.iter().any(|one| one.ratio.is_some())
                || record.exchanges.iter().any(|one| one.ratio.is_some());
            let word = if comparable {
                say!("report-word-incomplete")
            } else {
                say!("report-word-not-comparable")
            };
            look.verdict(&word, Look::warn, &text)
        }
        (_, None) => {
            let text = say!("report-test-nothing", tunnel = tunnel);
            look.verdict(&say!("report-word-unmeasured"), Look::warn, &text)
        }
    };
    out.push_str(&measured_text::road(&record.comparisons, look));
    if !look.details {
        let drawn = drawn(&record.comparisons);
        out.push_str(&over_time::throughput(&drawn, look));
        out.push_str(&more(record.comparisons.len(), drawn.len(), look));
    }
    let remarks = record.comparisons.iter().flat_map(|one| {
        let title = measured_text::title(one);
        one.remarks.iter().map(move |remark| told(&title, remark))
    });
    let shown = at_most(REMARKS_SHOWN, look);
    for text in remarks.clone().take(shown) {
        out.push_str(&look.labelled(&say!("report-label-note"), 8, &text));
    }
    out.push_str(&more(remarks.count(), shown, look));
    if let Some(exchanges) = &record.exchanges {
        out.push_str(&exchange_text::exchanges(exchanges, look));
    }
    out.push_str(&all_missing(
        &say!("report-not-measured"),
        &record.not_measured,
        look,
    ));
    if look.details {
        out.push_str(&measured_text::comparisons(&record.comparisons, look));
        out.push_str(&measured_text::machines(&record.machines, None, look));
    }
    out
}

/// This record against an earlier one.
pub fn against(against: &Against, look: &Look) -> String {
    let mut out = String::from("\n");
    out.push_str(&look.bold(&say!("report-against")));
    out.push('\n');
    if against.changes.is_empty() {
        out.push_str(&look.paragraph(2, &say!("report-against-nothing")));
    } else {
        let rows: Vec<Vec<String>> = against.changes.iter().map(change_row).collect();
        let header = [
            String::new(),
            say!("report-streams"),
            say!("report-against-share-then"),
            say!("report-against-now"),
            say!("report-against-tunnel-then"),
            say!("report-against-now"),
            String::new(),
        ];
        out.push_str(&table(look, 2, &header, &rows, 1));
    }
    if !against.machines.is_empty() {
        out.push('\n');
        out.push_str(&look.paragraph(2, &say!("report-against-machines")));
        for difference in &against.machines {
            let machine = match difference.machine.as_str() {
                diff::HERE => say!("report-here"),
                _ => say!("report-far"),
            };
            let text = told(
                &format!("{machine}, {}", difference.what),
                &format!("{} → {}", difference.then, difference.now),
            );
            out.push_str(&look.hanging("  - ", 4, &text));
        }
    }
    out
}

fn change_row(change: &Change) -> Vec<String> {
    let verdict = match (change.ratio_change, change.overlap) {
        (Some(_), Some(true)) => say!("report-against-unclear"),
        (Some(by), Some(false)) if by > 0.0 => say!("report-against-better"),
        (Some(_), Some(false)) => say!("report-against-worse"),
        _ => say!("report-word-not-comparable"),
    };
    let share = |ratio: Option<f64>| or_unknown(ratio, units::percent);
    vec![
        change.direction.word(),
        change.streams.to_string(),
        share(change.then.ratio),
        share(change.now.ratio),
        units::rate(change.then.tunnel),
        units::rate(change.now.tunnel),
        verdict,
    ]
}
