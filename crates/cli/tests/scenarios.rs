//! Every scenario of the lab, on real traffic: the doctor must find exactly the codes the scenario names.
//!
//! One test per file in `crates/lab/scenarios`, by the file's name. Those that say `ci = true` run with all other tests;
//! the rest counts as ignored: `cargo test --test scenarios -- --include-ignored`, or `-- --exact NAME --ignored` for one.
//!
//! The loads share this machine's cores, so the scenarios take turns (a lock file, because test binaries
//! run at the same time too). Each lab has a name of its own and is taken down also when the test fails.
//!
//! A scenario that names no implementation runs over the lab's choice: the kernel's where there is one, else
//! wirespeed-device where it is built (`scripts/test` does), else wireguard-go.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{ExitCode, Output};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use wirespeed_lab::{Scenario, Topology};

#[path = "support/lab.rs"]
mod lab;
#[path = "support/settled.rs"]
mod settled;

use lab::{Lab, Turn, missing, skip};
use settled::{settled, timed};

/// The longest a doctor may take on a healthy tunnel …
const LIMIT: Duration = Duration::from_secs(60);
/// … a quick one …
const QUICK_LIMIT: Duration = Duration::from_secs(45);
/// … over two tunnels in a row, each measured by itself and both together …
const CHAIN_LIMIT: Duration = Duration::from_secs(100);
/// … and where more probes are needed to tell causes apart.
const WITH_PROBES_LIMIT: Duration = Duration::from_secs(75);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They would only wait for each other.
    arguments.test_threads = Some(1);
    let mut tests: Vec<Trial> = wirespeed_lab::scenarios()
        .iter()
        .map(|scenario| {
            let run = || as_it_should_be(scenario).map_err(Failed::from);
            Trial::test(scenario.name.clone(), run).with_ignored_flag(!scenario.ci)
        })
        .collect();
    let test = "a_tunnel_of_our_own_is_the_default_and_tells_more";
    tests.push(Trial::test(test, || {
        a_tunnel_of_our_own_is_the_default_and_tells_more();
        Ok(())
    }));
    let test = "a_doctor_that_is_not_in_a_hurry_ends_within_a_minute";
    let minute =
        || a_doctor_that_is_not_in_a_hurry_ends_within_a_minute(test).map_err(Failed::from);
    tests.push(Trial::test(test, minute).with_ignored_flag(true));
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Runs the doctor in the scenario's lab and compares what it found with what it had to find.
fn as_it_should_be(scenario: &Scenario) -> Result<(), String> {
    if let Some(reason) = missing() {
        skip(&format!("scenario {}", scenario.name), &reason);
        return Ok(());
    }
    let _turn = Turn::take();
    let lab = Lab::up(&scenario.name);
    let far = format!("netns:{}", lab.far_end());
    let mut arguments = vec!["--far", &far];
    let hub = format!("netns:ws-{}-hub", lab.id);
    if scenario.topology == Topology::Hub {
        arguments.extend(["--hop", &hub]);
    }
    arguments.extend(scenario.doctor_args.iter().map(String::as_str));
    let doctor = || lab.doctor(&arguments);
    // A fault has to be found at the first try, as whoever has it will try once.
    let (output, took) = if scenario.finding.is_healthy() {
        settled(&scenario.name, doctor)
    } else {
        timed(doctor)
    };
    let report = report_of(&output)?;
    eprintln!(
        "{} over {}: {:.1} s",
        scenario.name,
        lab.implementation,
        took.as_secs_f64()
    );
    compare(scenario, &report).map_err(|why| {
        let findings = serde_json::to_string_pretty(&report["findings"]).unwrap_or_default();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", scenario.name));
        let whole = match std::fs::write(&kept, &output.stdout) {
            Ok(()) => kept.display().to_string(),
            Err(error) => format!("not kept: {error}"),
        };
        format!(
            "{why}\nfindings: {findings}\nnot checked: {}\nthe whole report: {whole}",
            report["not_checked"]
        )
    })?;
    let (code, limit) = if scenario.finding.is_healthy() && scenario.topology == Topology::Hub {
        (0, CHAIN_LIMIT)
    } else if scenario.finding.is_healthy() {
        (0, QUICK_LIMIT)
    } else {
        (1, WITH_PROBES_LIMIT)
    };
    if output.status.code() != Some(code) {
        return Err(format!("{} instead of exit code {code}", output.status));
    }
    if took > limit {
        return Err(format!("a quick doctor took {took:?}"));
    }
    Ok(())
}

/// What a doctor printed, or why it is not what its schema says, with what it said beside it.
fn report_of(output: &Output) -> Result<Value, String> {
    let said = String::from_utf8_lossy(&output.stderr);
    wirespeed_schemas::read(&output.stdout)
        .map_err(|error| format!("what the doctor printed: {error}\n{said}"))
}

/// Exactly the scenario's codes; beside them nothing that is more than information, and of that only what it names. Below
/// them, as their consequences, nothing that is more than information but what it names.
fn compare(scenario: &Scenario, report: &Value) -> Result<(), String> {
    let is_serious = |finding: &Value| finding["severity"] != "info";
    let is_root = |finding: &Value| finding["consequence_of"].is_null();
    let serious = codes(report, |finding| is_root(finding) && is_serious(finding));
    let all = codes(report, is_root);
    let below = codes(report, |finding| !is_root(finding) && is_serious(finding));
    let wanted: BTreeSet<String> = scenario.finding.codes().iter().cloned().collect();
    let missing: Vec<&String> = wanted.difference(&all).collect();
    let besides: Vec<&String> = serious.difference(&wanted).collect();
    // Where the file says what may come along, nothing else may; a healthy tunnel has no findings at all.
    let strict = scenario.finding.is_healthy() || !scenario.info.is_empty();
    let informed: Vec<&String> = all
        .difference(&wanted)
        .filter(|code| strict && !scenario.info.contains(code))
        .collect();
    let below: Vec<&String> = below
        .iter()
        .filter(|code| !scenario.consequences.contains(code))
        .collect();
    let wrong = [&besides, &informed, &below];
    if !missing.is_empty() || wrong.iter().any(|codes| !codes.is_empty()) {
        return Err(format!(
            "not found: {missing:?}; found besides: {besides:?}; as information: {informed:?}; as consequences: {below:?}"
        ));
    }
    let verdict = if wanted.is_empty() {
        "healthy"
    } else {
        "findings"
    };
    if report["verdict"] != verdict {
        return Err(format!(
            "verdict {} instead of {verdict}",
            report["verdict"]
        ));
    }
    Ok(())
}

/// Codes of the findings that are wanted.
fn codes(report: &Value, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| wanted(finding))
        .filter_map(|finding| finding["code"].as_str().map(str::to_owned))
        .collect()
}

/// All that it does without `--quick`.
fn a_doctor_that_is_not_in_a_hurry_ends_within_a_minute(test: &str) -> Result<(), String> {
    if let Some(reason) = missing() {
        skip(test, &reason);
        return Ok(());
    }
    let _turn = Turn::take();
    let lab = Lab::up("healthy");
    let far = format!("netns:{}", lab.far_end());
    let (interface, options) = (format!("wg{}0", lab.id), ["--json", "--far", &far]);
    let (output, took) = settled(test, || {
        let mut doctor = lab.here(&["doctor", &interface]);
        doctor.args(options).output().expect("ip netns exec runs")
    });
    eprintln!(
        "{test} over {}: {:.1} s",
        lab.implementation,
        took.as_secs_f64()
    );
    let report = report_of(&output)?;
    if report["verdict"] != "healthy" {
        return Err(format!(
            "{}: {}; not checked: {}",
            report["verdict"], report["findings"], report["not_checked"]
        ));
    }
    if took > LIMIT {
        return Err(format!("a doctor took {took:?}"));
    }
    Ok(())
}

fn a_tunnel_of_our_own_is_the_default_and_tells_more() {
    let test = "a_tunnel_of_our_own_is_the_default_and_tells_more";
    if let Some(reason) = missing() {
        return skip(test, &reason);
    }
    if !Path::new(env!("CARGO_BIN_EXE_wirespeed"))
        .with_file_name("wirespeed-device")
        .exists()
    {
        return skip(
            test,
            "wirespeed-device is not built: cargo build -p wirespeed-device",
        );
    }
    let _turn = Turn::take();
    let lab = Lab::up("healthy");
    if lab.implementation == "kernel" {
        return skip(test, "this kernel carries WireGuard itself");
    }
    assert_eq!(lab.implementation, "wirespeed");
    // With nothing at the far end no load is run.
    let output = lab.doctor(&[]);
    let report: Value = wirespeed_schemas::read(&output.stdout).expect("a JSON object");
    let tunnel = &report["machines"][0]["facts"]["tunnels"][0];
    assert_eq!(
        tunnel["implementation"]["program"], "wirespeed-device",
        "{tunnel:#}"
    );
    let statistics = &tunnel["statistics"]["value"];
    assert_eq!(statistics["engine"], "inline", "{tunnel:#}");
    let worker = &statistics["workers"][0];
    assert_eq!(worker["port"], tunnel["listen_port"], "{tunnel:#}");
    assert!(worker["cpu_seconds"].is_number(), "{tunnel:#}");
    assert!(
        worker["received"]["packets"].as_u64() > Some(0),
        "{tunnel:#}"
    );
    assert!(
        statistics["offloads"]
            .as_array()
            .is_some_and(|list| !list.is_empty()),
        "{tunnel:#}"
    );
    assert!(
        statistics["drops"]
            .as_object()
            .is_some_and(|drops| drops.contains_key("source-not-allowed")),
        "{tunnel:#}"
    );
}
