//! Evidence recorded from real tunnels (`examples/record.rs`), judged: each case must give the finding it is named by.
//!
//! `icmp-black-hole.json` or `icmp-black-hole.REMARK.json` must give `icmp-black-hole` and nothing else of severity warning or
//! worse that is not its consequence; `healthy.json` and `unmeasured.json` must give that verdict and no finding at all.

use std::path::{Path, PathBuf};

use wirespeed_doctor::{Diagnosis, Evidence, Refusal, Severity, Verdict, judge};
use wirespeed_words::{Language, within};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

#[test]
fn every_recorded_case_gives_the_finding_it_is_named_by() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder of cases") {
        let path = entry.expect("an entry").path();
        let Some(name) = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".json"))
        else {
            continue;
        };
        let code = name.split('.').next().unwrap_or(name);
        let text = std::fs::read_to_string(&path).expect("a readable case");
        let evidence: Evidence =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(name, code, &judge(&evidence));
        seen += 1;
    }
    assert!(seen >= 14, "only {seen} cases");
}

/// A recording may carry what this version does not know, and what one before it knew: `exchanges` was such a field.
#[test]
fn what_is_not_known_of_a_recording_is_passed_over() {
    let text = std::fs::read_to_string(folder().join("healthy.iperf3-only.json")).expect("a case");
    let plain: Evidence = serde_json::from_str(&text).expect("evidence");
    let mut object: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let sample =
        serde_json::json!({"via": "tunnel", "wanted": 1000, "failed": {"connect: timed out": 20}});
    object["exchanges"] = serde_json::json!([{"at_once": 500, "samples": [sample]}]);
    let stuffed: Evidence = serde_json::from_value(object).expect("evidence with more in it");
    assert_eq!(stuffed, plain);
}

fn check(name: &str, code: &str, diagnosis: &Diagnosis) {
    let causes: Vec<&str> = diagnosis
        .findings
        .iter()
        .filter(|finding| {
            finding.consequence_of.is_none()
                && (finding.severity >= Severity::Warning || finding.code == code)
        })
        .map(|finding| finding.code.as_str())
        .collect();
    let verdict = match code {
        "healthy" => Verdict::Healthy,
        "unmeasured" => Verdict::Unmeasured,
        _ => Verdict::Findings,
    };
    assert_eq!(diagnosis.verdict, verdict, "{name}: {causes:?}");
    if verdict == Verdict::Findings {
        assert!(
            !causes.is_empty() && causes.iter().all(|cause| *cause == code),
            "{name}: {causes:?}"
        );
    } else {
        assert!(diagnosis.findings.is_empty(), "{name}: {causes:?}");
        assert!(
            code == "healthy" || !diagnosis.not_checked.is_empty(),
            "{name} does not say what is missing"
        );
    }
}

/// The same diagnosis in both languages, and no sentence of it the same. What stands in evidence may be: names, files,
/// counters.
#[test]
fn every_recorded_case_is_told_in_french() {
    for entry in std::fs::read_dir(folder()).expect("the folder of cases") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable case");
        let evidence: Evidence = serde_json::from_str(&text).expect("evidence");
        let (english, french) = (
            judge(&evidence),
            within(Language::French, || judge(&evidence)),
        );
        assert_eq!(english.verdict, french.verdict, "{}", path.display());
        let codes = |diagnosis: &Diagnosis| -> Vec<String> {
            let findings = diagnosis.findings.iter();
            findings.map(|finding| finding.code.clone()).collect()
        };
        assert_eq!(codes(&english), codes(&french), "{}", path.display());
        let same: Vec<(String, String)> = texts(&english)
            .into_iter()
            .zip(texts(&french))
            .filter(|(one, other)| one == other && one.contains(' '))
            .collect();
        assert!(same.is_empty(), "{}: {same:#?}", path.display());
    }
}

/// Sentences of a diagnosis.
fn texts(diagnosis: &Diagnosis) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let refusal = |one: &Refusal| [one.remedy.clone(), one.why.clone()];
    for finding in &diagnosis.findings {
        texts.push(finding.because.clone());
        for remedy in &finding.remedies {
            texts.extend([remedy.title.clone(), remedy.risk.clone()]);
        }
        texts.extend(finding.refused.iter().flat_map(refusal));
    }
    texts.extend(diagnosis.refused.iter().flat_map(refusal));
    let missing = diagnosis.not_checked.iter();
    texts.extend(missing.map(|one| one.because.clone()));
    texts
}
