//! The whole program with Debian's wireguard-go: what it writes, and that nothing stays behind.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed-bench-device");

#[test]
fn a_run_leaves_its_results_and_nothing_else() {
    if !possible("a_run_leaves_its_results_and_nothing_else") {
        return;
    }
    let out = std::env::temp_dir().join(format!("bench-device-test-{}", std::process::id()));
    let child = start(
        &out,
        &["--rows", "latency,start-up,restart", "--rounds", "1"],
    );
    let pid = child.id();
    let said = child.wait_with_output().unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let results: Value =
        serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
    let samples = results["samples"].as_array().unwrap();
    let of = |row: &str, implementation: &str| {
        let found = samples
            .iter()
            .find(|sample| sample["row"] == row && sample["implementation"] == implementation);
        found.unwrap_or_else(|| panic!("{row}, {implementation} in {samples:#?}"))
    };
    assert_eq!(samples.len(), 4);
    assert!(
        samples.iter().all(|sample| sample["error"].is_null()),
        "{samples:#?}"
    );
    let figure = |row: &str, implementation: &str, name: &str| {
        of(row, implementation)["figures"][name].as_f64().unwrap()
    };
    assert!(
        figure("latency", "bare", "rtt-idle")
            < figure("latency", "wireguard-go-debian", "rtt-idle")
    );
    assert!(
        figure("start-up", "wireguard-go-debian", "ready")
            < figure("start-up", "wireguard-go-debian", "first-echo")
    );
    assert!(figure("restart", "wireguard-go-debian", "resumed") > 0.0);
    assert_eq!(results["complete"], false, "rows were left out");
    assert!(
        fs::read_to_string(out.join("results.md"))
            .unwrap()
            .contains("### restart")
    );
    assert!(
        fs::read_to_string(out.join("results.svg"))
            .unwrap()
            .contains("latency: RTT idle (bare: ")
    );
    assert!(!marked(pid));
    assert_eq!(sockets_of(pid), 0);
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn after_kill_9_no_daemon_lives_and_the_next_start_tidies_up() {
    if !possible("after_kill_9_no_daemon_lives_and_the_next_start_tidies_up") {
        return;
    }
    let out = std::env::temp_dir().join(format!("bench-device-killed-{}", std::process::id()));
    let mut child = start(&out, &["--rows", "latency", "--rounds", "9"]);
    let pid = child.id();
    wait_until("its daemons have their sockets", || sockets_of(pid) == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("its daemons are gone", || !marked(pid));
    let next = start(&out, &["--rows", "start-up", "--rounds", "1"])
        .wait_with_output()
        .unwrap();
    assert!(next.status.success());
    assert_eq!(sockets_of(pid), 0);
    fs::remove_dir_all(out).unwrap();
}

fn start(out: &Path, options: &[&str]) -> Child {
    Command::new(PROGRAM)
        .args(["--only", "bare,wireguard-go-debian", "--out"])
        .arg(out)
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Whether a process lives that was started by this benchmark.
fn marked(pid: u32) -> bool {
    let mark = format!("WIRESPEED_BENCH_DEVICE={pid}");
    fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == mark.as_bytes())
    })
}

fn sockets_of(pid: u32) -> usize {
    let begin = format!("wsb{pid:x}");
    let names = fs::read_dir("/var/run/wireguard")
        .into_iter()
        .flatten()
        .flatten();
    names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin))
        .count()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "not within 20 s: {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether this machine has what it takes; else says what it lacks.
fn possible(test: &str) -> bool {
    let lacks = if !nix::unistd::geteuid().is_root() {
        Some("it takes root")
    } else if !Path::new("/dev/net/tun").exists() {
        Some("there is no /dev/net/tun")
    } else {
        ["wireguard-go", "iperf3", "ip", "ethtool", "setpriv"]
            .into_iter()
            .find(|program| !in_path(program))
            .map(|_| "a program is missing: wireguard-go, iperf3, ip, ethtool or setpriv")
    };
    let Some(lacks) = lacks else {
        return true;
    };
    let line = format!("SKIPPED {test}: {lacks}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
    false
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
