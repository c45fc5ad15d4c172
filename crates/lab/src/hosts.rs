//! Hosts and cables: namespaces, their settings, veth pairs, addresses and routes.

use std::collections::BTreeSet;
use std::fs;

use crate::command::Runner;
use crate::topology::{ROAD, Site};
use crate::{Lab, LabError, netns};

/// Congestion control of a plain Debian.
const DEFAULT_CONGESTION: &str = "cubic";

/// Settings of every namespace: packets are judged by routes alone, and nothing but the lab's own packets is on the road.
const EVERYWHERE: [(&str, &str); 6] = [
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    ("net.ipv4.conf.default.send_redirects", "0"),
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
];

/// Every congestion control that a host of the lab wants.
pub(crate) fn congestion_controls(lab: &Lab) -> BTreeSet<String> {
    lab.hosts
        .iter()
        .map(|h| congestion_of(lab, &h.name))
        .collect()
}

fn congestion_of(lab: &Lab, host: &str) -> String {
    lab.scenario
        .host(host)
        .congestion_control
        .unwrap_or_else(|| DEFAULT_CONGESTION.to_owned())
}

/// Makes the namespaces and gives them their settings. What could not be set for the sake of the host is noted.
pub(crate) fn make(runner: &Runner, lab: &mut Lab) -> Result<(), LabError> {
    let mut notes = Vec::new();
    for host in &lab.hosts {
        let mut add = std::process::Command::new("ip");
        add.args(["netns", "add", &host.namespace]);
        runner.run(&format!("make host {}", host.name), add, None)?;
        runner.ip(
            &format!("on {}, switch loopback on", host.name),
            &host.name,
            "link set lo up",
        )?;
        let forwards = host.name == ROAD || host.name.starts_with("gw");
        let congestion = congestion_of(lab, &host.name);
        let spec = lab.scenario.host(&host.name);
        netns::inside(&netns::path(&host.namespace), || {
            let set = |name: &str, value: &str| {
                set_sysctl(name, value).map_err(|why| LabError::Setting {
                    host: host.name.clone(),
                    why,
                })
            };
            for (name, value) in EVERYWHERE {
                // A kernel without IPv6 has nothing to switch off.
                if !name.starts_with("net.ipv6")
                    || fs::exists("/proc/sys/net/ipv6").unwrap_or(false)
                {
                    set(name, value)?;
                }
            }
            set("net.ipv4.ip_forward", if forwards { "1" } else { "0" })?;
            if let Err(why) = set_sysctl("net.ipv4.tcp_congestion_control", &congestion) {
                let kept = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
                    .unwrap_or_default();
                notes.push(format!(
                    "{} keeps congestion control {}: {why}",
                    host.name,
                    kept.trim()
                ));
            }
            for (name, value) in &spec.sysctls {
                set(name, value)?;
            }
            Ok(())
        })?;
    }
    lab.notes.append(&mut notes);
    Ok(())
}

/// Writes a sysctl of the caller's network namespace.
pub(crate) fn set_sysctl(name: &str, value: &str) -> Result<(), String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::write(&path, value).map_err(|e| format!("sysctl {name} = {value}: {e}"))
}

/// Lays the cables and sets addresses and routes.
pub(crate) fn connect(runner: &Runner, lab: &Lab) -> Result<(), LabError> {
    let ends = lab.scenario.topology.ends();
    for (i, end) in ends.iter().enumerate() {
        cable(runner, lab, (end.host, "road"), (ROAD, end.host))?;
        let step = format!("give {} its address on the road", end.host);
        runner.ip(
            &step,
            end.host,
            &format!("addr add {}/24 dev road", end.road_address),
        )?;
        runner.ip(
            &step,
            ROAD,
            &format!("addr add {}/24 dev {}", end.road_gateway, end.host),
        )?;
        // Behind a translating road nobody knows the way to the first end.
        if i == 0 || lab.scenario.road.nat.is_none() {
            let step = format!("route {} over the road", end.host);
            runner.ip(
                &step,
                end.host,
                &format!("route add default via {}", end.road_gateway),
            )?;
        }
        if let Some(site) = end.site {
            connect_site(runner, lab, end.host, site)?;
        }
    }
    Ok(())
}

fn connect_site(runner: &Runner, lab: &Lab, gateway: &str, site: Site) -> Result<(), LabError> {
    cable(runner, lab, (gateway, "site"), (site.host, gateway))?;
    let step = format!("give {} its address", site.host);
    runner.ip(
        &step,
        gateway,
        &format!("addr add {}/24 dev site", site.gateway_address),
    )?;
    runner.ip(
        &step,
        site.host,
        &format!("addr add {}/24 dev {gateway}", site.host_address),
    )?;
    runner.ip(
        &step,
        site.host,
        &format!("route add default via {}", site.gateway_address),
    )?;
    Ok(())
}

/// A veth pair between `(host, interface name there)` and another.
fn cable(runner: &Runner, lab: &Lab, a: (&str, &str), b: (&str, &str)) -> Result<(), LabError> {
    let step = format!("lay the cable {} – {}", a.0, b.0);
    let mtu = lab.scenario.links.mtu.bytes();
    let other = lab.id.namespace(b.0);
    let line = format!(
        "link add {} mtu {mtu} type veth peer name {} mtu {mtu} netns {other}",
        a.1, b.1
    );
    runner.ip(&step, a.0, &line)?;
    for (host, interface) in [a, b] {
        if !lab.scenario.links.offloads {
            let off = [
                "tso",
                "off",
                "gso",
                "off",
                "gro",
                "off",
                "tx-udp-segmentation",
                "off",
            ];
            let line: Vec<&str> = ["ethtool", "-K", interface]
                .into_iter()
                .chain(off)
                .collect();
            runner.exec(&step, host, &line, None)?;
        }
        runner.ip(&step, host, &format!("link set {interface} up"))?;
    }
    Ok(())
}
