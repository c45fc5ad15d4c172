//! `--quiet`: nothing but what was asked for by name, errors, and the exit code. Recordings stand for what is measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed");

fn run_in(language: &str, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env_remove("LC_ALL")
        .env_remove("LC_MESSAGES")
        .env_remove("LANGUAGE")
        .env("LANG", language)
        .output()
        .expect("the program starts")
}

fn run(arguments: &[&str]) -> Output {
    run_in("en_US.UTF-8", arguments)
}

fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/tests/cases");
    folder.join(format!("{name}.json")).display().to_string()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

#[track_caller]
fn assert_silent(output: &Output, code: i32) {
    assert_eq!(said(&output.stdout), "");
    assert_eq!(said(&output.stderr), "");
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn the_exit_code_is_the_answer_wherever_the_option_stands() {
    let (healthy, slow) = (recording("healthy"), recording("socket-overflow"));
    for arguments in [
        ["--quiet", "doctor", "--from"],
        ["-q", "doctor", "--from"],
        ["doctor", "-q", "--from"],
    ] {
        assert_silent(&run(&[&arguments[..], &[&healthy]].concat()), 0);
        assert_silent(&run(&[&arguments[..], &[&slow]].concat()), 1);
    }
    let loud = run(&["doctor", "--from", &slow]);
    assert!(said(&loud.stdout).contains("socket-overflow"));
    assert_eq!(loud.status.code(), Some(1));
}

#[test]
fn what_is_asked_for_by_name_is_there_all_the_same() {
    let slow = recording("socket-overflow");
    let loud = run(&["doctor", "--from", &slow, "--json"]);
    let quiet = run(&["doctor", "--from", &slow, "--json", "--quiet"]);
    assert!(quiet.stdout == loud.stdout && !quiet.stdout.is_empty());
    assert_eq!(said(&quiet.stderr), "");
    let folder = tempfile::tempdir().expect("tempdir");
    let page: PathBuf = folder.path().join("slow.html");
    let page_name = page.display().to_string();
    assert_silent(
        &run(&["doctor", "-q", "--from", &slow, "--html", &page_name]),
        1,
    );
    assert!(std::fs::read_to_string(&page).is_ok_and(|page| page.contains("socket-overflow")));
}

#[test]
fn what_does_nothing_but_print_prints() {
    for arguments in [
        &["explain", "-q"][..],
        &["explain", "-q", "socket-overflow"],
        &["lab", "list", "-q"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let loud: Vec<&str> = arguments
            .iter()
            .copied()
            .filter(|one| *one != "-q")
            .collect();
        assert_eq!(output.stdout, run(&loud).stdout, "{arguments:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn errors_are_told() {
    for command in ["doctor", "test"] {
        let output = run(&[command, "nosuchwg", "-q"]);
        assert_eq!(said(&output.stdout), "");
        let error = said(&output.stderr);
        assert!(error.starts_with("wirespeed: ") && error.lines().count() == 1);
        assert!(error.contains("nosuchwg"), "{error}");
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn silence_and_every_figure_contradict_each_other() {
    let slow = recording("socket-overflow");
    for arguments in [
        ["doctor", "-q", "-v", "--from", &slow],
        ["-q", "doctor", "-v", "--from", &slow],
        ["doctor", "--from", &slow, "--verbose", "--quiet"],
    ] {
        for (language, part) in [
            (
                "en_US.UTF-8",
                "the argument '--quiet' cannot be used with '--verbose'",
            ),
            ("fr_FR.UTF-8", "--verbose"),
        ] {
            let output = run_in(language, &arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert_eq!(said(&output.stdout), "");
            let error = said(&output.stderr);
            assert!(error.contains("--quiet") && error.contains(part), "{error}");
        }
    }
}

/// Whoever is told nothing has to know beforehand that what is kept is put back unless it is confirmed.
#[test]
fn a_silent_tune_says_how_it_is_confirmed() {
    for arguments in [&["tune", "-q", "nosuchwg"][..], &["-q", "tune"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = said(&output.stderr);
        assert!(
            error.contains("--yes") && error.contains("--confirm-within"),
            "{error}"
        );
        let french = said(&run_in("fr_FR.UTF-8", arguments).stderr);
        assert!(
            french.contains("--yes") && french.contains("confirmer"),
            "{french}"
        );
    }
    for arguments in [
        &["--yes"][..],
        &["--confirm-within", "5m"],
        &["--json"],
        &["--plan"],
    ] {
        let output = run(&[&["tune", "nosuchwg", "-q"], arguments].concat());
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert!(said(&output.stderr).contains("nosuchwg"));
    }
}
