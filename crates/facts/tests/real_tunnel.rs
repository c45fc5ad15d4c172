//! Snapshots and deltas of a real tunnel: two network namespaces, a veth pair, two wireguard-go daemons.

#[path = "support/lab.rs"]
mod lab;

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use wirespeed_facts::{
    ConnectionsWanted, Implementation, Known, Scope, connections, counters, snapshot,
};

use lab::{End, Lab, missing};

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
    // A handshake that was begun before the other end was there is only tried again after five seconds.
    near.run("ping -c 1 -w 20 10.77.0.2");
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
fn tables_of_iptables_legacy_are_told_of() {
    const TEST: &str = "tables_of_iptables_legacy_are_told_of";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, far] = &lab.ends;
    near.run("nft add table ip t");
    let legacy = |end: &End| {
        let facts = end.inside(|| snapshot(&Scope::default()));
        facts.firewall.value().expect("a packet filter").legacy
    };
    assert!(!legacy(near));
    let made = near.run("iptables-legacy -A INPUT -j ACCEPT > /dev/null 2>&1 && echo made || true");
    if made.is_empty() {
        return skipped(TEST, "needs iptables-legacy and its tables in the kernel");
    }
    assert!(legacy(near) && !legacy(far));
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
        ..Scope::default()
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
    near.take_peers(1000);
    let counted = near.inside(|| counters(&Scope::default()));
    assert_eq!(counted.peers.len(), 1000);

    // The benchmark has the true figure: 200 ms is its limit. Here, unoptimized and with other tests beside, the best
    // of five is given twice that.
    let took = |number: u32| {
        let start = Instant::now();
        let facts = near.inside(|| snapshot(&Scope::default()));
        let took = start.elapsed();
        let peers = facts.tunnels[0].peers.value().map(Vec::len);
        assert_eq!(peers, Some(1000));
        eprintln!("snapshot {number} with 1,000 peers took {took:?}");
        took
    };
    let best = (1..=5).map(took).min().unwrap();
    assert!(best < Duration::from_millis(400), "{best:?}");
}

#[test]
fn what_is_behind_a_tunnel_and_its_way_is_told() {
    const TEST: &str = "what_is_behind_a_tunnel_and_its_way_is_told";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, far] = &lab.ends;
    lab.connect();
    near.run("echo 1 > /proc/sys/net/ipv4/conf/veth0/forwarding");
    near.run("nft add table inet t");
    near.run("nft 'add chain inet t in { type filter hook input priority 0; }'");
    near.run("nft 'add rule inet t in iifname veth0 udp dport 51820 accept'");
    near.run("nft 'add rule inet t in tcp dport 22 accept'");
    near.run("nft 'add chain inet t raw { type filter hook prerouting priority raw; }'");
    near.run("nft 'add rule inet t raw udp dport 51820 notrack'");
    near.run("echo 2 > /sys/class/net/IFACE/queues/rx-0/rps_cpus");

    // A connection through the tunnel and one beside it.
    let (inside, outside) = near.inside(|| {
        let listen = |address: &str| TcpListener::bind((address, 0)).unwrap();
        (listen("10.77.0.1"), listen("192.168.77.1"))
    });
    let port = inside.local_addr().unwrap().port();
    let streams = far.inside(|| {
        let connect = |listener: &TcpListener| {
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(&[7; 3000]).unwrap();
            stream
        };
        [connect(&inside), connect(&outside)]
    });
    let (mut accepted, _) = inside.accept().unwrap();
    accepted.read_exact(&mut [0; 3000]).unwrap();

    let facts = near.inside(|| snapshot(&Scope::default()));
    assert_eq!(facts.outer_links, ["veth0"]);
    let veth = facts.link("veth0").unwrap();
    assert_eq!((veth.parent.as_deref(), veth.is_tunnel()), (None, false));
    assert_eq!(veth.forwards_ipv4, Some(true));
    let detail = veth.detail.value().expect("the outer link's detail");
    assert_eq!(detail.numa_node, Known::Value(None));
    assert_eq!(detail.interrupts, Known::Value(Vec::new()));
    assert_eq!(detail.threaded, Known::Value(false));
    let tunnel = facts.link(&near.interface).unwrap();
    assert!(tunnel.is_tunnel());
    let detail = tunnel.detail.value().expect("the tunnel's detail");
    let queues = detail.receive_queues.value().expect("queues");
    if facts.cpu.online > 1 {
        assert_eq!(queues[0].rps_cores, [1]);
    }
    assert_eq!(facts.link("lo").unwrap().detail.value(), None);

    let filter = &facts.firewall.value().expect("a packet filter").tunnels[&near.interface];
    assert_eq!(
        (filter.outer_in["prerouting"], filter.outer_in["input"]),
        (1, 1)
    );
    assert_eq!(filter.inner_in["input"], 2);
    assert_eq!(
        filter.outer_untracked,
        Known::Value(false),
        "outwards they are tracked"
    );

    let found = facts.connections.value().expect("connections");
    assert!(found.established >= 2);
    let [through] = &found.wanted[..] else {
        panic!("one connection through the tunnel: {found:?}");
    };
    assert_eq!(through.local, accepted.local_addr().unwrap());
    assert_eq!(through.info.pmtu, 1420);
    let listener = |address: &str| {
        let found = found.listeners.iter();
        let mut ours = found.filter(|listener| listener.local.ip().to_string() == address);
        ours.next().unwrap()
    };
    assert_eq!(listener("10.77.0.1").queue, 0);
    assert_eq!(listener("192.168.77.1").queue, 1);
    let holder = listener("192.168.77.1").holder.as_ref().unwrap();
    assert_eq!(holder.pid, std::process::id());

    // The same connection again, by its port.
    let wanted = ConnectionsWanted {
        ports: vec![port],
        ..ConnectionsWanted::default()
    };
    let [mut client, _] = streams;
    client.write_all(&[7; 2000]).unwrap();
    accepted.read_exact(&mut [0; 2000]).unwrap();
    let later = near
        .inside(|| connections(&wanted))
        .value()
        .cloned()
        .unwrap();
    let progress = later.since(found);
    assert_eq!(progress.len(), 1, "{progress:?}");
    assert!(progress[0].bytes_received.is_none_or(|bytes| bytes == 2000));
}

#[test]
fn a_stopped_daemon_is_an_unknown_within_its_time_limit() {
    const TEST: &str = "a_stopped_daemon_is_an_unknown_within_its_time_limit";
    if let Some(reason) = missing() {
        return skipped(TEST, &reason);
    }
    let lab = Lab::new();
    let [near, _] = &lab.ends;
    stop_daemon(near);
    let start = Instant::now();
    let facts = near.inside(|| snapshot(&Scope::default()));
    let took = start.elapsed();
    signal_daemon(near, Signal::SIGCONT);
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
    stop_daemon(near);
    far.inside(|| {
        let socket = UdpSocket::bind("192.168.77.2:0").unwrap();
        for _ in 0..2000 {
            // A full queue on the way is as good as a packet that arrives.
            let _ = socket.send_to(&[0; 1200], "192.168.77.1:51820");
        }
    });
    signal_daemon(near, Signal::SIGCONT);
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

fn signal_daemon(end: &End, signal: Signal) {
    nix::sys::signal::kill(Pid::from_raw(end.daemon.id().cast_signed()), signal).unwrap();
}

/// Returns when every thread of the daemon stands still.
fn stop_daemon(end: &End) {
    signal_daemon(end, Signal::SIGSTOP);
    let stopped = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", end.daemon.id())).unwrap();
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
