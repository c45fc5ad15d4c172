//! Every scenario of the lab, on real traffic: the doctor must find exactly the code the scenario names.
//!
//! The loads share this machine's cores, so the scenarios take turns (a lock file, because test binaries
//! run at the same time too). Each lab has a name of its own and is taken down also when the test fails.
//!
//! A scenario that names no implementation runs over the lab's choice: the kernel's where there is one, else
//! wirespeed-device where it is built (`scripts/test` does), else wireguard-go.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "support/lab.rs"]
mod lab;

use lab::{Lab, Turn, missing, skip};

/// The longest a quick doctor may take on a healthy tunnel …
const QUICK_LIMIT: Duration = Duration::from_secs(45);
/// … and where one more trial is needed to tell two causes apart.
const WITH_TRIAL_LIMIT: Duration = Duration::from_secs(75);

#[test]
fn healthy() {
    finds("healthy");
}

/// What most people have whose kernel carries no WireGuard is healthy too.
#[test]
fn healthy_over_wireguard_go() {
    finds_over("healthy", Some("wireguard-go"));
}

#[test]
fn healthy_site() {
    finds("healthy-site");
}

#[test]
fn mtu_exceeds_path() {
    finds("mtu-exceeds-path");
}

#[test]
fn mtu_below_path() {
    finds("mtu-below-path");
}

#[test]
fn icmp_black_hole() {
    finds("icmp-black-hole");
}

#[test]
fn socket_overflow() {
    finds("socket-overflow");
}

#[test]
fn congestion_control() {
    finds("congestion-control");
}

#[test]
fn bufferbloat() {
    finds("bufferbloat");
}

#[test]
fn path_slow() {
    finds("path-slow");
}

#[test]
fn cpu_saturated() {
    finds("cpu-saturated");
}

#[test]
fn one_core_bound() {
    finds("one-core-bound");
}

#[test]
fn nat_timeout() {
    finds("nat-timeout");
}

#[test]
fn allowed_ips_overlap() {
    finds("allowed-ips-overlap");
}

#[test]
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
    let report: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
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

/// Runs the doctor in the scenario's lab and compares what it found with what it had to find.
fn finds(scenario: &str) {
    finds_over(scenario, None);
}

fn finds_over(scenario: &str, implementation: Option<&str>) {
    if let Some(reason) = missing() {
        skip(&format!("scenario {scenario}"), &reason);
        return;
    }
    let _turn = Turn::take();
    let lab = Lab::over(scenario, implementation);
    let text = std::fs::read_to_string(format!(
        "{}/../lab/scenarios/{scenario}.toml",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("the scenario's file");
    let file: toml::Value = toml::from_str(&text).expect("a TOML scenario");
    let must_find = file["finding"]
        .as_str()
        .expect("the scenario names its finding");
    let arguments: Vec<&str> = file
        .get("doctor_args")
        .and_then(toml::Value::as_array)
        .map(|list| list.iter().filter_map(toml::Value::as_str).collect())
        .unwrap_or_default();

    let begun = Instant::now();
    let far = format!("netns:{}", lab.far_end());
    let output = lab.doctor(&[&["--far", &far][..], &arguments].concat());
    let took = begun.elapsed();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "the doctor printed no JSON object ({error}): {}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });

    let found: BTreeSet<String> = codes(&report, |_| true);
    let serious: BTreeSet<String> = codes(&report, |finding| finding["severity"] != "info");
    let summary = serde_json::to_string_pretty(&report["findings"]).unwrap_or_default();
    if must_find == "healthy" {
        assert!(found.is_empty(), "a healthy tunnel got findings: {summary}");
        assert_eq!(report["verdict"], "healthy", "{report}");
        assert_eq!(output.status.code(), Some(0));
    } else {
        assert!(
            found.contains(must_find),
            "{must_find} was not found: {summary}\n{}",
            report["not_checked"]
        );
        let others: Vec<&String> = serious.iter().filter(|code| *code != must_find).collect();
        assert!(
            others.is_empty(),
            "found besides {must_find}: {others:?}: {summary}"
        );
        assert_eq!(report["verdict"], "findings");
        assert_eq!(output.status.code(), Some(1));
    }
    let limit = if must_find == "healthy" {
        QUICK_LIMIT
    } else {
        WITH_TRIAL_LIMIT
    };
    assert!(took < limit, "a quick doctor took {took:?}");
    eprintln!(
        "{scenario} over {}: {:.1} s",
        lab.implementation,
        took.as_secs_f64()
    );
}

/// Codes of the findings that stand for themselves (not the consequence of another).
fn codes(report: &Value, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding["consequence_of"].is_null() && wanted(finding))
        .filter_map(|finding| finding["code"].as_str().map(str::to_owned))
        .collect()
}
