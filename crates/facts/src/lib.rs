//! What a machine says of itself.
//!
//! [`snapshot`] reads everything once and never fails as a whole: what could not be read is
//! [`Known::Unknown`] with the reason, never a default. [`counters`] is the cheap part that is read
//! before and after each load; [`Counters::delta`] says what moved in between.
//!
//! This crate and `wirespeed-settings` are the only ones that know `/proc`, `/sys`, netlink and the
//! command lines of other programs.

mod child;
mod counters;
mod delta;
mod device_statistics;
mod drivers;
mod files;
mod firewall;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod generic_netlink;
mod host;
mod known;
mod links;
mod model;
mod netlink;
mod offloads;
mod proc_net;
mod proc_stat;
mod processes;
mod programs;
mod routes;
mod snapshot;
mod sock_diag;
mod softnet;
mod sysctls;
mod tunnels;
mod wireguard;
mod wireguard_kernel;
mod wireguard_uapi;

pub use counters::*;
pub use device_statistics::{
    DeviceCounters, DeviceFlow, DeviceOffload, DeviceStatistics, DeviceWorker, WorkerCounters,
};
pub use known::Known;
pub use model::*;
pub use routes::way_to;
pub use snapshot::{counters, snapshot};
