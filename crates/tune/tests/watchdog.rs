//! The watchdog with real processes, each test in a network namespace of its own thread.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::RngExt;
use serde_json::{Value, json};
use wirespeed_reach::{Machine, OpenOptions, Place, ReachError};
use wirespeed_tune::{State, Status};

const LIMIT: Duration = Duration::from_secs(20);
/// Within this time after a death everything is as it was.
const WATCHDOGS_TIME: Duration = Duration::from_secs(5);

#[test]
fn the_owner_is_killed_and_everything_is_put_back() {
    in_namespace("the_owner_is_killed_and_everything_is_put_back", |bench| {
        let before = Bench::picture();
        let machine = bench.begun(None);
        apply(&machine, &mtu(), &json!(1340)).unwrap();
        apply(&machine, &probing(), &json!(1)).unwrap();
        apply(&machine, &shaper(), &json!(20_000_000)).unwrap();
        assert_ne!(Bench::picture(), before);
        bench.kill_owner();
        bench.await_picture(&before);
        bench.await_free();
    });
}

#[test]
fn an_unconfirmed_change_is_put_back_at_the_deadline() {
    in_namespace(
        "an_unconfirmed_change_is_put_back_at_the_deadline",
        |bench| {
            let before = Bench::picture();
            let machine = bench.begun(None);
            apply(&machine, &mtu(), &json!(1340)).unwrap();
            apply(&machine, &probing(), &json!(1)).unwrap();
            let keep = json!({"settings": [mtu()], "confirm_within": 1.5});
            machine.call::<_, ()>("tune.keep", &keep, LIMIT).unwrap();
            let kept = Bench::picture();
            assert!(
                kept.contains("mtu 1340") && kept.contains("probing 0"),
                "only what was kept stands: {kept}"
            );
            drop(machine);
            sleep(Duration::from_millis(700));
            assert_eq!(
                Bench::picture(),
                kept,
                "the end of the program after keep changes nothing"
            );
            bench.await_picture(&before);
            let status = bench.status();
            assert!(
                matches!(&status.state, State::Undone { why, .. } if why.contains("confirmed")),
                "{status:?}"
            );
        },
    );
}

#[test]
fn a_confirmed_change_stays_until_undo() {
    in_namespace("a_confirmed_change_stays_until_undo", |bench| {
        let before = Bench::picture();
        for value in [1340, 1280] {
            let machine = bench.begun(None);
            apply(&machine, &mtu(), &json!(value)).unwrap();
            let keep = json!({"settings": [mtu()], "confirm_within": 1});
            machine.call::<_, ()>("tune.keep", &keep, LIMIT).unwrap();
            drop(machine);
            let confirmed: Status = bench
                .agent()
                .call("tune.confirm", &json!({}), LIMIT)
                .unwrap();
            assert!(
                matches!(confirmed.state, State::Confirmed { .. }),
                "{confirmed:?}"
            );
            bench.await_free();
            sleep(Duration::from_millis(1500));
            assert!(Bench::picture().contains(&format!("mtu {value}")));
        }
        let outcomes: Value = bench
            .agent()
            .call("tune.undo", &json!({"why": "asked by the user"}), LIMIT)
            .unwrap();
        assert_eq!(
            outcomes.as_array().unwrap().len(),
            2,
            "both confirmed tunes, newest first: {outcomes}"
        );
        assert_eq!(Bench::picture(), before);
    });
}

#[test]
fn undo_by_another_program_ends_the_tune() {
    in_namespace("undo_by_another_program_ends_the_tune", |bench| {
        let before = Bench::picture();
        let machine = bench.begun(None);
        apply(&machine, &mtu(), &json!(1340)).unwrap();
        bench
            .agent()
            .call::<_, Value>("tune.undo", &json!({"why": "asked by the user"}), LIMIT)
            .unwrap();
        assert_eq!(Bench::picture(), before);
        let refused = apply(&machine, &mtu(), &json!(1340))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("asked by the user"), "{refused}");
        assert_eq!(Bench::picture(), before);
    });
}

#[test]
fn an_administrators_later_change_wins() {
    in_namespace("an_administrators_later_change_wins", |bench| {
        let machine = bench.begun(None);
        apply(&machine, &mtu(), &json!(1340)).unwrap();
        apply(&machine, &probing(), &json!(1)).unwrap();
        run("ip link set ws0 mtu 1400");
        bench.kill_owner();
        bench.await_free();
        let now = Bench::picture();
        assert!(
            now.contains("mtu 1400") && now.contains("probing 0"),
            "{now}"
        );
        let State::Undone { outcomes, .. } = bench.status().state else {
            panic!("not undone");
        };
        let text = serde_json::to_string(&outcomes).unwrap();
        assert!(
            text.contains("changed-by-others") && text.contains("1400"),
            "{text}"
        );
    });
}

#[test]
fn two_tunes_at_once_the_second_is_refused() {
    in_namespace("two_tunes_at_once_the_second_is_refused", |bench| {
        let first = bench.begun(None);
        let refused = Bench::begin(&bench.agent(), None).unwrap_err().to_string();
        assert!(
            refused.contains("another wirespeed tune") && refused.contains("ws0"),
            "{refused}"
        );
        drop(first);
        bench.await_free();
        drop(bench.begun(None));
    });
}

#[test]
fn a_dead_tunnel_puts_everything_back() {
    in_namespace("a_dead_tunnel_puts_everything_back", |bench| {
        let before = Bench::picture();
        let machine = bench.begun(Some("10.1.1.2"));
        apply(&machine, &mtu(), &json!(1340)).unwrap();
        sleep(Duration::from_secs(1));
        run(&format!("ip -n {} link set ws1 down", bench.peer));
        let deadline = Instant::now() + Duration::from_secs(12);
        while Bench::picture() != before {
            assert!(
                Instant::now() < deadline,
                "not put back: {}",
                Bench::picture()
            );
            sleep(Duration::from_millis(100));
        }
        let refused = apply(&machine, &probing(), &json!(1))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("stopped passing traffic"), "{refused}");
    });
}

#[test]
fn the_watchdog_is_killed_and_nothing_more_is_changed() {
    in_namespace(
        "the_watchdog_is_killed_and_nothing_more_is_changed",
        |bench| {
            let before = Bench::picture();
            let machine = bench.begun(None);
            apply(&machine, &mtu(), &json!(1340)).unwrap();
            for watchdog in bench.watchdogs() {
                kill(watchdog, Signal::SIGKILL).unwrap();
            }
            sleep(Duration::from_millis(200));
            let refused = apply(&machine, &probing(), &json!(1))
                .unwrap_err()
                .to_string();
            assert!(refused.contains("watchdog has ended"), "{refused}");
            assert_eq!(Bench::picture(), before);
        },
    );
}

#[test]
fn an_orphaned_journal_is_put_back_by_whoever_comes_next() {
    in_namespace(
        "an_orphaned_journal_is_put_back_by_whoever_comes_next",
        |bench| {
            let before = Bench::picture();
            for next in ["tune.status", "tune.begin"] {
                let machine = bench.begun(None);
                apply(&machine, &mtu(), &json!(1340)).unwrap();
                for watchdog in bench.watchdogs() {
                    kill(watchdog, Signal::SIGKILL).unwrap();
                }
                bench.kill_owner();
                bench.await_free();
                assert_ne!(Bench::picture(), before);
                let params =
                    json!({"interface": "ws0", "probe_address": null, "trial_seconds": 60});
                let agent = bench.agent();
                let answer: Value = agent.call(next, &params, LIMIT).unwrap();
                assert_eq!(answer["recovered"].as_array().unwrap().len(), 1, "{answer}");
                assert_eq!(Bench::picture(), before);
                drop(agent);
                bench.await_free();
            }
        },
    );
}

#[test]
fn told_to_end_the_watchdog_puts_back_first() {
    in_namespace("told_to_end_the_watchdog_puts_back_first", |bench| {
        let before = Bench::picture();
        let machine = bench.begun(None);
        apply(&machine, &mtu(), &json!(1340)).unwrap();
        for watchdog in bench.watchdogs() {
            kill(watchdog, Signal::SIGTERM).unwrap();
        }
        bench.await_picture(&before);
        drop(machine);
        bench.await_free();
    });
}

#[test]
fn killed_at_random_moments_the_machine_is_as_it_was() {
    in_namespace(
        "killed_at_random_moments_the_machine_is_as_it_was",
        |bench| {
            let before = Bench::picture();
            let started = Instant::now();
            assert!(bench.cycle().wait().unwrap().success());
            let whole = started.elapsed();
            assert_ne!(
                Bench::picture(),
                before,
                "the script really changes something"
            );
            bench.await_picture(&before);
            bench.await_free();
            let mut changed_when_killed = 0;
            for round in 0..30 {
                let mut driver = bench.cycle();
                sleep(whole.mul_f64(rand::rng().random_range(0.0..1.1)));
                let agents = children(driver.id());
                changed_when_killed += usize::from(Bench::picture() != before);
                if round % 3 != 1 {
                    driver.kill().unwrap();
                }
                if round % 3 != 0 {
                    for agent in agents {
                        let _already_gone = kill(agent, Signal::SIGKILL);
                    }
                }
                driver.wait().unwrap();
                bench.await_picture(&before);
                bench.await_free();
            }
            eprintln!("{changed_when_killed} of 30 kills hit while something was changed");
            assert!(
                changed_when_killed >= 3,
                "the kills hit too early or too late to prove anything"
            );
        },
    );
}

fn mtu() -> Value {
    json!({"knob": "link-mtu", "interface": "ws0"})
}

fn probing() -> Value {
    json!({"knob": "sysctl", "name": "net.ipv4.tcp_mtu_probing"})
}

fn shaper() -> Value {
    json!({"knob": "egress-shaper", "interface": "ws0"})
}

fn apply(machine: &Machine, setting: &Value, value: &Value) -> Result<Value, ReachError> {
    machine.call(
        "tune.apply",
        &json!({"setting": setting, "value": value}),
        LIMIT,
    )
}

/// A veth pair whose one end is in this thread's namespace and the other in a namespace beside it.
struct Bench {
    directory: tempfile::TempDir,
    peer: String,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let peer = format!("ws-tune-{:08x}", rand::rng().random::<u32>());
        // The state directory is given by the environment, and only of this one program.
        let script = directory.path().join("agent");
        let state = directory.path().join("state");
        fs::write(
            &script,
            format!(
                "#!/bin/sh\nWIRESPEED_STATE={} exec {} \"$@\"\n",
                state.display(),
                example().display()
            ),
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let bench = Self { directory, peer };
        let peer = &bench.peer;
        run(&format!("ip netns add {peer}"));
        run(&format!(
            "ip link add ws0 type veth peer name ws1 netns {peer}"
        ));
        run(
            "ip link set ws0 addrgenmode none && ip addr add 10.1.1.1/24 dev ws0 && ip link set ws0 up && ip link set lo up",
        );
        run(&format!(
            "ip -n {peer} addr add 10.1.1.2/24 dev ws1 && ip -n {peer} link set ws1 up"
        ));
        bench
    }

    fn agent(&self) -> Machine {
        let options = OpenOptions {
            program: self.directory.path().join("agent"),
            ..OpenOptions::default()
        };
        Machine::open(&Place::Here, &options).unwrap()
    }

    fn begin(machine: &Machine, probe: Option<&str>) -> Result<Value, ReachError> {
        let params = json!({"interface": "ws0", "probe_address": probe, "trial_seconds": 60});
        let begun: Value = machine.call("tune.begin", &params, LIMIT)?;
        assert_eq!(begun["probe_answered"], json!(probe.is_some()));
        Ok(begun)
    }

    fn begun(&self, probe: Option<&str>) -> Machine {
        let machine = self.agent();
        Self::begin(&machine, probe).unwrap();
        machine
    }

    fn cycle(&self) -> Child {
        Command::new(example())
            .arg("cycle")
            .env("WIRESPEED_STATE", self.directory.path().join("state"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn status(&self) -> Status {
        self.agent().call("tune.status", &json!({}), LIMIT).unwrap()
    }

    fn journal(&self) -> Option<Value> {
        let state = fs::read_dir(self.directory.path().join("state")).ok()?;
        let journal = state.flatten().map(|entry| entry.path()).find(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("netns-") && name.contains(".json") && !name.contains(".done.")
        })?;
        serde_json::from_slice(&fs::read(journal).ok()?).ok()
    }

    fn kill_owner(&self) {
        let owner = self.journal().unwrap()["owner"].as_i64().unwrap();
        kill(Pid::from_raw(owner.try_into().unwrap()), Signal::SIGKILL).unwrap();
    }

    fn watchdogs(&self) -> Vec<Pid> {
        let state = self.directory.path().join("state");
        let state = state.to_str().unwrap();
        processes()
            .filter(|(_, command)| command.contains("tune-watch") && command.contains(state))
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Everything the tests change, as the kernel shows it.
    fn picture() -> String {
        let probing = output("cat /proc/sys/net/ipv4/tcp_mtu_probing");
        let link = output("ip -o link show ws0");
        let routes = output("ip -4 route show table all").replace(" linkdown", "");
        let qdisc = output("tc qdisc show dev ws0");
        let mtu = link
            .split("mtu ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .unwrap();
        format!("mtu {mtu}\nprobing {probing}{routes}{qdisc}")
    }

    fn await_picture(&self, wanted: &str) {
        let deadline = Instant::now() + WATCHDOGS_TIME;
        while Self::picture() != wanted {
            assert!(
                Instant::now() < deadline,
                "not as it was:\n{}\nbut:\n{wanted}\njournal: {:?}",
                Self::picture(),
                self.journal()
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the lock is free, so no watchdog is left.
    fn await_free(&self) {
        let deadline = Instant::now() + WATCHDOGS_TIME;
        while !self.watchdogs().is_empty() {
            assert!(
                Instant::now() < deadline,
                "a watchdog is left: {:?}",
                self.journal()
            );
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for watchdog in self.watchdogs() {
            let _already_gone = kill(watchdog, Signal::SIGKILL);
        }
        let _already_gone = Command::new("ip")
            .args(["netns", "del", &self.peer])
            .status();
    }
}

fn children(parent: u32) -> Vec<Pid> {
    processes()
        .map(|(pid, _)| pid)
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                let after_name = stat.rsplit(')').next().unwrap_or_default();
                after_name.split_whitespace().nth(1) == Some(&parent.to_string())
            })
        })
        .collect()
}

fn processes() -> impl Iterator<Item = (Pid, String)> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            Some((
                Pid::from_raw(pid),
                String::from_utf8_lossy(&command).replace('\0', " "),
            ))
        })
}

/// The agent of this crate's examples, built beside the tests.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let directory = tests.parent().and_then(Path::parent).unwrap();
    directory.join("examples/tune_agent")
}

fn in_namespace(test: &'static str, body: impl FnOnce(&Bench) + Send + 'static) {
    let thread = std::thread::Builder::new()
        .name(test.to_owned())
        .spawn(move || {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                skip(test, &format!("no network namespace: {error}"));
                return;
            }
            body(&Bench::new());
        });
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn run(command: &str) {
    let status = Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

fn output(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
