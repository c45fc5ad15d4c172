//! What a machine says of itself.
//!
//! [`snapshot`] reads everything once and never fails as a whole: what could not be read is
//! [`Known::Unknown`] with the reason, never a default. [`counters`] is the cheap part that is read
//! before and after each load; [`Counters::delta`] says what moved in between.
//!
//! This crate and `wirespeed-settings` are the only ones that know `/proc`, `/sys`, netlink and the
//! command lines of other programs.

mod child;
mod connections;
mod conntrack;
mod core_list;
mod counters;
mod delta;
#[cfg(test)]
mod delta_properties;
mod device_statistics;
mod driver_statistics;
mod drivers;
mod files;
mod firewall;
mod firewall_match;
mod firewall_walk;
mod firewall_way;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod generic_netlink;
mod hardware;
mod host;
mod interrupts;
mod kernel_wireguard;
mod known;
mod link_detail;
mod links;
mod model;
mod netlink;
mod offloads;
mod outer_links;
mod proc_net;
mod proc_stat;
mod processes;
mod programs;
mod queues;
mod quota;
mod routes;
#[cfg(test)]
mod skipped;
mod snapshot;
mod sock_diag;
mod softnet;
mod sysctls;
mod tcp_info;
mod tcp_sockets;
mod throttling;
mod tunnels;
mod wireguard;
mod wireguard_kernel;
mod wireguard_uapi;

pub use connections::{
    Connections, ConnectionsWanted, TcpConnection, TcpInfo, TcpListener, TcpProgress,
};
pub use counters::*;
pub use device_statistics::{
    DeviceCounters, DeviceFlow, DeviceOffload, DeviceStatistics, DeviceWorker, WorkerCounters,
};
pub use driver_statistics::{DriverLoss, driver_loss};
pub use firewall_way::TunnelFilter;
pub use hardware::{Frequencies, Hardware, NumaNode, frequencies};
pub use host::boot_id;
pub use kernel_wireguard::KernelWireGuard;
pub use known::Known;
pub use link_detail::{
    Channels, Interrupt, LinkDetail, ReceiveQueue, Rings, Spreading, TransmitQueue,
};
pub use model::*;
pub use processes::own_namespace;
pub use quota::Quota;
pub use routes::way_to;
pub use snapshot::{counters, handshakes, snapshot};
pub use tcp_sockets::connections;
