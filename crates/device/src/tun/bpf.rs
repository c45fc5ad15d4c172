//! Handing a program to the kernel.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};

/// An instruction of eBPF, as the kernel takes it: code, registers (destination below, source above), offset, constant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u8,
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) constant: i32,
}

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;

/// The part of `union bpf_attr` that loading a program needs, as in Linux 4.0; what a newer kernel adds is zero.
#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Loads a program that looks at a packet and returns a number. Needs `CAP_BPF`, or a kernel that lets anyone do it.
pub(super) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let attributes = LoadAttributes {
        program_type: BPF_PROG_TYPE_SOCKET_FILTER,
        instruction_count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        // It calls no function of the kernel that asks for a license.
        license: c"Apache-2.0 OR MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: attributes, instructions and license live during the call; counts and the size are theirs.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attributes,
            mem::size_of::<LoadAttributes>(),
        )
    };
    match i32::try_from(result) {
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
