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
