//! An agent on this machine: answers, errors, limits, ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wirespeed_reach::{Machine, Pending, Place, ReachError};

use crate::support::{PATIENCE, eventually, exists, open_here, options, signal};

fn pid_of(machine: &Machine) -> u32 {
    machine.call("pid", &(), PATIENCE).unwrap()
}

#[test]
fn calls_are_answered() {
    let machine = open_here();
    assert_eq!(machine.name(), "here");
    assert!(!machine.host().is_empty());
    machine.call::<_, ()>("ping", &(), PATIENCE).unwrap();
    let text = "Grüße\n\u{1f980}\0";
    assert_eq!(
        machine.call::<_, String>("echo", &text, PATIENCE).unwrap(),
        text
    );
    assert_eq!(
        machine
            .call::<_, String>("flood", &(8 << 20), PATIENCE)
            .unwrap()
            .len(),
        8 << 20
    );
}

#[test]
fn an_error_of_the_operation_is_told_as_it_is() {
    let machine = open_here();
    let error = machine
        .call::<_, ()>("fail", &"no such interface: wg7", PATIENCE)
        .unwrap_err();
    assert!(matches!(error, ReachError::Operation { .. }));
    assert_eq!(error.to_string(), "here: no such interface: wg7");
    let error = machine
        .call::<_, ()>("panic", &"on purpose", PATIENCE)
        .unwrap_err();
    assert!(error.to_string().contains("on purpose"), "{error}");
    let error = machine
        .call::<_, ()>("nonesuch", &(), PATIENCE)
        .unwrap_err();
    assert!(
        error.to_string().contains("no operation nonesuch"),
        "{error}"
    );
    let error = machine
        .call::<_, String>("flood", &(17 << 20), PATIENCE)
        .unwrap_err();
    assert!(error.to_string().contains("16 MiB"), "{error}");
    machine.call::<_, ()>("ping", &(), PATIENCE).unwrap();
}

#[test]
fn what_does_not_fit_is_told_on_this_side() {
    let machine = open_here();
    let error = machine
        .call::<_, u32>("echo", &"text", PATIENCE)
        .unwrap_err();
    assert!(matches!(error, ReachError::Answer { .. }), "{error}");
    let error = machine
        .call::<_, String>("echo", &"x".repeat(17 << 20), PATIENCE)
        .unwrap_err();
    assert!(matches!(error, ReachError::NotCalled { .. }), "{error}");
    machine.call::<_, ()>("ping", &(), PATIENCE).unwrap();
}

#[test]
fn a_call_ends_at_its_limit_and_the_machine_goes_on() {
    let machine = open_here();
    let start = Instant::now();
    let limit = Duration::from_millis(200);
    let error = machine.call::<_, f64>("sleep", &60.0, limit).unwrap_err();
    assert!(
        matches!(error, ReachError::TimedOut { after, .. } if after == limit),
        "{error}"
    );
    assert!(start.elapsed() < PATIENCE);
    machine.call::<_, ()>("ping", &(), PATIENCE).unwrap();
}

#[test]
fn nobody_waits_any_more_means_cancelled_over_there() {
    let directory = tempfile::tempdir().unwrap();
    let machine = open_here();
    let path = |name: &str| directory.path().join(name).display().to_string();

    machine.start("leave", &path("cancelled")).unwrap().cancel();
    drop(machine.start("leave", &path("dropped")).unwrap());
    let error = machine
        .call::<_, ()>("leave", &path("timed out"), Duration::from_millis(50))
        .unwrap_err();
    assert!(matches!(error, ReachError::TimedOut { .. }), "{error}");
    for name in ["cancelled", "dropped", "timed out"] {
        assert!(
            eventually(|| directory.path().join(name).exists()),
            "{name}"
        );
    }
}

#[test]
fn a_call_is_cancelled_from_elsewhere_and_no_other_with_it() {
    let machine = open_here();
    let start = Instant::now();
    let cancelled = machine.start("sleep", &60.0).unwrap();
    let other = machine.start("sleep", &0.5).unwrap();
    let cancel = cancelled.canceller();
    std::thread::spawn(cancel).join().unwrap();
    let error = cancelled.wait::<f64>(PATIENCE).unwrap_err();
    assert_eq!(error.to_string(), "here: was cancelled");
    assert!(other.wait::<f64>(PATIENCE).unwrap() >= 0.5);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn answers_find_their_calls() {
    let machine = open_here();
    let callers: Vec<_> = (0..50)
        .map(|number| {
            let machine = machine.clone();
            std::thread::spawn(move || {
                for round in 0..20 {
                    let text = format!("{number}/{round}");
                    assert_eq!(
                        machine.call::<_, String>("echo", &text, PATIENCE).unwrap(),
                        text
                    );
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
}

#[test]
fn of_a_hundred_calls_at_once_those_beyond_the_bound_are_refused() {
    let machine = open_here();
    let start = Instant::now();
    let calls: Vec<Pending> = (0..100)
        .map(|_| machine.start("sleep", &2.0).unwrap())
        .collect();
    let (mut slept, mut refused) = (0, 0);
    for call in calls {
        match call.wait::<f64>(PATIENCE) {
            Ok(_) => slept += 1,
            Err(ReachError::Operation { message, .. })
                if message.contains("already runs 64 calls") =>
            {
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        slept >= 64 && slept + refused == 100,
        "{slept} slept, {refused} were refused"
    );
    assert!(start.elapsed() < PATIENCE, "they ran one after the other");
}

#[test]
fn a_killed_agent_ends_every_call_with_one_reason() {
    let machine = open_here();
    let pid = pid_of(&machine);
    let calls: Vec<Pending> = (0..3)
        .map(|_| machine.start("sleep", &60.0).unwrap())
        .collect();
    signal(pid.cast_signed(), rustix::process::Signal::KILL);
    let start = Instant::now();
    let mut reasons: Vec<ReachError> = calls
        .into_iter()
        .map(|call| call.wait::<f64>(Duration::from_secs(50)).unwrap_err())
        .collect();
    assert!(start.elapsed() < PATIENCE);
    reasons.push(machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err());
    reasons.dedup();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(
        matches!(&reasons[0], ReachError::Died { exit, .. } if exit.contains("signal 9")),
        "{}",
        reasons[0]
    );
    assert!(!exists(pid), "the agent was not reaped");
}

#[test]
fn dropping_the_last_clone_ends_the_agent_cleanly() {
    let directory = tempfile::tempdir().unwrap();
    let left = directory.path().join("left");
    let machine = open_here();
    let pid = pid_of(&machine);
    let call = machine.start("leave", &left.display().to_string()).unwrap();
    let clone = machine.clone();
    drop(machine);
    clone.call::<_, ()>("ping", &(), PATIENCE).unwrap();
    drop(clone);
    assert!(exists(pid), "the call still needs the agent");
    drop(call);
    assert!(!exists(pid));
    assert_eq!(std::fs::read_to_string(left).unwrap(), "ended cleanly");
}

#[test]
fn dropping_waits_a_bounded_time_for_a_call_that_does_not_listen() {
    let machine = open_here();
    let pid = pid_of(&machine);
    machine.start("deaf_sleep", &60.0).unwrap().cancel();
    let start = Instant::now();
    drop(machine);
    assert!(!exists(pid));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn dropping_kills_an_agent_that_is_stopped() {
    let machine = open_here();
    let pid = pid_of(&machine);
    signal(pid.cast_signed(), rustix::process::Signal::STOP);
    let error = machine
        .call::<_, ()>("ping", &(), Duration::from_millis(100))
        .unwrap_err();
    assert!(matches!(error, ReachError::TimedOut { .. }));
    let start = Instant::now();
    drop(machine);
    assert!(!exists(pid));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_agent_ends_when_the_program_that_started_it_is_killed() {
    // A program that only holds the other end of the agent's input stands for the one that is killed.
    let (input, held) = std::io::pipe().unwrap();
    let mut holder = Command::new("sleep")
        .arg("600")
        .stdout(held)
        .spawn()
        .unwrap();
    let mut agent = Command::new(options().program)
        .arg("agent")
        .stdin(input)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(agent.try_wait().unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let start = Instant::now();
    while agent.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            agent.kill().unwrap();
            panic!("the agent outlived its input");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_ctrl_c_at_the_terminal_does_not_reach_the_agent() {
    let machine = open_here();
    let pid = rustix::process::Pid::from_raw(pid_of(&machine).cast_signed());
    assert_eq!(rustix::process::getpgid(pid).ok(), pid);
}

#[test]
fn an_iperf3_server_is_not_opened() {
    let error =
        Machine::open(&"iperf3://192.0.2.1".parse::<Place>().unwrap(), &options()).unwrap_err();
    assert!(matches!(error, ReachError::NotStarted { .. }), "{error}");
}
