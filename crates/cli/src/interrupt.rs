//! Ctrl-C, SIGTERM and SIGHUP: everything ends within a second, with its children.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wirespeed_measure::Stop;

use crate::exit::Exit;
use crate::failure::Failure;

/// How long the work may take to end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grace {
    /// Under a second: nothing has to be put back. Agents end by themselves when this program is gone.
    Short,
    /// As long as putting things back takes; a second request ends at once (and leaves the rest to the watchdog
    /// or to `lab down`).
    UntilPutBack,
}

/// A flag that is raised on a request to end.
pub(crate) fn stop_on_request(grace: Grace) -> Result<Stop, Failure> {
    let stop = Stop::default();
    let flag = stop.clone();
    let requests = AtomicU32::new(0);
    ctrlc::set_handler(move || {
        let before = requests.fetch_add(1, Ordering::SeqCst);
        flag.stop();
        if before > 0 {
            std::process::exit(130);
        }
        if grace == Grace::Short {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(900));
                std::process::exit(130);
            });
        }
    })
    .map_err(|error| {
        Failure::here(
            Exit::Unmeasured,
            format!("the handler for Ctrl-C could not be set: {error}"),
            "check the limits of this process",
        )
    })?;
    Ok(stop)
}
