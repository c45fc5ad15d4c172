//! What a debug build does at a system call that isn't listed: it names it and stops, so that no test passes by.
#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, offset_of};

/// The beginning of `siginfo_t` as the kernel fills it for `SIGSYS`; the C library's type hides it.
#[repr(C)]
struct SystemCallInfo {
    signal: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    address: *mut libc::c_void,
    number: libc::c_int,
    architecture: libc::c_uint,
}

/// Handles `SIGSYS` from now on.
pub(super) fn catch() -> io::Result<()> {
    const { assert!(offset_of!(SystemCallInfo, number) == 24) };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = stop;
    // SAFETY: all zero is a valid `sigaction` without flags, mask and restorer.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and its handler does only what is safe in one.
    match unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn stop(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a `siginfo_t`, which for SIGSYS has this layout.
    let number = unsafe { (*info.cast::<SystemCallInfo>()).number };
    let mut text = *b"wirespeed-device: system call      isn't listed in sandbox/system_calls.rs\n";
    let mut rest = number.unsigned_abs();
    for digit in text[30..34].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: `write` and `abort` are safe in a signal handler; the text is ours.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::abort();
    }
}
