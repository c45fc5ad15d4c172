//! The C library's allocator, told beforehand what it would look up in a file later.
#![allow(unsafe_code)]

/// Arenas the allocator may have. Packets don't come from it, so few are enough, and each costs memory.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 4;

/// glibc wants to know how many processors there are when the third thread allocates, and opens a file of `/sys` for that,
/// unless the number of arenas is set.
pub(super) fn settle() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `mallopt` takes two numbers and changes nothing but later decisions of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}
