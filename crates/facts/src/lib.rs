//! What a machine says of itself.
//!
//! [`snapshot`] reads everything once and never fails as a whole: what could not be read is
//! [`Known::Unknown`] with the reason, never a default. [`counters`] is the cheap part that is read
//! before and after each load; [`Counters::delta`] says what moved in between.
//!
//! This crate and `wirespeed-settings` are the only ones that know `/proc`, `/sys`, netlink and the
//! command lines of other programs.

mod counters;
mod known;
mod model;

pub use counters::*;
pub use known::Known;
pub use model::*;
