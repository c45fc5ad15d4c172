//! How a machine is opened.

use std::path::PathBuf;
use std::time::Duration;

/// How [`crate::Machine::open`] starts the program at the far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// The program run as agent on this machine and in its namespaces; this very program by default.
    pub program: PathBuf,
    /// The program run as agent over ssh: a name looked up in the remote `PATH`, or a path; `~/` at its start
    /// is the remote home. Not a shell command: it is quoted.
    pub remote_program: String,
    /// The command that is ssh here, with its first arguments; `["ssh"]` by default.
    pub ssh_command: Vec<String>,
    /// Further options for ssh, such as `-i`, `KEY`; they go before our own, so they win
    /// (ssh takes the first value of an option), except that ssh never asks questions.
    pub ssh_options: Vec<String>,
    /// How long the far end may take from start to greeting.
    pub hello_within: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            program: this_program(),
            remote_program: "wirespeed".to_owned(),
            ssh_command: vec!["ssh".to_owned()],
            ssh_options: Vec::new(),
            hello_within: Duration::from_secs(15),
        }
    }
}

/// The path of this program; when its file was replaced or removed since the start (an upgrade), the kernel's
/// handle on the very program that runs, so that both ends stay of one version.
fn this_program() -> PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from(format!("/proc/{}/exe", std::process::id())),
    }
}
