//! The seccomp filter: built from the list, and given to the kernel.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::system_calls::{Allowed, When, allowed};
use super::trap;

/// Restricts all threads to the listed system calls.
pub(super) fn install() -> super::Result {
    let strict = cfg!(debug_assertions);
    let otherwise = if strict {
        trap::catch().map_err(|error| format!("catching its signal: {error}"))?;
        SeccompAction::Trap
    } else {
        SeccompAction::Errno(libc::EPERM.unsigned_abs())
    };
    // What is refused is logged by the kernel (where it audits), but not that each thread is started another way.
    let logged = libc::SECCOMP_FILTER_FLAG_LOG;
    for (program, flags) in [(hide_clone3(), 0), (build(otherwise), logged)] {
        let program = program.map_err(|error| error.to_string())?;
        let flags = flags | libc::SECCOMP_FILTER_FLAG_TSYNC;
        load(&program, flags).map_err(|error| error.to_string())?;
    }
    Ok(strict.then(|| "and stops at a system call that isn't listed (debug build)".to_owned()))
}

fn build(otherwise: SeccompAction) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = BTreeMap::new();
    for Allowed { number, when } in allowed() {
        let conditions = when.iter().map(condition).collect::<Result<_, _>>()?;
        rules.insert(*number, conditions);
    }
    SeccompFilter::new(
        rules,
        otherwise,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

/// Makes the C library start threads with `clone`, whose flags show that it is no process.
fn hide_clone3() -> Result<BpfProgram, seccompiler::BackendError> {
    SeccompFilter::new(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

fn condition(when: &When) -> Result<SeccompRule, seccompiler::BackendError> {
    let (argument, operation, value) = match *when {
        When::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
        When::With(argument, bits) => (argument, SeccompCmpOp::MaskedEq(bits), bits),
        When::Without(argument, bits) => (argument, SeccompCmpOp::MaskedEq(bits), 0),
    };
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)?;
    SeccompRule::new(vec![condition])
}

/// Gives the program to the kernel, for all threads if the flags say so, else for this one. `no_new_privs` has to be set.
///
/// Not by seccompiler's own function, because before Linux 5.16 a filter also switches speculation off (and a
/// good part of the speed with it) unless `SPEC_ALLOW` says otherwise. What that would protect, programs of
/// different trust in one process, isn't our case.
fn load(program: &BpfProgram, flags: libc::c_ulong) -> io::Result<()> {
    let flags = flags | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // SAFETY: the kernel reads `len` instructions from `filter` and keeps nothing of it. seccompiler's instruction has
    // the layout of the kernel's (`repr(C)`, the same four fields).
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const filter,
        )
    };
    match result {
        0 => Ok(()),
        thread if thread > 0 => Err(io::Error::other(format!(
            "thread {thread} has a filter of its own"
        ))),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in a thread that has the filter, and gives what that returned.
    fn filtered<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
        let program = build(SeccompAction::Errno(libc::EPERM as u32)).unwrap();
        std::thread::spawn(move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            load(&hide_clone3().unwrap(), 0).unwrap();
            load(&program, 0).unwrap();
            run()
        })
        .join()
        .unwrap()
    }

    #[test]
    fn the_program_is_short_enough() {
        let program = build(SeccompAction::KillProcess).unwrap();
        assert!(program.len() < 1_000, "{} instructions", program.len());
    }

    #[test]
    fn no_call_is_listed_twice() {
        let mut numbers: Vec<_> = allowed().map(|call| call.number).collect();
        let listed = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), listed);
    }

    #[test]
    fn what_a_device_does_goes_on_and_other_things_do_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        let results = filtered(move || {
            let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            udp.send_to(b"x", udp.local_addr().unwrap()).unwrap();
            std::thread::spawn(|| vec![0u8; 1 << 20].len())
                .join()
                .unwrap();
            std::fs::symlink_metadata(&path).unwrap();
            let denied = |result: io::Result<()>| {
                result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
            };
            [
                ("open", denied(std::fs::File::open(&path).map(drop))),
                ("rename", denied(std::fs::rename(&path, &path))),
                (
                    "execute",
                    denied(std::process::Command::new("/bin/true").status().map(drop)),
                ),
                (
                    "packet socket",
                    denied(
                        rustix::net::socket(
                            rustix::net::AddressFamily::PACKET,
                            rustix::net::SocketType::RAW,
                            None,
                        )
                        .map(drop)
                        .map_err(io::Error::from),
                    ),
                ),
                ("executable memory", {
                    // SAFETY: new memory is asked for anywhere; nothing else is touched.
                    let memory = unsafe {
                        libc::mmap(
                            std::ptr::null_mut(),
                            4096,
                            libc::PROT_READ | libc::PROT_EXEC,
                            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                            -1,
                            0,
                        )
                    };
                    memory == libc::MAP_FAILED && denied(Err(io::Error::last_os_error()))
                }),
            ]
        });
        for (what, denied) in results {
            assert!(denied, "{what}");
        }
    }
}
