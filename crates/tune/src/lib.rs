//! Remedies as experiments: kept or undone.
mod model;
pub use model::*;
