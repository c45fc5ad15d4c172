//! Two network namespaces joined by a veth pair, which vanish with the thread that made them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use super::skip;

/// The two ends of a road. Addresses: 10.77.0.1 and `fd77::1` here, 10.77.0.2 and `fd77::2` there, on `road`.
pub(super) struct Ends {
    here: File,
    there: File,
}

/// One test at a time: all cables of a processor share one queue, and one test's flood would cost another its datagrams.
static ROAD: Mutex<()> = Mutex::new(());

/// Runs a test in a thread between two new namespaces, or says why not.
pub(super) fn between(test: &'static str, body: impl FnOnce(&Ends) + Send + 'static) {
    let _alone = ROAD.lock().unwrap_or_else(PoisonError::into_inner);
    in_a_new_one(test, |here| {
        run(&["ip link set lo up"]);
        let there = namespace().expect("a second namespace after the first");
        let ends = Ends { here, there };
        let peer = format!("/proc/{}/fd/{}", std::process::id(), ends.here.as_raw_fd());
        let pair = format!("ip link add road type veth peer name road netns {peer}");
        run(&["ip link set lo up", pair.as_str()]);
        for (end, last) in [(&ends.here, 1), (&ends.there, 2)] {
            setns(end, CloneFlags::CLONE_NEWNET).unwrap();
            let v4 = format!("ip addr add 10.77.0.{last}/24 dev road");
            let v6 = format!("ip addr add fd77::{last}/64 dev road nodad");
            run(&[v4.as_str(), v6.as_str(), "ip link set road up"]);
        }
        body(&ends);
    });
}

/// Runs a test in a thread in a new namespace whose loopback is down, or says why not.
pub(super) fn in_a_new_one(test: &'static str, body: impl FnOnce(File) + Send + 'static) {
    let thread = std::thread::spawn(move || match namespace() {
        Ok(here) => body(here),
        Err(error) => skip(test, &format!("no network namespace can be made: {error}")),
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Ends {
    /// Does something in the first namespace.
    pub(super) fn here<R>(&self, action: impl FnOnce() -> R) -> R {
        setns(&self.here, CloneFlags::CLONE_NEWNET).unwrap();
        action()
    }

    /// Does something in the second.
    pub(super) fn there<R>(&self, action: impl FnOnce() -> R) -> R {
        setns(&self.there, CloneFlags::CLONE_NEWNET).unwrap();
        action()
    }

    /// Runs commands at both ends.
    pub(super) fn both(&self, commands: &[&str]) {
        self.here(|| run(commands));
        self.there(|| run(commands));
    }
}

/// Runs commands where the thread is; all of them must succeed.
pub(super) fn run(commands: &[&str]) {
    for command in commands {
        assert!(try_run(command), "{command}");
    }
}

/// Runs a command where the thread is.
pub(super) fn try_run(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().expect("a program");
    match Command::new(program).args(words).output() {
        Ok(output) => {
            if !output.status.success() {
                eprintln!("{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
            output.status.success()
        }
        Err(error) => {
            eprintln!("{command}: {error}");
            false
        }
    }
}

/// Moves the thread into a new namespace.
fn namespace() -> Result<File, Errno> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    Ok(File::open("/proc/thread-self/ns/net").expect("the namespace of this thread"))
}
