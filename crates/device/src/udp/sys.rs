//! The system calls of UDP that no safe wrapper covers.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::address::{NAME_BYTES, Name};
use super::control::Control;
use super::trains::Train;

/// Messages handed to the kernel in one call, at most. The call itself is a fiftieth of what they cost then.
pub(super) const MAX_SENT: usize = 32;

/// Messages taken from the kernel in one call, at most.
pub(super) const MAX_RECEIVED: usize = 64;

/// Where the dropped datagrams are in what `SO_MEMINFO` says (`SK_MEMINFO_DROPS` in `linux/sock_diag.h`).
const MEMINFO_DROPS: usize = 8;

/// Room for the control messages of a received message: address, traffic class and length of the segments.
const CONTROL_BYTES: usize = 128;

/// Sends the first of these messages, at most [`MAX_SENT`], and says how many the kernel took. An error is the first
/// message's; that of a later one ends the run before it and shows when it is sent again.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    to: &Name,
    messages: &[Train<'_>],
    control: impl Fn(&Train<'_>) -> Control,
) -> io::Result<usize> {
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; MAX_SENT];
    let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_SENT];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_SENT];
    let places = controls.iter_mut().zip(&mut pieces).zip(&mut headers);
    let mut count = 0;
    for (message, ((place, piece), header)) in messages.iter().zip(places) {
        let control = place.write(control(message)).bytes();
        let piece = piece.write(libc::iovec {
            iov_base: message.bytes.as_ptr().cast_mut().cast(),
            iov_len: message.bytes.len(),
        });
        let header = header.write(no_message());
        header.msg_hdr.msg_name = to.bytes().as_ptr().cast_mut().cast();
        header.msg_hdr.msg_namelen = to.bytes().len() as _;
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        if !control.is_empty() {
            header.msg_hdr.msg_control = control.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_controllen = control.len() as _;
        }
        count += 1;
    }
    let first: *mut libc::mmsghdr = headers.as_mut_ptr().cast();
    // SAFETY: the first `count` headers are initialised. Each points at a name, at one piece and at control messages that
    // live on this frame or longer, with their lengths; the kernel only reads them and writes msg_len.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT) };
    counted(sent)
}

/// What came with a received message.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(super) struct Slot {
    control: [u8; CONTROL_BYTES],
    name: [u8; NAME_BYTES],
    control_used: usize,
    name_used: usize,
    /// Bytes of the message.
    pub(super) length: usize,
    /// Whether anything of it didn't fit.
    pub(super) truncated: bool,
}

impl Slot {
    pub(super) const EMPTY: Self = Self {
        control: [0; CONTROL_BYTES],
        name: [0; NAME_BYTES],
        control_used: 0,
        name_used: 0,
        length: 0,
        truncated: false,
    };

    pub(super) fn control(&self) -> &[u8] {
        &self.control[..self.control_used.min(CONTROL_BYTES)]
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name[..self.name_used.min(NAME_BYTES)]
    }
}

/// Receives messages into the buffers, one each, as many as there are slots and buffers, at most [`MAX_RECEIVED`];
/// says how many came. Doesn't wait.
pub(super) fn receive<'a>(
    socket: BorrowedFd<'_>,
    slots: &mut [Slot],
    buffers: impl Iterator<Item = &'a mut [u8]>,
) -> io::Result<usize> {
    let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_RECEIVED];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_RECEIVED];
    let places = pieces.iter_mut().zip(&mut headers);
    let mut count = 0;
    for ((slot, buffer), (piece, header)) in slots.iter_mut().zip(buffers).zip(places) {
        let piece = piece.write(libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        });
        let header = header.write(no_message());
        header.msg_hdr.msg_name = slot.name.as_mut_ptr().cast();
        header.msg_hdr.msg_namelen = NAME_BYTES as _;
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_control = slot.control.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        count += 1;
    }
    let first: *mut libc::mmsghdr = headers.as_mut_ptr().cast();
    let wait = ptr::null_mut();
    // SAFETY: the first `count` headers are initialised. Each points at a name, at one piece and at room for control
    // messages, with their lengths; all are borrowed mutably until after the call, and nothing else refers to them.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            first,
            count,
            libc::MSG_DONTWAIT as _,
            wait,
        )
    };
    let received = counted(received)?;
    for (header, slot) in headers.iter().zip(slots).take(received) {
        // SAFETY: the kernel filled no more messages than it was given, and those were initialised above.
        let header = unsafe { header.assume_init_ref() };
        slot.length = header.msg_len as usize;
        slot.name_used = header.msg_hdr.msg_namelen as usize;
        #[allow(clippy::unnecessary_cast, reason = "an u32 in other C libraries")]
        let control_used = header.msg_hdr.msg_controllen as usize;
        slot.control_used = control_used;
        slot.truncated = header.msg_hdr.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    }
    Ok(received)
}

/// Sets a socket option that is an `int`.
pub(super) fn set_option(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: c_int,
) -> io::Result<()> {
    let result = {
        let value = ptr::from_ref(&value);
        let length = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: the pointer is to an `int` and the length is that of one.
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.cast(), length) }
    };
    counted(result).map(drop)
}

/// Reads a socket option that is an `int`.
pub(super) fn option(socket: BorrowedFd<'_>, level: c_int, option: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    let pointer = ptr::from_mut(&mut value);
    // SAFETY: the pointer is to an `int`, and `length` says how much the kernel may write there.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            pointer.cast(),
            &raw mut length,
        )
    };
    counted(result).map(|_| value)
}

/// How many datagrams this socket had no room for since it was opened; begins anew after 2³².
pub(super) fn overflows(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut memory = [0u32; MEMINFO_DROPS + 1];
    let mut length = size_of_val(&memory) as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_MEMINFO);
    let pointer = memory.as_mut_ptr().cast();
    // SAFETY: the pointer is to the array, and `length` says how much the kernel may write there.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, pointer, &raw mut length) };
    counted(result).map(|_| memory[MEMINFO_DROPS])
}

/// A message without anything.
fn no_message() -> libc::mmsghdr {
    // SAFETY: integers and pointers, for which zero is a value, and which the kernel takes as "none".
    unsafe { mem::zeroed() }
}

/// What a system call returned: a count, or the error in `errno`.
fn counted(result: c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
