//! Evidence to findings: one file per cause.
mod model;
pub use model::*;
