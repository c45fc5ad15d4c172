//! The tunnel: who carries it, its keys and peers, and the faults made in it.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed_settings::Setting;

use crate::command::Runner;
use crate::{Lab, LabError, netns, state};

/// Port of both ends.
const PORT: u16 = 51820;

/// How long a daemon may take to open its UAPI socket.
const DAEMON_WITHIN: Duration = Duration::from_secs(5);

/// Who carries the tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Implementation {
    /// The kernel's own.
    Kernel,
    /// A program that is started as `PROGRAM INTERFACE` and speaks the standard UAPI: a name looked up in `PATH`
    /// (`wireguard-go`), or a path.
    Program(PathBuf),
}

impl FromStr for Implementation {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kernel" => Ok(Implementation::Kernel),
            WIREGUARD_GO => Ok(Implementation::Program(text.into())),
            path if path.contains('/') && !path.contains('\0') => {
                Ok(Implementation::Program(path.into()))
            }
            other => Err(format!(
                "`{other}` is no tunnel implementation: use kernel, wireguard-go, or the path of a program that speaks the standard UAPI"
            )),
        }
    }
}

const WIREGUARD_GO: &str = "wireguard-go";

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Implementation::Kernel => f.write_str("kernel"),
            Implementation::Program(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Brings both ends of the tunnel up.
pub(crate) fn build(
    runner: &Runner,
    lab: &mut Lab,
    wanted: Option<&Implementation>,
) -> Result<(), LabError> {
    let implementation = choose(runner, lab, wanted)?;
    lab.implementation = Some(implementation.to_string());
    let private: [String; 2] = [generate_key(runner)?, generate_key(runner)?];
    let ends = lab.scenario.topology.ends();
    let spec = lab.scenario.tunnel.clone();
    for (i, end) in ends.iter().enumerate() {
        let interface = lab.id.tunnel_interface(i);
        let other = &ends[1 - i];
        match &implementation {
            Implementation::Kernel => {
                runner.ip(
                    "make the tunnel",
                    end.host,
                    &format!("link add {interface} type wireguard"),
                )?;
            }
            Implementation::Program(program) => start(runner, lab, i, end.host, program)?,
        }
        let step = format!("configure the tunnel on {}", end.host);
        let mut allowed = format!("{}/32", other.tunnel_address);
        if let Some(site) = other.site {
            allowed = format!("{allowed}, {}", site.network);
        }
        let mut text = format!(
            "[Interface]\nPrivateKey = {}\nListenPort = {PORT}\n[Peer]\nPublicKey = {}\nAllowedIPs = {allowed}\n",
            private[i],
            public_key(runner, &private[1 - i])?
        );
        // Behind a translating road the first end's address is only known once it has called.
        if i == 0 || lab.scenario.road.nat.is_none() {
            text = format!("{text}Endpoint = {}:{PORT}\n", other.road_address);
        }
        if i == 0 && spec.keepalive > 0 {
            text = format!("{text}PersistentKeepalive = {}\n", spec.keepalive);
        }
        runner.exec(
            &step,
            end.host,
            &["wg", "setconf", &interface, "/dev/stdin"],
            Some(&text),
        )?;
        let mtu = spec.mtu.of(i).bytes();
        runner.ip(
            &step,
            end.host,
            &format!("addr add {}/24 dev {interface}", end.tunnel_address),
        )?;
        runner.ip(
            &step,
            end.host,
            &format!("link set {interface} mtu {mtu} up"),
        )?;
        if let Some(site) = other.site {
            runner.ip(
                &step,
                end.host,
                &format!("route add {} dev {interface}", site.network),
            )?;
        }
        if implementation != Implementation::Kernel {
            size_socket(lab, end.host, &interface, spec.socket_buffer.of(i))?;
        }
    }
    Ok(())
}

/// Gives the first end a second peer that takes over the real one's allowed IPs.
pub(crate) fn steal_allowed_ips(runner: &Runner, lab: &Lab) -> Result<(), LabError> {
    let [first, second] = lab.scenario.topology.ends();
    let thief = public_key(runner, &generate_key(runner)?)?;
    let mut allowed = format!("{}/32", second.tunnel_address);
    if let Some(site) = second.site {
        allowed = format!("{allowed},{}", site.network);
    }
    let interface = lab.id.tunnel_interface(0);
    let line = [
        "wg",
        "set",
        &interface,
        "peer",
        &thief,
        "allowed-ips",
        &allowed,
    ];
    runner.exec(
        "add the peer with the same allowed IPs",
        first.host,
        &line,
        None,
    )?;
    Ok(())
}

/// The implementation that was asked for, or the best there is.
fn choose(
    runner: &Runner,
    lab: &Lab,
    wanted: Option<&Implementation>,
) -> Result<Implementation, LabError> {
    let of_scenario = lab
        .scenario
        .tunnel
        .implementation
        .as_deref()
        .map(str::parse::<Implementation>);
    let wanted = match (wanted, of_scenario) {
        (Some(wanted), _) => Some(wanted.clone()),
        (None, Some(named)) => Some(named.map_err(|why| LabError::Scenario {
            origin: lab.scenario.name.clone(),
            why,
        })?),
        (None, None) => None,
    };
    match wanted {
        Some(Implementation::Program(program)) => {
            program_path(&program).map(Implementation::Program)
        }
        Some(Implementation::Kernel) => {
            kernel_has_wireguard(runner, lab).map(|()| Implementation::Kernel)
        }
        None if kernel_has_wireguard(runner, lab).is_ok() => Ok(Implementation::Kernel),
        None => program_path(Path::new(WIREGUARD_GO))
            .map(|_| Implementation::Program(WIREGUARD_GO.into())),
    }
}

/// Found out by trying, on the first end, where the lab's cleaner would find what is left.
fn kernel_has_wireguard(runner: &Runner, lab: &Lab) -> Result<(), LabError> {
    let host = lab.scenario.topology.ends()[0].host;
    runner
        .ip(
            "try the kernel's WireGuard",
            host,
            "link add wgtry type wireguard",
        )
        .and_then(|_| runner.ip("try the kernel's WireGuard", host, "link del wgtry"))
        .map(|_| ())
        .map_err(|e| LabError::NoImplementation {
            name: "kernel".to_owned(),
            why: format!("{e}; install or load the module `wireguard`, or use wireguard-go"),
        })
}

/// The program, if it is there and may be run.
fn program_path(program: &Path) -> Result<PathBuf, LabError> {
    let runnable = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let missing = |why: &str| LabError::NoImplementation {
        name: program.display().to_string(),
        why: why.to_owned(),
    };
    if program.components().count() > 1 {
        // The daemon is started in another process's surroundings, so the path must not depend on ours.
        let path = std::path::absolute(program).map_err(|e| missing(&format!("{e}")))?;
        return if runnable(&path) {
            Ok(path)
        } else {
            Err(missing("it is not a program that may be run"))
        };
    }
    if crate::up::in_path(program) {
        Ok(program.to_owned())
    } else {
        Err(missing(
            "it is not installed here: apt-get install wireguard-go",
        ))
    }
}

/// Starts the daemon of one end and waits until it answers.
fn start(
    runner: &Runner,
    lab: &Lab,
    end: usize,
    host: &str,
    program: &Path,
) -> Result<(), LabError> {
    let interface = lab.id.tunnel_interface(end);
    let program_text = program.to_string_lossy();
    let failed = |why: String| LabError::Daemon {
        host: host.to_owned(),
        program: program_text.clone().into_owned(),
        interface: interface.clone(),
        why,
    };
    let log_path = state::log_of(&lab.id, &interface);
    let log = File::create(&log_path).map_err(LabError::file("create", &log_path))?;
    let errors = log
        .try_clone()
        .map_err(LabError::file("create", &log_path))?;
    let cpu = lab.scenario.tunnel.pin_cpu.map(|cpu| cpu.to_string());
    let mut line: Vec<&str> = Vec::new();
    if let Some(cpu) = &cpu {
        line.extend(["taskset", "-c", cpu]);
    }
    line.extend([&*program_text, &interface]);
    let mut command = runner.in_host(host, &line);
    // wireguard-go's own words: stay in the foreground, so that what it says is kept; others ignore them.
    command
        .env("WG_PROCESS_FOREGROUND", "1")
        .env("LOG_LEVEL", "error");
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let daemon = spawn_daemon(command).map_err(|e| failed(format!("could not be started: {e}")))?;
    let socket = lab.id.uapi_socket(end);
    let began = Instant::now();
    while UnixStream::connect(&socket).is_err() {
        let said = || {
            let words = fs::read_to_string(&log_path).unwrap_or_default();
            match words.trim() {
                "" => "it said nothing".to_owned(),
                words => words.to_owned(),
            }
        };
        if daemon.failed() {
            return Err(failed(format!("ended at once: {}", said())));
        }
        if began.elapsed() > DAEMON_WITHIN {
            return Err(failed(format!(
                "did not open its socket {} within {} s: {}",
                socket.display(),
                DAEMON_WITHIN.as_secs(),
                said()
            )));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A process that outlives its starter.
pub(crate) struct Daemon {
    ended: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
}

impl Daemon {
    /// Has it ended?
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Has it ended with an error? (A program that puts itself into the background ends well.)
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Starts a daemon in a process group of its own, out of reach of the terminal's Ctrl-C, and collects it when it ends.
pub(crate) fn spawn_daemon(mut command: Command) -> std::io::Result<Daemon> {
    let mut child = command.process_group(0).spawn()?;
    let daemon = Daemon {
        ended: Arc::default(),
        failed: Arc::default(),
    };
    let (ended, failed) = (Arc::clone(&daemon.ended), Arc::clone(&daemon.failed));
    thread::spawn(move || {
        let status = child.wait();
        failed.store(!status.is_ok_and(|s| s.success()), Ordering::Relaxed);
        ended.store(true, Ordering::Relaxed);
    });
    Ok(daemon)
}

/// Sets the receive buffer of the daemon's UDP sockets.
fn size_socket(lab: &Lab, host: &str, interface: &str, bytes: u32) -> Result<(), LabError> {
    let setting = Setting::SocketReceiveBuffer {
        interface: interface.to_owned(),
    };
    netns::inside(&netns::path(&lab.id.namespace(host)), || {
        setting.write(&bytes.into()).map_err(|e| LabError::Setting {
            host: host.to_owned(),
            why: e.to_string(),
        })
    })
}

fn generate_key(runner: &Runner) -> Result<String, LabError> {
    let mut command = Command::new("wg");
    command.arg("genkey");
    Ok(runner.run("make a key", command, None)?.trim().to_owned())
}

fn public_key(runner: &Runner, private: &str) -> Result<String, LabError> {
    let mut command = Command::new("wg");
    command.arg("pubkey");
    Ok(runner
        .run("make a key", command, Some(private))?
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_are_names_or_paths() {
        assert_eq!("kernel".parse(), Ok(Implementation::Kernel));
        assert_eq!(
            "wireguard-go".parse(),
            Ok(Implementation::Program("wireguard-go".into()))
        );
        assert_eq!(
            "/opt/x".parse(),
            Ok(Implementation::Program("/opt/x".into()))
        );
        assert!(
            "openvpn"
                .parse::<Implementation>()
                .unwrap_err()
                .contains("use kernel, wireguard-go")
        );
    }

    #[test]
    fn a_missing_program_is_said_in_one_sentence() {
        let text = program_path(Path::new("/no/such/daemon"))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("/no/such/daemon") && text.contains("can't be used here"),
            "{text}"
        );
        let text = program_path(Path::new("no-such-daemon-anywhere"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("not installed"), "{text}");
    }
}
