//! The way in for the fuzz target, and the replay of its corpus.
//!
//! Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use crate::{
    DoctorRecord, HopsRecord, Look, TestRecord, TuneRecord, against, diff, doctor, hops, test, tune,
};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// A record in JSON, of `test`, `doctor`, `doctor --hop` or `tune`: `--against` reads one from a file, and half of what is in the others
/// was said by another machine.
pub fn record(json: &[u8]) {
    for details in [false, true] {
        let look = Look::new(100, false, details);
        if let Ok(record) = serde_json::from_slice::<TestRecord>(json) {
            harmless(&test(&record, &look));
            let mut now = record.clone();
            now.comparisons.reverse();
            let difference = diff::against(&record, &now);
            harmless(&against(&difference, &look));
        }
        if let Ok(record) = serde_json::from_slice::<DoctorRecord>(json) {
            harmless(&doctor(&record, " --far netns:a", &look));
        }
        if let Ok(record) = serde_json::from_slice::<HopsRecord>(json) {
            harmless(&hops(&record, &look));
        }
        if let Ok(record) = serde_json::from_slice::<TuneRecord>(json) {
            harmless(&tune(&record, " --far netns:a", &look));
        }
    }
}

/// Nothing a terminal would obey.
fn harmless(text: &str) {
    assert_eq!(text, wirespeed_words::clean_lines(text));
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_shown() {
        corpus("report_record", super::record);
    }
}
