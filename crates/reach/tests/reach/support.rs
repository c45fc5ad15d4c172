//! What the tests share: the agent program, scripts that pretend to be one, namespaces that clean up after themselves.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use wirespeed_reach::{Machine, OpenOptions, Place};

/// Long enough for a machine under load; nothing is measured with it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The example program `echo_agent`, which `cargo test` builds next to the tests.
pub(crate) fn echo_agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let agent = test
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/echo_agent");
    assert!(
        agent.exists(),
        "{} is missing: cargo build -p wirespeed-reach --examples",
        agent.display()
    );
    agent
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions {
        program: echo_agent(),
        remote_program: echo_agent().display().to_string(),
        hello_within: PATIENCE,
        ..OpenOptions::default()
    }
}

pub(crate) fn open_here() -> Machine {
    Machine::open(&Place::Here, &options()).unwrap()
}

/// A directory with a shell script in it that is started instead of an agent.
pub(crate) struct Script {
    directory: tempfile::TempDir,
}

impl Script {
    pub(crate) fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sh");
        // Written by another process: a descriptor of ours, open for writing, could be inherited by a child that
        // another test starts at this moment, and the script would be "busy".
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        write!(writer.stdin.take().unwrap(), "#!/bin/sh\n{text}\n").unwrap();
        assert!(writer.wait().unwrap().success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    /// A script that greets as an agent of this version, then does `rest`.
    pub(crate) fn greeting(rest: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let hello =
            format!(r#"{{"wirespeed":"{version}","protocol":1,"host":"script","netns":null}}"#);
        Self::new(&format!("echo '{hello}'\n{rest}"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions {
            program: self.path("agent.sh"),
            ..options()
        }
    }
}

/// Whether a process of that id runs or waits to be reaped.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits until `condition` holds, or patience ends.
pub(crate) fn eventually(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Reports a test that this machine can't run.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Runs a command that must succeed.
pub(crate) fn run(words: &[&str]) {
    let output = try_run(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn try_run(words: &[&str]) -> std::io::Result<Output> {
    Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
}

/// A network namespace of this test alone, removed with everything in it at the end.
pub(crate) struct Namespace {
    pub(crate) name: String,
}

impl Namespace {
    /// `Err` says why this machine can't have one.
    pub(crate) fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "ws-reach-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let output =
            try_run(&["ip", "netns", "add", &name]).map_err(|error| format!("ip: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("no network namespace can be made: {}", why.trim()));
        }
        let namespace = Self { name };
        run(&["ip", "-n", &namespace.name, "link", "set", "lo", "up"]);
        Ok(namespace)
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        let output = try_run(&["ip", "netns", "pids", &self.name]).unwrap();
        String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    }

    /// Kills every process in the namespace.
    pub(crate) fn kill_all(&self) {
        for pid in self.pids() {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.kill_all();
        let _ = try_run(&["ip", "netns", "del", &self.name]);
    }
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}
