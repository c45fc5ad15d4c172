//! The far end: reads requests, runs each in a thread of its own, writes replies.
//!
//! Input thread → bounded queue → this loop → one thread per call → serialized output. The loop ends when the
//! input ends, when nobody reads the output any more, or when the client has been silent for so long that it
//! must be gone; then every running call is told, and gets a bounded time to end.

use std::any::Any;
use std::io::{BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::error::{NotStartedReason, ReachError};
use crate::operations::Operations;
use crate::running::Running;
use crate::text;
use crate::wire::{self, ErrorLine, Hello, Line, Request};

/// How long calls may take to end after the other side has gone.
pub(crate) const CLEAN_END: Duration = Duration::from_secs(3);
/// A client sends at least an empty line every ten seconds; one silent for this long is gone, even if the ssh
/// server has not noticed (its TCP connection may outlive a dead path by hours).
const SILENCE: Duration = Duration::from_secs(60);
/// Longest error message sent, bytes.
const MESSAGE_LIMIT: usize = 64 << 10;

/// Serves `operations` to the one client at the other end of `input` and `output`. Returns when the client has
/// gone, after every running call has seen [`crate::Call::cancelled`] and ended, or three seconds later.
///
/// # Errors
/// [`ReachError::Rubbish`] when the client sends what isn't a request, [`ReachError::Silent`] when it shows no sign
/// of life for a minute, [`ReachError::NotStarted`] when this machine gives no thread.
#[expect(
    clippy::needless_pass_by_value,
    reason = "an agent serves once, and its operations end with it"
)]
pub fn serve(
    operations: Operations,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), ReachError> {
    serve_until_silent(&operations, input, output, SILENCE)
}

fn serve_until_silent(
    operations: &Operations,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    silence: Duration,
) -> Result<(), ReachError> {
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
            reason: NotStartedReason::NoThread {
                detail: error.to_string(),
            },
        })?;

    let running = Arc::new(Running::default());
    let ended = attend(operations, &inbox, &output, &running, silence);
    if let Err(ReachError::Rubbish { detail, .. }) = &ended {
        output.refuse(wire::CONNECTION_ID, detail);
    }
    running.cancel_all();
    running.wait_until_ended(CLEAN_END);
    ended
}

/// How errors name the other side of an agent.
const CLIENT: &str = "the program that started this agent";

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
    silence: Duration,
) -> Result<(), ReachError> {
    loop {
        let event = inbox.recv_timeout(silence);
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
            Ok(Event::InputEnded | Event::OutputBroken) | Err(RecvTimeoutError::Disconnected) => {
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(ReachError::Silent {
                    machine: CLIENT.to_owned(),
                    after: silence,
                });
            }
        }
    }
}

fn start(
    operations: &Operations,
    id: u64,
    name: &str,
    params: Option<Box<RawValue>>,
    output: &Arc<Output>,
    running: &Arc<Running>,
) -> Result<(), String> {
    let (name, handler) = operations.find(name).ok_or_else(|| {
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
            let result = catch_unwind(AssertUnwindSafe(|| handler(id, params.as_deref(), &call)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::running::CALLS_AT_ONCE;
    use proptest::prelude::*;
    use std::io::{BufRead, PipeReader, PipeWriter, pipe};
    use std::sync::atomic::AtomicUsize;
    use std::thread::JoinHandle;
    use std::time::Instant;

    /// An agent in this process, the pipes to it, and its end.
    struct Agent {
        requests: PipeWriter,
        replies: BufReader<PipeReader>,
        end: JoinHandle<Result<(), ReachError>>,
    }

    impl Agent {
        fn start(operations: Operations, silence: Duration) -> Self {
            let (input, requests) = pipe().unwrap();
            let (replies, output) = pipe().unwrap();
            let end =
                thread::spawn(move || serve_until_silent(&operations, input, output, silence));
            let mut agent = Self {
                requests,
                replies: BufReader::new(replies),
                end,
            };
            assert_eq!(agent.reply()["protocol"], wire::PROTOCOL);
            agent
        }

        fn ask(&mut self, line: &str) {
            self.requests.write_all(line.as_bytes()).unwrap();
            self.requests.write_all(b"\n").unwrap();
        }

        fn reply(&mut self) -> serde_json::Value {
            let mut line = String::new();
            self.replies.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap_or_default()
        }
    }

    fn operations() -> Operations {
        let mut operations = Operations::default();
        operations.add("double", |number: i64, _: &Call| {
            Ok::<_, String>(number * 2)
        });
        operations.add("sleep", |seconds: f64, call: &Call| {
            if call.sleep(Duration::from_secs_f64(seconds)) {
                Ok(())
            } else {
                Err("was cancelled")
            }
        });
        operations.add("panic", |(): (), _: &Call| -> Result<(), String> {
            panic!("on purpose")
        });
        operations.add("big", |(): (), _: &Call| {
            Ok::<_, String>("x".repeat(wire::LINE_LIMIT))
        });
        operations
    }

    fn agent() -> Agent {
        Agent::start(operations(), Duration::from_secs(60))
    }

    #[test]
    fn calls_are_answered() {
        let mut agent = agent();
        agent.ask(r#"{"id":1,"call":"double","params":21}"#);
        assert_eq!(agent.reply(), serde_json::json!({"id": 1, "ok": 42}));
        agent.ask(r#"{"id":2,"call":"ping"}"#);
        assert_eq!(agent.reply(), serde_json::json!({"id": 2, "ok": null}));
    }

    #[test]
    fn what_fails_is_an_error_reply_and_the_agent_lives() {
        let mut agent = agent();
        for (line, expected) in [
            (
                r#"{"id":1,"call":"double","params":"x"}"#,
                "parameters of double",
            ),
            (r#"{"id":2,"call":"nonesuch"}"#, "no operation nonesuch"),
            (r#"{"id":3,"call":"panic"}"#, "on purpose"),
            (r#"{"id":4,"call":"big"}"#, "16 MiB"),
        ] {
            agent.ask(line);
            let reply = agent.reply();
            assert!(
                reply["error"]
                    .as_str()
                    .unwrap_or_default()
                    .contains(expected),
                "{line}: {reply}"
            );
        }
        agent.ask(r#"{"id":5,"call":"ping"}"#);
        assert_eq!(agent.reply()["id"], 5);
    }

    #[test]
    fn a_cancelled_call_ends_at_once() {
        let mut agent = agent();
        let start = Instant::now();
        agent.ask(r#"{"id":1,"call":"sleep","params":30}"#);
        agent.ask(r#"{"id":1,"cancel":true}"#);
        agent.ask(r#"{"id":7,"cancel":true}"#);
        assert_eq!(agent.reply()["error"], "was cancelled");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn calls_beyond_the_bound_are_refused_and_the_others_go_on() {
        let mut agent = agent();
        for id in 1..=CALLS_AT_ONCE + 1 {
            agent.ask(&format!(r#"{{"id":{id},"call":"sleep","params":60}}"#));
        }
        let reply = agent.reply();
        assert_eq!(reply["id"], CALLS_AT_ONCE + 1);
        assert!(
            reply["error"]
                .as_str()
                .unwrap()
                .contains("already runs 64 calls"),
            "{reply}"
        );
        agent.ask(r#"{"id":5,"cancel":true}"#);
        assert_eq!(
            agent.reply(),
            serde_json::json!({"id": 5, "error": "was cancelled"})
        );
        agent.ask(r#"{"id":900,"call":"ping"}"#);
        assert_eq!(agent.reply()["id"], 900);
    }

    #[test]
    fn at_the_end_of_input_running_calls_end_cleanly() {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut operations = Operations::default();
        operations.add("clean", {
            let ended = Arc::clone(&ended);
            move |(): (), call: &Call| {
                call.sleep(Duration::from_secs(60));
                thread::sleep(Duration::from_millis(100));
                ended.fetch_add(1, Ordering::SeqCst);
                Ok::<_, String>(())
            }
        });
        let mut agent = Agent::start(operations, Duration::from_secs(60));
        agent.ask(r#"{"id":1,"call":"clean"}"#);
        agent.ask(r#"{"id":2,"call":"clean"}"#);
        drop(agent.requests);
        assert_eq!(agent.end.join().unwrap(), Ok(()));
        assert_eq!(ended.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_deaf_call_does_not_hold_up_the_end() {
        let mut operations = Operations::default();
        operations.add("deaf", |(): (), _: &Call| {
            thread::sleep(Duration::from_secs(30));
            Ok::<_, String>(())
        });
        let mut agent = Agent::start(operations, Duration::from_secs(60));
        agent.ask(r#"{"id":1,"call":"deaf"}"#);
        let start = Instant::now();
        drop(agent.requests);
        assert_eq!(agent.end.join().unwrap(), Ok(()));
        assert!(
            start.elapsed() >= CLEAN_END && start.elapsed() < CLEAN_END + Duration::from_secs(10)
        );
    }

    #[test]
    fn a_client_that_reads_no_more_ends_the_agent_quietly() {
        let mut agent = agent();
        agent.ask(r#"{"id":1,"call":"sleep","params":60}"#);
        agent.ask(r#"{"id":2,"call":"ping"}"#);
        assert_eq!(agent.reply()["id"], 2);
        drop(agent.replies);
        agent
            .requests
            .write_all(b"{\"id\":3,\"call\":\"ping\"}\n")
            .unwrap();
        assert_eq!(agent.end.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_silent_client_is_gone_and_a_sign_of_life_is_enough() {
        let mut agent = Agent::start(operations(), Duration::from_millis(1500));
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(500));
            agent.ask("");
        }
        assert!(!agent.end.is_finished());
        assert!(matches!(
            agent.end.join().unwrap(),
            Err(ReachError::Silent { .. })
        ));
    }

    #[test]
    fn rubbish_is_answered_with_what_was_expected() {
        let mut agent = agent();
        agent.ask("GET / HTTP/1.1");
        let reply = agent.reply();
        assert_eq!(reply["id"], wire::CONNECTION_ID);
        assert!(
            reply["error"].as_str().unwrap().contains("GET / HTTP/1.1"),
            "{reply}"
        );
        assert!(matches!(
            agent.end.join().unwrap(),
            Err(ReachError::Rubbish { .. })
        ));
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let agent = agent();
        let mut requests = agent.requests;
        let piece = vec![b'x'; 1 << 20];
        while requests.write_all(&piece).is_ok() {}
        assert!(matches!(
            agent.end.join().unwrap(),
            Err(ReachError::Rubbish { .. })
        ));
    }

    #[test]
    #[should_panic(expected = "added twice")]
    fn a_name_is_for_one_operation() {
        let mut operations = operations();
        operations.add("double", |(): (), _: &Call| Ok::<_, String>(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn arbitrary_input_is_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = serve(operations(), std::io::Cursor::new(bytes), std::io::sink());
        }
    }
}
