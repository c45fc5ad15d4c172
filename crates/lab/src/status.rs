//! What there is: the labs, their hosts, and running something on one of them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;

use serde::Serialize;
use wirespeed_words::say;

use crate::command::Runner;
use crate::{DelayMeans, Host, Lab, LabError, LabId, Scenario, emulator, netns, road, state};

/// A lab and how it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabStatus {
    /// What its file tells.
    pub lab: Lab,
    /// Its hosts as they are.
    pub hosts: Vec<HostStatus>,
    /// What is not as it should be, and what is other than the scenario says.
    pub notes: Vec<String>,
}

/// What there is to practise on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabList {
    /// The scenarios in the program.
    pub scenarios: Vec<Scenario>,
    /// Every lab on this machine, ready, being made, or left behind, but for those of another version of this program.
    pub labs: Vec<Lab>,
}

/// A host as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostStatus {
    /// Names and addresses.
    pub host: Host,
    /// Does its namespace exist?
    pub exists: bool,
    /// Names of the processes in it with their numbers: `wireguard-go (4711)`.
    pub processes: Vec<String>,
}

/// Every lab on this machine, ready, being made, or left behind, but for those of another version of this program.
pub fn list() -> Vec<Lab> {
    state::identifiers()
        .iter()
        .filter_map(state::read)
        .collect()
}

/// Labs that another version of this program made: their files can't be read, but by their identifiers they can be taken down.
pub fn of_another_version() -> Vec<LabId> {
    state::identifiers()
        .into_iter()
        .filter(|id| state::read(id).is_none() && state::life(id).is_some())
        .collect()
}

/// A lab by its identifier.
pub fn get(id: &LabId) -> Result<Lab, LabError> {
    state::read(id).ok_or_else(|| {
        let running: Vec<String> = list().iter().map(|lab| lab.id.to_string()).collect();
        LabError::NoSuchLab {
            id: id.to_string(),
            running: if running.is_empty() {
                say!("lab-none")
            } else {
                running.join(", ")
            },
        }
    })
}

/// A lab and how it is now.
pub fn status(id: &LabId) -> Result<LabStatus, LabError> {
    let lab = get(id)?;
    let mut notes = lab.notes.clone();
    if lab.left_behind() {
        notes.push(say!("lab-note-left-behind"));
    }
    let hosts: Vec<HostStatus> = lab.hosts.iter().map(host_status).collect();
    for host in &hosts {
        if !host.exists {
            notes.push(say!("lab-note-no-namespace", host = &host.host.name));
        }
    }
    let legs = lab.scenario.topology.legs();
    if lab.implementation.as_deref().is_some_and(|i| i != "kernel") {
        for number in legs.iter().flat_map(|leg| leg.interfaces) {
            if UnixStream::connect(id.uapi_socket(number)).is_err() {
                notes.push(say!(
                    "lab-note-silent-daemon",
                    interface = id.tunnel_interface(number)
                ));
            }
        }
    }
    if lab.delay == DelayMeans::Emulator {
        for leg in &legs {
            notes.extend(emulator_says(id, leg.road));
        }
    }
    Ok(LabStatus { lab, hosts, notes })
}

/// The last that the road emulator said of each of its devices; its lines count up.
fn emulator_says(id: &LabId, road: &str) -> Vec<String> {
    let mut text = Vec::new();
    let file = File::open(state::log_of(id, &road::emulator_log(road)));
    if let Ok(mut file) = file {
        let length = file.metadata().map_or(0, |meta| meta.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)));
        let _ = file.take(LOG_TAIL).read_to_end(&mut text);
    }
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8_lossy(&text)
        .lines()
        .filter(|l| *l != emulator::READY)
    {
        let device = line.split(':').next().unwrap_or_default();
        last.insert(device.to_owned(), format!("{road} emulator: {line}"));
    }
    last.into_values().collect()
}

/// As much of the emulator's words as is read, in bytes.
const LOG_TAIL: u64 = 4096;

fn host_status(host: &Host) -> HostStatus {
    let processes = netns::processes(&host.namespace)
        .into_iter()
        .filter_map(|pid| {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            // The kernel keeps 15 bytes of a name; the file that runs has all of it.
            let file = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let name = match file.file_name().and_then(OsStr::to_str) {
                Some(whole) if comm.len() > 15 && whole.starts_with(comm.trim()) => whole,
                _ => comm.trim(),
            };
            Some(format!("{name} ({pid})"))
        })
        .collect();
    HostStatus {
        host: host.clone(),
        exists: netns::path(&host.namespace).exists(),
        processes,
    }
}

/// Becomes a command on a host of a lab: this process, its input, output and signals are the command's from then on.
///
/// # Errors
/// It only returns when it could not.
pub fn exec(lab: &Lab, host: &str, command: &[String]) -> Result<Infallible, LabError> {
    let host = lab.host(host)?;
    let line: Vec<&str> = command.iter().map(String::as_str).collect();
    let why = Runner::new(&lab.id).in_host(&host.name, &line).exec();
    Err(LabError::Command {
        step: format!("on {}", host.name),
        command: command.join(" "),
        why: why.to_string(),
    })
}
