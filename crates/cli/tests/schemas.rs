//! What the commands print with `--json`, and write to files, is what `docs/schemas` says.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

#[path = "support/lab.rs"]
mod lab;

use lab::{Lab, Turn, missing, skip, wirespeed};

/// Nothing large arrives through its tunnel: loads end early, and what mends it is proved beside any other load. Nor is there any
/// delay to wait for.
const STALLS: &str = r#"
name = "stalls"
description = "What is larger than 1400 bytes vanishes without a word"
topology = "client-server"
finding = "icmp-black-hole"

[road]
clamp_mss = true

[road.both]
rate = "100mbit"
queue = "20ms"
mtu = 1400
icmp = "drop"

[tunnel]
implementation = "wireguard-go"
mtu = 1420
"#;

/// One object, as its schema says; and this is its name.
fn named(output: &Output, name: &str) -> Value {
    let record = wirespeed_schemas::read(&output.stdout).unwrap_or_else(|error| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        panic!("{name}, {}: {error}\n{complaint}", output.status)
    });
    assert_eq!(record["schema"]["name"], format!("wirespeed.{name}"));
    record
}

fn written(path: &Path, name: &str) {
    let text = std::fs::read(path).expect("the file was written");
    let record = wirespeed_schemas::read(&text).expect("as its schema says");
    assert_eq!(record["schema"]["name"], format!("wirespeed.{name}"));
}

#[test]
fn a_command_that_fails_names_the_schema_of_what_was_asked_for() {
    let nowhere = ["--far", "netns:wirespeed-no-such"];
    let chain = [&["--hop", "netns:wirespeed-no-such"], &nowhere[..]].concat();
    for (name, arguments, options) in [
        ("doctor", &["doctor", "nosuchwg"][..], &[][..]),
        ("hops", &["doctor", "nosuchwg"], &chain),
        ("test", &["test", "nosuchwg"], &[]),
        ("tune", &["tune", "nosuchwg"], &[]),
        ("tune.plan", &["tune", "nosuchwg", "--plan"], &[]),
        ("tune.status", &["tune", "status"], &nowhere),
        ("tune.status", &["tune", "confirm"], &nowhere),
        ("tune.undo", &["tune", "undo"], &nowhere),
        ("lab.up", &["lab", "up", "no-such-scenario"], &[]),
        ("lab.status", &["lab", "status", "nosuch0"], &[]),
    ] {
        let output = wirespeed()
            .args(arguments)
            .args(options)
            .arg("--json")
            .output()
            .expect("it starts");
        let record = named(&output, name);
        assert_eq!(record["verdict"], "unmeasured", "{arguments:?}");
        assert!(record["error"]["what"].is_string(), "{arguments:?}");
        assert!(!output.status.success(), "{arguments:?}");
    }
}

#[test]
fn the_scenarios_are_listed_as_their_schema_says() {
    let output = wirespeed().args(["lab", "list", "--json"]).output();
    let record = named(&output.expect("it starts"), "lab.list");
    assert!(record["scenarios"].as_array().expect("a list").len() > 20);
}

#[test]
fn on_a_practice_road_every_command_prints_what_its_schema_says() {
    let test = "on_a_practice_road_every_command_prints_what_its_schema_says";
    if let Some(reason) = missing() {
        return skip(test, &reason);
    }
    let _turn = Turn::take();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let scenario = file("stalls.toml");
    std::fs::write(&scenario, STALLS).expect("the scenario is written");
    let lab = Lab::up(&scenario);
    let far = format!("netns:{}", lab.far_end());
    let interface = format!("wg{}0", lab.id);
    let run = |arguments: &[&str]| {
        lab.here(arguments)
            .args(["--far", &far, "--json"])
            .output()
            .expect("ip netns exec runs")
    };

    let status = wirespeed()
        .args(["lab", "status", &lab.id, "--json"])
        .output();
    named(&status.expect("it starts"), "lab.status");

    let evidence = file("evidence");
    let doctor = lab.doctor(&["--far", &far, "--record", &evidence]);
    let report = named(&doctor, "doctor");
    assert_eq!(report["findings"][0]["code"], "icmp-black-hole");
    written(evidence.as_ref(), "evidence");

    let tune = ["tune", &interface, "--from", &evidence];
    let plan = named(&run(&[&tune[..], &["--plan"]].concat()), "tune.plan");
    assert_eq!(plan["plan"][0].as_array().map(Vec::len), Some(2));
    named(&run(&["tune", "status"]), "tune.status");

    let two_tests = || {
        let quick = ["test", &interface, "--quick", "--direction", "upload"];
        let (first, second) = (file("first"), file("second"));
        named(
            &run(&[&quick[..], &["--streams", "1", "--output", &first]].concat()),
            "test",
        );
        written(first.as_ref(), "test");
        let more = ["--connections", "20", "--against", &first];
        let output = ["--output", &second];
        let exchanges = named(&run(&[&quick[..], &more, &output].concat()), "test");
        assert!(exchanges["exchanges"].is_object() && exchanges["against"].is_object());
        written(second.as_ref(), "test");
    };
    let tuned = std::thread::scope(|scope| {
        let beside = scope.spawn(two_tests);
        // Nothing listens there: the diagnosis after the experiment measures the tunnel alone, in less time.
        let only = ["--only", "icmp-black-hole", "--bare-address", "127.0.0.1"];
        let tuned = named(&run(&[&tune[..], &["--quick"], &only].concat()), "tune");
        beside.join().expect("the tests print what they should");
        tuned
    });
    let why = &tuned["experiments"][0]["why"];
    let kept = tuned["kept"].as_array();
    assert!(kept.is_some_and(|kept| !kept.is_empty()), "{why}");
    named(&run(&["tune", "confirm"]), "tune.status");
    let undone = named(&run(&["tune", "undo"]), "tune.undo");
    assert!(undone["machines"][0][1][0]["setting"]["knob"].is_string());
    let status = named(&run(&["tune", "status"]), "tune.status");
    assert_eq!(status["machines"][0][1]["state"]["state"], "undone");
}
