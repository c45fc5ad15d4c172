//! What the machine is made of, as far as it matters for packets.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Known, ProcessTime, core_list, files};

/// What the machine is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Hardware {
    /// The hypervisor the machine runs under (`kvm`, `vmware`, `xen`, `amazon`, … or `unnamed`); `None` = none can be
    /// seen.
    pub hypervisor: Known<Option<String>>,
    /// Maker and product as the firmware names them (`Amazon EC2 c6i.large`).
    pub product: Known<String>,
    /// The NUMA nodes that have cores. One node is no NUMA.
    pub numa_nodes: Known<Vec<NumaNode>>,
    /// Frequencies of the cores at the moment of the snapshot.
    pub frequencies: Known<Frequencies>,
    /// Does `irqbalance` run?
    pub irqbalance: Known<bool>,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its cores by number.
    pub cores: Vec<u32>,
}

/// Frequencies of the cores in Hz.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frequencies {
    /// Now, per online core.
    pub current: Vec<u64>,
    /// The fastest core's highest frequency that the hardware allows (`cpuinfo_max_freq`), boost included.
    pub maximum: Option<u64>,
    /// The highest that the administrator or the firmware allows now (`scaling_max_freq`).
    pub allowed: Option<u64>,
}

/// Makers or products of virtual machines, as their firmware names them, to the hypervisor's name.
const HYPERVISORS: [(&str, &str); 14] = [
    ("Amazon EC2", "amazon"),
    ("Apple Virtualization", "apple"),
    ("BHYVE", "bhyve"),
    ("Bochs", "bochs"),
    ("Google Compute Engine", "google"),
    ("Hyper-V", "microsoft"),
    ("Microsoft Corporation Virtual Machine", "microsoft"),
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("Parallels", "parallels"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
];

/// Everything; `flags` are the processor's, `processes` those that run.
pub(crate) fn read(flags: &[String], processes: &BTreeMap<String, ProcessTime>) -> Hardware {
    let product = product();
    Hardware {
        hypervisor: hypervisor(flags, product.value().map(String::as_str)),
        product,
        numa_nodes: numa_nodes(),
        frequencies: frequencies(),
        irqbalance: if processes.is_empty() {
            Known::because("no process could be seen")
        } else {
            Known::Value(
                processes
                    .values()
                    .any(|process| process.program == "irqbalance"),
            )
        },
    }
}

/// Frequencies of the cores now. For sampling during a load, too: takes less than a millisecond, on kernels before
/// 5.19 up to 20 ms.
pub fn frequencies() -> Known<Frequencies> {
    // One reading for all cores: each core's own file can take 10 ms.
    let info = files::text("/proc/cpuinfo").unwrap_or_default();
    let mut current = current_of(&info);
    let policies: Vec<_> = fs::read_dir("/sys/devices/system/cpu/cpufreq")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("scaling_max_freq").exists())
        .collect();
    let kilohertz = |path: &Path, name: &str| -> Option<u64> {
        let kilohertz: u64 = files::line(path.join(name)).ok()?.parse().ok()?;
        kilohertz.checked_mul(1000)
    };
    let highest = |name: &str| {
        policies
            .iter()
            .filter_map(|policy| kilohertz(policy, name))
            .max()
    };
    if current.is_empty() {
        // Processors whose /proc/cpuinfo is silent tell it at once; a policy is a cluster of cores.
        let mut by_core = BTreeMap::new();
        for policy in &policies {
            let cores = files::text(policy.join("affected_cpus")).unwrap_or_default();
            if let Some(hertz) = kilohertz(policy, "scaling_cur_freq") {
                by_core.extend(
                    cores
                        .split_ascii_whitespace()
                        .filter_map(|core| core.parse::<u32>().ok())
                        .map(|core| (core, hertz)),
                );
            }
        }
        current.extend(by_core.into_values());
    }
    if current.is_empty() {
        return Known::because(
            "neither /proc/cpuinfo nor /sys/devices/system/cpu/cpufreq tells any frequency",
        );
    }
    Known::Value(Frequencies {
        current,
        maximum: highest("cpuinfo_max_freq"),
        allowed: highest("scaling_max_freq"),
    })
}

/// `cpu MHz` of every core.
pub(crate) fn current_of(cpuinfo: &str) -> Vec<u64> {
    cpuinfo
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let megahertz: f64 =
                (name.trim() == "cpu MHz").then(|| value.trim().parse().ok())??;
            (0.0..1e6)
                .contains(&megahertz)
                .then_some((megahertz * 1e6) as u64)
        })
        .collect()
}

fn product() -> Known<String> {
    let part = |name: &str| files::line(Path::new("/sys/class/dmi/id").join(name));
    match (part("sys_vendor"), part("product_name")) {
        (Ok(vendor), Ok(product)) => Known::Value(format!("{vendor} {product}").trim().to_owned()),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Known::Value(one),
        (Err(_), Err(_)) => match files::text("/proc/device-tree/model") {
            Ok(model) => Known::Value(model.trim_end_matches('\0').to_owned()),
            Err(_) => Known::because("the firmware names no product (no /sys/class/dmi/id)"),
        },
    }
}

/// On x86 the processor's own flag decides, and the firmware gives the name; elsewhere the firmware decides.
pub(crate) fn hypervisor(flags: &[String], product: Option<&str>) -> Known<Option<String>> {
    let named = product.and_then(|product| {
        // Amazon's machines without a hypervisor: `c5.metal`, `c7i.metal-24xl`.
        let bare = product.contains(".metal");
        HYPERVISORS
            .iter()
            .find(|(part, _)| !bare && product.contains(part))
            .map(|(_, name)| (*name).to_owned())
    });
    let is_x86 = flags.iter().any(|flag| flag == "fpu" || flag == "sse2");
    if is_x86 {
        let virtual_machine = flags.iter().any(|flag| flag == "hypervisor");
        return Known::Value(
            virtual_machine.then(|| named.unwrap_or_else(|| "unnamed".to_owned())),
        );
    }
    match named {
        Some(name) => Known::Value(Some(name)),
        None if Path::new("/proc/device-tree/hypervisor").exists() => {
            Known::Value(Some("unnamed".to_owned()))
        }
        None if product.is_some() => Known::Value(None),
        None => Known::because("neither the processor nor the firmware tells"),
    }
}

fn numa_nodes() -> Known<Vec<NumaNode>> {
    let directory = "/sys/devices/system/node";
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return Known::because(format!("could not read {directory}: {error}")),
    };
    let mut nodes: Vec<NumaNode> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let node = name.to_str()?.strip_prefix("node")?.parse().ok()?;
            let cores = core_list::list(&files::text(entry.path().join("cpulist")).ok()?);
            (!cores.is_empty()).then_some(NumaNode { node, cores })
        })
        .collect();
    nodes.sort_by_key(|node| node.node);
    Known::Value(nodes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(flags: &[&str], product: Option<&str>) -> Option<String> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        hypervisor(&flags, product).value().cloned().flatten()
    }

    #[test]
    fn the_flag_decides_and_the_firmware_names() {
        let guest = ["fpu", "sse2", "hypervisor"];
        let host = ["fpu", "sse2"];
        assert_eq!(
            named(&guest, Some("QEMU Standard PC (Q35)")).as_deref(),
            Some("qemu")
        );
        assert_eq!(
            named(&guest, Some("Microsoft Corporation Virtual Machine")).as_deref(),
            Some("microsoft")
        );
        assert_eq!(named(&guest, None).as_deref(), Some("unnamed"));
        assert_eq!(named(&host, Some("Amazon EC2 c5.metal")), None);
        // A machine of that maker is not yet a virtual one.
        assert_eq!(named(&host, Some("Microsoft Corporation Surface")), None);
    }

    #[test]
    fn elsewhere_the_firmware_decides() {
        let arm = ["fp", "asimd", "aes"];
        assert_eq!(
            named(&arm, Some("Amazon EC2 c7g.large")).as_deref(),
            Some("amazon")
        );
        assert_eq!(named(&arm, Some("Amazon EC2 c7g.metal")), None);
        assert_eq!(named(&arm, Some("Raspberry Pi 4 Model B Rev 1.4")), None);
    }

    #[test]
    fn this_machine_has_a_frequency_or_a_reason() {
        match frequencies() {
            Known::Value(frequencies) => assert!(!frequencies.current.is_empty()),
            Known::Unknown(reason) => assert!(reason.contains("/proc/cpuinfo")),
        }
        if let Known::Value(nodes) = numa_nodes() {
            assert!(nodes.iter().all(|node| !node.cores.is_empty()));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(cpu MHz\t*: [0-9a-z.+-]{0,12}\n){0,4}.{0,20}") {
            prop_assert!(current_of(&text).iter().all(|hertz| *hertz <= 1_000_000_000_000));
        }
    }
}
