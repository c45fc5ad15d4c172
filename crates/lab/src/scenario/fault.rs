//! What is wrong besides the road and the tunnel's own parameters, and the settings of hosts and machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirespeed_words::say;

use super::is_zero;
use crate::Fate;
use crate::units::Span;

/// As many rules are more than any list that people wrote by hand, and load within a second or two.
const MOST_RULES: u32 = 50_000;

/// What goes wrong besides the road and the tunnel's own parameters; made after the tunnel was seen to work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// The first end gets a second peer that takes over the allowed IPs of the real one.
    pub duplicate_allowed_ips: bool,
    /// Other work at the second end: so many processes, each of which takes all the processor it can get.
    #[serde(skip_serializing_if = "is_zero")]
    pub busy_jobs: u16,
    /// So many cores may the daemon of the second end use at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_quota: Option<f64>,
    /// A program at the second end listens with a queue of so many connections and takes ten a second from it, while the
    /// first end opens a hundred a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_queue: Option<u16>,
    /// The hosts that use the tunnel (behind the gateways, where there are any) transfer to each other all the time.
    pub transfers: bool,
    /// So long after `up` the second end's tunnel interface goes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vanish_after: Option<Span>,
    /// Silence after everything is set up, before `up` ends (a NAT's mapping expires).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
}

/// Settings of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// TCP congestion control of the host; `cubic` unless told, as on a plain Debian.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// More sysctls by their dotted name; only `net.…`, which belong to the namespace.
    pub sysctls: BTreeMap<String, String>,
    /// What the host's firewall does with the ICMP errors that the host itself would send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icmp: Option<Fate>,
    /// So many echo requests a second does the host's firewall let in, and a handful at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_requests: Option<u16>,
    /// Rules that every packet passes, one by one, on its way in, out and through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall_rules: Option<u32>,
    /// A firewall that follows connections, and drops what belongs to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conntrack: Option<bool>,
    /// Flows that this host has in its table from the start, beside those of the lab; needs `conntrack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conntrack_entries: Option<u16>,
    /// Interface (`road`, `site` or `tunnel`) to features as `ethtool -K` names them, on or off.
    pub offloads: BTreeMap<Cable, BTreeMap<String, bool>>,
}

/// An interface of a host by what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Cable {
    /// To the road.
    Road,
    /// To the site behind a gateway.
    Site,
    /// The tunnel.
    Tunnel,
}

impl HostSpec {
    /// This with everything that `own` says besides or otherwise.
    pub(crate) fn with(mut self, own: &HostSpec) -> HostSpec {
        let HostSpec {
            congestion_control,
            sysctls,
            icmp,
            echo_requests,
            firewall_rules,
            conntrack,
            conntrack_entries,
            offloads,
        } = own.clone();
        self.congestion_control = congestion_control.or(self.congestion_control);
        self.sysctls.extend(sysctls);
        self.icmp = icmp.or(self.icmp);
        self.echo_requests = echo_requests.or(self.echo_requests);
        self.firewall_rules = firewall_rules.or(self.firewall_rules);
        self.conntrack = conntrack.or(self.conntrack);
        self.conntrack_entries = conntrack_entries.or(self.conntrack_entries);
        for (cable, features) in offloads {
            self.offloads.entry(cable).or_default().extend(features);
        }
        self
    }

    /// What the types can't say.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.congestion_control
            && !name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        {
            return Err(say!("lab-scenario-control", name = name));
        }
        for name in self.sysctls.keys() {
            let fine = name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
            if !name.starts_with("net.") || name.contains("..") || !fine {
                return Err(say!("lab-scenario-sysctl-not-own", name = name));
            }
        }
        if self.echo_requests == Some(0) {
            return Err(say!("lab-scenario-echo-requests"));
        }
        if self.firewall_rules > Some(MOST_RULES) {
            return Err(say!("lab-scenario-rules", most = MOST_RULES.to_string()));
        }
        if self.conntrack_entries.is_some() && self.conntrack != Some(true) {
            return Err(say!(
                "lab-scenario-needs",
                key = "conntrack_entries",
                other = "conntrack = true"
            ));
        }
        for feature in self.offloads.values().flat_map(BTreeMap::keys) {
            let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            if feature.is_empty() || feature.starts_with('-') || !feature.bytes().all(fine) {
                return Err(say!("lab-scenario-feature", name = feature));
            }
        }
        Ok(())
    }
}

/// Settings of the whole machine, which the lab changes for as long as it is up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MachineSpec {
    /// Sysctl by its dotted name to the value; only those in [`MachineSpec::SYSCTLS`].
    pub sysctls: BTreeMap<String, String>,
}

impl MachineSpec {
    /// Sysctls that no namespace has of its own and that a lab may change: none of them cuts a connection.
    pub const SYSCTLS: [&str; 5] = [
        "net.core.dev_weight",
        "net.core.netdev_budget",
        "net.core.netdev_budget_usecs",
        "net.core.netdev_max_backlog",
        "net.netfilter.nf_conntrack_max",
    ];

    /// Is every one of them known, and a number?
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, value) in &self.sysctls {
            if !Self::SYSCTLS.contains(&name.as_str()) {
                return Err(say!(
                    "lab-scenario-sysctl",
                    name = name,
                    known = Self::SYSCTLS.join(", ")
                ));
            }
            if value.parse::<u32>().is_err() {
                return Err(say!("lab-scenario-no-number", name = name, value = value));
            }
        }
        Ok(())
    }
}
