//! What must come out of evidence that is judged.

use serde_json::json;

use crate::{Diagnosis, Evidence, Finding, judge};

/// Codes of the findings that are causes, worst first.
pub(crate) fn codes(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis
        .findings
        .iter()
        .filter(|finding| finding.consequence_of.is_none())
        .map(|finding| finding.code.as_str())
        .collect()
}

/// Judges, and hands back the one finding there must be.
pub(crate) fn only_finding(evidence: &Evidence, code: &str) -> Finding {
    let diagnosis = judge(evidence);
    assert_eq!(codes(&diagnosis), [code], "{:#}", json!(diagnosis.findings));
    diagnosis.findings[0].clone()
}

/// Judges, and makes sure that there is nothing to find.
pub(crate) fn nothing(evidence: &Evidence) {
    let diagnosis = judge(evidence);
    assert_eq!(diagnosis.findings, [], "{:#}", json!(diagnosis.findings));
}

/// Is a check reported as not made?
pub(crate) fn not_checked(evidence: &Evidence, code: &str) -> bool {
    judge(evidence)
        .not_checked
        .iter()
        .any(|one| one.what == code)
}
