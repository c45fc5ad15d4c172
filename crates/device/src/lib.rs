//! The data plane of wirespeed: a userspace WireGuard for Linux.
//!
//! ```text
//! out:  tun (super-packet) → split → Outgoing → seal → udp (GSO train)
//! in:   udp (GRO train)    → open  → join   → tun (super-packet)
//! ```
//!
//! Each step is a plain function over a batch; an engine decides who calls it on which core.

pub mod control;
pub mod daemon;
pub mod options;
pub mod offloads;
pub mod udp;
pub mod logging;
pub mod sandbox;
mod lock;
mod peer_name;
mod bell;
#[cfg(test)]
mod testing;
pub mod checksum;
pub mod join;
pub mod link;
pub mod split;
pub mod tun;
mod clock;
mod common;
pub mod device;
mod engine;
mod outbox;
mod ports;
mod slow_path;
mod spread;
mod statistics;
mod steps;
mod sticky;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
