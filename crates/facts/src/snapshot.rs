//! Everything once: the snapshot, and the cheap reading of counters.

use std::collections::BTreeMap;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::links::RawLink;
use crate::netlink::{Netlink, NetlinkError};
use crate::offloads::Ethtool;
use crate::tunnels::Reading;
use crate::{
    Counters, Facts, Known, Link, PeerCounters, QdiscCounters, Scope, drivers, firewall, host,
    links, proc_net, proc_stat, processes, programs, routes, softnet, sysctls, tunnels,
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
        let counters = counters_of(&mut netlink, &raw_links, &readings);
        let tunnels = tunnels::describe(readings);
        let routes = netlink.as_mut().map_or_else(
            |_| Vec::new(),
            |netlink| routes::of_tunnels(netlink, &tunnels, &raw_links),
        );
        Facts {
            taken_at: now,
            host: host::host(),
            cpu: host::cpu(counters.cores.len()),
            links: describe(&mut netlink, raw_links),
            sysctls: sysctls::all(),
            routes,
            tunnels,
            firewall: firewall
                .join()
                .unwrap_or_else(|_| Known::because("reading the packet filter failed")),
            programs: programs.join().unwrap_or_default(),
            counters,
            ..Facts::default()
        }
    })
}

/// Reads the counters, in the calling thread's network namespace. Takes a few milliseconds and starts no program;
/// a section that cannot be read is empty.
pub fn counters(scope: &Scope) -> Counters {
    let mut netlink = links::open();
    let raw_links = all_links(&mut netlink);
    let readings = tunnels::read(scope, &raw_links, unix_time());
    counters_of(&mut netlink, &raw_links, &readings)
}

fn counters_of(
    netlink: &mut Result<Netlink, NetlinkError>,
    raw_links: &[RawLink],
    readings: &[Reading],
) -> Counters {
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
    Counters {
        at: monotonic_time(),
        cores: proc_stat::cores(),
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
        ..Counters::default()
    }
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

fn describe(netlink: &mut Result<Netlink, NetlinkError>, raw_links: Vec<RawLink>) -> Vec<Link> {
    let mut addresses = netlink
        .as_mut()
        .ok()
        .and_then(|netlink| links::addresses(netlink).ok())
        .unwrap_or_default();
    let mut ethtool = Ethtool::open().map_err(|error| error.to_string());
    raw_links
        .into_iter()
        .map(|link| Link {
            index: link.index,
            driver: drivers::driver(&link),
            name: link.name,
            kind: link.kind,
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
                .ok_or("the kernel names no queueing discipline for it")
                .into(),
            offloads: match &mut ethtool {
                Ok(ethtool) => ethtool.features(link.index).into(),
                Err(reason) => Known::because(reason.clone()),
            },
            tx_queue_len: link.tx_queue_len,
            ..Link::default()
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
