//! Labs for real: they come up, do what they say, and leave nothing behind, whatever happens to their maker.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wirespeed_lab::{
    DelayMeans, EmulatorCommand, Host, Implementation, Lab, LabError, LabId, Phase, Scenario,
    UpOptions, down, list, remove_left_behind, scenarios, status, up,
};

/// Set for the copies of this test program that are started as something to kill, or as the road emulator.
const ROLE: &str = "WIRESPEED_LAB_TEST_ROLE";

/// Says that a test can't run here; true when so.
fn skipped(test: &str) -> bool {
    let programs = ["ip", "tc", "nft", "ethtool", "wg", "wireguard-go", "ping"];
    let missing = programs.iter().find(|p| {
        !std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|d| d.join(p).exists())
    });
    let reason = if !nix::unistd::geteuid().is_root() {
        "needs root".to_owned()
    } else if let Some(program) = missing {
        format!("{program} is not installed")
    } else if !Path::new("/dev/net/tun").exists() {
        "/dev/net/tun is missing".to_owned()
    } else {
        return false;
    };
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = fs::OpenOptions::new().append(true).create(true).open(file)
    {
        let _ = std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes());
    }
    true
}

/// Takes its lab down also when the test fails.
struct Cleaner(LabId);

impl Drop for Cleaner {
    fn drop(&mut self) {
        let _ = down(&self.0);
    }
}

/// The road emulator of these labs is a copy of this test program (see `be_the_emulator`).
fn options(id: &LabId) -> UpOptions {
    UpOptions {
        id: Some(id.clone()),
        emulator: EmulatorCommand {
            program: "/usr/bin/env".into(),
            arguments: vec![
                format!("{ROLE}=emulator"),
                std::env::current_exe().unwrap().display().to_string(),
                "--ignored".to_owned(),
                "--exact".to_owned(),
                "--nocapture".to_owned(),
                "be_the_emulator".to_owned(),
            ],
        },
        ..UpOptions::default()
    }
}

fn shipped(name: &str) -> Scenario {
    scenarios().iter().find(|s| s.name == name).unwrap().clone()
}

fn road(text: &str) -> Scenario {
    let head = "name = \"test\"\ndescription = \"x\"\ntopology = \"client-server\"\nfinding = \"healthy\"\n";
    Scenario::parse(&format!("{head}{text}"), "test").unwrap()
}

/// Everything on this machine that bears a lab's name.
fn left_of(id: &LabId) -> Vec<String> {
    let names = |directory: &str| -> Vec<String> {
        fs::read_dir(directory)
            .into_iter()
            .flatten()
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect()
    };
    let mut left = Vec::new();
    left.extend(
        names("/run/netns")
            .into_iter()
            .filter(|n| n.starts_with(&format!("ws-{id}-"))),
    );
    left.extend(
        names("/run/wirespeed/lab")
            .into_iter()
            .filter(|n| n.starts_with(&format!("{id}."))),
    );
    left.extend(
        names("/var/run/wireguard")
            .into_iter()
            .filter(|n| n.starts_with(&format!("wg{id}"))),
    );
    let variable = format!("WIRESPEED_LAB={id}");
    for pid in names("/proc")
        .into_iter()
        .filter(|n| n.bytes().all(|b| b.is_ascii_digit()))
    {
        if fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|e| e.split(|b| *b == 0).any(|v| v == variable.as_bytes()))
        {
            left.push(format!(
                "process {pid} {}",
                fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
            ));
        }
    }
    if let Ok(text) = fs::read_to_string("/run/wirespeed/lab/host-sysctls.json")
        && text.contains(&format!("\"{id}\""))
    {
        left.push("its share in the host's sysctls".to_owned());
    }
    left
}

/// What a command on a host printed.
fn on(host: &Host, line: &str) -> String {
    let output = Command::new("ip")
        .args(["netns", "exec", &host.namespace])
        .args(line.split(' '))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{} {line}: {}",
        host.name,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

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

#[test]
fn a_lab_comes_up_and_leaves_nothing() {
    if skipped("a_lab_comes_up_and_leaves_nothing") {
        return;
    }
    for name in ["healthy", "demo"] {
        let id = LabId::random();
        let _cleaner = Cleaner(id.clone());
        let lab = up(&shipped(name), &options(&id)).unwrap();
        assert_eq!(lab.phase, Phase::Up);
        assert!(list().contains(&lab));
        let now = status(&id).unwrap();
        assert!(now.hosts.iter().all(|h| h.exists));
        assert_eq!(now.notes, lab.notes);
        let [first, second] = lab.ends();
        on(
            first,
            &format!("ping -n -c 1 -W 2 {}", second.tunnel_address.unwrap()),
        );
        assert!(matches!(
            up(&shipped(name), &options(&id)),
            Err(LabError::Taken(_))
        ));
        down(&id).unwrap();
        assert_eq!(left_of(&id), Vec::<String>::new());
        down(&id).unwrap();
    }
}

#[test]
fn killed_at_any_moment_nothing_is_left() {
    if skipped("killed_at_any_moment_nothing_is_left") {
        return;
    }
    for round in 0..20_u32 {
        let id = LabId::random();
        let _cleaner = Cleaner(id.clone());
        let mut maker = start_maker(&id);
        // Past the start of the program, then evenly over the time that `up` takes.
        thread::sleep(
            Duration::from_millis(5)
                + Duration::from_micros(u64::from(round) * 17_000 + rand::random_range(0..17_000)),
        );
        maker.kill().unwrap();
        maker.wait().unwrap();
        let phase = list()
            .into_iter()
            .find(|lab| lab.id == id)
            .map(|lab| lab.phase);
        remove_left_behind();
        if phase == Some(Phase::Up) {
            down(&id).unwrap();
        }
        assert_eq!(
            left_of(&id),
            Vec::<String>::new(),
            "killed in round {round}, {phase:?}"
        );
    }
}

fn start_maker(id: &LabId) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "be_the_maker"])
        .env(ROLE, format!("maker {id}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "started by the test that kills it"]
fn be_the_maker() {
    if let Some(id) = std::env::var(ROLE)
        .ok()
        .and_then(|r| r.strip_prefix("maker ")?.parse().ok())
    {
        up(&shipped("healthy-site"), &options(&id)).unwrap();
    }
}

#[test]
#[ignore = "started by the labs of the other tests"]
fn be_the_emulator() {
    if std::env::var(ROLE).as_deref() == Ok("emulator") {
        let directions: Vec<String> = std::env::args().filter(|a| a.contains(':')).collect();
        wirespeed_lab::emulator::run(&directions).unwrap();
    }
}

#[test]
fn two_labs_at_once_do_not_meet() {
    if skipped("two_labs_at_once_do_not_meet") {
        return;
    }
    let ids = [LabId::random(), LabId::random()];
    let _cleaners = ids.clone().map(Cleaner);
    let labs = thread::scope(|scope| {
        let makers = ids
            .each_ref()
            .map(|id| scope.spawn(move || up(&shipped("healthy"), &options(id)).unwrap()));
        makers.map(|maker| maker.join().unwrap())
    });
    down(&ids[0]).unwrap();
    let [first, second] = labs[1].ends();
    on(
        first,
        &format!("ping -n -c 1 -W 2 {}", second.tunnel_address.unwrap()),
    );
    assert_eq!(left_of(&ids[0]), Vec::<String>::new());
}

#[test]
fn ended_on_request_it_leaves_nothing() {
    if skipped("ended_on_request_it_leaves_nothing") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut options = options(&id);
    options.cancelled = Some(Arc::clone(&cancelled));
    options.progress = Some(Arc::new(move |step| {
        cancelled.store(step == "tunnel", Ordering::Relaxed)
    }));
    assert!(matches!(
        up(&shipped("healthy"), &options),
        Err(LabError::Cancelled)
    ));
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
fn a_daemon_that_ends_is_said_and_leaves_nothing() {
    if skipped("a_daemon_that_ends_is_said_and_leaves_nothing") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let mut options = options(&id);
    options.tunnel = Some(Implementation::Program("/bin/false".into()));
    let text = up(&road(""), &options).unwrap_err().to_string();
    assert!(
        text.contains("on client, /bin/false") && text.contains("ended at once"),
        "{text}"
    );
    options.tunnel = Some(Implementation::Program("/no/such/daemon".into()));
    let text = up(&road(""), &options).unwrap_err().to_string();
    assert!(
        text.contains("/no/such/daemon") && text.contains("can't be used"),
        "{text}"
    );
    assert_eq!(left_of(&id), Vec::<String>::new());
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
    let (namespace, to) = (client.namespace.clone(), server.road_address.unwrap());
    thread::spawn(move || {
        setns(
            fs::File::open(format!("/run/netns/{namespace}")).unwrap(),
            CloneFlags::CLONE_NEWNET,
        )
        .unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..20_000 {
            let _ = socket.send_to(b"packet", (to, 9));
        }
    })
    .join()
    .unwrap();
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
                [road.down]\nloss = \"50%\"\ndelay = \"3ms\"\n[tunnel]\nmtu = [1340, 1420]\n[hosts.server.sysctls]\n\"net.ipv4.tcp_mtu_probing\" = \"1\"\n";
    let lab = up(&road(text), &options(&id)).unwrap();
    let [client, server] = lab.ends();
    let way = lab.host("road").unwrap();
    let shaper = on(way, "tc qdisc show dev server");
    assert!(
        shaper.contains("rate 50Mbit") && shaper.contains("lat 99ms"),
        "{shaper}"
    );
    assert!(!on(way, "tc qdisc show dev client").contains("tbf"));
    assert!(on(way, "ip route get 198.51.100.2").contains("mtu 1400"));
    let rules = on(way, "nft list ruleset");
    assert!(
        rules.contains("oifname \"client\" numgen random mod 1000000 < 500000"),
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
