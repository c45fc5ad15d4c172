//! Processes: CPU time, and who holds which socket or TUN device.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::proc_stat::ticks_per_second;
use crate::{ProcessTime, SocketHolder, files};

/// CPU time of every visible process since its start, by pid (decimal).
pub(crate) fn times() -> BTreeMap<String, ProcessTime> {
    let ticks = ticks_per_second();
    pids()
        .filter_map(|pid| {
            let stat = files::text(format!("/proc/{pid}/stat")).ok()?;
            let mut time = process_time(&stat, ticks)?;
            time.program = whole_name(pid, time.program);
            Some((pid.to_string(), time))
        })
        .collect()
}

/// CPU time of one thread of a process since its start, in seconds.
pub(crate) fn thread_seconds(pid: u32, thread: u32) -> Option<f64> {
    let stat = files::text(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    Some(process_time(&stat, ticks_per_second())?.cpu)
}

/// Name of a process; `None` when there is no such process in sight.
pub(crate) fn program(pid: u32) -> Option<String> {
    let comm = files::line(format!("/proc/{pid}/comm")).ok()?;
    Some(whole_name(pid, comm))
}

/// The kernel keeps 15 bytes of a name (`wirespeed-devic`): the rest is told by the file that runs, where that begins alike.
fn whole_name(pid: u32, comm: String) -> String {
    if comm.len() < COMM_BYTES {
        return comm;
    }
    fs::read_link(format!("/proc/{pid}/exe"))
        .ok()
        .and_then(|file| whole_name_of(&comm, &file))
        .unwrap_or(comm)
}

fn whole_name_of(comm: &str, file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    // A program that was replaced while it runs.
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.starts_with(comm).then(|| name.to_owned())
}

/// `TASK_COMM_LEN` less the end of the string.
const COMM_BYTES: usize = 15;

/// CPUs a process may run on, as `Cpus_allowed_list` (`0-3,8`).
pub(crate) fn cpus_allowed(pid: u32) -> Option<String> {
    files::text(format!("/proc/{pid}/status"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .map(|list| list.trim().to_owned())
}

/// Inode of the network namespace the calling thread is in.
///
/// # Errors
/// When `/proc/thread-self/ns/net` can't be looked at.
pub fn own_namespace() -> std::io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|namespace| namespace.ino())
}

/// Open sockets and TUN devices of all visible processes.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// By socket inode.
    sockets: BTreeMap<u64, (u32, i32)>,
    /// Interface name and process, one per descriptor of `/dev/net/tun`.
    tuns: Vec<(String, u32)>,
}

impl Descriptors {
    /// Reads `/proc/PID/fd` of every process once; those of other users stay hidden without root.
    pub(crate) fn read() -> Self {
        let mut found = Self::default();
        for pid in pids() {
            let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let (Some(fd), Ok(target)) = (
                    name.to_str().and_then(|name| name.parse::<i32>().ok()),
                    fs::read_link(entry.path()),
                ) else {
                    continue;
                };
                if let Some(inode) = socket_inode(&target) {
                    found.sockets.entry(inode).or_insert((pid, fd));
                } else if target == Path::new("/dev/net/tun")
                    && let Some(interface) = tun_interface(pid, fd)
                {
                    found.tuns.push((interface, pid));
                }
            }
        }
        found
    }

    /// Who holds this socket.
    pub(crate) fn holder(&self, inode: u32) -> Option<SocketHolder> {
        let &(pid, fd) = self.sockets.get(&inode.into())?;
        Some(SocketHolder {
            pid,
            fd,
            program: program(pid)?,
        })
    }

    /// The process that holds the TUN device `interface`. Interfaces of other network namespaces can have the
    /// same name: then `listener` (who opened the UAPI socket) decides, then who lives in this namespace.
    pub(crate) fn tun_holder(&self, interface: &str, listener: Option<u32>) -> Option<u32> {
        let mut pids: Vec<u32> = self
            .tuns
            .iter()
            .filter(|(name, _)| name == interface)
            .map(|&(_, pid)| pid)
            .collect();
        pids.sort_unstable();
        pids.dedup();
        if let Some(listener) = listener.filter(|listener| pids.contains(listener)) {
            return Some(listener);
        }
        if pids.len() > 1 {
            let own = own_namespace().ok()?;
            pids.retain(|pid| {
                fs::metadata(format!("/proc/{pid}/ns/net"))
                    .is_ok_and(|namespace| namespace.ino() == own)
            });
        }
        match pids[..] {
            [pid] => Some(pid),
            _ => None,
        }
    }
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name stands between the first `(` and the last `)` and may hold both; fields 14 and 15 are user and
/// system time.
pub(crate) fn process_time(stat: &str, ticks: f64) -> Option<ProcessTime> {
    let (before, fields) = stat.rsplit_once(')')?;
    let (_, program) = before.split_once('(')?;
    let mut times = fields
        .split_ascii_whitespace()
        .skip(11)
        .map(|field| field.parse::<u64>().ok());
    let ticks_used = times.next()??.saturating_add(times.next()??);
    Some(ProcessTime {
        program: program.to_owned(),
        cpu: ticks_used as f64 / ticks,
    })
}

fn socket_inode(target: &Path) -> Option<u64> {
    target
        .to_str()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The `iff:` line of a TUN descriptor names its interface.
fn tun_interface(pid: u32, fd: i32) -> Option<String> {
    files::text(format!("/proc/{pid}/fdinfo/{fd}"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("iff:"))
        .map(|name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_brackets_are_names() {
        let stat = "42 (a) (b)) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0 5";
        let time = process_time(stat, 100.0).unwrap();
        assert_eq!(time.program, "a) (b)");
        assert!((time.cpu - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_name_that_was_cut_is_made_whole_by_the_file_that_runs() {
        let whole = |file: &str| whole_name_of("wirespeed-devic", Path::new(file));
        for file in [
            "/usr/bin/wirespeed-device",
            "/usr/bin/wirespeed-device (deleted)",
        ] {
            assert_eq!(whole(file).as_deref(), Some("wirespeed-device"));
        }
        assert_eq!(whole("/usr/bin/python3.11"), None);
    }

    #[test]
    fn this_process_is_among_them() {
        assert!(times().contains_key(&std::process::id().to_string()));
    }

    #[test]
    fn the_holder_of_an_own_socket_is_this_process() {
        use std::os::fd::AsRawFd;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listed = crate::sock_diag::udp_sockets(socket.local_addr().unwrap().port()).unwrap();
        let holder = Descriptors::read().holder(listed[0].inode).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.fd, socket.as_raw_fd());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[0-9() a-z-]{0,120}") {
            let _ = process_time(&text, 100.0);
        }
    }
}
