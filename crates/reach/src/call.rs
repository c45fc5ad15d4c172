//! One call as its handler sees it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The call a handler works on: whether anyone still waits for it. Clones are of the same call, for the handler's
/// helper threads. [`Call::default`] is a call that nobody cancels.
#[derive(Debug, Clone, Default)]
pub struct Call {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Call {
    /// Whether this call was cancelled or the other side is gone. A handler that runs for long looks often
    /// and ends when it says so: the agent waits three seconds for it at its own end, no more.
    pub fn cancelled(&self) -> bool {
        *self
            .state
            .cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps; `false` when the call was cancelled meanwhile, and then at once.
    pub fn sleep(&self, duration: Duration) -> bool {
        let cancelled = self
            .state
            .cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (cancelled, _) = self
            .state
            .changed
            .wait_timeout_while(cancelled, duration, |cancelled| !*cancelled)
            .unwrap_or_else(PoisonError::into_inner);
        !*cancelled
    }

    pub(crate) fn cancel(&self) {
        *self
            .state
            .cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.state.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn cancelling_ends_a_sleep_at_once() {
        let call = Call::default();
        assert!(call.sleep(Duration::from_millis(1)));
        let other = call.clone();
        let start = Instant::now();
        let sleeper = std::thread::spawn(move || other.sleep(Duration::from_secs(60)));
        call.cancel();
        assert!(!sleeper.join().unwrap());
        assert!(call.cancelled() && start.elapsed() < Duration::from_secs(30));
    }
}
