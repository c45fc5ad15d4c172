//! Queues of the pipeline: slots that many work on, but that come out in the order they went in.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::lock::Locked;

/// A ring of slots with their buffers. One thread fills them, any may work on them, one takes them out in the order they were
/// filled. A slot's contents stay where they are and are used again.
pub(crate) struct Ring<T> {
    slots: Box<[Mutex<T>]>,
    state: Mutex<State>,
    free: Condvar,
    done: Condvar,
}

struct State {
    filled: usize,
    taken: usize,
    done: Box<[bool]>,
    closed: bool,
}

impl<T> Ring<T> {
    pub(crate) fn new(slots: impl Iterator<Item = T>) -> Self {
        let slots: Box<[_]> = slots.map(Mutex::new).collect();
        Self {
            state: Mutex::new(State {
                filled: 0,
                taken: 0,
                done: vec![false; slots.len()].into_boxed_slice(),
                closed: false,
            }),
            slots,
            free: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Nobody waits any more.
    pub(crate) fn close(&self) {
        self.state.locked().closed = true;
        self.free.notify_all();
        self.done.notify_all();
    }

    /// The contents of a slot.
    pub(crate) fn slot(&self, slot: usize) -> MutexGuard<'_, T> {
        self.slots[slot].locked()
    }

    /// Waits for a slot to fill; `None` when closed.
    pub(crate) fn to_fill(&self) -> Option<usize> {
        let mut state = self.state.locked();
        while state.filled - state.taken == self.slots.len() && !state.closed {
            state = wait(&self.free, state);
        }
        (!state.closed).then(|| state.filled % self.slots.len())
    }

    /// The slot of [`to_fill`](Self::to_fill) is filled.
    pub(crate) fn filled(&self) {
        self.state.locked().filled += 1;
    }

    /// This slot was worked on.
    pub(crate) fn worked(&self, slot: usize) {
        let mut state = self.state.locked();
        state.done[slot] = true;
        if state.taken % self.slots.len() == slot {
            self.done.notify_one();
        }
    }

    /// Waits until the oldest slot was worked on; `None` when closed.
    pub(crate) fn to_take(&self) -> Option<usize> {
        let mut state = self.state.locked();
        loop {
            let slot = state.taken % self.slots.len();
            if state.closed {
                return None;
            }
            if state.done[slot] {
                return Some(slot);
            }
            state = wait(&self.done, state);
        }
    }

    /// The slot of [`to_take`](Self::to_take) may be filled again.
    pub(crate) fn taken(&self) {
        let mut state = self.state.locked();
        let slot = state.taken % self.slots.len();
        state.done[slot] = false;
        state.taken += 1;
        self.free.notify_one();
    }
}

/// Work for whoever is free. Bounded by the rings the work is in.
pub(crate) struct Jobs<J> {
    state: Mutex<(VecDeque<J>, bool)>,
    more: Condvar,
}

impl<J> Jobs<J> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new((VecDeque::new(), false)),
            more: Condvar::new(),
        }
    }

    pub(crate) fn close(&self) {
        self.state.locked().1 = true;
        self.more.notify_all();
    }

    pub(crate) fn push(&self, job: J) {
        self.state.locked().0.push_back(job);
        self.more.notify_one();
    }

    /// Waits for work; `None` when closed.
    pub(crate) fn pop(&self) -> Option<J> {
        let mut state = self.state.locked();
        loop {
            if state.1 {
                return None;
            }
            if let Some(job) = state.0.pop_front() {
                return Some(job);
            }
            state = wait(&self.more, state);
        }
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order_whoever_works_on_it() {
        let ring = Ring::new((0..4).map(|_| 0u64));
        let jobs = Jobs::new();
        let out = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(slot) = jobs.pop() {
                        let mut value = ring.slot(slot);
                        if *value % 7 == 0 {
                            std::thread::yield_now();
                        }
                        *value *= 10;
                        drop(value);
                        ring.worked(slot);
                    }
                });
            }
            scope.spawn(|| {
                for value in 0..2_000 {
                    let slot = ring.to_fill().unwrap();
                    *ring.slot(slot) = value;
                    ring.filled();
                    jobs.push(slot);
                }
            });
            let mut out = Vec::new();
            while out.len() < 2_000 {
                let slot = ring.to_take().unwrap();
                out.push(*ring.slot(slot));
                ring.taken();
            }
            jobs.close();
            out
        });
        assert_eq!(out, (0..2_000).map(|value| value * 10).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_waits_at_a_closed_ring() {
        let ring = Ring::new(std::iter::once(()));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(ring.to_take(), None));
            ring.close();
        });
        assert_eq!(ring.to_fill(), None);
    }
}
