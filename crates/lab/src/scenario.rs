//! A scenario: hosts, links, road, tunnel and fault in one readable TOML file, and the finding it must produce.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::units::{Loss, Mtu, Queue, Rate, Span};

/// The code of a scenario in which nothing is wrong.
pub const HEALTHY: &str = "healthy";

/// Largest scenario file that is read, in bytes.
const LARGEST_FILE: u64 = 64 * 1024;

/// A practice road and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name: lower-case letters, digits and hyphens.
    pub name: String,
    /// One line: what is practised here.
    pub description: String,
    /// Which hosts there are and how they are joined.
    pub topology: Topology,
    /// Code of the finding that `wirespeed doctor` must give; [`HEALTHY`] = none.
    pub finding: String,
    /// What `wirespeed doctor` is told besides (`["--expect", "200mbit"]`).
    #[serde(default)]
    pub doctor_args: Vec<String>,
    /// The cables.
    #[serde(default)]
    pub links: Links,
    /// The road between the ends.
    #[serde(default)]
    pub road: Road,
    /// The tunnel over it.
    #[serde(default)]
    pub tunnel: TunnelSpec,
    /// What goes wrong besides the road and the tunnel's own parameters.
    #[serde(default)]
    pub fault: Fault,
    /// Host name (or `all`) to its settings; a host's own entry wins over `all`.
    #[serde(default)]
    pub hosts: BTreeMap<String, HostSpec>,
}

/// Which hosts there are and how they are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// `client – road – server`: the tunnel ends on the hosts that use it.
    ClientServer,
    /// `source – gw1 – road – gw2 – sink`: two sites, each behind its gateway.
    SiteToSite,
}

/// The cables (veth pairs) of the whole lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Links {
    /// MTU of every cable.
    pub mtu: Mtu,
    /// Leave TSO, GSO and GRO on? Off by default, so that packets on the road are packets as they would be on a wire.
    pub offloads: bool,
}

impl Default for Links {
    fn default() -> Self {
        Links {
            mtu: Mtu::ETHERNET,
            offloads: false,
        }
    }
}

/// The road: what is the same in both directions, and what differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Road {
    /// Both directions.
    pub both: Way,
    /// From the first end (client, gw1) to the second; wins over `both`.
    pub up: Way,
    /// From the second end (server, gw2) to the first; wins over `both`.
    pub down: Way,
    /// The road lowers the MSS that TCP connections announce to what fits its MTU, as most access routers do: then
    /// plain TCP never meets the narrow place, and a tunnel does.
    pub clamp_mss: bool,
    /// The road translates the first end's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat: Option<Nat>,
}

impl Road {
    /// One direction with everything that `both` says about it.
    pub fn way(&self, direction: RoadDirection) -> Way {
        let (own, both) = match direction {
            RoadDirection::Up => (&self.up, &self.both),
            RoadDirection::Down => (&self.down, &self.both),
        };
        Way {
            rate: own.rate.or(both.rate),
            mtu: own.mtu.or(both.mtu),
            delay: own.delay.or(both.delay),
            loss: own.loss.or(both.loss),
            queue: own.queue.or(both.queue),
            icmp: own.icmp.or(both.icmp),
        }
    }

    /// The most TCP payload, in bit/s, that the slower direction can carry through a WireGuard tunnel of that MTU over
    /// IPv4; `None` when neither direction has a rate.
    ///
    /// A full inner packet carries its MTU less 52 bytes (IPv4 and TCP with timestamps, RFC 7323), and takes 60 bytes more
    /// outside (IPv4, UDP, WireGuard's header and tag) and 14 for Ethernet, which the road's `tbf` counts too.
    pub fn possible_goodput(&self, tunnel_mtu: u32) -> Option<f64> {
        let rate = [RoadDirection::Up, RoadDirection::Down]
            .into_iter()
            .filter_map(|direction| self.way(direction).rate)
            .map(Rate::bits_per_second)
            .min()? as f64;
        let mtu = f64::from(tunnel_mtu);
        Some(rate * (mtu - 52.0) / (mtu + 60.0 + 14.0))
    }
}

/// One direction of the road.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoadDirection {
    /// From the first end (client, gw1) to the second.
    Up,
    /// From the second end (server, gw2) to the first.
    Down,
}

/// What one direction of the road does to packets. What is left out does nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Way {
    /// Bottleneck rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Larger packets are fragmented, or refused with "fragmentation needed".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// One-way delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Share of packets lost at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Length of the queue before the bottleneck; needs `rate`. 20 ms unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Do the ICMP errors about packets of this direction reach their sender?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icmp: Option<Icmp>,
}

/// What becomes of ICMP errors that the road sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Icmp {
    /// They arrive.
    #[default]
    Pass,
    /// They are lost: packets that don't fit vanish without a word.
    Drop,
}

/// Address translation (masquerading) on the road for the first end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nat {
    /// How long a UDP mapping lives without traffic; whole seconds.
    pub udp_timeout: Span,
}

/// The tunnel between the ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TunnelSpec {
    /// `kernel`, `wirespeed`, `wireguard-go`, or the path of a program that speaks the standard UAPI. Left out: the
    /// kernel's where there is one, else wirespeed-device, else wireguard-go. Named where the fault is one
    /// implementation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    /// MTU of the tunnel interfaces: of both ends, or `[first, second]`.
    pub mtu: PerEnd<Mtu>,
    /// Receive buffer of a userspace daemon's UDP socket, in bytes as getsockopt reports them; both ends, or `[first,
    /// second]`. Large unless told, so that it is no second fault where the fault is another; a daemon that has larger
    /// ones of its own keeps them then.
    pub socket_buffer: PerEnd<u32>,
    /// The one CPU that both ends' daemons may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin_cpu: Option<u16>,
    /// Persistent keepalive of the first end in seconds, 0 = off.
    pub keepalive: u16,
}

impl Default for TunnelSpec {
    fn default() -> Self {
        TunnelSpec {
            implementation: None,
            mtu: PerEnd::Both(Mtu::WIREGUARD),
            socket_buffer: PerEnd::Both(ROOMY_SOCKET_BUFFER),
            pin_cpu: None,
            keepalive: 0,
        }
    }
}

/// Holds 100 ms at 300 Mbit/s in 1,500-byte packets, each of which the kernel counts as about 2,300 bytes.
pub(crate) const ROOMY_SOCKET_BUFFER: u32 = 4 * 1024 * 1024;

/// One value for both ends of the tunnel, or one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "one value for both ends, or a list of two: [first, second]"
)]
pub enum PerEnd<T> {
    /// The same at both ends.
    Both(T),
    /// First end (client, gw1), second end (server, gw2).
    Each(T, T),
}

impl<T: Copy> PerEnd<T> {
    /// The value of an end: 0 = first, otherwise second.
    pub fn of(self, end: usize) -> T {
        match self {
            PerEnd::Both(value) => value,
            PerEnd::Each(first, second) => {
                if end == 0 {
                    first
                } else {
                    second
                }
            }
        }
    }
}

/// What goes wrong besides the road and the tunnel's own parameters; made after the tunnel was seen to work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// The first end gets a second peer that takes over the allowed IPs of the real one.
    pub duplicate_allowed_ips: bool,
    /// Other work at the second end: so many processes, each of which takes all the processor it can get.
    #[serde(skip_serializing_if = "is_zero")]
    pub busy_jobs: u16,
    /// Silence after everything is set up, before `up` ends (a NAT's mapping expires).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// The tunnel can't work from the start, so `up` does not wait for it.
    pub tunnel_never_works: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape serde asks for"
)]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// Settings of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// TCP congestion control of the host; `cubic` unless told, as on a plain Debian.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// More sysctls by their dotted name; only `net.…`, which belong to the namespace.
    pub sysctls: BTreeMap<String, String>,
}

impl Scenario {
    /// Reads a scenario; an error names the line.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, LabError> {
        let bad = |why: String| LabError::Scenario {
            origin: origin.to_owned(),
            why,
        };
        let scenario: Scenario =
            toml::from_str(text).map_err(|e| bad(e.to_string().trim_end().to_owned()))?;
        scenario.check().map_err(bad)?;
        Ok(scenario)
    }

    /// Reads a scenario file.
    pub fn load(path: &Path) -> Result<Scenario, LabError> {
        let origin = path.display().to_string();
        let bad = |why: String| LabError::Scenario {
            origin: origin.clone(),
            why,
        };
        let meta = std::fs::metadata(path).map_err(|e| bad(e.to_string()))?;
        if !meta.is_file() || meta.len() > LARGEST_FILE {
            return Err(bad(format!(
                "it is not a file of at most {LARGEST_FILE} bytes"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
        Scenario::parse(&text, &origin)
    }

    /// The settings of a host: `all`, then its own.
    pub fn host(&self, name: &str) -> HostSpec {
        let mut merged = self.hosts.get("all").cloned().unwrap_or_default();
        if let Some(own) = self.hosts.get(name) {
            if own.congestion_control.is_some() {
                merged
                    .congestion_control
                    .clone_from(&own.congestion_control);
            }
            merged.sysctls.extend(own.sysctls.clone());
        }
        merged
    }

    /// What TOML's types can't say.
    fn check(&self) -> Result<(), String> {
        let plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !plain(&self.name) || self.name.len() > 40 {
            return Err(format!(
                "name = \"{}\": use up to 40 lower-case letters, digits and hyphens",
                self.name
            ));
        }
        if !plain(&self.finding) {
            return Err(format!(
                "finding = \"{}\": use the code of a cause, or \"{HEALTHY}\"",
                self.finding
            ));
        }
        for direction in [RoadDirection::Up, RoadDirection::Down] {
            let way = self.road.way(direction);
            if way.queue.is_some() && way.rate.is_none() {
                return Err(
                    "road: `queue` needs a `rate`: without a bottleneck nothing queues".to_owned(),
                );
            }
            if way.mtu > Some(self.links.mtu) {
                return Err("road: `mtu` is larger than the MTU of the links".to_owned());
            }
            if way.delay.is_some_and(|d| d.duration().as_secs() >= 10) {
                return Err("road: `delay` is 10 s or more".to_owned());
            }
        }
        if let Some(nat) = &self.road.nat
            && nat.udp_timeout.duration().as_secs() == 0
        {
            return Err("road.nat: `udp_timeout` is less than a second".to_owned());
        }
        if let Some(program) = &self.tunnel.implementation {
            program
                .parse::<crate::Implementation>()
                .map_err(|e| format!("tunnel: {e}"))?;
        }
        let known = self.topology.hosts();
        for (host, spec) in &self.hosts {
            if host != "all" && !known.contains(&host.as_str()) {
                return Err(format!(
                    "hosts: there is no `{host}` here; hosts are all, {}",
                    known.join(", ")
                ));
            }
            if let Some(name) = &spec.congestion_control
                && !name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            {
                return Err(format!("hosts.{host}: `{name}` is no congestion control"));
            }
            for name in spec.sysctls.keys() {
                let fine = name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
                if !name.starts_with("net.") || name.contains("..") || !fine {
                    return Err(format!(
                        "hosts.{host}: sysctl `{name}` does not start with `net.`, so it is not the namespace's own"
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: &str = r#"
name = "small"
description = "As little as possible"
topology = "client-server"
finding = "healthy"
"#;

    #[test]
    fn what_is_left_out_has_a_default() {
        let scenario = Scenario::parse(SMALL, "small").unwrap();
        assert_eq!(scenario.links.mtu, Mtu::ETHERNET);
        assert_eq!(scenario.tunnel.mtu.of(1), Mtu::WIREGUARD);
        assert_eq!(scenario.road.way(RoadDirection::Up), Way::default());
    }

    #[test]
    fn a_direction_wins_over_both() {
        let text = format!(
            "{SMALL}[road.both]\nrate = \"100mbit\"\nmtu = 1400\n[road.down]\nrate = \"20mbit\"\n"
        );
        let road = Scenario::parse(&text, "x").unwrap().road;
        assert_eq!(
            road.way(RoadDirection::Up).rate.unwrap().bits_per_second(),
            100_000_000
        );
        assert_eq!(
            road.way(RoadDirection::Down)
                .rate
                .unwrap()
                .bits_per_second(),
            20_000_000
        );
        assert_eq!(road.way(RoadDirection::Down).mtu.unwrap().bytes(), 1400);
    }

    #[test]
    fn errors_name_the_line_and_what_is_wrong() {
        let said = |more: &str| {
            Scenario::parse(&format!("{SMALL}{more}"), "file.toml")
                .unwrap_err()
                .to_string()
        };
        let text = said("[road.both]\nrate = \"fast\"\n");
        assert!(
            text.contains("file.toml") && text.contains("line 7"),
            "{text}"
        );
        assert!(said("[road.both]\nspeed = 3\n").contains("unknown field `speed`"));
        assert!(said("[road.both]\nqueue = \"20ms\"\n").contains("`queue` needs a `rate`"));
        assert!(said("[hosts.sink]\n").contains("there is no `sink` here"));
        assert!(said("[hosts.all.sysctls]\n\"kernel.panic\" = \"1\"\n").contains("net."));
        assert!(said("[tunnel]\nmtu = [1420, 1280, 3]\n").contains("line 7"));
    }

    #[test]
    fn a_state_file_gives_back_the_same_scenario() {
        for scenario in crate::scenarios() {
            let json = serde_json::to_string(scenario).unwrap();
            assert_eq!(&serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
        }
    }

    #[test]
    fn a_host_entry_wins_over_all() {
        let text = format!(
            "{SMALL}[hosts.all]\ncongestion_control = \"cubic\"\n[hosts.server]\ncongestion_control = \"bbr\"\n"
        );
        let scenario = Scenario::parse(&text, "x").unwrap();
        assert_eq!(
            scenario.host("client").congestion_control.as_deref(),
            Some("cubic")
        );
        assert_eq!(
            scenario.host("server").congestion_control.as_deref(),
            Some("bbr")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = Scenario::parse(&text, "x");
        }

        #[test]
        fn no_value_makes_it_panic(
            key in prop::sample::select(vec!["rate", "mtu", "delay", "loss", "queue", "icmp"]),
            value in "[0-9.eE+-]{0,12}[a-z%]{0,6}", quoted: bool,
        ) {
            let value = if quoted { format!("\"{value}\"") } else { value };
            let _ = Scenario::parse(&format!("{SMALL}[road.both]\nrate = \"1mbit\"\n[road.up]\n{key} = {value}\n"), "x");
        }
    }
}
