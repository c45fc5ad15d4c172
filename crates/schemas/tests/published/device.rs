//! What `wirespeed-device --statistics` prints. The device builds its document from counters, without types of its shape; that
//! these are true to it is tested where the device runs (`crates/device/tests/daemon`).

#![expect(dead_code, reason = "only their shapes are of use here")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use wirespeed_report::Schema;

/// A running device, what it has done since its start, and how it stands.
#[derive(JsonSchema)]
pub(crate) struct DeviceDocument {
    /// `wirespeed.device`.
    schema: Schema,
    /// Version of the program.
    version: String,
    /// Interface name.
    interface: String,
    /// Interface MTU in bytes.
    mtu: u32,
    /// Is the interface up?
    up: bool,
    /// Seconds since its start.
    uptime: f64,
    /// Who runs the steps.
    engine: Engine,
    /// Workers that share the traffic; `workers` tells of other threads, too.
    worker_count: usize,
    /// Is each worker bound to a core?
    pinned: bool,
    /// Does each worker send from a UDP port of its own?
    spread: bool,
    /// UDP port; 0 = none yet.
    listen_port: u16,
    /// Its threads.
    workers: Vec<Worker>,
    /// Every offload the device knows.
    offloads: Vec<OffloadReport>,
    /// Packets and datagrams dropped since the start, by reason.
    drops: BTreeMap<String, u64>,
    /// What stands between an intruder and the machine.
    sandbox: Vec<LayerReport>,
    /// Requests to the control socket.
    uapi: Uapi,
    /// What was logged; null = nothing is.
    log: Option<Log>,
    /// The first 1,000.
    peers: Vec<Peer>,
    /// How many more there are.
    peers_left_out: usize,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Engine {
    Inline,
    Pipeline,
}

/// A thread; counts since its start.
#[derive(JsonSchema)]
struct Worker {
    name: String,
    /// Its number in `/proc/PID/task`; null before it runs.
    thread: Option<u32>,
    /// The core it is bound to.
    core: Option<usize>,
    /// UDP port it sends from.
    port: Option<u16>,
    /// How often it had nothing to do.
    waits: u64,
    /// From the TUN device into the tunnel.
    sent: Flow,
    /// From the tunnel to the TUN device.
    received: Flow,
}

/// One direction of a worker; counts since its start.
#[derive(JsonSchema)]
struct Flow {
    /// Inner packets.
    packets: u64,
    /// Their bytes.
    bytes: u64,
    /// Outer datagrams.
    datagrams: u64,
    /// Bytes of their payload.
    datagram_bytes: u64,
    /// Calls of the kernel that moved them.
    system_calls: u64,
    /// Batches of inner packets.
    batches: u64,
    /// How many batches had 1, 2 to 3, 4 to 7, … and 128 or more packets.
    batch_sizes: [u64; 8],
}

/// One offload of the kernel's.
#[derive(JsonSchema)]
struct OffloadReport {
    /// `udp-gso`.
    offload: String,
    state: OffloadState,
    /// Why it isn't on, or what its last error was.
    reason: Option<String>,
    /// How often it failed.
    errors: u64,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum OffloadState {
    /// In use.
    On,
    /// The kernel hasn't it, or the test at the start found it broken.
    Unsupported,
    /// Switched off by an option.
    Disabled,
    /// It worked, then it failed, and is off since then.
    Degraded,
}

#[derive(JsonSchema)]
struct LayerReport {
    /// `seccomp`.
    layer: String,
    /// Does it stand?
    on: bool,
    /// Why not, or how far.
    note: Option<String>,
}

#[derive(JsonSchema)]
struct Uapi {
    gets: u64,
    sets: u64,
    /// Requests that failed, by reason.
    failures: BTreeMap<String, u64>,
    connections: Connections,
}

#[derive(JsonSchema)]
struct Connections {
    accepted: u64,
    refused: u64,
}

#[derive(JsonSchema)]
struct Log {
    level: Level,
    /// Errors logged.
    errors: u64,
    /// Warnings logged.
    warnings: u64,
    /// Lines that could not be written.
    lost: u64,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(JsonSchema)]
struct Peer {
    /// Base64.
    public_key: String,
    /// Address and port it is sent to.
    endpoint: Option<String>,
    /// The address it is answered from.
    source: Option<String>,
    received_bytes: u64,
    sent_bytes: u64,
    /// Seconds since the Unix epoch; null = never.
    last_handshake: Option<f64>,
}
