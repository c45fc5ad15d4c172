//! Under systemd: readiness, and the units.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::support::{Namespace, PROGRAM, Running, content, run, skip, unique, wg};

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_ends() {
    let Some(namespace) = Namespace::new("systemd_is_told") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let name = unique();
    let mut child = namespace
        .command(PROGRAM)
        .args(["-f", &name])
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let told = || {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert_eq!(told(), "READY=1");
    assert!(wg(&["show", &name, "listen-port"]).success);
    content(Command::new("kill").arg(Running::find(&name).pid.to_string()));
    assert_eq!(told(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_units_are_sound() {
    let test = "the_units_are_sound";
    let folder = tempfile::tempdir().unwrap();
    let unit = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/systemd/wirespeed-device@.service");
    let text = fs::read_to_string(unit).unwrap();
    // The program isn't installed where the tests run.
    let text = text.replace("/usr/bin/wirespeed-device", PROGRAM);
    let path = folder.path().join("wirespeed-device@wg0.service");
    fs::write(&path, text).unwrap();
    let Ok(verified) = Command::new("systemd-analyze")
        // The manual page is installed as little as the program.
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
    else {
        return skip(test, "systemd-analyze isn't installed");
    };
    let errors = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<_> = errors
        .lines()
        .filter(|line| line.contains("wirespeed"))
        .collect();
    assert!(verified.status.success() && ours.is_empty(), "{errors}");
    // Of 100, as systemd judges it; its own words say what speaks against a unit.
    let judged = run(Command::new("systemd-analyze")
        .args(["security", "--no-pager", "--offline=true", "--threshold=30"])
        .arg(&path));
    assert!(judged.success, "{}{}", judged.text, judged.errors);
}
