//! Snapshots and deltas of a real tunnel: two network namespaces, a veth pair, two wireguard-go daemons.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use wirespeed_facts::{Implementation, Known, Scope, counters, snapshot};

#[test]
fn a_tunnel_is_seen_from_its_own_namespace_and_its_traffic_counted() {
    const TEST: &str = "a_tunnel_is_seen_from_its_own_namespace_and_its_traffic_counted";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, far] = &lab.ends;
    lab.connect();
    // What a route's metrics, a packet filter and a queue look like is part of what a snapshot tells.
    near.run("ip route add 10.77.0.2/32 dev IFACE mtu 1280 congctl reno");
    near.run("nft add table inet t");
    near.run("nft 'add chain inet t out { type filter hook output priority 0; }'");
    near.run("nft add rule inet t out tcp flags syn tcp option maxseg size set rt mtu");
    near.run("tc qdisc add dev veth0 root tbf rate 100mbit burst 20kb limit 100kb");

    let before = near.inside(|| counters(&Scope::default()));
    near.run("ping -c 3 -i 0.2 -W 2 10.77.0.2");
    let facts = near.inside(|| snapshot(&Scope::default()));

    let [tunnel] = &facts.tunnels[..] else {
        panic!("one tunnel expected: {:?}", facts.tunnels);
    };
    assert_eq!(tunnel.name, near.interface);
    let Implementation::Userspace {
        pid,
        program,
        cpus_allowed,
    } = &tunnel.implementation
    else {
        panic!("{:?}", tunnel.implementation);
    };
    assert_eq!(*pid, Some(near.daemon.id()));
    assert_eq!(program.as_deref(), Some("wireguard-go"));
    assert!(cpus_allowed.is_some());
    assert_eq!(tunnel.listen_port, Some(51820));
    assert_eq!(tunnel.mtu, 1420);
    assert_eq!(tunnel.public_key.as_deref(), Some(&near.public_key[..]));

    let peers = tunnel.peers.value().expect("peers");
    assert_eq!(peers.len(), 1);
    assert_eq!(peers[0].public_key, far.public_key);
    assert_eq!(
        peers[0].endpoint,
        Some("192.168.77.2:51820".parse().unwrap())
    );
    assert_eq!(peers[0].allowed_ips, ["10.77.0.2/32"]);
    assert_eq!(peers[0].keepalive, 25);
    assert!(
        peers[0]
            .handshake_age
            .is_some_and(|age| (0.0..60.0).contains(&age))
    );

    let sockets = tunnel.sockets.value().expect("sockets");
    assert!(!sockets.is_empty());
    for socket in sockets {
        let holder = socket.holder.as_ref().expect("a holder");
        assert_eq!(
            (holder.pid, &holder.program[..]),
            (near.daemon.id(), "wireguard-go")
        );
        assert!(socket.receive_buffer > 0);
    }

    let outside = facts.routes.iter().find(|route| !route.inside).unwrap();
    assert_eq!(outside.interface, Known::Value("veth0".to_owned()));
    assert_eq!(
        (outside.mtu, &outside.congestion_control),
        (Some(1500), &None)
    );
    let inside = facts.routes.iter().find(|route| route.inside).unwrap();
    assert_eq!(inside.interface, Known::Value(near.interface.clone()));
    assert_eq!(inside.mtu, Some(1280));
    assert_eq!(inside.congestion_control.as_deref(), Some("reno"));

    let firewall = facts.firewall.value().expect("a packet filter");
    assert_eq!(firewall.rules_per_hook["output"], 1);
    assert!(firewall.clamps_mss && !firewall.translates);

    let veth = facts
        .links
        .iter()
        .find(|link| link.name == "veth0")
        .unwrap();
    assert_eq!(veth.kind.as_deref(), Some("veth"));
    assert_eq!(veth.qdisc, Known::Value("tbf".to_owned()));
    assert!(veth.addresses.contains(&"192.168.77.1/24".to_owned()));
    assert!(
        veth.offloads
            .value()
            .is_some_and(|features| features.contains_key("rx-gro"))
    );

    let delta = facts.counters.delta(&before);
    assert!(delta.unreliable.is_empty(), "{:?}", delta.unreliable);
    assert!(delta.peers[&far.public_key].rx_bytes > 0);
    assert!(delta.peers[&far.public_key].tx_bytes > 0);
    assert!(delta.links[&near.interface].tx_packets >= 3);
    assert!(delta.links["veth0"].rx_packets >= 3);
    assert!(delta.protocols["Icmp.InEchoReps"] >= 3);
    assert!(facts.counters.qdiscs.contains_key("veth0"));
}

#[test]
fn a_learnt_path_mtu_is_the_routes_mtu() {
    const TEST: &str = "a_learnt_path_mtu_is_the_routes_mtu";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, far] = &lab.ends;
    lab.connect();
    // Behind the far end lies a link with a smaller MTU; nobody answers there, but "fragmentation needed" comes back.
    far.run("ip link add narrow mtu 1300 type veth peer name behind");
    far.run("ip address add 203.0.113.2/24 dev narrow");
    far.run("ip link set narrow up");
    far.run("ip link set behind up");
    far.run("echo 1 > /proc/sys/net/ipv4/ip_forward");
    near.run("ip route add 203.0.113.0/24 via 192.168.77.2");
    near.run(&format!(
        "wg set IFACE peer {} endpoint 203.0.113.1:51820",
        far.public_key
    ));
    near.run("ping -M do -s 1400 -c 2 -i 0.2 -W 1 203.0.113.1 || true");
    let facts = near.inside(|| snapshot(&Scope::default()));
    let outside = facts.routes.iter().find(|route| !route.inside).unwrap();
    assert_eq!(outside.mtu, Some(1300));
    assert_eq!(outside.gateway, Some("192.168.77.2".parse().unwrap()));
    assert_eq!(outside.source, Some("192.168.77.1".parse().unwrap()));
}

#[test]
fn a_socket_of_another_namespace_is_not_a_tunnel_here() {
    const TEST: &str = "a_socket_of_another_namespace_is_not_a_tunnel_here";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, far] = &lab.ends;
    let scope = Scope {
        interface: Some(far.interface.clone()),
    };
    assert_eq!(near.inside(|| snapshot(&scope)).tunnels, []);
    let facts = far.inside(|| snapshot(&scope));
    assert_eq!(facts.tunnels.len(), 1);
    // Not configured yet: no key, no port, no peers, and no sockets to speak of.
    assert_eq!(facts.tunnels[0].public_key, None);
    assert_eq!(facts.tunnels[0].peers, Known::Value(Vec::new()));
    assert_eq!(facts.counters.peers.len(), 0);
}

#[test]
fn a_thousand_peers_are_read() {
    const TEST: &str = "a_thousand_peers_are_read";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, _] = &lab.ends;
    let mut config = "[Interface]\nListenPort = 51820\n".to_owned();
    for peer in 1..=1000_u32 {
        // Any 32 bytes are a public key; the last digits keep it canonical base64.
        let key = format!("{peer:042}E=");
        writeln!(
            config,
            "[Peer]\nPublicKey = {key}\nAllowedIPs = 10.78.{}.{}/32",
            peer / 250,
            peer % 250
        )
        .unwrap();
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(config.as_bytes()).unwrap();
    near.run(&format!("wg setconf IFACE {}", file.path().display()));
    let start = Instant::now();
    let counted = near.inside(|| counters(&Scope::default()));
    eprintln!("counters with 1,000 peers took {:?}", start.elapsed());
    assert_eq!(counted.peers.len(), 1000);
}

#[test]
fn a_stopped_daemon_is_an_unknown_within_its_time_limit() {
    const TEST: &str = "a_stopped_daemon_is_an_unknown_within_its_time_limit";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, _] = &lab.ends;
    near.stop_daemon();
    let start = Instant::now();
    let facts = near.inside(|| snapshot(&Scope::default()));
    let took = start.elapsed();
    near.signal_daemon(Signal::SIGCONT);
    let Known::Unknown(reason) = &facts.tunnels[0].peers else {
        panic!("{:?}", facts.tunnels);
    };
    assert!(reason.contains("within 1 s"), "{reason}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn drops_of_an_overrun_daemon_are_those_of_its_socket() {
    const TEST: &str = "drops_of_an_overrun_daemon_are_those_of_its_socket";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, far] = &lab.ends;
    lab.connect();
    let before = near.inside(|| counters(&Scope::default()));
    near.stop_daemon();
    far.inside(|| {
        let socket = UdpSocket::bind("192.168.77.2:0").unwrap();
        for _ in 0..2000 {
            // A full queue on the way is as good as a packet that arrives.
            let _ = socket.send_to(&[0; 1200], "192.168.77.1:51820");
        }
    });
    near.signal_daemon(Signal::SIGCONT);
    let facts = near.inside(|| snapshot(&Scope::default()));
    let delta = facts.counters.delta(&before);
    let sockets = facts.tunnels[0].sockets.value().expect("sockets");
    let dropped: Vec<(&String, &u64)> = delta.socket_drops.iter().collect();
    let [(inode, drops)] = dropped[..] else {
        panic!("{dropped:?}");
    };
    let socket = sockets
        .iter()
        .find(|socket| socket.inode.to_string() == *inode)
        .expect("the socket that dropped");
    assert_eq!(u64::from(socket.drops), *drops);
    assert!(*drops > 100, "{drops}");
    assert!(delta.protocols["Udp.RcvbufErrors"] >= *drops);
}

/// One end: a namespace with a veth and a daemon.
struct End {
    namespace: String,
    interface: String,
    daemon: Child,
    public_key: String,
}

struct Lab {
    ends: [End; 2],
}

static LABS: AtomicU32 = AtomicU32::new(0);

impl Lab {
    fn new() -> Self {
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:x}-{number}", std::process::id());
        let ends = ["a", "b"].map(|side| End::new(&id, side));
        let [near, far] = &ends;
        for (number, end) in (1..).zip([near, far]) {
            end.run("ip link set lo up");
            if number == 1 {
                end.run(&format!(
                    "ip link add veth0 type veth peer name veth0 netns {}",
                    far.namespace
                ));
            }
            end.run(&format!("ip address add 192.168.77.{number}/24 dev veth0"));
            end.run("ip link set veth0 up");
            end.run(&format!("ip address add 10.77.0.{number}/24 dev IFACE"));
        }
        Self { ends }
    }

    /// Keys, peers, addresses.
    fn connect(&self) {
        let [near, far] = &self.ends;
        for (end, other, number) in [(near, far, 2), (far, near, 1)] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(end.private_key().as_bytes()).unwrap();
            end.run(&format!(
                "wg set IFACE listen-port 51820 private-key {} peer {} endpoint 192.168.77.{number}:51820 \
                 allowed-ips 10.77.0.{number}/32 persistent-keepalive 25",
                file.path().display(),
                other.public_key,
            ));
            end.run("ip link set IFACE up mtu 1420");
        }
    }
}

impl End {
    fn new(id: &str, side: &str) -> Self {
        let namespace = format!("ws-facts-{id}-{side}");
        let interface = format!("wf{}{side}", id.replace('-', ""));
        sh(&format!("ip netns add {namespace}"));
        let daemon = Command::new("ip")
            .args([
                "netns",
                "exec",
                &namespace,
                "wireguard-go",
                "-f",
                &interface,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut end = Self {
            namespace,
            interface,
            daemon,
            public_key: String::new(),
        };
        end.public_key = sh(&format!("echo {} | wg pubkey", end.private_key()));
        let socket = format!("/var/run/wireguard/{}.sock", end.interface);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !std::path::Path::new(&socket).exists() {
            assert!(Instant::now() < deadline, "wireguard-go made no {socket}");
            thread::sleep(Duration::from_millis(10));
        }
        end
    }

    /// A key of this end alone; these keys guard nothing.
    fn private_key(&self) -> String {
        let middle = if self.interface.ends_with('a') {
            "Y"
        } else {
            "Z"
        };
        format!("{middle:A^43}=")
    }

    /// Runs a command in the namespace; `IFACE` stands for the tunnel's interface.
    fn run(&self, command: &str) -> String {
        let command = command.replace("IFACE", &self.interface);
        let quoted = command.replace('\'', "'\\''");
        sh(&format!(
            "ip netns exec {} sh -c '{quoted}'",
            self.namespace
        ))
    }

    fn signal_daemon(&self, signal: Signal) {
        nix::sys::signal::kill(Pid::from_raw(self.daemon.id().cast_signed()), signal).unwrap();
    }

    /// Returns when every thread of the daemon stands still.
    fn stop_daemon(&self) {
        self.signal_daemon(Signal::SIGSTOP);
        let stopped = || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.daemon.id())).unwrap();
            tasks.flatten().all(|task| {
                std::fs::read_to_string(task.path().join("stat"))
                    .is_ok_and(|stat| stat.contains(") T "))
            })
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while !stopped() {
            assert!(Instant::now() < deadline, "the daemon does not stop");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a function in a thread inside the namespace.
    fn inside<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        thread::scope(|threads| {
            let thread = threads.spawn(|| {
                let namespace = File::open(format!("/run/netns/{}", self.namespace)).unwrap();
                nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                run()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Cleaning up goes on whatever fails.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = Command::new("ip")
            .args(["netns", "del", &self.namespace])
            .status();
        let _ = std::fs::remove_file(format!("/var/run/wireguard/{}.sock", self.interface));
    }
}

fn sh(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What this machine lacks for these tests.
fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    for program in ["ip", "wg", "wireguard-go", "nft", "tc", "ping"] {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .stdout(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            return Some(format!("needs the program {program}"));
        }
    }
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("needs /dev/net/tun".to_owned());
    }
    None
}

fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
