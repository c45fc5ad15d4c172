//! Giving up every privilege that isn't needed any more, before the first packet of a stranger is read.
//!
//! In this order, each layer by itself, so that one the kernel hasn't doesn't cost the others:
//!
//! 1. **No core dumps**, nor reading of our memory by other programs of the same user: there are keys in it.
//! 2. **Capabilities**: all but `CAP_NET_ADMIN` (firewall mark, socket buffers) and `CAP_NET_BIND_SERVICE` (a port below 1024), both
//!    wanted when the port changes; out of the bounding set, too.
//! 3. **No new privileges** by executing a program.
//! 4. **Landlock**: no file can be opened, made or changed. What remains is removing our own sockets' files at the end.
//! 5. **seccomp**: only the system calls in [`system_calls`].
//!
//! Capabilities and Landlock belong to a thread and those it starts, so all this has to be done while there is one thread.

mod allocator;
mod filter;
mod system_calls;
mod trap;

use std::fmt;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::Serialize;

/// What is kept.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_BIND_SERVICE);

/// The newest Landlock whose rights we know; an older kernel's are used as far as they go.
const LANDLOCK: ABI = ABI::V6;

/// What stands between an intruder and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// See the module.
    NoDumps,
    /// See the module.
    Capabilities,
    /// See the module.
    NoNewPrivileges,
    /// See the module.
    Landlock,
    /// See the module.
    Seccomp,
}

/// Whether a layer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerReport {
    /// Which one.
    pub layer: Layer,
    /// It does.
    pub on: bool,
    /// Why not, or how far.
    pub note: Option<String>,
}

/// Gives up what isn't needed any more. Files in `folders` can still be removed. Nothing here fails the caller; the
/// report says what could be done, and what couldn't is logged.
pub fn enter(folders: &[PathBuf]) -> Vec<LayerReport> {
    allocator::settle();
    let threads = threads();
    if threads > 1 {
        log::warn!("sandbox: {threads} threads are running already, and keep their capabilities");
    }
    let reports: Vec<_> = [
        (Layer::NoDumps, no_dumps()),
        (Layer::Capabilities, drop_capabilities()),
        (Layer::NoNewPrivileges, no_new_privileges()),
        (Layer::Landlock, enter_landlock(folders)),
        (Layer::Seccomp, filter::install()),
    ]
    .into_iter()
    .map(|(layer, result)| LayerReport {
        layer,
        on: result.is_ok(),
        note: match result {
            Ok(note) => note,
            Err(reason) => Some(reason),
        },
    })
    .collect();
    for report in &reports {
        match (&report.note, report.on) {
            (None, _) => log::debug!("sandbox: {} on", report.layer),
            (Some(note), true) => log::debug!("sandbox: {} on, {note}", report.layer),
            (Some(why), false) => log::warn!("sandbox: {} off: {why}", report.layer),
        }
    }
    reports
}

/// The report of a device that keeps everything because a person wanted so.
pub fn none() -> Vec<LayerReport> {
    [
        Layer::NoDumps,
        Layer::Capabilities,
        Layer::NoNewPrivileges,
        Layer::Landlock,
        Layer::Seccomp,
    ]
    .map(|layer| LayerReport {
        layer,
        on: false,
        note: Some("switched off by an option".to_owned()),
    })
    .into()
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDumps => "no dumps",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no new privileges",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        })
    }
}

/// What a layer has to tell: how far it goes, or why it isn't there.
type Result = std::result::Result<Option<String>, String>;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

fn no_dumps() -> Result {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map(|()| None)
        .map_err(|error| error.to_string())
}

fn drop_capabilities() -> Result {
    let failed = |what: &'static str| move |error| format!("{what}: {error}");
    let bounding = shrink_bounding_set();
    rustix::thread::clear_ambient_capability_set().map_err(failed("the ambient set"))?;
    let held = rustix::thread::capabilities(None).map_err(failed("reading them"))?;
    let left = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: held.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, left).map_err(failed("dropping them"))?;
    let now = rustix::thread::capabilities(None).map_err(failed("reading them again"))?;
    if now != left {
        return Err("they are still there".to_owned());
    }
    Ok(bounding.err())
}

/// Only matters to programs we would execute, and we don't; so it isn't bad when this isn't permitted.
fn shrink_bounding_set() -> std::result::Result<(), String> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if KEPT.contains(one) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The kernel knows no more of them.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(format!("the bounding set stays: {error}")),
        }
    }
    Ok(())
}

fn no_new_privileges() -> Result {
    rustix::thread::set_no_new_privs(true)
        .map(|()| None)
        .map_err(|error| error.to_string())
}

fn enter_landlock(folders: &[PathBuf]) -> Result {
    let restricted = || {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)?
            .create()?;
        for folder in folders {
            let Ok(opened) = PathFd::new(folder) else {
                continue;
            };
            ruleset = ruleset.add_rule(PathBeneath::new(opened, AccessFs::RemoveFile))?;
        }
        ruleset.restrict_self()
    };
    let status = restricted().map_err(|error: landlock::RulesetError| error.to_string())?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(None),
        RulesetStatus::PartiallyEnforced => Ok(Some("as far as this kernel's goes".to_owned())),
        RulesetStatus::NotEnforced => Err("this kernel hasn't it".to_owned()),
    }
}

#[cfg(test)]
mod tests;
