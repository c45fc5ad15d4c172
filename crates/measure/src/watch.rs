//! A passive watch of both ends at the same time.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_facts::{ConnectionsWanted, Facts, Peer, Scope};
use wirespeed_words::say;

use crate::operations::PASSIVE;
use crate::passive::{LONGEST_WATCH, PassivePlan};
use crate::prefix::prefix;
use crate::sequence_probe::refused;
use crate::{Ends, MeasureError, PassiveWatch, Progress, sensible};

/// What a machine may take beyond the watch itself: a few readings, on a machine that is busy.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);

impl Ends {
    /// Watches both ends (the far one where wirespeed runs there) for `seconds`, an hour at most. Sends nothing through
    /// the tunnel or beside it.
    ///
    /// # Errors
    /// When a machine does not answer, or [`Ends::stop`] was set.
    pub fn watch(
        &self,
        seconds: f64,
        progress: &dyn Progress,
    ) -> Result<PassiveWatch, MeasureError> {
        self.check_stop()?;
        let longest = LONGEST_WATCH.as_secs_f64();
        let limit = Duration::from_secs_f64(seconds.clamp(0.0, longest)) + ANSWER_WITHIN;
        let plan = |facts: &Facts, scope: Scope| PassivePlan {
            connections: scope
                .interface
                .as_deref()
                .map_or_else(ConnectionsWanted::default, |name| through(facts, name)),
            scope,
            seconds,
        };
        let far = match (self.far_machine(), &self.far_facts, self.far_scope()) {
            (Some(machine), Some(facts), Some(scope)) => {
                Some(machine.start(PASSIVE, &plan(facts, scope))?)
            }
            _ => None,
        };
        let here = self
            .here
            .start(PASSIVE, &plan(&self.here_facts, self.here_scope()))?;
        let begun = Instant::now();
        let (here, far) = std::thread::scope(|scope| {
            let waiting = scope.spawn(move || match far {
                Some(far) => self
                    .wait_for_both(here, far, limit)
                    .map(|(here, far)| (here, Some(far))),
                None => self.wait(here, limit).map(|here| (here, None)),
            });
            let watching = say!("measure-step-watching");
            while !waiting.is_finished() {
                let gone = begun.elapsed().as_secs_f64();
                let done = (gone / seconds).clamp(0.0, 1.0);
                progress.step(&watching, done, (seconds - gone).max(0.0));
                std::thread::sleep(TELL_EVERY);
            }
            waiting.join().unwrap_or(Err(MeasureError::Stopped))
        })
        .map_err(|error| refused(&what(), error))?;
        let here = sensible::watched(self.here.name(), here)?;
        let far = far
            .map(|far| sensible::watched(&self.far_name(), far))
            .transpose()?;
        self.still_there(&self.counters()?)?;
        Ok(PassiveWatch { here, far })
    }
}

/// The connections that go through a tunnel: from its own addresses, or to what its peers may have.
fn through(facts: &Facts, interface: &str) -> ConnectionsWanted {
    let links = facts.links.iter().filter(|link| link.name == interface);
    let addresses = links.flat_map(|link| &link.addresses);
    let tunnels = facts
        .tunnels
        .iter()
        .filter(|tunnel| tunnel.name == interface);
    let peers = tunnels.filter_map(|tunnel| tunnel.peers.value()).flatten();
    ConnectionsWanted {
        local: addresses
            .filter_map(|text| text.split('/').next()?.parse().ok())
            .collect(),
        remote: peers
            .clone()
            .flat_map(|peer| peer.allowed_ips.clone())
            .collect(),
        except: elsewhere(facts, interface)
            .chain(peers.filter_map(outside))
            .collect(),
        ports: Vec::new(),
    }
}

/// A peer's endpoint is reached outside, by a route of its own. Where everything goes to the peer, only WireGuard's own
/// packets leave outside, by their mark.
fn outside(peer: &Peer) -> Option<String> {
    let everything = peer.allowed_ips.iter().any(|one| one.ends_with("/0"));
    let endpoint = peer.endpoint.filter(|_| !everything)?;
    Some(alone(endpoint.ip().to_canonical()))
}

/// Where connections go that do not go through a tunnel whatever its peers may have: this machine itself, and other
/// links' own networks.
fn elsewhere(facts: &Facts, interface: &str) -> impl Iterator<Item = String> {
    let own = facts.links.iter().flat_map(move |link| {
        let networks = link
            .addresses
            .iter()
            .filter(move |_| link.up && link.name != interface);
        let addresses = link.addresses.iter().filter_map(|text| prefix(text));
        networks
            .cloned()
            .chain(addresses.map(|(address, _)| alone(address)))
    });
    ["127.0.0.0/8", "::1/128"]
        .map(str::to_owned)
        .into_iter()
        .chain(own)
}

/// The prefix of this one address.
fn alone(address: IpAddr) -> String {
    let length = if address.is_ipv4() { 32 } else { 128 };
    format!("{address}/{length}")
}

/// What is measured, in words.
fn what() -> String {
    say!("measure-what-watch")
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Implementation, Known, Link, Tunnel};

    use super::*;

    fn link(name: &str, up: bool, address: &str) -> Link {
        Link {
            name: name.to_owned(),
            up,
            addresses: vec![address.to_owned()],
            ..Link::default()
        }
    }

    fn with_peer(allowed_ips: &[&str]) -> Facts {
        let peer = Peer {
            public_key: "far-key".to_owned(),
            endpoint: Some("203.0.113.5:51820".parse().unwrap()),
            allowed_ips: allowed_ips.iter().map(|one| (*one).to_owned()).collect(),
            handshake_age: None,
            rx_bytes: 0,
            tx_bytes: 0,
            keepalive: 0,
        };
        Facts {
            links: vec![
                link("lo", true, "127.0.0.1/8"),
                link("wlan0", true, "192.168.1.9/24"),
                link("docker0", false, "172.17.0.1/16"),
                link("wg0", true, "10.9.0.1/24"),
            ],
            tunnels: vec![Tunnel {
                name: "wg0".to_owned(),
                implementation: Implementation::Kernel,
                mtu: 1420,
                listen_port: None,
                fwmark: 0,
                public_key: None,
                peers: Known::Value(vec![peer]),
                statistics: None,
                sockets: Known::because("not part of this test"),
            }],
            ..Facts::default()
        }
    }

    #[test]
    fn other_links_networks_and_the_endpoint_are_not_the_tunnels() {
        let wanted = through(&with_peer(&["0.0.0.0/1", "128.0.0.0/1"]), "wg0");
        assert_eq!(wanted.local, ["10.9.0.1".parse::<IpAddr>().unwrap()]);
        let holds = |one: &str| wanted.except.iter().any(|other| other == one);
        assert!(holds("192.168.1.9/24") && holds("127.0.0.0/8") && holds("203.0.113.5/32"));
        // The tunnel's own network is its own; its own address is this machine.
        assert!(!holds("10.9.0.1/24") && holds("10.9.0.1/32"));
        assert!(!holds("172.17.0.1/16"), "that link is down");
        let everything = through(&with_peer(&["0.0.0.0/0"]), "wg0");
        assert!(!everything.except.contains(&"203.0.113.5/32".to_owned()));
    }
}
