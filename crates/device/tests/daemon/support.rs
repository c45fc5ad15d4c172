//! A network namespace, daemons in it, and what they leave.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed-device");

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    let Some(path) = std::env::var_os("WIRESPEED_SKIPS") else {
        return;
    };
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}

pub(crate) fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// A name for an interface that nobody else has.
pub(crate) fn unique() -> String {
    format!("wsd{:08x}", rand::random::<u32>())
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A file with a key of these bytes.
pub(crate) fn private_key(byte: u8) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(base64(&[byte; 32]).as_bytes()).unwrap();
    file
}

pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) text: String,
    pub(crate) errors: String,
}

pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Output {
        success: output.status.success(),
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What a command prints that has to work.
pub(crate) fn content(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.success, "{command:?}: {}", output.errors);
    output.text
}

pub(crate) fn wg(arguments: &[&str]) -> Output {
    run(Command::new("wg").args(arguments))
}

pub(crate) fn statistics(name: &str) -> serde_json::Value {
    let mut text = String::new();
    let mut socket = UnixStream::connect(format!("/run/wirespeed/{name}.stats")).unwrap();
    socket.read_to_string(&mut text).unwrap();
    wirespeed_schemas::read(text.as_bytes()).unwrap()
}

/// A network namespace, as long as the test.
pub(crate) struct Namespace(String);

impl Namespace {
    /// `None`, and the test is skipped, when it can't be.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let name = format!("ws-{:08x}", rand::random::<u32>());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            skip(
                test,
                "no network namespace can be made; it takes root and iproute2",
            );
            return None;
        }
        if Command::new("wg").arg("--version").output().is_err() {
            skip(test, "wg isn't installed");
            return None;
        }
        Some(Self(name))
    }

    /// A command in it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }

    /// A daemon in the foreground, ready.
    pub(crate) fn foreground(&self, name: &str, options: &[&str]) -> Foreground {
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = self
            .command(PROGRAM)
            .arg("--foreground")
            .args(options)
            .arg(name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let mut foreground = Foreground {
            name: name.to_owned(),
            child,
            log,
            running: None,
        };
        // A left-over socket is there from the beginning, and the claimed one before it answers.
        let ready = eventually(|| {
            foreground.log().contains("ready") || foreground.child.try_wait().unwrap().is_some()
        });
        assert!(
            ready && foreground.child.try_wait().unwrap().is_none(),
            "{}",
            foreground.log()
        );
        foreground.running = Some(Running::find(name));
        foreground
    }
}

impl Drop for Namespace {
    /// With what a test that failed left in it.
    fn drop(&mut self) {
        let inside = Command::new("ip").args(["netns", "pids", &self.0]).output();
        let inside = inside.map(|output| output.stdout).unwrap_or_default();
        for pid in String::from_utf8_lossy(&inside).split_whitespace() {
            let _ = Command::new("kill").arg(pid).output();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

/// A daemon that is our child, killed with the test.
pub(crate) struct Foreground {
    pub(crate) name: String,
    child: Child,
    log: tempfile::NamedTempFile,
    running: Option<Running>,
}

impl Foreground {
    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// Its exit code; `None` when it was killed.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        assert!(
            eventually(|| self.child.try_wait().unwrap().is_some()),
            "{}",
            self.log()
        );
        self.child.wait().unwrap().code()
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(running) = self.running.take() {
            running.remove_files();
        }
    }
}

/// A daemon, wherever it was started.
pub(crate) struct Running {
    name: String,
    pub(crate) pid: i32,
}

impl Running {
    /// By who listens on its socket.
    pub(crate) fn find(name: &str) -> Self {
        let path = format!("/run/wireguard/{name}.sock");
        let stream = UnixStream::connect(path).unwrap();
        Self {
            name: name.to_owned(),
            pid: getsockopt(&stream, PeerCredentials).unwrap().pid(),
        }
    }

    pub(crate) fn uapi(&self) -> PathBuf {
        format!("/run/wireguard/{}.sock", self.name).into()
    }

    fn statistics(&self) -> PathBuf {
        format!("/run/wirespeed/{}.stats", self.name).into()
    }

    pub(crate) fn gone(&self) -> bool {
        !fs::exists(format!("/proc/{}", self.pid)).unwrap()
    }

    pub(crate) fn has_files(&self) -> bool {
        self.uapi().exists() || self.statistics().exists()
    }

    fn remove_files(&self) {
        let _ = fs::remove_file(self.uapi());
        let _ = fs::remove_file(self.statistics());
    }
}
