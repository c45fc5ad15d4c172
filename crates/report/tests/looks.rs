//! How recorded results look at 80 and at 120 columns, and that they fit at any.

#[path = "support/json_files.rs"]
mod json_files;
#[path = "looks/tables.rs"]
mod tables;

use std::path::Path;

use json_files::json_files;
use serde::de::DeserializeOwned;
use wirespeed_doctor::{Evidence, Remedy, judge};
use wirespeed_measure::{Comparison, Interval, Sample, Via};
use wirespeed_report::{DoctorRecord, Look, TestRecord, TuneRecord, diff};
use wirespeed_words::{Language, within};

fn recorded<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const WIDTHS: [usize; 5] = [60, 70, 80, 100, 120];

/// No line sticks out.
fn assert_fits(text: &str, width: usize) {
    assert_fits_but(text, width, &[]);
}

/// No line sticks out but for words that are longer than the room, and for commands, of which each is there, and whole.
fn assert_fits_but(text: &str, width: usize, commands: &[String]) {
    let of_command = |line: &str| {
        let mut all = commands.iter();
        all.any(|one| line.strip_suffix(one).is_some_and(is_label))
    };
    for line in text.lines() {
        let columns = line.chars().count();
        let word = line.rfind(' ').is_some_and(|at| is_label(&line[..=at]));
        assert!(
            columns <= width || word || of_command(line),
            "{columns} columns of {width}: {line}"
        );
    }
    for command in commands {
        let mut lines = text.lines();
        let whole = lines.any(|line| {
            let line = line.split(" # ").next().unwrap_or_default();
            line.strip_suffix(command).is_some_and(is_label)
        });
        assert!(whole, "{command} is on no line of its own in\n{text}");
    }
}

/// What stands before a command: a label in its column, or nothing.
fn is_label(text: &str) -> bool {
    text.starts_with("  ") && text.ends_with(' ') && text.chars().count() <= 20
}

/// What a diagnosis gives to type.
fn commands(record: &DoctorRecord, far: &str, details: bool) -> Vec<String> {
    let mut all = Vec::new();
    let typed = |line: &str| Some(line.split_once("  # ")?.0.to_owned());
    let roots = record
        .findings
        .iter()
        .filter(|one| one.consequence_of.is_none());
    for finding in roots.take(if details { usize::MAX } else { 3 }) {
        all.push(format!("wirespeed explain {}", finding.code));
        let remedies = &finding.remedies;
        if remedies.iter().any(|one| !one.changes.is_empty()) {
            let (interface, code) = (&record.interface, &finding.code);
            all.push(format!("wirespeed tune {interface}{far} --only {code}"));
        }
        if details {
            let lines = remedies.iter().flat_map(|one| {
                let commands = one.commands.iter().map(String::as_str);
                commands.chain(one.undo.lines())
            });
            all.extend(lines.filter_map(typed));
        } else {
            let by_hand = |one: &&Remedy| one.changes.is_empty() || !one.commands.is_empty();
            let first = remedies.iter().find(by_hand);
            // All of them or none.
            let shown = first.filter(|one| one.commands.len() <= 4);
            let lines = shown.iter().flat_map(|one| &one.commands);
            all.extend(lines.filter_map(|line| typed(line)));
        }
    }
    all
}

#[test]
fn a_healthy_test() {
    let record: TestRecord = recorded("test-healthy.json");
    for width in [80, 120] {
        let text = wirespeed_report::test(&record, &Look::new(width, false, false));
        assert_fits(&text, width);
        insta::assert_snapshot!(format!("test-healthy-{width}"), text);
    }
    insta::assert_snapshot!(
        "test-healthy-details",
        wirespeed_report::test(&record, &Look::new(100, false, true))
    );
}

#[test]
fn a_test_against_an_earlier_one() {
    let then: TestRecord = recorded("test-healthy.json");
    let mut now = then.clone();
    for comparison in &mut now.comparisons {
        comparison.tunnel *= 0.5;
        comparison.ratio = comparison.ratio.map(|ratio| ratio * 0.5);
        comparison.ratio_low = comparison.ratio_low.map(|ratio| ratio * 0.5);
        comparison.ratio_high = comparison.ratio_high.map(|ratio| ratio * 0.5);
    }
    for machine in &mut now.machines {
        "6.1.0-18-amd64".clone_into(&mut machine.facts.host.kernel);
        for link in &mut machine.facts.links {
            if Some(&link.name) == machine.interface.as_ref() {
                link.mtu = 1280;
            }
        }
    }
    let difference = diff::against(&then, &now);
    assert!(
        difference
            .changes
            .iter()
            .all(|change| change.overlap == Some(false))
    );
    let text = wirespeed_report::against(&difference, &Look::new(80, false, false));
    assert_fits(&text, 80);
    insta::assert_snapshot!("against", text);
    let same = diff::against(&then, &then);
    assert!(same.machines.is_empty(), "{:?}", same.machines);
    assert!(
        same.changes
            .iter()
            .all(|change| change.overlap == Some(true))
    );
}

#[test]
fn a_diagnosis() {
    for name in ["doctor-black-hole", "doctor-healthy"] {
        let record: DoctorRecord = recorded(&format!("{name}.json"));
        for width in [80, 120] {
            let text = wirespeed_report::doctor(
                &record,
                " --far netns:b",
                &Look::new(width, false, false),
            );
            assert!(text.lines().count() <= 40, "one screen of answer: {text}");
            insta::assert_snapshot!(format!("{name}-{width}"), text);
        }
        let details = wirespeed_report::doctor(&record, "", &Look::new(100, false, true));
        insta::assert_snapshot!(format!("{name}-details"), details);
    }
}

#[test]
fn a_tune() {
    let record: TuneRecord = recorded("tune-black-hole.json");
    for width in [80, 120] {
        let text =
            wirespeed_report::tune(&record, " --far netns:b", &Look::new(width, false, false));
        assert_fits(&text, width);
        insta::assert_snapshot!(format!("tune-kept-{width}"), text);
    }
    let mut refused = record.clone();
    for experiment in &mut refused.outcome.experiments {
        experiment.kept = false;
        "the interval of the gain does not exclude zero".clone_into(&mut experiment.why);
    }
    refused.outcome.kept.clear();
    refused.outcome.confirm_within = None;
    refused.outcome.stages.truncate(1);
    let text = wirespeed_report::tune(&refused, "", &Look::new(80, false, true));
    assert!(
        !text.contains("tune undo"),
        "nothing is there to undo: {text}"
    );
    insta::assert_snapshot!("tune-put-back", text);
}

#[test]
fn a_test_in_french() {
    let record: TestRecord = recorded("test-healthy.json");
    within(Language::French, || {
        for width in [80, 120] {
            let text = wirespeed_report::test(&record, &Look::new(width, false, false));
            assert_fits(&text, width);
            insta::assert_snapshot!(format!("fr-test-healthy-{width}"), text);
        }
        insta::assert_snapshot!(
            "fr-test-healthy-details",
            wirespeed_report::test(&record, &Look::new(100, false, true))
        );
        let mut now = record.clone();
        now.machines[0].facts.cpu.online = 1;
        for comparison in &mut now.comparisons {
            comparison.ratio = None;
        }
        let difference = diff::against(&record, &now);
        insta::assert_snapshot!(
            "fr-against",
            wirespeed_report::against(&difference, &Look::new(80, false, false))
        );
    });
}

/// What was measured, judged in French: nothing on the screen is English.
#[test]
fn a_diagnosis_in_french() {
    for name in ["icmp-black-hole.demo", "socket-overflow", "healthy"] {
        let case = format!("../../../doctor/tests/cases/{name}.json");
        let evidence: Evidence = recorded(&case);
        within(Language::French, || {
            let record = DoctorRecord::new(&evidence, &judge(&evidence));
            let far = " --far netns:b";
            for width in [80, 120] {
                let text = wirespeed_report::doctor(&record, far, &Look::new(width, false, false));
                assert!(text.lines().count() <= 48, "one screen of answer: {text}");
                insta::assert_snapshot!(format!("fr-doctor-{name}-{width}"), text);
            }
            let details = wirespeed_report::doctor(&record, far, &Look::new(100, false, true));
            insta::assert_snapshot!(format!("fr-doctor-{name}-details"), details);
        });
    }
}

/// Whatever the doctor says, at whatever width, in whatever detail.
#[test]
fn every_diagnosis_fits() {
    let mut seen = 0;
    let far =
        " --far ssh://root@nas.example.org --ssh-option -i --ssh-option /root/.ssh/id_ed25519";
    for path in json_files("../doctor/tests/cases") {
        seen += 1;
        let evidence: Evidence = recorded(path.to_str().expect("a name"));
        for language in Language::ALL {
            within(language, || {
                let record = DoctorRecord::new(&evidence, &judge(&evidence));
                for details in [false, true] {
                    let commands = commands(&record, far, details);
                    for width in WIDTHS {
                        let look = Look::new(width, false, details);
                        let text = wirespeed_report::doctor(&record, far, &look);
                        assert_fits_but(&text, width, &commands);
                    }
                }
            });
        }
    }
    assert!(seen > 20, "{seen} cases");
}

#[test]
fn every_test_and_every_tune_fits() {
    let far =
        " --far ssh://root@nas.example.org --ssh-option -i --ssh-option /root/.ssh/id_ed25519";
    let next = ["confirm", "undo"].map(|word| format!("wirespeed tune {word}{far}"));
    for language in Language::ALL {
        within(language, || {
            for (width, details) in WIDTHS
                .into_iter()
                .flat_map(|one| [(one, false), (one, true)])
            {
                let look = Look::new(width, false, details);
                for test in [recorded("test-healthy.json"), test_over_time()] {
                    assert_fits(&wirespeed_report::test(&test, &look), width);
                }
                for tune in [recorded("tune-black-hole.json"), tune_over_time()] {
                    let text = wirespeed_report::tune(&tune, far, &look);
                    assert_fits_but(&text, width, &next);
                }
                let doctor = doctor_over_time();
                let commands = commands(&doctor, far, details);
                let text = wirespeed_report::doctor(&doctor, far, &look);
                assert_fits_but(&text, width, &commands);
            }
        });
    }
}

#[test]
fn a_tune_in_french() {
    let record: TuneRecord = recorded("tune-black-hole.json");
    within(Language::French, || {
        for width in [80, 120] {
            let text =
                wirespeed_report::tune(&record, " --far netns:b", &Look::new(width, false, false));
            assert_fits(&text, width);
            insta::assert_snapshot!(format!("fr-tune-kept-{width}"), text);
        }
    });
}

#[test]
fn what_comes_from_outside_can_not_steer_the_terminal() {
    let mut record: DoctorRecord = recorded("doctor-black-hole.json");
    for finding in &mut record.findings {
        "\u{1b}]0;owned\u{7}".clone_into(&mut finding.host);
        "\u{1b}[2J".clone_into(&mut finding.because);
        for line in &mut finding.evidence {
            "a\u{1b}[31m".clone_into(&mut line.what);
        }
    }
    for machine in &mut record.machines {
        "\u{1b}[1m".clone_into(&mut machine.name);
        "\u{9b}31m".clone_into(&mut machine.facts.host.kernel);
    }
    let text = wirespeed_report::doctor(&record, "", &Look::new(80, false, true));
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
}

#[test]
fn colours_only_when_asked_for() {
    let record: TestRecord = recorded("test-healthy.json");
    assert!(!wirespeed_report::test(&record, &Look::new(80, false, true)).contains('\u{1b}'));
    assert!(wirespeed_report::test(&record, &Look::new(80, true, true)).contains('\u{1b}'));
}

/// Recorded loads have no intervals, for they are most of a record. Here is what ten seconds of such a load look like, two of
/// them its warm-up: a slow start, then the saw of a loss-based congestion control. The far end said nothing for a second of
/// the second load.
fn with_intervals(samples: &mut [Sample]) {
    for (index, sample) in samples.iter_mut().enumerate() {
        let rate = sample.rate;
        sample.load.warm_up = 2.0;
        sample.ran = 8.0;
        let interval = |tenth: u32| {
            let at = f64::from(tenth) * 0.1;
            let saw = ((at + index as f64 * 0.7) % 3.1) / 3.1;
            let slow_start = at.min(1.0);
            let depth = if sample.load.via == Via::Tunnel {
                0.6
            } else {
                0.1
            };
            Interval {
                start: at,
                seconds: 0.1,
                rate: rate * slow_start * (1.0 - depth * (1.0 - saw)),
                retransmits: Some(u64::from(saw < 0.03)),
                congestion_window: Some((rate * 0.004 * slow_start * (0.5 + 0.5 * saw)) as u64),
                rtt: None,
                warm_up: tenth < 20,
            }
        };
        let heard = |tenth: &u32| index != 1 || !(60..70).contains(tenth);
        sample.intervals = (0..100).filter(heard).map(interval).collect();
    }
}

fn comparisons_over_time(comparisons: &mut [Comparison]) {
    for comparison in comparisons {
        with_intervals(&mut comparison.samples);
    }
}

fn test_over_time() -> TestRecord {
    let mut record: TestRecord = recorded("test-healthy.json");
    comparisons_over_time(&mut record.comparisons);
    record
}

fn doctor_over_time() -> DoctorRecord {
    let mut record: DoctorRecord = recorded("doctor-healthy.json");
    comparisons_over_time(&mut record.measurements.comparisons);
    record
}

fn tune_over_time() -> TuneRecord {
    let mut record: TuneRecord = recorded("tune-black-hole.json");
    let test: TestRecord = recorded("test-healthy.json");
    let samples = test.comparisons.into_iter().flat_map(|one| one.samples);
    let mut samples: Vec<Sample> = samples.collect();
    with_intervals(&mut samples);
    record.outcome.experiments[0].samples = samples;
    record
}

#[test]
fn throughput_and_window_over_time() {
    let (test, doctor, tune) = (test_over_time(), doctor_over_time(), tune_over_time());
    for (language, mark) in [(Language::English, ""), (Language::French, "fr-")] {
        within(language, || {
            for width in [60, 80, 120] {
                let short = Look::new(width, false, false);
                let text = wirespeed_report::test(&test, &short);
                assert_fits(&text, width);
                insta::assert_snapshot!(format!("{mark}over-time-test-{width}"), text);
                let text = wirespeed_report::doctor(&doctor, " --far netns:b", &short);
                assert_fits(&text, width);
                assert!(text.lines().count() <= 24, "one screen of answer: {text}");
                insta::assert_snapshot!(format!("{mark}over-time-doctor-{width}"), text);
            }
            for width in [80, 120] {
                let all = Look::new(width, false, true);
                let text = wirespeed_report::test(&test, &all);
                assert_fits(&text, width);
                insta::assert_snapshot!(format!("{mark}over-time-test-details-{width}"), text);
                let text = wirespeed_report::tune(&tune, " --far netns:b", &all);
                assert_fits(&text, width);
                insta::assert_snapshot!(format!("{mark}over-time-tune-details-{width}"), text);
            }
        });
    }
}

#[test]
fn lines_over_time_can_do_without_unicode() {
    let record = test_over_time();
    let blocks = |text: &str| text.contains(['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█', '·']);
    for details in [false, true] {
        let look = Look::new(80, false, details);
        assert!(blocks(&wirespeed_report::test(&record, &look)));
        let text = wirespeed_report::test(&record, &look.in_ascii(true));
        assert!(!blocks(&text), "{text}");
        assert!(text.contains("9 is 94.4 Mbit/s"), "{text}");
    }
}
