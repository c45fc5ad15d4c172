//! Running another program for its output, bounded in time and size.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Why a program gave no usable output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// The program is not there.
    #[error("the program {0} is not installed")]
    Missing(String),
    /// It could not be started.
    #[error("could not start {program}: {source}")]
    NotStarted { program: String, source: io::Error },
    /// It was stopped at its time limit.
    #[error("{program} did not end within {limit:?}")]
    TimedOut { program: String, limit: Duration },
    /// It ended with an error; the first line of its own words.
    #[error("{program} failed: {words}")]
    Failed { program: String, words: String },
    /// More output than expected.
    #[error("{program} printed more than {limit} bytes")]
    TooLong { program: String, limit: usize },
}

/// Runs `program` and returns its standard output. It is killed at `time_limit`.
pub(crate) fn output(
    program: &str,
    arguments: &[&str],
    time_limit: Duration,
    size_limit: usize,
) -> Result<Vec<u8>, ChildError> {
    let deadline = Instant::now() + time_limit;
    let timed_out = || ChildError::TimedOut {
        program: program.to_owned(),
        limit: time_limit,
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ChildError::Missing(program.to_owned()),
            _ => ChildError::NotStarted {
                program: program.to_owned(),
                source,
            },
        })?;
    let standard = read_in_background(child.stdout.take(), size_limit);
    let errors = read_in_background(child.stderr.take(), 4096);

    let left = deadline.saturating_duration_since(Instant::now());
    let received = standard.recv_timeout(left).ok();
    let too_long = received
        .as_ref()
        .is_some_and(|bytes| bytes.len() > size_limit);
    let ended = !too_long && received.is_some() && ends_by(&mut child, deadline);
    if !ended {
        // Killing a child that has just ended is no error worth telling.
        let _ = child.kill();
    }
    let status = child.wait();
    if too_long {
        return Err(ChildError::TooLong {
            program: program.to_owned(),
            limit: size_limit,
        });
    }
    match (received, status) {
        (Some(bytes), Ok(status)) if ended && status.success() => Ok(bytes),
        (_, Ok(status)) if ended => {
            let words = errors
                .recv_timeout(Duration::from_millis(100))
                .map(|bytes| first_line(&bytes))
                .unwrap_or_default();
            Err(ChildError::Failed {
                program: program.to_owned(),
                words: if words.is_empty() {
                    status.to_string()
                } else {
                    words
                },
            })
        }
        _ => Err(timed_out()),
    }
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().lines().next().unwrap_or_default().to_owned()
}

/// Reads at most one byte more than `limit`, so that too much can be told from just enough.
fn read_in_background(
    source: Option<impl Read + Send + 'static>,
    limit: usize,
) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(source) = source {
            // What was read before an error is still shown.
            let _ = source.take(limit as u64 + 1).read_to_end(&mut bytes);
        }
        // Nobody waits any more after the time limit.
        let _ = sender.send(bytes);
    });
    receiver
}

fn ends_by(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn output_comes_back() {
        assert_eq!(output("echo", &["hi"], SECOND, 100).unwrap(), b"hi\n");
    }

    #[test]
    fn a_slow_program_is_stopped() {
        let start = Instant::now();
        let error = output("sleep", &["60"], Duration::from_millis(50), 100).unwrap_err();
        assert!(matches!(error, ChildError::TimedOut { .. }));
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn an_endless_output_is_cut() {
        let error = output("yes", &[], 10 * SECOND, 1000).unwrap_err();
        assert!(matches!(error, ChildError::TooLong { .. }), "{error}");
    }

    #[test]
    fn a_failure_is_told_in_the_programs_words() {
        let error = output("sh", &["-c", "echo no >&2; exit 3"], 10 * SECOND, 100).unwrap_err();
        assert_eq!(error.to_string(), "sh failed: no");
        let error = output("no-such-program-here", &[], SECOND, 100).unwrap_err();
        assert!(matches!(error, ChildError::Missing(_)));
    }
}
