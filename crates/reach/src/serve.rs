//! The far end: reads requests, runs each in a thread of its own, writes replies.
//!
//! Input thread → bounded queue → this loop → one thread per call → serialized output. The loop ends when the
//! input ends, when nobody reads the output any more, or when the client has been silent for so long that it
//! must be gone; then every running call is told, and gets a bounded time to end.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::{BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ReachError;
use crate::call::Call;
use crate::text;
use crate::wire::{self, ErrorLine, Hello, Line, OkLine, Request};

/// How long calls may take to end after the other side has gone.
pub(crate) const CLEAN_END: Duration = Duration::from_secs(3);
/// A client sends at least an empty line every [`crate::machine::KEEP_ALIVE`]; one silent for this long is gone,
/// even if the ssh server has not noticed (its TCP connection may outlive a dead path by hours).
const SILENCE: Duration = Duration::from_secs(60);
/// Calls that run at once.
const CALLS_AT_ONCE: usize = 64;
/// Longest error message sent, bytes.
const MESSAGE_LIMIT: usize = 64 << 10;

/// What an agent can do: operations by name. `ping`, which answers `null`, is always among them.
#[derive(Default)]
pub struct Operations {
    handlers: HashMap<&'static str, Arc<Handler>>,
}

/// Runs one call and gives the whole reply line for its id.
type Handler = dyn Fn(u64, Value, &Call) -> Result<Vec<u8>, String> + Send + Sync;

impl Operations {
    /// Adds an operation. Its handler runs in a thread of its own per call, several at once; its error reaches the
    /// caller as [`ReachError::Operation`], and so does its panic.
    ///
    /// # Panics
    /// When the name is taken: two crates would each believe the operation to be theirs.
    pub fn add<P, R, E>(
        &mut self,
        name: &'static str,
        run: impl Fn(P, &Call) -> Result<R, E> + Send + Sync + 'static,
    ) where
        P: DeserializeOwned,
        R: Serialize,
        E: Display,
    {
        let handler = move |id: u64, params: Value, call: &Call| {
            let params = serde_json::from_value(params)
                .map_err(|error| format!("the parameters of {name} do not fit: {error}"))?;
            let result = run(params, call).map_err(|error| error.to_string())?;
            wire::encode(&OkLine { id, ok: &result })
                .map_err(|why| format!("the answer of {name} can't be sent: {why}"))
        };
        let before = self.handlers.insert(name, Arc::new(handler));
        assert!(before.is_none(), "operation {name} was added twice");
    }
}

/// Serves `operations` to the one client at the other end of `input` and `output`. Returns when the client has
/// gone, after every running call has seen [`Call::cancelled`] and ended, or three seconds later.
///
/// # Errors
/// [`ReachError::Rubbish`] when the client sends what isn't a request, [`ReachError::NotStarted`] when this
/// machine gives no thread.
pub fn serve(
    mut operations: Operations,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), ReachError> {
    operations
        .handlers
        .entry("ping")
        .or_insert_with(|| Arc::new(ping));
    let (events, inbox) = sync_channel(4);
    let output = Arc::new(Output {
        writer: Mutex::new(Box::new(output)),
        broken: AtomicBool::new(false),
        events: events.clone(),
    });
    output.send(&wire::encode(&hello()).unwrap_or_default());
    thread::Builder::new()
        .name("agent-input".to_owned())
        .spawn(move || read_requests(input, &events))
        .map_err(|error| ReachError::NotStarted {
            machine: CLIENT.to_owned(),
            reason: format!("the agent got no thread to read requests with: {error}"),
        })?;

    let running = Arc::new(Running::default());
    let ended = attend(&operations, &inbox, &output, &running);
    if let Err(ReachError::Rubbish { detail, .. }) = &ended {
        output.refuse(wire::CONNECTION_ID, detail);
    }
    running.cancel_all();
    running.wait_until_ended(CLEAN_END);
    ended
}

/// How errors name the other side of an agent.
const CLIENT: &str = "the program that started this agent";

fn ping(id: u64, _params: Value, _call: &Call) -> Result<Vec<u8>, String> {
    wire::encode(&OkLine { id, ok: &() })
}

enum Event {
    Request(Request),
    KeepAlive,
    Rubbish(String),
    InputEnded,
    OutputBroken,
}

fn attend(
    operations: &Operations,
    inbox: &Receiver<Event>,
    output: &Arc<Output>,
    running: &Arc<Running>,
) -> Result<(), ReachError> {
    loop {
        let event = inbox.recv_timeout(SILENCE);
        if output.broken.load(Ordering::Relaxed) {
            return Ok(());
        }
        match event {
            Ok(Event::Request(request)) => match request.call {
                None => running.cancel(request.id),
                Some(name) => {
                    if let Err(why) = start(
                        operations,
                        request.id,
                        &name,
                        request.params,
                        output,
                        running,
                    ) {
                        output.refuse(request.id, &why);
                    }
                }
            },
            Ok(Event::KeepAlive) => {}
            Ok(Event::Rubbish(detail)) => {
                return Err(ReachError::Rubbish {
                    machine: CLIENT.to_owned(),
                    detail,
                });
            }
            Ok(Event::InputEnded | Event::OutputBroken)
            | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn start(
    operations: &Operations,
    id: u64,
    name: &str,
    params: Value,
    output: &Arc<Output>,
    running: &Arc<Running>,
) -> Result<(), String> {
    let (&name, handler) = operations.handlers.get_key_value(name).ok_or_else(|| {
        format!(
            "wirespeed {} has no operation {}",
            wire::VERSION,
            text::beginning(name.as_bytes(), 80)
        )
    })?;
    let call = running.enter(id)?;
    let work = {
        let (handler, output, running) =
            (Arc::clone(handler), Arc::clone(output), Arc::clone(running));
        move || {
            let result = catch_unwind(AssertUnwindSafe(|| handler(id, params, &call)))
                .unwrap_or_else(|panic| {
                    Err(format!(
                        "{name} failed by a bug of wirespeed: {}",
                        panic_text(&*panic)
                    ))
                });
            // The place is free before the client knows, so that its next call never finds the agent full.
            running.free_place();
            match result {
                Ok(line) => output.send(&line),
                Err(message) => output.refuse(id, &message),
            }
            running.leave(id);
        }
    };
    thread::Builder::new()
        .name(format!("op-{name}"))
        .spawn(work)
        .map(drop)
        .map_err(|error| {
            running.free_place();
            running.leave(id);
            format!("{name} got no thread on that machine: {error}")
        })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

fn read_requests(input: impl Read, events: &SyncSender<Event>) {
    let mut input = BufReader::with_capacity(64 << 10, input);
    loop {
        let event = match wire::read_line(&mut input, wire::LINE_LIMIT) {
            Ok(Line::Whole(line)) => {
                wire::decode_request(&line).map_or_else(Event::Rubbish, Event::Request)
            }
            Ok(Line::Blank) => Event::KeepAlive,
            Ok(Line::TooLong(_)) => Event::Rubbish(format!(
                "a request of more than {} MiB",
                wire::LINE_LIMIT >> 20
            )),
            // A line cut short is a client that died in the middle of it; an input that can't be read is one lost.
            Ok(Line::End(_)) | Err(_) => Event::InputEnded,
        };
        let last = matches!(event, Event::Rubbish(_) | Event::InputEnded);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Whole lines, one at a time. A client that does not read any more ends the agent quietly.
struct Output {
    writer: Mutex<Box<dyn Write + Send>>,
    broken: AtomicBool,
    events: SyncSender<Event>,
}

impl Output {
    fn send(&self, line: &[u8]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer
            .write_all(line)
            .and_then(|()| writer.flush())
            .is_err()
        {
            self.broken.store(true, Ordering::Relaxed);
            // If the queue is full, the loop is about to look at the flag anyway.
            let _ = self.events.try_send(Event::OutputBroken);
        }
    }

    fn refuse(&self, id: u64, error: &str) {
        let mut end = error.len().min(MESSAGE_LIMIT);
        while !error.is_char_boundary(end) {
            end -= 1;
        }
        let error = &error[..end];
        // A number and a bounded string always encode.
        self.send(&wire::encode(&ErrorLine { id, error }).unwrap_or_default());
    }
}

/// The calls that have not ended.
#[derive(Default)]
struct Running {
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

    fn enter(&self, id: u64) -> Result<Call, String> {
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

    fn free_place(&self) {
        self.lock().at_work -= 1;
    }

    fn leave(&self, id: u64) {
        let mut calls = self.lock();
        calls.by_id.remove(&id);
        if calls.by_id.is_empty() {
            self.all_ended.notify_all();
        }
    }

    fn cancel(&self, id: u64) {
        // A call that has ended meanwhile is no mistake: its reply and the cancel crossed.
        if let Some(call) = self.lock().by_id.get(&id) {
            call.cancel();
        }
    }

    fn cancel_all(&self) {
        self.lock().by_id.values().for_each(Call::cancel);
    }

    fn wait_until_ended(&self, limit: Duration) {
        let calls = self.lock();
        let _ended = self
            .all_ended
            .wait_timeout_while(calls, limit, |calls| !calls.by_id.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
    }
}

fn hello() -> Hello {
    Hello {
        wirespeed: wire::VERSION.to_owned(),
        protocol: wire::PROTOCOL,
        host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        netns: own_netns(),
    }
}

/// The name of the network namespace this process is in, if `ip netns` knows it by one.
fn own_netns() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let own = std::fs::metadata("/proc/self/ns/net").ok()?;
    std::fs::read_dir("/run/netns")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let named = entry.path().metadata().ok()?;
            (named.dev() == own.dev() && named.ino() == own.ino())
                .then(|| entry.file_name().to_string_lossy().into_owned())
        })
}
