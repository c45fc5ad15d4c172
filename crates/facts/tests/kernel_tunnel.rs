//! Snapshots of the kernel's own WireGuard, beside what `wg` reads of the same devices.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, setns};
use wirespeed_facts::{Facts, Implementation, Peer, Scope, Tunnel, counters, snapshot};

#[test]
fn a_kernel_tunnel_is_read_as_wg_reads_it() {
    const TEST: &str = "a_kernel_tunnel_is_read_as_wg_reads_it";
    let Some(lab) = Lab::up(TEST) else { return };
    let before = inside(&lab.near, || counters(&Scope::default()));
    // The end that is up first begins its handshake before the other is there, and only tries again after five seconds.
    lab.near("ping -c 1 -w 20 10.77.0.2");
    lab.near("ping -c 5 -i 0.1 -W 2 10.77.0.2");
    let facts = inside(&lab.near, || snapshot(&Scope::default()));
    let dump = lab.near("wg show wg0 dump");

    let tunnel = only_tunnel(&facts);
    assert_eq!(tunnel.name, "wg0");
    assert_eq!(tunnel.implementation, Implementation::Kernel);
    assert_eq!(tunnel.mtu, 1420);
    same(tunnel, &dump);
    let peer = &tunnel.peers.value().expect("peers")[0];
    assert!(peer.handshake_age.is_some_and(|age| age < 60.0));
    assert!(peer.rx_bytes > 5 * 128 && peer.tx_bytes > 5 * 128);

    let delta = facts.counters.delta(&before);
    assert!(delta.unreliable.is_empty(), "{:?}", delta.unreliable);
    assert!(delta.peers[&peer.public_key].rx_bytes >= 5 * 128);
    assert!(delta.links["wg0"].tx_packets >= 5);
}

#[test]
fn many_peers_and_many_allowed_ips_take_several_messages() {
    const TEST: &str = "many_peers_and_many_allowed_ips_take_several_messages";
    let Some(lab) = Lab::up(TEST) else { return };
    let mut config = format!(
        "[Interface]\nListenPort = 51821\nFwMark = 0x1234\nPrivateKey = {}\n",
        lab.near("wg genkey").trim()
    );
    for peer in 0..300_u32 {
        // Any 32 bytes are a public key; the last digits keep it canonical base64.
        writeln!(config, "[Peer]\nPublicKey = {peer:042}E=").unwrap();
        let allowed = if peer == 7 { 2_000 } else { peer % 4 };
        for number in 0..allowed {
            writeln!(config, "AllowedIPs = fd00:{peer:x}::{number:x}/128").unwrap();
        }
        match peer % 3 {
            0 => writeln!(config, "Endpoint = 192.0.2.{}:{}", peer % 256, 1_000 + peer).unwrap(),
            1 => writeln!(config, "Endpoint = [2001:db8::{peer:x}]:51820").unwrap(),
            _ => writeln!(config, "PersistentKeepalive = {}", peer + 1).unwrap(),
        }
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(config.as_bytes()).unwrap();
    lab.near(&format!("wg setconf wg0 {}", file.path().display()));
    // An emulated machine may need more than the second an answer may take.
    let mut facts = inside(&lab.near, || snapshot(&Scope::default()));
    for _ in 0..5 {
        if only_tunnel(&facts).peers.value().is_none() {
            facts = inside(&lab.near, || snapshot(&Scope::default()));
        }
    }
    let tunnel = only_tunnel(&facts);
    assert_eq!(
        tunnel.peers.value().map(Vec::len),
        Some(300),
        "{:?}",
        tunnel.peers
    );
    same(tunnel, &lab.near("wg show wg0 dump"));
}

#[test]
fn an_unconfigured_kernel_tunnel_has_no_key_and_no_peers() {
    const TEST: &str = "an_unconfigured_kernel_tunnel_has_no_key_and_no_peers";
    let Some(lab) = Lab::up(TEST) else { return };
    lab.near("ip link del wg0");
    lab.near("ip link add wg0 type wireguard");
    let facts = inside(&lab.near, || snapshot(&Scope::default()));
    let tunnel = only_tunnel(&facts);
    assert_eq!(tunnel.public_key, None);
    assert_eq!(tunnel.peers.value(), Some(&Vec::new()));
}

/// One line of `wg show INTERFACE dump` for the device and one for each peer.
fn same(tunnel: &Tunnel, dump: &str) {
    let mut lines = dump
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let device = lines.next().expect("a line of the device");
    assert_eq!(tunnel.public_key.as_deref(), Some(device[1]));
    assert_eq!(tunnel.listen_port, Some(device[2].parse().unwrap()));
    let mark = device[3].strip_prefix("0x").unwrap_or("0");
    assert_eq!(tunnel.fwmark, u32::from_str_radix(mark, 16).unwrap());
    let peers: BTreeMap<&str, &Peer> = tunnel
        .peers
        .value()
        .expect("peers")
        .iter()
        .map(|peer| (&peer.public_key[..], peer))
        .collect();
    let mut count = 0;
    for line in lines {
        let [key, _psk, endpoint, allowed, handshake, rx, tx, keepalive] = line[..] else {
            panic!("{line:?}");
        };
        let peer = peers[key];
        count += 1;
        assert_eq!(
            peer.endpoint
                .map_or("(none)".to_owned(), |endpoint| endpoint.to_string()),
            endpoint
        );
        let mut ours = peer.allowed_ips.clone();
        let mut theirs: Vec<_> = allowed
            .split(',')
            .filter(|prefix| *prefix != "(none)")
            .map(str::to_owned)
            .collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{key}");
        assert_eq!(peer.handshake_age.is_some(), handshake != "0", "{key}");
        assert_eq!(peer.rx_bytes.to_string(), rx);
        assert_eq!(peer.tx_bytes.to_string(), tx);
        let keepalive = keepalive.parse().unwrap_or(0);
        assert_eq!(peer.keepalive, keepalive, "{key}");
    }
    assert_eq!(count, peers.len());
}

fn only_tunnel(facts: &Facts) -> &Tunnel {
    let [tunnel] = &facts.tunnels[..] else {
        panic!("one tunnel expected: {:?}", facts.tunnels);
    };
    tunnel
}

/// Two namespaces, a veth pair, and the kernel's WireGuard at both ends; goes with the test.
struct Lab {
    near: String,
    far: String,
}

impl Lab {
    /// `None`, having said why, where it can't be.
    fn up(test: &str) -> Option<Self> {
        if let Some(reason) = missing() {
            skipped(test, &reason);
            return None;
        }
        let id = format!("{:x}{}", std::process::id(), test.len());
        let lab = Self {
            near: format!("ws-kernel-{id}-a"),
            far: format!("ws-kernel-{id}-b"),
        };
        sh(&format!("ip netns add {}", lab.near));
        sh(&format!("ip netns add {}", lab.far));
        lab.near(&format!(
            "ip link add veth0 type veth peer name veth0 netns {}",
            lab.far
        ));
        let keys = [sh("wg genkey"), sh("wg genkey")];
        let psk = sh("wg genpsk");
        for (own, other) in [(0, 1), (1, 0)] {
            let namespace = [&lab.near, &lab.far][own];
            let public = sh(&format!("echo {} | wg pubkey", keys[other].trim()));
            let mut config = tempfile::NamedTempFile::new().unwrap();
            write!(
                config,
                "[Interface]\nListenPort = 51820\nPrivateKey = {}\n[Peer]\nPublicKey = {}\nPresharedKey = {}\n\
                 Endpoint = 192.168.77.{3}:51820\nAllowedIPs = 10.77.0.{3}/32, fd77::{3}/128\nPersistentKeepalive = 25\n",
                keys[own].trim(),
                public.trim(),
                psk.trim(),
                other + 1,
            )
            .unwrap();
            for line in [
                "ip link set lo up",
                &format!("ip addr add 192.168.77.{}/24 dev veth0", own + 1),
                "ip link set veth0 up",
                "ip link add wg0 type wireguard",
                &format!("ip addr add 10.77.0.{}/24 dev wg0", own + 1),
                &format!("wg setconf wg0 {}", config.path().display()),
                "ip link set wg0 up",
            ] {
                run_in(namespace, line);
            }
        }
        Some(lab)
    }

    fn near(&self, line: &str) -> String {
        run_in(&self.near, line)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .status();
        }
    }
}

/// Does something in a network namespace, in a thread of its own.
fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    std::thread::scope(|scope| {
        scope
            .spawn(move || {
                setns(file, CloneFlags::CLONE_NEWNET).unwrap();
                work()
            })
            .join()
            .unwrap()
    })
}

fn missing() -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("needs root (network namespaces)".to_owned());
    }
    let name = format!("wsf{:05x}", std::process::id() & 0xf_ffff);
    let made = Command::new("ip")
        .args(["link", "add", &name, "type", "wireguard"])
        .stderr(Stdio::null())
        .status();
    if made.is_ok_and(|status| status.success()) {
        sh(&format!("ip link del {name}"));
        return None;
    }
    Some("this kernel has no WireGuard (make test-kernel)".to_owned())
}

fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path)
    {
        // At once, so that lines of tests that run at the same time don't mix.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

fn run_in(namespace: &str, line: &str) -> String {
    sh(&format!("ip netns exec {namespace} {line}"))
}

fn sh(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
