//! A lab for a test, one load at a time, and what this machine lacks.

use std::fs::File;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

#[path = "skips.rs"]
mod skips;

use skips::is_there;
pub(crate) use skips::skip;

/// A lab that goes down with the test.
pub(crate) struct Lab {
    pub(crate) id: String,
    /// Who carries the tunnel.
    pub(crate) implementation: String,
    site: bool,
}

impl Lab {
    pub(crate) fn up(scenario: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        // Of a lab's name eight letters fit: the process, and which of its labs.
        let id = format!("t{:05x}{:02x}", std::process::id() & 0xf_ffff, made & 0xff);
        let mut lab = Self {
            id,
            implementation: String::new(),
            site: false,
        };
        let output = wirespeed()
            .args(["lab", "up", scenario, "--json", "--name", &lab.id])
            .output()
            .expect("wirespeed runs");
        assert!(
            output.status.success(),
            "lab up {scenario}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let lab_made = wirespeed_schemas::read(&output.stdout).expect("lab up prints JSON");
        let carried_by = lab_made["implementation"].as_str().unwrap_or_default();
        carried_by.clone_into(&mut lab.implementation);
        lab.site = lab_made["scenario"]["topology"] == "site-to-site";
        lab
    }

    /// The doctor at the first end, with the far end given by its arguments.
    pub(crate) fn doctor(&self, arguments: &[&str]) -> Output {
        let mut doctor = self.doctor_command(arguments);
        doctor.output().expect("ip netns exec runs")
    }

    /// The command for it; `ip netns exec` becomes the program itself.
    pub(crate) fn doctor_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.here(&["doctor"]);
        command
            .args([&format!("wg{}0", self.id), "--quick", "--json"])
            .args(arguments);
        command
    }

    /// wirespeed with any arguments at the first end.
    pub(crate) fn here(&self, arguments: &[&str]) -> Command {
        let here = if self.site { "gw1" } else { "client" };
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace(here)])
            .arg(env!("CARGO_BIN_EXE_wirespeed"))
            .args(arguments);
        command
    }

    /// The namespace of the tunnel's other end.
    pub(crate) fn far_end(&self) -> String {
        self.namespace(if self.site { "gw2" } else { "server" })
    }

    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("ws-{}-{host}", self.id)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = wirespeed().args(["lab", "down", &self.id]).output();
    }
}

/// One load at a time on this machine.
pub(crate) struct Turn(
    #[expect(dead_code, reason = "the lock is held as long as the file is open")] File,
);

impl Turn {
    pub(crate) fn take() -> Self {
        let file =
            File::create(std::env::temp_dir().join("wirespeed-load.lock")).expect("a lock file");
        file.lock().expect("the lock");
        Self(file)
    }
}

pub(crate) fn wirespeed() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wirespeed"))
}

/// What this machine lacks, if anything.
pub(crate) fn missing() -> Option<String> {
    if std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0)
    {
        return Some("needs root (network namespaces)".to_owned());
    }
    ["ip", "nft", "tc", "ethtool", "iperf3", "wireguard-go", "wg"]
        .into_iter()
        .find(|program| !is_there(program))
        .map(|program| format!("{program} is not installed"))
}
