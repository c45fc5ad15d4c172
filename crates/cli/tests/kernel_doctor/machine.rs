//! Labs and doctors inside the emulated machine, and what is done to the machine itself.

use std::collections::BTreeSet;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "../support/skips.rs"]
mod skips;

pub(crate) use skips::is_there;

/// Set by the emulated machine's first process; whole machines are changed here, so nowhere else.
const EMULATED: &str = "WIRESPEED_EMULATED";

/// The longest anything may take in there.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Bytes that any comparison moves each way, and a qdisc that no load went through does not.
const A_LOAD: u64 = 1_000_000;
/// Loads through the tunnel that a check needs before it judges a direction, and …
const FEWEST_LOADS: usize = 3;
/// … replies that the round trip of a load needs.
const FEWEST_REPLIES: u64 = 3;

/// Why nothing can be tried here, said for each case.
pub(crate) fn skipped(case: &str) -> bool {
    if std::env::var_os(EMULATED).is_some() {
        return false;
    }
    skip(case, "in the emulated machine only (make test-kernel)");
    true
}

pub(crate) fn skip(case: &str, reason: &str) {
    skips::skip(&format!("doctor on the kernel's WireGuard, {case}"), reason);
}

/// One load at a time.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lab of wirespeed's, over the kernel's own tunnel; goes with the test.
pub(crate) struct Lab {
    id: &'static str,
}

impl Lab {
    /// Of the shipped scenario of this name, or of a scenario's text.
    pub(crate) fn up(id: &'static str, scenario: &str) -> Self {
        let file = std::env::temp_dir().join(format!("{id}.toml"));
        let scenario = if scenario.contains('\n') {
            std::fs::write(&file, scenario).expect("a scenario's file");
            file.to_str().expect("plain letters").to_owned()
        } else {
            scenario.to_owned()
        };
        let lab = Self { id };
        let made = run(wirespeed().args(["lab", "up", &scenario, "--name", id, "--json"]));
        let made = wirespeed_schemas::read(made.as_bytes()).expect("lab up prints JSON");
        assert_eq!(made["implementation"], "kernel");
        lab
    }

    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("ws-{}-{host}", self.id)
    }

    /// The first end's tunnel.
    pub(crate) fn interface(&self) -> String {
        format!("wg{}0", self.id)
    }

    /// Both directions of the road get this qdisc where the kernel's netem delays them.
    pub(crate) fn netem(&self, what: &str) {
        for device in ["delayup", "delaydown"] {
            tc(
                &self.namespace("road"),
                &format!("qdisc replace dev {device} root netem {what}"),
            );
        }
    }

    /// Both directions of the road get this qdisc in place of the lab's bottleneck.
    pub(crate) fn bottleneck(&self, what: &str) {
        for cable in ["client", "server"] {
            let road = self.namespace("road");
            tc(&road, &format!("qdisc del dev {cable} root"));
            tc(&road, &format!("qdisc add dev {cable} root {what}"));
        }
    }

    /// Demands that this qdisc of a device is there and had the loads in it.
    pub(crate) fn carried(&self, host: &str, device: &str, qdisc: &str) {
        let shown = tc(
            &self.namespace(host),
            &format!("-s -j qdisc show dev {device}"),
        );
        let shown: Value = serde_json::from_str(&shown).expect("tc prints JSON");
        let bytes = shown
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["kind"] == qdisc)
            .and_then(|one| one["bytes"].as_u64());
        assert!(bytes >= Some(A_LOAD), "{qdisc} of {device}: {shown:#}");
    }

    pub(crate) fn doctor(&self) -> Report {
        self.doctor_with(&["--quick"])
    }

    /// With the time it takes by default, which is what some probes need on a slow machine.
    pub(crate) fn doctor_in_full(&self) -> Report {
        self.doctor_with(&[])
    }

    fn doctor_with(&self, arguments: &[&str]) -> Report {
        let (here, far) = (self.namespace("client"), self.namespace("server"));
        doctor(&here, &self.interface(), &far, arguments)
    }

    /// `wirespeed tune` at the first end, and what it printed.
    pub(crate) fn tune(&self, arguments: &[&str]) -> Value {
        let far = format!("netns:{}", self.namespace("server"));
        let said = wirespeed_in(&self.namespace("client"), "tune")
            .args(arguments)
            .args(["--far", &far, "--json"])
            .output()
            .expect("ip netns exec runs");
        json(&said)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = wirespeed().args(["lab", "down", self.id]).output();
    }
}

/// What the doctor said of a tunnel.
pub(crate) struct Report {
    pub(crate) json: Value,
    took: Duration,
}

/// The doctor in a namespace, for its tunnel to another.
pub(crate) fn doctor(here: &str, interface: &str, far: &str, more: &[&str]) -> Report {
    let begun = Instant::now();
    let output = wirespeed_in(here, "doctor")
        .args([interface, "--far", &format!("netns:{far}")])
        .arg("--json")
        .args(more)
        .output()
        .expect("ip netns exec runs");
    Report {
        json: json(&output),
        took: begun.elapsed(),
    }
}

impl Report {
    /// Tells what was found, and demands that it be these causes – each standing for itself – and nothing else.
    pub(crate) fn finds(&self, case: &str, expected: &[&str]) {
        self.finds_among(case, expected, &[]);
    }

    /// The same where other causes may be true too.
    pub(crate) fn finds_among(&self, case: &str, expected: &[&str], others: &[&str]) {
        let found = self.tell(case);
        for code in expected {
            assert!(found.contains(*code), "{case}: {}", self.details());
        }
        let wrong: Vec<&String> = found
            .iter()
            .filter(|code| ![expected, others].concat().contains(&code.as_str()))
            .collect();
        assert!(wrong.is_empty(), "{case}: {wrong:?}: {}", self.details());
        // There may be no time for the five pairs of loads that a healthy tunnel takes.
        let verdicts: &[&str] = if found.is_empty() {
            &["healthy", "unmeasured"]
        } else {
            &["findings"]
        };
        let verdict = self.json["verdict"].as_str().unwrap_or_default();
        assert!(
            verdicts.contains(&verdict),
            "{case}: {verdict}: {}",
            self.details()
        );
    }

    /// Demands that nothing was found although it was looked for: loads went through the tunnel both ways, their round
    /// trips were measured, and these causes could be judged.
    pub(crate) fn finds_nothing(&self, case: &str, judged: &[&str]) {
        self.finds(case, &[]);
        self.could_find(case, judged);
    }

    /// Demands what any finding would have rested on, and that these causes could be judged.
    pub(crate) fn could_find(&self, case: &str, judged: &[&str]) {
        for direction in ["upload", "download"] {
            let telling = self
                .loads(direction)
                .filter(|load| {
                    load["stalled"] == false
                        && load["loaded_rtt"]["median"].is_number()
                        && load["loaded_rtt"]["received"].as_u64() >= Some(FEWEST_REPLIES)
                })
                .count();
            assert!(
                telling >= FEWEST_LOADS,
                "{case}: {telling} loads with round trips, {direction}: {}",
                self.details()
            );
        }
        let unjudged: Vec<&Value> = self.json["not_checked"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| judged.iter().any(|code| one["what"] == *code))
            .collect();
        assert!(
            unjudged.is_empty(),
            "{case}: {unjudged:?}: {}",
            self.details()
        );
    }

    /// The comparison's loads through the tunnel, one way.
    pub(crate) fn loads(&self, direction: &str) -> impl Iterator<Item = &Value> {
        self.json["measurements"]["comparisons"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(move |comparison| comparison["direction"] == direction)
            .filter_map(|comparison| comparison["samples"].as_array())
            .flatten()
            .filter(|sample| sample["load"]["via"] == "tunnel")
    }

    /// Prints the codes of the findings that stand for themselves, and how long it took.
    fn tell(&self, case: &str) -> BTreeSet<String> {
        let found = self.codes();
        eprintln!(
            "    {case}: {}; {:.0} s",
            if found.is_empty() {
                format!("nothing found ({})", self.json["verdict"])
            } else {
                found.iter().cloned().collect::<Vec<_>>().join(", ")
            },
            self.took.as_secs_f64()
        );
        found
    }

    /// Codes of the findings that stand for themselves.
    fn codes(&self) -> BTreeSet<String> {
        self.findings()
            .filter(|finding| finding["consequence_of"].is_null())
            .filter_map(|finding| finding["code"].as_str().map(str::to_owned))
            .collect()
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.json["findings"].as_array().into_iter().flatten()
    }

    /// Everything that is refused, of the diagnosis and of its findings, as one text.
    pub(crate) fn refused(&self) -> String {
        let all: Vec<&Value> = [&self.json["refused"]]
            .into_iter()
            .chain(self.findings().map(|finding| &finding["refused"]))
            .collect();
        serde_json::to_string(&all).unwrap_or_default()
    }

    /// Facts of the machine here.
    pub(crate) fn facts(&self) -> &Value {
        &self.json["machines"][0]["facts"]
    }

    /// What is behind a link here.
    pub(crate) fn link(&self, name: &str) -> &Value {
        let links = self.facts()["links"].as_array();
        links
            .into_iter()
            .flatten()
            .find(|link| link["name"] == name)
            .map_or(&Value::Null, |link| &link["detail"]["value"])
    }

    fn details(&self) -> String {
        let parts = ["findings", "refused", "not_checked"].map(|part| &self.json[part]);
        serde_json::to_string_pretty(&parts).unwrap_or_default()
    }
}

/// A sysctl of the whole machine with another value, for as long as this lives.
pub(crate) struct Sysctl {
    name: &'static str,
    before: String,
}

impl Sysctl {
    pub(crate) fn set(name: &'static str, value: &str) -> Self {
        let before = run(Command::new("sysctl").args(["-n", name]));
        run(Command::new("sysctl").args(["-q", "-w", &format!("{name}={value}")]));
        Self {
            name,
            before: before.trim().to_owned(),
        }
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        let setting = format!("{}={}", self.name, self.before);
        let _ = Command::new("sysctl").args(["-q", "-w", &setting]).status();
    }
}

/// A program that runs beside the case and ends with it.
pub(crate) struct Beside(Child);

impl Beside {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Self(child)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program in a namespace.
pub(crate) fn within(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

pub(crate) fn ip(namespace: &str, line: &str) -> String {
    run(within(namespace, "ip").args(line.split_whitespace()))
}

pub(crate) fn tc(namespace: &str, line: &str) -> String {
    run(within(namespace, "tc").args(line.split_whitespace()))
}

/// What a program prints; it must succeed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The program under test; one of another build where the machine that built this is not the one that runs it.
fn program() -> String {
    std::env::var("WIRESPEED").unwrap_or_else(|_| env!("CARGO_BIN_EXE_wirespeed").to_owned())
}

fn wirespeed() -> Command {
    Command::new(program())
}

fn wirespeed_in(namespace: &str, verb: &str) -> Command {
    let mut command = within(namespace, "timeout");
    command
        .arg(PATIENCE.as_secs().to_string())
        .args([&program(), verb]);
    command
}

fn json(output: &Output) -> Value {
    wirespeed_schemas::read(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no JSON object ({error}, {}): {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}
