//! Receive buffer of a userspace tunnel's UDP sockets, changed in the running daemon.
//!
//! The daemon is the process that holds the tunnel's TUN device; its port comes from its UAPI socket. A
//! duplicate of each of its UDP sockets on that port is taken with `pidfd_getfd(2)`, and `SO_RCVBUFFORCE`
//! set on it: the duplicate is the same socket, so the change is live, concerns that socket and no other,
//! and needs no restart.
//!
//! Value: bytes as `getsockopt(SO_RCVBUF)` reports them (the kernel doubles what it is given), a number when
//! all sockets have the same, else an object from the local address to bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_recv_buffer_size_force, socket_recv_buffer_size, socket_type,
};
use rustix::net::{SocketType, getsockname};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use wirespeed_words::say;

use crate::link::{check_name, link};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

/// Largest value `SO_RCVBUFFORCE` takes, doubled by the kernel within an `int`.
const LARGEST: u64 = i32::MAX as u64 - 1;
const UAPI_DIRECTORIES: [&str; 2] = ["/var/run/wireguard", "/run/wireguard"];
const UAPI_ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// A device with ten thousand peers answers about 5 MB.
const UAPI_LIMIT: u64 = 64 << 20;

pub(crate) fn read(interface: &str) -> Result<Value, SettingError> {
    let buffers = sockets(interface)?
        .into_iter()
        .map(|socket| Ok((socket.local.to_string(), socket.receive_buffer()?)))
        .collect::<Result<BTreeMap<_, _>, SettingError>>()?;
    Ok(shape(buffers))
}

pub(crate) fn write(interface: &str, value: &Value) -> Result<(), SettingError> {
    let wanted = Wanted::parse(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(interface),
        value: value.to_string(),
        expected: "bytes as getsockopt(SO_RCVBUF) reports them: an even number from 2304 to 2147483646, or an object from local address to such a number",
    })?;
    for socket in sockets(interface)? {
        if let Some(bytes) = wanted.of(&socket.local.to_string()) {
            socket.set_receive_buffer(interface, bytes)?;
        }
    }
    Ok(())
}

/// Puts every socket back that still has a value of `ours`. Says what was found where something else was.
pub(crate) fn restore(
    interface: &str,
    before: &Value,
    ours: &[Value],
) -> Result<Vec<String>, SettingError> {
    let before_of = Wanted::parse(before);
    let ours: Vec<Wanted> = ours.iter().filter_map(Wanted::parse).collect();
    let mut changed_by_others = Vec::new();
    for socket in sockets(interface)? {
        let name = socket.local.to_string();
        let Some(before) = before_of.as_ref().and_then(|before| before.of(&name)) else {
            continue;
        };
        let now = socket.receive_buffer()?;
        if now == before {
            continue;
        }
        if ours.iter().any(|ours| ours.of(&name) == Some(now)) {
            socket.set_receive_buffer(interface, before)?;
        } else {
            changed_by_others.push(format!("{name}: {now}"));
        }
    }
    Ok(changed_by_others)
}

pub(crate) fn shell(interface: &str, value: &Value) -> Vec<String> {
    let (Ok(()), Some(bytes)) = (check_name(interface), value.as_u64()) else {
        return Vec::new();
    };
    let interface = shell_word(interface);
    vec![
        "# by hand only host-wide and with a restart of the daemon (wirespeed changes the one running socket):".to_owned(),
        format!("sysctl -w net.core.rmem_max={bytes}"),
        format!("sysctl -w net.core.rmem_default={bytes}"),
        format!("wg-quick down {interface} && wg-quick up {interface}"),
    ]
}

pub(crate) fn describe(interface: &str) -> String {
    say!("settings-socket-receive-buffer", interface = interface)
}

pub(crate) fn persistence(_interface: &str, value: &Value) -> String {
    say!(
        "settings-socket-receive-buffer-persistence",
        value = value.to_string()
    )
}

struct TunnelSocket {
    local: SocketAddr,
    duplicate: OwnedFd,
}

impl TunnelSocket {
    fn receive_buffer(&self) -> Result<u64, SettingError> {
        socket_recv_buffer_size(&self.duplicate)
            .map(|bytes| bytes as u64)
            .map_err(|source| {
                SettingError::system(format!("reading SO_RCVBUF of {}", self.local), source)
            })
    }

    fn set_receive_buffer(&self, interface: &str, bytes: u64) -> Result<(), SettingError> {
        set_socket_recv_buffer_size_force(&self.duplicate, bytes as usize / 2).map_err(
            |source| {
                SettingError::system(
                    format!("setting SO_RCVBUFFORCE of {} to {bytes}", self.local),
                    source,
                )
            },
        )?;
        let got = self.receive_buffer()?;
        if got == bytes {
            Ok(())
        } else {
            Err(SettingError::NotTaken {
                setting: format!("{} ({})", describe(interface), self.local),
                wanted: bytes.to_string(),
                got: got.to_string(),
            })
        }
    }
}

/// Bytes for all sockets, or by local address.
enum Wanted {
    All(u64),
    Each(BTreeMap<String, u64>),
}

impl Wanted {
    fn parse(value: &Value) -> Option<Self> {
        let bytes = |value: &Value| {
            value
                .as_u64()
                .filter(|bytes| (2304..=LARGEST).contains(bytes) && bytes % 2 == 0)
        };
        match value {
            Value::Number(_) => bytes(value).map(Self::All),
            Value::Object(each) => each
                .iter()
                .map(|(local, value)| Some((local.clone(), bytes(value)?)))
                .collect::<Option<_>>()
                .map(Self::Each),
            _ => None,
        }
    }

    fn of(&self, local: &str) -> Option<u64> {
        match self {
            Self::All(bytes) => Some(*bytes),
            Self::Each(each) => each.get(local).copied(),
        }
    }
}

fn shape(buffers: BTreeMap<String, u64>) -> Value {
    let mut values: Vec<u64> = buffers.values().copied().collect();
    values.dedup();
    match values[..] {
        [one] => one.into(),
        _ => buffers
            .into_iter()
            .map(|(local, bytes)| (local, Value::from(bytes)))
            .collect(),
    }
}

/// Duplicates of the daemon's UDP sockets on the tunnel's port.
fn sockets(interface: &str) -> Result<Vec<TunnelSocket>, SettingError> {
    if link(interface)?.kind.as_deref() == Some("wireguard") {
        return Err(SettingError::Refused {
            setting: describe(interface),
            why: "it is a kernel WireGuard: its encap handler takes each packet before the socket's queue \
                  (drivers/net/wireguard/socket.c), so no buffer of the socket is ever used"
                .to_owned(),
        });
    }
    let daemon = daemon(interface)?;
    let port = listen_port(interface)?;
    let pidfd = Pid::from_raw(daemon)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .map_err(|source| {
            SettingError::system(
                format!("opening process {daemon}, the daemon of {interface}"),
                source,
            )
        })?;
    let mut sockets = Vec::new();
    for fd in descriptors(daemon, |target| target.starts_with("socket:["))? {
        // A descriptor may be closed meanwhile; what matters is whether one is left at the end.
        let Ok(duplicate) = pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()) else {
            continue;
        };
        let datagram = socket_type(&duplicate).is_ok_and(|kind| kind == SocketType::DGRAM);
        if let (true, Ok(local)) = (datagram, getsockname(&duplicate))
            && let Ok(local) = SocketAddr::try_from(local)
            && local.port() == port
        {
            sockets.push(TunnelSocket { local, duplicate });
        }
    }
    if sockets.is_empty() {
        return Err(SettingError::NotFound {
            what: format!(
                "a UDP socket on port {port} in process {daemon}, the daemon of {interface}"
            ),
            hint: "is the interface up, and do you run as root? (`ss -ulpn`)".to_owned(),
        });
    }
    Ok(sockets)
}

/// The process that holds the TUN device of this name, in this network namespace before any other
/// (a device may have been moved here from the namespace where its daemon lives).
fn daemon(interface: &str) -> Result<i32, SettingError> {
    let own_namespace = fs::read_link("/proc/thread-self/ns/net").ok();
    let mut elsewhere = None;
    let processes =
        fs::read_dir("/proc").map_err(|source| SettingError::system("listing /proc", source))?;
    for process in processes.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if !holds_tun(pid, interface) {
            continue;
        }
        if fs::read_link(format!("/proc/{pid}/ns/net")).ok() == own_namespace {
            return Ok(pid);
        }
        elsewhere = Some(pid);
    }
    elsewhere.ok_or_else(|| SettingError::NotFound {
        what: format!("a process that carries {interface} (holds /dev/net/tun for it)"),
        hint: "this needs a running userspace WireGuard, seen from the same process namespace, as root".to_owned(),
    })
}

fn holds_tun(pid: i32, interface: &str) -> bool {
    let Ok(found) = descriptors(pid, |target| target.ends_with("/net/tun")) else {
        return false;
    };
    found.into_iter().any(|fd| {
        fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).is_ok_and(|info| {
            info.lines().any(|line| {
                line.strip_prefix("iff:")
                    .is_some_and(|name| name.trim() == interface)
            })
        })
    })
}

fn descriptors(pid: i32, wanted: impl Fn(&str) -> bool) -> Result<Vec<i32>, SettingError> {
    let directory = format!("/proc/{pid}/fd");
    let entries = fs::read_dir(&directory)
        .map_err(|source| SettingError::system(format!("listing {directory}"), source))?;
    Ok(entries
        .flatten()
        .filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|target| target.to_str().is_some_and(&wanted))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// Asks the daemon's UAPI socket for the port it listens on.
fn listen_port(interface: &str) -> Result<u16, SettingError> {
    check_name(interface)?;
    let path = UAPI_DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(format!("{interface}.sock")))
        .find(|path| path.exists())
        .ok_or_else(|| SettingError::NotFound {
            what: format!("the UAPI socket /var/run/wireguard/{interface}.sock"),
            hint: "is it a WireGuard interface, and is its daemon running?".to_owned(),
        })?;
    ask(&path)
        .map_err(|source| {
            SettingError::system(format!("asking {} for its port", path.display()), source)
        })?
        .ok_or_else(|| SettingError::NotFound {
            what: format!("a listening port of {interface}"),
            hint: "bring the interface up first".to_owned(),
        })
}

fn ask(path: &Path) -> io::Result<Option<u16>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(UAPI_ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(UAPI_ANSWER_WITHIN))?;
    stream.write_all(b"get=1\n\n")?;
    let mut answer = Vec::new();
    let mut chunk = [0; 16384];
    while !answer.ends_with(b"\n\n") && (answer.len() as u64) < UAPI_LIMIT {
        match stream.read(&mut chunk)? {
            0 => break,
            length => answer.extend_from_slice(&chunk[..length]),
        }
        // The port is in the device's own lines, before the first peer.
        if let Some(port) = port(&answer) {
            return Ok(Some(port));
        }
    }
    Ok(port(&answer))
}

fn port(answer: &[u8]) -> Option<u16> {
    answer
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .find_map(|line| {
            std::str::from_utf8(line)
                .ok()?
                .strip_prefix("listen_port=")?
                .trim()
                .parse()
                .ok()
        })
        .filter(|&port| port != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_even_numbers_or_one_per_socket() {
        assert_eq!(
            Wanted::parse(&json!(8_388_608)).unwrap().of("x"),
            Some(8_388_608)
        );
        let each = Wanted::parse(&json!({"[::]:51820": 212_992})).unwrap();
        assert_eq!(each.of("[::]:51820"), Some(212_992));
        assert_eq!(each.of("0.0.0.0:51820"), None);
        for bad in [
            json!(null),
            json!(4097),
            json!(100),
            json!(1_u64 << 31),
            json!("1"),
            json!({"x": "y"}),
        ] {
            assert!(Wanted::parse(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn equal_buffers_are_one_number() {
        let same = BTreeMap::from([("a".to_owned(), 4608), ("b".to_owned(), 4608)]);
        assert_eq!(shape(same), json!(4608));
        let different = BTreeMap::from([("a".to_owned(), 4608), ("b".to_owned(), 8192)]);
        assert_eq!(shape(different), json!({"a": 4608, "b": 8192}));
    }

    #[test]
    fn the_port_is_read_from_whole_lines_only() {
        assert_eq!(
            port(b"private_key=00\nlisten_port=51820\nfwmark=0\n"),
            Some(51820)
        );
        assert_eq!(port(b"private_key=00\nlisten_port=518"), None);
        assert_eq!(port(b"errno=0\n\n"), None);
    }
}
