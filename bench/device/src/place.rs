//! A network namespace of our own, and the thread that lives in it.
//!
//! It has no name in `/run/netns`: the kernel removes it, its links and its addresses with this process, also after
//! kill -9. Programs started in it die with the thread that started them, which lives as long as the place.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sched::{CloneFlags, unshare};

use crate::BenchError;
use crate::leftovers;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace.
pub(crate) struct Place {
    name: &'static str,
    jobs: Sender<Job>,
    path: String,
}

impl Place {
    /// A new one, with its loopback up and without IPv6, whose own traffic would wake the tunnels up.
    pub(crate) fn make(name: &'static str) -> Result<Self, BenchError> {
        let (jobs, work) = channel::<Job>();
        let (ready, made) = channel();
        thread::Builder::new()
            .name(format!("place-{name}"))
            .spawn(move || {
                let made = unshare(CloneFlags::CLONE_NEWNET).map(|()| {
                    format!(
                        "/proc/{}/task/{}/ns/net",
                        std::process::id(),
                        nix::unistd::gettid()
                    )
                });
                let fine = made.is_ok();
                // Nobody waits any more: then there is nothing to do either.
                if ready.send(made).is_ok() && fine {
                    for job in work {
                        job();
                    }
                }
            })
            .map_err(BenchError::system("start a thread"))?;
        let path = made
            .recv()
            .map_err(|_| BenchError::Measured(format!("the thread of {name} ended at once")))?
            .map_err(BenchError::system("make a network namespace"))?;
        let place = Self { name, jobs, path };
        place.ip("link set lo up\n")?;
        place.run(|| {
            // A kernel without IPv6 has neither the file nor the trouble.
            for scope in ["all", "default"] {
                let _ =
                    std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
        })?;
        Ok(place)
    }

    /// The namespace's file, for `ip link … netns`.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Does something inside.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BenchError> {
        let (done, result) = channel();
        let gone = || BenchError::Measured(format!("the thread of {} is gone", self.name));
        self.jobs
            .send(Box::new(move || {
                let _ = done.send(act());
            }))
            .map_err(|_| gone())?;
        result.recv().map_err(|_| gone())
    }

    /// Starts a program that dies with us.
    pub(crate) fn spawn(
        &self,
        command: &[String],
        prepare: impl FnOnce(&mut Command) + Send + 'static,
    ) -> Result<Child, BenchError> {
        let what = format!("start {} in {}", command[0], self.name);
        let command = command.to_vec();
        self.run(move || -> io::Result<Child> {
            let mut line = Command::new("setpriv");
            line.args(["--pdeathsig", "KILL", "--"]).args(&command);
            line.env(leftovers::VARIABLE, std::process::id().to_string());
            line.stdin(Stdio::null());
            prepare(&mut line);
            line.spawn()
        })?
        .map_err(BenchError::system(what))
    }

    /// Runs `ip` with these lines, one command each.
    pub(crate) fn ip(&self, lines: &str) -> Result<(), BenchError> {
        self.feed(&["ip", "-batch", "-"], lines.to_owned())
    }

    /// Runs a short program to its end.
    pub(crate) fn exec(&self, command: &[&str]) -> Result<(), BenchError> {
        self.feed(command, String::new())
    }

    fn feed(&self, command: &[&str], input: String) -> Result<(), BenchError> {
        let words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let shown = if input.is_empty() {
            command.join(" ")
        } else {
            format!("ip {}", input.trim().replace('\n', "; ip "))
        };
        let output = self
            .run(move || {
                let mut child = Command::new(&words[0])
                    .args(&words[1..])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()?;
                if let Some(mut stdin) = child.stdin.take() {
                    // A program that ends early says why on its standard error.
                    let _ = stdin.write_all(input.as_bytes());
                }
                child.wait_with_output()
            })?
            .map_err(BenchError::system(format!("run {}", command[0])))?;
        if output.status.success() {
            Ok(())
        } else {
            let said = String::from_utf8_lossy(&output.stderr)
                .trim()
                .replace('\n', "; ");
            Err(BenchError::Command {
                command: shown,
                said,
            })
        }
    }
}
