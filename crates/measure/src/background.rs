//! Work in an agent that outlives the call that started it: an iperf3 server, a watch for echo requests.
//!
//! Started by one call, finished by another, which gets the result. Every piece of work has a thread of its own
//! that lives as long as its child process (a child started with `--pdeathsig` dies with the *thread* that
//! started it), and a time after which it ends by itself should nobody come for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

/// Pieces of work at once; more is a leak somewhere.
const AT_ONCE: usize = 64;

/// The agent's pieces of work by number, and the means to end everything that runs.
#[derive(Debug)]
pub(crate) struct Background<T> {
    works: Mutex<HashMap<u64, Work<T>>>,
}

#[derive(Debug)]
struct Work<T> {
    finish: Arc<AtomicBool>,
    thread: JoinHandle<T>,
}

impl<T> Default for Background<T> {
    fn default() -> Self {
        Self {
            works: Mutex::default(),
        }
    }
}

impl<T: Send + 'static> Background<T> {
    /// Starts `run`, which ends soon after the flag it is handed becomes true.
    pub(crate) fn start(
        &self,
        number: u64,
        run: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<(), String> {
        let mut works = self.lock();
        // Nobody came for these in their time.
        works.retain(|_, work| !work.thread.is_finished());
        if works.len() >= AT_ONCE || works.contains_key(&number) {
            return Err(format!("{} pieces of work run already", works.len()));
        }
        let finish = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&finish);
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || run(&flag))
            .map_err(|error| format!("no thread: {error}"))?;
        works.insert(number, Work { finish, thread });
        Ok(())
    }

    /// Asks the work to finish, and waits for its result.
    pub(crate) fn finish(&self, number: u64) -> Result<T, String> {
        let work = self
            .lock()
            .remove(&number)
            .ok_or("it was never started, or its time is over")?;
        work.finish.store(true, Ordering::SeqCst);
        work.thread.join().map_err(|_| "it panicked".to_owned())
    }

    /// Asks every work to finish.
    pub(crate) fn finish_all(&self) {
        for work in self.lock().values() {
            work.finish.store(true, Ordering::SeqCst);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Work<T>>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls that run in this agent, so that one call can end the others.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<Vec<Weak<AtomicBool>>>);

impl Running {
    /// A flag that [`Running::stop_all`] sets; forgotten when dropped.
    pub(crate) fn register(&self) -> Arc<AtomicBool> {
        let flag = Arc::new(AtomicBool::new(false));
        let mut flags = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        flags.retain(|flag| flag.strong_count() > 0);
        flags.push(Arc::downgrade(&flag));
        flag
    }

    pub(crate) fn stop_all(&self) {
        for flag in self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(Weak::upgrade)
        {
            flag.store(true, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn until_asked(finish: &AtomicBool) -> u32 {
        while !finish.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        7
    }

    #[test]
    fn work_runs_until_somebody_comes_for_it() {
        let works = Background::default();
        works.start(1, until_asked).unwrap();
        assert!(works.start(1, until_asked).is_err());
        assert_eq!(works.finish(1), Ok(7));
        assert!(works.finish(1).unwrap_err().contains("never started"));
    }

    #[test]
    fn all_can_be_asked_at_once() {
        let works = Background::default();
        works.start(1, until_asked).unwrap();
        works.start(2, until_asked).unwrap();
        works.finish_all();
        assert_eq!((works.finish(1), works.finish(2)), (Ok(7), Ok(7)));
    }

    #[test]
    fn running_calls_hear_of_a_stop_and_later_ones_do_not() {
        let running = Running::default();
        let before = running.register();
        running.stop_all();
        let after = running.register();
        assert!(before.load(Ordering::SeqCst) && !after.load(Ordering::SeqCst));
    }
}
