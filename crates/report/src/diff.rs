//! Two test records side by side: what became faster or slower, and what changed in the machines. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirespeed_facts::{Facts, Implementation, Known};
use wirespeed_measure::{Comparison, Direction, Protocol};
use wirespeed_words::say;

use crate::record::TestRecord;

/// [`Difference::machine`] of this machine and of the other.
pub(crate) const HERE: &str = "here";
const FAR: &str = "far";

/// The difference of two records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Against {
    /// When the earlier record was taken, seconds since the Unix epoch.
    pub then_at: f64,
    /// One per (direction, streams, protocol) that both have.
    pub changes: Vec<Change>,
    /// What differs in the machines.
    pub machines: Vec<Difference>,
}

/// One comparison then and now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Who sends.
    pub direction: Direction,
    /// Parallel connections.
    pub streams: u32,
    /// Transport.
    pub protocol: Protocol,
    /// In the earlier record.
    pub then: Figures,
    /// In this one.
    pub now: Figures,
    /// Ratio now − ratio then, where both are known.
    pub ratio_change: Option<f64>,
    /// Do the two 95 % intervals of the ratio overlap? Then nothing is proved to have changed.
    pub overlap: Option<bool>,
}

/// The figures of one comparison, bit/s and ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Outside the tunnel.
    pub bare: Option<f64>,
    /// Through it.
    pub tunnel: f64,
    /// tunnel / bare.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
}

/// One fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// `here` or `far`, in every language.
    pub machine: String,
    /// Which fact (`kernel`, `wg0 MTU`, `sysctl net.core.rmem_max`).
    pub what: String,
    /// Then.
    pub then: String,
    /// Now.
    pub now: String,
}

/// Compares `now` with the earlier record `then`.
pub fn against(then: &TestRecord, now: &TestRecord) -> Against {
    let changes = now
        .comparisons
        .iter()
        .filter_map(|new| {
            let old = then.comparisons.iter().find(|old| {
                old.direction == new.direction
                    && old.streams == new.streams
                    && old.protocol == new.protocol
            })?;
            Some(change(old, new))
        })
        .collect();
    let mut machines = Vec::new();
    for new in &now.machines {
        let Some(old) = then.machines.iter().find(|old| old.end == new.end) else {
            continue;
        };
        let machine = match new.end {
            wirespeed_doctor::End::Here => HERE,
            wirespeed_doctor::End::Far => FAR,
        };
        let before = described(&old.facts, old.interface.as_deref());
        let after = described(&new.facts, new.interface.as_deref());
        differences(machine, &before, &after, &mut machines);
    }
    Against {
        then_at: then.started_at,
        changes,
        machines,
    }
}

fn change(then: &Comparison, now: &Comparison) -> Change {
    let (then_figures, now_figures) = (figures(then), figures(now));
    let overlap = match (
        then.ratio_low,
        then.ratio_high,
        now.ratio_low,
        now.ratio_high,
    ) {
        (Some(then_low), Some(then_high), Some(now_low), Some(now_high)) => {
            Some(then_low <= now_high && now_low <= then_high)
        }
        _ => None,
    };
    Change {
        direction: now.direction,
        streams: now.streams,
        protocol: now.protocol,
        then: then_figures,
        now: now_figures,
        ratio_change: then.ratio.zip(now.ratio).map(|(then, now)| now - then),
        overlap,
    }
}

fn figures(comparison: &Comparison) -> Figures {
    Figures {
        bare: comparison.bare,
        tunnel: comparison.tunnel,
        ratio: comparison.ratio,
        ratio_low: comparison.ratio_low,
        ratio_high: comparison.ratio_high,
    }
}

/// What matters of a machine for its speed, as name → text. Names of interfaces are taken out of the way:
/// the tunnel's link is always "tunnel" (the same word in both languages).
fn described(facts: &Facts, interface: Option<&str>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut put = |name: String, text: String| {
        all.insert(name, text);
    };
    put(say!("report-fact-kernel"), facts.host.kernel.clone());
    put(say!("report-fact-system"), known(&facts.host.system));
    put(say!("report-fact-cpu"), known(&facts.cpu.model));
    put(say!("report-fact-cores"), facts.cpu.online.to_string());
    put(say!("report-fact-governor"), known(&facts.cpu.governor));
    for (name, value) in &facts.sysctls {
        put(format!("sysctl {name}"), known(value));
    }
    for (name, version) in &facts.programs {
        put(say!("report-fact-program", name = name), known(version));
    }
    for link in &facts.links {
        let name = if Some(link.name.as_str()) == interface {
            "tunnel"
        } else {
            link.name.as_str()
        };
        put(say!("report-fact-mtu", link = name), link.mtu.to_string());
        put(say!("report-fact-qdisc", link = name), known(&link.qdisc));
        if let Known::Value(offloads) = &link.offloads {
            for (feature, on) in offloads {
                let text = if *on {
                    say!("report-fact-on")
                } else {
                    say!("report-fact-off")
                };
                put(
                    say!("report-fact-feature", link = name, feature = feature),
                    text,
                );
            }
        }
    }
    if let Some(tunnel) = facts
        .tunnels
        .iter()
        .find(|tunnel| Some(tunnel.name.as_str()) == interface)
    {
        let by = match &tunnel.implementation {
            Implementation::Kernel => say!("report-fact-by-kernel"),
            Implementation::Userspace { program, .. } => match program {
                Some(program) => say!("report-fact-by-program", program = program),
                None => say!("report-fact-by-userspace"),
            },
        };
        put(say!("report-fact-implementation"), by);
        if let Known::Value(sockets) = &tunnel.sockets {
            for socket in sockets {
                let family = if socket.local.is_ipv4() {
                    "IPv4"
                } else {
                    "IPv6"
                };
                put(
                    say!("report-fact-buffer", family = family),
                    socket.receive_buffer.to_string(),
                );
            }
        }
    }
    if let Known::Value(firewall) = &facts.firewall {
        let rules: usize = firewall.rules_per_hook.values().sum();
        put(say!("report-fact-rules"), rules.to_string());
    }
    all
}

fn known(value: &Known<String>) -> String {
    match value {
        Known::Value(value) => value.clone(),
        Known::Unknown(_) => say!("report-not-known"),
    }
}

fn differences(
    machine: &str,
    then: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    out: &mut Vec<Difference>,
) {
    let absent = || say!("report-fact-absent");
    let mut names: Vec<&String> = then.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        if then.get(name) != now.get(name) {
            out.push(Difference {
                machine: machine.to_owned(),
                what: name.clone(),
                then: then.get(name).cloned().unwrap_or_else(absent),
                now: now.get(name).cloned().unwrap_or_else(absent),
            });
        }
    }
}
