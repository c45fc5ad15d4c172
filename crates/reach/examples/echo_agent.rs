//! An agent with a few operations, for the tests of this crate.

use std::io;
use std::time::{Duration, Instant};

use wirespeed_reach::{Call, Operations, ReachError, serve};

fn main() -> Result<(), ReachError> {
    let mut operations = Operations::default();
    operations.add("echo", |text: String, _: &Call| Ok::<_, String>(text));
    // Seconds to sleep; answers how many it slept.
    operations.add("sleep", |seconds: f64, call: &Call| {
        let start = Instant::now();
        if call.sleep(Duration::from_secs_f64(seconds)) {
            Ok(start.elapsed().as_secs_f64())
        } else {
            Err("was cancelled")
        }
    });
    // Sleeps without looking whether anyone still waits.
    operations.add("deaf_sleep", |seconds: f64, _: &Call| {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        Ok::<_, String>(())
    });
    operations.add("fail", |why: String, _: &Call| Err::<(), _>(why));
    operations.add("panic", |why: String, _: &Call| -> Result<(), String> {
        panic!("{why}")
    });
    // An answer of that many bytes.
    operations.add("flood", |bytes: usize, _: &Call| {
        Ok::<_, String>("x".repeat(bytes))
    });
    operations.add(
        "pid",
        |(): (), _: &Call| Ok::<_, String>(std::process::id()),
    );
    // Leaves a file behind once the call is cancelled.
    operations.add("leave", |path: String, call: &Call| {
        call.sleep(Duration::from_secs(60));
        std::fs::write(path, "ended cleanly")
    });
    serve(operations, io::stdin(), io::stdout())
}
