//! The program's life: background, sandbox, signals, sockets, and wg-quick on top.
//!
//! A debug build stops at a system call that isn't allowed, so each of these also tests the sandbox.

mod daemon {
    pub(crate) mod support;
}

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
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
fn every_thread_gave_everything_up() {
    let Some(namespace) = Namespace::new("every_thread_gave_everything_up") else {
        return;
    };
    for options in [&[][..], &["--engine", "pipeline", "--workers", "2"]] {
        let foreground = namespace.foreground(&unique(), options);
        // Threads of connections, too.
        let _silent: Vec<_> = (0..3)
            .map(|_| UnixStream::connect(foreground.running().uapi()).unwrap())
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        let document = statistics(&foreground.name);
        let layers = document["sandbox"].as_array().unwrap();
        let on = |layer: &str| {
            layers
                .iter()
                .any(|one| one["layer"] == layer && one["on"] == true)
        };
        for layer in ["no-dumps", "capabilities", "no-new-privileges", "seccomp"] {
            assert!(on(layer), "{layer}: {document:#}");
        }
        if !on("landlock") {
            skip(
                "every_thread_gave_everything_up",
                &format!("no landlock: {layers:?}"),
            );
        }
        let tasks = fs::read_dir(format!("/proc/{}/task", foreground.running().pid)).unwrap();
        let mut threads = 0;
        for task in tasks {
            let path = task.unwrap().path().join("status");
            let Ok(status) = fs::read_to_string(path) else {
                continue;
            };
            threads += 1;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap().trim().to_owned()
            };
            // CAP_NET_BIND_SERVICE is 10, CAP_NET_ADMIN 12.
            for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
                assert_eq!(field(set), "0000000000001400", "{status}");
            }
            for set in ["CapInh:", "CapAmb:"] {
                assert_eq!(field(set), "0000000000000000", "{status}");
            }
            assert_eq!(
                (field("NoNewPrivs:").as_str(), field("Seccomp:").as_str()),
                ("1", "2")
            );
        }
        assert!(threads >= 6, "{threads}");
    }
}

#[test]
fn without_a_sandbox_it_says_so() {
    let Some(namespace) = Namespace::new("without_a_sandbox_it_says_so") else {
        return;
    };
    let foreground = namespace.foreground(&unique(), &["--no-sandbox"]);
    let document = statistics(&foreground.name);
    let layers = document["sandbox"].as_array().unwrap();
    assert!(layers.len() == 5 && layers.iter().all(|layer| layer["on"] == false));
}

#[test]
fn what_wg_can_set_works_in_the_sandbox() {
    let Some(namespace) = Namespace::new("what_wg_can_set_works_in_the_sandbox") else {
        return;
    };
    let foreground = namespace.foreground(&unique(), &[]);
    let name = &foreground.name;
    let show = |what: &str| wg(&["show", name, what]).text.trim().to_owned();
    content(
        namespace
            .command("ip")
            .args(["link", "set", "up", "dev", name]),
    );
    let (own, peer) = (private_key(1), base64(&[7; 32]));
    for _ in 0..2 {
        content(
            Command::new("wg")
                .args(["set", name, "private-key"])
                .arg(own.path()),
        );
        // A port below 1024, a mark, and back: capabilities are needed for these.
        for (port, mark) in [("53", "0x35"), ("51820", "off"), ("0", "off")] {
            content(namespace.command("wg").args([
                "set",
                name,
                "listen-port",
                port,
                "fwmark",
                mark,
            ]));
            assert_eq!(show("fwmark"), mark);
            if port != "0" {
                assert_eq!(show("listen-port"), port);
            }
            assert_ne!(show("listen-port"), "0");
        }
        content(Command::new("wg").args([
            "set",
            name,
            "peer",
            &peer,
            "endpoint",
            "[fe80::1%lo]:9",
            "persistent-keepalive",
            "1",
            "allowed-ips",
            "10.0.0.0/8",
        ]));
        assert!(
            show("endpoints").contains("[fe80::1%lo]:9"),
            "{}",
            show("endpoints")
        );
        content(
            namespace
                .command("ip")
                .args(["link", "set", "mtu", "1300", "dev", name]),
        );
        content(
            namespace
                .command("ip")
                .args(["link", "set", "down", "dev", name]),
        );
        content(
            namespace
                .command("ip")
                .args(["link", "set", "up", "dev", name]),
        );
    }
    // A port in use is refused, and the old one stays.
    let taken = namespace.foreground(&unique(), &[]);
    content(
        namespace
            .command("ip")
            .args(["link", "set", "up", "dev", &taken.name]),
    );
    content(Command::new("wg").args(["set", &taken.name, "listen-port", "40001"]));
    content(Command::new("wg").args(["set", name, "listen-port", "40002"]));
    let refused = wg(&["set", name, "listen-port", "40001"]);
    assert!(
        !refused.success && refused.errors.contains("Address already in use"),
        "{}",
        refused.errors
    );
    assert_eq!(show("listen-port"), "40002");
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

#[test]
fn no_key_is_logged() {
    let Some(namespace) = Namespace::new("no_key_is_logged") else {
        return;
    };
    let mut foreground = namespace.foreground(&unique(), &["--log-level", "trace"]);
    let name = foreground.name.clone();
    let (own, psk) = (private_key(0x51), private_key(0x52));
    content(
        Command::new("wg")
            .args(["set", &name, "private-key"])
            .arg(own.path()),
    );
    content(
        Command::new("wg")
            .args([
                "set",
                &name,
                "peer",
                &base64(&[7; 32]),
                "endpoint",
                "127.0.0.1:9",
                "preshared-key",
            ])
            .arg(psk.path()),
    );
    content(
        namespace
            .command("ip")
            .args(["link", "set", "up", "dev", &name]),
    );
    let mut socket = UnixStream::connect(foreground.running().uapi()).unwrap();
    for line in ["private_kee=", "private_key=0", "public_key=x", ""] {
        write!(socket, "set=1\n{line}{}\n\n", "51".repeat(32)).unwrap();
    }
    let mut answers = String::new();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    socket.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("errno=-").count(), 4, "{answers}");
    let document = statistics(&name);
    assert_eq!(document["uapi"]["failures"]["unknown-key"], 1);
    content(Command::new("kill").arg(foreground.running().pid.to_string()));
    foreground.wait();
    let log = foreground.log();
    assert!(
        log.contains("preshared key set") && log.contains("configuration refused"),
        "{log}"
    );
    for byte in [0x51, 0x52] {
        let text = base64(&[byte; 32]);
        assert!(
            !log.contains(text.trim_end_matches('='))
                && !log.contains(&format!("{byte:02x}").repeat(8)),
            "{log}"
        );
        assert!(!document.to_string().contains(&text));
    }
}

#[test]
fn a_log_nobody_reads_stalls_nothing() {
    let Some(namespace) = Namespace::new("a_log_nobody_reads_stalls_nothing") else {
        return;
    };
    let name = unique();
    // Its pipe is held and never read.
    let mut child = namespace
        .command(PROGRAM)
        .args(["--foreground", "--log-level", "trace", &name])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(eventually(|| wg(&["show", &name, "listen-port"]).success));
    let mut socket = UnixStream::connect(format!("/run/wireguard/{name}.sock")).unwrap();
    for _ in 0..3_000 {
        socket
            .write_all(b"set=1\nnonsense of some length, so that the pipe is full soon\n\n")
            .unwrap();
        let mut answer = [0; 11];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"errno=-71\n\n");
    }
    let document = statistics(&name);
    assert!(
        document["log"]["lost"].as_u64() > Some(0),
        "{}",
        document["log"]
    );
    content(Command::new("kill").arg(child.id().to_string()));
    assert!(eventually(|| child
        .try_wait()
        .is_ok_and(|ended| ended.is_some())));
}

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_ends() {
    let Some(namespace) = Namespace::new("systemd_is_told") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let name = unique();
    let mut child = namespace
        .command(PROGRAM)
        .args(["-f", &name])
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let told = || {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert_eq!(told(), "READY=1");
    assert!(wg(&["show", &name, "listen-port"]).success);
    content(Command::new("kill").arg(Running::find(&name).pid.to_string()));
    assert_eq!(told(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
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
fn the_units_are_sound() {
    let test = "the_units_are_sound";
    let folder = tempfile::tempdir().unwrap();
    let unit = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/systemd/wirespeed-device@.service");
    let text = fs::read_to_string(unit).unwrap();
    // The program isn't installed where the tests run.
    let text = text.replace("/usr/bin/wirespeed-device", PROGRAM);
    let path = folder.path().join("wirespeed-device@wg0.service");
    fs::write(&path, text).unwrap();
    let Ok(verified) = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()
    else {
        return skip(test, "systemd-analyze isn't installed");
    };
    let errors = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<_> = errors
        .lines()
        .filter(|line| line.contains("wirespeed"))
        .collect();
    assert!(verified.status.success() && ours.is_empty(), "{errors}");
}

#[test]
fn a_daemon_logs_to_the_system() {
    let test = "a_daemon_logs_to_the_system";
    let Some(namespace) = Namespace::new(test) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let socket = UnixDatagram::bind(&path).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let name = unique();
    // A /dev of its own, where the system's log is ours.
    let script = format!(
        "mount -t tmpfs none /dev && mkdir /dev/net && mknod /dev/net/tun c 10 200 && mknod /dev/null c 1 3 && \
         ln -s {} /dev/log && exec {PROGRAM} {name}",
        path.display()
    );
    let output = run(namespace
        .command("unshare")
        .args(["-m", "sh", "-c", &script])
        .env_remove("LOG_LEVEL")
        .env_remove("JOURNAL_STREAM"));
    if output.errors.contains("mknod") {
        return skip(test, "no device can be made here");
    }
    assert!(output.success, "{}", output.errors);
    let pid = Running::find(&name).pid;
    content(namespace.command("ip").args(["link", "del", &name]));
    let mut bytes = [0; 4096];
    let mut said = String::new();
    while !said.contains("deleted") {
        let count = socket.recv(&mut bytes).unwrap();
        said = String::from_utf8_lossy(&bytes[..count]).into_owned();
        assert!(
            said.starts_with("<30>wirespeed-device[") && said.contains(&format!("]: {name}: ")),
            "{said}"
        );
        assert!(said.contains(&format!("[{pid}]")), "{said}");
    }
}

/// A unit that gives less than is used would be noticed by its users only.
#[test]
fn the_capabilities_of_the_unit_are_enough() {
    let test = "the_capabilities_of_the_unit_are_enough";
    let Some(namespace) = Namespace::new(test) else {
        return;
    };
    let unit = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/systemd/wirespeed-device@.service");
    let unit = fs::read_to_string(unit).unwrap();
    let given = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let given: Vec<_> = given
        .unwrap()
        .split(' ')
        .map(|name| name.trim_start_matches("CAP_").to_lowercase())
        .collect();
    let bounding = format!("-all,+{}", given.join(",+"));
    let report = |limited: bool| {
        let name = unique();
        let mut command = namespace.command(if limited { "setpriv" } else { "env" });
        if limited {
            command.args([
                "--bounding-set",
                &bounding,
                "--inh-caps",
                "-all",
                "--no-new-privs",
            ]);
        }
        // With a level asked for, the daemon keeps standard error, so this can't be a pipe that is read to its end.
        let log = tempfile::NamedTempFile::new().unwrap();
        let status = command
            .args([PROGRAM, "--workers", "2", "--log-level", "debug", &name])
            .stderr(log.reopen().unwrap())
            .status()
            .unwrap();
        let log = fs::read_to_string(log.path()).unwrap();
        assert!(status.success(), "{log}");
        let document = statistics(&name);
        let running = Running::find(&name);
        content(namespace.command("ip").args(["link", "del", &name]));
        assert!(eventually(|| running.gone()));
        let refused: Vec<_> = log
            .lines()
            .filter(|line| line.contains("not permitted"))
            .map(ToOwned::to_owned)
            .collect();
        (
            document["offloads"].clone(),
            document["sandbox"].clone(),
            refused,
        )
    };
    assert_eq!(report(true), (report(false).0, report(false).1, Vec::new()));
}
