//! Loads, probes, interleaved pairs and their statistics: how a number is made.
//!
//! ```text
//! Machine, Machine → Ends::discover → Ends::sample (counters, iperf3 + echo train, counters) → Sample
//!                                   → compare (bare | tunnel in turn) → Comparison
//!                                   → ab (any A | B in turn) → Ab
//! ```
//!
//! Everything that touches a machine is an operation of the agent there ([`register`]); this side decides what to
//! run, and puts the answers together by pure functions.

mod addresses;
#[cfg(test)]
mod addresses_tests;
mod background;
mod chain;
mod child;
mod compare;
mod datagram;
mod datagram_way;
mod echo;
mod echo_packet;
mod echo_socket;
mod echo_watch;
mod ends;
mod error;
mod exchange;
mod exchange_client;
mod exchange_request;
mod exchange_server;
mod exchange_stages;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod interleave;
mod iperf3_client;
mod iperf3_report;
mod iperf3_server;
mod ladder;
mod load;
mod model;
mod observations;
mod operations;
mod outside;
mod passive;
mod poller;
mod prefix;
mod probes;
mod rate_sweep;
mod sample;
mod segmentation;
mod segmentation_probe;
mod sensible;
mod sequence;
mod sequence_probe;
pub mod statistics;
mod stop;
mod tally;
mod tcp_watch;
mod unanswered;
mod watch;

pub use chain::{Chain, ChainMeasured, ChainPlan, Hop, HopMeasured, HopRates, Round, WholeRates};
pub use compare::{ComparePlan, compare};
pub use ends::{Ends, FarEnd, Overrides};
pub use error::{MeasureError, place_said, reach_said};
pub use exchange::{ExchangePlan, exchanges};
pub use exchange_client::{CUT_OFF, NOT_BEGUN};
pub use interleave::{Ab, AbPlan, Side, ab, goodput, loaded_rtt, side_median};
pub use model::*;
pub use observations::*;
pub use operations::register;
pub use passive::LONGEST_WATCH;
pub use probes::IdlePings;
pub use rate_sweep::SWINGS;
pub use stop::{Progress, Quiet, Stop};
