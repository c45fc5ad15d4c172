//! What `wirespeed-device` tells of itself beyond the standard interface: engine, workers, drops by reason, offloads.
//! One JSON document per connection to a socket that only answers (docs/device.md has its shape).

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};

use crate::{Known, processes};

/// Where the devices put their sockets; one directory for all network namespaces of a machine.
const SOCKET_DIRECTORY: &str = "/run/wirespeed";
/// Longest wait for one whole document.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// Most bytes of one document.
const SIZE_LIMIT: u64 = 1 << 20;
/// More workers, offloads or reasons than this are no device's.
const LONGEST_LIST: usize = 1024;
/// More characters than this are no name and no reason.
const LONGEST_TEXT: usize = 300;

/// What a device tells of itself. What it leaves out is empty or `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DeviceStatistics {
    /// Version of the program.
    pub version: String,
    /// Who runs the steps: `inline` or `pipeline`.
    pub engine: String,
    /// Workers that share the traffic; `workers` tells of other threads, too.
    pub worker_count: Option<u32>,
    /// Does each worker send from a UDP port of its own?
    pub spread: bool,
    /// Its threads.
    pub workers: Vec<DeviceWorker>,
    /// Every offload the device knows, and whether it is in use.
    pub offloads: Vec<DeviceOffload>,
    /// Packets and datagrams dropped since the start, by reason (`socket-full`, `source-not-allowed`).
    pub drops: BTreeMap<String, u64>,
}

/// A thread of a device; counts since its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DeviceWorker {
    /// Name of the thread.
    pub name: String,
    /// Its number, as the daemon sees it.
    pub thread: Option<u32>,
    /// The core it is pinned to.
    pub core: Option<u32>,
    /// UDP port it sends from.
    pub port: Option<u16>,
    /// Processor time in seconds, user and system, as the kernel tells of the thread.
    pub cpu_seconds: Option<f64>,
    /// From the TUN device into the tunnel.
    pub sent: DeviceFlow,
    /// From the tunnel to the TUN device.
    pub received: DeviceFlow,
}

/// One direction of a worker; counts since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DeviceFlow {
    /// Inner packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Calls of the kernel that moved them.
    pub system_calls: u64,
}

/// One offload of the kernel's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DeviceOffload {
    /// Its name (`udp-gso`).
    pub offload: String,
    /// `on`; or why it is not in use: `unsupported` here, `disabled` by the user, `degraded` after errors.
    pub state: String,
    /// What the kernel said when it was given up.
    pub reason: Option<String>,
    /// How often it failed.
    pub errors: u64,
}

/// What a device counted, at one moment or between two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceCounters {
    /// Dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// By name of the worker.
    pub workers: BTreeMap<String, WorkerCounters>,
}

/// What one worker did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerCounters {
    /// Processor time in seconds, where it is known.
    pub cpu: Option<f64>,
    /// Into the tunnel.
    pub sent: DeviceFlow,
    /// Out of the tunnel.
    pub received: DeviceFlow,
}

/// Why a device's statistics could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatisticsError {
    /// Connecting or reading failed.
    #[error("could not read the statistics socket {socket}: {source} (does the daemon still run?)")]
    Exchange { socket: String, source: io::Error },
    /// No whole document in time.
    #[error("the daemon behind {socket} gave no whole document within 1 s")]
    TimedOut { socket: String },
    /// An endless document.
    #[error("the daemon behind {socket} told more than 1 MiB")]
    TooLong { socket: String },
    /// Not statistics.
    #[error("what the daemon told is no device's statistics: {0}")]
    Rubbish(String),
}

/// The statistics of a device; `None` when it has no socket for them, as every daemon but ours, or only one that a daemon
/// left behind when it was killed.
pub(crate) fn read(interface: &str) -> Option<Known<DeviceStatistics>> {
    let path = Path::new(SOCKET_DIRECTORY).join(format!("{interface}.stats"));
    if !path.exists() {
        return None;
    }
    match read_socket(&path) {
        Err(StatisticsError::Exchange { source, .. })
            if source.kind() == io::ErrorKind::ConnectionRefused =>
        {
            None
        }
        other => Some(other.into()),
    }
}

fn read_socket(path: &Path) -> Result<DeviceStatistics, StatisticsError> {
    let socket = path.display().to_string();
    let deadline = Instant::now() + TIME_LIMIT;
    let failed = |source: io::Error| {
        let late = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        if late.contains(&source.kind()) {
            StatisticsError::TimedOut {
                socket: socket.clone(),
            }
        } else {
            StatisticsError::Exchange {
                socket: socket.clone(),
                source,
            }
        }
    };
    let mut stream = open(path).map_err(failed)?;
    let mut document = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(StatisticsError::TimedOut { socket });
        }
        stream.set_read_timeout(Some(left)).map_err(failed)?;
        let mut chunk = [0; 16 << 10];
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => document.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
        if document.len() as u64 > SIZE_LIMIT {
            return Err(StatisticsError::TooLong { socket });
        }
    }
    let mut statistics = parse(&document)?;
    if let Some(pid) = listener(&stream) {
        for worker in &mut statistics.workers {
            worker.cpu_seconds = worker
                .thread
                .and_then(|thread| processes::thread_seconds(pid, thread));
        }
    }
    Ok(statistics)
}

/// The daemon, as far as the kernel tells; `None` when it can't be seen from this process namespace.
fn listener(stream: &UnixStream) -> Option<u32> {
    let credentials = getsockopt(stream, PeerCredentials).ok()?;
    u32::try_from(credentials.pid())
        .ok()
        .filter(|pid| *pid != 0)
}

/// Connects within the time limit, also to a daemon that accepts nobody any more.
fn open(path: &Path) -> io::Result<UnixStream> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_timeout(&socket, Timeout::Send, Some(TIME_LIMIT))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Reads a device's document; what this program does not know in it is skipped.
pub(crate) fn parse(document: &[u8]) -> Result<DeviceStatistics, StatisticsError> {
    let mut statistics: DeviceStatistics = serde_json::from_slice(document)
        .map_err(|error| StatisticsError::Rubbish(shortened(&error.to_string())))?;
    let lists = [
        statistics.workers.len(),
        statistics.offloads.len(),
        statistics.drops.len(),
    ];
    if lists.into_iter().any(|length| length > LONGEST_LIST) {
        return Err(StatisticsError::Rubbish(format!(
            "a list in it is longer than {LONGEST_LIST}"
        )));
    }
    statistics.tidy();
    Ok(statistics)
}

impl DeviceStatistics {
    /// What it counted so far.
    pub(crate) fn counters(&self) -> DeviceCounters {
        DeviceCounters {
            drops: self.drops.clone(),
            workers: self
                .workers
                .iter()
                .map(|worker| {
                    let counters = WorkerCounters {
                        cpu: worker.cpu_seconds,
                        sent: worker.sent,
                        received: worker.received,
                    };
                    (worker.name.clone(), counters)
                })
                .collect(),
        }
    }

    /// Is the offload of this name known to be out of use, and not because somebody wanted that?
    pub fn without(&self, name: &str) -> Option<&DeviceOffload> {
        self.offloads.iter().find(|offload| {
            offload.offload == name && ["unsupported", "degraded"].contains(&&*offload.state)
        })
    }

    fn tidy(&mut self) {
        let texts = [&mut self.version, &mut self.engine]
            .into_iter()
            .chain(self.workers.iter_mut().map(|worker| &mut worker.name))
            .chain(self.offloads.iter_mut().flat_map(|offload| {
                [&mut offload.offload, &mut offload.state]
                    .into_iter()
                    .chain(&mut offload.reason)
            }));
        for text in texts {
            *text = shortened(text);
        }
        self.drops = std::mem::take(&mut self.drops)
            .into_iter()
            .map(|(reason, count)| (shortened(&reason), count))
            .collect();
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

impl DeviceCounters {
    /// What moved since `earlier`; `None` when something went backwards: the daemon was started anew.
    pub(crate) fn since(&self, earlier: &Self) -> Option<Self> {
        let mut delta = Self::default();
        for (reason, later) in &self.drops {
            // A reason that appeared was zero before.
            let moved =
                later.checked_sub(earlier.drops.get(reason).copied().unwrap_or_default())?;
            if moved > 0 {
                delta.drops.insert(reason.clone(), moved);
            }
        }
        for (name, later) in &self.workers {
            let before = earlier.workers.get(name).copied().unwrap_or_default();
            let moved = later.since(&before)?;
            if moved.cpu.unwrap_or_default() > 0.0 || moved.counted() {
                delta.workers.insert(name.clone(), moved);
            }
        }
        Some(delta)
    }
}

impl WorkerCounters {
    fn counted(&self) -> bool {
        [self.sent, self.received] != [DeviceFlow::default(); 2]
    }

    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            cpu: match (self.cpu, earlier.cpu) {
                (Some(later), Some(earlier)) => {
                    Some(Some(later - earlier).filter(|cpu| *cpu >= 0.0 && cpu.is_finite())?)
                }
                _ => None,
            },
            sent: self.sent.since(earlier.sent)?,
            received: self.received.since(earlier.received)?,
        })
    }
}

impl DeviceFlow {
    fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            packets: self.packets.checked_sub(earlier.packets)?,
            bytes: self.bytes.checked_sub(earlier.bytes)?,
            system_calls: self.system_calls.checked_sub(earlier.system_calls)?,
        })
    }

    /// Inner packets per call of the kernel: how well they are gathered; `None` without any call.
    pub fn batch(&self) -> Option<f64> {
        (self.system_calls > 0).then(|| self.packets as f64 / self.system_calls as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    const DOCUMENT: &str = r#"{
        "schema": {"name": "wirespeed.device", "version": 1}, "version": "0.1.0", "engine": "inline", "spread": false,
        "offloads": [{"offload": "udp-gso", "state": "degraded", "reason": "EIO", "errors": 3}, {"offload": "udp-gro", "state": "on"}],
        "drops": {"source-not-allowed": 7},
        "workers": [{"name": "worker 0", "port": 51820, "sent": {"packets": 90, "system_calls": 2}, "new": [1]}],
        "peers": [{"public_key": "k"}]
    }"#;

    #[test]
    fn what_is_not_known_is_skipped_and_what_is_left_out_is_empty() {
        let statistics = parse(DOCUMENT.as_bytes()).unwrap();
        assert_eq!(statistics.engine, "inline");
        assert_eq!(statistics.drops["source-not-allowed"], 7);
        assert_eq!(statistics.workers[0].sent.batch(), Some(45.0));
        assert_eq!(statistics.workers[0].received, DeviceFlow::default());
        assert_eq!(statistics.without("udp-gso").unwrap().errors, 3);
        assert_eq!(statistics.without("udp-gro"), None);
        assert_eq!(parse(b"{}").unwrap(), DeviceStatistics::default());
        assert!(parse(b"[").is_err());
        assert!(parse(br#"{"drops": {"a": -1}}"#).is_err());
    }

    #[test]
    fn a_document_cannot_grow_what_is_kept() {
        let long = format!(r#"{{"engine": "{}"}}"#, "x".repeat(100_000));
        assert_eq!(parse(long.as_bytes()).unwrap().engine.len(), LONGEST_TEXT);
        let many = format!(r#"{{"workers": [{}{{}}]}}"#, "{},".repeat(LONGEST_LIST));
        assert!(parse(many.as_bytes()).is_err());
    }

    #[test]
    fn only_what_moved_is_in_a_delta_and_a_restart_has_none() {
        let earlier = parse(DOCUMENT.as_bytes()).unwrap().counters();
        let mut later = earlier.clone();
        assert_eq!(later.since(&earlier), Some(DeviceCounters::default()));
        later.drops.insert("no-session".to_owned(), 2);
        later.workers.get_mut("worker 0").unwrap().sent.packets += 5;
        let delta = later.since(&earlier).unwrap();
        assert_eq!(delta.drops, BTreeMap::from([("no-session".to_owned(), 2)]));
        assert_eq!(delta.workers["worker 0"].sent.packets, 5);
        assert_eq!(earlier.since(&later), None);
    }

    /// Answers one connection.
    fn serve(answer: impl FnOnce(UnixStream) + Send + 'static) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wg0.stats");
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || answer(listener.accept().unwrap().0));
        (directory, path)
    }

    #[test]
    fn a_socket_is_read_to_its_end() {
        let this_thread = rustix::thread::gettid().as_raw_pid();
        let document =
            DOCUMENT.replace("\"port\"", &format!("\"thread\": {this_thread}, \"port\""));
        let (_directory, path) = serve(move |mut stream| {
            for part in document.as_bytes().chunks(100) {
                stream.write_all(part).unwrap();
            }
        });
        let statistics = read_socket(&path).unwrap();
        assert_eq!(statistics.version, "0.1.0");
        assert!(
            statistics.workers[0]
                .cpu_seconds
                .is_some_and(|seconds| seconds >= 0.0)
        );
        assert!(read("no-such-interface").is_none());
    }

    #[test]
    fn an_endless_or_silent_daemon_is_given_up() {
        let (_directory, path) = serve(
            |mut stream| {
                while stream.write_all(&[b' '; 4096]).is_ok() {}
            },
        );
        assert!(matches!(
            read_socket(&path),
            Err(StatisticsError::TooLong { .. })
        ));
        let (_directory, path) = serve(|stream| {
            thread::sleep(Duration::from_secs(3));
            drop(stream);
        });
        let begun = Instant::now();
        assert!(matches!(
            read_socket(&path),
            Err(StatisticsError::TimedOut { .. })
        ));
        assert!(begun.elapsed() < Duration::from_secs(2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_statistics_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
