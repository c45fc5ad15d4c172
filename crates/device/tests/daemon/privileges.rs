//! What it gave up after the start, and what is enough for what it still does.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use super::support::{
    Namespace, PROGRAM, Running, base64, content, eventually, private_key, skip, statistics,
    unique, wg,
};

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

/// Where the kernel audits, every `wg show` would be a line: its connection's thread is started with `clone`, since
/// `clone3` is refused.
#[test]
fn connections_leave_nothing_in_the_kernels_log() {
    let test = "connections_leave_nothing_in_the_kernels_log";
    let Some(namespace) = Namespace::new(test) else {
        return;
    };
    let opened = fs::File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg");
    let mut log = match opened {
        Ok(log) => log,
        Err(error) => return skip(test, &format!("/dev/kmsg: {error}")),
    };
    log.seek(SeekFrom::End(0)).unwrap();
    let foreground = namespace.foreground(&unique(), &[]);
    for _ in 0..3 {
        statistics(&foreground.name);
    }
    std::thread::sleep(Duration::from_millis(200));
    let clone3 = format!(" syscall={} ", libc::SYS_clone3);
    let mut line = [0; 8_192];
    loop {
        match log.read(&mut line) {
            Ok(length) => {
                let line = String::from_utf8_lossy(&line[..length]);
                assert!(
                    !(line.contains(PROGRAM) && line.contains(&clone3)),
                    "{line}"
                );
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // It was overwritten before it was read.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => panic!("/dev/kmsg: {error}"),
        }
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
