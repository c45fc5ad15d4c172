//! The child process that is, or leads to, an agent: what it says, when it ends, and that it is gone afterwards.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// Bytes kept of what the child wrote to its standard error.
const STDERR_KEPT: usize = 4 << 10;

/// A running or ended child that leads a process group of its own.
pub(crate) struct Process {
    child: Mutex<Child>,
}

impl Process {
    pub(crate) fn new(child: Child) -> Self {
        Self {
            child: Mutex::new(child),
        }
    }

    /// Waits for the end and reaps it; `None` when it has not ended in time.
    pub(crate) fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            let ended = self
                .child
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .try_wait();
            if let Ok(Some(status)) = ended {
                return Some(status);
            }
            if start.elapsed() >= limit {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the child and what it started, unless it has ended, and reaps it.
    pub(crate) fn kill(&self) -> Option<ExitStatus> {
        {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            // Only before it is reaped, while its id can't be another's.
            if let Ok(None) = child.try_wait() {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.kill();
            }
        }
        // A killed process ends as soon as it leaves the kernel.
        self.wait(Duration::from_secs(5))
    }
}

/// The child's standard output, which ends when the child does, even if something it left behind keeps it open.
pub(crate) struct Output {
    stdout: ChildStdout,
    /// `None` on kernels before 5.3: then the output alone decides.
    child: Option<OwnedFd>,
}

impl Output {
    pub(crate) fn of(stdout: ChildStdout, child: &Child) -> Self {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Self {
            stdout,
            child: id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok()),
        }
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(child) = &self.child {
            loop {
                let mut ready = [
                    PollFd::new(&self.stdout, PollFlags::IN),
                    PollFd::new(child, PollFlags::IN),
                ];
                match poll(&mut ready, None) {
                    Ok(_) if !ready[0].revents().is_empty() => break,
                    Ok(_) if !ready[1].revents().is_empty() => return Ok(0),
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.stdout.read(buffer)
    }
}

/// The last few KiB of the child's standard error.
#[derive(Clone, Default)]
pub(crate) struct Stderr {
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    tail: Vec<u8>,
    ended: bool,
}

impl Stderr {
    /// Listens in a thread of its own until the last holder of the other end has closed it.
    pub(crate) fn listen(&self, mut stderr: ChildStderr) -> io::Result<()> {
        let heard = Arc::clone(&self.heard);
        thread::Builder::new()
            .name("reach-stderr".to_owned())
            .spawn(move || {
                let mut buffer = [0; 1024];
                loop {
                    let count = match stderr.read(&mut buffer) {
                        Ok(count) => count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Err(_) => 0,
                    };
                    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                    if count == 0 {
                        heard.ended = true;
                        return;
                    }
                    heard.tail.extend_from_slice(&buffer[..count]);
                    let excess = heard.tail.len().saturating_sub(STDERR_KEPT);
                    heard.tail.drain(..excess);
                }
            })?;
        Ok(())
    }

    /// What was heard, waiting a moment for the rest if more may be on the way.
    pub(crate) fn tail(&self, wait: Duration) -> Vec<u8> {
        let start = Instant::now();
        loop {
            let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard.ended || start.elapsed() >= wait {
                return heard.tail.clone();
            }
            drop(heard);
            thread::sleep(Duration::from_millis(5));
        }
    }
}
