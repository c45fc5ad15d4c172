//! What is started is no agent, or a bad one: one clear error, in time, and nothing left running.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use wirespeed_reach::{Machine, OpenOptions, Place, ReachError};

use crate::support::{PATIENCE, Script, eventually, exists, options};

fn refused(options: &OpenOptions) -> ReachError {
    let start = Instant::now();
    let error = Machine::open(&Place::Here, options).unwrap_err();
    assert!(
        start.elapsed() < options.hello_within + Duration::from_secs(10),
        "{error} came late"
    );
    error
}

fn program(path: &str) -> OpenOptions {
    OpenOptions {
        program: PathBuf::from(path),
        ..options()
    }
}

#[test]
fn a_program_that_is_missing_or_not_executable() {
    for path in ["/nonesuch/wirespeed", "/etc/passwd", "/"] {
        let error = refused(&program(path));
        assert!(
            matches!(error, ReachError::ProgramMissing { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[test]
fn a_program_that_ends_at_once() {
    let error = refused(&program("/bin/cat"));
    assert!(
        matches!(&error, ReachError::Died { stderr, .. } if stderr.contains("No such file")),
        "{error}"
    );
    let error = refused(&program("/bin/true"));
    assert!(
        matches!(&error, ReachError::Died { exit, .. } if exit == "exit code 0"),
        "{error}"
    );
}

#[test]
fn a_program_that_prints_something_else() {
    let error = refused(&program("/bin/yes"));
    assert!(
        matches!(&error, ReachError::Rubbish { detail, .. } if detail.contains("\"agent\"")),
        "{error}"
    );
    let script = Script::new("printf 'Welcome to \\033[31mnas\\033[0m\\n'; exec sleep 600");
    let error = refused(&script.options()).to_string();
    assert!(error.contains("Welcome to \\u{1b}[31mnas"), "{error}");
    let script = Script::new("head -c 1000000 /dev/urandom; exec sleep 600");
    assert!(matches!(
        refused(&script.options()),
        ReachError::Rubbish { .. }
    ));
    let script = Script::new("printf 'This account is currently not available.'; exit 1");
    let error = refused(&script.options());
    assert!(
        matches!(&error, ReachError::Rubbish { detail, .. } if detail.contains("not available")),
        "{error}"
    );
}

#[test]
fn a_program_that_never_ends_its_line() {
    let error = refused(&Script::new("exec tr '\\0' x < /dev/zero").options());
    assert!(
        matches!(&error, ReachError::Rubbish { detail, .. } if detail.contains("xxxx")),
        "{error}"
    );
}

#[test]
fn a_program_that_says_nothing() {
    let script = Script::new(
        "echo $$ > \"$(dirname \"$0\")/pid\"; echo 'still thinking' >&2; exec sleep 600",
    );
    let options = OpenOptions {
        hello_within: Duration::from_secs(2),
        ..script.options()
    };
    let error = refused(&options);
    assert!(
        matches!(&error, ReachError::TimedOut { after, .. } if after.as_secs() == 2),
        "{error}"
    );
    assert!(error.to_string().contains("still thinking"), "{error}");
    let pid: u32 = std::fs::read_to_string(script.path("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(!exists(pid), "it was left running");
}

#[test]
fn a_program_of_another_version() {
    let script = Script::new(
        r#"echo '{"wirespeed":"99.1.0","protocol":7,"shape":"unknown"}'; exec sleep 600"#,
    );
    let error = refused(&script.options());
    assert!(
        matches!(
            error,
            ReachError::Version {
                their_protocol: 7,
                ..
            }
        ),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("99.1.0") && text.contains(env!("CARGO_PKG_VERSION")),
        "{text}"
    );
}

#[test]
fn an_agent_that_turns_to_rubbish() {
    for (rest, expected) in [
        ("read line; echo oops; exec sleep 600", "oops"),
        (
            "read line; echo '{\"id\":1}'; exec sleep 600",
            "either ok or error",
        ),
        ("read line; exec tr '\\0' x < /dev/zero", "16 MiB"),
        (
            "read line; echo '{\"id\":0,\"error\":\"expected a request\"}'; exec sleep 600",
            "did not understand",
        ),
    ] {
        let script = Script::greeting(rest);
        let machine = Machine::open(&Place::Here, &script.options()).unwrap();
        assert_eq!(machine.host(), "script");
        let error = machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err();
        assert!(
            matches!(error, ReachError::Rubbish { .. }),
            "{rest}: {error}"
        );
        assert!(error.to_string().contains(expected), "{rest}: {error}");
        assert_eq!(
            machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err(),
            error
        );
    }
}

#[test]
fn an_agent_that_ends_in_a_call_leaves_its_last_words() {
    let script =
        Script::greeting("read line; printf '{\"id\":1,\"o'; echo 'out of memory' >&2; exit 3");
    let machine = Machine::open(&Place::Here, &script.options()).unwrap();
    let error = machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err();
    let ReachError::Died { exit, stderr, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (exit.as_str(), stderr.as_str()),
        ("exit code 3", "out of memory")
    );
}

#[test]
fn an_agent_whose_child_keeps_its_output_open_is_still_dead() {
    let script = Script::greeting("sleep 5 & read line; exit 4");
    let machine = Machine::open(&Place::Here, &script.options()).unwrap();
    let start = Instant::now();
    let error = machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err();
    assert!(
        matches!(&error, ReachError::Died { exit, .. } if exit == "exit code 4"),
        "{error}"
    );
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "it waited for the child"
    );
}

#[test]
fn an_agent_that_closes_its_ends_but_stays() {
    let script =
        Script::greeting("echo $$ > \"$(dirname \"$0\")/pid\"; exec >&- <&-; exec sleep 600");
    let machine = Machine::open(&Place::Here, &script.options()).unwrap();
    let error = machine.call::<_, ()>("ping", &(), PATIENCE).unwrap_err();
    assert!(
        matches!(&error, ReachError::Died { exit, .. } if exit.contains("went on running")),
        "{error}"
    );
    let pid: u32 = std::fs::read_to_string(script.path("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(eventually(|| !exists(pid)));
}

#[test]
fn an_agent_that_reads_nothing_costs_the_limit_and_no_more() {
    let script = Script::greeting("exec sleep 600");
    let machine = Machine::open(&Place::Here, &script.options()).unwrap();
    let start = Instant::now();
    let big = "x".repeat(1 << 20);
    let error = machine
        .call::<_, String>("echo", &big, Duration::from_millis(200))
        .unwrap_err();
    assert!(matches!(error, ReachError::TimedOut { .. }), "{error}");
    let full = (0..1000)
        .find_map(|_| machine.start("ping", &()).err())
        .unwrap();
    assert!(full.to_string().contains("has not read"), "{full}");
    drop(machine);
    assert!(start.elapsed() < Duration::from_secs(20));
}
