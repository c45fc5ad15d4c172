//! Where the log goes, what never gets into it, and what happens when nobody reads it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::support::{
    Namespace, PROGRAM, Running, base64, content, eventually, private_key, run, skip, statistics,
    unique, wg,
};

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
