//! What happens under one's feet: interfaces renamed and deleted between and during the readings.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use wirespeed_facts::{Scope, counters, snapshot};

#[test]
fn an_interface_that_is_renamed_is_unreliable_and_nothing_else_is() {
    in_namespace("an_interface_that_is_renamed", || {
        run("ip link add ws0 type veth peer name ws1 && ip link set ws0 up && ip link set ws1 up");
        let before = counters(&Scope::default());
        run("ip link set ws0 down && ip link set ws0 name ws9 && ip link set ws9 up");
        let after = counters(&Scope::default());
        let delta = after.delta(&before);
        let of_links: Vec<&str> = delta
            .unreliable
            .iter()
            .filter_map(|name| name.strip_prefix("links."))
            .collect();
        assert_eq!(of_links, ["ws0", "ws9"], "{:?}", delta.unreliable);
        assert!(!delta.links.contains_key("ws0") && !delta.links.contains_key("ws9"));
        assert!(delta.seconds > 0.0 && delta.seconds < 60.0);
    });
}

#[test]
fn an_interface_that_is_made_anew_under_its_old_name_does_not_run_backwards() {
    in_namespace("an_interface_that_is_made_anew", || {
        run("ip link add ws0 type veth peer name ws1 && ip addr add 10.1.1.1/24 dev ws0");
        run("ip link set ws0 up && ip link set ws1 up");
        // Something to count: requests for an address nobody has.
        run("ping -c 3 -i 0.05 -W 0.2 10.1.1.2 || true");
        let before = counters(&Scope::default());
        assert!(before.links["ws0"].tx_packets > 0, "{:?}", before.links);
        run("ip link del ws0 && ip link add ws0 type veth peer name ws1");
        let delta = counters(&Scope::default()).delta(&before);
        assert!(
            delta.unreliable.iter().any(|name| name == "links.ws0"),
            "{:?}",
            delta.unreliable
        );
        assert!(!delta.links.contains_key("ws0"));
    });
}

#[test]
fn interfaces_that_come_and_go_during_a_reading_harm_nothing() {
    in_namespace("interfaces_that_come_and_go", || {
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let changing = threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    run("ip link add ws0 type veth peer name ws1 && ip link set ws0 name ws2 && ip link del ws2");
                }
            });
            let mut before = counters(&Scope::default());
            let until = Instant::now() + Duration::from_secs(2);
            while Instant::now() < until {
                let facts = snapshot(&Scope {
                    interface: Some("ws0".to_owned()),
                    ..Scope::default()
                });
                assert!(facts.links.iter().any(|link| link.name == "lo"));
                let now = counters(&Scope::default());
                let delta = now.delta(&before);
                assert!(delta.seconds > 0.0);
                before = now;
            }
            done.store(true, Ordering::Relaxed);
            changing.join().expect("the changes go on to the end");
        });
    });
}

/// Runs a test in a thread that has a network namespace of its own, which ends with the thread.
fn in_namespace(test: &str, body: impl FnOnce() + Send) {
    std::thread::scope(|threads| {
        threads.spawn(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                skip(test, &format!("no network namespace: {error}"));
                return;
            }
            body();
        });
    });
}

fn run(command: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("{{ {command}; }} > /dev/null")])
        .status()
        .expect("a shell");
    assert!(status.success(), "{command}");
}

fn skip(test: &str, reason: &str) {
    use std::io::Write as _;
    let line = format!("SKIPPED {test}: {reason}\n");
    eprint!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        if let Ok(mut file) = file {
            let _ = file.write_all(line.as_bytes());
        }
    }
}
