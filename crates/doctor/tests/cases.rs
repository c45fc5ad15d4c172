//! Evidence recorded from real tunnels (`examples/record.rs`), judged: each case must give the finding it is named by.
//!
//! `icmp-black-hole.json` or `icmp-black-hole.REMARK.json` must give `icmp-black-hole` and nothing else of severity warning or
//! worse that is not its consequence; `healthy.json` and `unmeasured.json` must give that verdict and no finding at all.

use std::path::Path;

use wirespeed_doctor::{Diagnosis, Evidence, Severity, Verdict, judge};

#[test]
fn every_recorded_case_gives_the_finding_it_is_named_by() {
    let mut seen = 0;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for entry in std::fs::read_dir(&folder).expect("the folder of cases") {
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
