//! Reading requests from a connection: bounded in length and time, and wiped from memory, for there are keys in them.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

/// Longest line; none that means anything has more than about 150 bytes.
pub const MAX_LINE_BYTES: usize = 4_096;

/// Longest request: about 200,000 peers.
pub const MAX_REQUEST_BYTES: usize = 64 << 20;

/// From the first byte of a request to its last.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// From the answer to a request to the next.
pub const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// What the buffer has while nothing long was asked.
const BUFFER_BYTES: usize = 16 << 10;

/// What somebody wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Everything there is to know.
    Get,
    /// To change something: these lines, each with its end, without the empty one behind them.
    Set(&'a [u8]),
}

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The first line is neither.
    #[error("a request begins with get=1 or set=1")]
    Operation,
    /// More than one line in a `get`.
    #[error("an empty line has to follow get=1")]
    LongGet,
    /// One line is too long.
    #[error("line {0} has more than {MAX_LINE_BYTES} bytes")]
    LineTooLong(usize),
    /// All of it is too long.
    #[error("it has more than {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    /// The other side left in the middle.
    #[error("the empty line at its end is missing")]
    Unfinished,
    /// It didn't come in time.
    #[error("it took more than {} s", REQUEST_LIMIT.as_secs())]
    TimedOut,
    /// Nothing was asked for a while.
    #[error("nothing was asked for {} s", IDLE_LIMIT.as_secs())]
    Idle,
    /// Reading failed.
    #[error("reading it: {0}")]
    Io(#[from] io::Error),
}

/// The requests of one connection, one after the other.
pub struct Requests<R> {
    input: R,
    request_limit: Duration,
    idle_limit: Duration,
    bytes: Zeroizing<Vec<u8>>,
    /// How many of them came from the input.
    filled: usize,
    /// How many belong to requests already given out.
    done: usize,
}

impl<R: Read> Requests<R> {
    /// Of this input. When it is a socket, its reads should time out now and then, so that limits are noticed.
    pub fn new(input: R) -> Self {
        Self {
            input,
            request_limit: REQUEST_LIMIT,
            idle_limit: IDLE_LIMIT,
            bytes: Zeroizing::new(vec![0; BUFFER_BYTES]),
            filled: 0,
            done: 0,
        }
    }

    /// The next request; `None` when the other side is done. After an error the connection is of no more use.
    pub fn read_next(&mut self) -> Result<Option<Request<'_>>, ReadError> {
        self.forget_done();
        let mut scan = Scan::default();
        let mut begun = None;
        let waiting_since = Instant::now();
        let end = loop {
            if let Some(end) = scan.step(&self.bytes[..self.filled])? {
                break end;
            }
            if self.filled > 0 && begun.is_none() {
                begun = Some(Instant::now());
            }
            if !self.fill(begun, waiting_since)? {
                return if self.filled == 0 {
                    Ok(None)
                } else {
                    Err(ReadError::Unfinished)
                };
            }
        };
        self.done = end;
        Ok(Some(scan.request(&self.bytes[..end])))
    }

    /// Reads some more; false at the end of the input.
    fn fill(&mut self, begun: Option<Instant>, waiting_since: Instant) -> Result<bool, ReadError> {
        self.make_room()?;
        loop {
            let in_time = match begun {
                Some(begun) if begun.elapsed() > self.request_limit => Err(ReadError::TimedOut),
                None if waiting_since.elapsed() > self.idle_limit => Err(ReadError::Idle),
                _ => Ok(()),
            };
            in_time?;
            match self.input.read(&mut self.bytes[self.filled..]) {
                Ok(count) => {
                    self.filled += count;
                    return Ok(count > 0);
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Doubles a full buffer. A vector that grows by itself would leave what it had in memory.
    fn make_room(&mut self) -> Result<(), ReadError> {
        if self.filled < self.bytes.len() {
            return Ok(());
        }
        if self.bytes.len() >= MAX_REQUEST_BYTES {
            return Err(ReadError::TooLong);
        }
        self.resize(self.bytes.len() * 2);
        Ok(())
    }

    fn forget_done(&mut self) {
        let rest = self.filled - self.done;
        self.bytes.copy_within(self.done..self.filled, 0);
        self.bytes[rest..self.filled].fill(0);
        self.filled = rest;
        self.done = 0;
        if rest < BUFFER_BYTES && self.bytes.len() > BUFFER_BYTES {
            self.resize(BUFFER_BYTES);
        }
    }

    fn resize(&mut self, bytes: usize) {
        let mut resized = Zeroizing::new(vec![0; bytes]);
        resized[..self.filled].copy_from_slice(&self.bytes[..self.filled]);
        self.bytes = resized;
    }
}

/// How far the end of a request was looked for; each byte is looked at once, however it comes.
#[derive(Default)]
struct Scan {
    seen: usize,
    line_start: usize,
    lines: usize,
    operation: Option<Operation>,
}

struct Operation {
    is_set: bool,
    end: usize,
}

impl Scan {
    /// The end of the request, once it is among `bytes`.
    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>, ReadError> {
        while let Some(at) = bytes[self.seen..].iter().position(|byte| *byte == b'\n') {
            let line = &bytes[self.line_start..self.seen + at];
            let end = self.seen + at + 1;
            self.lines += 1;
            if line.len() > MAX_LINE_BYTES {
                return Err(ReadError::LineTooLong(self.lines));
            }
            match &self.operation {
                None => {
                    self.operation = Some(Operation {
                        is_set: match line {
                            b"get=1" => false,
                            b"set=1" => true,
                            _ => return Err(ReadError::Operation),
                        },
                        end,
                    });
                }
                Some(Operation { is_set: false, .. }) if !line.is_empty() => {
                    return Err(ReadError::LongGet);
                }
                Some(_) if without_carriage_return(line).is_empty() => return Ok(Some(end)),
                Some(_) => {}
            }
            self.seen = end;
            self.line_start = end;
        }
        self.seen = bytes.len();
        if self.seen - self.line_start > MAX_LINE_BYTES {
            return Err(ReadError::LineTooLong(self.lines + 1));
        }
        Ok(None)
    }

    /// The request in `bytes`, which are all of it.
    fn request<'a>(&self, bytes: &'a [u8]) -> Request<'a> {
        match &self.operation {
            Some(Operation { is_set: true, end }) => Request::Set(&bytes[*end..self.line_start]),
            _ => Request::Get,
        }
    }
}

/// The lines of a `set`, without their ends.
pub fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split_inclusive(|byte| *byte == b'\n')
        .map(|line| without_carriage_return(line.strip_suffix(b"\n").unwrap_or(line)))
}

fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives at most `piece` bytes at a time, and a time-out before each.
    struct Dribble<'a> {
        bytes: &'a [u8],
        piece: usize,
        tired: bool,
    }

    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.tired = !self.tired;
            if self.tired {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let piece = self.piece.min(into.len()).min(self.bytes.len());
            into[..piece].copy_from_slice(&self.bytes[..piece]);
            self.bytes = &self.bytes[piece..];
            Ok(piece)
        }
    }

    fn all(bytes: &[u8], piece: usize) -> (Vec<String>, Option<ReadError>) {
        let mut requests = Requests::new(Dribble {
            bytes,
            piece,
            tired: false,
        });
        let mut found = Vec::new();
        loop {
            match requests.read_next() {
                Ok(Some(Request::Get)) => found.push("get".to_owned()),
                Ok(Some(Request::Set(body))) => {
                    let lines: Vec<_> = lines(body).map(String::from_utf8_lossy).collect();
                    found.push(format!("set {}", lines.join(",")));
                }
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[test]
    fn several_requests_come_in_any_pieces() {
        let bytes = b"get=1\n\nset=1\nlisten_port=1\nfwmark=2\r\n\nset=1\n\r\nget=1\n\n";
        for piece in [1, 2, 3, 7, 1_000] {
            let (found, error) = all(bytes, piece);
            assert_eq!(found, ["get", "set listen_port=1,fwmark=2", "set ", "get"]);
            assert!(error.is_none(), "{error:?}");
        }
    }

    #[test]
    fn what_is_no_request_ends_the_conversation() {
        let error = |bytes: &[u8]| all(bytes, 100).1;
        for bytes in [
            &b"\n"[..],
            b"get=2\n\n",
            b"get=1\r\n\n",
            b" set=1\n",
            b"\xff\n",
        ] {
            assert!(
                matches!(error(bytes), Some(ReadError::Operation)),
                "{bytes:?}"
            );
        }
        assert!(matches!(error(b"get=1\nx\n"), Some(ReadError::LongGet)));
        for bytes in [
            &b"get=1\n"[..],
            b"set=1\n",
            b"set=1\nfwmark=1\n",
            b"set",
            b"set=1\nfwmark",
        ] {
            assert!(
                matches!(error(bytes), Some(ReadError::Unfinished)),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut bytes = b"set=1\n".to_vec();
        bytes.resize(6 + MAX_LINE_BYTES, b'a');
        assert!(matches!(all(&bytes, 999).1, Some(ReadError::Unfinished)));
        bytes.push(b'a');
        assert!(matches!(
            all(&bytes, 999).1,
            Some(ReadError::LineTooLong(2))
        ));
        bytes.extend_from_slice(b"\n\n");
        assert!(matches!(
            all(&bytes, 999).1,
            Some(ReadError::LineTooLong(2))
        ));
    }

    #[test]
    fn who_is_silent_or_slow_is_not_waited_for() {
        /// As a socket does whose reads time out.
        struct Silent(&'static [u8]);
        impl Read for Silent {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                std::thread::sleep(Duration::from_millis(5));
                match std::mem::take(&mut self.0) {
                    b"" => Err(io::ErrorKind::WouldBlock.into()),
                    bytes => {
                        into[..bytes.len()].copy_from_slice(bytes);
                        Ok(bytes.len())
                    }
                }
            }
        }
        let error = |said| {
            let mut requests = Requests::new(Silent(said));
            requests.request_limit = Duration::from_millis(20);
            requests.idle_limit = Duration::from_millis(20);
            loop {
                if let Err(error) = requests.read_next() {
                    return error;
                }
            }
        };
        assert!(matches!(error(b""), ReadError::Idle));
        assert!(matches!(error(b"get=1\n\n"), ReadError::Idle));
        assert!(matches!(error(b"get=1\n"), ReadError::TimedOut));
        assert!(matches!(error(b"get=1\n\ns"), ReadError::TimedOut));
    }

    #[test]
    fn a_request_without_end_is_not_kept() {
        struct Endless(bool);
        impl Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                for (at, byte) in into.iter_mut().enumerate() {
                    *byte = if at % 64 == 63 { b'\n' } else { b'a' };
                }
                if !std::mem::replace(&mut self.0, true) {
                    into[..6].copy_from_slice(b"set=1\n");
                }
                Ok(into.len() / 64 * 64)
            }
        }
        let mut requests = Requests::new(Endless(false));
        assert!(matches!(requests.read_next(), Err(ReadError::TooLong)));
        assert_eq!(requests.bytes.len(), MAX_REQUEST_BYTES);
    }

    #[test]
    fn nothing_of_a_request_stays_in_the_buffer() {
        let mut long = b"set=1\n".to_vec();
        while long.len() < 100_000 {
            long.extend_from_slice(b"private_key=secret\n");
        }
        long.extend_from_slice(b"\nget=1\n\n");
        let mut requests = Requests::new(&long[..]);
        assert!(matches!(requests.read_next(), Ok(Some(Request::Set(_)))));
        assert!(requests.bytes.len() >= 100_000);
        assert!(matches!(requests.read_next(), Ok(Some(Request::Get))));
        assert_eq!(requests.bytes.len(), BUFFER_BYTES);
        assert!(matches!(requests.read_next(), Ok(None)));
        assert!(requests.bytes.iter().all(|byte| *byte == 0));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in "(get=1\n\n|set=1\n|[a-c=1]{0,9}\r?\n|\n){0,8}", piece in 1usize..20) {
            let whole = all(bytes.as_bytes(), usize::MAX);
            let pieces = all(bytes.as_bytes(), piece);
            prop_assert_eq!(whole.0, pieces.0);
            prop_assert_eq!(whole.1.map(|e| e.to_string()), pieces.1.map(|e| e.to_string()));
        }
    }
}
