//! Every scenario of the lab, on real traffic: the doctor must find exactly the code the scenario names.
//!
//! The loads share this machine's cores, so the scenarios take turns (a lock file, because test binaries
//! run at the same time too). Each lab has a name of its own and is taken down also when the test fails.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest a quick doctor may take on a healthy tunnel …
const QUICK_LIMIT: Duration = Duration::from_secs(45);
/// … and where one more trial is needed to tell two causes apart.
const WITH_TRIAL_LIMIT: Duration = Duration::from_secs(75);

#[test]
fn healthy() {
    finds("healthy");
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

/// Runs the doctor in the scenario's lab and compares what it found with what it had to find.
fn finds(scenario: &str) {
    if let Some(reason) = missing() {
        skip(scenario, &reason);
        return;
    }
    let _turn = Turn::take();
    let lab = Lab::up(scenario);
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
    let output = lab.doctor(&arguments);
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
    eprintln!("{scenario}: {:.1} s", took.as_secs_f64());
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

/// A lab that goes down with the test.
struct Lab {
    id: String,
    site: bool,
}

impl Lab {
    fn up(scenario: &str) -> Self {
        let id = format!("t{:05x}", std::process::id() & 0xf_ffff);
        let lab = Self {
            id,
            site: scenario.contains("site"),
        };
        let output = wirespeed()
            .args(["lab", "up", scenario, "--name", &lab.id])
            .output()
            .expect("wirespeed runs");
        assert!(
            output.status.success(),
            "lab up {scenario}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        lab
    }

    fn doctor(&self, more: &[&str]) -> Output {
        let (here, far) = if self.site {
            ("gw1", "gw2")
        } else {
            ("client", "server")
        };
        Command::new("ip")
            .args([
                "netns",
                "exec",
                &format!("ws-{}-{here}", self.id),
                env!("CARGO_BIN_EXE_wirespeed"),
            ])
            .args([
                "doctor",
                &format!("wg{}0", self.id),
                "--far",
                &format!("netns:ws-{}-{far}", self.id),
            ])
            .args(["--quick", "--json"])
            .args(more)
            .output()
            .expect("ip netns exec runs")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = wirespeed().args(["lab", "down", &self.id]).output();
    }
}

/// One load at a time on this machine.
struct Turn(#[expect(dead_code, reason = "the lock is held as long as the file is open")] File);

impl Turn {
    fn take() -> Self {
        let file =
            File::create(std::env::temp_dir().join("wirespeed-load.lock")).expect("a lock file");
        file.lock().expect("the lock");
        Self(file)
    }
}

fn wirespeed() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wirespeed"))
}

/// What this machine lacks, if anything.
fn missing() -> Option<String> {
    if std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0)
    {
        return Some("needs root (network namespaces)".to_owned());
    }
    ["ip", "nft", "tc", "ethtool", "iperf3", "wireguard-go", "wg"]
        .into_iter()
        .find(|program| {
            !std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
            })
        })
        .map(|program| format!("{program} is not installed"))
}

fn skip(name: &str, reason: &str) {
    use std::io::Write;
    let line = format!("SKIPPED scenario {name}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = File::options().append(true).create(true).open(path)
    {
        let _ = writeln!(file, "{line}");
    }
}
