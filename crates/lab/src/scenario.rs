//! A scenario: hosts, links, road, tunnel and fault in one readable TOML file, and the finding it must produce.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wirespeed_words::{Language, language, quoted, say};

use crate::LabError;
use crate::units::Mtu;

mod fault;
mod findings;
mod road;
mod tunnel;

pub use fault::{Cable, Fault, HostSpec, MachineSpec};
pub use findings::Findings;
pub use road::{Fate, Nat, Road, RoadDirection, Way};
pub(crate) use tunnel::ROOMY_SOCKET_BUFFER;
pub use tunnel::{PerEnd, TunnelSpec};

/// The code of a scenario in which nothing is wrong.
pub const HEALTHY: &str = "healthy";

/// Largest scenario file that is read, in bytes.
const LARGEST_FILE: u64 = 64 * 1024;

/// A practice road and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name: lower-case letters, digits and hyphens.
    pub name: String,
    /// One line: what is practised here.
    pub description: String,
    /// The same in French; a scenario of one's own may do without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_fr: Option<String>,
    /// Which hosts there are and how they are joined.
    pub topology: Topology,
    /// What `wirespeed doctor` must find, and nothing else of severity warning or worse; [`HEALTHY`] = nothing at all.
    pub finding: Findings,
    /// Codes that it may find besides, with severity info.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub info: Vec<String>,
    /// Codes that it may find as consequences of these, with severity warning or worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// Is it among those that every change is tested with?
    #[serde(default)]
    pub ci: bool,
    /// What `wirespeed doctor` is told besides (`["--expect", "200mbit"]`).
    #[serde(default)]
    pub doctor_args: Vec<String>,
    /// The cables.
    #[serde(default)]
    pub links: Links,
    /// The road between the ends.
    #[serde(default)]
    pub road: Road,
    /// The road between hub and server, in the topology that has one; left out: like the first, but without a NAT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_road: Option<Road>,
    /// The tunnel over it.
    #[serde(default)]
    pub tunnel: TunnelSpec,
    /// What goes wrong besides the road and the tunnel's own parameters.
    #[serde(default)]
    pub fault: Fault,
    /// Host name (or `all`) to its settings; a host's own entry wins over `all`.
    #[serde(default)]
    pub hosts: BTreeMap<String, HostSpec>,
    /// Settings of the whole machine.
    #[serde(default)]
    pub machine: MachineSpec,
}

/// Which hosts there are and how they are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// `client – road – server`: the tunnel ends on the hosts that use it.
    ClientServer,
    /// `source – gw1 – road – gw2 – sink`: two sites, each behind its gateway.
    SiteToSite,
    /// `client – road – hub – road2 – server`: a tunnel to the hub, and another from there.
    Hub,
}

/// The cables (veth pairs) of the whole lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl Scenario {
    /// What is practised here, in the language of the moment where the scenario has it.
    pub fn said(&self) -> &str {
        match (language(), &self.description_fr) {
            (Language::French, Some(french)) => french,
            _ => &self.description,
        }
    }

    /// Reads a scenario; an error names the line.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, LabError> {
        let bad = |why: String| LabError::Scenario {
            origin: origin.to_owned(),
            why,
        };
        let scenario: Scenario = toml::from_str(text).map_err(|e| bad(toml_said(text, &e)))?;
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
            let most = LARGEST_FILE.to_string();
            return Err(bad(say!("lab-scenario-file", most = most)));
        }
        let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
        Scenario::parse(&text, &origin)
    }

    /// The settings of a host: `all`, then its own.
    pub fn host(&self, name: &str) -> HostSpec {
        let all = self.hosts.get("all").cloned().unwrap_or_default();
        match self.hosts.get(name) {
            Some(own) => all.with(own),
            None => all,
        }
    }

    /// The road of a leg: 0 = from the first end on, 1 = from the hub on.
    pub(crate) fn road_of(&self, leg: usize) -> Road {
        match (leg, &self.second_road) {
            (0, _) => self.road.clone(),
            (_, Some(second)) => second.clone(),
            (_, None) => Road {
                nat: None,
                ..self.road.clone()
            },
        }
    }

    /// What TOML's types can't say.
    fn check(&self) -> Result<(), String> {
        if !is_plain(&self.name) || self.name.len() > 40 {
            return Err(say!("lab-scenario-name", name = quoted(&self.name)));
        }
        for (key, codes) in [("info", &self.info), ("consequences", &self.consequences)] {
            if let Some(code) = codes.iter().find(|code| !is_code(code)) {
                return Err(at(key, &say!("lab-scenario-code", code = code)));
            }
        }
        self.check_road("road", &self.road)?;
        if let Some(second) = &self.second_road {
            if self.topology != Topology::Hub {
                return Err(at("second_road", &say!("lab-scenario-only-hub")));
            }
            if second.nat.is_some() {
                return Err(at("second_road", &say!("lab-scenario-second-nat")));
            }
            self.check_road("second_road", second)?;
        }
        if let Some(program) = &self.tunnel.implementation {
            program
                .parse::<crate::Implementation>()
                .map_err(|error| at("tunnel", &error.said()))?;
        }
        if self.tunnel.inside.is_some()
            && (self.topology == Topology::Hub || self.road.nat.is_some())
        {
            return Err(at("tunnel", &say!("lab-scenario-inside")));
        }
        if let Some(cores) = self.fault.daemon_quota
            && !(0.01..=64.0).contains(&cores)
        {
            return Err(at("fault", &say!("lab-scenario-quota")));
        }
        let known = self.topology.hosts();
        for (host, spec) in &self.hosts {
            if host != "all" && !known.contains(&host.as_str()) {
                let known = known.join(", ");
                let no_such = say!("lab-scenario-host", host = host, known = known);
                return Err(at("hosts", &no_such));
            }
            spec.check()
                .map_err(|why| at(&format!("hosts.{host}"), &why))?;
        }
        self.machine.check().map_err(|why| at("machine", &why))
    }

    fn check_road(&self, name: &str, road: &Road) -> Result<(), String> {
        for direction in [RoadDirection::Up, RoadDirection::Down] {
            road.way(direction)
                .check(self.links.mtu)
                .map_err(|why| at(name, &why))?;
        }
        if let Some(nat) = &road.nat
            && nat.udp_timeout.duration().as_secs() == 0
        {
            return Err(at(
                &format!("{name}.nat"),
                &say!("lab-scenario-udp-timeout"),
            ));
        }
        Ok(())
    }
}

/// Where it is in the file, and what the parser says of it, in one line.
fn toml_said(text: &str, error: &toml::de::Error) -> String {
    let words: Vec<&str> = error.message().split_whitespace().collect();
    let words = words.join(" ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return say!("lab-scenario-toml", words = words);
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    say!(
        "lab-scenario-toml-at",
        line = line.to_string(),
        column = column.to_string(),
        words = words
    )
}

/// What is wrong with a key or a table of the file.
fn at(key: &str, why: &str) -> String {
    say!("lab-scenario-at", key = key, why = why)
}

/// Lower-case letters, digits and hyphens.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Can it be the code of a cause?
fn is_code(text: &str) -> bool {
    is_plain(text) && text != HEALTHY && text.len() <= 40
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape serde asks for"
)]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_words::within;

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
        assert!(said("consequences = [\"A b\"]\n").contains("consequences: `A b` is no code"));
        assert!(said("[hosts.sink]\n").contains("there is no `sink` here"));
        assert!(said("[hosts.all.sysctls]\n\"kernel.panic\" = \"1\"\n").contains("net."));
        assert!(said("[tunnel]\nmtu = [1420, 1280, 3]\n").contains("line 7"));
        assert!(said("[second_road]\n").contains("only the topology `hub`"));
        assert!(said("[road.both]\nreorder_by = \"2ms\"\n").contains("needs a share"));
        assert!(said("[hosts.client]\nconntrack_entries = 9\n").contains("conntrack = true"));
        assert!(said("[hosts.client]\necho_requests = 0\n").contains("at least 1"));
        assert!(
            said("[hosts.client.offloads]\nroad = { \"--x\" = true }\n").contains("no feature")
        );
        assert!(said("name = \"again\"\n").contains("line 6, column 1: duplicate key"));
        let text = said("[machine.sysctls]\n\"net.ipv4.ip_forward\" = \"1\"\n");
        assert!(text.contains("net.core.netdev_budget"), "{text}");
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_in_the_reader_s_language() {
        for text in [
            "root:x:0:0:root:/root:/bin/bash\n".to_owned(),
            "name".to_owned(),
            SMALL.replace("healthy", "A b"),
            SMALL.replace("small", "No Name"),
            format!("{SMALL}consequences = [\"A b\"]\n"),
            format!("{SMALL}[road.both]\nqueue = \"20ms\"\n"),
            format!("{SMALL}[hosts.sink]\n"),
            format!("{SMALL}[tunnel]\nimplementation = \"nonsense\"\n"),
        ] {
            let said = Language::ALL.map(|language| {
                within(language, || {
                    Scenario::parse(&text, "file.toml").unwrap_err().said()
                })
            });
            for said in &said {
                assert_eq!(said.lines().count(), 1, "{said}");
                assert!(said.contains("wirespeed lab list"), "{said}");
            }
            let [english, french] = said;
            assert!(english.contains("; "), "{english}");
            for word in [" line ", " is ", " no ", "needs", "use up"] {
                let own: Vec<&str> = french
                    .split(['«', '»'])
                    .step_by(2)
                    .filter(|part| part.contains(word))
                    .collect();
                assert!(own.is_empty(), "{word:?} in {french}");
            }
        }
    }

    #[test]
    fn the_guide_s_example_is_a_scenario() {
        let guide = include_str!("../../../docs/lab.md");
        let example = guide.split("```").nth(1).unwrap();
        Scenario::parse(example.trim_start_matches("toml"), "docs/lab.md").unwrap();
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
            key in prop::sample::select(vec![
                "rate", "mtu", "delay", "loss", "queue", "icmp", "reorder", "reorder_by", "duplicate", "collapse_above", "udp_rate", "udp_port",
            ]),
            value in "[0-9.eE+-]{0,12}[a-z%]{0,6}", quoted: bool,
        ) {
            let value = if quoted { format!("\"{value}\"") } else { value };
            let _ = Scenario::parse(&format!("{SMALL}[road.both]\nrate = \"1mbit\"\n[road.up]\n{key} = {value}\n"), "x");
        }
    }
}
