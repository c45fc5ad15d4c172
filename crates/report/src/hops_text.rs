//! A chain of hops in the terminal: a row per hop and direction, the whole, and the hop to look at.

use wirespeed_doctor::{HopReport, Share, Standing, Verdict};
use wirespeed_measure::Estimate;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use crate::doctor_text::doctor_on;
use crate::lists::all_missing;
use crate::look::{Look, table};
use crate::measured_text::{figure, or_unknown};
use crate::record::HopsRecord;
use crate::{places, readers_words, typed, units};

/// The answer about a chain.
pub fn hops(record: &HopsRecord, look: &Look) -> String {
    let report = &readers_words::hops(&record.report);
    let mut out = headline(report, look);
    out.push('\n');
    let wide = table(look, 2, &header(), &rows(report, false), 2);
    let narrow = look.width < WIDE || !look.has_room_for(&wide);
    if narrow {
        for (index, hop) in report.hops.iter().enumerate() {
            let text = format!("{} → {}", hop.from, hop.to);
            out.push_str(&look.entry(&(index + 1).to_string(), 2, &text));
        }
        out.push('\n');
        out.push_str(&table(look, 2, &header(), &rows(report, true), 2));
    } else {
        out.push_str(&wide);
    }
    for remark in &report.remarks {
        out.push('\n');
        out.push_str(&look.paragraph(2, remark));
    }
    out.push_str(&all_missing(
        &say!("report-not-measured"),
        &report.measured.not_measured,
        look,
    ));
    if let Some(record) = &record.doctor {
        let next = record.far_name();
        let to = next.map_or_else(|| say!("report-hops-next"), str::to_owned);
        let from = record
            .machines
            .first()
            .map_or("here", |machine| machine.name.as_str());
        out.push('\n');
        let told = places::told(from);
        out.push_str(&look.title(&say!("report-hops-doctor", from = told, to = &to)));
        out.push('\n');
        // A remedy is tried from that hop's own machine.
        let on = match from {
            "here" => String::new(),
            other => typed::behind(other),
        };
        let far = next.map(|name| format!(" --far {}", shell_word(name)));
        out.push_str(&doctor_on(record, &far.unwrap_or_default(), &on, look));
    }
    out
}

/// From so many columns on there may be room for names and intervals in the table.
const WIDE: usize = 100;

fn header() -> [String; 6] {
    [
        say!("report-hop"),
        String::new(),
        say!("report-road"),
        say!("report-tunnel"),
        say!("report-share"),
        say!("report-should"),
    ]
}

fn headline(report: &HopReport, look: &Look) -> String {
    let text = match (&report.worst, report.verdict) {
        (Some(worst), _) => sentence(&worst.because),
        (None, _) => say!("report-hops-nothing"),
    };
    match report.verdict {
        Verdict::Healthy => look.verdict(&say!("report-word-healthy"), Look::good, &text),
        Verdict::Findings => look.verdict(&say!("report-word-too-slow"), Look::warn, &text),
        Verdict::Unmeasured => look.verdict(&say!("report-word-unmeasured"), Look::warn, &text),
    }
}

/// Begins with a capital and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), letters.as_str())
    })
}

fn rows(report: &HopReport, narrow: bool) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (place, (hop, verdict)) in report.measured.hops.iter().zip(&report.hops).enumerate() {
        for (index, rates) in hop.rates.iter().enumerate() {
            let mut row = vec![
                if narrow {
                    (place + 1).to_string()
                } else {
                    format!("{} → {}", hop.from, hop.to)
                },
                rates.direction.word(),
                or_unknown(rates.bare, units::rate),
            ];
            match (&hop.interface, verdict.shares.get(index)) {
                (Some(_), Some(share)) => {
                    row.push(or_unknown(rates.tunnel, units::rate));
                    row.extend(share_cells(share, narrow));
                }
                _ => row.extend([say!("report-no-tunnel"), String::new(), String::new()]),
            }
            rows.push(row);
        }
    }
    for (whole, share) in report.measured.whole.iter().zip(&report.whole) {
        let yardstick = whole.worst_hop.and_then(|hop| {
            let hop = report.measured.hops.get(hop)?;
            let rates = hop
                .rates
                .iter()
                .find(|rates| rates.direction == whole.direction)?;
            rates.bare
        });
        let mut row = vec![
            if narrow {
                say!("report-hops-all")
            } else {
                say!("report-hops-all-together")
            },
            whole.direction.word(),
            or_unknown(yardstick, units::rate),
            or_unknown(whole.rate, units::rate),
        ];
        row.extend(share_cells(share, narrow));
        rows.push(row);
    }
    rows
}

fn share_cells(share: &Share, narrow: bool) -> [String; 2] {
    let ratio = or_unknown(share.ratio, |ratio| {
        if narrow {
            units::percent(ratio.value)
        } else {
            with_interval(ratio)
        }
    });
    let should = share.should.map_or_else(
        || say!("report-hops-no-rule"),
        |should| {
            let mark = match share.standing {
                Standing::Good => "",
                Standing::Below => " !",
                Standing::Unknown => " ?",
            };
            format!("≥ {}{mark}", units::percent(should))
        },
    );
    [ratio, should]
}

fn with_interval(ratio: Estimate) -> String {
    format!(
        "{} ({}–{})",
        units::percent(ratio.value),
        figure(&units::percent(ratio.low)),
        figure(&units::percent(ratio.high))
    )
}

#[cfg(test)]
mod tests {
    use wirespeed_doctor::judge_hops;
    use wirespeed_words::{Language, within};

    use super::*;
    use crate::record::DoctorRecord;

    /// Two tunnels in a row, of which the second loses half of its road, and what the doctor found there.
    fn record() -> HopsRecord {
        let measured = include_str!("../tests/recorded/chain-second-hop-slow.json");
        let doctor = include_str!("../tests/recorded/doctor-black-hole.json");
        let mut doctor: DoctorRecord = serde_json::from_str(doctor).unwrap();
        for (machine, name) in doctor
            .machines
            .iter_mut()
            .zip(["ssh://root@hub", "ssh://root@nas"])
        {
            name.clone_into(&mut machine.name);
        }
        let report = judge_hops(serde_json::from_str(measured).unwrap());
        HopsRecord::new(report, Some(doctor))
    }

    #[test]
    fn a_fix_is_for_the_machine_and_the_far_end_of_its_hop() {
        let record = record();
        let text = hops(&record, &Look::new(120, false, false));
        let interface = &record.doctor.as_ref().unwrap().interface;
        let fix = format!(
            "wirespeed tune {interface} --far ssh://root@nas --only icmp-black-hole # on ssh://root@hub"
        );
        assert!(text.contains(&fix), "{text}");
        assert!(
            text.contains("too slow  The tunnel ssh://root@hub"),
            "{text}"
        );
        let french = within(Language::French, || {
            let mut record = record.clone();
            record.report = judge_hops(record.report.measured);
            hops(&record, &Look::new(80, false, false))
        });
        let head = "trop lent  Le tunnel de ce saut (de ssh://root@hub vers";
        assert!(french.starts_with(head), "{french}");
        assert!(french.contains("saut             chemin"), "{french}");
        // The fuzzed reading of records has one of these to begin with.
        let known = include_str!("../../../fuzz/corpus/report_record/doctor-hops");
        assert!(serde_json::from_str::<HopsRecord>(known).is_ok());
        let mut first = record;
        let doctor = first.doctor.as_mut().unwrap();
        "here".clone_into(&mut doctor.machines[0].name);
        "ssh://root@the hub".clone_into(&mut doctor.machines[1].name);
        let text = hops(&first, &Look::new(120, false, false));
        assert!(
            text.contains("--far 'ssh://root@the hub' --only icmp-black-hole\n"),
            "{text}"
        );
    }

    #[test]
    fn this_machine_is_named_in_the_readers_language() {
        let mut record = record();
        let doctor = record.doctor.as_mut().unwrap();
        "here".clone_into(&mut doctor.machines[0].name);
        let mut measured = record.report.measured.clone();
        for hop in &mut measured.hops {
            "here".clone_into(&mut hop.from);
        }
        for width in [80, 120] {
            let look = Look::new(width, false, false);
            let (text, page) = within(Language::French, || {
                record.report = judge_hops(measured.clone());
                record.report.remarks.push("here n’a rien dit".to_owned());
                (hops(&record, &look), crate::html::hops(&record))
            });
            assert!(text.contains("cette machine → "), "{text}");
            assert!(text.contains("saut de cette machine vers "), "{text}");
            assert!(text.contains("cette machine n’a rien dit"), "{text}");
            assert!(page.contains("cette machine → "), "{page}");
            for all in [text, page] {
                let mut words = all.split(|letter: char| !letter.is_alphanumeric());
                assert!(!words.any(|word| word == "here"), "{all}");
            }
        }
    }
}
