//! How to get to a machine.
