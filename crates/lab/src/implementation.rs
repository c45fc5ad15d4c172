//! Who carries a lab's tunnel: by name or path, and whether it can be used on this machine.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::command::Runner;
use crate::{Lab, LabError};

/// Who carries the tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Implementation {
    /// The kernel's own.
    Kernel,
    /// `wirespeed-device`, from beside the running program, else from `PATH`.
    Wirespeed,
    /// A program that is started as `PROGRAM INTERFACE` and speaks the standard UAPI: a name looked up in `PATH`
    /// (`wireguard-go`), or a path.
    Program(PathBuf),
}

const KERNEL: &str = "kernel";
const WIRESPEED: &str = "wirespeed";
const WIREGUARD_GO: &str = "wireguard-go";

/// The program behind [`Implementation::Wirespeed`].
const WIRESPEED_DEVICE: &str = "wirespeed-device";

impl FromStr for Implementation {
    type Err = LabError;
    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            KERNEL => Ok(Implementation::Kernel),
            WIRESPEED => Ok(Implementation::Wirespeed),
            WIREGUARD_GO => Ok(Implementation::Program(text.into())),
            path if path.contains('/') && !path.contains('\0') => {
                Ok(Implementation::Program(path.into()))
            }
            other => Err(LabError::UnknownImplementation(other.to_owned())),
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Implementation::Kernel => f.write_str(KERNEL),
            Implementation::Wirespeed => f.write_str(WIRESPEED),
            Implementation::Program(path) => write!(f, "{}", path.display()),
        }
    }
}

/// What carries the tunnel on this machine, found to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The kernel's own.
    Kernel,
    /// A program, and how it is started so that it stays in the foreground.
    Daemon {
        program: PathBuf,
        arguments: &'static [&'static str],
    },
}

/// The implementation that was asked for (by the user, else by the scenario), or the best there is: the kernel's, then
/// wirespeed-device, then wireguard-go. Its name, and what was found.
pub(crate) fn choose(
    runner: &Runner,
    lab: &Lab,
    wanted: Option<&Implementation>,
) -> Result<(String, Carrier), LabError> {
    let of_scenario = lab
        .scenario
        .tunnel
        .implementation
        .as_deref()
        .map(str::parse::<Implementation>)
        .transpose()?;
    if let Some(wanted) = wanted.cloned().or(of_scenario) {
        let carrier = find(runner, lab, &wanted)?;
        return Ok((name(&wanted, &carrier), carrier));
    }
    let mut missing = Vec::new();
    for candidate in [
        Implementation::Kernel,
        Implementation::Wirespeed,
        Implementation::Program(WIREGUARD_GO.into()),
    ] {
        match find(runner, lab, &candidate) {
            Ok(carrier) => return Ok((name(&candidate, &carrier), carrier)),
            Err(error) => missing.push(error.to_string()),
        }
    }
    Err(LabError::NoImplementation {
        name: "any".to_owned(),
        why: missing.join("; "),
    })
}

/// A program that was named by a path is shown by its whole path.
fn name(implementation: &Implementation, carrier: &Carrier) -> String {
    match (implementation, carrier) {
        (Implementation::Program(_), Carrier::Daemon { program, .. }) => {
            program.display().to_string()
        }
        _ => implementation.to_string(),
    }
}

fn find(runner: &Runner, lab: &Lab, wanted: &Implementation) -> Result<Carrier, LabError> {
    let missing = |why: String| LabError::NoImplementation {
        name: wanted.to_string(),
        why,
    };
    match wanted {
        Implementation::Kernel => kernel_has_wireguard(runner, lab)
            .map(|()| Carrier::Kernel)
            .map_err(missing),
        Implementation::Wirespeed => wirespeed_device(std::env::current_exe().ok().as_deref())
            .map(|program| Carrier::Daemon {
                program,
                arguments: &["-f"],
            })
            .map_err(missing),
        Implementation::Program(program) => program_path(program)
            .map(|program| Carrier::Daemon {
                program,
                arguments: &[],
            })
            .map_err(missing),
    }
}

/// Found out by trying, on the first end, where the lab's cleaner would find what is left.
fn kernel_has_wireguard(runner: &Runner, lab: &Lab) -> Result<(), String> {
    let host = lab.scenario.topology.ends()[0].host;
    let try_it = |arguments: &str| runner.ip("try the kernel's WireGuard", host, arguments);
    try_it("link add wgtry type wireguard")
        .and_then(|_| try_it("link del wgtry"))
        .map(|_| ())
        .map_err(|e| {
            format!("{e}; install or load the module `wireguard`, or use wirespeed or wireguard-go")
        })
}

/// Our own data plane: beside the program that runs, as both are built and installed together, else in `PATH`.
fn wirespeed_device(running: Option<&Path>) -> Result<PathBuf, String> {
    let beside = running
        .and_then(Path::parent)
        .map(|directory| directory.join(WIRESPEED_DEVICE));
    if let Some(beside) = beside.as_deref().filter(|path| runnable(path)) {
        return Ok(beside.to_owned());
    }
    in_path(Path::new(WIRESPEED_DEVICE)).ok_or_else(|| {
        let looked_at = beside.map_or_else(String::new, |path| format!("{} and in ", path.display()));
        format!(
            "there is no program {WIRESPEED_DEVICE} (looked at {looked_at}PATH): build it with `cargo build --release -p wirespeed-device`, \
             or use kernel or wireguard-go"
        )
    })
}

/// The program, if it is there and may be run.
fn program_path(program: &Path) -> Result<PathBuf, String> {
    if program.components().count() > 1 {
        // The daemon is started in another process's surroundings, so the path must not depend on ours.
        let path = std::path::absolute(program).map_err(|e| e.to_string())?;
        return if runnable(&path) {
            Ok(path)
        } else {
            Err("it is not a program that may be run".to_owned())
        };
    }
    if in_path(program).is_some() {
        Ok(program.to_owned())
    } else {
        Err("it is not installed here: apt-get install wireguard-go".to_owned())
    }
}

fn runnable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The first file of this name in `PATH`.
pub(crate) fn in_path(program: &Path) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_are_names_or_paths() {
        for (text, implementation) in [
            ("kernel", Implementation::Kernel),
            ("wirespeed", Implementation::Wirespeed),
            (
                "wireguard-go",
                Implementation::Program("wireguard-go".into()),
            ),
            ("/opt/x", Implementation::Program("/opt/x".into())),
        ] {
            assert_eq!(implementation.to_string(), text);
            assert_eq!(text.parse().ok(), Some(implementation));
        }
        let refused = "openvpn".parse::<Implementation>().unwrap_err().to_string();
        assert!(
            refused.contains("use kernel, wirespeed, wireguard-go"),
            "{refused}"
        );
    }

    #[test]
    fn a_missing_program_is_said_in_one_sentence() {
        let why = program_path(Path::new("/no/such/daemon")).unwrap_err();
        assert!(why.contains("may be run"), "{why}");
        let why = program_path(Path::new("no-such-daemon-anywhere")).unwrap_err();
        assert!(why.contains("not installed"), "{why}");
    }

    #[test]
    fn our_own_is_the_one_beside_the_running_program() {
        let directory = tempfile::tempdir().unwrap();
        let running = directory.path().join("wirespeed");
        let device = directory.path().join(WIRESPEED_DEVICE);
        if in_path(Path::new(WIRESPEED_DEVICE)).is_none() {
            let why = wirespeed_device(Some(&running)).unwrap_err();
            assert!(
                why.contains(&*device.to_string_lossy()) && why.contains("cargo build"),
                "{why}"
            );
        }
        fs::write(&device, "").unwrap();
        fs::set_permissions(&device, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(wirespeed_device(Some(&running)), Ok(device));
    }
}
