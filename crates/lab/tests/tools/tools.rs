//! What the tests of labs share.

use std::fs;
use std::path::Path;
use std::process::Command;

use wirespeed_lab::{EmulatorCommand, Host, LabId, Scenario, UpOptions, down};

/// Set for the copies of this test program that are started as something to kill, or as the road emulator.
pub(crate) const ROLE: &str = "WIRESPEED_LAB_TEST_ROLE";

/// Says that a test can't run here; true when so.
pub(crate) fn skipped(test: &str) -> bool {
    let programs = ["ip", "tc", "nft", "ethtool", "wg", "wireguard-go", "ping"];
    let missing = programs.iter().find(|p| {
        !std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|d| d.join(p).exists())
    });
    let reason = if !nix::unistd::geteuid().is_root() {
        "needs root".to_owned()
    } else if let Some(program) = missing {
        format!("{program} is not installed")
    } else if !Path::new("/dev/net/tun").exists() {
        "/dev/net/tun is missing".to_owned()
    } else {
        return false;
    };
    skip(test, &reason);
    true
}

/// Says that a test can't run here, and why.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = fs::OpenOptions::new().append(true).create(true).open(file)
    {
        let _ = std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes());
    }
}

/// Takes its lab down also when the test fails.
pub(crate) struct Cleaner(pub(crate) LabId);

impl Drop for Cleaner {
    fn drop(&mut self) {
        let _ = down(&self.0);
    }
}

/// The road emulator of these labs is a copy of this test program (see `be_the_emulator`).
pub(crate) fn options(id: &LabId) -> UpOptions {
    UpOptions {
        id: Some(id.clone()),
        emulator: EmulatorCommand {
            program: "/usr/bin/env".into(),
            arguments: vec![
                format!("{ROLE}=emulator"),
                std::env::current_exe().unwrap().display().to_string(),
                "--ignored".to_owned(),
                "--exact".to_owned(),
                "--nocapture".to_owned(),
                "tools::be_the_emulator".to_owned(),
            ],
        },
        ..UpOptions::default()
    }
}

pub(crate) fn road(text: &str) -> Scenario {
    let head = "name = \"test\"\ndescription = \"x\"\ntopology = \"client-server\"\nfinding = \"healthy\"\n";
    Scenario::parse(&format!("{head}{text}"), "test").unwrap()
}

/// What a command on a host printed.
pub(crate) fn on(host: &Host, line: &str) -> String {
    let output = Command::new("ip")
        .args(["netns", "exec", &host.namespace])
        .args(line.split(' '))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{} {line}: {}",
        host.name,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "started by the labs of the other tests"]
fn be_the_emulator() {
    if std::env::var(ROLE).as_deref() == Ok("emulator") {
        // The program's own arguments come after those that made it this test.
        let own: Vec<String> = std::env::args()
            .skip_while(|a| a != "tools::be_the_emulator")
            .skip(1)
            .collect();
        wirespeed_lab::serve(&own).unwrap();
    }
}
