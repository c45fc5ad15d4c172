//! What an earlier run left behind: its network namespaces are gone with it, but a program that gave up its privileges is
//! not killed with its parent, and control sockets stay.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Marks every program we start with our process id.
pub(crate) const VARIABLE: &str = "WIRESPEED_BENCH_DEVICE";

/// What the kernel calls this program: 15 bytes of its name.
const NAME: &[u8] = b"wirespeed-bench";

/// Where daemons put their control sockets.
const SOCKETS: &str = "/var/run/wireguard";

/// Every interface of ours begins with this and goes on with our process id in hex.
pub(crate) const PREFIX: &str = "wsb";

/// The name of an interface of this process: `end` tells its ends apart.
pub(crate) fn interface(end: char) -> String {
    format!("{PREFIX}{:x}{end}", std::process::id())
}

/// Removes it all.
pub(crate) fn remove() {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if owner_of(&entry.path()).is_some_and(|owner| !alive(owner)) {
            // It may have ended by itself in between.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    for folder in [PathBuf::from(SOCKETS), std::env::temp_dir()] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name
                .to_str()
                .and_then(owner_in_name)
                .is_some_and(|owner| !alive(owner))
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The benchmark that started a process.
fn owner_of(process: &Path) -> Option<i32> {
    let environment = fs::read(process.join("environ")).ok()?;
    environment
        .split(|&byte| byte == 0)
        .filter_map(|entry| {
            std::str::from_utf8(entry)
                .ok()?
                .strip_prefix(VARIABLE)?
                .strip_prefix('=')
        })
        .find_map(|pid| pid.parse().ok())
}

/// The benchmark whose control socket or log this is: `wsb1f3a.sock` is 0x1f3 = 499's, end `a`.
fn owner_in_name(name: &str) -> Option<i32> {
    let (middle, kind) = name.strip_prefix(PREFIX)?.split_once('.')?;
    if !["sock", "log"].contains(&kind) {
        return None;
    }
    let end = middle.chars().next_back()?;
    i32::from_str_radix(middle.strip_suffix(end)?, 16).ok()
}

/// Whether this is a benchmark that runs. One that was killed stays as a zombie without a command line until it is reaped,
/// and its number may be another's by now.
fn alive(pid: i32) -> bool {
    let text = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    text("comm").starts_with(NAME) && !text("cmdline").is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_tells_whose_it_is() {
        assert_eq!(owner_in_name("wsb1f3a.sock"), Some(0x1f3));
        assert_eq!(owner_in_name("wsb1f3b.log"), Some(0x1f3));
        let own = format!("{}.sock", interface('b'));
        assert_eq!(owner_in_name(&own), i32::try_from(std::process::id()).ok());
        for other in [
            "wg0.sock",
            "wsb.sock",
            "wsb1f3a",
            "wsbzza.sock",
            "wsb1f3a.txt",
        ] {
            assert_eq!(owner_in_name(other), None, "{other}");
        }
        assert!(interface('b').len() <= 15);
    }
}
