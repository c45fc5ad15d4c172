//! Two namespaces with a router between them: `a – r – b`, made for one test and gone with it.
//!
//! Every host has two addresses per side, so that "outside" and "inside a tunnel" can be told apart without one.

#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wirespeed_facts::{Facts, Scope};
use wirespeed_measure::{Ends, FarEnd, Stop};
use wirespeed_reach::{Machine, OpenOptions, Place};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) const A_BARE: &str = "10.91.1.1";
pub(crate) const A_INSIDE: &str = "10.92.1.1";
pub(crate) const B_BARE: &str = "10.91.2.1";
pub(crate) const B_INSIDE: &str = "10.92.2.1";
pub(crate) const B_BARE_V6: &str = "fd91:2::1";

pub(crate) struct Road {
    tag: String,
}

impl Road {
    /// `None`, reported as skipped, where namespaces can't be made.
    pub(crate) fn make(test: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            return skipped(test, "network namespaces need root");
        }
        for program in ["ip", "tc", "nft", "iperf3"] {
            if Command::new(program)
                .arg("-V")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_err()
            {
                return skipped(test, &format!("{program} is not installed"));
            }
        }
        let road = Self {
            tag: format!(
                "{:x}{:x}",
                std::process::id(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            ),
        };
        for host in ["a", "r", "b"] {
            run("ip", &["netns", "add", &road.netns(host)]);
            road.on(host, "ip link set lo up");
            // Otherwise addresses are unusable for two seconds.
            road.on(host, "sysctl -qw net.ipv6.conf.default.accept_dad=0");
        }
        for (host, side) in [("a", 1), ("b", 2)] {
            let (ours, routers) = (road.link(host), road.link(&format!("r{host}")));
            let (host_ns, router_ns) = (road.netns(host), road.netns("r"));
            run(
                "ip",
                &[
                    "link", "add", &ours, "netns", &host_ns, "type", "veth", "peer", "name",
                    &routers, "netns", &router_ns,
                ],
            );
            for net in ["10.91", "10.92"] {
                road.on(host, &format!("ip addr add {net}.{side}.1/24 dev {ours}"));
                road.on(
                    "r",
                    &format!("ip addr add {net}.{side}.254/24 dev {routers}"),
                );
            }
            road.on(
                host,
                &format!("ip addr add fd91:{side}::1/64 dev {ours} nodad"),
            );
            road.on(
                "r",
                &format!("ip addr add fd91:{side}::fe/64 dev {routers} nodad"),
            );
            road.on(host, &format!("ip link set {ours} up"));
            road.on("r", &format!("ip link set {routers} up"));
            road.on(host, &format!("ip route add default via 10.91.{side}.254"));
            road.on(
                host,
                &format!("ip route add 10.92.0.0/16 via 10.92.{side}.254"),
            );
            road.on(host, &format!("ip route add default via fd91:{side}::fe"));
        }
        road.on("r", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.icmp_ratelimit=0");
        Some(road)
    }

    pub(crate) fn netns(&self, host: &str) -> String {
        format!("ws-m{}-{host}", self.tag)
    }

    pub(crate) fn link(&self, end: &str) -> String {
        format!("m{}{end}", self.tag)
    }

    /// Limits the rate towards both hosts.
    pub(crate) fn limit(&self, rate: &str) {
        for end in ["ra", "rb"] {
            let link = self.link(end);
            self.on(
                "r",
                &format!(
                    "tc qdisc replace dev {link} root tbf rate {rate} burst 64kb latency 30ms"
                ),
            );
        }
    }

    /// Runs a command line on a host; it must succeed.
    pub(crate) fn on(&self, host: &str, line: &str) {
        let netns = self.netns(host);
        let words: Vec<&str> = ["netns", "exec", &netns]
            .into_iter()
            .chain(line.split_whitespace())
            .collect();
        run("ip", &words);
    }

    /// Loads nftables rules on a host.
    pub(crate) fn filter(&self, host: &str, rules: &str) {
        assert!(self.try_filter(host, rules), "nft refused: {rules}");
    }

    /// The same, where the kernel may not know them.
    pub(crate) fn try_filter(&self, host: &str, rules: &str) -> bool {
        let mut nft = Command::new("ip")
            .args(["netns", "exec", &self.netns(host), "nft", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("ip netns exec");
        nft.stdin
            .take()
            .expect("piped")
            .write_all(rules.as_bytes())
            .expect("nft reads");
        nft.wait().expect("nft").success()
    }

    /// Process ids on a host whose name is `program`.
    pub(crate) fn running(&self, host: &str, program: &str) -> Vec<String> {
        let listed = Command::new("ip")
            .args(["netns", "pids", &self.netns(host)])
            .output()
            .expect("ip netns pids");
        String::from_utf8_lossy(&listed.stdout)
            .lines()
            .filter(|pid| {
                fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name.trim() == program)
            })
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn machine(&self, host: &str) -> Machine {
        self.machine_with(host, agent())
    }

    pub(crate) fn machine_with(&self, host: &str, program: PathBuf) -> Machine {
        let place = Place::Netns(self.netns(host));
        let options = OpenOptions {
            program,
            hello_within: Duration::from_secs(15),
            ..OpenOptions::default()
        };
        Machine::open(&place, &options).expect("the agent starts")
    }

    /// Both ends, with wirespeed at the far one.
    pub(crate) fn ends(&self) -> Ends {
        let far = self.machine("b");
        self.ends_with(self.machine("a"), FarEnd::Wirespeed(far))
    }

    pub(crate) fn ends_with(&self, here: Machine, far: FarEnd) -> Ends {
        let facts = |machine: &Machine| -> Facts {
            machine
                .call("facts.snapshot", &Scope::default(), Duration::from_secs(20))
                .expect("facts")
        };
        let far_facts = match &far {
            FarEnd::Wirespeed(machine) => Some(facts(machine)),
            FarEnd::Iperf3 { .. } | FarEnd::Nothing => None,
        };
        let address = |text: &str| -> Option<IpAddr> { Some(text.parse().expect("an address")) };
        Ends {
            here_facts: facts(&here),
            far_facts,
            here,
            far,
            interface: self.link("a"),
            far_interface: Some(self.link("b")),
            peer: "none".to_owned(),
            bare_address: address(B_BARE),
            tunnel_address: address(B_INSIDE),
            here_bare_address: address(A_BARE),
            here_tunnel_address: address(A_INSIDE),
            here_bare_device: None,
            far_bare_device: None,
            never_outside: None,
            translated_to: None,
            stop: Stop::default(),
        }
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        for host in ["a", "r", "b"] {
            // What still runs there goes first: a namespace lives as long as a process in it.
            let listed = Command::new("ip")
                .args(["netns", "pids", &self.netns(host)])
                .output();
            for pid in listed.iter().flat_map(|out| {
                String::from_utf8_lossy(&out.stdout)
                    .lines()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            }) {
                let _ = Command::new("kill")
                    .args(["-KILL", &pid])
                    .stderr(Stdio::null())
                    .status();
            }
            let _ = Command::new("ip")
                .args(["netns", "del", &self.netns(host)])
                .stderr(Stdio::null())
                .status();
        }
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) {
    let out = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.success(),
        "{program} {}: {words}",
        arguments.join(" ")
    );
}

/// The agent of this crate's examples, which `cargo test` builds beside the tests.
pub(crate) fn agent() -> PathBuf {
    let tests = std::env::current_exe().expect("this test has a path");
    let target = tests
        .parent()
        .and_then(|deps| deps.parent())
        .expect("…/deps/…");
    let agent = target.join("examples/measure_agent");
    assert!(
        agent.exists(),
        "{} is missing: run cargo build --examples -p wirespeed-measure",
        agent.display()
    );
    agent
}

/// Reports a test that this machine can't run.
pub(crate) fn skipped<T>(test: &str, reason: &str) -> Option<T> {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    let list = std::env::var("WIRESPEED_SKIPS").ok();
    let file = list.and_then(|path| {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .ok()
    });
    if let Some(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
    None
}
