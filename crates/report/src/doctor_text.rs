//! The doctor's answer in the terminal: the verdict and the worst findings on one screen, everything else
//! with `-v`.

use wirespeed_doctor::{EvidenceLine, Finding, Severity, Verdict};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;

use crate::look::{Look, clean, columns};
use crate::measured_text;
use crate::record::{DoctorRecord, first_command};
use crate::{units, watched_text};

/// Findings shown in full without `-v`.
const SHOWN_IN_FULL: usize = 3;
/// Checks that could not be made shown without `-v`.
const NOT_CHECKED_SHOWN: usize = 4;
/// What the verdict rests on, as the doctor calls it where it was not measured or not steady.
const COMPARISON: &str = "bare against tunnel";
const UNEXPLAINED: &str = "unexplained";

/// The doctor's answer. `far_options` are those the user gave (` --far ssh://…`), for the commands it suggests.
pub fn doctor(record: &DoctorRecord, far_options: &str, look: &Look) -> String {
    doctor_on(record, far_options, "", look)
}

/// The same about another machine's tunnel; `on` says behind a command where it is to be typed (` # on gw1`).
pub(crate) fn doctor_on(record: &DoctorRecord, far_options: &str, on: &str, look: &Look) -> String {
    let mut out = String::new();
    out.push_str(&headline(record, look));
    out.push_str(&measured_text::road(&record.measurements.comparisons, look));
    if let Some(passive) = &record.measurements.passive {
        out.push_str(&watched_text::watch_table(record, passive, look));
    }
    for sweep in &record.measurements.sweeps {
        out.push_str(&watched_text::sweep(sweep, look));
    }

    let (roots, consequences): (Vec<&Finding>, Vec<&Finding>) = record
        .findings
        .iter()
        .partition(|finding| finding.consequence_of.is_none());
    for (index, finding) in roots.iter().enumerate() {
        out.push('\n');
        if index < SHOWN_IN_FULL || look.details {
            out.push_str(&full(finding, record, (far_options, on), look));
        } else {
            out.push_str(&title(finding, look));
        }
        // Where two have the same code, the first has what follows from it.
        let told = roots[..index].iter().any(|one| one.code == finding.code);
        for consequence in consequences
            .iter()
            .filter(|c| !told && c.consequence_of.as_deref() == Some(&finding.code))
        {
            let text = format!("{}: {}", consequence.code, clean(&consequence.because));
            out.push_str(&look.hanging("  └ explains  ", 14, &text));
        }
    }
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
        out.push_str(&look.paragraph(0, "-v shows every figure behind this."));
    }
    out
}

fn headline(record: &DoctorRecord, look: &Look) -> String {
    let tunnel = match record.far_name() {
        Some(far) => format!("{} (to {far})", record.interface),
        None => record.interface.clone(),
    };
    match record.verdict {
        Verdict::Healthy => {
            let text = match measured_text::carried(&record.measurements.comparisons) {
                Some(carried) => format!("{tunnel}: {carried}. Nothing is wrong with it."),
                None => format!("{tunnel}: nothing wrong was found."),
            };
            look.hanging(&format!("{}  ", look.good("healthy")), 9, &text)
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
            let noun = if roots == 1 {
                "1 finding".to_owned()
            } else {
                format!("{roots} findings")
            };
            let word = match worst {
                Severity::Critical => look.bad(&noun),
                Severity::Warning => look.warn(&noun),
                Severity::Info => look.bold(&noun),
            };
            let said = measured_text::carried(&record.measurements.comparisons)
                .or_else(|| watched_text::watched(record));
            let text = match said {
                Some(said) => format!("{tunnel}: {said}."),
                None => format!("{tunnel}."),
            };
            look.hanging(&format!("{word}  "), columns(&noun) + 2, &text)
        }
        Verdict::Unmeasured if record.measurements.passive.is_some() => {
            let said = watched_text::watched(record).unwrap_or_default();
            let text = format!("{tunnel}: {said}; nothing wrong shows.");
            look.hanging(&format!("{}  ", look.bold("watched")), 9, &text)
        }
        Verdict::Unmeasured => {
            let comparisons = &record.measurements.comparisons;
            let text = match (comparisons.len(), measured_text::carried(comparisons)) {
                (2.., Some(carried)) => format!(
                    "{tunnel}: {carried}. Nothing was found, but that is too little to call it healthy: see Not checked."
                ),
                (1.., _) => format!(
                    "{tunnel}: nothing was found, but not every direction could be measured."
                ),
                _ => format!(
                    "{tunnel}: nothing could be measured, and nothing was found without measuring."
                ),
            };
            look.hanging(&format!("{}  ", look.warn("unmeasured")), 12, &text)
        }
    }
}

fn title(finding: &Finding, look: &Look) -> String {
    let word = match finding.severity {
        Severity::Critical => look.bad("critical"),
        Severity::Warning => look.warn("warning"),
        Severity::Info => look.bold("info"),
    };
    let direction = match finding.direction {
        Some(Direction::Upload) => ", upload",
        Some(Direction::Download) => ", download",
        None => "",
    };
    let place = format!(
        "on {}{direction}, {} sure",
        clean(&finding.host),
        units::percent(finding.confidence)
    );
    format!(
        "{word}  {}  {}\n",
        look.bold(&finding.code),
        look.dim(&place)
    )
}

fn full(
    finding: &Finding,
    record: &DoctorRecord,
    (far_options, on): (&str, &str),
    look: &Look,
) -> String {
    let mut out = title(finding, look);
    out.push_str(&look.paragraph(2, &clean(&finding.because)));
    let shown = if look.details {
        finding.evidence.len()
    } else {
        1
    };
    for (index, line) in finding.evidence.iter().take(shown).enumerate() {
        let lead = if index == 0 {
            "  evidence  "
        } else {
            "            "
        };
        out.push_str(&look.hanging(lead, 12, &evidence_line(line)));
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
        out.push_str(&look.hanging("  fix       ", 12, &command));
    }
    if look.details {
        for remedy in &finding.remedies {
            out.push_str(&look.hanging("  remedy    ", 12, &clean(&remedy.title)));
            for command in &remedy.commands {
                out.push_str(&look.hanging("            ", 14, &clean(command)));
            }
            for (lead, text) in [
                ("    to keep ", &remedy.persistence),
                ("    undo    ", &remedy.undo),
                ("    risk    ", &remedy.risk),
            ] {
                if !text.is_empty() {
                    out.push_str(&look.hanging(lead, 12, &clean(text)));
                }
            }
        }
        for refusal in &finding.refused {
            let text = format!("{}: {}", clean(&refusal.remedy), clean(&refusal.why));
            out.push_str(&look.hanging("  useless   ", 12, &text));
        }
    } else if let Some(command) = first_command(&finding.remedies) {
        out.push_str(&look.hanging("  by hand   ", 12, &clean(command)));
    } else if let Some(remedy) = finding.remedies.first() {
        out.push_str(&look.hanging("  by hand   ", 12, &clean(&remedy.title)));
    }
    out.push_str(&look.hanging(
        "  more      ",
        12,
        &format!("wirespeed explain {}", finding.code),
    ));
    out
}

fn evidence_line(line: &EvidenceLine) -> String {
    let before = units::value(&line.before, &line.unit);
    let after = units::value(&line.after, &line.unit);
    let values = match (before, after) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (None, Some(value)) | (Some(value), None) => value,
        (None, None) => "not known".to_owned(),
    };
    clean(&format!("{}: {values} ({})", line.what, line.r#where))
}

/// What was measured only to tell causes apart.
fn asked(record: &DoctorRecord, look: &Look) -> String {
    let all: Vec<String> = record
        .measurements
        .asked
        .iter()
        .map(|one| format!("{} ({})", one.what, one.by.join(", ")))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let text = format!("Also measured, to tell causes apart: {}.", all.join("; "));
    format!("\n{}", look.paragraph(0, &text))
}

fn refused(record: &DoctorRecord, look: &Look) -> String {
    if record.refused.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    out.push_str(&look.bold("Would not help here"));
    out.push('\n');
    for refusal in &record.refused {
        let text = if look.details {
            format!("{}: {}", clean(&refusal.remedy), clean(&refusal.why))
        } else {
            clean(&refusal.remedy)
        };
        out.push_str(&look.hanging("  - ", 4, &text));
    }
    out
}

fn not_checked(record: &DoctorRecord, look: &Look) -> String {
    if record.not_checked.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    out.push_str(&look.bold("Not checked"));
    out.push('\n');
    let shown = if look.details {
        record.not_checked.len()
    } else {
        NOT_CHECKED_SHOWN
    };
    // What leaves the verdict open comes before what some check lacks.
    let (open, rest): (Vec<_>, Vec<_>) = record
        .not_checked
        .iter()
        .partition(|item| item.what.starts_with(COMPARISON) || item.what == UNEXPLAINED);
    for item in open.into_iter().chain(rest).take(shown) {
        out.push_str(&look.hanging(
            "  - ",
            4,
            &clean(&format!("{}: {}", item.what, item.because)),
        ));
    }
    let left = record.not_checked.len().saturating_sub(shown);
    if left > 0 {
        out.push_str(&look.paragraph(4, &format!("and {left} more (-v shows them).")));
    }
    out
}

#[cfg(test)]
mod tests {
    use wirespeed_doctor::Asked;
    use wirespeed_facts::Known;
    use wirespeed_measure::NotMeasured;

    use super::*;

    fn record(name: &str) -> DoctorRecord {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/");
        let text = std::fs::read_to_string(format!("{folder}{name}.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_consequence_is_told_once_where_two_have_the_code_of_its_cause() {
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
        record.findings = vec![root.clone(), root, effect];
        let text = doctor(&record, "", &Look::new(120, false, false));
        assert_eq!(text.matches("mtu-exceeds-path:").count(), 1, "{text}");
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
