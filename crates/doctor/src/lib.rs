//! Evidence to findings: why a WireGuard tunnel is slow, and what would help.
//!
//! [`judge`] is a pure function from [`Evidence`] to a [`Diagnosis`]; the causes it knows are one file each in
//! `causes/`, named by their stable code. A check never runs a load; a load never judges.

mod causes;
mod cores;
mod finding;
mod judge;
mod model;
mod mtu;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;
mod view;

pub use judge::{codes, judge};
pub use model::*;
