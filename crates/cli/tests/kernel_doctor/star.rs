//! A hub and its peers, made by hand: several peers of one interface, or cards of the machine in place of cables.
//!
//! ```text
//!  namespace hub                                     namespace peer1, peer2 …
//!  wghub   10.40.0.254/24                            wgpeer1 10.40.0.1/24
//!  road1   10.41.1.254/24   ── veth, or two cards ── road    10.41.1.1/24
//! ```

use std::fmt::Write as _;
use std::process::Command;

use crate::machine::{ip, run, within};

/// The hub's namespace and interface.
pub(crate) const HUB: (&str, &str) = ("ws-k-hub", "wghub");

/// A hub with peers; goes with the test.
pub(crate) struct Star {
    /// Private keys of the peers.
    keys: Vec<String>,
}

/// The namespace of a peer, the first being 1.
pub(crate) fn peer(number: usize) -> String {
    format!("ws-k-peer{number}")
}

impl Star {
    /// With so many peers, each over a cable of its own.
    pub(crate) fn of_cables(peers: usize) -> Self {
        Self::up(peers, |number| {
            let there = peer(number);
            ip(
                HUB.0,
                &format!("link add road{number} type veth peer name road netns {there}"),
            );
        })
    }

    /// With one peer over two cards of this machine that are joined; the hub's keeps its name.
    pub(crate) fn of_cards(hub: &str, far: &str) -> Self {
        Self::up(1, |number| {
            for (card, namespace, name) in
                [(hub, HUB.0, "road1"), (far, peer(number).as_str(), "road")]
            {
                run(Command::new("ip").args(["link", "set", card, "down"]));
                run(Command::new("ip")
                    .args(["link", "set", card, "name", name, "netns", namespace]));
            }
        })
    }

    fn up(peers: usize, join: impl Fn(usize)) -> Self {
        let star = Self {
            keys: (0..peers).map(|_| key("genkey", "")).collect(),
        };
        for namespace in star.namespaces() {
            run(Command::new("ip").args(["netns", "add", &namespace]));
            ip(&namespace, "link set lo up");
        }
        let own = key("genkey", "");
        let mut hub = format!("[Interface]\nPrivateKey = {own}\nListenPort = 51820\n");
        for (index, private) in star.keys.iter().enumerate() {
            let number = index + 1;
            join(number);
            let there = peer(number);
            for (namespace, line) in [
                (
                    HUB.0,
                    format!("addr add 10.41.{number}.254/24 dev road{number}"),
                ),
                (HUB.0, format!("link set road{number} up")),
                (&there, format!("addr add 10.41.{number}.1/24 dev road")),
                (&there, "link set road up".to_owned()),
            ] {
                ip(namespace, &line);
            }
            let _ = write!(
                hub,
                "[Peer]\nPublicKey = {}\nEndpoint = 10.41.{number}.1:51820\nAllowedIPs = 10.40.0.{number}/32\n",
                key("pubkey", private)
            );
            let config = format!(
                "[Interface]\nPrivateKey = {private}\nListenPort = 51820\n[Peer]\nPublicKey = {}\n\
                 Endpoint = 10.41.{number}.254:51820\nAllowedIPs = 10.40.0.254/32\n",
                key("pubkey", &own)
            );
            tunnel(&there, &format!("wgpeer{number}"), number, &config);
        }
        tunnel(HUB.0, HUB.1, 254, &hub);
        for number in 1..=peers {
            let target = format!("10.40.0.{number}");
            run(within(HUB.0, "ping").args(["-c", "1", "-W", "20", &target]));
        }
        star
    }

    /// The public key of a peer, the first being 1.
    pub(crate) fn key(&self, number: usize) -> String {
        key("pubkey", &self.keys[number - 1])
    }

    fn namespaces(&self) -> Vec<String> {
        [HUB.0.to_owned()]
            .into_iter()
            .chain((1..=self.keys.len()).map(peer))
            .collect()
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        for namespace in self.namespaces() {
            let _ = Command::new("ip")
                .args(["netns", "del", &namespace])
                .status();
        }
    }
}

fn tunnel(namespace: &str, interface: &str, number: usize, config: &str) {
    let file = std::env::temp_dir().join(format!("{interface}.conf"));
    std::fs::write(&file, config).expect("a configuration's file");
    ip(namespace, &format!("link add {interface} type wireguard"));
    run(within(namespace, "wg")
        .args(["setconf", interface])
        .arg(&file));
    ip(
        namespace,
        &format!("addr add 10.40.0.{number}/24 dev {interface}"),
    );
    ip(namespace, &format!("link set {interface} mtu 1420 up"));
}

/// `wg genkey` and `wg pubkey`.
fn key(what: &str, input: &str) -> String {
    let line = format!("printf %s '{input}' | wg {what}");
    run(Command::new("sh").args(["-c", &line]))
        .trim()
        .to_owned()
}
