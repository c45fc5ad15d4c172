//! Network namespaces: doing something inside one, who lives in one, and removing one.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::command::LAB_VARIABLE;
use crate::{LabError, LabId};

/// How long a process gets to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Where `ip netns` keeps its names.
pub(crate) fn path(namespace: &str) -> PathBuf {
    Path::new("/run/netns").join(namespace)
}

/// Runs `act` on a thread that has entered the network namespace of a file (`/run/netns/NAME`, `/proc/1/ns/net`).
pub(crate) fn inside<T: Send>(
    namespace: &Path,
    act: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    let file =
        File::open(namespace).map_err(LabError::file("enter the network namespace", namespace))?;
    thread::scope(|scope| {
        scope
            .spawn(|| {
                setns(&file, CloneFlags::CLONE_NEWNET).map_err(|e| {
                    LabError::file("enter the network namespace", namespace)(e.into())
                })?;
                act()
            })
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Processes that live in a namespace, this one excepted.
pub(crate) fn processes(namespace: &str) -> Vec<u32> {
    let Ok(meta) = fs::metadata(path(namespace)) else {
        return Vec::new();
    };
    let link = format!("net:[{}]", meta.ino());
    pids()
        .filter(|pid| {
            fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|l| l.to_str() == Some(&link))
        })
        .collect()
}

/// Processes that were started for a lab, wherever they are, this one excepted.
pub(crate) fn started_for(id: &LabId) -> Vec<u32> {
    let wanted = format!("{LAB_VARIABLE}={id}");
    pids()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
                env.split(|&b| b == 0)
                    .any(|entry| entry == wanted.as_bytes())
            })
        })
        .collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(move |&pid| pid != own)
}

/// Ends every process that `find` finds: SIGTERM, and SIGKILL for those that stay. Returns those that could not be ended.
pub(crate) fn end_processes(find: impl Fn() -> Vec<u32>) -> Vec<u32> {
    let began = Instant::now();
    let mut asked: Vec<u32> = Vec::new();
    loop {
        let alive = find();
        if alive.is_empty() || began.elapsed() > GRACE * 3 {
            return alive;
        }
        let insist = began.elapsed() > GRACE;
        for pid in alive {
            let target = Pid::from_raw(pid.cast_signed());
            if insist {
                let _ = kill(target, Signal::SIGKILL);
            } else if !asked.contains(&pid) {
                let _ = kill(target, Signal::SIGTERM);
                asked.push(pid);
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Removes a namespace's name, also one that was only half made.
pub(crate) fn remove(namespace: &str) -> Result<(), LabError> {
    let path = path(namespace);
    loop {
        match umount2(&path, MntFlags::MNT_DETACH) {
            // More than one mount may lie on the name when two makers raced for it.
            Ok(()) => {}
            // No mount (any more), or no name.
            Err(Errno::EINVAL | Errno::ENOENT) => break,
            Err(e) => {
                return Err(LabError::file("unmount the network namespace", path)(
                    e.into(),
                ));
            }
        }
    }
    match fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::file("remove the network namespace", path)(e))
        }
        _ => Ok(()),
    }
}
