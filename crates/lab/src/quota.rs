//! A limit on the processor time of a daemon: a control group of the lab's own, of version 1 or 2, whichever the machine has.

use std::fs;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::{LabError, LabId, netns};

/// Where version 2 has its one tree, and version 1 that of processor time.
const ONE_TREE: &str = "/sys/fs/cgroup";
const TREE_OF_TIME: &str = "/sys/fs/cgroup/cpu";

/// Quotas are for so many microseconds each.
const PERIOD: f64 = 100_000.0;

/// How long a group may take to see that its last process is gone.
const EMPTY_WITHIN: Duration = Duration::from_secs(2);

fn has_one_tree() -> bool {
    Path::new(ONE_TREE).join("cgroup.controllers").exists()
}

fn group(id: &LabId) -> PathBuf {
    let tree = if has_one_tree() {
        ONE_TREE
    } else {
        TREE_OF_TIME
    };
    Path::new(tree).join(format!("ws-{id}"))
}

/// Lets everything that runs on a host now use as many cores at most.
pub(crate) fn limit(id: &LabId, host: &str, cores: f64) -> std::result::Result<(), LabError> {
    let group = group(id);
    let set = || -> Result<()> {
        fs::create_dir_all(&group)?;
        let quota = format!("{:.0}", PERIOD * cores);
        if has_one_tree() {
            fs::write(group.join("cpu.max"), format!("{quota} {PERIOD:.0}"))?;
        } else {
            fs::write(group.join("cpu.cfs_period_us"), format!("{PERIOD:.0}"))?;
            fs::write(group.join("cpu.cfs_quota_us"), quota)?;
        }
        for pid in netns::processes(&id.namespace(host)) {
            fs::write(group.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    };
    set().map_err(|e| LabError::Setting {
        host: host.to_owned(),
        why: format!(
            "limit the daemon's processor time by {}: {e}",
            group.display()
        ),
    })
}

/// Removes the group, once its processes have ended.
pub(crate) fn remove(id: &LabId) -> std::result::Result<(), LabError> {
    let group = group(id);
    let began = Instant::now();
    loop {
        match fs::remove_dir(&group) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy && began.elapsed() < EMPTY_WITHIN => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(LabError::file("remove", group)(e));
            }
            _ => return Ok(()),
        }
    }
}
