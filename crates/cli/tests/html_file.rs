//! `--html FILE`: the report for a browser, written whole or not at all.

use std::path::Path;
use std::process::{Command, Output};

use skips::{is_there, skip};

#[path = "support/skips.rs"]
mod skips;

fn doctor(arguments: &[&str]) -> Output {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/tests/cases/socket-overflow.json");
    Command::new(env!("CARGO_BIN_EXE_wirespeed"))
        .args(["--lang", "en", "doctor", "--from"])
        .arg(recorded)
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_report_is_written_also_when_something_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    std::fs::write(&file, "the one before").expect("a file");
    let shown = file.display().to_string();
    let output = doctor(&["--html", &shown, "--json"]);
    assert_eq!(code(&output), Some(1), "{output:?}");
    wirespeed_schemas::read(&output.stdout).expect("one JSON object");
    // The JSON is as it is without it.
    assert_eq!(output.stdout, doctor(&["--json"]).stdout);
    let page = std::fs::read_to_string(&file).expect("a report");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("socket-overflow"));
    // Nothing is left beside it.
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["report.html"]);
}

#[test]
fn what_could_not_be_written_after_the_answer_is_no_second_object() {
    let test = "what_could_not_be_written_after_the_answer_is_no_second_object";
    let private = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command
    };
    let able = private().arg("mount -t tmpfs tmpfs /mnt").output();
    if !is_there("unshare") || !able.is_ok_and(|output| output.status.success()) {
        return skip(test, "a mount namespace takes root");
    }
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/tests/cases/socket-overflow.json");
    // A page does not fit into a file system of this size.
    let output = private()
        .arg(
            "mount -t tmpfs -o size=4k tmpfs /mnt && \
             exec \"$0\" --lang en doctor --from \"$1\" --json --html /mnt/report.html",
        )
        .arg(env!("CARGO_BIN_EXE_wirespeed"))
        .arg(recorded)
        .output()
        .expect("unshare starts");
    assert_eq!(code(&output), Some(3), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("/mnt/report.html"), "{complaint}");
    let answer = wirespeed_schemas::read(&output.stdout).expect("one JSON object");
    assert_eq!(answer["findings"][0]["code"], "socket-overflow");
}

#[test]
fn a_directory_is_refused_before_anything_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = folder.path().display().to_string();
    let output = doctor(&["--html", &shown]);
    assert_eq!(code(&output), Some(2), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("this is a directory"), "{complaint}");
    assert!(complaint.contains("report.html"), "{complaint}");
    assert!(output.stdout.is_empty());
    let nowhere = folder.path().join("no/such/folder/report.html");
    let output = doctor(&["--html", &nowhere.display().to_string()]);
    assert_eq!(code(&output), Some(3), "{output:?}");
    assert!(output.stdout.is_empty());
}
