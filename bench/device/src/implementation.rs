//! Who is compared, and which of them are here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::BenchError;
use crate::options::Options;

/// The name of the road without a tunnel.
pub(crate) const BARE: &str = "bare";
/// The names ratios are taken to.
pub(crate) const WIREGUARD_GO: &str = "wireguard-go";
pub(crate) const DEBIAN: &str = "wireguard-go-debian";
pub(crate) const TAILSCALE: &str = "tailscale";
/// Ours.
pub(crate) const INLINE: &str = "wirespeed";
pub(crate) const PIPELINE: &str = "wirespeed-pipeline";

/// One that is compared.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Implementation {
    pub(crate) name: &'static str,
    /// What it says of its version.
    pub(crate) version: String,
    /// `None` for the bare road.
    pub(crate) program: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) arguments: &'static [&'static str],
    /// Measured in every round, because something is judged by it; the others in every second one.
    pub(crate) every_round: bool,
}

/// One that could be compared and isn't.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Missing {
    pub(crate) name: &'static str,
    pub(crate) because: String,
}

struct Candidate {
    name: &'static str,
    program: Where,
    arguments: &'static [&'static str],
    every_round: bool,
}

enum Where {
    Device,
    Peer(&'static str),
    Path(&'static str),
}

const CANDIDATES: [Candidate; 7] = [
    Candidate {
        name: INLINE,
        program: Where::Device,
        arguments: &["--foreground"],
        every_round: true,
    },
    Candidate {
        name: PIPELINE,
        program: Where::Device,
        arguments: &["--foreground", "--engine", "pipeline"],
        every_round: false,
    },
    Candidate {
        name: WIREGUARD_GO,
        program: Where::Peer("wireguard-go"),
        arguments: &["-f"],
        every_round: true,
    },
    Candidate {
        name: TAILSCALE,
        program: Where::Peer("tailscale"),
        arguments: &["-f"],
        every_round: true,
    },
    Candidate {
        name: "gotatun",
        program: Where::Peer("gotatun"),
        arguments: &["--foreground", "--disable-drop-privileges"],
        every_round: false,
    },
    Candidate {
        name: "boringtun",
        program: Where::Peer("boringtun"),
        arguments: &["--foreground", "--disable-drop-privileges"],
        every_round: false,
    },
    Candidate {
        name: DEBIAN,
        program: Where::Path("wireguard-go"),
        arguments: &["-f"],
        every_round: true,
    },
];

/// The names that `--only` takes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(BARE).chain(CANDIDATES.iter().map(|candidate| candidate.name))
}

/// Those that are here and wanted, and those that are not here. Debian's old wireguard-go only stands in for the
/// current one, unless it is asked for by name.
pub(crate) fn find(options: &Options) -> Result<(Vec<Implementation>, Vec<Missing>), BenchError> {
    if let Some(unknown) = options
        .only
        .iter()
        .find(|wanted| !names().any(|name| name == wanted.as_str()))
    {
        return Err(BenchError::NoSuch("implementation", unknown.clone()));
    }
    let wanted =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut here = Vec::new();
    let mut missing = Vec::new();
    if wanted(BARE) {
        here.push(Implementation {
            name: BARE,
            version: "veth, no tunnel".to_owned(),
            program: None,
            arguments: &[],
            every_round: false,
        });
    }
    for candidate in CANDIDATES.iter().filter(|candidate| wanted(candidate.name)) {
        let stands_in = candidate.name == DEBIAN && options.only.is_empty();
        if stands_in && here.iter().any(|known| known.name == WIREGUARD_GO) {
            continue;
        }
        match candidate.look(options) {
            Ok((program, version)) => here.push(Implementation {
                name: candidate.name,
                version,
                program: Some(program),
                arguments: candidate.arguments,
                every_round: candidate.every_round,
            }),
            Err(because) => missing.push(Missing {
                name: candidate.name,
                because,
            }),
        }
    }
    if here.iter().all(|known| known.program.is_none())
        && !options.only.iter().any(|only| only == BARE)
    {
        return Err(BenchError::Nothing(options.device.clone()));
    }
    Ok((here, missing))
}

impl Candidate {
    fn look(&self, options: &Options) -> Result<(PathBuf, String), String> {
        match self.program {
            Where::Device => {
                let there = is_there(&options.device);
                let program = there.map_err(|why| {
                    format!("{why}: cargo build --release --package wirespeed-device makes it")
                })?;
                said_version(&program).map(|version| (program, version))
            }
            Where::Peer(name) => {
                let note = |suffix: &str| {
                    let text =
                        fs::read_to_string(options.peers.join(format!("../{name}.{suffix}")))
                            .ok()?;
                    Some(text.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
                };
                let program =
                    is_there(&options.peers.join(name)).map_err(|why| match note("failed") {
                        Some(failed) => format!("it could not be built: {failed}"),
                        None => format!("{why}: scripts/peers builds it"),
                    })?;
                let version = note("version").map_or_else(|| said_version(&program), Ok)?;
                Ok((program, version))
            }
            Where::Path(name) => {
                let program = in_path(name).ok_or("it is not installed")?;
                said_version(&program).map(|version| (program, version))
            }
        }
    }
}

fn is_there(program: &Path) -> Result<PathBuf, String> {
    let program = std::path::absolute(program).map_err(|error| error.to_string())?;
    if program.is_file() {
        Ok(program)
    } else {
        Err(format!("there is no {}", program.display()))
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// What `--version` prints first: good enough to tell it from another, and proof that it runs here.
fn said_version(program: &Path) -> Result<String, String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|error| format!("{} does not run: {error}", program.display()))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("of unknown version");
    Ok(line.chars().take(80).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn options(line: &str) -> Options {
        Options::parse_from(line.split(' '))
    }

    #[test]
    fn who_is_not_here_is_told_with_the_reason() {
        let (here, missing) = find(&options("b --only bare,gotatun --peers /nowhere")).unwrap();
        assert_eq!(here.len(), 1);
        assert_eq!(
            (missing[0].name, missing[0].because.as_str()),
            (
                "gotatun",
                "there is no /nowhere/gotatun: scripts/peers builds it"
            )
        );
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(
            find(&options("b --only wireguard"))
                .unwrap_err()
                .to_string()
                .contains("`wireguard`")
        );
    }

    #[test]
    fn names_are_told_apart() {
        let mut all: Vec<_> = names().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), CANDIDATES.len() + 1);
    }
}
