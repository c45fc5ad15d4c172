//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use std::hint::black_box;

use serde_json::json;
use wirespeed_facts::Host;

use crate::{Diagnosis, End, Evidence, judge, versions};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// Evidence in JSON, half of which another machine said; panics when the diagnosis breaks a promise.
pub fn evidence(json: &[u8]) {
    if let Ok(evidence) = serde_json::from_slice(json) {
        sound(&evidence);
    }
}

/// What a machine tells of its kernel, a line each: release, build, signature, and a driver.
pub fn versions(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::to_owned);
    let mut next = || lines.next().unwrap_or_default();
    let host = Host {
        kernel: next(),
        kernel_build: next(),
        kernel_signature: Some(next()).filter(|line| !line.is_empty()),
        ..Host::default()
    };
    let driver = next();
    let kernel = versions::Kernel::of(&host);
    for fault in versions::kernel_faults() {
        // A text that is no version proves nothing against a machine.
        assert!(kernel.is_some() || fault.of(&host) == versions::Has::No);
    }
    for fault in versions::driver_faults() {
        black_box(fault.of(&host, &driver));
    }
}

fn sound(evidence: &Evidence) {
    let diagnosis = judge(evidence);
    let kept = json!(diagnosis);
    assert_eq!(kept, json!(judge(evidence)), "the same every time");
    let again: Result<Diagnosis, _> = serde_json::from_value(kept);
    assert!(
        again.is_ok(),
        "{diagnosis:?} can not be read again: {again:?}"
    );
    for finding in &diagnosis.findings {
        assert!(
            !finding.evidence.is_empty(),
            "{} without evidence",
            finding.code
        );
        assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
        for remedy in &finding.remedies {
            for change in &remedy.changes {
                assert!(
                    change.end == End::Here || evidence.far.is_some(),
                    "a change on a machine nobody can reach: {remedy:?}"
                );
            }
            for command in &remedy.commands {
                harmless(command);
            }
            remedy.undo.lines().for_each(harmless);
        }
        assert_eq!(finding.cause_index, finding.cause_in(&diagnosis.findings));
        assert_eq!(
            finding.cause_index.is_some(),
            finding.consequence_of.is_some()
        );
    }
}

/// Whoever pastes the line runs it and nothing else: no name from outside stands in it unquoted.
fn harmless(line: &str) {
    assert!(!line.chars().any(char::is_control), "{line:?}");
    let command = line
        .rsplit_once("  # on ")
        .map_or(line, |(command, _)| command);
    let bare: String = command
        .replace(r"'\''", "")
        .split('\'')
        .step_by(2)
        .collect();
    assert!(!bare.contains("$(") && !bare.contains("; x"), "{line:?}");
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_read() {
        corpus("doctor_evidence", super::evidence);
        corpus("doctor_versions", super::versions);
    }
}
