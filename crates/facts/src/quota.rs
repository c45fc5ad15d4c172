//! Processor time that a control group allows, and how often it was used up (`cpu.stat`, `cpu.max`;
//! Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).

use std::os::unix::process::parent_id;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;

/// Processor time that the control group of a tunnel's daemon allows; the groups above it count, too. Since boot, or
/// between two moments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Quota {
    /// The group with the least allowance, as in `/proc/PID/cgroup`. In a delta: at the later reading.
    pub group: String,
    /// Cores it allows. In a delta: at the later reading.
    pub cores: f64,
    /// Periods in which anything ran.
    pub periods: u64,
    /// Those of them in which the allowance was used up.
    pub throttled: u64,
    /// Seconds that its threads waited for the next period; can be more than the time that went by.
    pub seconds: f64,
}

impl Quota {
    /// Share of the periods in which the allowance was used up, 0 to 1; `None` when nothing ran.
    pub fn share(&self) -> Option<f64> {
        (self.periods > 0).then(|| (self.throttled as f64 / self.periods as f64).min(1.0))
    }

    /// What was added since `earlier`; `None` when it went backwards: another group, or made anew.
    pub(crate) fn since(&self, earlier: &Self) -> Option<Self> {
        let seconds = self.seconds - earlier.seconds;
        Some(Self {
            group: self.group.clone(),
            cores: self.cores,
            periods: self.periods.checked_sub(earlier.periods)?,
            throttled: self.throttled.checked_sub(earlier.throttled)?,
            seconds: Some(seconds).filter(|seconds| *seconds >= 0.0 && seconds.is_finite())?,
        })
    }
}

/// Where the groups are mounted.
const MOUNT: &str = "sys/fs/cgroup";
/// Ancestors of this process that are asked for it.
const MOST_ANCESTORS: usize = 16;
/// Groups above one another that are looked at.
const DEEPEST: usize = 32;

/// The allowance of a process; `None` when it has none, or its groups can't be seen.
pub(crate) fn of_process(pid: u32) -> Option<Quota> {
    let groups = files::text(format!("/proc/{pid}/cgroup")).ok()?;
    of_groups(&groups, &mount()?)
}

/// A process started by `ip netns exec` has a `/sys` without the groups: then that of the nearest ancestor which has them.
fn mount() -> Option<PathBuf> {
    let own = Path::new("/").join(MOUNT);
    if is_mounted(&own) {
        return Some(own);
    }
    let mut ancestor = parent_id();
    for _ in 0..MOST_ANCESTORS {
        let mount = PathBuf::from(format!("/proc/{ancestor}/root")).join(MOUNT);
        if is_mounted(&mount) {
            return Some(mount);
        }
        ancestor = files::text(format!("/proc/{ancestor}/status"))
            .ok()?
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))?
            .trim()
            .parse()
            .ok()
            .filter(|parent| *parent > 0)?;
    }
    None
}

fn is_mounted(mount: &Path) -> bool {
    ["cgroup.controllers", "cpu", "unified"]
        .iter()
        .any(|name| mount.join(name).exists())
}

/// `groups` is `/proc/PID/cgroup`: a line `number:controllers:path` for each hierarchy; without controllers it is that of
/// version 2.
fn of_groups(groups: &str, mount: &Path) -> Option<Quota> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let roots: &[&str] = match controllers {
            "" => &[".", "unified"],
            named if named.split(',').any(|name| name == "cpu") => &["cpu", "cpu,cpuacct"],
            _ => return None,
        };
        roots
            .iter()
            .map(|root| mount.join(root))
            .filter(|root| root.exists())
            .find_map(|root| of_group(&root, path))
    })
}

/// The group and those above it, up to the root, which has no allowance of its own.
fn of_group(root: &Path, path: &str) -> Option<Quota> {
    let names: Option<Vec<_>> = Path::new(path)
        .components()
        .filter(|part| *part != Component::RootDir)
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            // A group outside of what this process may see.
            _ => None,
        })
        .collect();
    let names = names.filter(|names| names.len() <= DEEPEST)?;
    let mut quota = Quota {
        cores: f64::INFINITY,
        ..Quota::default()
    };
    for depth in 1..=names.len() {
        let relative: PathBuf = names[..depth].iter().collect();
        let Some((cores, own)) = allowance(&root.join(&relative)) else {
            continue;
        };
        if cores < quota.cores {
            quota.cores = cores;
            quota.group = format!("/{}", relative.display());
        }
        quota.periods = quota.periods.max(own.periods);
        quota.throttled = quota.throttled.saturating_add(own.throttled);
        quota.seconds += own.seconds;
    }
    quota.cores.is_finite().then_some(quota)
}

/// Cores that one group allows, and what it counted.
fn allowance(group: &Path) -> Option<(f64, Quota)> {
    let cores = if let Ok(line) = files::line(group.join("cpu.max")) {
        ratio(line.split_whitespace())?
    } else {
        let quota = files::line(group.join("cpu.cfs_quota_us")).ok()?;
        let period = files::line(group.join("cpu.cfs_period_us")).ok()?;
        ratio([quota.as_str(), period.as_str()].into_iter())?
    };
    Some((cores, counts(&files::text(group.join("cpu.stat")).ok()?)))
}

/// Microseconds per microseconds; `max` and -1 are no allowance.
fn ratio<'a>(mut numbers: impl Iterator<Item = &'a str>) -> Option<f64> {
    let quota: u64 = numbers.next()?.parse().ok()?;
    let period: u64 = numbers.next()?.parse().ok()?;
    (period > 0).then(|| quota as f64 / period as f64)
}

/// A name and a number a line. Version 1 has nanoseconds, version 2 microseconds.
fn counts(stat: &str) -> Quota {
    let mut quota = Quota::default();
    for line in stat.lines() {
        let Some((name, Ok(number))) = line
            .split_once(' ')
            .map(|(name, number)| (name, number.trim().parse::<u64>()))
        else {
            continue;
        };
        match name {
            "nr_periods" => quota.periods = number,
            "nr_throttled" => quota.throttled = number,
            "throttled_time" => quota.seconds = number as f64 / 1e9,
            "throttled_usec" => quota.seconds = number as f64 / 1e6,
            _ => {}
        }
    }
    quota
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Child, Command};
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A directory of this test's own, removed with it.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("ws-quota-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_narrowest_group_on_the_way_up_counts() {
        let tree = Tree::new(
            "v2",
            &[
                ("cgroup.controllers", "cpu\n"),
                ("a.slice/cpu.max", "150000 100000\n"),
                (
                    "a.slice/cpu.stat",
                    "usage_usec 5\nnr_periods 40\nnr_throttled 2\nthrottled_usec 500000\n",
                ),
                ("a.slice/wg.service/cpu.max", "25000 100000\n"),
                (
                    "a.slice/wg.service/cpu.stat",
                    "nr_periods 30\nnr_throttled 20\nthrottled_usec 1000000\n",
                ),
                ("free/cpu.max", "max 100000\n"),
                ("free/cpu.stat", "nr_periods 0\n"),
            ],
        );
        let quota = of_groups("0::/a.slice/wg.service\n", &tree.0).unwrap();
        assert_eq!(
            (quota.group.as_str(), quota.periods, quota.throttled),
            ("/a.slice/wg.service", 40, 22)
        );
        assert!((quota.cores - 0.25).abs() < 1e-9 && (quota.seconds - 1.5).abs() < 1e-9);
        assert_eq!(of_groups("0::/free\n", &tree.0), None);
        assert_eq!(of_groups("0::/\n", &tree.0), None);
        assert_eq!(of_groups("0::/../elsewhere\n", &tree.0), None);
    }

    #[test]
    fn the_first_version_is_read_too() {
        let tree = Tree::new(
            "v1",
            &[
                ("cpu/g/cpu.cfs_quota_us", "20000\n"),
                ("cpu/g/cpu.cfs_period_us", "100000\n"),
                (
                    "cpu/g/cpu.stat",
                    "nr_periods 10\nnr_throttled 9\nthrottled_time 2500000000\n",
                ),
                ("cpu/all/cpu.cfs_quota_us", "-1\n"),
                ("cpu/all/cpu.cfs_period_us", "100000\n"),
                ("cpu/all/cpu.stat", "nr_periods 0\n"),
            ],
        );
        let groups = "9:name=systemd:/\n3:cpuset:/\n2:cpu,cpuacct:/g\n0::/\n";
        let quota = of_groups(groups, &tree.0).unwrap();
        assert!((quota.cores - 0.2).abs() < 1e-9 && (quota.seconds - 2.5).abs() < 1e-9);
        assert_eq!(quota.share(), Some(0.9));
        assert_eq!(of_groups("1:cpu:/all\n", &tree.0), None);
    }

    /// A group of the first version with a tenth of a core, and a process in it that would take all; both end with it.
    struct Throttled(PathBuf, Child);

    impl Throttled {
        fn new() -> std::io::Result<Self> {
            let group = PathBuf::from(format!(
                "/sys/fs/cgroup/cpu/ws-quota-{}",
                std::process::id()
            ));
            fs::create_dir(&group)?;
            let child = Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"])
                .spawn();
            let throttled = match child {
                Ok(child) => Self(group, child),
                Err(error) => {
                    fs::remove_dir(&group)?;
                    return Err(error);
                }
            };
            fs::write(throttled.0.join("cpu.cfs_period_us"), "20000")?;
            fs::write(throttled.0.join("cpu.cfs_quota_us"), "2000")?;
            fs::write(
                throttled.0.join("cgroup.procs"),
                throttled.1.id().to_string(),
            )?;
            Ok(throttled)
        }
    }

    impl Drop for Throttled {
        fn drop(&mut self) {
            let _ = self.1.kill();
            let _ = self.1.wait();
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_process_that_is_held_back_is_seen_to_be() {
        let throttled = match Throttled::new() {
            Ok(throttled) => throttled,
            Err(error) => {
                crate::skipped::skipped(
                    "a_process_that_is_held_back_is_seen_to_be",
                    &format!("no control group of version 1 can be made: {error}"),
                );
                return;
            }
        };
        std::thread::sleep(Duration::from_millis(300));
        let quota = of_process(throttled.1.id()).unwrap();
        assert!((quota.cores - 0.1).abs() < 1e-9, "{quota:?}");
        assert!(quota.throttled > 0 && quota.seconds > 0.0, "{quota:?}");
        assert_eq!(of_process(std::process::id()), None);
        assert!(mount().is_some_and(|mount| is_mounted(&mount)));
    }

    #[test]
    fn a_group_made_anew_has_moved_nowhere() {
        let at = |throttled| Quota {
            throttled,
            periods: 10,
            ..Quota::default()
        };
        assert_eq!(at(5).since(&at(3)).map(|quota| quota.throttled), Some(2));
        assert_eq!(at(3).since(&at(5)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(nr_[a-z]{1,9} [0-9-]{1,22}\n|.{0,20}\n){0,6}", groups in "([0-9]?:[a-z,]{0,6}:[/a-z.]{0,9}\n){0,4}.{0,9}") {
            prop_assert!(counts(&text).seconds >= 0.0);
            of_groups(&groups, Path::new("/nonexistent"));
        }
    }
}
