//! The calls an agent works on.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::call::Call;

/// Calls that run at once.
pub(crate) const CALLS_AT_ONCE: usize = 64;

/// The calls that have not ended.
#[derive(Default)]
pub(crate) struct Running {
    calls: Mutex<Calls>,
    all_ended: Condvar,
}

#[derive(Default)]
struct Calls {
    by_id: HashMap<u64, Call>,
    /// Calls whose handler still runs; the others are only writing their reply.
    at_work: usize,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, id: u64) -> Result<Call, String> {
        let mut calls = self.lock();
        if calls.at_work >= CALLS_AT_ONCE {
            return Err(format!(
                "the agent already runs {CALLS_AT_ONCE} calls; wait for one of them to end"
            ));
        }
        if calls.by_id.contains_key(&id) {
            return Err(format!("a call with id {id} is already running"));
        }
        let call = Call::default();
        calls.by_id.insert(id, call.clone());
        calls.at_work += 1;
        Ok(call)
    }

    pub(crate) fn free_place(&self) {
        self.lock().at_work -= 1;
    }

    pub(crate) fn leave(&self, id: u64) {
        let mut calls = self.lock();
        calls.by_id.remove(&id);
        if calls.by_id.is_empty() {
            self.all_ended.notify_all();
        }
    }

    pub(crate) fn cancel(&self, id: u64) {
        // A call that has ended meanwhile is no mistake: its reply and the cancel crossed.
        if let Some(call) = self.lock().by_id.get(&id) {
            call.cancel();
        }
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().by_id.values().for_each(Call::cancel);
    }

    pub(crate) fn wait_until_ended(&self, limit: Duration) {
        let calls = self.lock();
        let _ended = self
            .all_ended
            .wait_timeout_while(calls, limit, |calls| !calls.by_id.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
    }
}
