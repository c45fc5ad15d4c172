//! What can go wrong in a lab, each with what to do next.

mod said;

use std::path::PathBuf;

/// Why a lab could not be made, found or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario can't be read.
    #[error(
        "scenario {origin}: {why}; name one that `wirespeed lab list` shows, or write a file like the one in docs/lab.md"
    )]
    Scenario {
        /// File or name.
        origin: String,
        /// What is wrong, with the line where TOML knows it; in one line, in the language of the moment.
        why: String,
    },
    /// Neither a shipped scenario nor a file.
    #[error("there is no scenario `{name}` and no such file; shipped are: {known}")]
    UnknownScenario {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Not root.
    #[error("a lab makes network namespaces, which only root may: run this as root (sudo)")]
    NotRoot,
    /// A program is missing.
    #[error("the program `{program}` is not installed here: apt-get install {package}")]
    ProgramMissing {
        /// What was looked for in `PATH`.
        program: &'static str,
        /// Debian package.
        package: &'static str,
    },
    /// `/dev/net/tun` is missing.
    #[error(
        "/dev/net/tun is missing here, so no userspace tunnel and no road emulator can run: modprobe tun"
    )]
    NoTun,
    /// The tunnel implementation is missing.
    #[error("the tunnel implementation `{name}` can't be used here: {why}")]
    NoImplementation {
        /// As the scenario or the user named it.
        name: String,
        /// What was tried and what to do.
        why: String,
    },
    /// No name of an implementation, and no path.
    #[error(
        "`{0}` is no tunnel implementation: use kernel, wirespeed, wireguard-go, or the path of a program that speaks the standard UAPI"
    )]
    UnknownImplementation(String),
    /// A tunnel daemon did not come up.
    #[error("on {host}, {program} {interface} {why}")]
    Daemon {
        /// Host in the lab.
        host: String,
        /// The program.
        program: String,
        /// Its interface.
        interface: String,
        /// What it did or did not do.
        why: String,
    },
    /// A lab identifier is not one.
    #[error("`{0}` is no lab identifier: use 1 to 8 lower-case letters and digits")]
    BadId(String),
    /// The identifier is taken.
    #[error(
        "there is already a lab `{0}`: take it down first (wirespeed lab down {0}), or choose another name"
    )]
    Taken(String),
    /// No such lab.
    #[error("there is no lab `{id}`; running: {running}")]
    NoSuchLab {
        /// What was asked for.
        id: String,
        /// What there is.
        running: String,
    },
    /// The lab is being made or taken down by a living process.
    #[error("lab `{id}` is just being made by process {pid}: wait for it, or end it")]
    Busy {
        /// The lab.
        id: String,
        /// Who makes it.
        pid: u32,
    },
    /// No such host in the lab.
    #[error("lab `{id}` has no host `{host}`; hosts are {known}")]
    NoSuchHost {
        /// The lab.
        id: String,
        /// What was asked for.
        host: String,
        /// What there is.
        known: String,
    },
    /// A step failed.
    #[error("{step}: `{command}` failed: {why}")]
    Command {
        /// What was being done, and on which host.
        step: String,
        /// The command line.
        command: String,
        /// Its own words.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was tried ("write").
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The lab was made, but packets do not pass.
    #[error("{what} did not work within {seconds} s in lab `{id}`: {detail}")]
    NoTraffic {
        /// The lab.
        id: String,
        /// The road or the tunnel, and between whom.
        what: String,
        /// How long was waited.
        seconds: u64,
        /// What the last attempt said.
        detail: String,
    },
    /// A setting could not be made.
    #[error("on {host}: {why}")]
    Setting {
        /// Host in the lab.
        host: String,
        /// What and why.
        why: String,
    },
    /// Something is left after taking down.
    #[error(
        "lab `{id}` could not be taken down completely: {left}; run `wirespeed lab down {id}` again"
    )]
    LeftOver {
        /// The lab.
        id: String,
        /// What is left.
        left: String,
    },
    /// Ended on request.
    #[error("ended on request; everything of this lab was taken down")]
    Cancelled,
    /// A program of the lab's own could not start or go on.
    #[error("a job of the lab: {0}")]
    Job(String),
    /// Another lab has changed the machine in another way.
    #[error(
        "sysctl {sysctl} of this machine was set to {now} by lab {by}, and this lab needs {wanted}: take that one down first (wirespeed lab down {by})"
    )]
    Machine {
        /// Which.
        sysctl: String,
        /// What it is.
        now: String,
        /// A lab that wants it so.
        by: String,
        /// What was wanted.
        wanted: String,
    },
    /// The road emulator could not start or go on.
    #[error("the road emulator: {0}")]
    Emulator(String),
}

impl LabError {
    /// A file error.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { what, path, source }
    }
}
