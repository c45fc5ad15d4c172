//! Sockets being opened, with the options that a WireGuard device needs.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::BindOptions;
use super::address::{Family, LocalAddress};
use super::sys::{option, set_option};
use crate::offloads::{Offload, Offloads};

/// What a socket may hold of what came, before the kernel doubles it for its own use: the windows of ten TCP flows, 6 MB each as
/// Linux limits them. A worker that waits for a core (20 ms at 6 Gbit/s fill 16 MiB) would otherwise lose whole trains.
const RECEIVE_BYTES: i32 = 32 << 20;

/// What a socket may hold of what goes: 5 ms at 10 Gbit/s. Whoever sends waits for room.
const SEND_BYTES: i32 = 7 << 20;

/// A bound socket of this family, non-blocking.
pub(super) fn open(
    family: Family,
    options: BindOptions,
    offloads: &Offloads,
) -> io::Result<OwnedFd> {
    let socket = datagram_socket(family)?;
    let fd = socket.as_fd();
    if options.share_port {
        set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    if options.fwmark != 0 {
        set_fwmark(fd, options.fwmark)?;
    }
    match family {
        Family::V4 => {
            set_option(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            set_option(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        }
        Family::V6 => {
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        }
    }
    allow_fragments(family, fd)?;
    grow_buffers(family, fd);
    if offloads.on(Offload::UdpGro) {
        let asked = set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
        offloads.probed(Offload::UdpGro, asked.map_err(|error| error.to_string()));
    }
    rustix::net::bind(fd, &family.any(options.port))?;
    Ok(socket)
}

/// A socket without any options yet.
pub(super) fn datagram_socket(family: Family) -> io::Result<OwnedFd> {
    let domain = match family {
        Family::V4 => AddressFamily::INET,
        Family::V6 => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        domain,
        SocketType::DGRAM,
        flags,
        None,
    )?)
}

/// Whether a socket can't be had because the machine does without this IP version.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT | Errno::ADDRNOTAVAIL)
    )
}

pub(super) fn set_fwmark(socket: BorrowedFd<'_>, mark: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed())
}

/// The port that a socket is bound to.
pub(super) fn port(socket: BorrowedFd<'_>) -> io::Result<u16> {
    Ok(SocketAddr::try_from(rustix::net::getsockname(socket)?)?.port())
}

/// Asks the kernel for the MTU of the path to a destination, in bytes of the whole IP packet.
pub(super) fn path_mtu(to: SocketAddr, from: Option<LocalAddress>, fwmark: u32) -> Option<usize> {
    let family = Family::of(&to);
    let socket = datagram_socket(family).ok()?;
    if fwmark != 0 {
        set_fwmark(socket.as_fd(), fwmark).ok()?;
    }
    if let Some(from) = from {
        // Best effort: the route usually doesn't depend on it.
        let _ = rustix::net::bind(&socket, &SocketAddr::new(from.address, 0));
    }
    rustix::net::connect(&socket, &to).ok()?;
    let mtu = match family {
        Family::V4 => option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU),
        Family::V6 => option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    mtu.ok().and_then(|mtu| usize::try_from(mtu).ok())
}

/// Lets datagrams be fragmented, here and (IPv4) on the road, as the kernel's own WireGuard does: it sends with `df` 0 and
/// `ignore_df` 1 (`send4` and `send6` in `drivers/net/wireguard/socket.c`). `IP_PMTUDISC_DONT` sets just these two for a
/// socket: no DF in the header, and what is longer than the path's MTU is fragmented instead of refused with EMSGSIZE. The
/// same for IPv6, where only the sender ever fragments.
fn allow_fragments(family: Family, socket: BorrowedFd<'_>) -> io::Result<()> {
    match family {
        Family::V4 => set_option(
            socket,
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DONT,
        ),
        Family::V6 => set_option(
            socket,
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_DONT,
        ),
    }
}

/// Asks for large buffers: beyond the system's limit with the privilege for it, else up to the limit.
fn grow_buffers(family: Family, socket: BorrowedFd<'_>) {
    for (forced, limited, wanted, name) in [
        (
            libc::SO_RCVBUFFORCE,
            libc::SO_RCVBUF,
            RECEIVE_BYTES,
            "receive",
        ),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BYTES, "send"),
    ] {
        let set = |kind| set_option(socket, libc::SOL_SOCKET, kind, wanted);
        let grown = set(forced).or_else(|refused| {
            log::debug!(
                "the {family} socket's {name} buffer can't go beyond net.core's limit: {refused}"
            );
            set(limited)
        });
        match grown.and_then(|()| option(socket, libc::SOL_SOCKET, limited)) {
            Ok(bytes) => log::debug!("the {family} socket's {name} buffer has {bytes} B"),
            Err(error) => log::debug!("the {family} socket keeps its {name} buffer: {error}"),
        }
    }
}
