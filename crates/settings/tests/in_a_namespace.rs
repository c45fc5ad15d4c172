//! Every knob for real, each test in a network namespace of its own thread, which ends with the thread.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use serde_json::json;
use wirespeed_settings::{Restored, Setting, SettingError};

#[test]
fn link_mtu_is_written_and_put_back() {
    in_namespace("link_mtu_is_written_and_put_back", |_| {
        let mtu = Setting::LinkMtu {
            interface: "ws0".into(),
        };
        let before = mtu.read().unwrap();
        assert_eq!(before, json!(1500));
        mtu.write(&json!(1340)).unwrap();
        assert_eq!(mtu.read().unwrap(), json!(1340));
        assert_eq!(
            mtu.restore(&before, &[json!(1340)]).unwrap(),
            Restored::PutBack
        );
        assert_eq!(mtu.read().unwrap(), before);
        mtu.write(&json!(1200)).unwrap();
        let kept = mtu.restore(&before, &[json!(1340)]).unwrap();
        assert_eq!(kept, Restored::ChangedByOthers { now: "1200".into() });
        assert_eq!(
            mtu.read().unwrap(),
            json!(1200),
            "someone else's later change wins"
        );
        let missing = Setting::LinkMtu {
            interface: "none0".into(),
        };
        assert!(matches!(missing.read(), Err(SettingError::NotFound { .. })));
    });
}

#[test]
fn every_route_of_the_interface_gets_the_congestion_control_and_gives_it_back() {
    in_namespace("route_congestion", |_| {
        run("ip route add 10.2.0.0/16 via 10.1.1.2 dev ws0 mtu 1300 congctl reno");
        run(
            "ip route add 10.3.0.0/16 via 10.1.1.2 dev ws0 table 77 metric 5 src 10.1.1.1 advmss 1200",
        );
        run("ip route add 10.4.0.0/16 via 10.1.1.2 dev ws0 metric 9 initcwnd 20");
        run("ip route add 10.4.0.0/16 via 10.1.1.2 dev ws0 metric 10");
        run("ip -6 route add fd01::/64 via fd00::2 dev ws0 metric 30 mtu 1290");
        let listing = || {
            ["-4", "-6"]
                .map(|family| output(&format!("ip {family} -d route show table all dev ws0")))
        };
        let listing_before = listing();
        let routes = Setting::RouteCongestion {
            interface: "ws0".into(),
        };
        let before = routes.read().unwrap();
        assert_eq!(before["routes"].as_object().unwrap().len(), 7, "{before}");
        routes.write(&json!("bbr")).unwrap();
        let after = routes.read().unwrap();
        assert!(
            after["routes"]
                .as_object()
                .unwrap()
                .values()
                .all(|name| name == "bbr"),
            "{after}"
        );
        run("ip route change 10.4.0.0/16 via 10.1.1.2 dev ws0 metric 10 congctl reno");
        let restored = routes.restore(&before, &[json!("bbr")]).unwrap();
        assert!(
            matches!(&restored, Restored::ChangedByOthers { now } if now.contains("metric 10")),
            "{restored:?}"
        );
        run("ip route change 10.4.0.0/16 via 10.1.1.2 dev ws0 metric 10");
        assert_eq!(routes.read().unwrap(), before);
        assert_eq!(listing(), listing_before, "every attribute is as it was");
        routes.write(&json!(null)).unwrap();
        routes.write(&before).unwrap();
        assert_eq!(listing(), listing_before);
        assert!(routes.write(&json!("nosuch")).is_err());
        for command in routes.shell(&json!("bbr")) {
            run(&command);
        }
        let by_hand = routes.read().unwrap();
        assert!(
            by_hand["routes"]
                .as_object()
                .unwrap()
                .values()
                .all(|name| name == "bbr"),
            "{by_hand}"
        );
    });
}

#[test]
fn an_egress_shaper_comes_and_goes_and_an_administrators_is_not_touched() {
    in_namespace("egress_shaper", |test| {
        let shaper = Setting::EgressShaper {
            interface: "ws0".into(),
        };
        let untouched = output("tc qdisc show dev ws0");
        assert_eq!(shaper.read().unwrap(), json!(null));
        if let Err(error) = shaper.write(&json!(100_000_000)) {
            skip(test, &format!("this kernel has no tbf: {error}"));
            return;
        }
        assert_eq!(shaper.read().unwrap(), json!(100_000_000));
        shaper.write(&json!(50_000_000.0)).unwrap();
        assert_eq!(shaper.read().unwrap(), json!(50_000_000));
        assert_eq!(
            shaper
                .restore(&json!(null), &[json!(50_000_000.0)])
                .unwrap(),
            Restored::PutBack
        );
        assert_eq!(output("tc qdisc show dev ws0"), untouched);
        for command in shaper.shell(&json!(20_000_000)) {
            run(&command);
        }
        assert_eq!(
            shaper.read().unwrap(),
            json!(20_000_000),
            "the shell form does the same"
        );
        for command in shaper.shell(&json!(null)) {
            run(&command);
        }
        assert_eq!(shaper.read().unwrap(), json!(null));
        shaper.write(&json!(20_000_000_000_u64)).unwrap();
        assert_eq!(shaper.read().unwrap(), json!(20_000_000_000_u64));
        shaper.write(&json!(null)).unwrap();

        run("tc qdisc add dev ws0 root tbf rate 5mbit burst 32k latency 50ms");
        let administrators = output("tc qdisc show dev ws0");
        assert!(matches!(
            shaper.write(&json!(1_000_000)),
            Err(SettingError::Refused { .. })
        ));
        let restored = shaper.restore(&json!(null), &[json!(1_000_000)]).unwrap();
        assert!(matches!(restored, Restored::ChangedByOthers { .. }));
        assert_eq!(output("tc qdisc show dev ws0"), administrators);
    });
}

#[test]
fn a_sysctl_is_written_and_put_back_and_a_host_wide_one_says_so() {
    in_namespace("sysctl", |_| {
        let probing = Setting::Sysctl {
            name: "net.ipv4.tcp_mtu_probing".into(),
        };
        let before = probing.read().unwrap();
        probing.write(&json!(1)).unwrap();
        assert_eq!(probing.read().unwrap(), json!("1"));
        assert_eq!(
            probing.restore(&before, &[json!(1)]).unwrap(),
            Restored::PutBack
        );
        assert_eq!(probing.read().unwrap(), before);
        let ports = Setting::Sysctl {
            name: "net.ipv4.ip_local_port_range".into(),
        };
        ports.write(&json!("20000 30000")).unwrap();
        assert_eq!(ports.read().unwrap(), json!("20000 30000"));
        let host_wide = Setting::Sysctl {
            name: "net.core.rmem_default".into(),
        };
        let error = host_wide.write(&json!("1000000")).unwrap_err();
        assert!(error.to_string().contains("host-wide"), "{error}");
    });
}

#[test]
fn the_receive_buffer_of_a_running_daemon_is_changed_and_put_back() {
    in_namespace("socket_receive_buffer", |test| {
        let interface = format!("wsb{}", std::process::id() % 1_000_000);
        let Some(_daemon) = WireguardGo::start(&interface) else {
            skip(test, "wireguard-go could not be started");
            return;
        };
        let buffer = Setting::SocketReceiveBuffer {
            interface: interface.clone(),
        };
        let before = buffer.read().unwrap();
        assert!(
            before.is_u64(),
            "both address families have the kernel's default: {before}"
        );
        buffer.write(&json!(8_388_608)).unwrap();
        assert_eq!(buffer.read().unwrap(), json!(8_388_608));
        let sockets = output("ss -H -u -a -n -m");
        assert_eq!(
            sockets.matches("rb8388608").count(),
            2,
            "both sockets have it: {sockets}"
        );
        assert_eq!(
            buffer.restore(&before, &[json!(8_388_608)]).unwrap(),
            Restored::PutBack
        );
        assert_eq!(buffer.read().unwrap(), before);
        let wrong = Setting::SocketReceiveBuffer {
            interface: "ws0".into(),
        };
        assert!(matches!(wrong.read(), Err(SettingError::NotFound { .. })));
    });
}

#[test]
fn an_offload_is_turned_and_put_back() {
    in_namespace("an_offload_is_turned_and_put_back", |_| {
        let forwarding = Setting::LinkOffload {
            interface: "ws0".into(),
            feature: "rx-udp-gro-forwarding".into(),
        };
        let listed = |word: &str| {
            output("ethtool -k ws0").contains(&format!("rx-udp-gro-forwarding: {word}"))
        };
        let before = forwarding.read().unwrap();
        assert_eq!(before, json!(false));
        forwarding.write(&json!(true)).unwrap();
        assert!(listed("on"));
        assert_eq!(forwarding.read().unwrap(), json!(true));
        assert_eq!(
            forwarding.restore(&before, &[json!(true)]).unwrap(),
            Restored::PutBack
        );
        assert!(listed("off"));
        let fixed = Setting::LinkOffload {
            interface: "lo".into(),
            feature: "loopback".into(),
        };
        assert_eq!(fixed.read().unwrap(), json!(true));
        assert!(matches!(
            fixed.write(&json!(false)),
            Err(SettingError::NotTaken { .. } | SettingError::System { .. })
        ));
        let missing = Setting::LinkOffload {
            interface: "ws0".into(),
            feature: "no-such-feature".into(),
        };
        assert!(matches!(missing.read(), Err(SettingError::NotFound { .. })));
    });
}

#[test]
fn threaded_napi_is_turned_and_put_back() {
    in_namespace("threaded_napi_is_turned_and_put_back", |test| {
        let threaded = Setting::ThreadedNapi {
            interface: "ws0".into(),
        };
        // `/sys` still shows the namespace it was mounted in.
        assert!(matches!(
            threaded.read(),
            Err(SettingError::Refused { why, .. }) if why.contains("ip netns exec")
        ));
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
            skip(test, &format!("no mount namespace: {error}"));
            return;
        }
        run("mount --make-rprivate / && mount -t sysfs sysfs /sys");
        // A veth has NAPI once GRO is on.
        run("ethtool -K ws0 gro on");
        let before = threaded.read().unwrap();
        assert_eq!(before, json!(false));
        threaded.write(&json!(true)).unwrap();
        assert_eq!(output("cat /sys/class/net/ws0/threaded").trim(), "1");
        assert_eq!(
            threaded.restore(&before, &[json!(true)]).unwrap(),
            Restored::PutBack
        );
        assert_eq!(threaded.read().unwrap(), before);
        let without = Setting::ThreadedNapi {
            interface: "lo".into(),
        };
        assert!(without.write(&json!(true)).is_err());
    });
}

/// A userspace WireGuard that is up and listens; killed when dropped.
struct WireguardGo {
    child: Child,
    socket: PathBuf,
}

impl WireguardGo {
    fn start(interface: &str) -> Option<Self> {
        let socket = Path::new("/var/run/wireguard").join(format!("{interface}.sock"));
        let child = Command::new("wireguard-go")
            .args(["--foreground", interface])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let daemon = Self { child, socket };
        let deadline = Instant::now() + Duration::from_secs(5);
        while !daemon.socket.exists() {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        run(&format!(
            "wg genkey | wg set {interface} private-key /dev/stdin listen-port 51899"
        ));
        run(&format!("ip link set {interface} up"));
        while !output("ss -H -u -a -n").contains(":51899") {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(daemon)
    }
}

impl Drop for WireguardGo {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = std::fs::remove_file(&self.socket);
    }
}

/// Runs a test in a thread that has a network namespace of its own, with a veth pair ws0–ws1.
fn in_namespace(test: &'static str, body: impl FnOnce(&str) + Send + 'static) {
    let thread = std::thread::Builder::new()
        .name(test.to_owned())
        .spawn(move || {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                skip(test, &format!("no network namespace: {error}"));
                return;
            }
            run("ip link add ws0 type veth peer name ws1");
            run("ip addr add 10.1.1.1/24 dev ws0 && ip addr add fd00::1/64 dev ws0 nodad");
            run("ip link set ws0 up && ip link set ws1 up && ip link set lo up");
            body(test);
        });
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn run(command: &str) {
    let status = Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

fn output(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
