//! What is recorded here, and what is made of it, is what `docs/schemas` says; and what is not so is told.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use wirespeed_doctor::Evidence;
use wirespeed_report::{DoctorRecord, HopsRecord, Schema, TestRecord, TuneRecord, Versioned};
use wirespeed_schemas::{check, check_of_an_earlier_release};

#[path = "html/hostile.rs"]
mod hostile;
#[path = "html/records.rs"]
mod records;

use records::json_files::json_files;
use records::{case, cases, judged, recorded};

fn assert_valid(what: &str, record: &impl Serialize) {
    // As a reader gets it: figures that JSON can't say are null by then.
    let text = serde_json::to_string(record).expect("JSON");
    if let Err(why) = wirespeed_schemas::read(text.as_bytes()) {
        panic!("{what}: {why}");
    }
}

fn json_of(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a readable file");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_case_of_the_doctor_is_as_its_schemas_say() {
    for path in cases() {
        let name = path.display().to_string();
        let raw = json_of(&path);
        let evidence: Evidence = serde_json::from_value(raw.clone()).expect("evidence");
        assert_valid(&name, &Versioned::of(Schema::EVIDENCE, &evidence));
        assert_valid(&name, &judged(&path));
        // Those without a name and a version are as version 1 says.
        if let Err(why) = check_of_an_earlier_release("wirespeed.evidence", 1, &raw) {
            panic!("{name}: {why}");
        }
    }
}

#[test]
fn what_earlier_releases_recorded_is_still_as_the_schemas_say() {
    let mut seen = 0;
    for path in json_files("tests/recorded") {
        let record = json_of(&path);
        // Without one it is what a report was made of.
        let Some(name) = record["schema"]["name"].as_str() else {
            continue;
        };
        let version = record["schema"]["version"].as_u64().expect("a version");
        if let Err(why) = check_of_an_earlier_release(name, version, &record) {
            panic!("{}: {why}", path.display());
        }
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} records");
}

#[test]
fn every_record_that_pages_are_made_of_is_as_its_schema_says() {
    for name in ["doctor-black-hole", "doctor-healthy"] {
        assert_valid(name, &recorded::<DoctorRecord>(name));
    }
    assert_valid("test", &recorded::<TestRecord>("test-healthy"));
    assert_valid("tune", &recorded::<TuneRecord>("tune-black-hole"));
    assert_valid("a test", &records::a_test());
    assert_valid("an hour", &records::an_hour());
    assert_valid("a long load", &records::a_long_load());
    assert_valid("a long tune", &records::a_long_tune());
    assert_valid("a tune", &records::a_tune());
    assert_valid("a sweep", &records::a_sweep());
    assert_valid("a chain", &records::hops());
    assert_valid("a tune of nothing", &records::a_tune_of_nothing());
    assert_valid("a watch", &records::watched());
    assert_valid("a hostile machine", &hostile::doctor());
    assert_valid("a hostile machine, watched", &hostile::watched());
    assert_valid("a hostile machine, tested", &hostile::test());
    assert_valid("a hostile machine, tuned", &hostile::tune());
    assert_valid("hostile machines in a row", &hostile::hops());
    let alone = HopsRecord {
        doctor: None,
        ..records::hops()
    };
    assert_valid("a chain alone", &alone);
}

/// A healthy report, changed at one place.
fn refusal(place: &str, value: Option<Value>) -> String {
    let mut record = json!(case("socket-overflow"));
    check(&record).expect("it is valid");
    let (parent, field) = place.rsplit_once('/').expect("a pointer");
    let parent = record.pointer_mut(parent).expect("the place is there");
    match (parent, value) {
        (Value::Object(parent), Some(value)) => _ = parent.insert(field.to_owned(), value),
        (Value::Object(parent), None) => _ = parent.remove(field).expect("the field is there"),
        (parent, _) => panic!("{place} is in {parent}"),
    }
    check(&record).expect_err(place).to_string()
}

#[test]
fn what_is_not_as_the_schema_says_is_told() {
    for (place, value, told) in [
        ("/verdict", Some(json!("ill")), "/verdict"),
        ("/verdict", None, "\"verdict\" is a required property"),
        (
            "/findings/0/confidence",
            Some(json!("high")),
            "/findings/0/confidence",
        ),
        ("/findings/0/code", None, "\"code\" is a required property"),
        (
            "/findings/0/mood",
            Some(json!("bad")),
            "'mood' was unexpected",
        ),
        (
            "/machines/0/facts/cpu/online",
            Some(json!(-1)),
            "/machines/0/facts/cpu/online",
        ),
        (
            "/machines/0/facts/cpu/model",
            Some(json!("a bare text")),
            "/machines/0/facts/cpu/model",
        ),
        (
            "/machines/0/facts/cpu/model/unknown",
            None,
            "/machines/0/facts/cpu/model",
        ),
        (
            "/measurements/comparisons/0/samples/0/rate",
            Some(Value::Null),
            "/samples/0/rate",
        ),
        (
            "/measurements/comparisons/0/samples/0/here/new",
            Some(json!(1)),
            "'new' was unexpected",
        ),
        (
            "/findings/0/remedies/0/changes/0/setting/knob",
            Some(json!("volume")),
            "/setting",
        ),
        (
            "/schema/name",
            Some(json!("wirespeed.test")),
            "wirespeed.test",
        ),
        (
            "/schema/name",
            Some(json!("wirespeed.horoscope")),
            "has no version 1 of wirespeed.horoscope",
        ),
        (
            "/schema/version",
            Some(json!(99)),
            "has no version 99 of wirespeed.doctor",
        ),
        (
            "/schema/version",
            None,
            "no `schema` with a name and a version",
        ),
        (
            "/error",
            Some(json!({"what": "", "where": "", "todo": ""})),
            "/verdict",
        ),
    ] {
        let refused = refusal(place, value);
        assert!(refused.contains(told), "{place}: {refused}");
    }
}
