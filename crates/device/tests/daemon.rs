//! The program's life: background, signals, sockets, and wg-quick on top; what it gives up, logs and tells systemd.
//!
//! A debug build stops at a system call that isn't allowed, so each of these also tests the sandbox.

mod daemon {
    mod logs;
    mod privileges;
    pub(crate) mod support;
    mod systemd;
}

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use daemon::support::{
    Namespace, PROGRAM, Running, base64, content, eventually, private_key, run, skip, statistics,
    unique, wg,
};

#[test]
fn the_background_is_entered_when_all_is_there_and_left_with_the_interface() {
    let Some(namespace) = Namespace::new("the_background_is_entered") else {
        return;
    };
    let name = unique();
    let begun = Instant::now();
    let output = run(namespace.command(PROGRAM).arg(&name));
    assert!(output.success, "{}", output.errors);
    assert_eq!(output.text, "");
    assert!(begun.elapsed() < Duration::from_secs(10));
    // Nothing to wait for: both are there.
    content(namespace.command("ip").args(["link", "show", &name]));
    assert!(wg(&["show", &name, "listen-port"]).success);
    let running = Running::find(&name);
    let process = format!("/proc/{}", running.pid);
    let folder = fs::read_link(format!("{process}/cwd")).unwrap();
    assert_eq!(folder, std::path::Path::new("/"));
    let stat = fs::read_to_string(format!("{process}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[3], running.pid.to_string(), "leader of a session");
    for descriptor in 0..2 {
        let open = fs::read_link(format!("{process}/fd/{descriptor}")).unwrap();
        assert_eq!(open, std::path::Path::new("/dev/null"));
    }
    content(namespace.command("ip").args(["link", "del", &name]));
    assert!(eventually(|| running.gone() && !running.has_files()));
}

#[test]
fn signals_end_it_cleanly() {
    let Some(namespace) = Namespace::new("signals_end_it_cleanly") else {
        return;
    };
    for signal in ["TERM", "INT", "HUP"] {
        let mut foreground = namespace.foreground(&unique(), &[]);
        let name = foreground.name.clone();
        content(Command::new("kill").args(["-s", signal, &foreground.running().pid.to_string()]));
        assert_eq!(foreground.wait(), Some(0), "{signal}");
        assert!(!foreground.running().has_files());
        assert!(!run(namespace.command("ip").args(["link", "show", &name])).success);
    }
}

#[test]
fn removing_the_socket_ends_it() {
    let Some(namespace) = Namespace::new("removing_the_socket_ends_it") else {
        return;
    };
    let mut foreground = namespace.foreground(&unique(), &[]);
    fs::remove_file(foreground.running().uapi()).unwrap();
    assert_eq!(foreground.wait(), Some(0));
    assert!(!foreground.running().has_files());
}

#[test]
fn a_name_is_served_once() {
    let Some(namespace) = Namespace::new("a_name_is_served_once") else {
        return;
    };
    let Some(elsewhere) = Namespace::new("a_name_is_served_once") else {
        return;
    };
    let foreground = namespace.foreground(&unique(), &[]);
    // The folder of sockets belongs to all network namespaces.
    for place in [&namespace, &elsewhere] {
        let output = run(place.command(PROGRAM).arg(&foreground.name));
        assert!(!output.success);
        assert!(output.errors.contains("is in use"), "{}", output.errors);
    }
    assert!(wg(&["show", &foreground.name, "listen-port"]).success);
    content(
        namespace
            .command("ip")
            .args(["link", "show", &foreground.name]),
    );
}

#[test]
fn a_killed_one_is_replaced() {
    let Some(namespace) = Namespace::new("a_killed_one_is_replaced") else {
        return;
    };
    let mut foreground = namespace.foreground(&unique(), &[]);
    let name = foreground.name.clone();
    content(Command::new("kill").args(["-KILL", &foreground.running().pid.to_string()]));
    assert_eq!(foreground.wait(), None);
    assert!(foreground.running().has_files(), "nobody removed them");
    let again = namespace.foreground(&name, &[]);
    assert!(wg(&["show", &again.name, "listen-port"]).success);
}

#[test]
fn wg_quick_brings_it_up_and_down() {
    let test = "wg_quick_brings_it_up_and_down";
    let Some(namespace) = Namespace::new(test) else {
        return;
    };
    if Command::new("wg-quick").arg("--help").output().is_err() {
        return skip(test, "wg-quick isn't installed");
    }
    let name = unique();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{name}.conf"));
    let own = fs::read_to_string(private_key(3).path()).unwrap();
    let config = |port: u16| {
        let peer = base64(&[7; 32]);
        format!(
            "[Interface]\nAddress = 10.77.0.1/24, fd77::1/64\nListenPort = {port}\nPrivateKey = {own}\n\n\
             [Peer]\nPublicKey = {peer}\nAllowedIPs = 10.78.0.0/16, fd78::/64\nEndpoint = 192.0.2.1:51820\n"
        )
    };
    let quick = |arguments: &[&str]| {
        let folder = std::path::Path::new(PROGRAM).parent().unwrap();
        let search = std::env::var("PATH").unwrap_or_default();
        let output = run(namespace
            .command("wg-quick")
            .args(arguments)
            .arg(&path)
            .env("PATH", format!("{}:{search}", folder.display()))
            .env("WG_QUICK_USERSPACE_IMPLEMENTATION", "wirespeed-device"));
        assert!(output.success, "wg-quick {arguments:?}: {}", output.errors);
        output.text
    };
    fs::write(&path, config(40_100)).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    quick(&["up"]);
    let routes = content(
        namespace
            .command("ip")
            .args(["route", "show", "dev", &name]),
    );
    assert!(routes.contains("10.78.0.0/16"), "{routes}");
    assert_eq!(wg(&["show", &name, "listen-port"]).text.trim(), "40100");
    let running = Running::find(&name);

    fs::write(&path, config(40_101)).unwrap();
    let stripped = quick(&["strip"]);
    let mut sync = Command::new("wg")
        .args(["syncconf", &name, "/dev/stdin"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    sync.stdin
        .take()
        .unwrap()
        .write_all(stripped.as_bytes())
        .unwrap();
    assert!(sync.wait().unwrap().success());
    assert_eq!(wg(&["show", &name, "listen-port"]).text.trim(), "40101");
    quick(&["save"]);
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .contains("ListenPort = 40101")
    );

    quick(&["down"]);
    assert!(eventually(|| running.gone() && !running.has_files()));
}

#[test]
fn what_is_missing_is_said_in_a_sentence() {
    let test = "what_is_missing_is_said_in_a_sentence";
    let Some(namespace) = Namespace::new(test) else {
        return;
    };
    let name = unique();
    let unprivileged = run(namespace.command("setpriv").args([
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        PROGRAM,
        &name,
    ]));
    assert!(
        !unprivileged.success && unprivileged.errors.contains("CAP_NET_ADMIN"),
        "{}",
        unprivileged.errors
    );
    let hidden = format!("mount -t tmpfs none /dev/net && exec {PROGRAM} {name}");
    let without = run(namespace
        .command("unshare")
        .args(["-m", "sh", "-c", &hidden]));
    assert!(
        !without.success && without.errors.contains("modprobe tun"),
        "{}",
        without.errors
    );
    assert_eq!(without.errors.lines().count(), 1, "{}", without.errors);
    let usage = run(Command::new(PROGRAM).arg("a-name-that-is-too-long"));
    assert!(
        !usage.success && usage.errors.contains("15 bytes"),
        "{}",
        usage.errors
    );
    assert!(
        !std::path::Path::new("/run/wireguard")
            .join(format!("{name}.sock"))
            .exists()
    );
}

/// The figures of a release build are looked at in the benchmarks; this only holds them to a bound.
#[test]
fn ten_thousand_peers_fit() {
    let Some(namespace) = Namespace::new("ten_thousand_peers_fit") else {
        return;
    };
    let foreground = namespace.foreground(&unique(), &[]);
    let resident = || -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", foreground.running().pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap()
    };
    let before = resident();
    let mut set = String::from("set=1\nreplace_peers=true\n");
    for peer in 0..10_000u32 {
        let [_, _, a, b] = peer.to_be_bytes();
        let _ = write!(
            set,
            "public_key={peer:08x}{}\npreshared_key={}\nendpoint=192.0.2.1:9\nallowed_ip=10.7.{a}.{b}/32\n",
            "7b".repeat(28),
            "09".repeat(32)
        );
    }
    set.push('\n');
    let mut socket = UnixStream::connect(foreground.running().uapi()).unwrap();
    let begun = Instant::now();
    socket.write_all(set.as_bytes()).unwrap();
    let mut answer = [0; 9];
    socket.read_exact(&mut answer).unwrap();
    let took = begun.elapsed();
    assert_eq!(&answer, b"errno=0\n\n");
    let limit = if cfg!(debug_assertions) { 15 } else { 1 };
    assert!(took < Duration::from_secs(limit), "{took:?}");
    let grown = resident().saturating_sub(before);
    eprintln!("10,000 peers: set in {took:?}, {grown} KiB more memory");
    assert!(grown <= 10_000 * 4, "{grown} KiB");
    assert_eq!(
        wg(&["show", &foreground.name, "peers"])
            .text
            .lines()
            .count(),
        10_000
    );
}

#[test]
fn a_taken_port_can_be_asked_for_again() {
    let Some(namespace) = Namespace::new("a_taken_port_can_be_asked_for_again") else {
        return;
    };
    let up = |name: &str| {
        content(
            namespace
                .command("ip")
                .args(["link", "set", "up", "dev", name]),
        );
    };
    let first = namespace.foreground(&unique(), &[]);
    content(Command::new("wg").args(["set", &first.name, "listen-port", "40001"]));
    up(&first.name);
    let second = namespace.foreground(&unique(), &[]);
    let ask = || wg(&["set", &second.name, "listen-port", "40001"]);
    assert!(
        ask().success,
        "while the interface is down nothing is bound"
    );
    up(&second.name);
    assert!(eventually(|| second.log().contains("40001")));
    let refused = ask();
    assert!(
        !refused.success && refused.errors.contains("Address already in use"),
        "{}",
        refused.errors
    );
    assert!(statistics(&second.name)["workers"][0]["port"].is_null());
    content(Command::new("wg").args(["set", &first.name, "listen-port", "40002"]));
    let granted = ask();
    assert!(granted.success, "{}", granted.errors);
    assert!(
        eventually(|| statistics(&second.name)["workers"][0]["port"] == 40_001),
        "a worker counts for the port it holds"
    );
}

#[test]
fn many_workers_get_their_descriptors() {
    let Some(namespace) = Namespace::new("many_workers_get_their_descriptors") else {
        return;
    };
    let name = unique();
    let start = |limit: &str| {
        let line = format!("ulimit {limit} 60 && exec {PROGRAM} --workers 40 --spread {name}");
        run(namespace.command("sh").args(["-c", &line]))
    };
    let refused = start("-n");
    assert!(
        !refused.success && refused.errors.contains("Too many open files"),
        "{}",
        refused.errors
    );
    assert!(!refused.errors.contains("modprobe"), "{}", refused.errors);
    let started = start("-S -n");
    assert!(started.success, "{}", started.errors);
    content(
        namespace
            .command("ip")
            .args(["link", "set", "up", "dev", &name]),
    );
    let bound = |statistics: &serde_json::Value| {
        let workers = statistics["workers"].as_array().unwrap();
        let ports = workers.iter().filter(|worker| worker["port"].is_u64());
        ports.count()
    };
    assert!(eventually(|| bound(&statistics(&name)) == 40));
    content(namespace.command("ip").args(["link", "delete", &name]));
}
