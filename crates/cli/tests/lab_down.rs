//! `wirespeed lab down` where there is nothing to take down: the machine has a `/run` of its own, with no labs.

use std::process::Command;

#[path = "support/skips.rs"]
mod skips;

use skips::{is_there, skip};

/// A shell whose `/run` is empty, and gone with it.
fn without_labs(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg(format!("mount -t tmpfs tmpfs /run && {script}"))
        .arg(env!("CARGO_BIN_EXE_wirespeed"));
    command
}

fn skipped(test: &str) -> bool {
    let able = || without_labs("true").output();
    if is_there("unshare") && able().is_ok_and(|output| output.status.success()) {
        return false;
    }
    skip(test, "a mount namespace takes root");
    true
}

/// What it says, of an end that is as wanted.
fn said(script: &str) -> String {
    let output = without_labs(script).output().expect("unshare starts");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn where_there_is_no_lab_it_says_so() {
    if skipped("where_there_is_no_lab_it_says_so") {
        return;
    }
    for (language, told) in [
        ("en", "wirespeed: there is no lab\n"),
        ("fr", "wirespeed: il n’y a pas de labo\n"),
    ] {
        for all in ["", "--all"] {
            let script = format!("\"$0\" --lang {language} lab down {all}");
            assert_eq!(said(&script), told);
        }
    }
    assert_eq!(said("\"$0\" --quiet lab down"), "");
}

#[test]
fn a_lab_that_there_is_not_can_not_be_taken_down() {
    if skipped("a_lab_that_there_is_not_can_not_be_taken_down") {
        return;
    }
    let output = without_labs("\"$0\" --lang en lab down nosuch0").output();
    let output = output.expect("unshare starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("there is no lab `nosuch0`"), "{told}");
}

#[test]
fn a_lab_of_another_version_is_told_of_and_stays_until_it_is_named() {
    if skipped("a_lab_of_another_version_is_told_of_and_stays_until_it_is_named") {
        return;
    }
    let told = said(
        r#"mkdir -p /run/wirespeed/lab && cd /run/wirespeed/lab &&
        echo '{"format":0,"phase":"up","owner":{"pid":1,"started":1}}' > old1.json &&
        "$0" --lang en lab down && test -e old1.json &&
        "$0" --lang en lab down --all && test ! -e old1.json"#,
    );
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].contains("wirespeed lab down old1 "), "{told}");
    assert_eq!(lines[1], "wirespeed: lab old1 is gone");
}
