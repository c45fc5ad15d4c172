//! The crowd: many senders of handshakes, each with an address of its own, behind one socket.
//!
//! Callers are honest: each has a key the daemon knows and makes one handshake. What costs a caller time is done before and after
//! the time that counts: its initiation beforehand, and reading the answer afterwards. A cookie is put on at once, and the
//! initiation sent again. (`flood` is the dishonest one.)

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use rand::RngExt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirespeed_protocol::wire::{self, CookieReply};
use wirespeed_protocol::{Now, PrivateKey, PublicKey, Tunnel, WallTime};

use crate::BenchError;
use crate::forge::{self, Initiation};
use crate::place::Place;
use crate::road::{CROWD, crowd_address};

/// Handshakes under way at a time: below the queue length at which wireguard-go thinks itself under load (128).
const WINDOW: usize = 64;
/// An answer later than this is none.
const PATIENCE: Duration = Duration::from_millis(500);

/// A socket with all the crowd's addresses.
pub(crate) struct Crowd {
    socket: UdpSocket,
}

/// Somebody who wants a handshake.
pub(crate) struct Caller {
    tunnel: Tunnel,
    pub(crate) public: PublicKey,
    initiation: Initiation,
    answer: Option<Vec<u8>>,
    under_way: bool,
}

/// What became of the callers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Called {
    /// From the first call to the last answer.
    pub(crate) seconds: f64,
    /// How many called.
    pub(crate) calls: u32,
    /// How many of them were answered.
    pub(crate) answered: u32,
    /// How many had to prove their address by a cookie first.
    pub(crate) cookies: u32,
}

impl Crowd {
    pub(crate) fn open(place: &Place) -> Result<Self, BenchError> {
        let failed = |source: io::Error| BenchError::system("open the crowd's socket")(source);
        let socket = place
            .run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?
            .map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)
            .map_err(|errno| failed(errno.into()))?;
        // Answers must not be lost at our end; as root beyond the system's limit.
        setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20))
            .map_err(|errno| failed(errno.into()))?;
        Ok(Self { socket })
    }

    /// The port all of them call from.
    pub(crate) fn port(&self) -> Result<u16, BenchError> {
        let address = self.socket.local_addr();
        address
            .map(|address| address.port())
            .map_err(BenchError::system("ask for the crowd's port"))
    }

    /// Lets all of them call, as many at a time as is fair, for no longer than `limit`.
    pub(crate) fn call(
        &self,
        callers: &mut [Caller],
        daemon: (SocketAddrV4, &PublicKey),
        limit: Duration,
        goes_on: &dyn Fn() -> bool,
    ) -> Called {
        let mut called = Called::default();
        let begun = Instant::now();
        let mut last_answer = begun;
        let mut under_way: VecDeque<(usize, Instant)> = VecDeque::new();
        let mut next = 0;
        while begun.elapsed() < limit && goes_on() {
            while under_way.len() < WINDOW && next < callers.len() {
                callers[next].under_way = true;
                // A send that fails is a call without an answer.
                let _ = self.send(
                    crowd_address(next as u32),
                    daemon.0,
                    &callers[next].initiation,
                );
                under_way.push_back((next, Instant::now()));
                called.calls += 1;
                next += 1;
            }
            if under_way.is_empty() {
                break;
            }
            self.wait(Duration::from_millis(5));
            let mut buffer = [0; 512];
            while let Some((to, length)) = self.receive(&mut buffer) {
                let number = to.to_bits().wrapping_sub(CROWD.0.to_bits()) as usize;
                let Some(caller) = callers.get_mut(number).filter(|caller| caller.under_way) else {
                    continue;
                };
                let datagram = &buffer[..length];
                match wire::kind(datagram) {
                    Some(wire::Kind::Response) => {
                        caller.answer = Some(datagram.to_vec());
                        caller.under_way = false;
                        last_answer = Instant::now();
                    }
                    Some(wire::Kind::CookieReply) => {
                        let fits = CookieReply::parse(datagram).is_some_and(|reply| {
                            forge::add_cookie(&mut caller.initiation, daemon.1, &reply)
                        });
                        if fits {
                            called.cookies += 1;
                            let _ = self.send(to, daemon.0, &caller.initiation);
                        }
                    }
                    _ => {}
                }
            }
            let now = Instant::now();
            under_way.retain(|(number, at)| {
                let waits = callers[*number].under_way && now - *at < PATIENCE;
                callers[*number].under_way &= waits;
                waits
            });
        }
        called.seconds = (last_answer - begun).as_secs_f64();
        let at = now();
        for caller in callers {
            if let Some(answer) = caller.answer.take() {
                let authentic = caller
                    .tunnel
                    .handshake(at, daemon.0.into(), &answer, &mut rand::rng())
                    .is_ok();
                called.answered += u32::from(authentic);
            }
        }
        called
    }

    fn send(&self, from: Ipv4Addr, to: SocketAddrV4, bytes: &[u8]) -> nix::Result<usize> {
        let source = libc::in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr {
                s_addr: u32::from_ne_bytes(from.octets()),
            },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        sendmsg(
            self.socket.as_raw_fd(),
            &[IoSlice::new(bytes)],
            &[ControlMessage::Ipv4PacketInfo(&source)],
            MsgFlags::empty(),
            Some(&SockaddrIn::from(to)),
        )
    }

    /// A datagram that is here, and the address it came to.
    fn receive(&self, buffer: &mut [u8]) -> Option<(Ipv4Addr, usize)> {
        let mut control = nix::cmsg_space!(libc::in_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let received = recvmsg::<SockaddrIn>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::MSG_DONTWAIT,
        )
        .ok()?;
        let to = received.cmsgs().ok()?.find_map(|message| match message {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()))
            }
            _ => None,
        })?;
        Some((to, received.bytes))
    }

    fn wait(&self, at_most: Duration) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        // Interrupted or over: the caller looks at the clock anyway.
        let _ = poll(
            &mut [PollFd::new(&self.socket, PollFlags::IN)],
            Some(&timeout),
        );
    }
}

/// So many callers for a daemon, with their initiations made.
pub(crate) fn callers(
    daemon: (SocketAddrV4, &PublicKey),
    count: usize,
) -> Result<Vec<Caller>, BenchError> {
    let at = now();
    let rng = &mut rand::rng();
    (0..count)
        .map(|_| {
            let private = PrivateKey::from_bytes(rng.random());
            let public = private.public();
            let tunnel = Tunnel::new(at.instant, wirespeed_protocol::Options::default(), rng);
            tunnel.set_private_key(Some(private));
            let peer = tunnel
                .add_peer(*daemon.1, rng)
                .map_err(|error| BenchError::Measured(error.to_string()))?;
            tunnel.set_endpoint(at, &peer, daemon.0.into());
            tunnel.set_persistent_keepalive(at, &peer, Some(Duration::from_secs(25)));
            tunnel.timers(at, rng);
            let initiation = tunnel
                .poll_transmit()
                .and_then(|transmit| Initiation::try_from(transmit.bytes).ok())
                .ok_or_else(|| BenchError::Measured("a caller made no initiation".to_owned()))?;
            Ok(Caller {
                tunnel,
                public,
                initiation,
                answer: None,
                under_way: false,
            })
        })
        .collect()
}

fn now() -> Now {
    Now {
        instant: wirespeed_protocol::Instant::from_nanos(1_000_000_000),
        wall: WallTime(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_answered_by_our_own_protocol() {
        let key = PrivateKey::from_bytes([9; 32]);
        let address: SocketAddrV4 = "192.0.2.1:51820".parse().unwrap();
        let callers = callers((address, &key.public()), 2).unwrap();
        let at = now();
        let daemon = Tunnel::new(
            at.instant,
            wirespeed_protocol::Options::default(),
            &mut rand::rng(),
        );
        daemon.set_private_key(Some(key));
        for caller in &callers {
            daemon.add_peer(caller.public, &mut rand::rng()).unwrap();
            let source = "10.64.0.1:7".parse().unwrap();
            daemon
                .handshake(at, source, &caller.initiation, &mut rand::rng())
                .unwrap();
            let answer = daemon.poll_transmit().unwrap();
            caller
                .tunnel
                .handshake(at, address.into(), &answer.bytes, &mut rand::rng())
                .unwrap();
        }
    }
}
