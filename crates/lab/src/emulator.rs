//! The road emulator: holds packets for a time, in user space, for kernels without netem.
//!
//! ```text
//! cable → policy route → TUN → read → held for the delay → written back → TUN → main route → cable
//! ```
//!
//! One TUN and one thread per direction. A packet is stamped when it is read and written back when its time has come, in
//! order, save those that the road is to hold back, to bring twice or to lose. What is held is bounded; beyond the bound packets are dropped, counted, and the count is said on stderr.

mod device;
mod direction;
mod line;
mod overrun;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::LabError;
pub use direction::Direction;
pub use line::{DelayLine, packets_held};

/// The line on stderr that says that every device is open and up.
pub const READY: &str = "ready";

/// How often losses are looked for and said.
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// Runs until it is ended by a signal. Each argument is one direction: the name of the TUN to make, a colon, the
/// delay in microseconds, and what else the road does (`delayup:20000us,reorder=20000/5000us`).
pub fn run(arguments: &[String]) -> Result<(), LabError> {
    let directions: Vec<Direction> = arguments
        .iter()
        .map(|a| a.parse().map_err(LabError::Emulator))
        .collect::<Result<_, _>>()?;
    if directions.is_empty() {
        return Err(LabError::Emulator(
            "no direction given: write NAME:DELAYus".to_owned(),
        ));
    }
    device::be_prompt();
    let stopped = Arc::new(AtomicBool::new(false));
    let mut running = Vec::new();
    for direction in directions {
        let name = direction.name.clone();
        let opened = device::open(&direction)
            .map_err(|e| LabError::Emulator(format!("open {name}: {e}")))?;
        let counts = Arc::new(line::Counts::default());
        let stop = Arc::clone(&stopped);
        let shared = Arc::clone(&counts);
        let worker = thread::spawn(move || {
            device::be_prompt();
            let result = device::carry(&opened, &direction, &shared);
            stop.store(true, Ordering::Relaxed);
            result
        });
        running.push((name, counts, worker));
    }
    device::be_real_time();
    eprintln!("{READY}");
    let mut said = vec![0; running.len()];
    while !stopped.load(Ordering::Relaxed) {
        thread::sleep(REPORT_EVERY);
        for (said, (name, counts, _)) in said.iter_mut().zip(&running) {
            let lost = counts.dropped() + device::overrun(name);
            if lost > *said {
                eprintln!(
                    "{name}: beyond its limit, {} packets lost ({lost} in all)",
                    lost - *said
                );
                *said = lost;
            }
        }
    }
    for (name, _, worker) in running {
        if worker.is_finished()
            && let Ok(Err(e)) = worker.join()
        {
            return Err(LabError::Emulator(format!("{name}: {e}")));
        }
    }
    Ok(())
}
