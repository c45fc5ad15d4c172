//! An agent over the system's OpenSSH: a real server in one namespace, the client in another.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use wirespeed_reach::{Machine, OpenOptions, Place, ReachError, SshTarget};

use crate::support::{
    Namespace, PATIENCE, echo_agent, eventually, exists, options, run, signal, skip,
};

const SERVER: &str = "192.0.2.2";
const PORT: u16 = 2222;

/// A server with keys made for it, and a client's namespace joined to it by a cable.
struct Site {
    // Dropped in this order: the server before what it stands on.
    server: Child,
    server_side: Namespace,
    client_side: Namespace,
    directory: tempfile::TempDir,
}

impl Site {
    /// `Err` says what this machine lacks.
    fn new() -> Result<Self, String> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .ok_or("there is no sshd; install openssh-server")?;
        if std::fs::read_to_string("/etc/shadow").is_ok_and(|shadow| shadow.contains("root:!")) {
            return Err("root's account is locked, so sshd lets nobody in; unlock it with usermod -p '*' root".to_owned());
        }
        let (client_side, server_side) = (Namespace::new()?, Namespace::new()?);
        let (client, server) = (client_side.name.as_str(), server_side.name.as_str());
        run(&[
            "ip", "-n", client, "link", "add", "cable", "type", "veth", "peer", "name", "cable",
            "netns", server,
        ]);
        run(&[
            "ip",
            "-n",
            client,
            "address",
            "add",
            "192.0.2.1/24",
            "dev",
            "cable",
        ]);
        run(&[
            "ip",
            "-n",
            server,
            "address",
            "add",
            &format!("{SERVER}/24"),
            "dev",
            "cable",
        ]);
        run(&["ip", "-n", client, "link", "set", "cable", "up"]);
        run(&["ip", "-n", server, "link", "set", "cable", "up"]);

        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        for name in ["host_key", "user_key", "noisy_key", "wrong_key"] {
            let file = directory.path().join(name).display().to_string();
            run(&[
                "ssh-keygen",
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-C",
                name,
                "-f",
                &file,
            ]);
        }
        let server = start_server(sshd, server, directory.path())?;
        let site = Self {
            server,
            server_side,
            client_side,
            directory,
        };
        let log = || site.read("server.log");
        if !eventually(|| log().contains("Server listening")) {
            return Err(format!("sshd does not start: {}", log()));
        }
        if site
            .read("server.log")
            .contains("not allowed because account is locked")
        {
            return Err("this user's account is locked for sshd".to_owned());
        }
        Ok(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn options(&self, key: &str) -> OpenOptions {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let known_hosts = format!("UserKnownHostsFile={}", self.path("known_hosts").display());
        OpenOptions {
            ssh_command: words(&["ip", "netns", "exec", &self.client_side.name, "ssh"]),
            ssh_options: words(&[
                "-F",
                "none",
                "-i",
                &self.path(key).display().to_string(),
                "-o",
                "IdentitiesOnly=yes",
                "-o",
                "IdentityAgent=none",
                "-o",
                &known_hosts,
                "-o",
                "GlobalKnownHostsFile=/dev/null",
            ]),
            ..options()
        }
    }
}

/// Opens the machine at the server's port, which must not take longer than allowed.
fn open(options: &OpenOptions) -> Result<Machine, ReachError> {
    let start = Instant::now();
    let result = Machine::open(&target(PORT), options);
    assert!(start.elapsed() < options.hello_within + Duration::from_secs(10));
    result
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server_side.kill_all();
        let _ = self.server.wait();
    }
}

fn start_server(sshd: &str, namespace: &str, directory: &Path) -> Result<Child, String> {
    let path = |name: &str| directory.join(name).display().to_string();
    let read = |name: &str| std::fs::read_to_string(path(name)).map_err(|error| error.to_string());
    let write = |name: &str, text: String| {
        std::fs::write(path(name), text).map_err(|error| error.to_string())
    };
    // The noisy key's owner has a start-up file that prints.
    let noise = r#"command="echo Last login: yesterday; eval \"$SSH_ORIGINAL_COMMAND\"""#;
    write(
        "authorized_keys",
        format!(
            "{}{noise} {}",
            read("user_key.pub")?,
            read("noisy_key.pub")?
        ),
    )?;
    write(
        "known_hosts",
        format!("[{SERVER}]:{PORT} {}", read("host_key.pub")?),
    )?;
    write(
        "sshd_config",
        format!(
            "Port {PORT}\nListenAddress {SERVER}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n",
            path("host_key"),
            path("authorized_keys")
        ),
    )?;
    // Where sshd puts its unprivileged half; a service manager would make it.
    std::fs::create_dir_all("/run/sshd").map_err(|error| format!("/run/sshd: {error}"))?;
    let log = File::create(path("server.log")).map_err(|error| error.to_string())?;
    Command::new("ip")
        .args([
            "netns",
            "exec",
            namespace,
            sshd,
            "-D",
            "-e",
            "-f",
            &path("sshd_config"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| error.to_string())
}

fn target(port: u16) -> Place {
    Place::Ssh(SshTarget {
        user: None,
        host: SERVER.to_owned(),
        port: Some(port),
    })
}

/// Runs `test` at a site, or reports it as skipped.
fn at_site(name: &str, test: impl FnOnce(&mut Site)) {
    match Site::new() {
        Ok(mut site) => test(&mut site),
        Err(reason) => skip(name, &reason),
    }
}

#[test]
fn an_agent_runs_on_the_server() {
    at_site("an_agent_runs_on_the_server", |site| {
        let machine = open(&site.options("user_key")).unwrap();
        assert_eq!(machine.name(), format!("ssh://{SERVER}:{PORT}"));
        assert_eq!(machine.netns(), Some(site.server_side.name.as_str()));
        assert_eq!(
            machine
                .call::<_, String>("echo", &"hello", PATIENCE)
                .unwrap(),
            "hello"
        );
        assert_eq!(
            machine
                .call::<_, String>("flood", &(4 << 20), PATIENCE)
                .unwrap()
                .len(),
            4 << 20
        );
        let pid: u32 = machine.call("pid", &(), PATIENCE).unwrap();
        drop(machine);
        assert!(
            eventually(|| !exists(pid)),
            "the agent stayed on the server"
        );
    });
}

#[test]
fn a_program_path_is_one_word_to_the_remote_shell() {
    at_site("a_program_path_is_one_word_to_the_remote_shell", |site| {
        let odd = site.path("it's $(touch owned); wire speed");
        std::os::unix::fs::symlink(echo_agent(), &odd).unwrap();
        let options = OpenOptions {
            remote_program: odd.display().to_string(),
            ..site.options("user_key")
        };
        open(&options)
            .unwrap()
            .call::<_, ()>("ping", &(), PATIENCE)
            .unwrap();
    });
}

#[test]
fn a_key_that_is_not_welcome() {
    at_site("a_key_that_is_not_welcome", |site| {
        let error = open(&site.options("wrong_key")).unwrap_err();
        assert!(
            matches!(&error, ReachError::Login { detail, .. } if detail.contains("publickey")),
            "{error}"
        );
    });
}

#[test]
fn a_server_whose_key_is_unknown_or_changed() {
    at_site("a_server_whose_key_is_unknown_or_changed", |site| {
        let known = format!("[{SERVER}]:{PORT} {}", site.read("wrong_key.pub"));
        for known_hosts in [String::new(), known] {
            std::fs::write(site.path("known_hosts"), &known_hosts).unwrap();
            let error = open(&site.options("user_key")).unwrap_err();
            assert!(
                matches!(error, ReachError::HostKey { .. }),
                "{known_hosts}: {error}"
            );
        }
    });
}

#[test]
fn a_port_where_nobody_listens() {
    at_site("a_port_where_nobody_listens", |site| {
        let error = Machine::open(&target(PORT + 1), &site.options("user_key")).unwrap_err();
        assert!(
            matches!(&error, ReachError::Unreachable { detail, .. } if detail.contains("refused")),
            "{error}"
        );
    });
}

#[test]
fn a_server_without_the_program() {
    at_site("a_server_without_the_program", |site| {
        for program in ["/nonesuch/wirespeed", "wirespeed-nonesuch", "/etc/passwd"] {
            let options = OpenOptions {
                remote_program: program.to_owned(),
                ..site.options("user_key")
            };
            let error = open(&options).unwrap_err();
            assert!(
                matches!(error, ReachError::ProgramMissing { .. }),
                "{program}: {error}"
            );
            assert!(
                error
                    .to_string()
                    .contains("install the same wirespeed there"),
                "{error}"
            );
        }
    });
}

#[test]
fn a_start_up_file_that_prints_is_named_as_the_cause() {
    at_site(
        "a_start_up_file_that_prints_is_named_as_the_cause",
        |site| {
            let error = open(&site.options("noisy_key")).unwrap_err();
            let ReachError::Rubbish { detail, .. } = &error else {
                panic!("{error}")
            };
            assert!(
                detail.contains("Last login: yesterday") && detail.contains(".bashrc"),
                "{detail}"
            );
        },
    );
}

#[test]
fn a_server_that_hangs_costs_the_limit() {
    at_site("a_server_that_hangs_costs_the_limit", |site| {
        signal(site.server.id().cast_signed(), Signal::STOP);
        let options = OpenOptions {
            hello_within: Duration::from_secs(3),
            ..site.options("user_key")
        };
        let error = open(&options).unwrap_err();
        // Whichever notices first: ssh, or we.
        assert!(
            matches!(
                error,
                ReachError::TimedOut { .. } | ReachError::Unreachable { .. }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_server_killed_during_a_call() {
    at_site("a_server_killed_during_a_call", |site| {
        let machine = open(&site.options("user_key")).unwrap();
        let agent: i32 = machine.call("pid", &(), PATIENCE).unwrap();
        let call = machine.start("sleep", &600.0).unwrap();
        for pid in site
            .server_side
            .pids()
            .into_iter()
            .filter(|pid| *pid != agent)
        {
            signal(pid, Signal::KILL);
        }
        let error = call.wait::<f64>(PATIENCE).unwrap_err();
        assert!(
            matches!(&error, ReachError::Died { exit, .. } if exit.contains("ssh lost")),
            "{error}"
        );
        assert_eq!(
            machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err(),
            error
        );
        assert!(
            eventually(|| !exists(agent.cast_unsigned())),
            "the agent outlived its connection"
        );
    });
}

#[test]
fn a_cut_cable_is_noticed() {
    at_site("a_cut_cable_is_noticed", |site| {
        let machine = open(&site.options("user_key")).unwrap();
        let call = machine.start("sleep", &600.0).unwrap();
        run(&[
            "ip",
            "-n",
            &site.server_side.name,
            "link",
            "set",
            "cable",
            "down",
        ]);
        let error = call.wait::<f64>(Duration::from_secs(60)).unwrap_err();
        assert!(
            matches!(&error, ReachError::Died { exit, .. } if exit.contains("ssh lost")),
            "{error}"
        );
    });
}
