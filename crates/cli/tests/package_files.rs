//! What a package has beside the programs: manual pages that man takes without a warning, completions that their shells take.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "support/skips.rs"]
mod skips;

use skips::{is_there, skip};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed");

fn made() -> tempfile::TempDir {
    let share = tempfile::tempdir().expect("tempdir");
    let output = Command::new(PROGRAM)
        .arg("package-files")
        .arg(share.path())
        .env("LC_ALL", "fr_FR.UTF-8")
        .output()
        .expect("the program starts");
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    share
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> BTreeSet<String> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    files(folder).iter().filter_map(name).collect()
}

#[test]
fn each_command_has_its_page_in_both_languages() {
    let share = made();
    let english = |section: &str| names(&share.path().join("man").join(section));
    let french = |section: &str| names(&share.path().join("man/fr").join(section));
    for page in [
        "wirespeed.1",
        "wirespeed-doctor.1",
        "wirespeed-tune.1",
        "wirespeed-tune-undo.1",
        "wirespeed-lab-up.1",
    ] {
        assert!(english("man1").contains(page), "{page} is missing");
    }
    assert_eq!(english("man1"), french("man1"));
    assert_eq!(
        english("man8").into_iter().collect::<Vec<_>>(),
        ["wirespeed-device.8"]
    );
    assert_eq!(english("man8"), french("man8"));
    for hidden in ["agent", "watch", "emulator", "package", "help"] {
        let shown = |page: &String| page.contains(hidden);
        assert!(!english("man1").iter().any(shown), "{hidden} has a page");
    }
}

#[test]
fn a_page_is_as_it_should_be() {
    let share = made();
    for (name, path) in [
        ("page_en", "man/man1/wirespeed-explain.1"),
        ("page_fr", "man/fr/man1/wirespeed-explain.1"),
    ] {
        let page = fs::read_to_string(share.path().join(path)).expect("the page");
        insta::assert_snapshot!(name, page.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }
}

#[test]
fn the_device_has_its_variables_and_files_in_both_languages() {
    let share = made();
    for path in ["man/man8", "man/fr/man8"] {
        let page = share.path().join(path).join("wirespeed-device.8");
        let page = fs::read_to_string(page).expect("the page");
        for part in [
            "WIRESPEED_ENGINE",
            "WIRESPEED_PIN",
            "/run/wirespeed/INTERFACE.stats",
            "wg\\-quick(8)",
        ] {
            assert!(page.contains(part), "{path}: {part} is missing in {page}");
        }
        let english = page.contains("environment variable.");
        assert_eq!(english, path == "man/man8", "{page}");
    }
}

#[test]
fn man_takes_every_page_without_a_warning() {
    if !is_there("man") {
        return skip("man_takes_every_page_without_a_warning", "man is missing");
    }
    let share = made();
    for page in files(&share.path().join("man")) {
        let output = Command::new("man")
            .args(["--warnings", "--encoding=UTF-8", "--local-file"])
            .arg(&page)
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("man starts");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && complaints.is_empty(),
            "{}: {complaints}",
            page.display()
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("wirespeed"), "{}: {text}", page.display());
    }
}

/// The shell reads both programs' completions without a word.
fn takes_its_completions(test: &str, shell: &str, folder: &str) {
    let share = made();
    let scripts = files(&share.path().join(folder));
    assert_eq!(scripts.len(), 2, "{scripts:?}");
    if !is_there(shell) {
        return skip(test, &format!("{shell} is missing"));
    }
    for script in scripts {
        let output = Command::new(shell)
            .arg("-n")
            .arg(&script)
            .output()
            .expect("the shell starts");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}: {}",
            script.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn bash_takes_its_completions() {
    takes_its_completions(
        "bash_takes_its_completions",
        "bash",
        "bash-completion/completions",
    );
}

#[test]
fn zsh_takes_its_completions() {
    takes_its_completions("zsh_takes_its_completions", "zsh", "zsh/vendor-completions");
}

#[test]
fn fish_takes_its_completions() {
    takes_its_completions(
        "fish_takes_its_completions",
        "fish",
        "fish/vendor_completions.d",
    );
}

/// What bash would offer behind these words.
fn offered(share: &Path, program: &str, words: &[&str]) -> Vec<String> {
    let script = share.join("bash-completion/completions").join(program);
    let function = fs::read_to_string(&script)
        .expect("the script")
        .lines()
        .find_map(|line| Some(line.strip_suffix("() {")?.trim().to_owned()))
        .expect("a function");
    let last = words.len() - 1;
    let before = words[last - 1];
    let body = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={last}; {function} {program} '{}' {before}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words
            .iter()
            .map(|word| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(" "),
        words[last],
    );
    let output = Command::new("bash")
        .args(["--norc", "-c", &body])
        .output()
        .expect("bash starts");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn completions_offer_commands_codes_and_options_and_nothing_hidden() {
    if !is_there("bash") {
        return skip(
            "completions_offer_commands_codes_and_options_and_nothing_hidden",
            "bash is missing",
        );
    }
    let share = made();
    let commands = offered(share.path(), "wirespeed", &["wirespeed", ""]);
    for command in ["doctor", "test", "tune", "explain", "lab"] {
        assert!(commands.iter().any(|word| word == command), "{commands:?}");
    }
    for hidden in ["agent", "tune-watch", "lab-emulator", "package-files"] {
        assert!(!commands.iter().any(|word| word == hidden), "{commands:?}");
    }
    let codes = offered(share.path(), "wirespeed", &["wirespeed", "explain", "mtu"]);
    assert!(
        codes.iter().any(|word| word == "mtu-exceeds-path"),
        "{codes:?}"
    );
    let engines = offered(
        share.path(),
        "wirespeed-device",
        &["wirespeed-device", "--engine", ""],
    );
    assert_eq!(engines, ["inline", "pipeline"]);
}

#[test]
fn fish_offers_codes_and_only_behind_explain() {
    if !is_there("fish") {
        return skip(
            "fish_offers_codes_and_only_behind_explain",
            "fish is missing",
        );
    }
    let share = made();
    let script = share
        .path()
        .join("fish/vendor_completions.d/wirespeed.fish");
    let offered = |typed: &str| {
        let output = Command::new("fish")
            .arg("--no-config")
            .arg("-c")
            .arg(format!(
                "source {}; complete -C '{typed}'",
                script.display()
            ))
            .output()
            .expect("fish starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let codes = offered("wirespeed explain mtu");
    assert!(
        codes.lines().any(|line| line == "mtu-exceeds-path"),
        "{codes}"
    );
    let others = offered("wirespeed doctor mtu");
    assert!(!others.contains("mtu-exceeds-path"), "{others}");
}

#[test]
fn a_folder_that_takes_nothing_is_said_in_one_sentence() {
    let file = tempfile::NamedTempFile::new().expect("tempfile");
    let output = Command::new(PROGRAM)
        .arg("package-files")
        .arg(file.path())
        .output()
        .expect("the program starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("could not write"), "{complaint}");
}
