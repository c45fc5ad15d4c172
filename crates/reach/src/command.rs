//! The command that starts an agent at a place.

use std::ffi::OsString;
use std::process::Command;

use crate::error::{NotStartedReason, ReachError};
use crate::options::OpenOptions;
use crate::place::{Place, SshTarget};

/// The program that is started here, with its arguments. The place has been checked.
pub(crate) fn for_place(place: &Place, options: &OpenOptions) -> Result<Command, ReachError> {
    match place {
        Place::Here => Ok(command(&options.program, [OsString::from("agent")])),
        Place::Netns(name) => Ok(command(
            "ip",
            [
                "netns".into(),
                "exec".into(),
                name.into(),
                options.program.clone().into(),
                OsString::from("agent"),
            ],
        )),
        Place::Ssh(target) => ssh(place, target, options),
        Place::Iperf3 { .. } => Err(ReachError::NotStarted {
            machine: place.to_string(),
            reason: NotStartedReason::Iperf3,
        }),
    }
}

fn command(program: impl Into<OsString>, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let mut command = Command::new(program.into());
    command.args(arguments);
    command
}

fn ssh(place: &Place, target: &SshTarget, options: &OpenOptions) -> Result<Command, ReachError> {
    let Some((program, first_arguments)) = options.ssh_command.split_first() else {
        return Err(ReachError::NotStarted {
            machine: place.to_string(),
            reason: NotStartedReason::NoSshCommand,
        });
    };
    let mut command = Command::new(program);
    command.args(first_arguments);
    // Neither a question nor somebody's configuration for shells and tunnels may come between.
    command.args(["-T", "-a", "-x", "-o", "BatchMode=yes"]);
    command.args(&options.ssh_options);
    // A little before our own limit, so that ssh can say itself what is wrong.
    let connect_within = options.hello_within.as_secs().saturating_sub(1).max(1);
    command
        .arg("-o")
        .arg(format!("ConnectTimeout={connect_within}"));
    command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]);
    command.args(["-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"]);
    if let Some(port) = target.port {
        command.arg("-p").arg(port.to_string());
    }
    let destination = match &target.user {
        Some(user) => format!("{user}@{}", target.host),
        None => target.host.clone(),
    };
    // "--" before the host: after the host, ssh would look for options again.
    command.arg("--").arg(destination);
    command.arg(format!("{} agent", quoted(&options.remote_program)));
    Ok(command)
}

/// `program` as one word of a remote shell (sh and the like, csh, fish).
fn quoted(program: &str) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    match program.strip_prefix("~/") {
        Some(rest) => format!("\"$HOME\"/{}", quote(rest)),
        None => quote(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    fn words(place: &str, options: &OpenOptions) -> Vec<String> {
        let command = for_place(&place.parse().unwrap(), options).unwrap();
        std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    fn options() -> OpenOptions {
        OpenOptions {
            program: PathBuf::from("/opt/ws"),
            ..OpenOptions::default()
        }
    }

    #[test]
    fn local_places() {
        assert_eq!(words("here", &options()), ["/opt/ws", "agent"]);
        assert_eq!(
            words("netns:a", &options()),
            ["ip", "netns", "exec", "a", "/opt/ws", "agent"]
        );
    }

    #[test]
    fn ssh_takes_host_and_program_as_words() {
        let options = OpenOptions {
            remote_program: "/opt/it's/ws".to_owned(),
            ssh_options: vec!["-i".to_owned(), "key".to_owned()],
            hello_within: Duration::from_secs(8),
            ..options()
        };
        let words = words("ssh://root@[fd00::1]:2222", &options);
        assert_eq!(words[..3], ["ssh", "-T", "-a"]);
        assert!(
            words
                .windows(2)
                .any(|pair| pair == ["-o", "ConnectTimeout=7"])
        );
        assert!(words.windows(2).any(|pair| pair == ["-i", "key"]));
        assert_eq!(
            words[words.len() - 5..],
            [
                "-p",
                "2222",
                "--",
                "root@fd00::1",
                r"'/opt/it'\''s/ws' agent"
            ]
        );
    }

    #[test]
    fn the_remote_home_is_expanded_over_there() {
        assert_eq!(quoted("~/bin/wire speed"), "\"$HOME\"/'bin/wire speed'");
        assert_eq!(quoted("$(reboot)"), "'$(reboot)'");
    }

    #[test]
    fn an_iperf3_server_is_no_machine() {
        let error = for_place(&"iperf3://a".parse().unwrap(), &options()).unwrap_err();
        assert!(matches!(error, ReachError::NotStarted { .. }), "{error}");
    }
}
