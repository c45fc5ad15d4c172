//! Round trips: ICMP echo requests whose answers the other side's kernel makes, timed by the kernel's receive time, so that our
//! own late wake-up on a busy machine is not counted.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};
use wirespeed_measure::statistics;

use crate::BenchError;
use crate::place::Place;

/// As `ping` sends: 56 bytes of payload behind the header.
const MESSAGE_BYTES: usize = 64;
/// Answers may be this late after the last request.
const PATIENCE: Duration = Duration::from_millis(300);
/// Stopping is noticed within this time.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Sends echo requests from a place.
pub(crate) struct Echo {
    socket: Socket,
    to: Ipv4Addr,
    id: u16,
}

/// A request and what became of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// When it was sent.
    pub(crate) at: Instant,
    wall: SystemTime,
    /// How long the answer took; `None` = none came.
    pub(crate) took: Option<Duration>,
}

/// Round trips of a train, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RoundTrips {
    pub(crate) median: Option<f64>,
    pub(crate) p99: Option<f64>,
    /// Share without an answer.
    pub(crate) lost: Option<f64>,
}

impl RoundTrips {
    pub(crate) fn of(train: &[Request]) -> Self {
        let times: Vec<f64> = train
            .iter()
            .filter_map(|request| request.took)
            .map(|took| took.as_secs_f64())
            .collect();
        Self {
            median: statistics::median(&times),
            p99: statistics::percentile(&times, 0.99),
            lost: (!train.is_empty()).then(|| 1.0 - times.len() as f64 / train.len() as f64),
        }
    }
}

impl Echo {
    pub(crate) fn open(place: &Place, to: Ipv4Addr) -> Result<Self, BenchError> {
        let failed =
            |source: io::Error| BenchError::system("open a socket for echo requests")(source);
        let socket = place
            .run(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)))?
            .map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)
            .map_err(|errno| failed(errno.into()))?;
        Ok(Self {
            socket,
            to,
            id: rand::random(),
        })
    }

    /// A request every `interval` as long as `goes_on`; then late answers are awaited.
    pub(crate) fn train(&self, interval: Duration, goes_on: &dyn Fn() -> bool) -> Vec<Request> {
        self.run(interval, goes_on, false)
    }

    /// Requests until the first answer, or nothing came within `limit`; when the answer was here.
    pub(crate) fn first_answer(
        &self,
        limit: Duration,
        interval: Duration,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Instant, BenchError> {
        let end = Instant::now() + limit;
        let train = self.run(interval, &|| Instant::now() < end && goes_on(), true);
        train
            .iter()
            .find_map(|request| Some(request.at + request.took?))
            .ok_or(BenchError::NoEcho {
                to: self.to.to_string(),
                limit,
            })
    }

    fn run(&self, interval: Duration, goes_on: &dyn Fn() -> bool, enough: bool) -> Vec<Request> {
        let mut train: Vec<Request> = Vec::new();
        let mut due = Instant::now();
        while goes_on() && train.len() < usize::from(u16::MAX) {
            let now = Instant::now();
            if now >= due {
                self.send(&mut train);
                // From now when far behind, so that a machine that was busy sends no burst.
                due = (due + interval).max(now);
            }
            if self.receive(
                &mut train,
                due.saturating_duration_since(Instant::now()).min(LOOK_UP),
                enough,
            ) {
                return train;
            }
        }
        let end = Instant::now() + PATIENCE;
        while train.iter().any(|request| request.took.is_none()) && Instant::now() < end {
            if self.receive(&mut train, LOOK_UP, enough) {
                break;
            }
        }
        train
    }

    fn send(&self, train: &mut Vec<Request>) {
        let message = message(self.id, train.len() as u16);
        train.push(Request {
            at: Instant::now(),
            wall: SystemTime::now(),
            took: None,
        });
        // While a daemon restarts there is no route or no interface; the request then counts as lost.
        let _ = self
            .socket
            .send_to(&message, &SocketAddrV4::new(self.to, 0).into());
    }

    /// Takes the answers that are here or come within `wait`; true when one came and one is enough.
    fn receive(&self, train: &mut [Request], wait: Duration, enough: bool) -> bool {
        let timeout = Timespec {
            tv_sec: wait.as_secs().cast_signed(),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let _ = poll(
            &mut [PollFd::new(&self.socket, PollFlags::IN)],
            Some(&timeout),
        );
        let mut buffer = [0; 512];
        let mut control = nix::cmsg_space!(TimeSpec);
        loop {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let Ok(received) = recvmsg::<SockaddrIn>(
                self.socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::MSG_DONTWAIT,
            ) else {
                return false;
            };
            let at = received.cmsgs().ok().and_then(|mut messages| {
                messages.find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
                    _ => None,
                })
            });
            let length = received.bytes;
            let Some(request) = answered(&buffer[..length.min(512)], self.id)
                .and_then(|number| train.get_mut(usize::from(number)))
            else {
                continue;
            };
            let at_most = request.at.elapsed();
            let by_kernel = at
                .zip(request.wall.duration_since(UNIX_EPOCH).ok())
                .and_then(|(at, sent)| at.checked_sub(sent))
                .filter(|took| *took <= at_most);
            request.took.get_or_insert(by_kernel.unwrap_or(at_most));
            if enough {
                return true;
            }
        }
    }
}

fn message(id: u16, number: u16) -> [u8; MESSAGE_BYTES] {
    let mut message = [0x5a; MESSAGE_BYTES];
    message[..4].copy_from_slice(&[8, 0, 0, 0]);
    message[4..6].copy_from_slice(&id.to_be_bytes());
    message[6..8].copy_from_slice(&number.to_be_bytes());
    let sum: u32 = message
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    message
}

/// The number of the request that this packet, IPv4 header included, answers.
fn answered(packet: &[u8], id: u16) -> Option<u16> {
    let message = packet.get(usize::from(packet.first()? & 15) * 4..)?;
    let ours = message.first() == Some(&0) && message.get(4..6) == Some(&id.to_be_bytes());
    let number = message.get(6..8).filter(|_| ours)?;
    Some(u16::from_be_bytes([number[0], number[1]]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_is_ours_by_its_id() {
        let mut packet = vec![0x45; 20];
        packet.extend(message(7, 300));
        assert_eq!(answered(&packet, 7), None, "a request is no answer");
        packet[20] = 0;
        assert_eq!(answered(&packet, 7), Some(300));
        assert_eq!(answered(&packet, 8), None);
    }

    #[test]
    fn what_is_lost_is_counted() {
        let (at, wall) = (Instant::now(), SystemTime::now());
        let train = [Some(1), Some(3), None, None].map(|took| Request {
            at,
            wall,
            took: took.map(Duration::from_secs),
        });
        let round_trips = RoundTrips::of(&train);
        assert_eq!(
            (round_trips.median, round_trips.lost),
            (Some(2.0), Some(0.5))
        );
        assert!((round_trips.p99.unwrap() - 2.98).abs() < 1e-9);
        assert_eq!(RoundTrips::of(&[]), RoundTrips::default());
    }

    proptest! {
        #[test]
        fn any_packet_is_read(packet in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = answered(&packet, 1);
        }

        #[test]
        fn checksums_come_out_even(id: u16, number: u16) {
            let sum: u32 = message(id, number).chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            prop_assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }
}
