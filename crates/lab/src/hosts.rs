//! Hosts and cables: namespaces, their settings, veth pairs, addresses and routes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;

use wirespeed_words::say;

use crate::command::Runner;
use crate::topology::{Leg, Site};
use crate::{Cable, Fate, HostSpec, Lab, LabError, netns};

/// Congestion control of a plain Debian.
const DEFAULT_CONGESTION: &str = "cubic";

/// How long the table of connections keeps a flow that nobody has answered, in seconds.
const FLOW_TIMEOUT: &str = "net.netfilter.nf_conntrack_udp_timeout";

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
        let forwards = ["road", "gw", "hub"]
            .iter()
            .any(|router| host.name.starts_with(router));
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
                notes.push(say!(
                    "lab-note-keeps-control",
                    host = &host.name,
                    kept = kept.trim(),
                    why = why
                ));
            }
            // Some of them appear with the connection tracking of the firewall.
            if spec.conntrack == Some(true) {
                set(FLOW_TIMEOUT, "3600")?;
            }
            for (name, value) in &spec.sysctls {
                set(name, value)?;
            }
            Ok(())
        })?;
        set_up_firewall(runner, &host.name, &spec)?;
    }
    lab.notes.append(&mut notes);
    Ok(())
}

/// Rules that no packet of the lab matches, for sources in a network that nobody may have (RFC 1112); errors that are kept
/// back; a limit on echo requests; and the usual look at the state of a connection.
fn set_up_firewall(runner: &Runner, host: &str, spec: &HostSpec) -> Result<(), LabError> {
    let mut text = String::new();
    for hook in ["input", "forward", "output"] {
        let _ = writeln!(
            text,
            "chain {hook} {{ type filter hook {hook} priority 0; policy accept;"
        );
        for number in 0..spec.firewall_rules.unwrap_or(0) {
            let _ = writeln!(
                text,
                "ip saddr 240.{}.{}.{} counter drop",
                number >> 16,
                number >> 8 & 255,
                number & 255
            );
        }
        if let ("input", Some(most)) = (hook, spec.echo_requests) {
            let _ = writeln!(
                text,
                "icmp type echo-request limit rate over {most}/second counter drop"
            );
        }
        if hook == "output" && spec.icmp == Some(Fate::Drop) {
            text.push_str("icmp type { destination-unreachable, time-exceeded } counter drop\n");
        }
        if spec.conntrack == Some(true) {
            text.push_str("ct state invalid counter drop\n");
        }
        text.push_str("}\n");
    }
    if !text.contains("counter") {
        return Ok(());
    }
    let step = format!("set up the firewall of {host}");
    let text = format!("table inet firewall {{\n{text}}}\n");
    runner.exec(&step, host, &["nft", "-f", "-"], Some(&text))?;
    Ok(())
}

/// Switches features of interfaces that there are on or off, as the scenario says.
pub(crate) fn set_offloads(runner: &Runner, lab: &Lab, tunnels: bool) -> Result<(), LabError> {
    let legs = lab.scenario.topology.legs();
    for host in &lab.hosts {
        for (cable, features) in lab.scenario.host(&host.name).offloads {
            let of_host = |leg: &Leg, i: usize| leg.ends[i].host == host.name;
            let ends = legs
                .iter()
                .flat_map(|leg| [0, 1].map(|i| (leg, i)))
                .filter(|(leg, i)| of_host(leg, *i));
            let interfaces: Vec<String> = match cable {
                Cable::Tunnel => ends
                    .map(|(leg, i)| lab.id.tunnel_interface(leg.interfaces[i]))
                    .collect(),
                Cable::Road => ends.map(|(leg, i)| leg.ends[i].cable.to_owned()).collect(),
                Cable::Site => ends
                    .filter(|(leg, i)| leg.ends[*i].site.is_some())
                    .map(|_| "site".to_owned())
                    .collect(),
            };
            if (cable == Cable::Tunnel) != tunnels || features.is_empty() {
                continue;
            }
            for interface in interfaces {
                let mut line = vec!["ethtool", "-K", &interface];
                for (feature, on) in &features {
                    line.extend([feature.as_str(), if *on { "on" } else { "off" }]);
                }
                let step = format!("set offloads of {interface} on {}", host.name);
                runner.exec(&step, &host.name, &line, None)?;
            }
        }
    }
    Ok(())
}

/// Lets a host have as many flows in its table of connections: a datagram each to a port of the road's, which nobody answers.
pub(crate) fn fill_connection_tables(lab: &Lab) -> Result<(), LabError> {
    let legs = lab.scenario.topology.legs();
    for host in &lab.hosts {
        let Some(flows) = lab.scenario.host(&host.name).conntrack_entries else {
            continue;
        };
        let gateway = legs
            .iter()
            .flat_map(|leg| leg.ends)
            .find(|end| end.host == host.name)
            .map(|end| end.road_gateway);
        let Some(gateway) = gateway else {
            continue;
        };
        netns::inside(&netns::path(&host.namespace), || {
            let failed = |e: std::io::Error| LabError::Setting {
                host: host.name.clone(),
                why: format!("flows for its table of connections: {e}"),
            };
            let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
            for port in 0..flows {
                // What can't be delivered is refused here now and then; it is in the table all the same.
                let _ = socket.send_to(&[0], (gateway, port.wrapping_add(1).max(1)));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes a sysctl of the caller's network namespace.
pub(crate) fn set_sysctl(name: &str, value: &str) -> Result<(), String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::write(&path, value).map_err(|e| format!("sysctl {name} = {value}: {e}"))
}

/// Lays the cables and sets addresses and routes.
pub(crate) fn connect(runner: &Runner, lab: &Lab) -> Result<(), LabError> {
    let legs = lab.scenario.topology.legs();
    for (number, leg) in legs.iter().enumerate() {
        for (i, end) in leg.ends.iter().enumerate() {
            cable(runner, lab, (end.host, end.cable), (leg.road, end.host))?;
            let step = format!("give {} its address on {}", end.host, leg.road);
            let address = format!("addr add {}/24 dev {}", end.road_address, end.cable);
            runner.ip(&step, end.host, &address)?;
            let address = format!("addr add {}/24 dev {}", end.road_gateway, end.host);
            runner.ip(&step, leg.road, &address)?;
            let step = format!("route {} over {}", end.host, leg.road);
            if i == 1 && number + 1 < legs.len() {
                // A hub: it knows the near road's far side, the road knows what is behind the hub, and the hub's own way
                // out is the next leg's.
                let near = format!(
                    "route add {} via {}",
                    leg.ends[0].road_network, end.road_gateway
                );
                runner.ip(&step, end.host, &near)?;
                let on = format!("route add default via {}", end.road_address);
                runner.ip(&step, leg.road, &on)?;
                continue;
            }
            if i == 0 && number > 0 {
                let back = format!("route add default via {}", end.road_address);
                runner.ip(&step, leg.road, &back)?;
            }
            // Behind a translating road nobody knows the way to the first end.
            if i == 0 || lab.scenario.road_of(number).nat.is_none() {
                let out = format!("route add default via {}", end.road_gateway);
                runner.ip(&step, end.host, &out)?;
            }
            if let Some(site) = end.site {
                connect_site(runner, lab, end.host, site)?;
            }
        }
    }
    set_offloads(runner, lab, false)
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
