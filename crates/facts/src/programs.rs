//! Versions of the programs wirespeed calls.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use crate::{Known, child};

/// Program and the option that makes it print its version.
const PROGRAMS: [(&str, &str); 8] = [
    ("ethtool", "--version"),
    ("ip", "-Version"),
    ("iperf3", "--version"),
    ("nft", "--version"),
    ("tc", "-Version"),
    ("wg", "--version"),
    ("wireguard-go", "--version"),
    ("wirespeed-device", "--version"),
];
const TIME_LIMIT: Duration = Duration::from_secs(1);
const SIZE_LIMIT: usize = 64 << 10;

/// Program to the first line of its version, all asked at once.
pub(crate) fn versions() -> BTreeMap<String, Known<String>> {
    thread::scope(|scope| {
        let running = PROGRAMS
            .map(|(program, option)| (program, scope.spawn(move || version(program, option))));
        running
            .into_iter()
            .map(|(program, thread)| {
                let version = thread
                    .join()
                    .unwrap_or_else(|_| Known::because("asking for it failed"));
                (program.to_owned(), version)
            })
            .collect()
    })
}

fn version(program: &str, option: &str) -> Known<String> {
    match child::output(program, &[option], TIME_LIMIT, SIZE_LIMIT) {
        Ok(bytes) => match String::from_utf8_lossy(&bytes).lines().next() {
            Some(line) if !line.trim().is_empty() => Known::Value(line.trim().to_owned()),
            _ => Known::because(format!("{program} {option} printed nothing")),
        },
        Err(error) => Known::because(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_version_or_a_reason() {
        assert_eq!(versions().len(), PROGRAMS.len());
        assert_eq!(
            version("no-such-program-here", "--version"),
            Known::because("the program no-such-program-here is not installed")
        );
    }
}
