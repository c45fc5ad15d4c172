//! A real tunnel for tests and benchmarks: two network namespaces, a veth pair, two wireguard-go daemons.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

/// One end: a namespace with a veth and a daemon.
pub(crate) struct End {
    namespace: String,
    pub(crate) interface: String,
    pub(crate) daemon: Child,
    pub(crate) public_key: String,
}

pub(crate) struct Lab {
    pub(crate) ends: [End; 2],
}

static LABS: AtomicU32 = AtomicU32::new(0);

impl Lab {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn connect(&self) {
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
    pub(crate) fn run(&self, command: &str) -> String {
        let command = command.replace("IFACE", &self.interface);
        let quoted = command.replace('\'', "'\\''");
        sh(&format!(
            "ip netns exec {} sh -c '{quoted}'",
            self.namespace
        ))
    }

    /// Gives the device so many peers, whose endpoints are at the other end.
    pub(crate) fn take_peers(&self, count: u32) {
        let mut config = "[Interface]\nListenPort = 51820\n".to_owned();
        for peer in 1..=count {
            // Any 32 bytes are a public key; the last digits keep it canonical base64.
            writeln!(
                config,
                "[Peer]\nPublicKey = {peer:042}E=\nAllowedIPs = 10.78.{}.{}/32\nEndpoint = 192.168.77.2:{}",
                peer / 250,
                peer % 250,
                20_000 + peer
            )
            .unwrap();
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(config.as_bytes()).unwrap();
        self.run(&format!("wg setconf IFACE {}", file.path().display()));
    }

    /// Runs a function in a thread inside the namespace, with a `/sys` that shows it, as `ip netns exec` does.
    pub(crate) fn inside<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        thread::scope(|threads| {
            let thread = threads.spawn(|| {
                let namespace = File::open(format!("/run/netns/{}", self.namespace)).unwrap();
                setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
                unshare(CloneFlags::CLONE_NEWNS).unwrap();
                let nothing = None::<&str>;
                let quietly = MsFlags::MS_SLAVE | MsFlags::MS_REC;
                mount(nothing, "/", nothing, quietly, nothing).unwrap();
                mount(
                    Some("sysfs"),
                    "/sys",
                    Some("sysfs"),
                    MsFlags::empty(),
                    nothing,
                )
                .unwrap();
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

pub(crate) fn sh(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What this machine lacks for these tests.
pub(crate) fn missing() -> Option<String> {
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
