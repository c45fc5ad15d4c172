//! One short exchange over a connection of its own, and how long such exchanges take.
//!
//! ```text
//! connect ──▶ connected ──▶ request ──▶ first byte … last byte ──▶ the other end closes
//! └ connect ─┘             └ first byte ─────────┘
//! └ total ────────────────────────────────────────────────────┘
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::Percentiles;

/// Times are recorded in µs up to two minutes, to three digits.
const LONGEST_MICROSECONDS: u64 = 120_000_000;
const DIGITS: u8 = 3;

/// One exchange over a connection of its own.
pub(crate) struct Exchange {
    pub(crate) stream: TcpStream,
    pub(crate) begun: Instant,
    pub(crate) stage: Stage,
}

/// How far an exchange is.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    Connecting,
    /// So many bytes of the request went.
    Asking {
        connected: Duration,
        written: usize,
    },
    /// So many bytes of the answer came.
    Reading {
        connected: Duration,
        asked: Duration,
        first: Option<Duration>,
        read: usize,
    },
    /// All is there; the other end is to close first, so that no port of ours stays occupied (TIME-WAIT).
    Closing,
}

/// What came of going on.
pub(crate) enum Went {
    /// It waits again; `ended` = all of the answer has just come.
    On { ended: bool },
    /// The other end closed after the answer.
    Closed,
}

impl Stage {
    /// Room to write is waited for, and not bytes to read.
    pub(crate) fn asks(self) -> bool {
        matches!(self, Self::Connecting | Self::Asking { .. })
    }

    /// Where it is; `None` = it is done.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Connecting => Some("connect"),
            Self::Asking { .. } | Self::Reading { .. } => Some("answer"),
            Self::Closing => None,
        }
    }
}

impl Exchange {
    /// Goes on until it has to wait; an error comes with the stage it belongs to.
    pub(crate) fn go_on(
        &mut self,
        request: &[u8],
        response: usize,
        times: &mut Times,
    ) -> Result<Went, (&'static str, io::Error)> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stage {
                Stage::Connecting => {
                    match self.stream.take_error() {
                        Ok(None) => {}
                        Ok(Some(error)) | Err(error) => return Err(("connect", error)),
                    }
                    self.stage = Stage::Asking {
                        connected: self.begun.elapsed(),
                        written: 0,
                    };
                }
                Stage::Asking { connected, written } if written == request.len() => {
                    self.stage = Stage::Reading {
                        connected,
                        asked: self.begun.elapsed(),
                        first: None,
                        read: 0,
                    };
                }
                Stage::Asking { connected, written } => {
                    match self.stream.write(&request[written..]) {
                        Ok(more) => {
                            self.stage = Stage::Asking {
                                connected,
                                written: written + more,
                            };
                        }
                        Err(error) if waits(&error) => return Ok(Went::On { ended: false }),
                        Err(error) => return Err(("answer", error)),
                    }
                }
                Stage::Reading {
                    connected,
                    asked,
                    first,
                    read,
                } => match self.stream.read(&mut buffer) {
                    Ok(0) => return Err(("answer", ErrorKind::UnexpectedEof.into())),
                    Ok(more) if read + more > response => {
                        return Err(("answer", ErrorKind::InvalidData.into()));
                    }
                    Ok(more) => {
                        let now = self.begun.elapsed();
                        let first = first.unwrap_or(now);
                        self.stage = Stage::Reading {
                            connected,
                            asked,
                            first: Some(first),
                            read: read + more,
                        };
                        if read + more == response {
                            times.record(connected, first.saturating_sub(asked), now);
                            self.stage = Stage::Closing;
                            return Ok(Went::On { ended: true });
                        }
                    }
                    Err(error) if waits(&error) => return Ok(Went::On { ended: false }),
                    Err(error) => return Err(("answer", error)),
                },
                Stage::Closing => match self.stream.read(&mut buffer) {
                    Err(error) if waits(&error) => return Ok(Went::On { ended: false }),
                    // However it ends now, the answer was there.
                    Ok(_) | Err(_) => return Ok(Went::Closed),
                },
            }
        }
    }
}

fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// How long the exchanges of a sample took.
pub(crate) struct Times {
    pub(crate) connect: Histogram<u64>,
    pub(crate) first_byte: Histogram<u64>,
    pub(crate) total: Histogram<u64>,
}

impl Times {
    pub(crate) fn new() -> Result<Self, String> {
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_MICROSECONDS, DIGITS)
                .map_err(|error| error.to_string())
        };
        Ok(Self {
            connect: histogram()?,
            first_byte: histogram()?,
            total: histogram()?,
        })
    }

    fn record(&mut self, connect: Duration, first_byte: Duration, total: Duration) {
        for (histogram, time) in [
            (&mut self.connect, connect),
            (&mut self.first_byte, first_byte),
            (&mut self.total, total),
        ] {
            let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            histogram.saturating_record(microseconds.clamp(1, LONGEST_MICROSECONDS));
        }
    }
}

pub(crate) fn percentiles(times: &Histogram<u64>) -> Option<Percentiles> {
    let at = |share: f64| times.value_at_quantile(share) as f64 / 1e6;
    (!times.is_empty()).then(|| Percentiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: times.max() as f64 / 1e6,
    })
}
