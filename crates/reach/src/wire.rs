//! The lines that go over the connection.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::text;

/// Raised whenever the two sides would misunderstand each other.
pub(crate) const PROTOCOL: u32 = 1;
/// The version of this program; all crates of the workspace have the same.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest line either side sends or accepts, bytes.
pub(crate) const LINE_LIMIT: usize = 16 << 20;
/// Longest greeting, bytes: what isn't one is noticed before it fills memory.
pub(crate) const HELLO_LIMIT: usize = 64 << 10;
/// The id of a reply that concerns the connection, not a call.
pub(crate) const CONNECTION_ID: u64 = 0;

/// What an agent says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Version of the program.
    pub(crate) wirespeed: String,
    pub(crate) protocol: u32,
    /// The kernel's host name. Like whatever else follows the two above, it may be missing from the greeting of
    /// another protocol, which then still reads as one.
    #[serde(default)]
    pub(crate) host: String,
    /// Name of the network namespace, if it has one.
    pub(crate) netns: Option<String>,
}

/// What the client sends, as the agent reads it.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) call: Option<String>,
    /// Not parsed yet: as a tree, a hostile line would take many times its length in memory.
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) cancel: bool,
}

#[derive(Serialize)]
pub(crate) struct CallLine<'a, P> {
    pub(crate) id: u64,
    pub(crate) call: &'a str,
    pub(crate) params: &'a P,
}

#[derive(Serialize)]
pub(crate) struct CancelLine {
    pub(crate) id: u64,
    pub(crate) cancel: bool,
}

#[derive(Serialize)]
pub(crate) struct OkLine<'a, R> {
    pub(crate) id: u64,
    pub(crate) ok: &'a R,
}

#[derive(Serialize)]
pub(crate) struct ErrorLine<'a> {
    pub(crate) id: u64,
    pub(crate) error: &'a str,
}

/// How a call ended over there.
pub(crate) type Outcome = Result<Box<RawValue>, String>;

/// Reads one reply line: the id of the call, and how it ended.
pub(crate) fn decode_reply(line: &[u8]) -> Result<(u64, Outcome), String> {
    #[derive(Deserialize)]
    struct Reply {
        id: u64,
        // `"ok":null` is the answer of an operation that returns nothing; a missing `ok` is none.
        #[serde(default, deserialize_with = "present")]
        ok: Option<Box<RawValue>>,
        error: Option<String>,
    }
    fn present<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Box<RawValue>>, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Some)
    }

    let reply: Reply = serde_json::from_slice(line)
        .map_err(|error| not_ours("a reply", line, &error.to_string()))?;
    match (reply.ok, reply.error) {
        (Some(value), None) => Ok((reply.id, Ok(value))),
        (None, Some(error)) => Ok((reply.id, Err(error))),
        _ => Err(not_ours("a reply", line, "it needs either ok or error")),
    }
}

/// Reads one request line.
pub(crate) fn decode_request(line: &[u8]) -> Result<Request, String> {
    let request: Request = serde_json::from_slice(line)
        .map_err(|error| not_ours("a request", line, &error.to_string()))?;
    if request.id == CONNECTION_ID || request.cancel == request.call.is_some() {
        return Err(not_ours(
            "a request",
            line,
            "it needs an id from 1 on and either call or cancel",
        ));
    }
    Ok(request)
}

fn not_ours(expected: &str, line: &[u8], why: &str) -> String {
    format!(
        "expected {expected}, got \"{}\" ({why})",
        text::beginning(line, 80)
    )
}

/// One line of JSON with its line end; an error is a sentence about why the value can't be sent.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    struct Bounded(Vec<u8>);
    impl Write for Bounded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > LINE_LIMIT {
                return Err(io::Error::other(format!(
                    "it takes more than {} MiB",
                    LINE_LIMIT >> 20
                )));
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut line = Bounded(Vec::with_capacity(256));
    serde_json::to_writer(&mut line, value).map_err(|error| error.to_string())?;
    line.0.push(b'\n');
    Ok(line.0)
}

/// What reading a line brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its line end.
    Whole(Vec<u8>),
    /// A line of spaces or nothing: a sign of life.
    Blank,
    /// The input ended; what came after the last line end, usually nothing.
    End(Vec<u8>),
    /// More than the limit came without a line end; its beginning.
    TooLong(Vec<u8>),
}

/// The next line, of at most `limit` bytes. Never holds more than that in memory.
pub(crate) fn read_line(input: &mut impl BufRead, limit: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    // One byte more than the limit for the line end.
    input
        .by_ref()
        .take(limit as u64 + 1)
        .read_until(b'\n', &mut line)?;
    Ok(if line.pop_if(|last| *last == b'\n').is_none() {
        if line.len() > limit {
            Line::TooLong(line)
        } else {
            Line::End(line)
        }
    } else if line.trim_ascii().is_empty() {
        Line::Blank
    } else {
        Line::Whole(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn null_is_an_answer_and_nothing_is_not() {
        let reply = |line: &str| {
            decode_reply(line.as_bytes()).map(|(_, outcome)| outcome.map(|ok| ok.get().to_owned()))
        };
        assert_eq!(reply(r#"{"id":1,"ok":null}"#), Ok(Ok("null".to_owned())));
        assert_eq!(
            reply(r#"{"id":1,"ok": [1, 2] }"#),
            Ok(Ok("[1, 2]".to_owned()))
        );
        assert_eq!(reply(r#"{"id":1,"error":"x"}"#), Ok(Err("x".to_owned())));
        assert!(decode_reply(br#"{"id":1}"#).is_err());
        assert!(decode_reply(br#"{"id":1,"ok":1,"error":"x"}"#).is_err());
        assert!(decode_reply(b"\xff\xfe").is_err());
    }

    #[test]
    fn a_request_is_a_call_or_a_cancel() {
        assert!(decode_request(br#"{"id":1,"call":"ping"}"#).is_ok());
        assert!(decode_request(br#"{"id":1,"cancel":true}"#).is_ok());
        assert!(decode_request(br#"{"id":0,"call":"ping"}"#).is_err());
        assert!(decode_request(br#"{"id":1,"call":"ping","cancel":true}"#).is_err());
        assert!(decode_request(br#"{"id":1}"#).is_err());
        assert!(decode_request(br#"{"id":-1,"call":"ping"}"#).is_err());
    }

    #[test]
    fn lines_are_bounded() {
        let mut input: &[u8] = b" \r\n1234\n12345\n";
        assert_eq!(read_line(&mut input, 4).unwrap(), Line::Blank);
        assert_eq!(
            read_line(&mut input, 4).unwrap(),
            Line::Whole(b"1234".to_vec())
        );
        assert_eq!(
            read_line(&mut input, 4).unwrap(),
            Line::TooLong(b"12345".to_vec())
        );
        let mut input: &[u8] = b"12";
        assert_eq!(read_line(&mut input, 4).unwrap(), Line::End(b"12".to_vec()));
        assert_eq!(read_line(&mut input, 4).unwrap(), Line::End(Vec::new()));
    }

    #[test]
    fn what_is_too_big_is_not_sent() {
        assert!(
            encode(&"x".repeat(LINE_LIMIT))
                .unwrap_err()
                .contains("16 MiB")
        );
        assert_eq!(encode(&"a\nb").unwrap(), b"\"a\\nb\"\n");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_a_line_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut input = bytes.as_slice();
            loop {
                match read_line(&mut input, 40).unwrap() {
                    Line::Whole(line) => {
                        prop_assert!(line.len() <= 40);
                        let _ = decode_reply(&line);
                        let _ = decode_request(&line);
                    }
                    Line::Blank => {}
                    Line::End(_) | Line::TooLong(_) => break,
                }
            }
        }
    }
}
