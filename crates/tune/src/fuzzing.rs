//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Only in builds with the feature `fuzzing`, and in tests. Nothing here turns a knob.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use std::collections::BTreeSet;

use wirespeed_doctor::{Evidence, judge};

use crate::journal::Journal;
use crate::plan::plan;

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// A journal as left on disk.
pub fn journal(json: &[u8]) {
    let Ok(journal) = serde_json::from_slice::<Journal>(json) else {
        return;
    };
    journal.phase.open();
    for change in &journal.changes {
        change.setting.describe();
        change.setting.persistence(&change.before);
        change.setting.shell(&change.before);
    }
    let kept = serde_json::to_vec_pretty(&journal).expect("a journal can be kept");
    let again: Journal = serde_json::from_slice(&kept).expect("what was kept can be read");
    assert_eq!(again.changes, journal.changes);
    assert_eq!(again.interface, journal.interface);
}

/// Evidence in JSON: what the plan made of it lets a shell run is commands of known settings, and nothing else.
pub fn script(json: &[u8]) {
    let Ok(evidence) = serde_json::from_slice::<Evidence>(json) else {
        return;
    };
    let diagnosis = judge(&evidence);
    let known: BTreeSet<String> = diagnosis
        .findings
        .iter()
        .flat_map(|finding| &finding.remedies)
        .flat_map(|remedy| &remedy.changes)
        .flat_map(|change| change.setting.shell(&change.value))
        .collect();
    for script in plan(&diagnosis) {
        for line in script.text.lines() {
            let command = line
                .rsplit_once("  # on ")
                .map_or(line, |(command, _)| command);
            // A module to load, or the far end's interface where wirespeed does not run.
            let plain = command
                .replace(r"'\''", "")
                .split('\'')
                .step_by(2)
                .flat_map(str::chars)
                .all(|letter| letter.is_ascii_alphanumeric() || " _-.,+@%/=:".contains(letter));
            assert!(
                line.starts_with('#') || plain || known.contains(command),
                "{line:?} in {}",
                script.text
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_read() {
        corpus("tune_journal", super::journal);
        corpus("doctor_evidence", super::script);
    }
}
