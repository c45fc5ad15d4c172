//! Why an agent ended before it greeted: what the way to it said, put into one error with what to do.

use std::io;
use std::process::ExitStatus;

use crate::error::{NotStartedReason, ReachError};
use crate::options::OpenOptions;
use crate::place::Place;
use crate::text;

/// The command itself could not be run on this machine.
pub(crate) fn not_spawned(place: &Place, options: &OpenOptions, error: &io::Error) -> ReachError {
    let machine = place.to_string();
    let (program, package) = match place {
        Place::Netns(_) => ("ip", "iproute2"),
        Place::Ssh(_) => {
            let ssh = options.ssh_command.first().map_or("ssh", String::as_str);
            (ssh, "openssh-client")
        }
        Place::Here | Place::Iperf3 { .. } => {
            return program_missing(place, options, error.to_string());
        }
    };
    let program = program.to_owned();
    let reason = if error.kind() == io::ErrorKind::NotFound {
        NotStartedReason::NoProgram { program, package }
    } else {
        let detail = error.to_string();
        NotStartedReason::ProgramNotRun { program, detail }
    };
    ReachError::NotStarted { machine, reason }
}

/// The command ran and ended without a greeting.
pub(crate) fn ended(
    place: &Place,
    options: &OpenOptions,
    exit: Option<ExitStatus>,
    stderr: &[u8],
) -> ReachError {
    let machine = place.to_string();
    let code = exit.and_then(|exit| exit.code());
    let said = String::from_utf8_lossy(stderr).to_lowercase();
    let detail = text::last_line(stderr).unwrap_or_else(|| in_words(exit));
    match place {
        Place::Netns(name) if said.contains("cannot open network namespace") => {
            ReachError::NotStarted {
                machine,
                reason: NotStartedReason::NoNamespace {
                    name: name.clone(),
                    detail,
                },
            }
        }
        Place::Netns(name)
            if said.contains("operation not permitted")
                && !rustix::process::geteuid().is_root() =>
        {
            ReachError::NotStarted {
                machine,
                reason: NotStartedReason::NeedsRoot {
                    name: name.clone(),
                    detail,
                },
            }
        }
        Place::Netns(_) if said.contains("exec of ") && said.contains(" failed") => {
            program_missing(place, options, detail)
        }
        Place::Ssh(_) if code == Some(255) => ssh_failed(machine, &said, stderr),
        Place::Ssh(_) if matches!(code, Some(126 | 127)) || said.contains("command not found") => {
            program_missing(place, options, detail)
        }
        _ => died(place, exit, stderr),
    }
}

/// The agent ended, before or after its greeting.
pub(crate) fn died(place: &Place, exit: Option<ExitStatus>, stderr: &[u8]) -> ReachError {
    let mut words = in_words(exit);
    if matches!(place, Place::Ssh(_)) && exit.and_then(|exit| exit.code()) == Some(255) {
        words = format!("ssh lost its connection, {words}");
    }
    ReachError::Died {
        machine: place.to_string(),
        exit: words,
        stderr: text::last_lines(stderr, 5),
    }
}

fn ssh_failed(machine: String, said: &str, stderr: &[u8]) -> ReachError {
    let detail = text::last_line(stderr)
        .unwrap_or_else(|| "it ended with code 255 and said nothing".to_owned());
    if said.contains("host key verification failed")
        || said.contains("host identification has changed")
    {
        ReachError::HostKey { machine, detail }
    } else if said.contains("permission denied")
        || said.contains("too many authentication failures")
    {
        ReachError::Login { machine, detail }
    } else {
        ReachError::Unreachable { machine, detail }
    }
}

fn program_missing(place: &Place, options: &OpenOptions, detail: String) -> ReachError {
    let (program, advice) = match place {
        Place::Ssh(_) => (
            options.remote_program.clone(),
            concat!(
                "install the same wirespeed there, where ssh finds it ",
                "(its package, or a copy of this program in /usr/local/bin), ",
                "or say where it is (--far-program)"
            ),
        ),
        _ => (
            options.program.display().to_string(),
            "install it again, or say where it is",
        ),
    };
    ReachError::ProgramMissing {
        machine: place.to_string(),
        program,
        detail,
        advice: advice.to_owned(),
    }
}

fn in_words(exit: Option<ExitStatus>) -> String {
    match exit {
        None => "it closed its output but went on running, and was killed".to_owned(),
        Some(exit) => match exit.code() {
            Some(code) => format!("exit code {code}"),
            // "signal: 9 (SIGKILL)"
            None => format!("killed by {}", exit.to_string().replacen(": ", " ", 1)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn error(place: &str, code: i32, stderr: &str) -> ReachError {
        let exit = ExitStatus::from_raw(code << 8);
        ended(
            &place.parse().unwrap(),
            &OpenOptions::default(),
            Some(exit),
            stderr.as_bytes(),
        )
    }

    #[test]
    fn what_ssh_says_is_sorted() {
        let changed = "@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nHost key verification failed.\r\n";
        assert!(matches!(
            error("ssh://a", 255, changed),
            ReachError::HostKey { .. }
        ));
        let denied = error("ssh://a", 255, "root@a: Permission denied (publickey).\r\n");
        assert!(
            matches!(&denied, ReachError::Login { detail, .. } if detail.contains("publickey")),
            "{denied}"
        );
        let refused = error(
            "ssh://a",
            255,
            "ssh: connect to host a port 22: Connection refused\r\n",
        );
        assert!(matches!(refused, ReachError::Unreachable { .. }));
        assert!(matches!(
            error("ssh://a", 255, ""),
            ReachError::Unreachable { .. }
        ));
    }

    #[test]
    fn a_missing_program_is_known_by_code_or_words() {
        let sh = error("ssh://a", 127, "sh: 1: wirespeed: not found\n");
        assert!(
            matches!(&sh, ReachError::ProgramMissing { program, .. } if program == "wirespeed"),
            "{sh}"
        );
        assert!(matches!(
            error("ssh://a", 1, "wirespeed: Command not found.\n"),
            ReachError::ProgramMissing { .. }
        ));
        assert!(matches!(
            error(
                "netns:a",
                1,
                "exec of \"/x\" failed: No such file or directory\n"
            ),
            ReachError::ProgramMissing { .. }
        ));
    }

    #[test]
    fn other_ends_carry_the_last_words() {
        let died = error("ssh://a", 2, "error: unrecognized subcommand 'agent'\n").to_string();
        assert!(
            died.contains("exit code 2") && died.contains("unrecognized subcommand"),
            "{died}"
        );
        let killed = in_words(Some(ExitStatus::from_raw(9)));
        assert!(
            killed.starts_with("killed by signal 9 (SIGKILL)"),
            "{killed}"
        );
    }
}
