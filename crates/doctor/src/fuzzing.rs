//! The way in for the fuzz target, and the replay of its corpus.
//!
//! Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use serde_json::json;

use crate::{Diagnosis, End, Evidence, judge};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// Evidence in JSON, half of which another machine said; panics when the diagnosis breaks a promise.
pub fn evidence(json: &[u8]) {
    if let Ok(evidence) = serde_json::from_slice(json) {
        sound(&evidence);
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
        if let Some(cause) = &finding.consequence_of {
            assert!(diagnosis.findings.iter().any(|other| &other.code == cause));
        }
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
    fn the_corpus_is_judged() {
        corpus("doctor_evidence", super::evidence);
    }
}
