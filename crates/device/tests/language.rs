//! Help and complaints in the language that the environment asks for.

use std::process::{Command, Output};

fn device(language: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wirespeed-device"))
        .args(arguments)
        .env_remove("LC_ALL")
        .env_remove("LC_MESSAGES")
        .env_remove("LANGUAGE")
        .env("LANG", language)
        .output()
        .expect("the program starts")
}

fn said(bytes: &[u8]) -> String {
    // French keeps its colons apart with a narrow space.
    let text = String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    text.replace('\u{202f}', " ")
}

#[test]
fn the_help_is_in_the_readers_language() {
    for (language, parts) in [
        (
            "fr_FR.UTF-8",
            ["Utilisation : wirespeed-device", "Nom de l’interface"],
        ),
        (
            "de_DE.UTF-8",
            ["Usage: wirespeed-device", "Name of the interface"],
        ),
        ("C", ["Usage: wirespeed-device", "Name of the interface"]),
    ] {
        for option in ["-h", "--help"] {
            let output = device(language, &[option]);
            assert_eq!(output.status.code(), Some(0));
            let help = said(&output.stdout);
            for part in parts {
                assert!(help.contains(part), "{language}: {part:?} in {help}");
            }
        }
    }
}

#[test]
fn wrong_usage_is_told_in_the_readers_language_and_ends_the_same() {
    for (arguments, english, french) in [
        (&[][..], "<INTERFACE>", "<INTERFACE>"),
        (
            &["--no-such", "wg0"],
            "unexpected argument",
            "est inconnu ici",
        ),
        (&["a/b"], "a name has no \"/\"", "un nom n’a pas de « / »"),
        (&["--workers", "0", "wg0"], "from 1 to 256", "de 1 à 256"),
        (
            &["--engine", "odd", "wg0"],
            "possible values",
            "valeurs possibles",
        ),
    ] {
        for (language, part) in [("en_GB.UTF-8", english), ("fr_BE.UTF-8", french)] {
            let output = device(language, arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(output.stdout.is_empty());
            let complaint = said(&output.stderr);
            assert!(complaint.contains(part), "{part:?} in {complaint}");
        }
    }
    let none = device("fr_FR.UTF-8", &["--statistics", "nosuch"]);
    assert_eq!(none.status.code(), Some(1));
    let complaint = said(&none.stderr);
    assert!(complaint.contains("aucun wirespeed-device"), "{complaint}");
    let complaint = said(&device("fr_FR.UTF-8", &["a\u{1b}[31m/"]).stderr);
    assert!(!complaint.contains('\u{1b}'), "{complaint:?}");
}

#[test]
fn help_that_cannot_be_written_is_no_success() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let status = Command::new(env!("CARGO_BIN_EXE_wirespeed-device"))
        .arg("--help")
        .stdout(full.expect("/dev/full"))
        .status()
        .expect("wirespeed-device runs");
    assert_eq!(status.code(), Some(1));
}
