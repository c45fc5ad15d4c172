//! The data plane of wirespeed: a userspace WireGuard for Linux.
//!
//! ```text
//! out:  tun (super-packet) → split → Outgoing → seal → udp (GSO train)
//! in:   udp (GRO train)    → open  → join   → tun (super-packet)
//! ```
//!
//! Each step is a plain function over a batch; an engine decides who calls it on which core.

pub mod checksum;
pub mod control;
pub mod daemon;
pub mod device;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod join;
pub mod link;
pub mod logging;
pub mod offloads;
pub mod options;
pub mod sandbox;
pub mod split;
pub mod tell;
pub mod tun;
pub mod udp;

mod bell;
mod clock;
mod common;
mod engine;
mod lock;
mod outbox;
mod peer_name;
mod ports;
mod slow_path;
mod spread;
mod statistics;
mod steps;
mod sticky;
#[cfg(test)]
mod testing;
