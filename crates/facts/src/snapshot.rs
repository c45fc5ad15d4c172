//! Everything once: the snapshot, and the cheap reading of counters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::driver_statistics::DriverStatistics;
use crate::firewall_way::Subject;
use crate::links::RawLink;
use crate::netlink::{Netlink, NetlinkError};
use crate::offloads::Ethtool;
use crate::outer_links::OuterLinks;
use crate::processes::Descriptors;
use crate::tunnels::{Carrier, Reading};
use crate::{
    Connections, ConnectionsWanted, Counters, Facts, Known, Link, PeerCounters, QdiscCounters,
    Scope, Tunnel, driver_statistics, drivers, firewall, hardware, host, interrupts,
    kernel_wireguard, link_detail, links, outer_links, proc_net, proc_stat, processes, programs,
    quota, routes, softnet, sysctls, tcp_sockets, throttling, tunnels,
};

/// Reads everything once, in the calling thread's network namespace.
///
/// Never fails as a whole: what could not be read is [`Known::Unknown`] with the reason. Runs `nft` and asks
/// programs for their versions; takes a few hundred milliseconds at most unless a program or a daemon hangs, then
/// up to their time limits (1 to 2 s each).
pub fn snapshot(scope: &Scope) -> Facts {
    thread::scope(|threads| {
        // A new thread is in the network namespace of the thread that starts it.
        let programs = threads.spawn(programs::versions);
        let firewall = threads.spawn(firewall::read);
        let now = unix_time();
        let mut netlink = links::open();
        let raw_links = all_links(&mut netlink);
        let readings = tunnels::read(scope, &raw_links, now);
        let in_question = scope.peer.as_deref();
        let seen = counters_of(&mut netlink, &raw_links, &readings, in_question);
        let counters = seen.counters;
        let descriptors = if readings.is_empty() {
            Descriptors::default()
        } else {
            Descriptors::read()
        };
        let tunnels = tunnels::describe(readings, &descriptors);
        let routes = netlink.as_mut().map_or_else(
            |_| Vec::new(),
            |netlink| routes::of_tunnels(netlink, &tunnels, in_question, &raw_links),
        );
        let host = host::host();
        let cpu = host::cpu(counters.cores.len());
        let links = describe(
            &mut netlink,
            &raw_links,
            &tunnels,
            &seen.way.all,
            &seen.drivers,
        );
        let subjects = subjects(&tunnels, named(&seen.way.routed, &raw_links));
        let filter = firewall
            .join()
            .unwrap_or_else(|_| Err("reading the packet filter failed".to_owned()))
            .and_then(|rules| firewall::understand(&rules, &subjects))
            .into();
        Facts {
            taken_at: now,
            hardware: hardware::read(&cpu.flags, &counters.processes),
            kernel_wireguard: kernel_wireguard::read(&host.kernel),
            connections: connections_through(&tunnels, &links, &descriptors),
            outer_links: named(&seen.way.all, &raw_links),
            host,
            cpu,
            links,
            sysctls: sysctls::all(),
            routes,
            tunnels,
            firewall: filter,
            programs: programs.join().unwrap_or_default(),
            counters,
        }
    })
}

/// Reads the counters, in the calling thread's network namespace. Takes a few milliseconds, and starts no program
/// but `ethtool` where an outer link is a card; a section that cannot be read is empty.
pub fn counters(scope: &Scope) -> Counters {
    let mut netlink = links::open();
    let raw_links = all_links(&mut netlink);
    let readings = tunnels::read(scope, &raw_links, unix_time());
    let in_question = scope.peer.as_deref();
    counters_of(&mut netlink, &raw_links, &readings, in_question).counters
}

/// Age of the last handshake with each peer that ever had one, seconds, by public key; of a key that several devices
/// have as a peer, the latest. As cheap as [`counters`].
pub fn handshakes(scope: &Scope) -> BTreeMap<String, f64> {
    let mut netlink = links::open();
    let raw_links = all_links(&mut netlink);
    let mut ages: BTreeMap<String, f64> = BTreeMap::new();
    for reading in tunnels::read(scope, &raw_links, unix_time()) {
        for peer in reading.device.into_iter().flat_map(|device| device.peers) {
            if let Some(age) = peer.handshake_age {
                let latest = ages.entry(peer.public_key).or_insert(age);
                *latest = latest.min(age);
            }
        }
    }
    ages
}

/// The counters, and what had to be found out for them.
struct Seen {
    counters: Counters,
    way: OuterLinks,
    drivers: BTreeMap<String, Result<DriverStatistics, String>>,
}

fn counters_of(
    netlink: &mut Result<Netlink, NetlinkError>,
    raw_links: &[RawLink],
    readings: &[Reading],
    in_question: Option<&str>,
) -> Seen {
    let mut peers: BTreeMap<String, PeerCounters> = BTreeMap::new();
    let mut socket_drops = BTreeMap::new();
    let devices = readings
        .iter()
        .filter_map(|reading| {
            let statistics = reading.statistics.as_ref()?.value()?;
            Some((reading.link.name.clone(), statistics.counters()))
        })
        .collect();
    for reading in readings {
        let Ok(device) = &reading.device else {
            continue;
        };
        for peer in &device.peers {
            // One key can be a peer of two devices.
            let sum = peers.entry(peer.public_key.clone()).or_default();
            sum.rx_bytes = sum.rx_bytes.saturating_add(peer.rx_bytes);
            sum.tx_bytes = sum.tx_bytes.saturating_add(peer.tx_bytes);
        }
        for socket in tunnels::sockets(reading).value().into_iter().flatten() {
            socket_drops.insert(socket.inode.to_string(), socket.drops.into());
        }
    }
    let way = netlink.as_mut().map_or_else(
        |_| OuterLinks::default(),
        |netlink| outer_links::of_tunnels(netlink, readings, in_question, raw_links),
    );
    let cards: Vec<PathBuf> = raw_links
        .iter()
        .filter(|link| way.all.contains(&link.index) && link.kind.is_none())
        .filter_map(drivers::directory)
        .filter(|directory| directory.join("device").exists())
        .collect();
    let drivers = driver_statistics::of_links(
        cards
            .iter()
            .filter_map(|directory| Some(directory.file_name()?.to_str()?.to_owned()))
            .collect(),
    );
    let (online, cores) = proc_stat::cores();
    let irqs: Vec<u32> = cards
        .iter()
        .flat_map(|directory| interrupts::of_device(&directory.join("device")))
        .collect();
    let counters = Counters {
        at: monotonic_time(),
        cores,
        protocols: proc_net::protocols(),
        softnet: softnet::rows(),
        links: raw_links
            .iter()
            .filter_map(|link| Some((link.name.clone(), link.counters?)))
            .collect(),
        peers,
        socket_drops,
        qdiscs: named_qdiscs(netlink, raw_links),
        processes: processes::times(),
        devices,
        drivers: drivers
            .iter()
            .filter_map(|(name, read)| Some((name.clone(), read.as_ref().ok()?.losses.clone())))
            .collect(),
        interrupts: interrupts::counts(&irqs, &online),
        softirqs: interrupts::softirqs(&online),
        throttling: throttling::read(&online),
        conntrack: sysctls::conntrack_table(),
        quotas: readings
            .iter()
            .filter_map(|reading| {
                let Carrier::Userspace {
                    listener: Some(pid),
                } = reading.carrier
                else {
                    return None;
                };
                Some((reading.link.name.clone(), quota::of_process(pid)?))
            })
            .collect(),
    };
    Seen {
        counters,
        way,
        drivers,
    }
}

/// Those of the tunnels' own addresses, and those to addresses behind their peers.
fn connections_through(
    tunnels: &[Tunnel],
    links: &[Link],
    descriptors: &Descriptors,
) -> Known<Connections> {
    let own = links
        .iter()
        .filter(|link| tunnels.iter().any(|tunnel| tunnel.name == link.name))
        .flat_map(|link| &link.addresses)
        .filter_map(|address| address.split('/').next()?.parse().ok());
    let peers = tunnels
        .iter()
        .filter_map(|tunnel| tunnel.peers.value())
        .flatten();
    let mut connections = tcp_sockets::connections(&ConnectionsWanted {
        local: own.collect(),
        remote: peers
            .flat_map(|peer| peer.allowed_ips.iter().cloned())
            .collect(),
        except: Vec::new(),
        ports: Vec::new(),
    });
    if let Known::Value(found) = &mut connections {
        for listener in &mut found.listeners {
            listener.holder = descriptors.holder(listener.inode);
        }
    }
    connections
}

/// The tunnels as the packet filter may know them.
fn subjects(tunnels: &[Tunnel], mut outer_interfaces: Vec<String>) -> Vec<Subject> {
    outer_interfaces.sort_unstable();
    outer_interfaces.dedup();
    let subject = |tunnel: &Tunnel| {
        let endpoints = || {
            let peers = tunnel.peers.value().into_iter().flatten();
            peers.filter_map(|peer| peer.endpoint)
        };
        // Without any endpoint it may be reached by either.
        let any = endpoints().next().is_none();
        Subject {
            interface: [tunnel.name.clone()],
            outer_interfaces: outer_interfaces.clone(),
            listen_port: tunnel.listen_port,
            fwmark: tunnel.fwmark,
            outer_ipv4: any || endpoints().any(|endpoint| endpoint.is_ipv4()),
            outer_ipv6: any || endpoints().any(|endpoint| endpoint.is_ipv6()),
        }
    };
    tunnels.iter().map(subject).collect()
}

fn named(indices: &[u32], links: &[RawLink]) -> Vec<String> {
    indices
        .iter()
        .filter_map(|index| links.iter().find(|link| link.index == *index))
        .map(|link| link.name.clone())
        .collect()
}

fn all_links(netlink: &mut Result<Netlink, NetlinkError>) -> Vec<RawLink> {
    netlink
        .as_mut()
        .ok()
        .and_then(|netlink| links::links(netlink).ok())
        .unwrap_or_default()
}

fn named_qdiscs(
    netlink: &mut Result<Netlink, NetlinkError>,
    raw_links: &[RawLink],
) -> BTreeMap<String, QdiscCounters> {
    let qdiscs = netlink
        .as_mut()
        .ok()
        .and_then(|netlink| links::qdiscs(netlink).ok())
        .unwrap_or_default();
    raw_links
        .iter()
        .filter_map(|link| Some((link.name.clone(), *qdiscs.get(&link.index)?)))
        .collect()
}

fn describe(
    netlink: &mut Result<Netlink, NetlinkError>,
    raw_links: &[RawLink],
    tunnels: &[Tunnel],
    way: &[u32],
    drivers: &BTreeMap<String, Result<DriverStatistics, String>>,
) -> Vec<Link> {
    let mut addresses = netlink
        .as_mut()
        .ok()
        .and_then(|netlink| links::addresses(netlink).ok())
        .unwrap_or_default();
    let mut ethtool = Ethtool::open().map_err(|error| error.to_string());
    let name_of = |index: Option<u32>| {
        let link = raw_links.iter().find(|link| Some(link.index) == index)?;
        Some(link.name.clone())
    };
    raw_links
        .iter()
        .map(|link| Link {
            index: link.index,
            driver: drivers::driver(link),
            name: link.name.clone(),
            kind: link.kind.clone(),
            up: link.up,
            mtu: link.mtu,
            speed: match &ethtool {
                Ok(ethtool) => ethtool
                    .speed(link.index)
                    .ok_or("the driver tells no speed")
                    .into(),
                Err(reason) => Known::because(reason.clone()),
            },
            addresses: addresses.remove(&link.index).unwrap_or_default(),
            qdisc: link
                .qdisc
                .clone()
                .ok_or("the kernel names no queueing discipline for it")
                .into(),
            offloads: match &mut ethtool {
                Ok(ethtool) => ethtool.features(link.index).into(),
                Err(reason) => Known::because(reason.clone()),
            },
            tx_queue_len: link.tx_queue_len,
            parent: name_of(link.parent),
            master: name_of(link.master),
            forwards_ipv4: link.forwards_ipv4,
            forwards_ipv6: link.forwards_ipv6,
            detail: if way.contains(&link.index)
                || tunnels.iter().any(|tunnel| tunnel.name == link.name)
            {
                Known::Value(link_detail::read(
                    link,
                    &mut ethtool,
                    drivers.get(&link.name),
                ))
            } else {
                Known::because("it is neither a tunnel nor on the way to a peer")
            },
        })
        .collect()
}

fn unix_time() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

pub(crate) fn monotonic_time() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
