//! The whole life of a tunnel in simulated time.

mod batches;
mod chaos;
mod handshakes;
mod load;
mod rekey;
mod roaming;
mod silence;
mod world;
