//! The doctor's answer in the terminal: the verdict and the worst findings on one screen, everything else
//! with `-v`.

use wirespeed_doctor::{EvidenceLine, Finding, Remedy, Severity, Verdict, leaves_open};
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use crate::first_words::first_words;
use crate::lists::{LISTED, at_most, missing, more};
use crate::look::{Look, columns, wrap};
use crate::measured_text;
use crate::over_time;
use crate::record::DoctorRecord;
use crate::room::{cell, clean, glance, letters, name};
use crate::{places, readers_words, typed, units, watched_text};

/// Findings shown in full without `-v`.
const SHOWN_IN_FULL: usize = 3;
/// Further findings, and what follows from one, shown without `-v`.
const SHOWN_IN_A_LINE: usize = 12;
/// Checks that could not be made shown without `-v`.
const NOT_CHECKED_SHOWN: usize = 4;
/// Commands of one remedy shown without `-v`, and letters of them.
const COMMANDS_SHOWN: usize = 4;
const LETTERS_SHOWN: usize = 2000;
/// Columns of the labels below a finding.
const LABELS: usize = 12;

/// The doctor's answer. `far_options` are those the user gave (` --far ssh://…`), for the commands it suggests.
pub fn doctor(record: &DoctorRecord, far_options: &str, look: &Look) -> String {
    doctor_on(record, far_options, "", look)
}

/// The same about another machine's tunnel; `on` says behind a command where it is to be typed (`  # on gw1`).
pub(crate) fn doctor_on(record: &DoctorRecord, far_options: &str, on: &str, look: &Look) -> String {
    let mut out = String::new();
    out.push_str(&headline(record, look));
    out.push_str(&measured_text::road(&record.measurements.comparisons, look));
    if !look.details {
        out.push_str(&over_time::tunnels(&record.measurements.comparisons, look));
    }
    out.push_str(&first_words(record, look));
    if let Some(passive) = &record.measurements.passive {
        out.push_str(&watched_text::watch_table(record, passive, look));
    }
    for sweep in &record.measurements.sweeps {
        out.push_str(&watched_text::sweep(sweep, look));
    }

    let findings = &record.findings;
    let causes: Vec<Option<usize>> = findings.iter().map(|one| one.cause_in(findings)).collect();
    let roots = findings
        .iter()
        .enumerate()
        .filter(|(_, finding)| finding.consequence_of.is_none());
    let shown = at_most(SHOWN_IN_FULL + SHOWN_IN_A_LINE, look);
    for (index, (place, finding)) in roots.clone().take(shown).enumerate() {
        let finding = readers_words::finding(finding);
        out.push('\n');
        if index < SHOWN_IN_FULL || look.details {
            out.push_str(&full(&finding, record, (far_options, on), look));
        } else {
            out.push_str(&title(&finding, look));
        }
        let explained = findings.iter().zip(&causes);
        let explained = explained.filter(|(_, cause)| **cause == Some(place));
        let shown = at_most(SHOWN_IN_A_LINE, look);
        for (consequence, _) in explained.clone().take(shown) {
            let text = told(&consequence.code, &places::told(&consequence.because));
            let lead = format!("  └ {}  ", say!("report-label-explains"));
            out.push_str(&look.hanging(&lead, columns(&lead), &text));
        }
        out.push_str(&more(explained.count(), shown, look));
    }
    out.push_str(&more(roots.count(), shown, look));
    out.push_str(&asked(record, look));
    out.push_str(&refused(record, look));
    out.push_str(&not_checked(record, look));
    if look.details {
        out.push_str(&measured_text::probes(&record.measurements, look));
        out.push_str(&watched_text::datagrams(&record.measurements, look));
        out.push_str(&measured_text::comparisons(
            &record.measurements.comparisons,
            look,
        ));
        out.push_str(&measured_text::machines(&record.machines, None, look));
    } else {
        if record.verdict == Verdict::Unmeasured && record.measurements.passive.is_none() {
            out.push_str(&measured_text::machines(
                &record.machines,
                record.peer.as_deref(),
                look,
            ));
        }
        out.push('\n');
        out.push_str(&look.paragraph(0, &say!("report-details")));
    }
    out
}

fn headline(record: &DoctorRecord, look: &Look) -> String {
    let tunnel = match record.far_name() {
        Some(far) => say!(
            "report-tunnel-to",
            interface = name(&record.interface),
            far = name(far)
        ),
        None => name(&record.interface),
    };
    match record.verdict {
        Verdict::Healthy => {
            let text = match measured_text::carried(&record.measurements.comparisons) {
                Some(carried) => say!("report-healthy", tunnel = tunnel, carried = carried),
                None => say!("report-healthy-unmeasured", tunnel = tunnel),
            };
            look.verdict(&say!("report-word-healthy"), Look::good, &text)
        }
        Verdict::Findings => {
            let roots = record
                .findings
                .iter()
                .filter(|finding| finding.consequence_of.is_none())
                .count();
            let worst = record
                .findings
                .iter()
                .map(|finding| finding.severity)
                .max()
                .unwrap_or(Severity::Info);
            let style = match worst {
                Severity::Critical => Look::bad,
                Severity::Warning => Look::warn,
                Severity::Info => Look::bold,
            };
            let said = measured_text::carried(&record.measurements.comparisons)
                .or_else(|| watched_text::watched(record));
            let text = match said {
                Some(said) => say!("report-said", tunnel = tunnel, said = said),
                None => format!("{tunnel}."),
            };
            look.verdict(&say!("report-word-findings", count = roots), style, &text)
        }
        Verdict::Unmeasured if record.measurements.passive.is_some() => {
            let said = watched_text::watched(record).unwrap_or_default();
            let text = say!("report-watched", tunnel = tunnel, said = said);
            look.verdict(&say!("report-word-watched"), Look::bold, &text)
        }
        Verdict::Unmeasured => {
            let comparisons = &record.measurements.comparisons;
            let text = match (comparisons.len(), measured_text::carried(comparisons)) {
                (2.., Some(carried)) => {
                    say!("report-too-little", tunnel = tunnel, carried = carried)
                }
                (1.., _) => say!("report-one-way", tunnel = tunnel),
                _ => say!("report-no-way", tunnel = tunnel),
            };
            look.verdict(&say!("report-word-unmeasured"), Look::warn, &text)
        }
    }
}

fn title(finding: &Finding, look: &Look) -> String {
    let word = match finding.severity {
        Severity::Critical => look.bad(&say!("report-severity-critical")),
        Severity::Warning => look.warn(&say!("report-severity-warning")),
        Severity::Info => look.bold(&say!("report-severity-info")),
    };
    let (host, sure) = (name(&finding.host), units::percent(finding.confidence));
    let place = match finding.direction {
        Some(direction) => say!(
            "report-place-direction",
            host = host,
            direction = direction.word(),
            sure = sure
        ),
        None => say!("report-place", host = host, sure = sure),
    };
    let head = format!("{word}  {}", look.bold(&name(&finding.code)));
    if columns(&head) + 2 + columns(&place) <= look.width {
        return format!("{head}  {}\n", look.dim(&place));
    }
    let mut out = format!("{head}\n");
    for line in wrap(&place, look.width - 2) {
        out.push_str("  ");
        out.push_str(&look.dim(&line));
        out.push('\n');
    }
    out
}

fn full(
    finding: &Finding,
    record: &DoctorRecord,
    (far_options, on): (&str, &str),
    look: &Look,
) -> String {
    let mut out = title(finding, look);
    out.push_str(&look.paragraph(2, &finding.because));
    // A screen has room for the beginning of one; the rest is a matter of `-v`.
    let (shown, room): (usize, Room) = if look.details {
        (finding.evidence.len(), cell)
    } else {
        (1, glance)
    };
    for (index, line) in finding.evidence.iter().take(shown).enumerate() {
        let label = if index == 0 {
            say!("report-label-evidence")
        } else {
            String::new()
        };
        out.push_str(&look.labelled(&label, LABELS, &evidence_line(line, room)));
    }
    if finding
        .remedies
        .iter()
        .any(|remedy| !remedy.changes.is_empty())
    {
        let command = format!(
            "wirespeed tune {}{far_options} --only {}{on}",
            shell_word(&record.interface),
            finding.code
        );
        out.push_str(&look.labelled_commands(&say!("report-label-fix"), LABELS, &[command]));
    }
    if look.details {
        for remedy in &finding.remedies {
            out.push_str(&look.labelled(&say!("report-label-remedy"), LABELS, &remedy.title));
            out.push_str(&look.commands(14, &remedy.commands));
            for (lead, text) in [
                (say!("report-label-keep"), &remedy.persistence),
                (say!("report-label-undo"), &remedy.undo),
                (say!("report-label-risk"), &remedy.risk),
            ] {
                if text.is_empty() {
                    continue;
                }
                let lead = format!("  {lead}");
                if typed::is_typed(text) {
                    let lines: Vec<&str> = text.lines().collect();
                    out.push_str(&look.labelled_commands(&lead, LABELS, &lines));
                } else {
                    out.push_str(&look.labelled(&lead, LABELS, text));
                }
            }
        }
        for refusal in &finding.refused {
            let text = told(&refusal.remedy, &refusal.why);
            out.push_str(&look.labelled(&say!("report-label-useless"), LABELS, &text));
        }
    } else {
        out.push_str(&by_hand(&finding.remedies, look));
    }
    out.push_str(&look.labelled_commands(
        &say!("report-label-more"),
        LABELS,
        &[format!("wirespeed explain {}", finding.code)],
    ));
    out
}

/// The first remedy that a person can make; what has a change and no command wirespeed alone can make. Later ones go further
/// than a person should who has not read about them. Its commands stand there all or not at all: the first of several
/// mends nothing, or takes a tunnel down that the second brings up.
fn by_hand(remedies: &[Remedy], look: &Look) -> String {
    let by_hand = |one: &&Remedy| one.changes.is_empty() || !one.commands.is_empty();
    let Some(remedy) = remedies.iter().find(by_hand) else {
        return String::new();
    };
    let label = say!("report-label-by-hand");
    match remedy.commands.len() {
        0 => look.labelled(&label, LABELS, &remedy.title),
        1..=COMMANDS_SHOWN if letters(&remedy.commands) <= LETTERS_SHOWN => {
            let mut out = look.labelled_commands(&label, LABELS, &remedy.commands);
            // Nobody watches over what no tune would try.
            if remedy.changes.is_empty() && !remedy.risk.is_empty() {
                let lead = format!("  {}", say!("report-label-risk"));
                out.push_str(&look.labelled(&lead, LABELS, &remedy.risk));
            }
            out
        }
        count => {
            let text = say!("report-by-hand-more", title = &remedy.title, count = count);
            look.labelled(&label, LABELS, &text)
        }
    }
}

/// How much of a text is shown.
type Room = fn(&str) -> String;

fn evidence_line(line: &EvidenceLine, room: Room) -> String {
    let value = |value| units::value(value, &line.unit).map(|text| room(&text));
    let (before, after) = (value(&line.before), value(&line.after));
    let values = match (before, after) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (None, Some(value)) | (Some(value), None) => value,
        (None, None) => say!("report-not-known"),
    };
    // Each part has its own room.
    wirespeed_words::clean(&say!(
        "report-evidence",
        what = room(&line.what),
        values = values,
        place = room(&line.r#where)
    ))
}

/// Something, and what is said of it, after a colon.
pub(crate) fn told(what: &str, text: &str) -> String {
    clean(&say!("report-told", what = what, text = text))
}

/// What was measured only to tell causes apart.
fn asked(record: &DoctorRecord, look: &Look) -> String {
    let all = record
        .measurements
        .asked
        .iter()
        .map(|one| format!("{} ({})", places::told(&one.what), one.by.join(", ")))
        .reduce(|one, other| say!("report-and", one = one, other = other));
    let Some(all) = all else {
        return String::new();
    };
    let text = say!("report-asked", all = all);
    // Names of other machines stand in it, and only lines of ours begin at the left.
    format!("\n{}", look.hanging("", 2, &text))
}

fn refused(record: &DoctorRecord, look: &Look) -> String {
    if record.refused.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    out.push_str(&look.bold(&say!("report-refused")));
    out.push('\n');
    let shown = at_most(LISTED, look);
    for refusal in record.refused.iter().take(shown) {
        let refusal = readers_words::refusal(refusal);
        let text = if look.details {
            told(&refusal.remedy, &refusal.why)
        } else {
            refusal.remedy
        };
        out.push_str(&look.hanging("  - ", 4, &text));
    }
    out.push_str(&more(record.refused.len(), shown, look));
    out
}

fn not_checked(record: &DoctorRecord, look: &Look) -> String {
    if record.not_checked.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    out.push_str(&look.bold(&say!("report-not-checked")));
    out.push('\n');
    let shown = at_most(NOT_CHECKED_SHOWN, look);
    // What leaves the verdict open comes before what some check lacks.
    let (open, rest): (Vec<_>, Vec<_>) = record
        .not_checked
        .iter()
        .partition(|item| leaves_open(item));
    let shown_first = open.into_iter().chain(rest).take(shown);
    for item in shown_first {
        out.push_str(&missing(item, look));
    }
    out.push_str(&more(record.not_checked.len(), shown, look));
    out
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use wirespeed_doctor::Asked;
    use wirespeed_facts::Known;
    use wirespeed_measure::{Direction, NotMeasured};
    use wirespeed_words::{Language, within};

    use super::*;

    fn record(name: &str) -> DoctorRecord {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/");
        let text = std::fs::read_to_string(format!("{folder}{name}.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn by_hand_are_all_commands_of_a_remedy_or_none() {
        let look = Look::new(80, false, false);
        let own = record("doctor-black-hole").findings[0].remedies[0].clone();
        let of = |commands: &[&str], changes: bool| Remedy {
            title: "Do it".to_owned(),
            commands: commands.iter().map(|one| (*one).to_owned()).collect(),
            changes: if changes {
                own.changes.clone()
            } else {
                Vec::new()
            },
            risk: "it may fail".to_owned(),
            ..own.clone()
        };
        let two = ["do this  # on gw1", "do that  # on gw2"];
        let lines = "  by hand   do this # on gw1\n            do that # on gw2\n";
        assert_eq!(by_hand(&[of(&two, true)], &look), lines);
        // No tune would take it back.
        let risk = format!("{lines}    risk    it may fail\n");
        assert_eq!(by_hand(&[of(&two, false)], &look), risk);
        // What wirespeed alone can do stands behind `fix`.
        assert_eq!(by_hand(&[of(&[], true), of(&two, false)], &look), risk);
        assert_eq!(by_hand(&[of(&[], true)], &look), "");
        let nothing_to_type = by_hand(&[of(&[], false), of(&two, false)], &look);
        assert_eq!(nothing_to_type, "  by hand   Do it\n");
        let many = by_hand(&[of(&["do this  # on gw1"; 5], false)], &look);
        assert_eq!(many, "  by hand   Do it (-v shows its 5 commands)\n");
        let long = by_hand(&[of(&[&"do this ".repeat(300)], false)], &look);
        assert_eq!(long, "  by hand   Do it (-v shows its command)\n");
    }

    #[test]
    fn what_was_asked_of_this_machine_names_it_in_the_readers_language() {
        let mut record = record("doctor-healthy");
        record.measurements.asked = vec![Asked {
            what: "wg0 sur here".to_owned(),
            direction: Direction::Upload,
            by: vec!["udp-shaped".to_owned()],
        }];
        let look = Look::new(120, false, false);
        let text = within(Language::French, || asked(&record, &look));
        assert!(
            text.contains("wg0 sur cette machine (udp-shaped)"),
            "{text}"
        );
    }

    #[test]
    fn a_consequence_is_told_under_its_own_cause_where_two_have_its_code() {
        let mut record = record("doctor-black-hole");
        let root = record
            .findings
            .iter()
            .find(|one| one.consequence_of.is_none())
            .unwrap()
            .clone();
        let mut effect = root.clone();
        "mtu-exceeds-path".clone_into(&mut effect.code);
        effect.consequence_of = Some(root.code.clone());
        let mut other = root.clone();
        other.because = "because of the other machine".to_owned();
        record.findings = vec![root, other, effect];
        let mut told = |cause: Option<usize>| {
            record.findings[2].cause_index = cause;
            let text = doctor(&record, "", &Look::new(120, false, false));
            let at = |part: &str| {
                assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
                text.find(part)
            };
            at("mtu-exceeds-path:").cmp(&at("because of the other machine"))
        };
        assert_eq!(told(Some(0)), Ordering::Less);
        assert_eq!(told(Some(1)), Ordering::Greater);
        // Recorded before there was an index.
        assert_eq!(told(None), Ordering::Less);
    }

    /// Behind a firewall that lets in WireGuard's port alone, on a hub.
    #[test]
    fn a_tunnel_without_its_road_is_not_called_healthy_and_a_thousand_peers_are_not_told() {
        let mut record = record("doctor-healthy");
        record.verdict = Verdict::Unmeasured;
        for comparison in &mut record.measurements.comparisons {
            comparison.bare = None;
            comparison.ratio = None;
            comparison.pairs.clear();
        }
        let lacking = |what: &str| NotMeasured {
            what: what.to_owned(),
            because: "no connection".to_owned(),
        };
        record.not_checked = vec![lacking("some-cause"); NOT_CHECKED_SHOWN];
        record
            .not_checked
            .push(lacking("bare against tunnel, upload"));
        record.measurements.asked = vec![Asked {
            what: "numbered datagrams outside the tunnel, upload".to_owned(),
            direction: Direction::Upload,
            by: vec!["udp-shaped".to_owned()],
        }];
        let tunnel = &mut record.machines[0].facts.tunnels[0];
        let Known::Value(peers) = &mut tunnel.peers else {
            panic!("recorded peers");
        };
        let own = peers[0].clone();
        peers.extend((0..1000).map(|number| {
            let mut other = own.clone();
            other.public_key = format!("key{number}");
            other
        }));
        record.peer = Some(own.public_key);
        let text = doctor(&record, "", &Look::new(120, false, false));
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "the road itself was not measured. Nothing was found, but that is too little",
            "- bare against tunnel, upload: no connection",
            "tell causes apart: numbered datagrams outside the tunnel, upload (udp-shaped).",
            "1000 more",
        ] {
            assert!(flowing.contains(part), "{part} is missing in\n{text}");
        }
        assert!(text.lines().count() < 60, "{text}");
        let text = doctor(&record, "", &Look::new(120, false, true));
        assert!(text.contains("991 more"), "{text}");
    }
}
