//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Each takes any bytes, gives them to one side of a connection as the crate itself would, and panics when what comes
//! out breaks a promise. Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use std::io::{self, Cursor, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::replies::{End, Waiting, read_hello, read_replies};
use crate::{Call, OpenOptions, Operations, Place, ReachError, connection, early, machine, serve};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// What an agent, or whatever else was started in its place, writes: the greeting and the replies, and the same bytes
/// on its standard error.
pub fn client(output: &[u8]) {
    let mut rest = output;
    match read_hello(&mut rest) {
        Ok(hello) => {
            harmless(&hello.host);
            if let Err(error) = connection::check_version("here", hello) {
                harmless(&error.to_string());
            }
            replies(&mut rest);
        }
        Err(end) => ended(end),
    }
    replies(&mut &output[..]);
    for place in ["here", "netns:a", "ssh://a"] {
        let place: Place = place.parse().expect("a place");
        for code in [1, 127, 255] {
            let exit = ExitStatus::from_raw(code << 8);
            let error = early::ended(&place, &OpenOptions::default(), Some(exit), output);
            harmless(&error.to_string());
        }
    }
}

fn replies(output: &mut &[u8]) {
    let waiting = Waiting::default();
    let callers: Vec<_> = (1..4).map(|id| waiting.expect(id)).collect();
    ended(read_replies(output, &waiting));
    for caller in callers.into_iter().flatten() {
        if let Ok(outcome) = caller.try_recv() {
            let answer: Result<Answer, ReachError> = machine::answer(outcome, "here", "facts");
            if let Err(error) = answer {
                harmless(&error.to_string().replace('\n', " "));
            }
        }
    }
}

/// An answer whose shape can be missed in many ways.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only whether it can be read matters")]
enum Answer {
    Text(String),
    Numbers { first: u8, second: Vec<f64> },
    Nothing,
}

fn ended(end: End) {
    match end {
        End::Closed => {}
        End::Foreign(text) | End::Rubbish(text) => harmless(&text),
    }
}

/// Text for a person: short, and nothing a terminal would obey.
fn harmless(text: &str) {
    assert!(text.len() < 8192, "{} bytes", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// What a client sends an agent.
pub fn agent(input: &[u8]) {
    let mut operations = Operations::default();
    operations.add("echo", |value: Value, _: &Call| Ok::<_, String>(value));
    operations.add("sum", |numbers: Vec<u32>, call: &Call| {
        let sum = numbers
            .iter()
            .try_fold(0_u32, |sum, number| sum.checked_add(*number));
        match sum {
            Some(_) if call.cancelled() => Err("cancelled"),
            Some(sum) => Ok(sum),
            None => Err("too large a sum"),
        }
    });
    let output = Lines::default();
    // Ends with the input, or at the first line that is no request.
    if let Err(error) = serve(operations, Cursor::new(input.to_vec()), output.clone()) {
        harmless(&error.to_string());
    }
    let output = output.0.lock().expect("nobody writes any more");
    assert!(output.ends_with(b"\n"), "whole lines");
    let mut lines = output[..output.len() - 1].split(|byte| *byte == b'\n');
    let hello: Value =
        serde_json::from_slice(lines.next().unwrap_or_default()).expect("a greeting");
    assert_eq!(hello["protocol"], json!(crate::wire::PROTOCOL));
    for line in lines {
        let _outcome = crate::wire::decode_reply(line).expect("a reply");
    }
}

/// Everything the agent wrote.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .map_err(|_| io::Error::other("a writer panicked"))?
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_read() {
        corpus("reach_client", super::client);
        corpus("reach_agent", super::agent);
    }
}
