//! What the agent says: the greeting, then replies, each to the caller that waits for it; and how it ends.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::child::{Output, Process, Stderr};
use crate::early;
use crate::error::ReachError;
use crate::options::OpenOptions;
use crate::place::Place;
use crate::text;
use crate::wire::{self, Hello, Line, Outcome};

/// How long a child may live on after it closed its output.
pub(crate) const AFTER_CLOSE: Duration = Duration::from_secs(1);
/// How long to wait for the last words of a child that has ended.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(300);

/// The reader thread of one connection.
pub(crate) struct Reader {
    pub(crate) place: Place,
    pub(crate) options: OpenOptions,
    pub(crate) process: Arc<Process>,
    pub(crate) heard: Stderr,
    pub(crate) waiting: Arc<Waiting>,
}

impl Reader {
    /// Reads until the end of the output; afterwards the agent's process is gone.
    pub(crate) fn run(self, output: Output, greeting: &Sender<Result<Hello, ReachError>>) {
        let mut output = BufReader::with_capacity(64 << 10, output);
        match read_hello(&mut output) {
            Ok(hello) => {
                // Whoever opens may have given up just now; it then kills the child, and the replies end.
                let _ = greeting.send(Ok(hello));
                let end = read_replies(&mut output, &self.waiting);
                self.waiting.end(self.explain(end, early::died));
            }
            Err(end) => {
                let _ = greeting.send(Err(self.explain(end, |place, exit, stderr| {
                    early::ended(place, &self.options, exit, stderr)
                })));
            }
        }
    }

    fn explain(
        &self,
        end: End,
        closed: impl Fn(&Place, Option<std::process::ExitStatus>, &[u8]) -> ReachError,
    ) -> ReachError {
        match end {
            End::Foreign(beginning) => {
                self.process.kill();
                let advice = match self.place {
                    Place::Ssh(_) => {
                        "if that comes from a shell start-up file there, such as .bashrc, keep it from printing without a terminal; else name the right program"
                    }
                    _ => "name the right program",
                };
                ReachError::Rubbish {
                    machine: self.place.to_string(),
                    detail: format!(
                        "not a wirespeed agent: the first thing it printed is \"{beginning}\"; {advice}"
                    ),
                }
            }
            End::Rubbish(detail) => {
                self.process.kill();
                ReachError::Rubbish {
                    machine: self.place.to_string(),
                    detail,
                }
            }
            End::Closed => {
                let exit = self.process.wait(AFTER_CLOSE);
                if exit.is_none() {
                    self.process.kill();
                }
                closed(&self.place, exit, &self.heard.tail(LAST_WORDS))
            }
        }
    }
}

/// The calls without a reply yet, and why there will be none.
#[derive(Default)]
pub(crate) struct Waiting {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, Sender<Outcome>>,
    ended: Option<ReachError>,
}

impl Waiting {
    pub(crate) fn expect(&self, id: u64) -> Result<Receiver<Outcome>, ReachError> {
        let (sender, receiver) = channel();
        let mut state = self.lock();
        if let Some(reason) = &state.ended {
            return Err(reason.clone());
        }
        state.calls.insert(id, sender);
        Ok(receiver)
    }

    pub(crate) fn forget(&self, id: u64) -> bool {
        self.lock().calls.remove(&id).is_some()
    }

    /// The reason of the end, waiting for it to be found out.
    pub(crate) fn why_ended(&self, limit: Duration) -> Option<ReachError> {
        let (state, _) = self
            .ended
            .wait_timeout_while(self.lock(), limit, |state| state.ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.ended.clone()
    }

    fn deliver(&self, id: u64, outcome: Outcome) {
        // Nobody waits any more for a call that timed out or was cancelled.
        if let Some(caller) = self.lock().calls.remove(&id) {
            let _ = caller.send(outcome);
        }
    }

    fn end(&self, reason: ReachError) {
        let mut state = self.lock();
        state.ended = Some(reason);
        state.calls.clear();
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the agent's output ended.
#[derive(Debug)]
pub(crate) enum End {
    Closed,
    /// It began, as given here, with something else than a greeting.
    Foreign(String),
    /// A sentence about what came instead of a reply.
    Rubbish(String),
}

pub(crate) fn read_hello(output: &mut impl BufRead) -> Result<Hello, End> {
    let mut blank_lines = 0;
    let line = loop {
        match wire::read_line(output, wire::HELLO_LIMIT) {
            Ok(Line::Blank) if blank_lines < 100 => blank_lines += 1,
            Ok(Line::Blank) => break Vec::new(),
            Ok(Line::End(rest)) if rest.trim_ascii().is_empty() => return Err(End::Closed),
            Ok(Line::Whole(line) | Line::TooLong(line) | Line::End(line)) => break line,
            Err(_) => return Err(End::Closed),
        }
    };
    let mut hello: Hello = serde_json::from_slice(&line)
        .map_err(|_| End::Foreign(text::beginning(line.trim_ascii(), 120)))?;
    hello.host = text::beginning(hello.host.as_bytes(), 253);
    hello.netns = hello
        .netns
        .map(|name| text::beginning(name.as_bytes(), 255));
    Ok(hello)
}

pub(crate) fn read_replies(output: &mut impl BufRead, waiting: &Waiting) -> End {
    loop {
        let line = match wire::read_line(output, wire::LINE_LIMIT) {
            Ok(Line::Whole(line)) => line,
            Ok(Line::Blank) => continue,
            Ok(Line::TooLong(line)) => {
                return End::Rubbish(format!(
                    "the agent sent a line of more than {} MiB, which began with \"{}\"; install the same version on both machines",
                    wire::LINE_LIMIT >> 20,
                    text::beginning(&line, 80)
                ));
            }
            // A reply cut short is part of the agent's death.
            Ok(Line::End(_)) | Err(_) => return End::Closed,
        };
        match wire::decode_reply(&line) {
            Ok((wire::CONNECTION_ID, outcome)) => {
                let complaint = outcome.err().unwrap_or_default();
                return End::Rubbish(format!(
                    "the agent did not understand this program: {}; install the same version on both machines",
                    text::beginning(complaint.as_bytes(), 300)
                ));
            }
            Ok((id, outcome)) => waiting.deliver(id, outcome),
            Err(why) => {
                return End::Rubbish(format!(
                    "the agent said something that is no reply: {why}; whatever writes to its output there must not"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_greeting_may_follow_empty_lines_only() {
        let greeting =
            b"\r\n{\"wirespeed\":\"0.1.0\",\"protocol\":1,\"host\":\"a\",\"netns\":null}\n";
        assert_eq!(read_hello(&mut greeting.as_slice()).unwrap().host, "a");
        let End::Foreign(beginning) =
            read_hello(&mut b"Welcome, \x1b[1mroot\n{}\n".as_slice()).unwrap_err()
        else {
            panic!("a banner is no greeting");
        };
        assert_eq!(beginning, "Welcome, \\u{1b}[1mroot");
        assert!(matches!(read_hello(&mut b"".as_slice()), Err(End::Closed)));
        let blank = [b'\n'; 1000];
        assert!(matches!(
            read_hello(&mut blank.as_slice()),
            Err(End::Foreign(_))
        ));
    }

    #[test]
    fn a_greeting_of_another_protocol_is_still_a_greeting() {
        let greeting = b"{\"wirespeed\":\"3.0.0\",\"protocol\":9,\"new\":[]}\n";
        assert_eq!(read_hello(&mut greeting.as_slice()).unwrap().protocol, 9);
    }

    #[test]
    fn the_reason_of_the_end_is_for_everyone() {
        let waiting = Waiting::default();
        let receiver = waiting.expect(1).unwrap();
        let reason = ReachError::Rubbish {
            machine: "here".to_owned(),
            detail: "x".to_owned(),
        };
        waiting.end(reason.clone());
        assert!(receiver.recv().is_err());
        assert_eq!(waiting.why_ended(Duration::ZERO), Some(reason.clone()));
        assert_eq!(waiting.expect(2).unwrap_err(), reason);
    }

    proptest! {
        #[test]
        fn arbitrary_output_is_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_hello(&mut bytes.as_slice());
            let _ = read_replies(&mut bytes.as_slice(), &Waiting::default());
        }

        #[test]
        fn only_the_call_meant_gets_the_reply(ids in proptest::collection::vec(1_u64..6, 0..12)) {
            let waiting = Waiting::default();
            let receiver = waiting.expect(3).unwrap();
            let lines = ids.iter().fold(String::new(), |lines, id| {
                lines + &format!("{{\"id\":{id},\"ok\":{id}}}\n")
            });
            prop_assert!(matches!(read_replies(&mut lines.as_bytes(), &waiting), End::Closed));
            let got = receiver.try_recv().ok().map(|outcome| outcome.unwrap().get().to_owned());
            prop_assert_eq!(got, ids.contains(&3).then(|| "3".to_owned()));
        }
    }
}
