//! Ctrl-C, SIGTERM and SIGHUP: everything ends within a second, with its children.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use wirespeed_measure::Stop;
use wirespeed_words::say;

use crate::exit::Exit;
use crate::failure::Failure;

/// How long work that has nothing to put back may take to end by itself. Agents end when this program is gone.
const SHORT: Duration = Duration::from_millis(900);

/// For work that has nothing to put back: raises the flag, and ends the program within a second.
pub(crate) fn stop_soon() -> Result<Stop, Failure> {
    let stop = Stop::default();
    let flag = stop.clone();
    on_request(move || {
        flag.stop();
        std::thread::spawn(|| {
            std::thread::sleep(SHORT);
            std::process::exit(130);
        });
    })?;
    Ok(stop)
}

/// For work that puts things back before it ends: raises the flag and waits for it. A second request ends the
/// program at once and leaves the rest to the watchdog.
pub(crate) fn stop_when_put_back() -> Result<Stop, Failure> {
    let stop = Stop::default();
    let flag = stop.clone();
    on_request(move || flag.stop())?;
    Ok(stop)
}

/// The same as a plain flag.
pub(crate) fn flag_when_put_back() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    on_request(move || raised.store(true, Ordering::SeqCst))?;
    Ok(flag)
}

fn on_request(first: impl Fn() + Send + 'static) -> Result<(), Failure> {
    let requests = AtomicU32::new(0);
    ctrlc::set_handler(move || {
        if requests.fetch_add(1, Ordering::SeqCst) == 0 {
            first();
        } else {
            std::process::exit(130);
        }
    })
    .map_err(|error| {
        Failure::here(
            Exit::Unmeasured,
            say!("cli-no-handler", error = error.to_string()),
            say!("cli-no-handler-todo"),
        )
    })
}
