//! `wirespeed demo`: a slow tunnel found out, fixed with proof, and put back, on a practice road of this machine.
//!
//! It runs the commands that a user would type and shows each; nothing here measures or changes anything itself.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use wirespeed_facts::{Facts, Known, Scope};
use wirespeed_lab::{Implementation, Lab, LabId, UpOptions};
use wirespeed_reach::{Machine, OpenOptions, Place};
use wirespeed_report::{DemoStory, TuneRecord};
use wirespeed_settings::Setting;
use wirespeed_tune::Outcome;
use wirespeed_words::{language, say, units};

use crate::commands::lab::of_lab;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{files, interrupt, terminal};

/// Share of what the road can carry that a mended tunnel has to reach.
const ENOUGH: f64 = 0.9;

/// How long a machine may take to say how its knobs are.
const FACTS_WITHIN: Duration = Duration::from_secs(10);

/// How often a command is asked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The scenario: a narrow road that loses ICMP errors, small socket buffers, a deep queue.
const SCENARIO: &str = "demo";

/// Show a slow tunnel being found out, fixed with proof, and put back: in network namespaces of this machine, in under
/// five minutes.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the lab: 1 to 8 lower-case letters and digits; random unless told.
    #[arg(long, value_name = "NAME", value_parser = of_lab::<LabId>)]
    name: Option<LabId>,
    /// Who carries the tunnel instead of wireguard-go: as `wirespeed lab up --tunnel`.
    #[arg(long, value_name = "IMPLEMENTATION", value_parser = of_lab::<Implementation>)]
    tunnel: Option<Implementation>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let cancelled = interrupt::flag_when_put_back()?;
    let scenario = wirespeed_lab::find(SCENARIO)?;
    let options = UpOptions {
        id: arguments.name.clone(),
        tunnel: arguments.tunnel.clone(),
        cancelled: Some(Arc::clone(&cancelled)),
        with_owner: true,
        ..UpOptions::default()
    };
    let by = arguments
        .tunnel
        .as_ref()
        .map_or_else(String::new, |tunnel| format!(" --tunnel {tunnel}"));
    terminal::answer(&format!("$ wirespeed lab up {SCENARIO}{by}\n"))?;
    let lab = wirespeed_lab::up(&scenario, &options)?;
    let shown = show(&lab, &cancelled);
    // Whatever happened in between, the lab goes.
    let gone = wirespeed_lab::down(&lab.id);
    let story = shown?;
    gone?;
    terminal::answer(&format!("\n$ wirespeed lab down {}\n", lab.id))?;
    let left = left_behind(&lab);
    terminal::answer(&wirespeed_report::demo_end(
        &left,
        begun.elapsed().as_secs_f64(),
        &terminal::look(false),
    ))?;
    let lacks = wirespeed_report::demo_lacks(&story, ENOUGH, &left);
    if terminal::is_quiet() {
        for lack in &lacks {
            terminal::complain(lack);
        }
    }
    Ok(if lacks.is_empty() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

/// Doctor, tune, undo, on a lab that is up.
fn show(lab: &Lab, cancelled: &AtomicBool) -> Result<DemoStory, Failure> {
    let look = terminal::look(false);
    terminal::answer(&wirespeed_report::demo_begin(lab.scenario.said(), &look))?;
    let [here, far] = lab.ends();
    let far_place = format!("netns:{}", far.namespace);
    let before = knobs(lab)?;

    let stage = Stage {
        lab,
        host: &here.name,
        cancelled,
    };
    let seen = handed_on(lab, "doctor");
    stage.run(
        &["doctor", "--far", &far_place, "--quick", "--record", &seen],
        None,
    )?;
    let record = handed_on(lab, "tune");
    stage.run(
        &["tune", "--far", &far_place, "--quick", "--from", &seen],
        Some(&record),
    )?;
    let record: TuneRecord = files::read_json(
        Path::new(&record),
        &say!("cli-tune-record"),
        &say!("cli-tune-record-todo"),
    )?;
    let outcome = record.outcome;
    let tuned = knobs(lab)?;
    stage.run(&["tune", "undo", "--far", &far_place], None)?;
    let after = knobs(lab)?;

    let possible = lab.scenario.road.possible_goodput(mtu(&outcome, lab));
    let story = DemoStory {
        reached: possible
            .zip(worse_direction(&outcome))
            .map(|(possible, rate)| rate / possible),
        possible,
        put_back: after == before,
        knobs: before
            .into_iter()
            .zip(tuned)
            .zip(after)
            .map(|((before, tuned), after)| [before.name, before.shown, tuned.shown, after.shown])
            .collect(),
        outcome,
    };
    terminal::answer(&wirespeed_report::demo_table(&story, &look))?;
    Ok(story)
}

/// The tunnel's MTU at the end of the tune.
fn mtu(outcome: &Outcome, lab: &Lab) -> u32 {
    let changed = outcome
        .kept
        .iter()
        .rev()
        .find_map(|change| match change.setting {
            Setting::LinkMtu { .. } => change
                .after
                .as_u64()
                .and_then(|mtu| u32::try_from(mtu).ok()),
            _ => None,
        });
    changed.unwrap_or_else(|| lab.scenario.tunnel.mtu.of(0).bytes())
}

/// Goodput of the last stage, bit/s.
fn worse_direction(outcome: &Outcome) -> Option<f64> {
    let last = outcome.stages.last()?;
    Some(last.upload?.min(last.download?))
}

/// A file that one command of the demonstration hands on to the next. It bears the lab's name among the labs' own, where
/// only root writes, and goes with the lab.
fn handed_on(lab: &Lab, what: &str) -> String {
    format!("/run/wirespeed/lab/{}.demo-{what}.json", lab.id)
}

/// Runs wirespeed on a host of the lab.
struct Stage<'a> {
    lab: &'a Lab,
    host: &'a str,
    cancelled: &'a AtomicBool,
}

impl Stage<'_> {
    /// Shows the command without the arguments that only this demonstration needs, and runs it. A tune writes what it did to
    /// `record`.
    fn run(&self, arguments: &[&str], record: Option<&str>) -> Result<(), Failure> {
        terminal::answer(&format!(
            "\n$ wirespeed lab exec --lab {} {} -- wirespeed {}\n\n",
            self.lab.id,
            self.host,
            arguments.join(" ")
        ))?;
        let not_run = |error: std::io::Error| {
            Failure::here(
                Exit::Unmeasured,
                say!("cli-not-started", error = error.to_string()),
                say!("cli-not-started-todo"),
            )
        };
        let program: PathBuf = OpenOptions::default().program;
        let mut child = Command::new(&program)
            .args([
                "lab",
                "exec",
                "--lab",
                self.lab.id.as_str(),
                self.host,
                "--",
            ])
            .arg(&program)
            .args(["--lang", language().tag()])
            .args(terminal::is_quiet().then_some("--quiet"))
            .args(arguments)
            .args(record.into_iter().flat_map(of_a_tune))
            .stdin(Stdio::null())
            // Ctrl-C reaches this process alone, which passes on one request to end and no second one.
            .process_group(0)
            .spawn()
            .map_err(not_run)?;
        let mut asked_to_end = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(not_run)? {
                break status;
            }
            if self.cancelled.load(Ordering::SeqCst) && !asked_to_end {
                asked_to_end = true;
                // `lab exec` becomes the command, so this is the command itself; it puts back what it changed.
                let _ended_meanwhile = kill_process(Pid::from_child(&child), Signal::TERM);
            }
            std::thread::sleep(LOOK_EVERY);
        };
        if asked_to_end || self.cancelled.load(Ordering::SeqCst) {
            return Err(Failure::interrupted());
        }
        may_go_on(arguments, status.code(), record)
    }
}

/// What a tune of the demonstration is told besides: to write its record, and how long to wait.
fn of_a_tune(record: &str) -> [&str; 4] {
    ["--output", record, "--confirm-within", "10m"]
}

/// Refuses to go on where a command did not end as one of the demonstration may. Findings are what it is about; and a tune that
/// kept nothing has its say in its record, which one that could not be tried does not write.
fn may_go_on(arguments: &[&str], code: Option<i32>, record: Option<&str>) -> Result<(), Failure> {
    match code {
        Some(0 | 1) => Ok(()),
        Some(4) if record.is_some_and(|record| Path::new(record).exists()) => Ok(()),
        code => Err(Failure::here(
            Exit::Unmeasured,
            say!(
                "cli-ended-with",
                command = arguments.join(" "),
                code = code.map_or_else(|| "?".to_owned(), |code| code.to_string())
            ),
            // An answer that is not healthy is no error, and was not shown.
            if terminal::is_quiet() {
                say!("cli-ended-with-quiet-todo")
            } else {
                say!("cli-ended-with-todo")
            },
        )),
    }
}

/// What a tune may turn.
#[derive(Debug, PartialEq)]
struct Knob {
    name: String,
    /// As the machine says it; what is shown may be rounded.
    exact: String,
    shown: String,
}

impl Knob {
    /// One whose value is a word.
    fn word(name: String, value: String) -> Self {
        Self {
            name,
            exact: value.clone(),
            shown: value,
        }
    }

    /// One of so many bytes, or of so many for each of several.
    fn bytes(name: String, sizes: &[u32]) -> Self {
        let each = |told: fn(u32) -> String| sizes.iter().map(move |size| told(*size));
        let mut shown: Vec<String> = each(|size| units::bytes(f64::from(size))).collect();
        // The two sockets of a tunnel, IPv4 and IPv6, are most often alike.
        shown.dedup();
        Self {
            name,
            exact: each(|size| size.to_string()).collect::<Vec<_>>().join(" "),
            shown: shown.join(", "),
        }
    }
}

/// The knobs that a tune may turn, as the machines say themselves.
fn knobs(lab: &Lab) -> Result<Vec<Knob>, Failure> {
    let mut all = Vec::new();
    for host in lab.ends() {
        let machine = Machine::open(
            &Place::Netns(host.namespace.clone()),
            &OpenOptions::default(),
        )?;
        let facts: Facts = machine.call("facts.snapshot", &Scope::default(), FACTS_WITHIN)?;
        for tunnel in &facts.tunnels {
            let (link, on) = (&tunnel.name, &host.name);
            let mtu = say!("cli-knob-mtu", link = link, host = on);
            all.push(Knob::bytes(mtu, &[tunnel.mtu]));
            let receive = say!("cli-knob-buffers", link = link, host = on);
            all.push(match &tunnel.sockets {
                Known::Value(sockets) => {
                    let sizes = sockets.iter().map(|socket| socket.receive_buffer);
                    Knob::bytes(receive, &sizes.collect::<Vec<u32>>())
                }
                Known::Unknown(why) => Knob::word(receive, why.clone()),
            });
            let queues = say!("cli-knob-queueing", link = link, host = on);
            let link = facts.links.iter().find(|link| link.name == tunnel.name);
            let queueing = match link.map(|link| &link.qdisc) {
                Some(Known::Value(kind)) => kind.clone(),
                Some(Known::Unknown(why)) => why.clone(),
                None => say!("cli-no-link"),
            };
            all.push(Knob::word(queues, queueing));
        }
    }
    Ok(all)
}

/// What is still there of a lab that was taken down.
fn left_behind(lab: &Lab) -> Vec<String> {
    let mut left = Vec::new();
    for host in &lab.hosts {
        if Path::new("/run/netns").join(&host.namespace).exists() {
            left.push(say!("cli-left-namespace", name = &host.namespace));
        }
        if let Some(interface) = &host.tunnel_interface {
            if Path::new(&format!("/var/run/wireguard/{interface}.sock")).exists() {
                left.push(say!("cli-left-control", interface = interface));
            }
            if Path::new(&format!("/run/wirespeed/{interface}.stats")).exists() {
                left.push(say!("cli-left-statistics", interface = interface));
            }
        }
    }
    if wirespeed_lab::get(&lab.id).is_ok() {
        left.push(say!("cli-left-record", lab = lab.id.to_string()));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tune::exit_of;

    /// The record of a tune that tried something and kept nothing.
    fn nothing_kept() -> TuneRecord {
        let tuned = include_str!("../../../report/tests/recorded/tune-black-hole.json");
        let mut record: TuneRecord = serde_json::from_str(tuned).unwrap();
        record.outcome.kept.clear();
        for experiment in &mut record.outcome.experiments {
            experiment.kept = false;
        }
        record
    }

    #[test]
    fn a_tune_that_kept_nothing_is_told_of_and_one_that_could_not_be_tried_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        let (record, tuned) = (nothing_kept(), Some(path.to_str().unwrap()));
        let code = match exit_of(&record.outcome) {
            Exit::Refused => Some(4),
            other => panic!("{other:?}"),
        };
        assert!(may_go_on(&["tune"], code, tuned).is_err());
        files::write(&path, &terminal::json(&record).unwrap()).unwrap();
        assert!(may_go_on(&["tune"], code, tuned).is_ok());

        let story = DemoStory {
            outcome: record.outcome,
            possible: Some(200e6),
            reached: Some(0.0),
            knobs: Vec::new(),
            put_back: true,
        };
        let lacks = wirespeed_report::demo_lacks(&story, ENOUGH, &[]);
        assert!(lacks[0].starts_with("nothing kept: "), "{lacks:?}");
    }

    #[test]
    fn a_knob_is_shown_in_units_and_held_to_the_byte() {
        let knob = |sizes: &[u32]| Knob::bytes("receive buffers".to_owned(), sizes);
        assert_eq!(knob(&[4_194_304; 2]).shown, "4.00 MiB");
        assert_eq!(knob(&[4_194_304, 12_288]).shown, "4.00 MiB, 12.0 KiB");
        let (before, after) = (knob(&[4_194_304]), knob(&[4_194_305]));
        assert_eq!(before.shown, after.shown);
        assert_ne!(before, after);
        assert_ne!(knob(&[4_194_304]), knob(&[4_194_304; 2]));
    }

    #[test]
    fn findings_are_what_it_is_about_and_any_other_ending_ends_it() {
        for code in [0, 1] {
            assert!(may_go_on(&["doctor"], Some(code), None).is_ok());
        }
        for code in [Some(2), Some(3), Some(4), None] {
            let failure = may_go_on(&["doctor", "--quick"], code, None).unwrap_err();
            assert_eq!(failure.exit, Exit::Unmeasured);
            let what = &failure.text.what;
            assert!(what.contains("wirespeed doctor --quick"), "{what}");
        }
    }
}
