//! This side of a connection: starts the agent, sends lines, notices the end, leaves no process behind.
//!
//! Callers → bounded queue → writer thread → the agent's input; the agent's output → reader thread (`replies.rs`)
//! → each waiting caller. The writer has a thread so that a far end that stops reading costs a caller its time
//! limit and not its life.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread;
use std::time::{Duration, Instant};

use crate::child::{Output, Process, Stderr};
use crate::command;
use crate::early;
use crate::error::{NotStartedReason, ReachError};
use crate::options::OpenOptions;
use crate::place::Place;
use crate::replies::{AFTER_CLOSE, LAST_WORDS, Reader, Waiting};
use crate::serve::CLEAN_END;
use crate::text;
use crate::wire::{self, Hello, Outcome};

/// How often a silent client shows the agent that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Lines that may wait for a far end that does not read.
const LINES_WAITING: usize = 256;

pub(crate) struct Connection {
    name: String,
    hello: Hello,
    next_id: AtomicU64,
    /// `None` only while dropping.
    lines: Option<SyncSender<Vec<u8>>>,
    waiting: Arc<Waiting>,
    process: Arc<Process>,
}

impl Connection {
    pub(crate) fn open(place: &Place, options: &OpenOptions) -> Result<Self, ReachError> {
        let start = Instant::now();
        let name = place.to_string();
        let mut command = command::for_place(place, options)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A Ctrl-C at the terminal is for the program, which still needs its agents to put things back.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| early::not_spawned(place, options, &error))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all three were asked for as pipes");
        };
        let output = Output::of(stdout, &child);
        let process = Arc::new(Process::new(child));
        let waiting = Arc::new(Waiting::default());
        let heard = Stderr::default();
        let (lines, queue) = sync_channel(LINES_WAITING);
        let (greeting, greeted) = channel();

        let reader = Reader {
            place: place.clone(),
            options: options.clone(),
            process: Arc::clone(&process),
            heard: heard.clone(),
            waiting: Arc::clone(&waiting),
        };
        let threads = heard
            .listen(stderr)
            .and_then(|()| {
                thread::Builder::new()
                    .name("reach-writer".to_owned())
                    .spawn(move || write_lines(stdin, &queue))
            })
            .and_then(|_| {
                thread::Builder::new()
                    .name("reach-reader".to_owned())
                    .spawn(move || reader.run(output, &greeting))
            });
        if let Err(error) = threads {
            process.kill();
            return Err(ReachError::NotStarted {
                machine: name,
                reason: NotStartedReason::NoThread {
                    detail: error.to_string(),
                },
            });
        }

        let left = options.hello_within.saturating_sub(start.elapsed());
        let hello = greeted.recv_timeout(left).unwrap_or_else(|_| {
            Err(ReachError::TimedOut {
                machine: name.clone(),
                operation: "the agent's greeting".to_owned(),
                after: options.hello_within,
                detail: heard_meanwhile(place, &heard.tail(Duration::ZERO)),
            })
        });
        match hello.and_then(|hello| check_version(&name, hello)) {
            Ok(hello) => Ok(Self {
                name,
                hello,
                next_id: AtomicU64::new(1),
                lines: Some(lines),
                waiting,
                process,
            }),
            Err(error) => {
                process.kill();
                Err(error)
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn hello(&self) -> &Hello {
        &self.hello
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Where the outcome of call `id` will arrive; closed without one when the connection ends.
    pub(crate) fn expect(&self, id: u64) -> Result<Receiver<Outcome>, ReachError> {
        self.waiting.expect(id)
    }

    /// Whether call `id` was still waited for; nobody does any more.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.waiting.forget(id)
    }

    pub(crate) fn send(&self, line: Vec<u8>, operation: &str) -> Result<(), ReachError> {
        match self.lines.as_ref().map(|lines| lines.try_send(line)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(ReachError::NotCalled {
                machine: self.name.clone(),
                operation: operation.to_owned(),
                detail: format!(
                    "the far end has not read the last {LINES_WAITING} calls; it hangs, or the way to it is broken"
                ),
            }),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(self.why_ended()),
        }
    }

    /// Why the connection, of which a part was found closed, has ended.
    pub(crate) fn why_ended(&self) -> ReachError {
        // An agent that ends closes both its input and its output; the reader finds out why, in a moment.
        let moment = AFTER_CLOSE + LAST_WORDS + Duration::from_secs(1);
        self.waiting.why_ended(moment).unwrap_or_else(|| {
            self.process.kill();
            ReachError::Died {
                machine: self.name.clone(),
                exit: "it closed its input and went on running, so it was killed".to_owned(),
                stderr: String::new(),
            }
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Ends the writer, which closes the agent's input.
        self.lines = None;
        if self
            .process
            .wait(CLEAN_END + Duration::from_secs(1))
            .is_none()
        {
            self.process.kill();
        }
    }
}

pub(crate) fn check_version(machine: &str, hello: Hello) -> Result<Hello, ReachError> {
    // A patch release changes no operation; a minor one may.
    let series = |version: &str| {
        version
            .rsplit_once('.')
            .map(|(series, _patch)| series.to_owned())
    };
    if hello.protocol == wire::PROTOCOL && series(&hello.wirespeed) == series(wire::VERSION) {
        return Ok(hello);
    }
    Err(ReachError::Version {
        machine: machine.to_owned(),
        theirs: text::beginning(hello.wirespeed.as_bytes(), 40),
        their_protocol: hello.protocol,
        ours: wire::VERSION.to_owned(),
        our_protocol: wire::PROTOCOL,
    })
}

fn heard_meanwhile(place: &Place, stderr: &[u8]) -> String {
    let said =
        text::last_line(stderr).map_or_else(String::new, |line| format!("; it said: {line}"));
    let advice = match place {
        Place::Ssh(_) => "try by hand whether ssh to that host answers, and how fast",
        _ => "the program there hangs, or is not wirespeed",
    };
    format!("{said}; {advice}")
}

fn write_lines(mut stdin: ChildStdin, queue: &Receiver<Vec<u8>>) {
    loop {
        let line = match queue.recv_timeout(KEEP_ALIVE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => b"\n".to_vec(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if stdin.write_all(&line).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_match_by_series_and_protocol() {
        let hello = |version: &str, protocol| Hello {
            wirespeed: version.to_owned(),
            protocol,
            host: "nas".to_owned(),
            netns: None,
        };
        let (series, _) = wire::VERSION.rsplit_once('.').unwrap();
        assert!(check_version("here", hello(&format!("{series}.99"), wire::PROTOCOL)).is_ok());
        assert!(check_version("here", hello(wire::VERSION, wire::PROTOCOL + 1)).is_err());
        assert!(check_version("here", hello("99.1.0", wire::PROTOCOL)).is_err());
        assert!(check_version("here", hello("", wire::PROTOCOL)).is_err());
    }
}
