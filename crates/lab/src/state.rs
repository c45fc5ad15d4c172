//! What is known of a lab on disk. The file is written, and on disk, before anything is made: whatever becomes of the
//! maker, the next one can tell what may be there.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{Host, LabError, LabId, Scenario};

/// Where the files are. `/run` does not outlive a reboot, and neither do namespaces.
pub(crate) const DIRECTORY: &str = "/run/wirespeed/lab";

/// Numbers of a hub's tunnel interfaces.
const HUB_INTERFACES: [usize; 2] = [2, 3];

/// Format of the file.
const FORMAT: u32 = 1;

/// A lab as its file tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lab {
    /// Format of this file.
    #[serde(alias = "schema")]
    pub format: u32,
    /// Its identifier.
    pub id: LabId,
    /// How far it got.
    pub phase: Phase,
    /// The process that makes it (or made it).
    pub owner: Owner,
    /// Does it end with that process, also once it is ready?
    #[serde(default)]
    pub with_owner: bool,
    /// Seconds since the Unix epoch.
    pub created_at: f64,
    /// What was asked for.
    pub scenario: Scenario,
    /// The hosts, the road last.
    pub hosts: Vec<Host>,
    /// Who carries the tunnel, once that is known: `kernel`, `wirespeed`, `wireguard-go` or a path.
    pub implementation: Option<String>,
    /// What delays packets on the road.
    pub delay: DelayMeans,
    /// What is other than the scenario says, and why.
    pub notes: Vec<String>,
}

/// How far a lab got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Being made.
    Building,
    /// Ready.
    Up,
}

/// A process that can't be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Its start in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub started: u64,
}

/// Whose a lab is, and whether it still is. The file of another version of this program tells that much, too, though the
/// rest of it can't be read.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Life {
    phase: Phase,
    pub(crate) owner: Owner,
    #[serde(default)]
    with_owner: bool,
}

impl Life {
    /// See [`Lab::left_behind`].
    pub(crate) fn left_behind(self) -> bool {
        (self.phase == Phase::Building || self.with_owner) && !self.owner.alive()
    }

    /// Is another process just making it?
    pub(crate) fn in_the_making(self) -> bool {
        self.phase == Phase::Building && self.owner != Owner::this() && self.owner.alive()
    }
}

/// What delays packets on the road.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DelayMeans {
    /// There is no delay.
    #[default]
    None,
    /// The kernel's netem.
    Netem,
    /// The road emulator in user space.
    Emulator,
}

impl Owner {
    /// This process.
    pub(crate) fn this() -> Owner {
        let pid = std::process::id();
        Owner {
            pid,
            started: start_of(pid).unwrap_or(0),
        }
    }

    /// Does it still run?
    pub fn alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }
}

/// Start of a process in clock ticks since boot; `None` when there is no such process, or only its zombie.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if state == "Z" {
        None
    } else {
        fields.nth(18)?.parse().ok()
    }
}

impl Lab {
    pub(crate) fn new(id: &LabId, scenario: &Scenario) -> Lab {
        let legs = scenario.topology.legs();
        let ends = scenario.topology.ends();
        let hosts = scenario
            .topology
            .hosts()
            .iter()
            .map(|&name| {
                let end = ends.iter().position(|e| e.host == name);
                let on_road = legs
                    .iter()
                    .flat_map(|leg| leg.ends)
                    .find(|e| e.host == name);
                let site = ends.iter().filter_map(|e| e.site).find(|s| s.host == name);
                let is_hub = end.is_none() && on_road.is_some();
                Host {
                    name: name.to_owned(),
                    namespace: id.namespace(name),
                    tunnel_interface: end.map(|e| id.tunnel_interface(e)),
                    hub_interfaces: is_hub.then(|| HUB_INTERFACES.map(|n| id.tunnel_interface(n))),
                    road_address: on_road.map(|e| e.road_address),
                    tunnel_address: on_road.map(|e| e.tunnel_address),
                    site_address: site
                        .map(|s| s.host_address)
                        .or_else(|| end.and_then(|e| ends[e].site).map(|s| s.gateway_address)),
                }
            })
            .collect();
        Lab {
            format: FORMAT,
            id: id.clone(),
            phase: Phase::Building,
            owner: Owner::this(),
            with_owner: false,
            created_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |d| d.as_secs_f64()),
            scenario: scenario.clone(),
            hosts,
            implementation: None,
            delay: DelayMeans::None,
            notes: Vec::new(),
        }
    }

    /// Was it left behind by a process that is no more: half made, or one that was to end with it?
    pub fn left_behind(&self) -> bool {
        self.life().left_behind()
    }

    fn life(&self) -> Life {
        Life {
            phase: self.phase,
            owner: self.owner,
            with_owner: self.with_owner,
        }
    }

    /// A host by its name.
    pub fn host(&self, name: &str) -> Result<&Host, LabError> {
        self.hosts
            .iter()
            .find(|h| h.name == name)
            .ok_or_else(|| LabError::NoSuchHost {
                id: self.id.to_string(),
                host: name.to_owned(),
                known: self
                    .hosts
                    .iter()
                    .map(|h| h.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    /// The two ends of the tunnel, first (client, gw1) and second (server, gw2).
    pub fn ends(&self) -> [&Host; 2] {
        let mut ends = self.hosts.iter().filter(|h| h.tunnel_interface.is_some());
        match (ends.next(), ends.next()) {
            (Some(first), Some(second)) => [first, second],
            _ => unreachable!("every topology has two ends, and a file without them is not read"),
        }
    }

    /// The host between the ends, where there is one.
    pub fn hub(&self) -> Option<&Host> {
        self.hosts.iter().find(|h| h.hub_interfaces.is_some())
    }

    /// Every address of the lab.
    pub fn addresses(&self) -> Vec<Address> {
        let mut all = Vec::new();
        for host in &self.hosts {
            let of_host = [
                (Network::Road, host.road_address),
                (Network::Tunnel, host.tunnel_address),
                (Network::Site, host.site_address),
            ];
            for (network, address) in of_host {
                if let Some(address) = address {
                    all.push(Address {
                        host: host.name.clone(),
                        network,
                        address,
                    });
                }
            }
        }
        all
    }

    /// Takes the identifier: the file must not exist yet. It appears whole or not at all.
    pub(crate) fn create(&self) -> Result<(), LabError> {
        let draft = self.write_draft()?;
        let target = file_of(&self.id);
        let linked = fs::hard_link(&draft, &target);
        let _ = fs::remove_file(&draft);
        match linked {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                Err(LabError::Taken(self.id.to_string()))
            }
            other => other
                .map_err(LabError::file("create", &target))
                .and_then(|()| sync_directory()),
        }
    }

    /// Replaces the file.
    pub(crate) fn save(&self) -> Result<(), LabError> {
        let draft = self.write_draft()?;
        let target = file_of(&self.id);
        fs::rename(&draft, &target).map_err(LabError::file("replace", &target))?;
        sync_directory()
    }

    fn write_draft(&self) -> Result<PathBuf, LabError> {
        fs::create_dir_all(DIRECTORY).map_err(LabError::file("create", DIRECTORY))?;
        let draft = Path::new(DIRECTORY).join(format!("{}.draft-{}", self.id, std::process::id()));
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| LabError::file("write", &draft)(e.into()))?;
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&draft)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(LabError::file("write", &draft))?;
        Ok(draft)
    }
}

/// One address of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// Host within the lab.
    pub host: String,
    /// Which network it belongs to.
    pub network: Network,
    /// The address.
    pub address: std::net::Ipv4Addr,
}

/// The networks of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Outside the tunnel: the bare path.
    Road,
    /// Inside the tunnel.
    Tunnel,
    /// Behind a gateway.
    Site,
}

/// The file of a lab.
pub(crate) fn file_of(id: &LabId) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{id}.json"))
}

/// Where a lab's daemons write what they have to say.
pub(crate) fn log_of(id: &LabId, what: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{id}.{what}.log"))
}

/// Identifiers of all labs that have a file.
pub(crate) fn identifiers() -> Vec<LabId> {
    let mut ids: Vec<LabId> = fs::read_dir(DIRECTORY)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_suffix(".json")?
                .parse()
                .ok()
        })
        .collect();
    ids.sort();
    ids
}

/// Reads a lab's file; `None` when there is none or it is not one of ours.
pub(crate) fn read(id: &LabId) -> Option<Lab> {
    parse(&text_of(id)?, id)
}

/// Reads whose a lab is; `None` when there is none, or its file tells nothing.
pub(crate) fn life(id: &LabId) -> Option<Life> {
    serde_json::from_str(&text_of(id)?).ok()
}

fn text_of(id: &LabId) -> Option<String> {
    let mut text = String::new();
    File::open(file_of(id))
        .ok()?
        .take(1 << 20)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// What the file of the lab `id` says; `None` when it is not one of ours.
pub(crate) fn parse(text: &str, id: &LabId) -> Option<Lab> {
    let lab: Lab = serde_json::from_str(text).ok()?;
    let ends = lab
        .hosts
        .iter()
        .filter(|h| h.tunnel_interface.is_some())
        .count();
    (lab.format == FORMAT && lab.id == *id && ends == 2).then_some(lab)
}

/// Removes every file of a lab; the one that names it last.
pub(crate) fn remove_files(id: &LabId) -> Result<(), LabError> {
    let prefix = format!("{id}.");
    let own = format!("{id}.json");
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name
            .to_str()
            .is_some_and(|n| n.starts_with(&prefix) && n != own)
        {
            let _ = fs::remove_file(entry.path());
        }
    }
    let target = file_of(id);
    match fs::remove_file(&target) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(LabError::file("remove", target)(e)),
        _ => Ok(()),
    }
}

/// Removes drafts whose writer is gone.
pub(crate) fn remove_stale_drafts() {
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name
            .to_str()
            .and_then(|n| n.rsplit_once(".draft-"))
            .and_then(|(_, pid)| pid.parse().ok());
        if writer.is_some_and(|pid: u32| start_of(pid).is_none()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn sync_directory() -> Result<(), LabError> {
    File::open(DIRECTORY)
        .and_then(|d| d.sync_all())
        .map_err(LabError::file("write", DIRECTORY))
}

/// Holds off every other process that takes an identifier or removes what was left behind.
pub(crate) fn lock() -> Result<nix::fcntl::Flock<File>, LabError> {
    crate::host_sysctl::lock(&Path::new(DIRECTORY).join("lock"))
}
