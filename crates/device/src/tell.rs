//! `wirespeed-device --statistics wg0`: what a running device tells of itself, for a person or a script.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use wirespeed_help::reason;
use wirespeed_language::clean;

use crate::control::STATISTICS_FOLDER;

/// The device answers at once, unless it hangs.
const LIMIT: Duration = Duration::from_secs(5);

/// No document is longer.
const MAX_BYTES: u64 = 64 << 20;

pub(crate) const NONE_THERE: &str = "help-wirespeed-device-none-there";
pub(crate) const ONE_LEFT_BEHIND: &str = "help-wirespeed-device-one-left-behind";
pub(crate) const NO_ANSWER: &str = "help-wirespeed-device-no-answer";
pub(crate) const NOT_ASKED: &str = "help-wirespeed-device-not-asked";

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
            // No interface has a name that steers a terminal, but anything can be typed.
            let why = clean(&said(interface, &path.display().to_string(), &error));
            let _ = writeln!(io::stderr(), "wirespeed-device: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Why there is no document, in the language of the moment.
fn said(interface: &str, path: &str, error: &io::Error) -> String {
    let (limit, error_said) = (LIMIT.as_secs().to_string(), error.to_string());
    let values = [
        ("interface", interface),
        ("path", path),
        ("limit", &limit),
        ("error", &error_said),
    ];
    match error.kind() {
        io::ErrorKind::NotFound => reason(NONE_THERE, &values, || {
            format!("no wirespeed-device carries {interface}: {path} isn't there")
        }),
        io::ErrorKind::ConnectionRefused => reason(ONE_LEFT_BEHIND, &values, || {
            format!(
                "no wirespeed-device carries {interface}: one that was killed has left {path} behind"
            )
        }),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => reason(NO_ANSWER, &values, || {
            format!("the wirespeed-device of {interface} doesn't answer at {path} within {limit} s")
        }),
        _ => reason(NOT_ASKED, &values, || {
            format!("asking the wirespeed-device of {interface} at {path}: {error}")
        }),
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

    use wirespeed_language::{Language, within};

    use super::*;

    #[test]
    fn why_there_is_none_is_said_in_the_readers_language() {
        for (kind, parts) in [
            (io::ErrorKind::NotFound, ["isn't there", "n’existe pas"]),
            (io::ErrorKind::ConnectionRefused, ["killed", "tué"]),
            (io::ErrorKind::WouldBlock, ["within 5 s", "en 5 s"]),
            (io::ErrorKind::PermissionDenied, ["asking", "interrogé"]),
        ] {
            for (language, part) in Language::ALL.into_iter().zip(parts) {
                let error = io::Error::from(kind);
                let said = within(language, || said("wg0", "/run/wg0.stats", &error));
                for part in [part, "wirespeed-device", " /run/wg0.stats"] {
                    assert!(said.contains(part), "{part} in {said}");
                }
            }
        }
    }

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
