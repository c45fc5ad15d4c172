//! This side of a connection: opens it, sends calls, hands replies to who waits for them, notices its end.
//!
//! Callers → bounded queue → writer thread → the agent's input; the agent's output → reader thread → each
//! waiting caller. The writer has a thread so that a far end that stops reading costs a caller its time limit
//! and not its life.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::child::{Output, Process, Stderr};
use crate::command;
use crate::early;
use crate::error::ReachError;
use crate::options::OpenOptions;
use crate::place::Place;
use crate::serve::CLEAN_END;
use crate::text;
use crate::wire::{self, CallLine, CancelLine, Hello, Line, Outcome};

/// How often a silent client shows the agent that it is there.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Lines that may wait for a far end that does not read.
const LINES_WAITING: usize = 256;
/// How long a child may live on after it closed its output.
const AFTER_CLOSE: Duration = Duration::from_secs(1);
/// How long to wait for the last words of a child that has ended.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// An open connection to the agent on a machine. Clones share it. When the last clone and the last [`Pending`] are
/// gone, the agent is told (its input ends), gets four seconds to end its calls, and is killed if it has not.
#[derive(Clone)]
pub struct Machine {
    connection: Arc<Connection>,
}

impl Machine {
    /// Starts the agent at `place` and exchanges greetings, within `options.hello_within`.
    ///
    /// # Errors
    /// Every variant of [`ReachError`] but those of calls; afterwards nothing of the attempt runs any more.
    pub fn open(place: &Place, options: &OpenOptions) -> Result<Self, ReachError> {
        place.check()?;
        Ok(Self {
            connection: Arc::new(Connection::open(place, options)?),
        })
    }

    /// The place this machine was opened at, as text: what errors call it.
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// The host name over there.
    pub fn host(&self) -> &str {
        &self.connection.hello.host
    }

    /// Runs an operation over there and waits for its answer, at most `limit`.
    ///
    /// # Errors
    /// [`ReachError::Operation`] is what the operation said; [`ReachError::TimedOut`] leaves the connection usable.
    pub fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        operation: &str,
        params: &P,
        limit: Duration,
    ) -> Result<R, ReachError> {
        self.start(operation, params)?.wait(limit)
    }

    /// Starts an operation over there and does not wait. Calls run concurrently, each in a thread of its own.
    ///
    /// # Errors
    /// When it can't be sent: the connection has ended, or the parameters do not fit into a line.
    pub fn start<P: Serialize>(&self, operation: &str, params: &P) -> Result<Pending, ReachError> {
        let connection = &self.connection;
        let id = connection.next_id.fetch_add(1, Ordering::Relaxed);
        let line = wire::encode(&CallLine {
            id,
            call: operation,
            params,
        })
        .map_err(|detail| ReachError::Params {
            machine: connection.name.clone(),
            operation: operation.to_owned(),
            detail,
        })?;
        let outcome = connection.shared.expect(id)?;
        let pending = Pending {
            connection: Arc::clone(connection),
            id,
            operation: operation.to_owned(),
            outcome,
            over: false,
        };
        connection.send(line, operation)?;
        Ok(pending)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("name", &self.name())
            .field("host", &self.host())
            .finish_non_exhaustive()
    }
}

/// A call on its way. Dropping it cancels the call.
#[derive(Debug)]
pub struct Pending {
    connection: Arc<Connection>,
    id: u64,
    operation: String,
    outcome: Receiver<Outcome>,
    over: bool,
}

impl Pending {
    /// Waits for the answer, at most `limit`; then the call is cancelled over there.
    pub fn wait<R: DeserializeOwned>(mut self, limit: Duration) -> Result<R, ReachError> {
        let machine = self.connection.name.clone();
        let operation = self.operation.clone();
        let outcome = match self.outcome.recv_timeout(limit) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => {
                return Err(ReachError::TimedOut {
                    machine,
                    operation,
                    after: limit,
                    detail: String::new(),
                });
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.over = true;
                return Err(self.connection.shared.why_ended());
            }
        };
        self.over = true;
        match outcome {
            Ok(value) => serde_json::from_value(value).map_err(|error| ReachError::Answer {
                machine,
                operation,
                detail: error.to_string(),
            }),
            Err(message) => Err(ReachError::Operation {
                machine,
                operation,
                message,
            }),
        }
    }

    /// Tells the far end that nobody waits any more.
    pub fn cancel(self) {
        drop(self);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.over && self.connection.shared.forget(self.id) {
            // Two numbers always encode. If the line can't be sent, the connection is at its end anyway.
            let line = wire::encode(&CancelLine {
                id: self.id,
                cancel: true,
            })
            .unwrap_or_default();
            let _ = self.connection.send(line, &self.operation);
        }
    }
}

struct Connection {
    name: String,
    hello: Hello,
    next_id: AtomicU64,
    /// `None` only while dropping.
    lines: Option<SyncSender<Vec<u8>>>,
    shared: Arc<Shared>,
    process: Arc<Process>,
}

impl Connection {
    fn open(place: &Place, options: &OpenOptions) -> Result<Self, ReachError> {
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
        let shared = Arc::new(Shared::new(name.clone()));
        let heard = Stderr::default();
        let (lines, queue) = sync_channel(LINES_WAITING);
        let (greeting, greeted) = channel();

        let reader = Reader {
            place: place.clone(),
            options: options.clone(),
            process: Arc::clone(&process),
            heard: heard.clone(),
            shared: Arc::clone(&shared),
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
                reason: format!("this machine gave no thread to talk to it with: {error}"),
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
                shared,
                process,
            }),
            Err(error) => {
                process.kill();
                Err(error)
            }
        }
    }

    fn send(&self, line: Vec<u8>, operation: &str) -> Result<(), ReachError> {
        match self.lines.as_ref().map(|lines| lines.try_send(line)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(ReachError::Params {
                machine: self.name.clone(),
                operation: operation.to_owned(),
                detail: format!(
                    "{LINES_WAITING} earlier calls are still waiting for the far end to read them"
                ),
            }),
            // The writer ends only when the far end has closed its input; the reader learns why, in a moment.
            Some(Err(TrySendError::Disconnected(_))) | None => Err(self.shared.why_ended()),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name)
            .finish_non_exhaustive()
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

fn check_version(machine: &str, hello: Hello) -> Result<Hello, ReachError> {
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
    let mut detail = String::new();
    if let Some(line) = text::last_line(stderr) {
        detail = format!("; it said: {line}");
    }
    if matches!(place, Place::Ssh(_)) {
        detail.push_str("; try by hand whether ssh to that host answers, and how fast");
    }
    detail
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

/// What callers and reader share.
struct Shared {
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Sender<Outcome>>,
    ended: Option<ReachError>,
}

impl Shared {
    fn new(name: String) -> Self {
        Self {
            name,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, id: u64) -> Result<Receiver<Outcome>, ReachError> {
        let (sender, receiver) = channel();
        let mut state = self.lock();
        if let Some(reason) = &state.ended {
            return Err(reason.clone());
        }
        state.waiting.insert(id, sender);
        Ok(receiver)
    }

    /// Whether the call was still waited for.
    fn forget(&self, id: u64) -> bool {
        self.lock().waiting.remove(&id).is_some()
    }

    fn deliver(&self, id: u64, outcome: Outcome) {
        // Nobody waits any more for a call that timed out or was cancelled.
        if let Some(waiting) = self.lock().waiting.remove(&id) {
            let _ = waiting.send(outcome);
        }
    }

    fn end(&self, reason: ReachError) {
        let mut state = self.lock();
        state.ended.get_or_insert(reason);
        state.waiting.clear();
    }

    /// The reason of an end that has been noticed; waits for the reader to find it out.
    fn why_ended(&self) -> ReachError {
        let start = Instant::now();
        loop {
            if let Some(reason) = &self.lock().ended {
                return reason.clone();
            }
            if start.elapsed() > AFTER_CLOSE + LAST_WORDS + Duration::from_secs(1) {
                return early::died(self.name.clone(), None, b"");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

struct Reader {
    place: Place,
    options: OpenOptions,
    process: Arc<Process>,
    heard: Stderr,
    shared: Arc<Shared>,
}

impl Reader {
    fn run(self, output: Output, greeting: &Sender<Result<Hello, ReachError>>) {
        let mut output = BufReader::with_capacity(64 << 10, output);
        match read_hello(&mut output) {
            Ok(hello) => {
                let _ = greeting.send(Ok(hello));
                let end = read_replies(&mut output, &self.shared);
                self.shared.end(self.explain(end, false));
            }
            Err(end) => {
                let _ = greeting.send(Err(self.explain(end, true)));
            }
        }
    }

    fn explain(&self, end: End, early: bool) -> ReachError {
        match end {
            End::Rubbish(detail) => {
                self.process.kill();
                ReachError::Rubbish {
                    machine: self.shared.name.clone(),
                    detail,
                }
            }
            End::Closed => {
                let exit = self.process.wait(AFTER_CLOSE);
                if exit.is_none() {
                    self.process.kill();
                }
                let stderr = self.heard.tail(LAST_WORDS);
                if early {
                    early::ended(&self.place, &self.options, exit, &stderr)
                } else {
                    early::died(self.shared.name.clone(), exit, &stderr)
                }
            }
        }
    }
}

/// How the agent's output ended.
#[derive(Debug)]
enum End {
    Closed,
    Rubbish(String),
}

fn read_hello(output: &mut impl BufRead) -> Result<Hello, End> {
    let mut seen = 0;
    let line = loop {
        match wire::read_line(output, wire::HELLO_LIMIT) {
            Ok(Line::Blank) if seen < wire::HELLO_LIMIT => seen += 1,
            Ok(Line::End(rest)) if rest.trim_ascii().is_empty() => return Err(End::Closed),
            Ok(Line::Blank) => break Vec::new(),
            Ok(Line::Whole(line) | Line::TooLong(line) | Line::End(line)) => break line,
            Err(_) => return Err(End::Closed),
        }
    };
    serde_json::from_slice(&line).map_err(|_| {
        End::Rubbish(format!(
            "something else than a wirespeed agent answered; it began with \"{}\"; if that is from a shell start-up file such as .bashrc over there, keep it from printing when there is no terminal",
            text::beginning(&line, 120)
        ))
    })
}

fn read_replies(output: &mut impl BufRead, shared: &Shared) -> End {
    loop {
        let line = match wire::read_line(output, wire::LINE_LIMIT) {
            Ok(Line::Whole(line)) => line,
            Ok(Line::Blank) => continue,
            Ok(Line::TooLong(line)) => {
                return End::Rubbish(format!(
                    "the agent sent a line of more than {} MiB; it began with \"{}\"",
                    wire::LINE_LIMIT >> 20,
                    text::beginning(&line, 80)
                ));
            }
            Ok(Line::End(_)) | Err(_) => return End::Closed,
        };
        match wire::decode_reply(&line) {
            Ok((wire::CONNECTION_ID, outcome)) => {
                let complaint = outcome.err().unwrap_or_default();
                return End::Rubbish(format!(
                    "the agent did not understand us: {}",
                    text::lines(complaint.as_bytes())
                ));
            }
            Ok((id, outcome)) => shared.deliver(id, outcome),
            Err(why) => return End::Rubbish(format!("what the agent sent can't be read: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn a_greeting_may_follow_empty_lines_only() {
        let greeting =
            b"\r\n{\"wirespeed\":\"0.1.0\",\"protocol\":1,\"host\":\"a\",\"netns\":null}\n";
        assert_eq!(read_hello(&mut greeting.as_slice()).unwrap().host, "a");
        let End::Rubbish(detail) =
            read_hello(&mut b"Welcome, \x1b[1mroot\n{}\n".as_slice()).unwrap_err()
        else {
            panic!("a banner is rubbish");
        };
        assert!(
            detail.contains("Welcome, \\u{1b}[1mroot") && detail.contains(".bashrc"),
            "{detail}"
        );
        assert!(matches!(read_hello(&mut b"".as_slice()), Err(End::Closed)));
    }

    proptest! {
        #[test]
        fn arbitrary_output_is_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let shared = Shared::new("here".to_owned());
            let _ = read_hello(&mut bytes.as_slice());
            let _ = read_replies(&mut bytes.as_slice(), &shared);
        }

        #[test]
        fn only_the_call_meant_gets_the_reply(ids in proptest::collection::vec(1_u64..6, 0..12)) {
            let shared = Shared::new("here".to_owned());
            let receiver = shared.expect(3).unwrap();
            let lines = ids.iter().fold(String::new(), |lines, id| {
                lines + &format!("{{\"id\":{id},\"ok\":{id}}}\n")
            });
            let end = read_replies(&mut lines.as_bytes(), &shared);
            prop_assert!(matches!(end, End::Closed));
            let got = receiver.try_recv().ok();
            prop_assert_eq!(got.is_some(), ids.contains(&3));
            if let Some(outcome) = got {
                prop_assert_eq!(outcome, Ok(serde_json::json!(3)));
            }
        }
    }
}
