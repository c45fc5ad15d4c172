//! `--quiet`: nothing but what was asked for by name, errors, and the exit code. Recordings stand for what is measured.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed");

fn command(language: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env_remove("LC_ALL")
        .env_remove("LC_MESSAGES")
        .env_remove("LANGUAGE")
        .env("LANG", language);
    command
}

fn run_in(language: &str, arguments: &[&str]) -> Output {
    let mut command = command(language, arguments);
    command.output().expect("the program starts")
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

/// clap would take them for an interface to be tuned.
#[test]
fn what_comes_after_a_tune_is_understood_behind_the_option_too() {
    for language in ["en_US.UTF-8", "fr_FR.UTF-8"] {
        for after in ["undo", "confirm", "status"] {
            for options in [
                &["-q"][..],
                &["--quiet"],
                &["--json"],
                &["--json", "-q"],
                &["-q", "--json"],
            ] {
                let wanted = [&["tune", after], options, &["--help"]].concat();
                let wanted = run_in(language, &wanted);
                assert_eq!(wanted.status.code(), Some(0), "{after} {options:?}");
                let help = run_in(language, &[&["tune"], options, &[after, "--help"]].concat());
                assert_eq!(said(&help.stdout), said(&wanted.stdout), "{after}");
            }
        }
    }
}

/// A folder of changes in which this network namespace has one that nobody can put back: its sysctl is a folder. Nothing is
/// touched.
fn changed_for_good() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("tempdir");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("boot_id");
    let boot = boot.trim();
    let namespace = std::fs::metadata("/proc/thread-self/ns/net").expect("a namespace");
    let journal = json!({
        "version": 1,
        "boot_id": boot,
        "netns": namespace.ino(),
        "interface": "nosuchwg",
        "begun_at": 0.0,
        "owner": 0,
        "probe": null,
        "trial_seconds": 1.0,
        "touched": 0.0,
        "phase": { "phase": "confirmed", "at": 0.0 },
        "changes": [{
            "setting": { "knob": "sysctl", "name": "net.ipv4" },
            "before": "1",
            "ours": ["2"],
            "applied": true,
        }],
    });
    let name = format!("netns-{}-{}.json", namespace.ino(), &boot[..8]);
    std::fs::write(folder.path().join(name), journal.to_string()).expect("a journal");
    folder
}

#[test]
fn a_change_that_could_not_be_put_back_is_an_error_that_is_told() {
    let folder = changed_for_good();
    let undo = |language: &str, arguments: &[&str]| {
        command(language, arguments)
            .env("WIRESPEED_STATE", folder.path())
            .output()
            .expect("the program starts")
    };
    for (language, machine) in [
        ("en_US.UTF-8", "here: "),
        ("fr_FR.UTF-8", "cette machine\u{202f}: "),
    ] {
        for arguments in [&["tune", "undo", "-q"][..], &["tune", "-q", "undo"]] {
            let output = undo(language, arguments);
            assert_eq!(said(&output.stdout), "");
            let error = said(&output.stderr);
            assert!(
                error.starts_with(&format!("wirespeed: {machine}")),
                "{error}"
            );
            assert!(error.contains("net.ipv4"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert_eq!(output.status.code(), Some(4));
        }
    }
    for arguments in [
        ["tune", "undo", "--json", "-q"],
        ["tune", "--json", "-q", "undo"],
        ["-q", "tune", "--json", "undo"],
    ] {
        let output = undo("en_US.UTF-8", &arguments);
        let record = wirespeed_schemas::read(&output.stdout).expect("one JSON object");
        assert_eq!(record["schema"]["name"], "wirespeed.tune.undo");
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
    }
    let loud = undo("en_US.UTF-8", &["tune", "undo"]);
    assert!(said(&loud.stdout).contains("net.ipv4"));
    assert_eq!(said(&loud.stderr), "");
    // Nothing waits to be confirmed, and this machine has a name in each language.
    let output = undo("fr_FR.UTF-8", &["tune", "confirm", "-q"]);
    let error = said(&output.stderr);
    assert!(error.contains("sur cette machine"), "{error}");
    assert_eq!(output.status.code(), Some(4));
}
