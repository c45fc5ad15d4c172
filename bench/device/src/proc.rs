//! What `/proc` says of a process and of the machine, as far as `wirespeed-facts` doesn't: this program is no part of
//! the product, and needs memory and wake-ups, which a diagnosis does not.

use std::fs;

use nix::unistd::{SysconfVar, sysconf};

/// CPU seconds a process has used, all its threads together.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    cpu_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        .map(|ticks| ticks as f64 / ticks_per_second())
}

/// CPU seconds the whole machine has been busy since it started, steal included.
pub(crate) fn busy_seconds() -> Option<f64> {
    busy_ticks(&fs::read_to_string("/proc/stat").ok()?)
        .map(|ticks| ticks as f64 / ticks_per_second())
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident: with pages shared with others.
    pub(crate) resident: u64,
    /// Proportional: each shared page divided by those who share it.
    pub(crate) proportional: u64,
}

/// What a process has in memory now.
pub(crate) fn memory(pid: u32) -> Option<Memory> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kibibytes = |name: &str| field(&rollup, name).map(|value| value * 1024);
    Some(Memory {
        resident: kibibytes("Rss:")?,
        proportional: kibibytes("Pss:")?,
    })
}

/// How often the threads of a process were put on a core since they began.
pub(crate) fn switches(pid: u32) -> Option<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread may end while we look.
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        sum += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
        sum += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
    }
    Some(sum)
}

/// Tasks that run or could run just now, the caller left out.
pub(crate) fn others_running() -> Option<u32> {
    running(&fs::read_to_string("/proc/loadavg").ok()?).map(|tasks| tasks.saturating_sub(1))
}

/// The three load averages.
pub(crate) fn load_averages() -> Option<String> {
    let line = fs::read_to_string("/proc/loadavg").ok()?;
    Some(line.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

fn ticks_per_second() -> f64 {
    sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64
}

/// `0.20 0.18 0.12 1/80 11206`: before the stroke.
fn running(load: &str) -> Option<u32> {
    let tasks = load.split_ascii_whitespace().nth(3)?;
    tasks.split_once('/')?.0.parse().ok()
}

/// utime + stime: the 14th and 15th field, counted behind the name, which may have blanks and brackets in it.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// All but idle and iowait; guest time is in user time already.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|field| field.parse().ok())
        .collect();
    (fields.len() == 8).then(|| fields.iter().sum::<u64>() - fields[3] - fields[4])
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_moves_nothing() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 123 45 0 0 20 0 1 0 100";
        assert_eq!(cpu_ticks(stat), Some(168));
        assert_eq!(cpu_ticks("7 (a"), None);
    }

    #[test]
    fn waiting_is_not_being_busy() {
        assert_eq!(
            busy_ticks("cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 1"),
            Some(63)
        );
        assert_eq!(busy_ticks("cpu 1 2"), None);
    }

    #[test]
    fn tasks_that_run_are_counted() {
        assert_eq!(running("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(running("0.20 0.18"), None);
    }

    #[test]
    fn we_see_ourselves() {
        let own = std::process::id();
        let memory = memory(own).unwrap();
        assert!(memory.proportional > 0 && memory.resident >= memory.proportional);
        assert!(
            switches(own).unwrap() > 0
                && cpu_seconds(own).is_some()
                && busy_seconds().unwrap() > 0.0
        );
    }
}
