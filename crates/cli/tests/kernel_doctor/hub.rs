//! Several peers that send to one hub, without threaded NAPI and with it.
//!
//! Each peer has a NAPI instance of its own. It polls on the core where its first packet was decrypted, in softirq, for as
//! long as there is more, and so two peers may meet on one core and stay; in threads the scheduler gives each its time on
//! whichever core has some. Both can be seen of the emulated machine. What can't be had of it is a core that is full of them
//! while the doctor still measures: what decrypts on that core gets no time at all there, and no load gets through. So
//! `napi-convergence` itself is judged from what was recorded.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

use crate::machine::{Beside, Report, doctor, run, skipped, tc, turn, within};
use crate::star::{HUB, Star, peer};

/// The first is the doctor's.
const PEERS: usize = 3;
/// Bits per second of each of the others, in datagrams of 1,200 bytes.
const OF_EACH: &str = "2M";
/// Rules that each packet is compared with that comes out of the tunnel: what costs most of it is polling.
const RULES: usize = 2_000;
/// Rules of one chain; the rest is jumping there, so that the rules can be listed in no time.
const RULES_OF_A_CHAIN: usize = 100;
/// What the doctor's own peer has to the hub.
const ROAD: &str = "10mbit";
/// A peer that brings this share of the bytes is busy: what the doctor goes by.
const BUSY: f64 = 0.05;
/// Share of the kernel's time in softirq that is more than what threads leave there, and less than what polling takes.
const IN_SOFTIRQ: f64 = 0.25;
/// The machine is busy with so many peers either way.
const TRUE_TOO: [&str; 4] = [
    "cpu-saturated",
    "one-core-bound",
    "firewall-cost",
    "unexplained",
];
/// The longest that a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn hub_without_threads() {
    let case = "several peers, without threads";
    if skipped(case) {
        return;
    }
    let _turn = turn();
    let report = of_peers(case, false);
    report.finds_among(case, &[], &[&TRUE_TOO[..], &["napi-convergence"]].concat());
    let share = in_softirq(&report);
    assert!(share > IN_SOFTIRQ, "{case}: {share:.2} in softirq");
}

#[test]
fn hub_with_threads() {
    let case = "several peers, with threads";
    if skipped(case) {
        return;
    }
    let _turn = turn();
    let report = of_peers(case, true);
    report.finds_among(case, &[], &TRUE_TOO);
    let share = in_softirq(&report);
    assert!(share < IN_SOFTIRQ, "{case}: {share:.2} in softirq");
}

/// What the doctor says at the hub of its tunnel to one peer while the others send as well; and demands that it saw them,
/// and how their packets are polled.
fn of_peers(case: &str, threaded: bool) -> Report {
    let star = Star::of_cables(PEERS);
    for (namespace, device) in [(HUB.0, "road1"), (peer(1).as_str(), "road")] {
        tc(
            namespace,
            &format!("qdisc add dev {device} root tbf rate {ROAD} burst 20k latency 30ms"),
        );
    }
    let file = format!("/sys/class/net/{}/threaded", HUB.1);
    let turned = format!("echo {} >{file}", u8::from(threaded));
    run(within(HUB.0, "sh").args(["-c", &turned]));
    assert_eq!(polling_threads() >= PEERS, threaded, "{case}");
    costly_packets();
    let _others: Vec<Beside> = (2..=PEERS).flat_map(sends).collect();

    let report = doctor(HUB.0, HUB.1, &peer(1), &["--peer", &star.key(1), "--quick"]);
    let seen = &report.link(HUB.1)["threaded"]["value"];
    assert_eq!(*seen, Value::Bool(threaded), "{case}");
    let busy = busy_peers(&report);
    assert!(busy > 1, "{case}: {busy} busy peers");
    report.could_find(case, &["napi-convergence", "napi-threaded-stall"]);
    report
}

/// Threads of the kernel that poll for the hub's interface.
fn polling_threads() -> usize {
    let of_the_hub = format!("napi/{}", HUB.1);
    fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(Result::ok)
        .filter_map(|process| fs::read_to_string(process.path().join("comm")).ok())
        .filter(|name| name.starts_with(&of_the_hub))
        .count()
}

/// What a gateway does with each packet that comes out of the tunnel, and in NAPI's time.
fn costly_packets() {
    let rules = "ip daddr 192.0.2.1 drop\n".repeat(RULES_OF_A_CHAIN);
    let jumps = "jump some\n".repeat(RULES / RULES_OF_A_CHAIN);
    let hook = format!(
        "type filter hook input priority 0; iifname {} jump many;",
        HUB.1
    );
    run(within(HUB.0, "nft").arg(format!(
        "table ip gateway {{ chain some {{ {rules} }}\nchain many {{ {jumps} }}\nchain input {{ {hook} }}\n}}"
    )));
}

/// A peer that sends to the hub all the time, and what it sends to.
fn sends(number: usize) -> [Beside; 2] {
    let port = (6_000 + number).to_string();
    let server = Beside::start(within(HUB.0, "iperf3").args(["-s", "-p", &port]));
    let listens =
        || !run(within(HUB.0, "ss").args(["-Hltn", &format!("sport = :{port}")])).is_empty();
    let begun = Instant::now();
    while !listens() {
        assert!(begun.elapsed() < PATIENCE, "nobody listens on port {port}");
        thread::sleep(Duration::from_millis(100));
    }
    let load = ["-u", "-b", OF_EACH, "-l", "1200", "-t", "3600"];
    let mut client = within(&peer(number), "iperf3");
    client.args(["-c", "10.40.0.254", "-p", &port]).args(load);
    [server, Beside::start(&mut client)]
}

/// Peers that a noticeable part of what the hub received during the doctor's loads came from, in the direction with more.
fn busy_peers(report: &Report) -> usize {
    let of_direction = |direction| {
        let mut received: BTreeMap<&str, f64> = BTreeMap::new();
        for load in report.loads(direction) {
            for (key, moved) in load["here"]["peers"].as_object().into_iter().flatten() {
                *received.entry(key).or_default() += moved["rx_bytes"].as_f64().unwrap_or_default();
            }
        }
        let all: f64 = received.values().sum();
        let busy = |bytes: &&f64| **bytes > 0.0 && **bytes >= all * BUSY;
        received.values().filter(busy).count()
    };
    ["upload", "download"]
        .map(of_direction)
        .into_iter()
        .max()
        .unwrap_or_default()
}

/// Of the time that the kernel used on all cores during the doctor's loads, the share in softirq.
fn in_softirq(report: &Report) -> f64 {
    let cores: Vec<&Value> = ["upload", "download"]
        .into_iter()
        .flat_map(|direction| report.loads(direction))
        .filter_map(|load| load["here"]["cores"].as_array())
        .flatten()
        .collect();
    let all = |part: &str| -> f64 { cores.iter().filter_map(|core| core[part].as_f64()).sum() };
    all("softirq") / (all("softirq") + all("system"))
}
