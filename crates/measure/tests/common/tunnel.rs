//! A real WireGuard tunnel (wireguard-go) over a road of namespaces, made for one test and gone with it.

#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wirespeed_measure::{Ends, FarEnd, MeasureError, Overrides};

use crate::road::{self, B_BARE, Road};

pub(crate) const MTU: u32 = 1420;

/// wireguard-go between a (10.99.0.1) and b (10.99.0.2); only a knows the other's endpoint.
pub(crate) struct Tunnel {
    pub(crate) road: Road,
    daemons: Vec<Child>,
    keys: PathBuf,
    pub(crate) public: Vec<String>,
}

impl Tunnel {
    pub(crate) fn make(test: &str) -> Option<Self> {
        for program in ["wireguard-go", "wg"] {
            let there = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if there.is_err() {
                return road::skipped(test, &format!("{program} is not installed"));
            }
        }
        if !std::path::Path::new("/dev/net/tun").exists() {
            return road::skipped(test, "there is no /dev/net/tun");
        }
        let road = Road::make(test)?;
        let keys = std::env::temp_dir().join(road.netns("keys"));
        fs::create_dir_all(&keys).unwrap();
        let mut tunnel = Self {
            road,
            daemons: Vec::new(),
            keys,
            public: Vec::new(),
        };
        let interfaces = ["a", "b"].map(|host| tunnel.interface(host));
        tunnel.public = tunnel.lay(&interfaces, 51820, "10.99.0");
        Some(tunnel)
    }

    /// A second tunnel between the same two, from 10.98.0.1 to 10.98.0.2: its interfaces.
    pub(crate) fn second(&mut self) -> [String; 2] {
        let interfaces = ["a", "b"].map(|host| self.second_interface(host));
        self.lay(&interfaces, 51821, "10.98.0");
        interfaces
    }

    fn second_interface(&self, host: &str) -> String {
        format!("v{}", self.road.link(host))
    }

    /// The public keys.
    fn lay(&mut self, interfaces: &[String; 2], port: u16, network: &str) -> Vec<String> {
        let mut public = Vec::new();
        for interface in interfaces {
            let private = output("wg", &["genkey"], "");
            public.push(output("wg", &["pubkey"], &private));
            fs::write(self.keys.join(interface), private).unwrap();
        }
        for (place, (host, interface)) in ["a", "b"].into_iter().zip(interfaces).enumerate() {
            let daemon = Command::new("setpriv")
                .args([
                    "--pdeathsig",
                    "KILL",
                    "--",
                    "ip",
                    "netns",
                    "exec",
                    &self.road.netns(host),
                ])
                .args(["wireguard-go", "-f", interface])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            self.daemons.push(daemon);
            let socket = format!("/var/run/wireguard/{interface}.sock");
            let until = Instant::now() + Duration::from_secs(10);
            while !std::path::Path::new(&socket).exists() {
                assert!(
                    Instant::now() < until,
                    "wireguard-go does not open {socket}"
                );
                std::thread::sleep(Duration::from_millis(20));
            }
            let key = self.keys.join(interface);
            let other = public[1 - place].trim();
            let endpoint = if host == "a" {
                format!("endpoint {B_BARE}:{port}")
            } else {
                String::new()
            };
            let on = |line: &str| self.road.on(host, line);
            on(&format!(
                "wg set {interface} listen-port {port} private-key {}",
                key.display()
            ));
            on(&format!(
                "wg set {interface} peer {other} allowed-ips {network}.{}/32 {endpoint}",
                2 - place
            ));
            on(&format!(
                "ip addr add {network}.{}/24 dev {interface}",
                place + 1
            ));
            on(&format!("ip link set {interface} mtu {MTU} up"));
        }
        public
    }

    pub(crate) fn interface(&self, host: &str) -> String {
        format!("w{}", self.road.link(host))
    }

    pub(crate) fn discover(
        &self,
        interface: Option<&str>,
        overrides: &Overrides,
    ) -> Result<Ends, MeasureError> {
        let far = FarEnd::Wirespeed(self.road.machine("b"));
        Ends::discover(self.road.machine("a"), far, interface, overrides)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for host in ["a", "b"] {
            for interface in [self.interface(host), self.second_interface(host)] {
                let _ = fs::remove_file(format!("/var/run/wireguard/{interface}.sock"));
            }
        }
        let _ = fs::remove_dir_all(&self.keys);
    }
}

fn output(program: &str, arguments: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}
