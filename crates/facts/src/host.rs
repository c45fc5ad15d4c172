//! Who and what the machine is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nix::sys::utsname::uname;

use crate::{Cpu, Host, Known, files, processes};

/// Bit of `CAP_NET_ADMIN` in the capability sets.
const CAP_NET_ADMIN: u32 = 12;
/// Where each core has a directory of its own.
const CORES: &str = "/sys/devices/system/cpu";

/// Names, kernel and rights.
pub(crate) fn host() -> Host {
    let uname = uname().ok();
    let text = |part: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        uname
            .as_ref()
            .map(|uname| part(uname).to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    Host {
        name: text(|uname| uname.nodename()),
        boot_id: boot_id(),
        netns: processes::own_namespace()
            .map_err(|error| format!("could not look at /proc/thread-self/ns/net: {error}"))
            .into(),
        kernel: text(|uname| uname.release()),
        kernel_build: text(|uname| uname.version()),
        kernel_signature: files::line("/proc/version_signature").ok(),
        architecture: text(|uname| uname.machine()),
        system: system(),
        privileged: privileged(),
    }
}

/// The kernel's name for the time since it started: `/proc/sys/kernel/random/boot_id`.
pub fn boot_id() -> Known<String> {
    files::line("/proc/sys/kernel/random/boot_id").into()
}

/// The processor; `online` is the number of cores the kernel gives time to.
pub(crate) fn cpu(online: usize) -> Cpu {
    let info = files::line("/proc/cpuinfo");
    Cpu {
        model: match &info {
            Ok(info) => field(info, &["model name", "Model", "cpu model", "uarch"])
                .map(str::to_owned)
                .ok_or("/proc/cpuinfo names no model")
                .into(),
            Err(reason) => Known::because(reason.clone()),
        },
        online,
        flags: info
            .as_deref()
            .ok()
            .and_then(|info| field(info, &["flags", "Features", "isa"]))
            .map(|flags| flags.split_ascii_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        governor: of_cores(Path::new(CORES), "scaling_governor"),
        frequency_driver: of_cores(Path::new(CORES), "scaling_driver"),
    }
}

/// First field of one of these names.
pub(crate) fn field<'a>(info: &'a str, names: &[&str]) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        names.contains(&name.trim()).then(|| value.trim())
    })
}

/// What a file of the cores' `cpufreq` says: one name when all have the same, else the different ones with commas.
fn of_cores(cores: &Path, file: &str) -> Known<String> {
    let names: BTreeSet<String> = fs::read_dir(cores)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| files::line(entry.path().join("cpufreq").join(file)).ok())
        .collect();
    if names.is_empty() {
        return Known::because(format!("no core has {CORES}/cpu*/cpufreq/{file}"));
    }
    Known::Value(names.into_iter().collect::<Vec<_>>().join(","))
}

fn system() -> Known<String> {
    match files::line("/etc/os-release") {
        Ok(text) => text
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
            .map(|name| name.trim_matches(['"', '\'']).to_owned())
            .ok_or("/etc/os-release has no PRETTY_NAME")
            .into(),
        Err(reason) => Known::because(reason),
    }
}

fn privileged() -> bool {
    if nix::unistd::geteuid().is_root() {
        return true;
    }
    files::text("/proc/thread-self/status").is_ok_and(|status| has_net_admin(&status))
}

pub(crate) fn has_net_admin(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set >> CAP_NET_ADMIN & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_a_kernel() {
        let host = host();
        assert!(!host.kernel.is_empty() && !host.architecture.is_empty());
        assert!(host.kernel_build.starts_with('#'), "{}", host.kernel_build);
        assert!(host.boot_id.value().is_some_and(|id| id.len() == 36));
        assert!(host.netns.value().is_some());
    }

    #[test]
    fn what_all_cores_have_is_said_once() {
        let root = std::env::temp_dir().join(format!("ws-cores-{}", std::process::id()));
        for (core, driver) in [
            ("cpu0", "intel_pstate\n"),
            ("cpu1", "intel_pstate\n"),
            ("cpu2", "acpi-cpufreq\n"),
        ] {
            let directory = root.join(core).join("cpufreq");
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("scaling_driver"), driver).unwrap();
        }
        let drivers = of_cores(&root, "scaling_driver");
        let governors = of_cores(&root, "scaling_governor");
        let _ = fs::remove_dir_all(&root);
        assert_eq!(
            drivers.value().map(String::as_str),
            Some("acpi-cpufreq,intel_pstate")
        );
        assert_eq!(governors.value(), None);
    }

    #[test]
    fn capabilities_are_read_from_the_effective_set() {
        assert!(has_net_admin("CapPrm:\t0\nCapEff:\t0000000000001000\n"));
        assert!(!has_net_admin("CapEff:\t0000000000000800\n"));
        assert!(!has_net_admin(""));
    }
}
