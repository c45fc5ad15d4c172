//! The exit codes that scripts rely on.

use std::process::ExitCode;

/// How a command ended, when it did what it was asked for or stopped on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Healthy, or done.
    Done,
    /// There are findings.
    Findings,
    /// The command line makes no sense (also what clap exits with).
    Usage,
    /// Could not measure.
    Unmeasured,
    /// A change was refused or undone.
    Refused,
    /// Ctrl-C or a request to end.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Unmeasured => 3,
            Exit::Refused => 4,
            Exit::Interrupted => 130,
        })
    }
}
