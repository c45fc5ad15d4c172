//! What can go wrong.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a sample, or the whole run, could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("the benchmarks make network namespaces, which takes root: run them with sudo")]
    NotRoot,
    #[error("there is no {0} `{1}`; `--list` names them")]
    NoSuch(&'static str, String),
    #[error(
        "there is nothing to compare: {0} is not here and neither is any other implementation (scripts/peers builds them)"
    )]
    Nothing(PathBuf),
    #[error("could not {what}: {source}")]
    System { what: String, source: io::Error },
    #[error("`{command}` failed: {said}")]
    Command { command: String, said: String },
    #[error("{program} {what}{log}")]
    Daemon {
        program: String,
        what: String,
        log: String,
    },
    #[error("{program} refused its configuration: errno {errno}")]
    Refused { program: String, errno: String },
    #[error("{program} did not answer on its control socket within {} s", limit.as_secs())]
    Silent { program: String, limit: Duration },
    #[error("no echo came back from {to} within {} s", limit.as_secs())]
    NoEcho { to: String, limit: Duration },
    #[error("iperf3 said: {0}")]
    Load(String),
    #[error("{0}")]
    Measured(String),
    #[error("stopped")]
    Stopped,
}

impl BenchError {
    /// For `map_err`: what was tried.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}
