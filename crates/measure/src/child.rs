//! A child process that can't outlive us: bounded output, bounded time, killed with the thread that started it.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Output beyond this is read and thrown away: ten minutes of 128 streams fit.
const OUTPUT_AT_MOST: u64 = 64 << 20;
/// How often a wait looks up.
const LOOK_UP: Duration = Duration::from_millis(10);

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

/// What a child left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    /// Starts `program` so that it dies when the calling thread ends.
    pub(crate) fn start(program: &str, arguments: &[String]) -> Result<Self, String> {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", program])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                format!("setpriv (package util-linux), which {program} is started with: {error}")
            })?;
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        Ok(Self {
            child,
            stdout,
            stderr,
        })
    }

    /// Its exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it ends, `limit` is over, or `keep_going` says no; `true` = it ended.
    pub(crate) fn wait(&mut self, limit: Duration, keep_going: &dyn Fn() -> bool) -> bool {
        let until = Instant::now() + limit;
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() >= until || !keep_going() {
                return false;
            }
            thread::sleep(LOOK_UP);
        }
    }

    /// Asks it to end (SIGTERM), and waits a little: iperf3 then prints what it has.
    pub(crate) fn terminate(&mut self, patience: Duration) -> bool {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // Not reaped yet, so the number is still its own.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        self.wait(patience, &|| true)
    }

    /// Kills it if it still runs, and takes what it printed.
    pub(crate) fn finish(mut self) -> Result<Ended, String> {
        let _ = self.child.kill();
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let text = |output: &Receiver<Vec<u8>>| {
            // The pipe ends with the child; a grandchild that holds it open is not waited for.
            let bytes = output
                .recv_timeout(Duration::from_secs(1))
                .unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(Ended {
            status,
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.by_ref().take(OUTPUT_AT_MOST).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
            let _ = sender.send(bytes);
        });
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Running {
        Running::start("sh", &["-c".to_owned(), script.to_owned()]).unwrap()
    }

    #[test]
    fn output_and_status_are_taken() {
        let mut child = shell("echo out; echo err >&2; exit 3");
        assert!(child.wait(Duration::from_secs(5), &|| true));
        let ended = child.finish().unwrap();
        assert_eq!(
            (
                ended.status.code(),
                ended.stdout.as_str(),
                ended.stderr.as_str()
            ),
            (Some(3), "out\n", "err\n")
        );
    }

    #[test]
    fn a_child_that_hangs_is_killed_in_time() {
        let begun = Instant::now();
        let mut child = shell("trap '' TERM; echo before; while :; do sleep 0.01; done");
        assert!(!child.wait(Duration::from_millis(100), &|| true));
        assert!(!child.terminate(Duration::from_millis(100)));
        let ended = child.finish().unwrap();
        assert!(!ended.status.success() && begun.elapsed() < Duration::from_secs(5));
        assert_eq!(ended.stdout, "before\n");
    }

    #[test]
    fn a_child_dies_with_the_thread_that_started_it() {
        let pid = thread::spawn(|| {
            let child = shell("exec sleep 60");
            let pid = child.child.id();
            // From here on setpriv has done its work.
            let name = format!("/proc/{pid}/comm");
            while std::fs::read_to_string(&name).is_ok_and(|name| name.trim() != "sleep") {
                thread::sleep(Duration::from_millis(1));
            }
            // Leaked on purpose: only the thread's end can kill it now.
            std::mem::forget(child);
            pid
        })
        .join()
        .unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        let stat = format!("/proc/{pid}/stat");
        // Nobody reaps it here, so it stays as a zombie.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(Instant::now() < until, "child {pid} still runs");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_missing_program_is_the_shells_usual_127() {
        let mut child = Running::start("ws-no-such-program", &[]).unwrap();
        assert!(child.wait(Duration::from_secs(5), &|| true));
        let ended = child.finish().unwrap();
        assert_eq!(ended.status.code(), Some(127));
        assert!(ended.stderr.contains("ws-no-such-program"));
    }
}
