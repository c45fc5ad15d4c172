//! The ICMP socket under an echo train: raw, or unprivileged (`ping_group_range`) where raw is not allowed.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use nix::{cmsg_space, libc};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::echo_packet::{self, Kind};

/// Of a packet only our payload is of interest, whatever its size.
const READ_SIZE: usize = 128;
/// Bytes the kernel may hold for us: a raw socket sees the namespace's other ICMP traffic too.
const RECEIVE_BUFFER: usize = 1 << 20;

pub(crate) struct EchoSocket {
    socket: Socket,
    v4: bool,
    raw: bool,
}

/// An entry of the error queue.
pub(crate) enum Event {
    /// "Fragmentation needed", "packet too big", or the first link is too small; 0 = no MTU told.
    TooBig { mtu: u32 },
    /// Any other error.
    Other(String),
    /// An error of somebody else's packet, or one without a reason.
    NotOurs,
}

impl EchoSocket {
    pub(crate) fn open(v4: bool) -> Result<Self, String> {
        let (domain, protocol) = if v4 {
            (Domain::IPV4, Protocol::ICMPV4)
        } else {
            (Domain::IPV6, Protocol::ICMPV6)
        };
        let (socket, raw) = match Socket::new(domain, Type::RAW, Some(protocol)) {
            Ok(socket) => (socket, true),
            Err(refused) => match Socket::new(domain, Type::DGRAM, Some(protocol)) {
                Ok(socket) => (socket, false),
                Err(_) => {
                    return Err(format!(
                        "no ICMP socket: {refused}; run as root (or with CAP_NET_RAW)"
                    ));
                }
            },
        };
        let open = Self { socket, v4, raw };
        // A smaller buffer than asked for is no error.
        let _ = open.socket.set_recv_buffer_size(RECEIVE_BUFFER);
        open.set(
            "receive time",
            setsockopt(&open.socket, sockopt::ReceiveTimestampns, &true),
        )?;
        Ok(open)
    }

    /// Sets what a sender needs.
    pub(crate) fn prepare(
        &self,
        dont_fragment: bool,
        source: Option<IpAddr>,
        interface: Option<&str>,
    ) -> Result<(), String> {
        if self.v4 {
            self.set(
                "IP_RECVERR",
                setsockopt(&self.socket, sockopt::Ipv4RecvErr, &true),
            )?;
            let discover = if dont_fragment {
                Ipv4PathMtuDiscovery::PROBE
            } else {
                Ipv4PathMtuDiscovery::DONT
            };
            self.set(
                "IP_MTU_DISCOVER",
                set_ip_mtu_discover(&self.socket, discover),
            )?;
        } else {
            self.set(
                "IPV6_RECVERR",
                setsockopt(&self.socket, sockopt::Ipv6RecvErr, &true),
            )?;
            let discover = if dont_fragment {
                Ipv6PathMtuDiscovery::PROBE
            } else {
                Ipv6PathMtuDiscovery::DONT
            };
            self.set(
                "IPV6_MTU_DISCOVER",
                set_ipv6_mtu_discover(&self.socket, discover),
            )?;
        }
        if let Some(interface) = interface {
            self.set(
                interface,
                self.socket.bind_device(Some(interface.as_bytes())),
            )?;
        }
        if let Some(source) = source {
            self.set(
                &source.to_string(),
                self.socket.bind(&SocketAddr::new(source, 0).into()),
            )?;
        }
        Ok(())
    }

    fn set<E: std::fmt::Display>(&self, what: &str, result: Result<(), E>) -> Result<(), String> {
        let family = if self.v4 { "ICMP" } else { "ICMPv6" };
        result.map_err(|error| format!("{family} socket, {what}: {error}"))
    }

    pub(crate) fn is_raw(&self) -> bool {
        self.raw
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn send(&self, icmp: &[u8], to: &SockAddr) -> io::Result<()> {
        self.socket
            .send_to_with_flags(icmp, to, libc::MSG_DONTWAIT)
            .map(drop)
    }

    /// The next packet of the train: its number, and when the kernel received it (since the Unix epoch).
    /// Packets of others are skipped; `None` = nothing more waits.
    pub(crate) fn receive(&self, kind: Kind, token: u64) -> Option<(u32, Option<Duration>)> {
        loop {
            let mut bytes = [0; READ_SIZE];
            let mut control = cmsg_space!(TimeSpec);
            let (length, received_at) = {
                let mut parts = [IoSliceMut::new(&mut bytes)];
                let message = recvmsg::<SockaddrStorage>(
                    self.socket.as_raw_fd(),
                    &mut parts,
                    Some(&mut control),
                    MsgFlags::MSG_DONTWAIT,
                );
                match message {
                    Ok(message) => (message.bytes, received_at(&message)),
                    Err(nix::Error::EINTR) => continue,
                    Err(_) => return None,
                }
            };
            let packet = &bytes[..length.min(READ_SIZE)];
            let icmp = if self.v4 && self.raw {
                echo_packet::after_v4_header(packet)
            } else {
                Some(packet)
            };
            if let Some(number) =
                icmp.and_then(|icmp| echo_packet::number(icmp, self.v4, kind, token))
            {
                return Some((number, received_at));
            }
        }
    }

    /// The next entry of the error queue; `None` = it is empty.
    pub(crate) fn take_error(&self, token: u64) -> Option<Event> {
        let mut bytes = [0; READ_SIZE];
        let mut control = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, TimeSpec);
        let (length, error) = {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message = recvmsg::<SockaddrStorage>(
                self.socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                flags,
            )
            .ok()?;
            let error = message.cmsgs().ok()?.find_map(|part| match part {
                ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(error),
                _ => None,
            });
            (message.bytes, error)
        };
        // A raw socket is told of every ICMP packet of the namespace that came to grief.
        if self.raw && echo_packet::is_foreign(&bytes[..length.min(READ_SIZE)], token) {
            return Some(Event::NotOurs);
        }
        Some(
            match error.map(|error| {
                (
                    nix::Error::from_raw(error.ee_errno.cast_signed()),
                    error.ee_info,
                )
            }) {
                Some((nix::Error::EMSGSIZE, mtu)) => Event::TooBig { mtu },
                Some((other, _)) => Event::Other(other.desc().to_owned()),
                None => Event::NotOurs,
            },
        )
    }
}

fn received_at(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<Duration> {
    message.cmsgs().ok()?.find_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::new(
            u64::try_from(time.tv_sec()).ok()?,
            u32::try_from(time.tv_nsec()).ok()?,
        )),
        _ => None,
    })
}
