//! GSO and GRO put to the test at the start: trains sent to ourselves over the loopback, contents compared.
//!
//! A loopback that is down or filtered tells nothing; then the offloads count as working, and errors show later. One
//! fault is known to show neither there nor as an error, so its kernels are refused by their version: Linux 7.0.0 to
//! 7.1.4 give trains of equal segments a wrong UDP length when a network card takes part in cutting them (`GSO_PARTIAL`;
//! commits b10b446ce7ad, mended by 78effd896eee and 5f17ae0f595a), and the receiver drops most of them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::address::{Family, Name};
use super::open::{datagram_socket, is_absent};
use super::receive::Received;
use super::send::control;
use super::sys::{self, option, set_option};
use super::trains::Train;
use crate::offloads::{Offload, Offloads};

/// Linux versions that send mangled trains, from and to.
const MANGLING: [Version; 2] = [(7, 0, 0), (7, 1, 4)];

/// The first whose GRO for sockets is complete.
const GRO_SINCE: Version = (5, 12, 0);

/// How long a train may take over the loopback. Only a lost one takes so long.
const ARRIVAL: Duration = Duration::from_millis(200);

/// Trains to be tried: the segment's length, how many there are, the last one's length.
const TRAINS: [(usize, u32, usize); 4] = [
    (1_452, 45, 1_452),
    (1_452, 44, 660),
    (112, 64, 112),
    (1_000, 2, 1),
];

/// Of a kernel: major, minor, patch level.
type Version = (u32, u32, u32);

/// What the test found of one offload.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Works,
    Broken(String),
    /// It couldn't be tried, for this reason.
    Unknown(String),
}

/// Tests GSO and GRO, the first time it is called for these offloads.
pub(super) fn once(offloads: &Offloads) {
    if !offloads.begin_probe(Offload::UdpGso) {
        return;
    }
    let release = rustix::system::uname();
    let version = version(&release.release().to_string_lossy());
    let (gso, gro) = test();
    for (offload, found) in [(Offload::UdpGso, gso), (Offload::UdpGro, gro)] {
        let refused = version.and_then(|version| refused(offload, version));
        let verdict = match refused {
            Some(why) if offloads.forced(offload) => {
                log::warn!("{offload}: used as an option says, although {why}");
                verdict(offload, found)
            }
            Some(why) => Err(why.to_owned()),
            None => verdict(offload, found),
        };
        offloads.probed(offload, verdict);
    }
}

/// Why kernels of this version can't be trusted with it, whatever the test says.
fn refused(offload: Offload, version: Version) -> Option<&'static str> {
    match offload {
        Offload::UdpGso if (MANGLING[0]..=MANGLING[1]).contains(&version) => {
            Some("Linux 7.0.0 to 7.1.4 send trains that receivers drop; update to 7.1.5 or later")
        }
        Offload::UdpGro if version < GRO_SINCE => Some("it is complete from Linux 5.12 on"),
        _ => None,
    }
}

fn verdict(offload: Offload, found: Found) -> Result<(), String> {
    match found {
        Found::Works => Ok(()),
        Found::Broken(why) => Err(why),
        Found::Unknown(why) => {
            log::debug!("{offload}: taken as working, for it can't be tried: {why}");
            Ok(())
        }
    }
}

/// `6.18.44-fc-v669` as numbers.
fn version(release: &str) -> Option<Version> {
    let numbers = release
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next()?;
    let mut parts = numbers.split('.').map(str::parse);
    let major = parts.next()?.ok()?;
    let minor = parts.next()?.ok()?;
    Some((major, minor, parts.next().and_then(Result::ok).unwrap_or(0)))
}

/// Tries GSO, then GRO if that works.
fn test() -> (Found, Found) {
    match Loopback::open() {
        Ok(loopback) => {
            let gso = loopback.try_gso();
            let gro = loopback.try_gro(gso == Found::Works);
            (gso, gro)
        }
        Err(error) => {
            let why = format!("no loopback socket: {error}");
            (Found::Unknown(why.clone()), Found::Unknown(why))
        }
    }
}

/// Two sockets that can reach each other.
struct Loopback {
    sender: OwnedFd,
    receiver: OwnedFd,
    to: SocketAddr,
}

impl Loopback {
    fn open() -> io::Result<Self> {
        Self::of(Family::V4).or_else(|error| {
            if is_absent(&error) {
                Self::of(Family::V6)
            } else {
                Err(error)
            }
        })
    }

    fn of(family: Family) -> io::Result<Self> {
        let own: SocketAddr = match family {
            Family::V4 => (Ipv4Addr::LOCALHOST, 0).into(),
            Family::V6 => (Ipv6Addr::LOCALHOST, 0).into(),
        };
        let [sender, receiver] = [datagram_socket(family)?, datagram_socket(family)?];
        for socket in [&sender, &receiver] {
            // Room for a train that is received in pieces; less would show as a loss.
            set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 1 << 20)?;
            rustix::net::bind(socket, &own)?;
        }
        let to = SocketAddr::try_from(rustix::net::getsockname(&receiver)?)?;
        rustix::net::connect(&receiver, &rustix::net::getsockname(&sender)?)?;
        Ok(Self {
            sender,
            receiver,
            to,
        })
    }

    fn try_gso(&self) -> Found {
        if let Err(error) = option(self.sender.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT) {
            return Found::Broken(format!("not in this kernel: {error}"));
        }
        self.try_all("cut up")
    }

    fn try_gro(&self, with_trains: bool) -> Found {
        if let Err(error) = set_option(self.receiver.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1) {
            return Found::Broken(format!("not in this kernel: {error}"));
        }
        if with_trains {
            self.try_all("put together")
        } else {
            Found::Unknown("there are no trains to try it with".to_owned())
        }
    }

    fn try_all(&self, how: &str) -> Found {
        let mut received = Received::new();
        for (segment, count, last) in TRAINS {
            let bytes = pattern(segment * (count as usize - 1) + last);
            let train = Train {
                bytes: &bytes,
                segment,
                datagrams: count,
                traffic_class: 0,
            };
            match self.try_train(&train, &mut received) {
                Found::Works => {}
                Found::Broken(why) => {
                    return Found::Broken(format!(
                        "{count} datagrams of {segment} B sent to ourselves weren't well {how}: {why}"
                    ));
                }
                unknown @ Found::Unknown(_) => return unknown,
            }
        }
        Found::Works
    }

    fn try_train(&self, train: &Train<'_>, received: &mut Received) -> Found {
        let control = |train: &Train<'_>| control(None, self.to.is_ipv4(), train);
        let name = Name::from(&self.to);
        match sys::send(self.sender.as_fd(), &name, &[*train], control) {
            Ok(_) => {}
            Err(error) if says_nothing(&error) => {
                return Found::Unknown(format!("sending to {} failed: {error}", self.to));
            }
            Err(error) => return Found::Broken(error.to_string()),
        }
        let mut expected = train.singles();
        let mut arrived = 0;
        while arrived < train.datagrams {
            if !readable(self.receiver.as_fd()) {
                return if arrived == 0 {
                    Found::Unknown(format!("nothing arrives at {}", self.to))
                } else {
                    Found::Broken(format!("only {arrived} arrived"))
                };
            }
            match received.fill(Family::of(&self.to), self.receiver.as_fd()) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => return Found::Unknown(format!("receiving failed: {error}")),
            }
            for datagram in received.datagrams() {
                arrived += 1;
                match expected.next() {
                    Some(single) if single.bytes == &*datagram.bytes => {}
                    Some(single) if single.bytes.len() == datagram.bytes.len() => {
                        return Found::Broken(format!("number {arrived} has other contents"));
                    }
                    Some(_) => {
                        let length = datagram.bytes.len();
                        return Found::Broken(format!("number {arrived} has {length} B"));
                    }
                    None => return Found::Broken("more arrived".to_owned()),
                }
            }
        }
        Found::Works
    }
}

/// Whether a refusal to send has nothing to do with trains.
fn says_nothing(error: &io::Error) -> bool {
    !matches!(
        Errno::from_io_error(error),
        Some(Errno::INVAL | Errno::IO | Errno::MSGSIZE | Errno::OPNOTSUPP)
    )
}

/// Waits for something to be received.
fn readable(socket: BorrowedFd<'_>) -> bool {
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(ARRIVAL.subsec_nanos()),
    };
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Bytes of which no two datagrams' worth are the same.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_off_release_names() {
        for (release, expected) in [
            ("6.18.44-fc-v669", Some((6, 18, 44))),
            ("7.0.0-14-generic", Some((7, 0, 0))),
            ("7.1-rc5", Some((7, 1, 0))),
            ("5.4", Some((5, 4, 0))),
            ("6.1.0-28-amd64", Some((6, 1, 0))),
            ("six", None),
            ("", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }

    #[test]
    fn mangling_kernels_are_known() {
        let mangles = |release| refused(Offload::UdpGso, version(release).unwrap()).is_some();
        assert!(mangles("7.0.0-14-generic") && mangles("7.1.4"));
        assert!(!mangles("6.18.44") && !mangles("7.1.5") && !mangles("7.2.0"));
        assert!(refused(Offload::UdpGro, (5, 11, 22)).is_some());
        assert!(refused(Offload::UdpGro, (5, 12, 0)).is_none());
    }

    #[test]
    fn trains_for_the_test_are_trains() {
        for (segment, count, last) in TRAINS {
            let total = segment * (count as usize - 1) + last;
            assert!(total <= super::super::trains::MAX_TRAIN_BYTES && last <= segment);
        }
    }
}
