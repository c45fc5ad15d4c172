//! A whole run of the doctor through what may go wrong meanwhile: it ends in time, with a code and an object that say what
//! became of it, and nothing is found that only the fault made.
//!
//! Each fault has a lab of its own, whose tunnel is healthy before. Those that tell most run with all other tests; the rest
//! counts as ignored: `cargo test --package wirespeed-cli --test doctor_faults -- --include-ignored`, or
//! `-- --exact NAME --ignored` for one.

use std::fs;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

#[path = "doctor_faults/hostile.rs"]
mod hostile;
#[path = "support/lab.rs"]
#[expect(dead_code, reason = "other tests wait for the doctor to end")]
mod lab;

use hostile::Act;
use lab::{Lab, Turn, missing, skip};

/// Whatever happens, the doctor ends within this time.
const LIMIT: Duration = Duration::from_secs(90);
/// What the doctor itself may take of the memory, KiB.
const MEMORY_AT_MOST: u64 = 300 << 10;
/// The loads begin after the probes of the idle tunnel.
const LOADS_WITHIN: Duration = Duration::from_secs(30);
/// From the first load on.
const INTO_THE_SECOND_PAIR: Duration = Duration::from_secs(3);
/// An agent whose client is gone has time to end what it does.
const GONE_WITHIN: Duration = Duration::from_secs(6);
/// The far end's address in the tunnel.
const FAR_INSIDE: &str = "10.9.0.2";
/// The far end over what the doctor takes for ssh.
const HOSTILE: &str = "ssh://far";

struct Fault {
    name: &'static str,
    /// Runs with all other tests?
    ci: bool,
    what: What,
    wanted: Wanted,
}

enum What {
    /// Happens once the loads run.
    Happens(fn(&Lab)),
    /// The far end itself.
    FarEnd(Act),
}

/// How the doctor has to end.
enum Wanted {
    /// With a record: the tunnel was good before and is again, so nothing of weight is found.
    NothingFound,
    /// With a record that says that nothing could be measured, and names this.
    Unmeasured(fn(&Lab) -> String),
    /// With an error that names this.
    Error(fn(&Lab) -> String),
}

const FAULTS: [Fault; 13] = [
    Fault {
        name: "the_peer_roams_twice",
        ci: false,
        what: What::Happens(roam),
        wanted: Wanted::NothingFound,
    },
    Fault {
        name: "the_peer_is_taken_out_and_put_in_again",
        ci: false,
        what: What::Happens(take_out_and_put_in),
        wanted: Wanted::NothingFound,
    },
    Fault {
        name: "the_road_is_cut_for_a_moment",
        ci: true,
        what: What::Happens(cut_for_a_moment),
        wanted: Wanted::NothingFound,
    },
    Fault {
        name: "the_road_is_cut_for_good",
        ci: false,
        what: What::Happens(cut),
        wanted: Wanted::Unmeasured(|_| FAR_INSIDE.to_owned()),
    },
    Fault {
        name: "the_tunnel_is_renamed_at_the_far_end",
        ci: true,
        what: What::Happens(rename_there),
        wanted: Wanted::Unmeasured(far_interface),
    },
    Fault {
        name: "the_tunnel_is_deleted_here",
        ci: false,
        what: What::Happens(delete_here),
        wanted: Wanted::Unmeasured(interface),
    },
    Fault {
        name: "the_far_agent_is_killed",
        ci: true,
        what: What::Happens(kill_far_agent),
        wanted: Wanted::Error(|lab| format!("netns:{}", lab.far_end())),
    },
    Fault {
        name: "the_far_end_never_ends_its_line",
        ci: false,
        what: What::FarEnd(Act::EndlessLine),
        wanted: Wanted::Error(|_| HOSTILE.to_owned()),
    },
    Fault {
        name: "the_far_end_answers_in_no_encoding",
        ci: false,
        what: What::FarEnd(Act::NoEncoding),
        wanted: Wanted::Error(|_| HOSTILE.to_owned()),
    },
    Fault {
        name: "the_far_end_answers_with_gigabytes",
        ci: true,
        what: What::FarEnd(Act::Gigabytes),
        wanted: Wanted::Error(|_| HOSTILE.to_owned()),
    },
    Fault {
        name: "the_far_end_tells_of_a_load_without_end",
        ci: false,
        what: What::FarEnd(Act::ManyPieces),
        wanted: Wanted::Error(|_| HOSTILE.to_owned()),
    },
    Fault {
        name: "the_far_end_tells_of_other_counters_each_time",
        ci: false,
        what: What::FarEnd(Act::ManyNames),
        wanted: Wanted::NothingFound,
    },
    Fault {
        name: "the_far_end_tells_of_as_many_features_as_are_believed",
        ci: false,
        what: What::FarEnd(Act::ManyFeatures),
        wanted: Wanted::NothingFound,
    },
];

fn main() -> ExitCode {
    // The doctor starts this program for ssh.
    if let Some(act) = hostile::asked_for() {
        return hostile::run(act);
    }
    let mut arguments = Arguments::from_args();
    // They would only wait for each other.
    arguments.test_threads = Some(1);
    let tests = FAULTS
        .iter()
        .map(|fault| {
            let run = || as_it_should_be(fault).map_err(Failed::from);
            Trial::test(fault.name, run).with_ignored_flag(!fault.ci)
        })
        .collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn as_it_should_be(fault: &Fault) -> Result<(), String> {
    if let Some(reason) = missing() {
        skip(fault.name, &reason);
        return Ok(());
    }
    let _turn = Turn::take();
    let lab = Lab::up("healthy");
    let ended = match &fault.what {
        What::Happens(happens) => {
            let far = format!("netns:{}", lab.far_end());
            let doctor = lab.doctor_command(&["--far", &far]);
            Ended::of(doctor, || {
                until_loads_run(&lab);
                happens(&lab);
            })?
        }
        What::FarEnd(act) => {
            let mut doctor = lab.doctor_command(&["--far", HOSTILE]);
            let folder = hostile::prepare(&mut doctor, *act, &lab.far_end());
            let ended = Ended::of(doctor, || {});
            drop(folder);
            ended?
        }
    };
    eprintln!(
        "{} over {}: {:.1} s, {} MiB, exit code {:?}",
        fault.name,
        lab.implementation,
        ended.took.as_secs_f64(),
        ended.peak >> 10,
        ended.code
    );
    ended.check(&fault.wanted, &lab).map_err(|why| {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", fault.name));
        let whole = match fs::write(&kept, &ended.out) {
            Ok(()) => kept.display().to_string(),
            Err(error) => format!("not kept: {error}"),
        };
        format!(
            "{why}\nstandard error: {}\nthe whole report: {whole}",
            ended.err
        )
    })?;
    nothing_runs_on(&lab)
}

/// How a run of the doctor ended.
struct Ended {
    code: Option<i32>,
    took: Duration,
    /// The most memory it had, KiB.
    peak: u64,
    out: Vec<u8>,
    err: String,
}

impl Ended {
    /// Starts the doctor, lets something happen to it, and waits for its end.
    fn of(mut doctor: Command, happens: impl FnOnce()) -> Result<Self, String> {
        let (out, err) = (file(), file());
        doctor.stdout(out.try_clone().expect("a file"));
        doctor.stderr(err.try_clone().expect("a file"));
        let begun = Instant::now();
        let mut doctor = Running(doctor.spawn().expect("ip netns exec runs"));
        happens();
        let mut peak = 0;
        let status = loop {
            if let Some(status) = doctor.0.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("the doctor still ran after {LIMIT:?}"));
            }
            // `ip netns exec` becomes the program, so the child is the program itself.
            peak = memory(doctor.0.id()).unwrap_or_default().max(peak);
            sleep(Duration::from_millis(20));
        };
        Ok(Self {
            code: status.code(),
            took: begun.elapsed(),
            peak,
            out: content(out),
            err: String::from_utf8_lossy(&content(err)).into_owned(),
        })
    }

    fn check(&self, wanted: &Wanted, lab: &Lab) -> Result<(), String> {
        let report: Value = wirespeed_schemas::read(&self.out)
            .map_err(|error| format!("what the doctor printed: {error}"))?;
        ensure(report["schema"]["name"] == "wirespeed.doctor", || {
            format!("the schema is {}", report["schema"])
        })?;
        ensure(self.peak < MEMORY_AT_MOST, || {
            format!("the doctor had {} MiB of memory", self.peak >> 10)
        })?;
        let verdict = report["verdict"].as_str().unwrap_or_default();
        let code = match verdict {
            "healthy" => 0,
            "findings" => 1,
            _ => 3,
        };
        ensure(self.code == Some(code), || {
            format!("exit code {:?} with the verdict {verdict}", self.code)
        })?;
        let name = match wanted {
            Wanted::NothingFound => return self.nothing_found(&report),
            Wanted::Unmeasured(name) => {
                self.nothing_found(&report)?;
                let listed = &report["not_checked"];
                let name = name(lab);
                return ensure(listed.to_string().contains(&name), || {
                    format!("{name} is not named by what was not checked: {listed:#}")
                })
                .and_then(|()| {
                    ensure(verdict == "unmeasured", || {
                        format!("the verdict is {verdict}")
                    })
                });
            }
            Wanted::Error(name) => name(lab),
        };
        self.one_sentence(&name)?;
        for field in ["what", "where", "todo"] {
            let words = report["error"][field].as_str().unwrap_or_default();
            ensure(!words.is_empty(), || {
                format!("the error says not {field}: {report:#}")
            })?;
        }
        ensure(report["error"]["where"] == name.as_str(), || {
            format!("the error is not about {name}: {report:#}")
        })
    }

    fn nothing_found(&self, report: &Value) -> Result<(), String> {
        ensure(self.err.is_empty(), || {
            "something was written to standard error".to_owned()
        })?;
        let findings = report["findings"]
            .as_array()
            .ok_or_else(|| format!("there is no record: {report:#}"))?;
        let serious: Vec<&Value> = findings
            .iter()
            .filter(|finding| finding["severity"] != "info")
            .collect();
        ensure(serious.is_empty(), || format!("found: {serious:#?}"))
    }

    fn one_sentence(&self, name: &str) -> Result<(), String> {
        let lines: Vec<&str> = self.err.lines().collect();
        let sound =
            matches!(lines[..], [line] if line.starts_with("wirespeed: ") && line.contains(name));
        let machine_speak = ["Error(", "Os {", "panicked", "Some(", "None"];
        let speaks = machine_speak.iter().any(|word| self.err.contains(word));
        ensure(sound && !speaks && self.err.len() < 600, || {
            format!("no sentence about {name}")
        })
    }
}

fn ensure(holds: bool, else_why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(else_why()) }
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn file() -> fs::File {
    tempfile::tempfile().expect("a file")
}

fn content(mut file: fs::File) -> Vec<u8> {
    let mut content = Vec::new();
    file.rewind().expect("a file");
    file.read_to_end(&mut content).expect("a file");
    content
}

/// The most memory that a process had until now, KiB.
fn memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn until_loads_run(lab: &Lab) {
    let clients = || running(&lab.namespace("client"), "iperf3");
    let begun = Instant::now();
    loop {
        let seen = clients();
        sleep(Duration::from_millis(300));
        // What only says its version is gone by then.
        if clients().iter().any(|pid| seen.contains(pid)) {
            break;
        }
        assert!(begun.elapsed() < LOADS_WITHIN, "no load began");
    }
    sleep(INTO_THE_SECOND_PAIR);
}

/// Processes of a program in a namespace.
fn running(namespace: &str, program: &str) -> Vec<String> {
    let pids = run(Command::new("ip").args(["netns", "pids", namespace]));
    let is_it = |pid: &&str| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == program)
    };
    let pids = pids.split_whitespace().filter(is_it);
    pids.map(str::to_owned).collect()
}

/// Neither a load nor an agent outlives the doctor.
fn nothing_runs_on(lab: &Lab) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let left: Vec<String> = [lab.namespace("client"), lab.far_end()]
            .iter()
            .flat_map(|namespace| ["iperf3", "wirespeed"].map(|program| (namespace, program)))
            .filter(|(namespace, program)| !running(namespace, program).is_empty())
            .map(|(namespace, program)| format!("{program} in {namespace}"))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > GONE_WITHIN {
            return Err(format!("these run on: {}", left.join(", ")));
        }
        sleep(Duration::from_millis(100));
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a line of words on a host of the lab.
fn on(lab: &Lab, host: &str, line: &str) -> String {
    run(Command::new("ip")
        .args(["netns", "exec", &lab.namespace(host)])
        .args(line.split_whitespace()))
}

fn interface(lab: &Lab) -> String {
    format!("wg{}0", lab.id)
}

fn far_interface(lab: &Lab) -> String {
    format!("wg{}1", lab.id)
}

/// The far end hears us from another port, and from yet another.
fn roam(lab: &Lab) {
    for port in [51_999, 52_999] {
        on(
            lab,
            "client",
            &format!("wg set {} listen-port {port}", interface(lab)),
        );
        sleep(Duration::from_secs(4));
    }
}

/// A peer that is put in again has no keys: a new handshake, and counters that begin anew.
fn take_out_and_put_in(lab: &Lab) {
    let interface = interface(lab);
    let settings = on(lab, "client", &format!("wg showconf {interface}"));
    let peer = &settings[settings.find("[Peer]").expect("a peer")..];
    let key = peer
        .lines()
        .find_map(|line| line.strip_prefix("PublicKey = "))
        .expect("a key");
    let kept = tempfile::NamedTempFile::new().expect("a file");
    fs::write(kept.path(), peer).expect("a file");
    on(
        lab,
        "client",
        &format!("wg set {interface} peer {key} remove"),
    );
    sleep(Duration::from_millis(500));
    on(
        lab,
        "client",
        &format!("wg addconf {interface} {}", kept.path().display()),
    );
}

fn cut(lab: &Lab) {
    on(lab, "server", "ip link set road down");
}

/// As a cable that is pulled and put in again, where something then sets the routes again.
fn cut_for_a_moment(lab: &Lab) {
    let routes = on(lab, "server", "ip route show dev road");
    cut(lab);
    sleep(Duration::from_secs(4));
    on(lab, "server", "ip link set road up");
    for route in routes
        .lines()
        .filter(|route| !route.contains("proto kernel"))
    {
        on(lab, "server", &format!("ip route replace {route} dev road"));
    }
}

fn rename_there(lab: &Lab) {
    let name = far_interface(lab);
    on(lab, "server", &format!("ip link set {name} down"));
    on(lab, "server", &format!("ip link set {name} name {name}x"));
    on(lab, "server", &format!("ip link set {name}x up"));
}

fn delete_here(lab: &Lab) {
    on(lab, "client", &format!("ip link del {}", interface(lab)));
}

/// As a machine that loses its power.
fn kill_far_agent(lab: &Lab) {
    let agents = running(&lab.far_end(), "wirespeed");
    assert_eq!(agents.len(), 1, "{agents:?}");
    run(Command::new("kill").arg("-KILL").args(agents));
}
