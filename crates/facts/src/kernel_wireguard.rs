//! Could the kernel carry a WireGuard tunnel?

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Known, files};

/// Where the kernel's own WireGuard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KernelWireGuard {
    /// Part of the kernel's image.
    BuiltIn,
    /// A module that is loaded.
    Loaded,
    /// A module that is installed for the running kernel, but not loaded.
    Installed,
    /// Neither built in nor installed.
    Missing,
}

/// Looks in `/sys` and in the lists of modules. The kernel is not asked for its family of netlink messages: that
/// would load the module.
pub(crate) fn read(release: &str) -> Known<KernelWireGuard> {
    let modules = Path::new("/lib/modules").join(release);
    let lists = |name: &str| files::text(modules.join(name)).map(|list| names_wireguard(&list));
    if lists("modules.builtin").unwrap_or(false) {
        return Known::Value(KernelWireGuard::BuiltIn);
    }
    let takes_modules = Path::new("/proc/modules").exists();
    if Path::new("/sys/module/wireguard").exists() {
        return Known::Value(if takes_modules {
            KernelWireGuard::Loaded
        } else {
            KernelWireGuard::BuiltIn
        });
    }
    if !takes_modules {
        return Known::Value(KernelWireGuard::Missing);
    }
    match lists("modules.dep") {
        Ok(true) => Known::Value(KernelWireGuard::Installed),
        Ok(false) => Known::Value(KernelWireGuard::Missing),
        // Of a container or of a system whose modules were removed with an update.
        Err(error) => Known::because(format!(
            "could not read {}: {error}",
            modules.join("modules.dep").display()
        )),
    }
}

/// A path of the module a line: `kernel/drivers/net/wireguard/wireguard.ko.xz: …`, or without what it depends on.
pub(crate) fn names_wireguard(list: &str) -> bool {
    list.lines().any(|line| {
        let path = line.split(':').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        name == "wireguard.ko" || name.starts_with("wireguard.ko.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as in Debian 12's `/lib/modules/6.1.0-21-amd64`.
    #[test]
    fn the_module_is_found_by_its_file_name() {
        let dep = "kernel/net/ipv4/udp_tunnel.ko:\nkernel/drivers/net/wireguard/wireguard.ko: \
            kernel/arch/x86/crypto/curve25519-x86_64.ko kernel/net/ipv6/ip6_udp_tunnel.ko kernel/net/ipv4/udp_tunnel.ko\n";
        assert!(names_wireguard(dep));
        assert!(names_wireguard("updates/dkms/wireguard.ko.zst:\n"));
        assert!(!names_wireguard(
            "kernel/a.ko: kernel/wireguard.ko\nkernel/notwireguard.ko:\n"
        ));
        assert!(!names_wireguard(""));
    }

    #[test]
    fn a_release_that_is_not_installed_is_no_proof() {
        if Path::new("/sys/module/wireguard").exists() || !Path::new("/proc/modules").exists() {
            crate::skipped::skipped(
                "a_release_that_is_not_installed_is_no_proof",
                "this kernel takes no modules, or has it",
            );
            return;
        }
        assert_eq!(read("0.0-no-such-release").value(), None);
    }
}
