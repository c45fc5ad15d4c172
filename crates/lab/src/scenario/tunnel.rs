//! The tunnel of a scenario.

use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::units::Mtu;

/// The tunnel between the ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TunnelSpec {
    /// `kernel`, `wirespeed`, `wireguard-go`, or the path of a program that speaks the standard UAPI. Left out: the
    /// kernel's where there is one, else wirespeed-device, else wireguard-go. Named where the fault is one
    /// implementation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    /// MTU of the tunnel interfaces: of both ends, or `[first, second]`.
    pub mtu: PerEnd<Mtu>,
    /// Receive buffer of a userspace daemon's UDP socket, in bytes as getsockopt reports them; both ends, or `[first,
    /// second]`. Large unless told, so that it is no second fault where the fault is another; a daemon that has larger
    /// ones of its own keeps them then.
    pub socket_buffer: PerEnd<u32>,
    /// The one CPU that both ends' daemons may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin_cpu: Option<u16>,
    /// Persistent keepalive of the first end in seconds, 0 = off.
    pub keepalive: u16,
    /// MTU of a second tunnel between the same two ends, through which this one then goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<Mtu>,
    /// So many more peers of the second end, which were configured and never heard of.
    #[serde(skip_serializing_if = "is_zero")]
    pub idle_peers: u16,
}

impl Default for TunnelSpec {
    fn default() -> Self {
        TunnelSpec {
            implementation: None,
            mtu: PerEnd::Both(Mtu::WIREGUARD),
            socket_buffer: PerEnd::Both(ROOMY_SOCKET_BUFFER),
            pin_cpu: None,
            keepalive: 0,
            inside: None,
            idle_peers: 0,
        }
    }
}

/// Holds 100 ms at 300 Mbit/s in 1,500-byte packets, each of which the kernel counts as about 2,300 bytes.
pub(crate) const ROOMY_SOCKET_BUFFER: u32 = 4 * 1024 * 1024;

/// One value for both ends of the tunnel, or one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "PerEnd_{T}")
)]
#[serde(
    untagged,
    expecting = "one value for both ends, or a list of two: [first, second]"
)]
pub enum PerEnd<T> {
    /// The same at both ends.
    Both(T),
    /// First end (client, gw1), second end (server, gw2).
    Each(T, T),
}

impl<T: Copy> PerEnd<T> {
    /// The value of an end: 0 = first, otherwise second.
    pub fn of(self, end: usize) -> T {
        match self {
            PerEnd::Both(value) => value,
            PerEnd::Each(first, second) => {
                if end == 0 {
                    first
                } else {
                    second
                }
            }
        }
    }
}
