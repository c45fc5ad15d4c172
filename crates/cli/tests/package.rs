//! What the Debian package says of itself: `scripts/deb` with the programs of the tests. That it installs and goes again is for
//! `scripts/deb-test`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "support/skips.rs"]
mod skips;

use skips::{is_there, skip};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed");

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `scripts/deb --control`; wirespeed stands for wirespeed-device, which is not this crate's to build.
fn control() -> BTreeMap<String, String> {
    let programs = tempfile::tempdir().expect("tempdir");
    for name in ["wirespeed", "wirespeed-device"] {
        std::os::unix::fs::symlink(PROGRAM, programs.path().join(name)).expect("a link");
    }
    let output = Command::new(project().join("scripts/deb"))
        .arg("--control")
        .arg(programs.path())
        .output()
        .expect("the script starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );

    text.lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn the_package_says_what_it_needs_and_what_it_is() {
    for tool in ["dpkg-shlibdeps", "dpkg-deb", "strip"] {
        if !is_there(tool) {
            return skip(
                "the_package_says_what_it_needs_and_what_it_is",
                &format!("{tool} is missing"),
            );
        }
    }
    let control = control();
    let field = |name: &str| control.get(name).map_or("", String::as_str);
    assert_eq!(field("Package"), "wirespeed");
    let version = field("Version").rsplit_once('-').map(|(one, _)| one);
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")));
    assert!(field("Depends").contains("libc6 (>= "), "{control:?}");
    for recommended in ["wireguard-tools", "iperf3", "nftables", "openssh-client"] {
        assert!(field("Recommends").contains(recommended), "{control:?}");
    }
    let summary = field("Description");
    assert!((20..80).contains(&summary.len()), "{summary}");
    for (name, value) in &control {
        assert!(
            !value.contains('@') || name == "Maintainer",
            "{name}: {value}"
        );
    }
}

#[test]
fn the_packages_scripts_are_shell_and_its_unit_starts_what_it_installs() {
    for script in ["postinst", "prerm", "postrm"] {
        let path = project().join("packaging/debian").join(script);
        let output = Command::new("sh").arg("-n").arg(&path).output();
        let output = output.expect("sh starts");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        let text = fs::read_to_string(&path).expect("the script");
        assert!(text.starts_with("#!/bin/sh\n"), "{script}");
        assert!(
            text.contains("\nset -e\n"),
            "{script} goes on after a failure"
        );
    }
    let unit = project().join("packaging/systemd/wirespeed-device@.service");
    let unit = fs::read_to_string(unit).expect("the unit");
    assert!(
        unit.contains("\nExecStart=/usr/bin/wirespeed-device "),
        "{unit}"
    );
    assert!(unit.contains("man:wirespeed-device(8)"), "{unit}");
}
