//! The road does to packets what the scenario says.

#[path = "tools/tools.rs"]
mod tools;

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tools::{Cleaner, on, options, road, skipped};
use wirespeed_lab::{DelayMeans, Host, Lab, LabId, status, up};

fn pings(lab: &Lab, count: usize) -> Vec<f64> {
    let [first, second] = lab.ends();
    let text = on(
        first,
        &format!(
            "ping -n -i 0.01 -c {count} -W 1 {}",
            second.road_address.unwrap()
        ),
    );
    let mut times: Vec<f64> = text
        .lines()
        .filter_map(|l| {
            l.split_once("time=")?
                .1
                .split_ascii_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The kernel's timers and this program's turn on a busy machine are late now and then, so one quiet round of five counts.
#[test]
fn delay_is_exact_to_half_a_millisecond() {
    if skipped("delay_is_exact_to_half_a_millisecond") {
        return;
    }
    let ids = [LabId::random(), LabId::random()];
    let _cleaners = ids.clone().map(Cleaner);
    let short = up(&road(""), &options(&ids[0])).unwrap();
    let long = up(&road("[road.both]\ndelay = \"20ms\"\n"), &options(&ids[1])).unwrap();
    assert_ne!(long.delay, DelayMeans::None);
    let rounds = (0..5).map(|_| {
        let (base, delayed) = (pings(&short, 100), pings(&long, 100));
        assert_eq!(
            (base.len(), delayed.len()),
            (100, 100),
            "no packet may be lost"
        );
        let off = |share: f64| {
            let at = |times: &[f64]| times[(times.len() as f64 * share) as usize];
            at(&delayed) - at(&base) - 40.0
        };
        (off(0.5), off(0.95))
    });
    let mut seen = Vec::new();
    for (median, p95) in rounds {
        eprintln!(
            "a 40 ms round trip is off by {median:.3} ms (median), {p95:.3} ms (95th percentile)"
        );
        if median.abs() <= 0.5 && p95.abs() <= 0.5 {
            return;
        }
        seen.push((median, p95));
    }
    panic!("no round was exact to 0.5 ms: {seen:?}");
}

#[test]
fn beyond_its_limit_the_emulator_says_so() {
    if skipped("beyond_its_limit_the_emulator_says_so") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let lab = up(&road("[road.both]\ndelay = \"1ms\"\n"), &options(&id)).unwrap();
    if lab.delay != DelayMeans::Emulator {
        return;
    }
    let road = lab.host("road").unwrap();
    let pids: Vec<Pid> = on_namespace_pids(road);
    let signal = |signal: Signal| pids.iter().for_each(|pid| kill(*pid, signal).unwrap());
    signal(Signal::SIGSTOP);
    let [client, server] = lab.ends();
    send_datagrams(client, server.road_address.unwrap(), None, |sent| {
        sent < 20_000
    });
    signal(Signal::SIGCONT);
    let began = Instant::now();
    while !status(&id)
        .unwrap()
        .notes
        .iter()
        .any(|n| n.contains("beyond its limit"))
    {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "nothing said: {:?}",
            status(&id).unwrap().notes
        );
        thread::sleep(Duration::from_millis(100));
    }
}

/// Sends datagrams of 1,000 bytes from a host, with a pause after each, for as long as `go_on` says, given how many were sent.
fn send_datagrams(
    from: &Host,
    to: Ipv4Addr,
    pause: Option<Duration>,
    go_on: impl Fn(usize) -> bool + Sync,
) {
    let namespace = fs::File::open(format!("/run/netns/{}", from.namespace)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let mut sent = 0;
            while go_on(sent) {
                // A full queue is what the caller is after.
                let _ = socket.send_to(&[0; 1000], (to, 9));
                sent += 1;
                if let Some(pause) = pause {
                    thread::sleep(pause);
                }
            }
        });
    });
}

#[test]
fn the_rate_is_kept_within_three_percent() {
    if skipped("the_rate_is_kept_within_three_percent") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let lab = up(&road("[road.up]\nrate = \"20mbit\"\n"), &options(&id)).unwrap();
    let [client, server] = lab.ends();
    let way = lab.host("road").unwrap();
    let sent = || {
        on(way, "cat /sys/class/net/server/statistics/tx_bytes")
            .trim()
            .parse::<f64>()
            .unwrap()
    };
    let rates = (0..3).map(|_| {
        let (mut before, mut since) = (0.0, Instant::now());
        thread::scope(|scope| {
            let began = Instant::now();
            scope.spawn(move || {
                let pause = Some(Duration::from_micros(200));
                send_datagrams(client, server.road_address.unwrap(), pause, |_| {
                    began.elapsed() < Duration::from_millis(2300)
                });
            });
            // The first of them fill the queue and use up what the shaper had saved.
            thread::sleep(Duration::from_millis(200));
            (before, since) = (sent(), Instant::now());
            thread::sleep(Duration::from_secs(2));
            (sent() - before) * 8.0 / since.elapsed().as_secs_f64()
        })
    });
    let seen: Vec<f64> = rates.collect();
    eprintln!("20 Mbit/s is {seen:.0?} bit/s");
    assert!(
        seen.iter().any(|rate| (rate / 20e6 - 1.0).abs() < 0.03),
        "{seen:.0?}"
    );
}

fn on_namespace_pids(host: &Host) -> Vec<Pid> {
    let output = Command::new("ip")
        .args(["netns", "pids", &host.namespace])
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .split_ascii_whitespace()
        .map(|p| Pid::from_raw(p.parse().unwrap()))
        .collect()
}

#[test]
fn each_property_of_the_road_is_there() {
    if skipped("each_property_of_the_road_is_there") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let text = "[road]\nclamp_mss = true\n[road.up]\nrate = \"50mbit\"\nqueue = \"100ms\"\nmtu = 1400\nicmp = \"drop\"\n\
                [road.down]\nloss = \"10%\"\ndelay = \"3ms\"\n[tunnel]\nmtu = [1340, 1420]\n[hosts.server.sysctls]\n\"net.ipv4.tcp_mtu_probing\" = \"1\"\n";
    let lab = up(&road(text), &options(&id)).unwrap();
    let [client, server] = lab.ends();
    let way = lab.host("road").unwrap();
    let shaper = on(way, "tc qdisc show dev server");
    assert!(
        shaper.contains("rate 50Mbit") && shaper.contains("lat 9"),
        "{shaper}"
    );
    assert!(!on(way, "tc qdisc show dev client").contains("tbf"));
    assert!(on(way, "ip route get 198.51.100.2").contains("mtu 1400"));
    let rules = on(way, "nft list ruleset");
    assert!(
        rules.contains("oifname \"client\" numgen random mod 1000000 < 100000"),
        "{rules}"
    );
    assert!(rules.contains("oifname \"client\" icmp type"), "{rules}");
    assert!(rules.contains("maxseg size set rt mtu"), "{rules}");
    let mtu = |host: &Host| {
        on(
            host,
            &format!(
                "cat /sys/class/net/{}/mtu",
                host.tunnel_interface.as_deref().unwrap()
            ),
        )
    };
    assert_eq!((mtu(client).trim(), mtu(server).trim()), ("1340", "1420"));
    assert_eq!(on(server, "sysctl -n net.ipv4.tcp_mtu_probing").trim(), "1");
    // What is too large vanishes without a word.
    let large = Command::new("ip")
        .args([
            "netns",
            "exec",
            &client.namespace,
            "ping",
            "-n",
            "-M",
            "do",
            "-s",
            "1400",
            "-c",
            "3",
            "-i",
            "0.1",
            "-W",
            "1",
            "198.51.100.2",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&large.stdout).into_owned();
    assert!(
        !large.status.success() && !said.contains("Frag needed"),
        "{said}"
    );
}

#[test]
fn packets_come_late_and_twice_and_udp_is_policed() {
    if skipped("packets_come_late_and_twice_and_udp_is_policed") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let text = "[road.up]\nreorder = \"50%\"\nreorder_by = \"30ms\"\nudp_rate = \"1mbit\"\n[road.down]\nduplicate = \"50%\"\n";
    let lab = up(&road(text), &options(&id)).unwrap();
    assert_eq!(lab.delay, DelayMeans::Emulator);
    let [client, server] = lab.ends();
    let far = server.road_address.unwrap();
    let said = on(client, &format!("ping -n -i 0.01 -c 100 -W 1 {far}"));
    let numbers: Vec<u32> = said
        .lines()
        .filter_map(|l| l.split_once("icmp_seq=")?.1.split(' ').next()?.parse().ok())
        .collect();
    assert!(said.contains("DUP!"), "{said}");
    assert!(
        numbers.windows(2).any(|pair| pair[0] > pair[1]),
        "{numbers:?}"
    );
    // 5 Mbit/s offered.
    let received = || {
        let text = on(server, "cat /sys/class/net/road/statistics/rx_bytes");
        text.trim().parse::<f64>().unwrap()
    };
    let (before, began) = (received(), Instant::now());
    let pause = Some(Duration::from_micros(1600));
    send_datagrams(client, far, pause, |_| {
        began.elapsed() < Duration::from_secs(2)
    });
    let rate = (received() - before) * 8.0 / began.elapsed().as_secs_f64();
    assert!((0.5e6..1.8e6).contains(&rate), "{rate:.0} bit/s");
}

#[test]
fn hosts_have_their_firewalls_windows_and_crowds() {
    if skipped("hosts_have_their_firewalls_windows_and_crowds") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let text = "[hosts.client]\nconntrack = true\nconntrack_entries = 200\nfirewall_rules = 20\nicmp = \"drop\"\n\
                echo_requests = 7\n\
                [hosts.client.offloads]\nroad = { gro = true }\ntunnel = { gso = false }\n[fault]\naccept_queue = 1\n";
    let lab = up(&road(text), &options(&id)).unwrap();
    let [client, server] = lab.ends();
    let entries: u32 = on(client, "sysctl -n net.netfilter.nf_conntrack_count")
        .trim()
        .parse()
        .unwrap();
    assert!(entries >= 200, "{entries}");
    let rules = on(client, "nft list ruleset");
    assert_eq!(rules.matches("ip saddr 240.0.0.").count(), 60, "{rules}");
    assert!(
        rules.contains("icmp type") && rules.contains("ct state invalid"),
        "{rules}"
    );
    assert_eq!(rules.matches("limit rate over 7/second").count(), 1);
    assert!(on(client, "ethtool -k road").contains("generic-receive-offload: on"));
    let tunnel = client.tunnel_interface.as_deref().unwrap();
    assert!(
        on(client, &format!("ethtool -k {tunnel}")).contains("generic-segmentation-offload: off")
    );
    let began = Instant::now();
    let overflows = || {
        let text = on(server, "nstat -az TcpExtListenOverflows");
        let count = text
            .lines()
            .find_map(|l| l.strip_prefix("TcpExtListenOverflows"));
        count.and_then(|l| l.split_ascii_whitespace().next()?.parse::<f64>().ok())
    };
    while overflows().is_none_or(|count| count == 0.0) {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "no queue overflowed"
        );
        thread::sleep(Duration::from_millis(200));
    }
}

/// How much passes the emulator; figures only, for a person to read: `cargo test --release -p wirespeed-lab -- --ignored
/// --nocapture emulator_throughput`.
#[test]
#[ignore = "a benchmark"]
fn emulator_throughput() {
    if skipped("emulator_throughput") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let lab = up(&road("[road.both]\ndelay = \"5ms\"\n"), &options(&id)).unwrap();
    let [client, server] = lab.ends();
    on(server, "iperf3 -s -D");
    thread::sleep(Duration::from_millis(500));
    for round in 1..=5 {
        for direction in ["", " -R"] {
            let text = on(
                client,
                &format!(
                    "iperf3 -c {} -t 5 -O 1{direction}",
                    server.road_address.unwrap()
                ),
            );
            let line = text
                .lines()
                .find(|l| l.contains("receiver"))
                .unwrap_or_default();
            eprintln!("round {round}{direction}: {line}");
        }
    }
    eprintln!("notes: {:?}", status(&id).unwrap().notes);
}
