//! Could the kernel carry a WireGuard tunnel?

use serde::{Deserialize, Serialize};

/// Where the kernel's own WireGuard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

impl KernelWireGuard {
    /// Would `ip link add type wireguard` work?
    pub fn available(self) -> bool {
        self != Self::Missing
    }
}
