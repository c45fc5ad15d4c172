//! Evidence to findings: why a WireGuard tunnel is slow, and what would help.
//!
//! [`judge`] is a pure function from [`Evidence`] to a [`Diagnosis`]; the causes it knows are one file each in
//! `causes/`, named by their stable code. [`investigate`] collects the evidence. A check never runs a load; a load never
//! judges.

mod cards;
mod causes;
mod cores;
mod device;
mod finding;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hops;
mod investigate;
mod judge;
mod losses;
mod model;
mod mtu;
mod passive;
mod probe;
#[cfg(test)]
mod properties;
mod readings;
mod road;
mod slow_start;
#[cfg(test)]
mod testing;
mod trust;
mod versions;
mod view;
mod watched;

pub use hops::{HopReport, HopVerdict, Share, Standing, WorstHop, judge_hops};
pub use investigate::{Options, investigate};
pub use judge::{codes, judge, leaves_open};
pub use model::*;
pub use passive::watch;
