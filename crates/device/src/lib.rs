//! The data plane of wirespeed: a userspace WireGuard for Linux.
//!
//! ```text
//! out:  tun (super-packet) → split → Outgoing → seal → udp (GSO train)
//! in:   udp (GRO train)    → open  → join   → tun (super-packet)
//! ```
//!
//! Each step is a plain function over a batch; an engine decides who calls it on which core.

pub mod control;
pub mod options;
