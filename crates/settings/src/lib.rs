//! What can be changed: one type per knob, each of which reads, writes, says the same as a shell
//! command, and knows how it is made permanent.
//!
//! A [`Setting`] names one knob on one machine; its [`Value`] is plain JSON whose shape the knob
//! documents. Nothing here decides *whether* to change something: that is `wirespeed-tune`.

use serde::{Deserialize, Serialize};

/// The value of a setting; `null` = the kernel's default or "not set". Each knob documents its shape.
pub type Value = serde_json::Value;

/// One thing that can be changed on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "knob", rename_all = "kebab-case")]
pub enum Setting {
    /// MTU of a link, in bytes (number).
    LinkMtu {
        /// Interface name.
        interface: String,
    },
    /// Receive buffer of the UDP sockets of a userspace tunnel, in bytes as the kernel reports them
    /// (`SO_RCVBUF` of getsockopt; number). Changed in the running daemon through `pidfd_getfd(2)`: this
    /// socket and no other, no restart.
    SocketReceiveBuffer {
        /// Interface name of the tunnel.
        interface: String,
    },
    /// TCP congestion control of every route that leaves by the interface (text, or null = the
    /// namespace's default).
    RouteCongestion {
        /// Interface name.
        interface: String,
    },
    /// Egress rate limit of an interface, in bit/s (number; null = the queueing discipline the kernel gave).
    EgressShaper {
        /// Interface name.
        interface: String,
    },
    /// A sysctl by its dotted name (text).
    Sysctl {
        /// `net.ipv4.tcp_mtu_probing`.
        name: String,
    },
}
