//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Each takes any bytes, gives them to a parser as the crate itself would, and panics when what comes out breaks a
//! promise. Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hint::black_box;

use netlink_packet_core::{NetlinkDeserializable, NetlinkMessage, NetlinkPayload};
use netlink_packet_generic::GenlMessage;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_wireguard::WireguardMessage;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::firewall_way::Subject;
use crate::generic_netlink::Undecoded;
use crate::links::{qdisc_counters, raw_link};
use crate::{
    Connections, CoreTime, Counters, DeviceCounters, EndpointRoute, Known, conntrack, core_list,
    device_statistics, driver_statistics, firewall, generic_netlink, hardware, host, interrupts,
    kernel_wireguard, netlink, offloads, proc_net, proc_stat, processes, queues, routes, sock_diag,
    softnet, tcp_sockets, wireguard_kernel, wireguard_uapi,
};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

const NOW: f64 = 1_700_000_000.0;
/// No message of an error quotes more than a line of what was read.
const LONGEST_MESSAGE: usize = 300;

/// The answer of a WireGuard daemon to `get=1`.
pub fn uapi(answer: &[u8]) {
    match wireguard_uapi::parse(answer, NOW) {
        Ok(device) => {
            let aged = |age: f64| age >= 0.0;
            assert!(
                device
                    .peers
                    .iter()
                    .all(|peer| peer.handshake_age.is_none_or(aged))
            );
            travels(&device.peers);
        }
        Err(error) => assert!(error.to_string().len() < LONGEST_MESSAGE, "{error}"),
    }
}

/// What a daemon tells over its statistics socket.
pub fn device(document: &[u8]) {
    match device_statistics::parse(document) {
        Ok(statistics) => {
            let counters = statistics.counters();
            let still = counters.since(&counters);
            assert_eq!(still, Some(DeviceCounters::default()), "nothing moved");
            travels(&statistics);
        }
        Err(error) => assert!(error.to_string().len() < 3 * LONGEST_MESSAGE, "{error}"),
    }
}

/// What `nft --json list ruleset` prints.
pub fn nft(ruleset: &[u8]) {
    let subject = Subject {
        interface: ["wg0".to_owned()],
        outer_interfaces: vec!["eth0".to_owned()],
        listen_port: Some(51820),
        fwmark: 0xca6c,
        outer_ipv4: true,
        outer_ipv6: true,
    };
    match firewall::parse(ruleset, &[subject]) {
        Ok(firewall) => travels(&firewall),
        Err(error) => assert!(error.len() < LONGEST_MESSAGE, "{error}"),
    }
}

/// What `ethtool -S` prints.
pub fn ethtool(output: &[u8]) {
    match driver_statistics::parse(&String::from_utf8_lossy(output)) {
        Ok(statistics) => {
            assert!(statistics.losses.len() <= statistics.all);
            assert!(statistics.losses.values().all(|count| *count > 0));
        }
        Err(error) => assert!(error.len() < LONGEST_MESSAGE, "{error}"),
    }
}

/// A datagram of the kernel; the first byte chooses the protocol.
pub fn kernel(input: &[u8]) {
    let Some((protocol, datagram)) = input.split_first() else {
        return;
    };
    match protocol % 6 {
        0 => each(datagram, route_message),
        1 => each(datagram, |message| {
            if let SockDiagMessage::InetResponse(response) = message {
                travels(&sock_diag::udp_socket(&response));
                travels(&tcp_sockets::connection(&response));
                travels(&tcp_sockets::listener(&response));
            }
        }),
        2 => each(datagram, |message: GenlMessage<WireguardMessage>| {
            let device = wireguard_kernel::device(vec![message.payload], NOW);
            travels(&device.peers);
        }),
        3 => each(datagram, |message: GenlMessage<Undecoded>| {
            black_box(offloads::index(&message.payload));
            black_box(offloads::speed(&message.payload));
            travels(&offloads::features(&message.payload));
            travels(&queues::rings(&message.payload));
            travels(&queues::channels(&message.payload));
            travels(&queues::spreading(&message.payload, "eth0"));
        }),
        4 => each(datagram, |message: GenlMessage<Undecoded>| {
            black_box(generic_netlink::family_id(&message.payload));
        }),
        _ => each(datagram, |message: conntrack::Message| {
            let mut counters = BTreeMap::new();
            conntrack::add(&message.0, &mut counters);
            travels(&counters);
        }),
    }
}

fn route_message(message: RouteNetlinkMessage) {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            travels(&raw_link(link).counters);
        }
        RouteNetlinkMessage::NewQueueDiscipline(message) => {
            travels(&qdisc_counters(&message));
        }
        RouteNetlinkMessage::NewRoute(message) => {
            let mut route = EndpointRoute {
                to: [192, 0, 2, 1].into(),
                inside: false,
                interface: Known::because("not told"),
                gateway: None,
                source: None,
                mtu: None,
                congestion_control: None,
            };
            routes::take_from(&message.attributes, &mut route, &[]);
            travels(&route);
        }
        _ => {}
    }
}

/// Every message of a datagram that can be decoded.
fn each<M: NetlinkDeserializable>(datagram: &[u8], look_at: impl Fn(M)) {
    let mut rest = datagram;
    while let Some((message, after)) = netlink::split_message(rest) {
        assert!(after.len() < rest.len(), "splitting goes on");
        rest = after;
        if let Ok(message) = NetlinkMessage::<M>::deserialize(message)
            && let NetlinkPayload::InnerMessage(inner) = message.payload
        {
            look_at(inner);
        }
    }
}

/// Two readings of another machine's counters or connections, `[earlier, later]` in JSON, and what moved.
pub fn delta(json: &[u8]) {
    if let Ok((earlier, later)) = serde_json::from_slice::<(Connections, Connections)>(json) {
        for progress in later.since(&earlier) {
            let times = [
                progress.busy,
                progress.rwnd_limited,
                progress.sndbuf_limited,
            ];
            let mut moved = times.into_iter().flatten();
            assert!(progress.seconds >= 0.0 && moved.all(|time| time >= 0.0));
            travels(&progress);
        }
    }
    let Ok((earlier, later)) = serde_json::from_slice::<(Counters, Counters)>(json) else {
        return;
    };
    let delta = later.delta(&earlier);
    assert!(delta.seconds >= 0.0);
    assert!(delta.cores.is_empty() || delta.cores.len() == later.cores.len());
    travels(&delta);
    for core in &delta.cores {
        assert!((0.0..=1.0).contains(&core.busy_share()), "{core:?}");
    }
}

/// The text of a file of `/proc`.
pub fn proc(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let mut counters = BTreeMap::new();
    proc_net::add_pairs_of_lines(&text, &mut counters);
    proc_net::add_snmp6(&text, &mut counters);
    proc_net::add_conntrack(&text, &mut counters);
    travels(&counters);
    let (numbers, cores) = proc_stat::parse(&text, 100.0);
    assert_eq!(numbers.len(), cores.len());
    assert!(
        cores
            .iter()
            .map(CoreTime::busy_share)
            .all(|share| (0.0..=1.0).contains(&share))
    );
    travels(&cores);
    travels(&softnet::parse(&text));
    let softirqs = interrupts::parse_softirqs(&text, &numbers);
    assert!(
        softirqs
            .values()
            .all(|counts| counts.len() == numbers.len())
    );
    travels(&softirqs);
    travels(&hardware::current_of(&text));
    black_box(kernel_wireguard::names_wireguard(&text));
    for cores in [core_list::list(&text), core_list::mask(&text)] {
        assert!(cores.is_sorted_by(|one, next| one < next));
    }
    travels(&processes::process_time(&text, 100.0));
    black_box(host::field(&text, &["model name", "Model"]));
    black_box(host::has_net_admin(&text));
}

/// What one machine says, another must be able to read.
fn travels<T: Serialize + DeserializeOwned + Debug>(value: &T) {
    let line = serde_json::to_vec(value).expect("what was read can be sent");
    let back: Result<T, _> = serde_json::from_slice(&line);
    assert!(back.is_ok(), "{value:?} can not be read again: {back:?}");
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_read() {
        corpus("facts_uapi", super::uapi);
        corpus("facts_device", super::device);
        corpus("facts_ethtool", super::ethtool);
        corpus("facts_nft", super::nft);
        corpus("facts_kernel", super::kernel);
        corpus("facts_proc", super::proc);
        corpus("facts_delta", super::delta);
    }
}
