//! Running other programs: every child carries the lab's name in its environment (so that a lab's cleaner finds those
//! that outlived their parent), is bounded in time, and a failure shows the command line and the program's own words.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{LabError, LabId};

/// Environment variable that every process of a lab carries.
pub(crate) const LAB_VARIABLE: &str = "WIRESPEED_LAB";

/// No command of the lab takes longer unless it hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// Most bytes of output that are read (a pipe holds 64 KiB).
const LARGEST_OUTPUT: u64 = 60 * 1024;

/// Runs the commands of one lab.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    id: LabId,
}

impl Runner {
    pub(crate) fn new(id: &LabId) -> Runner {
        Runner { id: id.clone() }
    }

    /// A command in the namespace of a host.
    pub(crate) fn in_host(&self, host: &str, line: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.id.namespace(host)])
            .args(line)
            .env(LAB_VARIABLE, self.id.as_str());
        command
    }

    /// Runs `ip -n NAMESPACE …` on a host; `line` is split at spaces.
    pub(crate) fn ip(&self, step: &str, host: &str, line: &str) -> Result<String, LabError> {
        self.on_namespace(step, "ip", host, line)
    }

    /// Runs `tc -n NAMESPACE …` on a host; `line` is split at spaces.
    pub(crate) fn tc(&self, step: &str, host: &str, line: &str) -> Result<String, LabError> {
        self.on_namespace(step, "tc", host, line)
    }

    fn on_namespace(
        &self,
        step: &str,
        program: &str,
        host: &str,
        line: &str,
    ) -> Result<String, LabError> {
        let mut command = Command::new(program);
        command
            .args(["-n", &self.id.namespace(host)])
            .args(line.split(' '));
        self.run(step, command, None)
    }

    /// Runs a command inside a host's namespace; what it printed.
    pub(crate) fn exec(
        &self,
        step: &str,
        host: &str,
        line: &[&str],
        input: Option<&str>,
    ) -> Result<String, LabError> {
        self.run(step, self.in_host(host, line), input)
    }

    /// Runs a command to its end; what it printed.
    pub(crate) fn run(
        &self,
        step: &str,
        mut command: Command,
        input: Option<&str>,
    ) -> Result<String, LabError> {
        let line = show(&command);
        let failed = |why: String| LabError::Command {
            step: step.to_owned(),
            command: line.clone(),
            why,
        };
        command
            .env(LAB_VARIABLE, self.id.as_str())
            .stdin(if input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
        if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
            // A program that ends without reading its input shows why in its own words below.
            let _ = pipe.write_all(input.as_bytes());
        }
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| failed(e.to_string()))? {
                break status;
            }
            if began.elapsed() > LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!(
                    "it did not end within {} s",
                    LIMIT.as_secs()
                )));
            }
            thread::sleep(Duration::from_micros(500));
        };
        let mut words = [String::new(), String::new()];
        read_bounded(child.stdout.take(), &mut words[0]);
        read_bounded(child.stderr.take(), &mut words[1]);
        let [out, err] = words;
        if status.success() {
            return Ok(out);
        }
        let said = [err.trim(), out.trim()]
            .into_iter()
            .find(|s| !s.is_empty())
            .map(str::to_owned);
        Err(failed(match (status.signal(), said) {
            (Some(signal), _) => format!("it was ended by signal {signal}"),
            (None, Some(said)) => said,
            (None, None) => format!("it ended with {status}"),
        }))
    }
}

/// What a program printed, as far as it fits the bound.
fn read_bounded(pipe: Option<impl Read>, into: &mut String) {
    if let Some(pipe) = pipe {
        let mut bytes = Vec::new();
        if pipe.take(LARGEST_OUTPUT).read_to_end(&mut bytes).is_ok() {
            into.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

/// A command as one would type it.
fn show(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
