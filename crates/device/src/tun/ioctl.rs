//! The requests a TUN understands.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Longest name of an interface, without its closing zero.
pub(super) const NAME_BYTES: usize = libc::IFNAMSIZ - 1;

/// `struct ifreq` with flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: u16,
    rest: [u8; 22],
}

impl InterfaceRequest {
    fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(&self.name[..end.unwrap_or(NAME_BYTES)]).into_owned()
    }
}

/// Makes the open TUN that of an interface, and tells what this is called then.
pub(super) fn set_interface(tun: impl AsFd, name: &str, flags: c_int) -> io::Result<String> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: flags as u16,
        rest: [0; 22],
    };
    for (to, from) in request.name[..NAME_BYTES].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: the request takes a `struct ifreq`, 40 bytes, reads and writes it.
    call(unsafe { libc::ioctl(tun.as_fd().as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(request.name())
}

/// What the interface is called now.
pub(super) fn interface_name(tun: impl AsFd) -> io::Result<String> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: 0,
        rest: [0; 22],
    };
    // SAFETY: the request writes a `struct ifreq`, 40 bytes.
    call(unsafe { libc::ioctl(tun.as_fd().as_raw_fd(), libc::TUNGETIFF, &raw mut request) })?;
    Ok(request.name())
}

/// How long the header before each packet is, and that its words are little-endian.
pub(super) fn set_header(tun: impl AsFd, bytes: u8) -> io::Result<()> {
    let (bytes, little_endian): (c_int, c_int) = (bytes.into(), 1);
    let tun = tun.as_fd().as_raw_fd();
    // SAFETY: both requests read an int.
    call(unsafe { libc::ioctl(tun, libc::TUNSETVNETHDRSZ, &raw const bytes) })?;
    // SAFETY: as above.
    call(unsafe { libc::ioctl(tun, libc::TUNSETVNETLE, &raw const little_endian) })
}

/// What the kernel may leave to us, bits `TUN_F_…`.
pub(super) fn set_offload(tun: impl AsFd, bits: u32) -> io::Result<()> {
    let bits = libc::c_ulong::from(bits);
    // SAFETY: the request takes a number in place of a pointer.
    call(unsafe { libc::ioctl(tun.as_fd().as_raw_fd(), libc::TUNSETOFFLOAD, bits) })
}

/// Lets a program choose the queue of each packet.
pub(super) fn set_steering(tun: impl AsFd, program: impl AsFd) -> io::Result<()> {
    let program: c_int = program.as_fd().as_raw_fd();
    // SAFETY: the request reads an int, the program's descriptor, which is open during the call.
    call(unsafe {
        libc::ioctl(
            tun.as_fd().as_raw_fd(),
            libc::TUNSETSTEERINGEBPF,
            &raw const program,
        )
    })
}

fn call(result: c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
