//! Remedies as experiments: kept or undone.
//!
//! On each machine an agent turns the knobs ([`register`]); before a change its old value is on disk, and a
//! [watchdog](watch) process puts everything back when nobody confirms, when the tunnel dies, or when the program does.

mod echo;
mod error;
mod journal;
mod model;
mod operations;
mod state;
pub mod watch;

pub use error::TuneError;
pub use journal::{PutBack, PutBackResult};
pub use model::*;
pub use operations::{WatchCommand, register, register_with};
