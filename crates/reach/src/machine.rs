//! A machine as the rest of the program sees it: calls and their answers.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::Connection;
use crate::error::ReachError;
use crate::options::OpenOptions;
use crate::place::Place;
use crate::text;
use crate::wire::{self, CallLine, CancelLine, Outcome};

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
        self.connection.name()
    }

    /// The host name over there.
    pub fn host(&self) -> &str {
        &self.connection.hello().host
    }

    /// The name of the network namespace the agent runs in, if it has one over there.
    pub fn netns(&self) -> Option<&str> {
        self.connection.hello().netns.as_deref()
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
        let id = connection.next_id();
        let line = wire::encode(&CallLine {
            id,
            call: operation,
            params,
        })
        .map_err(|detail| ReachError::NotCalled {
            machine: connection.name().to_owned(),
            operation: operation.to_owned(),
            detail: format!("its parameters can't be sent: {detail}"),
        })?;
        let outcome = connection.expect(id)?;
        let pending = Pending {
            connection: Arc::clone(connection),
            id,
            operation: operation.to_owned(),
            outcome,
            answered: false,
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

/// Most objects and lists in an answer: a snapshot of tens of thousands of peers has fewer. An empty object takes two
/// letters of a line, and may become hundreds of bytes.
const OPENINGS_AT_MOST: usize = 1 << 18;

/// Reads what came back from a call.
pub(crate) fn answer<R: DeserializeOwned>(
    outcome: Outcome,
    machine: &str,
    operation: &str,
) -> Result<R, ReachError> {
    let answer = outcome.map_err(|message| ReachError::Operation {
        machine: machine.to_owned(),
        operation: operation.to_owned(),
        message: text::message(&message),
    })?;
    let bytes = answer.get().bytes();
    if bytes.filter(|byte| matches!(byte, b'{' | b'[')).count() > OPENINGS_AT_MOST {
        return Err(ReachError::Rubbish {
            machine: machine.to_owned(),
            detail: format!(
                "its answer to {operation} is of more parts than any answer has; look at what answers there in place of wirespeed"
            ),
        });
    }
    serde_json::from_str(answer.get()).map_err(|error| ReachError::Answer {
        machine: machine.to_owned(),
        operation: operation.to_owned(),
        // The error quotes what was said over there.
        detail: text::beginning(error.to_string().as_bytes(), 300),
    })
}

/// A call on its way. Dropping it cancels the call.
pub struct Pending {
    connection: Arc<Connection>,
    id: u64,
    operation: String,
    outcome: Receiver<Outcome>,
    answered: bool,
}

impl Pending {
    /// Waits for the answer, at most `limit`; then the call is cancelled over there.
    ///
    /// # Errors
    /// As [`Machine::call`].
    pub fn wait<R: DeserializeOwned>(mut self, limit: Duration) -> Result<R, ReachError> {
        let machine = self.connection.name().to_owned();
        let operation = self.operation.clone();
        match self.outcome.recv_timeout(limit) {
            Ok(outcome) => {
                self.answered = true;
                answer(outcome, &machine, &operation)
            }
            Err(RecvTimeoutError::Timeout) => Err(ReachError::TimedOut {
                machine,
                operation,
                after: limit,
                detail: "; the call was cancelled there; if it repeats, that machine is overloaded or the way to it is broken"
                    .to_owned(),
            }),
            Err(RecvTimeoutError::Disconnected) => Err(self.connection.why_ended()),
        }
    }

    /// Tells the far end that nobody waits any more.
    pub fn cancel(self) {
        drop(self);
    }

    /// A way to cancel this call, and no other, while somebody else waits for it: it ends early over there, and how it
    /// ended then is its answer.
    pub fn canceller(&self) -> impl Fn() + Send + use<> {
        let (connection, id) = (Arc::clone(&self.connection), self.id);
        let operation = self.operation.clone();
        move || cancel(&connection, id, &operation)
    }
}

fn cancel(connection: &Connection, id: u64, operation: &str) {
    // A number and a flag always encode. If the line can't be sent, the connection is at its end anyway.
    let line = wire::encode(&CancelLine { id, cancel: true }).unwrap_or_default();
    let _ = connection.send(line, operation);
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("machine", &self.connection.name())
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.answered && self.connection.forget(self.id) {
            cancel(&self.connection, self.id, &self.operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_million_parts_is_not_read() {
        let parts = |count: usize| {
            let text = format!("[{}{{}}]", "{},".repeat(count - 2));
            let outcome = serde_json::value::RawValue::from_string(text);
            answer::<Vec<serde::de::IgnoredAny>>(Ok(outcome.unwrap()), "ssh://far", "facts")
        };
        assert_eq!(parts(OPENINGS_AT_MOST).unwrap().len(), OPENINGS_AT_MOST - 1);
        let error = parts(OPENINGS_AT_MOST + 1).unwrap_err();
        assert!(matches!(error, ReachError::Rubbish { .. }), "{error}");
    }

    #[test]
    fn machines_are_shared_and_calls_handed_over_between_threads() {
        fn shared<T: Send + Sync>() {}
        fn handed_over<T: Send>() {}
        shared::<Machine>();
        handed_over::<Pending>();
    }
}
