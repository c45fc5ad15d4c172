//! The help of every command, as it looks at a hundred columns, in both languages.

use std::fmt::Write as _;
use std::process::Command;

const COMMANDS: [&[&str]; 15] = [
    &[],
    &["doctor"],
    &["test"],
    &["tune"],
    &["tune", "confirm"],
    &["tune", "undo"],
    &["tune", "status"],
    &["explain"],
    &["lab"],
    &["lab", "up"],
    &["lab", "down"],
    &["lab", "list"],
    &["lab", "status"],
    &["lab", "exec"],
    &["demo"],
];

fn help(language: &str, command: &[&str], option: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_wirespeed"))
        .args(["--lang", language])
        .args(command)
        .arg(option)
        .env_remove("COLUMNS")
        .output()
        .expect("the program starts");
    String::from_utf8(output.stdout).expect("help is UTF-8")
}

#[test]
fn the_help_in_both_languages() {
    for language in ["en", "fr"] {
        let mut all = String::new();
        for command in COMMANDS {
            for option in ["-h", "--help"] {
                let told = help(language, command, option);
                let name = command.join(" ");
                let _ = writeln!(all, "=== wirespeed {name} {option}\n\n{told}");
            }
        }
        insta::assert_snapshot!(format!("help-{language}"), all);
    }
}

#[test]
fn help_that_can_not_be_written_is_no_success() {
    for asked in [&["--help"][..], &["-h"], &["--version"], &["help", "tune"]] {
        for (language, told) in [("en", "could not be written"), ("fr", "sortie standard")] {
            // No file may grow, as on a disk that is full.
            let output = Command::new("sh")
                .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
                .args([env!("CARGO_BIN_EXE_wirespeed"), "--lang", language])
                .args(asked)
                .stdout(tempfile::tempfile().expect("a file"))
                .output()
                .expect("the shell starts");
            assert_eq!(output.status.code(), Some(3), "{asked:?}: {output:?}");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(complaint.starts_with("wirespeed: "), "{complaint}");
            assert!(complaint.contains(told), "{complaint}");
            assert_eq!(complaint.lines().count(), 1, "{complaint}");
        }
    }
}
