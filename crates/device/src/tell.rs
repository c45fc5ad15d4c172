//! `wirespeed-device --statistics wg0`: what a running device tells of itself, for a person or a script.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::control::STATISTICS_FOLDER;

/// The device answers at once, unless it hangs.
const LIMIT: Duration = Duration::from_secs(5);

/// No document is longer.
const MAX_BYTES: u64 = 64 << 20;

/// Prints the document, or one sentence.
pub fn run(interface: &str) -> ExitCode {
    let path = Path::new(STATISTICS_FOLDER).join(format!("{interface}.stats"));
    match ask(&path) {
        Ok(document) => {
            // Who closed the pipe has read enough.
            let _ = writeln!(io::stdout(), "{document:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let (path, limit) = (path.display(), LIMIT.as_secs());
            let why = match error.kind() {
                io::ErrorKind::NotFound => {
                    format!("no wirespeed-device carries {interface}: {path} isn't there")
                }
                io::ErrorKind::ConnectionRefused => format!(
                    "no wirespeed-device carries {interface}: one that was killed has left {path} behind"
                ),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!(
                        "the wirespeed-device of {interface} doesn't answer at {path} within {limit} s"
                    )
                }
                _ => format!("asking the wirespeed-device of {interface} at {path}: {error}"),
            };
            let _ = writeln!(io::stderr(), "wirespeed-device: {why}");
            ExitCode::FAILURE
        }
    }
}

fn ask(path: &Path) -> io::Result<Value> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut document = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut document)?;
    Ok(serde_json::from_slice(&document)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_document_is_read_whole_and_nothing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wg0.stats");
        assert_eq!(ask(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).unwrap();
        let device = std::thread::spawn(move || {
            for answer in ["{\"up\": true}\n", "{"] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert_eq!(ask(&path).unwrap()["up"], true);
        assert!(ask(&path).is_err());
        device.join().unwrap();
        assert_eq!(
            ask(&path).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        assert_eq!(run("no-such-device"), ExitCode::FAILURE);
    }
}
