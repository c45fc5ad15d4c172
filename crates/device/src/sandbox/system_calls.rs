//! The system calls a running device makes, by what they are for.
//!
//! A debug build stops loudly at one that isn't here (see `trap.rs`), so that whoever adds one learns of it from the
//! first test. A release build gives the caller `EPERM`, for a data plane with one feature less is better than none.

use libc::c_long;

/// A system call, and what its arguments have to be.
pub(super) struct Allowed {
    pub(super) number: c_long,
    /// One of these has to hold; none: any arguments.
    pub(super) when: &'static [When],
}

/// A condition on one argument, counted from 0, of which the lower 32 bits count.
#[derive(Clone, Copy)]
pub(super) enum When {
    /// It is this.
    Is(u8, u64),
    /// It has all of these bits.
    With(u8, u64),
    /// It has none of these bits.
    Without(u8, u64),
}

const fn any(number: c_long) -> Allowed {
    Allowed { number, when: &[] }
}

const fn when(number: c_long, when: &'static [When]) -> Allowed {
    Allowed { number, when }
}

/// Memory that is made executable is how an intruder brings code of their own.
const NOT_EXECUTABLE: &[When] = &[When::Without(2, libc::PROT_EXEC as u64)];

/// On the way of each packet. Only numbers are looked at here, so that the kernel remembers its decision and these cost
/// nothing.
const HOT: &[Allowed] = &[
    any(libc::SYS_read),
    any(libc::SYS_write),
    any(libc::SYS_readv),
    any(libc::SYS_writev),
    any(libc::SYS_recvfrom),
    any(libc::SYS_recvmsg),
    any(libc::SYS_recvmmsg),
    any(libc::SYS_sendto),
    any(libc::SYS_sendmsg),
    any(libc::SYS_sendmmsg),
    any(libc::SYS_epoll_pwait),
    any(libc::SYS_epoll_pwait2),
    any(libc::SYS_ppoll),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_epoll_wait),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_poll),
    any(libc::SYS_futex),
    any(libc::SYS_clock_gettime),
    any(libc::SYS_sched_yield),
    any(libc::SYS_getcpu),
    any(libc::SYS_getrandom),
];

/// Waiting, and being woken.
const WAITING: &[Allowed] = &[
    any(libc::SYS_epoll_create1),
    any(libc::SYS_epoll_ctl),
    any(libc::SYS_eventfd2),
    any(libc::SYS_timerfd_create),
    any(libc::SYS_timerfd_settime),
    any(libc::SYS_timerfd_gettime),
    any(libc::SYS_nanosleep),
    any(libc::SYS_clock_nanosleep),
    any(libc::SYS_clock_getres),
    any(libc::SYS_gettimeofday),
    any(libc::SYS_restart_syscall),
];

/// Sockets: the tunnel's when its port changes, and those of who controls us.
const SOCKETS: &[Allowed] = &[
    when(
        libc::SYS_socket,
        &[
            When::Is(0, libc::AF_INET as u64),
            When::Is(0, libc::AF_INET6 as u64),
            When::Is(0, libc::AF_UNIX as u64),
            When::Is(0, libc::AF_NETLINK as u64),
        ],
    ),
    any(libc::SYS_bind),
    any(libc::SYS_connect),
    any(libc::SYS_accept4),
    any(libc::SYS_shutdown),
    any(libc::SYS_getsockname),
    any(libc::SYS_getpeername),
    any(libc::SYS_getsockopt),
    any(libc::SYS_setsockopt),
];

/// Descriptors. Of `ioctl` what a TUN takes, and names of interfaces.
#[allow(
    clippy::unnecessary_cast,
    reason = "requests are of another type in other C libraries"
)]
const DESCRIPTORS: &[Allowed] = &[
    any(libc::SYS_close),
    any(libc::SYS_pipe2),
    any(libc::SYS_dup),
    any(libc::SYS_dup3),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_dup2),
    any(libc::SYS_fcntl),
    any(libc::SYS_lseek),
    any(libc::SYS_fstat),
    when(
        libc::SYS_ioctl,
        &[
            When::Is(1, libc::TUNSETOFFLOAD as u64),
            When::Is(1, libc::TUNGETIFF as u64),
            When::Is(1, libc::TUNGETFEATURES as u64),
            When::Is(1, libc::TUNSETQUEUE as u64),
            When::Is(1, libc::SIOCGIFINDEX as u64),
            When::Is(1, libc::SIOCGIFNAME as u64),
            When::Is(1, libc::SIOCGIFMTU as u64),
            When::Is(1, libc::FIONREAD as u64),
            When::Is(1, libc::FIONBIO as u64),
            // Whether standard error is a terminal.
            When::Is(1, libc::TCGETS as u64),
        ],
    ),
];

/// Files: seeing whether our sockets are there, and removing them.
const FILES: &[Allowed] = &[
    any(libc::SYS_newfstatat),
    any(libc::SYS_statx),
    any(libc::SYS_unlinkat),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_lstat),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_stat),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_unlink),
    any(libc::SYS_getcwd),
];

/// Memory.
const MEMORY: &[Allowed] = &[
    when(libc::SYS_mmap, NOT_EXECUTABLE),
    when(libc::SYS_mprotect, NOT_EXECUTABLE),
    any(libc::SYS_mremap),
    any(libc::SYS_munmap),
    any(libc::SYS_madvise),
    any(libc::SYS_brk),
];

/// Threads, and ending.
const THREADS: &[Allowed] = &[
    // `clone3` is answered as if the kernel hadn't it (see `filter.rs`), because its flags can't be looked at.
    any(libc::SYS_clone3),
    when(libc::SYS_clone, &[When::With(0, libc::CLONE_THREAD as u64)]),
    any(libc::SYS_set_robust_list),
    any(libc::SYS_rseq),
    any(libc::SYS_gettid),
    any(libc::SYS_getpid),
    any(libc::SYS_sched_getaffinity),
    any(libc::SYS_sched_setaffinity),
    any(libc::SYS_getrusage),
    any(libc::SYS_membarrier),
    when(
        libc::SYS_prctl,
        &[
            When::Is(0, libc::PR_SET_NAME as u64),
            When::Is(0, libc::PR_GET_NAME as u64),
            // The C library names its memory.
            When::Is(0, PR_SET_VMA),
        ],
    ),
    any(libc::SYS_sigaltstack),
    any(libc::SYS_rt_sigaction),
    any(libc::SYS_rt_sigprocmask),
    any(libc::SYS_rt_sigreturn),
    any(libc::SYS_tgkill),
    any(libc::SYS_tkill),
    any(libc::SYS_exit),
    any(libc::SYS_exit_group),
];

const PR_SET_VMA: u64 = 0x5356_4d41;

/// All of them.
pub(super) fn allowed() -> impl Iterator<Item = &'static Allowed> {
    [HOT, WAITING, SOCKETS, DESCRIPTORS, FILES, MEMORY, THREADS]
        .into_iter()
        .flatten()
}
