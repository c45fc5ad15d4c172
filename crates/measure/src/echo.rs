//! A train of ICMP echo requests: who answers, how fast, and up to which size.
//!
//! One thread sends on a schedule, takes replies with the kernel's own receive time (so that a busy machine's
//! late wake-up is not counted as round-trip time), and empties the socket's error queue, where "fragmentation
//! needed" and "packet too big" arrive with the MTU they tell.
//!
//! With `dont_fragment` the socket is set to `IP_PMTUDISC_PROBE`: packets carry DF and only the first link's MTU
//! binds them, not a path MTU the kernel has cached from earlier.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use socket2::SockAddr;

use crate::RttSummary;
use crate::echo_packet::{self, Kind};
use crate::echo_socket::{EchoSocket, Event};
use crate::statistics;

/// Longest train, so that a caller's mistake stays small.
const PACKETS_AT_MOST: u32 = 200_000;
/// Cancelling is noticed within this time.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EchoTrain {
    /// To whom.
    pub(crate) to: IpAddr,
    /// Sizes of the IP packets in bytes, taken in turn.
    pub(crate) sizes: Vec<u32>,
    /// How many packets in all.
    pub(crate) count: u32,
    /// Seconds between two packets.
    pub(crate) interval: f64,
    /// Seconds to wait for replies after the last; cut short to a few of the longest RTTs seen.
    pub(crate) wait: f64,
    /// Forbid fragmentation, and ignore the cached path MTU.
    pub(crate) dont_fragment: bool,
    /// Source address; `None` = the route's.
    pub(crate) source: Option<IpAddr>,
    /// Leave by this interface only.
    pub(crate) interface: Option<String>,
    /// Marks the train's packets; any number that no other train uses at the same time.
    pub(crate) token: u64,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Echo {
    /// Size of the IP packet in bytes.
    pub(crate) size: u32,
    /// Seconds after the train's start at which it was sent.
    pub(crate) sent: f64,
    /// Round-trip time in seconds; `None` = no reply.
    pub(crate) rtt: Option<f64>,
    /// Why the kernel did not send it.
    pub(crate) refused: Option<String>,
}

/// What became of a train.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EchoReport {
    /// In the order sent.
    pub(crate) echoes: Vec<Echo>,
    /// Smallest MTU that an ICMP error (or the first link) told.
    pub(crate) reported_mtu: Option<u32>,
    /// "Destination unreachable" and the like, in the kernel's words.
    pub(crate) unreachable: Option<String>,
}

impl EchoReport {
    /// Replies that came.
    pub(crate) fn received(&self) -> u32 {
        self.echoes.iter().filter(|echo| echo.rtt.is_some()).count() as u32
    }

    /// The RTTs of those sent between two moments (seconds after the start), summed up.
    pub(crate) fn summary_between(&self, from: f64, until: f64) -> RttSummary {
        let sent: Vec<&Echo> = self
            .echoes
            .iter()
            .filter(|echo| echo.sent >= from && echo.sent < until)
            .collect();
        let rtts: Vec<f64> = sent.iter().filter_map(|echo| echo.rtt).collect();
        RttSummary {
            sent: sent.len() as u32,
            received: rtts.len() as u32,
            min: statistics::percentile(&rtts, 0.0),
            median: statistics::median(&rtts),
            p95: statistics::percentile(&rtts, 0.95),
            max: statistics::percentile(&rtts, 1.0),
        }
    }

    /// All RTTs, summed up.
    pub(crate) fn summary(&self) -> RttSummary {
        self.summary_between(0.0, f64::INFINITY)
    }
}

/// Runs the train, as long as `keep_going`. Ending early is no error: the report has what was sent until then.
///
/// # Errors
/// When nothing at all could be sent: no raw socket (not root), no route, no key for the address.
pub(crate) fn run(train: &EchoTrain, keep_going: &dyn Fn() -> bool) -> Result<EchoReport, String> {
    let smallest = echo_packet::smallest(train.to) as u32;
    let fits = |size: &u32| (smallest..=65_535).contains(size);
    if train.sizes.is_empty() || !train.sizes.iter().all(fits) {
        return Err(format!(
            "echo requests to {} must have sizes from {smallest} to 65535 bytes",
            train.to
        ));
    }
    if !(0.000_1..=60.0).contains(&train.interval) || !(0.0..=60.0).contains(&train.wait) {
        return Err(
            "echo requests need an interval from 0.1 ms to 60 s and a wait of at most 60 s"
                .to_owned(),
        );
    }
    let socket = EchoSocket::open(train.to.is_ipv4())?;
    socket.prepare(
        train.dont_fragment,
        train.source,
        train.interface.as_deref(),
    )?;
    let mut running = Running {
        train,
        socket,
        to: SocketAddr::new(train.to, 0).into(),
        begun: Instant::now(),
        sent: Vec::new(),
        report: EchoReport::default(),
        longest_rtt: None,
    };
    running.run(keep_going)?;
    running.finish()
}

struct Running<'a> {
    train: &'a EchoTrain,
    socket: EchoSocket,
    to: SockAddr,
    begun: Instant,
    /// Parallel to `report.echoes`.
    sent: Vec<(Instant, SystemTime)>,
    report: EchoReport,
    longest_rtt: Option<Duration>,
}

impl Running<'_> {
    fn run(&mut self, keep_going: &dyn Fn() -> bool) -> Result<(), String> {
        let count = self.train.count.min(PACKETS_AT_MOST) as usize;
        let interval = Duration::from_secs_f64(self.train.interval);
        let mut next_due = self.begun;
        while keep_going() {
            let now = Instant::now();
            let pause = if self.sent.len() < count {
                if now >= next_due {
                    self.send();
                    // From the due time, so that the mean rate holds; from now when far behind, so that a
                    // machine that was busy does not send a burst.
                    next_due = (next_due + interval)
                        .max(Instant::now().checked_sub(interval).unwrap_or(now));
                }
                next_due.saturating_duration_since(Instant::now())
            } else {
                let last = self.sent.last().map_or(self.begun, |(at, _)| *at);
                let deadline = last + self.patience();
                let open = self
                    .report
                    .echoes
                    .iter()
                    .any(|echo| echo.rtt.is_none() && echo.refused.is_none());
                if !open || now >= deadline {
                    return Ok(());
                }
                deadline.saturating_duration_since(now)
            };
            self.receive_for(pause.min(LOOK_UP))?;
        }
        Ok(())
    }

    /// How long to wait after the last request: what was asked for, or less when replies show how long they take.
    fn patience(&self) -> Duration {
        let asked = Duration::from_secs_f64(self.train.wait);
        match self.longest_rtt {
            Some(rtt) => asked.min(rtt * 4 + Duration::from_millis(150)),
            None => asked,
        }
    }

    fn send(&mut self) {
        let number = self.sent.len();
        let size = self.train.sizes[number % self.train.sizes.len()];
        let packet = echo_packet::request(
            self.train.to,
            size as usize,
            self.train.token,
            number as u32,
        );
        let mut refused = None;
        // An ICMP error that came back since the last call is returned by the next send, which then sends
        // nothing: take it from the error queue and try again.
        for _ in 0..3 {
            match self.socket.send(&packet, &self.to) {
                Ok(()) => {
                    refused = None;
                    break;
                }
                Err(error) => {
                    refused = Some(error);
                    if !self.take_errors() {
                        break;
                    }
                }
            }
        }
        let at = Instant::now();
        self.sent.push((at, SystemTime::now()));
        self.report.echoes.push(Echo {
            size,
            sent: at.duration_since(self.begun).as_secs_f64(),
            rtt: None,
            refused: refused.map(|error| error.to_string()),
        });
    }

    fn receive_for(&mut self, pause: Duration) -> Result<(), String> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: pause.as_secs().cast_signed(),
            tv_nsec: i64::from(pause.subsec_nanos()),
        };
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                return Err(format!(
                    "waiting for echo replies: {}",
                    io::Error::from(error)
                ));
            }
        }
        let flags = ready[0].revents();
        if flags.contains(PollFlags::ERR) {
            self.take_errors();
        }
        if flags.contains(PollFlags::IN) {
            while let Some((number, received_at)) =
                self.socket.receive(Kind::Reply, self.train.token)
            {
                self.reply(number as usize, received_at);
            }
        }
        Ok(())
    }

    fn reply(&mut self, number: usize, received_at: Option<Duration>) {
        let (Some(echo), Some((at, wall))) =
            (self.report.echoes.get_mut(number), self.sent.get(number))
        else {
            return;
        };
        if echo.rtt.is_some() {
            return;
        }
        let at_most = at.elapsed();
        // The kernel's receive time is of the wall clock; should that have been set meanwhile, ours is better.
        let by_kernel = received_at
            .zip(wall.duration_since(UNIX_EPOCH).ok())
            .and_then(|(received, sent)| received.checked_sub(sent))
            .filter(|rtt| *rtt <= at_most);
        let rtt = by_kernel.unwrap_or(at_most);
        echo.rtt = Some(rtt.as_secs_f64());
        self.longest_rtt = self.longest_rtt.max(Some(rtt));
    }

    /// Empties the error queue; `true` when there was something in it.
    fn take_errors(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.socket.take_error(self.train.token) {
            any = true;
            match event {
                Event::TooBig { mtu } if mtu > 0 => {
                    let known = self.report.reported_mtu.unwrap_or(u32::MAX);
                    self.report.reported_mtu = Some(known.min(mtu));
                }
                Event::TooBig { .. } | Event::NotOurs => {}
                Event::Other(words) => self.report.unreachable = Some(words),
            }
        }
        any
    }

    fn finish(mut self) -> Result<EchoReport, String> {
        self.take_errors();
        let first_refusal = self
            .report
            .echoes
            .iter()
            .find_map(|echo| echo.refused.clone());
        let nothing_sent = self.report.echoes.iter().all(|echo| echo.refused.is_some());
        match first_refusal {
            Some(why) if nothing_sent && self.report.reported_mtu.is_none() => Err(format!(
                "echo requests to {} can't be sent: {why}",
                self.train.to
            )),
            _ => Ok(self.report),
        }
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(sent: f64, rtt: Option<f64>) -> Echo {
        Echo {
            size: 84,
            sent,
            rtt,
            refused: None,
        }
    }

    #[test]
    fn a_summary_is_of_the_window_asked_for() {
        let report = EchoReport {
            echoes: vec![
                echo(0.0, Some(0.5)),
                echo(1.0, Some(0.010)),
                echo(1.5, None),
                echo(2.0, Some(0.030)),
                echo(3.0, Some(0.7)),
            ],
            ..EchoReport::default()
        };
        let summary = report.summary_between(1.0, 3.0);
        assert_eq!((summary.sent, summary.received), (3, 2));
        assert_eq!((summary.min, summary.max), (Some(0.010), Some(0.030)));
        assert_eq!(report.summary().sent, 5);
        let empty = report.summary_between(9.0, 10.0);
        assert_eq!((empty.sent, empty.median, empty.p95), (0, None, None));
    }

    #[test]
    fn senseless_trains_are_refused() {
        let train = EchoTrain {
            to: "127.0.0.1".parse().unwrap(),
            sizes: vec![20],
            count: 1,
            interval: 0.1,
            wait: 0.1,
            dont_fragment: true,
            source: None,
            interface: None,
            token: 1,
        };
        assert!(
            run(&train, &|| true)
                .unwrap_err()
                .contains("from 40 to 65535")
        );
        let endless = EchoTrain {
            sizes: vec![84],
            interval: f64::NAN,
            ..train
        };
        assert!(run(&endless, &|| true).unwrap_err().contains("interval"));
    }
}
