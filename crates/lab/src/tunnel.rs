//! The tunnel: who carries it, its keys and peers, and the faults made in it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use wirespeed_settings::Setting;

use crate::command::Runner;
use crate::implementation::{Carrier, choose};
use crate::scenario::ROOMY_SOCKET_BUFFER;
use crate::{Implementation, Lab, LabError, netns, state};

/// Port of both ends.
const PORT: u16 = 51820;

/// Port of both ends of a tunnel that goes through another one, which has the usual one.
const INNER_PORT: u16 = 51821;

/// The two ends of a tunnel around the tunnel: numbers of the interfaces, and addresses.
const OUTER_INTERFACES: [usize; 2] = [4, 5];
const OUTER_ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 8, 0, 1), Ipv4Addr::new(10, 8, 0, 2)];

/// How long a daemon may take to open its UAPI socket.
const DAEMON_WITHIN: Duration = Duration::from_secs(5);

/// A tunnel to be made: what each of its two ends is and knows of the other.
struct Pair {
    ends: [PairEnd; 2],
    port: u16,
    /// Seconds, of the first end.
    keepalive: u16,
    /// The second end can't know where the first one is.
    hidden: bool,
    idle_peers: u16,
}

/// One end of a tunnel to be made.
struct PairEnd {
    host: &'static str,
    /// Number of its interface.
    interface: usize,
    address: Ipv4Addr,
    /// Where the other finds it.
    endpoint: Ipv4Addr,
    mtu: u32,
    /// What can be reached through it, beside itself.
    beyond: Option<&'static str>,
    socket_buffer: u32,
}

/// Brings both ends of every tunnel up.
pub(crate) fn build(
    runner: &Runner,
    lab: &mut Lab,
    wanted: Option<&Implementation>,
) -> Result<(), LabError> {
    let (name, carrier) = choose(runner, lab, wanted)?;
    lab.implementation = Some(name);
    let spec = &lab.scenario.tunnel;
    for (number, leg) in lab.scenario.topology.legs().iter().enumerate() {
        let end = |i: usize, around: bool| PairEnd {
            host: leg.ends[i].host,
            interface: if around {
                OUTER_INTERFACES[i]
            } else {
                leg.interfaces[i]
            },
            address: if around {
                OUTER_ADDRESSES[i]
            } else {
                leg.ends[i].tunnel_address
            },
            endpoint: match spec.inside {
                Some(_) if !around => OUTER_ADDRESSES[i],
                _ => leg.ends[i].road_address,
            },
            mtu: match spec.inside {
                Some(mtu) if around => mtu.bytes(),
                _ => spec.mtu.of(i).bytes(),
            },
            beyond: leg.ends[i].beyond.filter(|_| !around),
            socket_buffer: spec.socket_buffer.of(i),
        };
        if spec.inside.is_some() {
            let around = Pair {
                ends: [end(0, true), end(1, true)],
                port: PORT,
                keepalive: 0,
                hidden: false,
                idle_peers: 0,
            };
            join(runner, lab, &carrier, &around)?;
        }
        let pair = Pair {
            ends: [end(0, false), end(1, false)],
            port: if spec.inside.is_some() {
                INNER_PORT
            } else {
                // A hub has two of them.
                PORT + number as u16
            },
            keepalive: spec.keepalive,
            hidden: lab.scenario.road_of(number).nat.is_some(),
            idle_peers: spec.idle_peers,
        };
        join(runner, lab, &carrier, &pair)?;
    }
    crate::hosts::set_offloads(runner, lab, true)
}

/// Makes a tunnel.
fn join(runner: &Runner, lab: &Lab, carrier: &Carrier, pair: &Pair) -> Result<(), LabError> {
    let private: [String; 2] = [generate_key(runner)?, generate_key(runner)?];
    for (i, end) in pair.ends.iter().enumerate() {
        let interface = lab.id.tunnel_interface(end.interface);
        let other = &pair.ends[1 - i];
        match carrier {
            Carrier::Kernel => {
                runner.ip(
                    "make the tunnel",
                    end.host,
                    &format!("link add {interface} type wireguard"),
                )?;
            }
            Carrier::Daemon { program, arguments } => {
                start(runner, lab, end.interface, end.host, program, arguments)?;
            }
        }
        let step = format!("configure the tunnel on {}", end.host);
        let mut allowed = format!("{}/32", other.address);
        if let Some(beyond) = other.beyond {
            allowed = format!("{allowed}, {beyond}");
        }
        let port = pair.port;
        let mut text = format!(
            "[Interface]\nPrivateKey = {}\nListenPort = {port}\n[Peer]\nPublicKey = {}\nAllowedIPs = {allowed}\n",
            private[i],
            public_key(runner, &private[1 - i])?
        );
        // Behind a translating road the first end's address is only known once it has called.
        if i == 0 || !pair.hidden {
            text = format!("{text}Endpoint = {}:{port}\n", other.endpoint);
        }
        if i == 0 && pair.keepalive > 0 {
            text = format!("{text}PersistentKeepalive = {}\n", pair.keepalive);
        }
        if i == 1 {
            text.push_str(&idle_peers(pair.idle_peers));
        }
        runner.exec(
            &step,
            end.host,
            &["wg", "setconf", &interface, "/dev/stdin"],
            Some(&text),
        )?;
        runner.ip(
            &step,
            end.host,
            &format!("addr add {}/24 dev {interface}", end.address),
        )?;
        runner.ip(
            &step,
            end.host,
            &format!("link set {interface} mtu {} up", end.mtu),
        )?;
        if let Some(beyond) = other.beyond {
            runner.ip(
                &step,
                end.host,
                &format!("route add {beyond} dev {interface}"),
            )?;
        }
        if *carrier != Carrier::Kernel {
            size_socket(lab, end.host, &interface, end.socket_buffer)?;
        }
    }
    Ok(())
}

/// Peers with keys that nobody has, each with an address of its own.
fn idle_peers(count: u16) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let key = BASE64.encode(rand::random::<[u8; 32]>());
        let [high, low] = number.to_be_bytes();
        let _ = write!(
            text,
            "[Peer]\nPublicKey = {key}\nAllowedIPs = 10.10.{high}.{low}/32\n"
        );
        text
    })
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

/// Starts the daemon of a tunnel interface and waits until it answers.
fn start(
    runner: &Runner,
    lab: &Lab,
    number: usize,
    host: &str,
    program: &Path,
    arguments: &[&str],
) -> Result<(), LabError> {
    let interface = lab.id.tunnel_interface(number);
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
    line.push(&program_text);
    line.extend(arguments);
    line.push(&interface);
    let mut command = runner.in_host(host, &line);
    // wireguard-go's own words: stay in the foreground, so that what it says is kept; others ignore them.
    command
        .env("WG_PROCESS_FOREGROUND", "1")
        .env("LOG_LEVEL", "error");
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let daemon = spawn_daemon(command).map_err(|e| failed(format!("could not be started: {e}")))?;
    let socket = lab.id.uapi_socket(number);
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

/// Sets the receive buffer of the daemon's UDP sockets. What is roomy enough for every scenario is no reason to shrink those
/// of a daemon that sizes them itself.
fn size_socket(lab: &Lab, host: &str, interface: &str, bytes: u32) -> Result<(), LabError> {
    let setting = Setting::SocketReceiveBuffer {
        interface: interface.to_owned(),
    };
    netns::inside(&netns::path(&lab.id.namespace(host)), || {
        let roomy = || {
            let now = setting.read().ok().and_then(|now| now.as_u64());
            now.is_some_and(|now| now >= bytes.into())
        };
        if bytes == ROOMY_SOCKET_BUFFER && roomy() {
            return Ok(());
        }
        // A daemon opens its socket in its own time after its interface went up.
        let began = Instant::now();
        loop {
            match setting.write(&bytes.into()) {
                Ok(()) => return Ok(()),
                Err(_) if began.elapsed() < DAEMON_WITHIN => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(e) => {
                    return Err(LabError::Setting {
                        host: host.to_owned(),
                        why: e.to_string(),
                    });
                }
            }
        }
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
