//! Parts that only the micro-benchmarks see by themselves. No part of the interface.

use crate::replay::ReplayWindow;

/// The replay window of one session.
#[derive(Default)]
pub struct Window(ReplayWindow);

impl Window {
    /// Whether the counter is new; remembers it.
    pub fn accept(&mut self, counter: u64) -> bool {
        self.0.accept(counter)
    }
}
