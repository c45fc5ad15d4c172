//! Practice roads in network namespaces.
//!
//! A [`Scenario`] is a readable file: hosts, links, a road with its faults, the tunnel over it, and the finding that
//! `wirespeed doctor` must give. [`up()`] builds it:
//!
//! ```text
//! state file (before anything is made) → host-wide sysctl → namespaces → cables and routes
//!       → road (rate, MTU, loss, ICMP, NAT, delay) → tunnel → does it work? → faults → ready
//! ```
//!
//! and [`down()`] takes it away, from the identifier alone: also what a killed `up` left half made.

mod command;
mod down;
pub mod emulator;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod host_sysctl;
mod hosts;
mod implementation;
mod job;
mod names;
mod netns;
mod quota;
mod road;
mod scenario;
mod shipped;
mod state;
mod status;
mod topology;
mod tunnel;
mod units;
mod up;

pub use down::{down, remove_left_behind};
pub use error::LabError;
pub use implementation::Implementation;
pub use job::serve;
pub use names::LabId;
pub use scenario::{
    Cable, Fate, Fault, Findings, HEALTHY, HostSpec, Links, MachineSpec, Nat, PerEnd, Road,
    RoadDirection, Scenario, Topology, TunnelSpec, Way,
};
pub use shipped::{find, scenarios};
pub use state::{Address, DelayMeans, Lab, Network, Owner, Phase};
pub use status::{HostStatus, LabList, LabStatus, exec, get, list, of_another_version, status};
pub use topology::Host;
pub use units::{Loss, Mtu, Queue, Rate, Span};
pub use up::{EmulatorCommand, Progress, UpOptions, up};
