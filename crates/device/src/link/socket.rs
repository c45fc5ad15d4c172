//! A netlink socket for routing messages.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::message::{Content, Message, Request, messages};

/// Room for one datagram of the kernel: 32 KiB is the most it fills of an answer.
pub(super) const DATAGRAM_BYTES: usize = 32 * 1024;

/// Longest wait for an answer. The kernel gives it within the call that asks, but for lists.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// A netlink socket, non-blocking.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace; `groups` is the mask of what to be told unasked.
    pub(crate) fn open(groups: u32) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None, // NETLINK_ROUTE is 0
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Asks, and doesn't wait for the answer. The number is that of the request.
    pub(crate) fn send(&mut self, request: Request) -> io::Result<u32> {
        // 0 marks what nobody asked for.
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let bytes = request.finish(self.sequence);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        Ok(self.sequence)
    }

    /// Asks, and waits for the one answer or the end of the list. An error is the kernel's answer, too.
    pub(crate) fn ask(&mut self, request: Request) -> io::Result<Vec<Content>> {
        let sequence = self.send(request)?;
        let deadline = Instant::now() + TIME_LIMIT;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let mut answers = Vec::new();
        loop {
            let length = match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())
            {
                Ok((_, length)) => length,
                Err(rustix::io::Errno::AGAIN) => {
                    self.wait(deadline)?;
                    continue;
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for Message {
                sequence: of,
                content,
            } in messages(&buffer[..length])
            {
                match content {
                    _ if of != sequence => {}
                    Content::Ended(0) => return Ok(answers),
                    Content::Ended(error) => {
                        return Err(io::Error::from_raw_os_error(error.wrapping_neg()));
                    }
                    // Lists are told by their end; these aren't asked for as lists.
                    Content::Link(_) | Content::Namespace(_) => return Ok(vec![content]),
                    _ => answers.push(content),
                }
            }
        }
    }

    fn wait(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(0) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Wants to be told of other namespaces, too, as far as ours has numbers for them.
    pub(super) fn listen_to_all_namespaces(&self) -> io::Result<()> {
        let on: c_int = 1;
        // SAFETY: the option takes an int, which lives during the call, and its size is given.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_LISTEN_ALL_NSID,
                (&raw const on).cast(),
                mem::size_of::<c_int>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// The next datagram, and the number of the namespace it came from if that isn't ours.
    pub(super) fn receive(&self, into: &mut [u8]) -> io::Result<(usize, Option<i32>)> {
        /// Room for one control message with an int, aligned as its header.
        #[repr(C)]
        struct Control {
            header: libc::cmsghdr,
            value: [c_int; 4],
        }
        // SAFETY: all-zero is a valid value of both plain C structures.
        let (mut control, mut header): (Control, libc::msghdr) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let mut piece = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = mem::size_of::<Control>() as _;
        // SAFETY: the header points to one piece and one control buffer, both of the lengths given, and both live during the call.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0) };
        let Ok(length) = usize::try_from(length) else {
            return Err(io::Error::last_os_error());
        };
        let mut namespace = None;
        // SAFETY: the kernel has filled the header; the macros check the control buffer's length before they point into it.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
        while !message.is_null() {
            // SAFETY: a control message's header, inside the control buffer.
            let found = unsafe { *message };
            if found.cmsg_level == libc::SOL_NETLINK
                && found.cmsg_type == libc::NETLINK_LISTEN_ALL_NSID
            {
                // SAFETY: a message of this type holds an int; it may be unaligned.
                namespace =
                    Some(unsafe { libc::CMSG_DATA(message).cast::<c_int>().read_unaligned() });
            }
            // SAFETY: as for the first.
            message = unsafe { libc::CMSG_NXTHDR(&raw const header, message) };
        }
        Ok((length.min(into.len()), namespace))
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
