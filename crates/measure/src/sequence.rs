//! Numbered datagrams at a steady rate: the sender, and the receiver that counts them.

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::datagram::{self, HEADER, Kind};
use crate::datagram_way::{After, Listeners, Origin, PAYLOAD_AT_MOST, Way};
use crate::tally::{NUMBERS_AT_MOST, Tally};

/// Longest probe.
pub(crate) const SECONDS_AT_MOST: f64 = 60.0;
/// No more than what the rate makes of so much time is sent at once.
const BATCH: Duration = Duration::from_millis(1);
/// Pause between batches that catch up after the machine was slow to wake us.
const CATCH_UP_PAUSE: Duration = Duration::from_micros(500);
/// What is behind by more than this is given up: the rate offered is then lower than asked for.
const BEHIND_AT_MOST: Duration = Duration::from_millis(200);
/// The end is said so often, so far apart.
const ENDS: u32 = 6;
const END_EVERY: Duration = Duration::from_millis(20);
/// How long to wait for stragglers: after the end was heard, and beyond the planned time where it was not.
const STRAGGLERS: Duration = Duration::from_millis(500);
const BEYOND: Duration = Duration::from_secs(5);
/// A payload that is sent so often without success is given up.
const REFUSALS_IN_A_ROW: u64 = 200;

/// One end of a sequence probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SequenceEnd {
    pub(crate) token: u64,
    pub(crate) origin: Origin,
    /// UDP payload, bytes.
    pub(crate) payload: u32,
    /// bit/s of UDP payload.
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
}

/// What was sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// The other end was heard; else nothing was sent.
    pub(crate) heard: bool,
    pub(crate) datagrams: u64,
    /// Of those, not taken by the own kernel.
    pub(crate) refused: u64,
    /// Why not.
    pub(crate) refusal: Option<String>,
    /// From the first to the last.
    pub(crate) seconds: f64,
}

/// What arrived.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrived {
    /// The other end was heard.
    pub(crate) heard: bool,
    pub(crate) received: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) extent: u64,
    /// One more than the highest number.
    pub(crate) next: u64,
    /// Below that.
    pub(crate) gaps: u64,
    pub(crate) longest_gap: u64,
    /// From the first to the last.
    pub(crate) seconds: f64,
    /// What the socket had no room for.
    pub(crate) dropped: u64,
}

/// Sends the datagrams, once the other end is heard.
pub(crate) fn send(
    listeners: &Listeners,
    end: &SequenceEnd,
    keep_going: &dyn Fn() -> bool,
) -> Result<Sent, String> {
    let pace = Pace::new(end)?;
    let way = Way::new(listeners, end.token, &end.origin)?;
    let mut sent = Sent {
        heard: way.ready_to_send(keep_going)?,
        ..Sent::default()
    };
    if !sent.heard {
        return Ok(sent);
    }
    let mut bytes = vec![0; end.payload as usize];
    datagram::fill(&mut bytes, end.token, 0);
    let begun = Instant::now();
    // The clock stands still for nobody: a machine that can't send as fast as asked ends in time, too.
    let until = begun + Duration::from_secs_f64(end.seconds);
    let mut credit = 1.0;
    let mut counted = begun;
    let mut in_a_row = 0;
    while sent.datagrams < pace.count && Instant::now() < until && keep_going() {
        let now = Instant::now();
        let gained = (now - counted).as_secs_f64() * pace.per_second;
        counted = now;
        credit = f64::min(credit + gained, pace.behind_at_most);
        let batch = f64::min(credit.floor(), pace.batch) as u64;
        for _ in 0..batch.min(pace.count - sent.datagrams) {
            datagram::write(&mut bytes, end.token, Kind::Data, sent.datagrams);
            match way.socket.send(&bytes) {
                Ok(_) => in_a_row = 0,
                // Nothing was sent; again with the next batch.
                Err(error) if is_passing(&error) => break,
                Err(error) if is_local_loss(&error) && in_a_row < REFUSALS_IN_A_ROW => {
                    in_a_row += 1;
                    sent.refused += 1;
                    sent.refusal = Some(error.to_string());
                }
                Err(error) => {
                    return Err(format!(
                        "after {} datagrams of {} bytes the system refused more: {error}",
                        sent.datagrams, end.payload
                    ));
                }
            }
            sent.datagrams += 1;
            credit -= 1.0;
        }
        sent.seconds = begun.elapsed().as_secs_f64();
        let until_next = Duration::from_secs_f64((1.0 - credit).max(0.0) / pace.per_second);
        std::thread::sleep(until_next.max(CATCH_UP_PAUSE).min(until - begun));
    }
    if sent.datagrams > 0 && sent.refused == sent.datagrams {
        return Err(format!(
            "the system took none of {} datagrams: {}",
            sent.datagrams,
            sent.refusal.unwrap_or_default()
        ));
    }
    say_end(&way, end.token, sent.datagrams);
    Ok(sent)
}

/// Tells the receiver how many there were.
pub(crate) fn say_end(way: &Way, token: u64, sent: u64) {
    for _ in 0..ENDS {
        // One of them arrives, or the receiver's time runs out.
        let _ = way.socket.send(&datagram::bare(token, Kind::End, sent));
        std::thread::sleep(END_EVERY);
    }
}

/// Counts what arrives.
pub(crate) fn receive(
    listeners: &Listeners,
    end: &SequenceEnd,
    keep_going: &dyn Fn() -> bool,
) -> Result<Arrived, String> {
    Pace::new(end)?;
    let way = Way::new(listeners, end.token, &end.origin)?;
    let mut tally = Tally::default();
    let mut times: Option<(Instant, Instant)> = None;
    let limit = Duration::from_secs_f64(end.seconds) + BEYOND;
    let mut buffer = [0; HEADER];
    let heard = way.receive_all(limit, &mut buffer, keep_going, &mut |received, _| {
        match received.kind {
            Kind::End => return After::Until(STRAGGLERS),
            _ if received.length == end.payload as usize => {
                let now = Instant::now();
                times = Some((times.map_or(now, |(first, _)| first), now));
                tally.arrived(received.number);
            }
            _ => {}
        }
        After::More
    })?;
    let gaps = tally.gaps();
    Ok(Arrived {
        heard: heard.anybody,
        received: tally.received(),
        duplicates: tally.duplicates(),
        reordered: tally.reordered(),
        extent: tally.extent(),
        next: tally.next(),
        gaps: gaps.count,
        longest_gap: gaps.longest,
        seconds: times.map_or(0.0, |(first, last)| (last - first).as_secs_f64()),
        dropped: heard.dropped,
    })
}

/// Nothing is wrong with the datagram: the socket's buffer is full, or an ICMP error for an earlier one is told.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
    )
}

/// Lost within the own machine: a full queue, a firewall's rule on the way out, an unreachable neighbour.
fn is_local_loss(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(nix::errno::Errno::from_raw),
        Some(nix::Error::ENOBUFS | nix::Error::EPERM | nix::Error::EHOSTUNREACH)
    )
}

struct Pace {
    per_second: f64,
    count: u64,
    /// Datagrams at once.
    batch: f64,
    behind_at_most: f64,
}

impl Pace {
    fn new(end: &SequenceEnd) -> Result<Self, String> {
        let payload = end.payload as usize;
        let sensible = (HEADER..=PAYLOAD_AT_MOST).contains(&payload)
            && end.rate.is_finite()
            && end.rate > 0.0
            && end.seconds > 0.0
            && end.seconds <= SECONDS_AT_MOST;
        if !sensible {
            return Err(format!(
                "a sequence has {HEADER} to {PAYLOAD_AT_MOST} bytes of payload, a rate, and up to {SECONDS_AT_MOST} s"
            ));
        }
        let per_second = end.rate / (f64::from(end.payload) * 8.0);
        let in_time = |time: Duration| (time.as_secs_f64() * per_second).max(1.0);
        Ok(Self {
            per_second,
            count: ((per_second * end.seconds).ceil() as u64).clamp(1, NUMBERS_AT_MOST),
            batch: in_time(BATCH),
            behind_at_most: in_time(BEHIND_AT_MOST),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

    use super::*;
    use crate::datagram_way::Listen;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn end(token: u64, origin: Origin) -> SequenceEnd {
        SequenceEnd {
            token,
            origin,
            payload: 200,
            rate: 2e6,
            seconds: 0.4,
        }
    }

    fn listening(token: u64) -> (Listeners, SocketAddr) {
        let listeners = Listeners::default();
        let port = listeners
            .open(&Listen {
                token,
                to: HERE,
                own: true,
                port: None,
                device: None,
            })
            .unwrap();
        (listeners, SocketAddr::new(HERE, port))
    }

    fn calling(to: SocketAddr) -> Origin {
        Origin::Calling { to, device: None }
    }

    #[test]
    fn both_ends_may_send_and_strangers_are_ignored() {
        for caller_sends in [true, false] {
            let (listeners, to) = listening(77);
            let none = Listeners::default();
            let (caller, listener) = (end(77, calling(to)), end(77, Origin::Listening));
            let stranger = UdpSocket::bind((HERE, 0)).unwrap();
            let noise = || {
                for length in [0, 1, 23, 24, 200, 1400] {
                    let _ = stranger.send_to(&vec![0xa5; length], to);
                    let _ = stranger
                        .send_to(&datagram::bare(78, Kind::Data, 9)[..length.min(HEADER)], to);
                }
                true
            };
            let (sent, arrived) = std::thread::scope(|scope| {
                if caller_sends {
                    let arrived = scope.spawn(|| receive(&listeners, &listener, &|| true));
                    (send(&none, &caller, &noise), arrived.join().unwrap())
                } else {
                    let sent = scope.spawn(|| send(&listeners, &listener, &noise));
                    let arrived = receive(&none, &caller, &|| true);
                    (sent.join().unwrap(), arrived)
                }
            });
            let (sent, arrived) = (sent.unwrap(), arrived.unwrap());
            assert!(sent.heard && sent.refused == 0, "{sent:?}");
            assert!(sent.datagrams > 100 && sent.datagrams <= 500, "{sent:?}");
            assert_eq!(
                (
                    arrived.received,
                    arrived.duplicates,
                    arrived.reordered,
                    arrived.gaps
                ),
                (sent.datagrams, 0, 0, 0),
                "{arrived:?}"
            );
            assert_eq!(arrived.next, sent.datagrams);
        }
    }

    #[test]
    fn nobody_there_is_told_in_time() {
        let begun = Instant::now();
        // Bound by nobody: discard's port, refused by the kernel.
        let to = SocketAddr::new(HERE, 9);
        let none = Listeners::default();
        let sent = send(&none, &end(1, calling(to)), &|| true).unwrap();
        assert!(!sent.heard && sent.datagrams == 0, "{sent:?}");
        let (listeners, _) = listening(2);
        let arrived = receive(&listeners, &end(2, Origin::Listening), &|| true).unwrap();
        assert!(!arrived.heard && begun.elapsed() < Duration::from_secs(8));
        assert!(receive(&listeners, &end(2, Origin::Listening), &|| true).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for (payload, rate, seconds) in [
            (10, 1e6, 1.0),
            (70_000, 1e6, 1.0),
            (100, f64::NAN, 1.0),
            (100, 0.0, 1.0),
            (100, 1e6, f64::INFINITY),
            (100, 1e6, -1.0),
        ] {
            let end = SequenceEnd {
                payload,
                rate,
                seconds,
                ..end(1, Origin::Listening)
            };
            assert!(Pace::new(&end).is_err(), "{end:?}");
        }
    }
}
