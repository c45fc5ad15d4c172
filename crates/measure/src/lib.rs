//! Loads, probes, interleaved pairs and their statistics: how a number is made.
mod model;
pub use model::*;
