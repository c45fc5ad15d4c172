//! Remedies as experiments: kept or undone.
//!
//! On each machine an agent turns the knobs ([`register`]); before a change its old value is on disk, and a
//! [watchdog](watch) process puts everything back when nobody confirms, when the tunnel dies, or when the program does.

mod decision;
mod driver;
#[cfg(test)]
mod driver_tests;
mod echo;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hands;
mod journal;
mod model;
mod operations;
mod plan;
mod state;
#[cfg(test)]
mod testing;
pub mod watch;

pub use decision::{Decision, Trial, decide, guard_word};
pub use driver::{Options, tune};
pub use error::{TuneError, refusal_said};
pub use hands::{confirm, status, undo};
pub use journal::{PutBack, PutBackResult};
pub use model::*;
pub use operations::{WatchCommand, register, register_with};
pub use plan::{Script, plan};
