mod faults;
mod interface;
mod queues;
mod traffic;
pub(crate) mod world;
