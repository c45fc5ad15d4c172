//! Made-up evidence for tests of the thresholds: a healthy tunnel, and the knobs to make it sick.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::json;
use wirespeed_facts::{
    CoreTime, Counters, CountersDelta, Cpu, Facts, Host, Implementation, Known, Link, LinkCounters,
    Peer, ProcessTime, Tunnel, UdpSocket,
};
use wirespeed_measure::{
    Comparison, Direction, Pair, PathMtu, Protocol, RttSummary, Sample, SequenceProbe, TunnelSweep,
    Via, Windows,
};

use crate::{End, Evidence, FarKind, IdleReturn};

mod judged;
mod watch;

pub(crate) use judged::{codes, not_checked, nothing, only_finding};
pub(crate) use watch::{connection, watched, watched_here};

/// Samples on each side of each comparison.
pub(crate) const PAIRS: usize = 5;
/// The road, bit/s.
pub(crate) const BARE: f64 = 100e6;

/// A userspace tunnel of MTU 1420 over a road of 1500 bytes, 100 Mbit/s and 10 ms; nothing is wrong.
pub(crate) fn healthy() -> Evidence {
    Evidence {
        interface: "wg0".to_owned(),
        far_interface: Some("wg1".to_owned()),
        peer: Some("far-key".to_owned()),
        far_kind: FarKind::Wirespeed,
        here_name: "client".to_owned(),
        far_name: "server".to_owned(),
        here: facts(
            "client",
            "wg0",
            "here-key",
            "far-key",
            "10.9.0.1/24",
            "10.9.0.2/32",
        ),
        far: Some(facts(
            "server",
            "wg1",
            "far-key",
            "here-key",
            "10.9.0.2/24",
            "10.9.0.1/32",
        )),
        idle_return: Known::Value(IdleReturn {
            far_first: (3, 3),
            far_again: None,
            here_then: (3, 3),
            far_after: (3, 3),
            translated_to: None,
            carried_before: 0,
        }),
        idle_rtt_bare: Known::Value(rtt(0.010)),
        idle_rtt_tunnel: Known::Value(rtt(0.011)),
        path_mtu: [Direction::Upload, Direction::Download]
            .map(|direction| path_mtu(direction, 1500))
            .to_vec(),
        tunnel_sweep: [Direction::Upload, Direction::Download]
            .map(|direction| TunnelSweep {
                direction,
                largest_passed: Some(1420),
                smallest_failed: None,
            })
            .to_vec(),
        comparisons: vec![
            comparison(Direction::Upload),
            comparison(Direction::Download),
        ],
        congestion_trials: Vec::new(),
        soaks: Vec::new(),
        sequences: [Direction::Upload, Direction::Download]
            .map(|direction| sequence(direction, 3000, 0))
            .to_vec(),
        segmentation: Vec::new(),
        sweeps: Vec::new(),
        passive: None,
        asked: Vec::new(),
        no_time: Vec::new(),
        expected_rate: None,
        not_measured: Vec::new(),
        probing_here: Some(CountersDelta::default()),
        probing_far: Some(CountersDelta::default()),
    }
}

fn facts(
    name: &str,
    interface: &str,
    key: &str,
    peer: &str,
    address: &str,
    allowed: &str,
) -> Facts {
    let sysctls = [
        ("net.ipv4.tcp_mtu_probing", "0"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        (
            "net.ipv4.tcp_available_congestion_control",
            "reno cubic bbr",
        ),
        ("net.core.rmem_max", "212992"),
        ("net.core.rmem_default", "212992"),
    ];
    Facts {
        taken_at: 1.8e9,
        host: Host {
            name: name.to_owned(),
            boot_id: Known::Value(format!("boot-of-{name}")),
            netns: Known::Value(1),
            kernel: "6.1.0-21-amd64".to_owned(),
            architecture: "x86_64".to_owned(),
            system: Known::because("made up"),
            privileged: true,
            ..Host::default()
        },
        cpu: Cpu {
            model: Known::because("made up"),
            online: 4,
            flags: Vec::new(),
            governor: Known::because("made up"),
            frequency_driver: Known::because("made up"),
        },
        links: vec![Link {
            index: 2,
            name: interface.to_owned(),
            kind: Some("tun".to_owned()),
            up: true,
            mtu: 1420,
            speed: Known::because("made up"),
            driver: Known::because("made up"),
            addresses: vec![address.to_owned()],
            qdisc: Known::Value("fq_codel".to_owned()),
            offloads: Known::because("made up"),
            tx_queue_len: Some(500),
            ..Link::default()
        }],
        tunnels: vec![Tunnel {
            name: interface.to_owned(),
            implementation: daemon(100, Some("0-3")),
            mtu: 1420,
            listen_port: Some(51820),
            fwmark: 0,
            public_key: Some(key.to_owned()),
            peers: Known::Value(vec![Peer {
                public_key: peer.to_owned(),
                endpoint: Some(SocketAddr::from(([192, 0, 2, 1], 51820))),
                allowed_ips: vec![allowed.to_owned()],
                handshake_age: Some(20.0),
                keepalive: 0,
                rx_bytes: 1000,
                tx_bytes: 1000,
            }]),
            statistics: None,
            sockets: Known::Value(vec![UdpSocket {
                local: SocketAddr::from(([0, 0, 0, 0], 51820)),
                inode: 77,
                receive_buffer: 212_992,
                send_buffer: 212_992,
                receive_queue: 0,
                drops: 0,
                holder: None,
            }]),
        }],
        sysctls: sysctls
            .map(|(name, value)| (name.to_owned(), Known::Value(value.to_owned())))
            .into(),
        routes: Vec::new(),
        firewall: Known::because("made up"),
        programs: BTreeMap::new(),
        counters: Counters::default(),
        ..Facts::default()
    }
}

/// Ten echo requests, all answered after `median` seconds.
pub(crate) fn rtt(median: f64) -> RttSummary {
    RttSummary {
        sent: 10,
        received: 10,
        min: Some(median),
        median: Some(median),
        p95: Some(median),
        max: Some(median),
    }
}

/// A probe that found `mtu`, with errors coming back above it.
pub(crate) fn path_mtu(direction: Direction, mtu: u32) -> PathMtu {
    PathMtu {
        direction,
        largest_passed: Some(mtu),
        smallest_failed: Some(mtu + 1),
        reported: Some(mtu),
        silent_loss: false,
        link_mtu: 1500,
        method: "icmp-echo".to_owned(),
    }
}

fn comparison(direction: Direction) -> Comparison {
    let mut samples = Vec::new();
    for _ in 0..PAIRS {
        samples.push(sample(Via::Bare, direction, BARE));
        samples.push(sample(Via::Tunnel, direction, BARE * 0.96));
    }
    let pair = Pair {
        bare: BARE,
        tunnel: BARE * 0.96,
        ratio: 0.96,
    };
    Comparison {
        direction,
        streams: 1,
        protocol: Protocol::Tcp,
        bare: Some(BARE),
        tunnel: BARE * 0.96,
        ratio: Some(0.96),
        ratio_low: Some(0.94),
        ratio_high: Some(0.97),
        pairs: vec![pair; PAIRS],
        bare_unknown: None,
        remarks: Vec::new(),
        samples,
    }
}

/// One load that ran well.
pub(crate) fn sample(via: Via, direction: Direction, rate: f64) -> Sample {
    let delta = CountersDelta {
        seconds: 2.0,
        cores: vec![core(0.3); 4],
        protocols: [("Ip.InReceives".to_owned(), 10_000)].into(),
        links: [("wg0", 10_000), ("wg1", 10_000)]
            .map(|(name, rx_packets)| {
                (
                    name.to_owned(),
                    LinkCounters {
                        rx_packets,
                        ..LinkCounters::default()
                    },
                )
            })
            .into(),
        processes: [(
            "100".to_owned(),
            ProcessTime {
                program: "wireguard-go".to_owned(),
                cpu: 0.5,
            },
        )]
        .into(),
        ..CountersDelta::default()
    };
    // By way of JSON, so that the recorded cases' defaults apply here too.
    let sample = json!({
        "load": { "via": via, "direction": direction, "protocol": Protocol::Tcp, "streams": 1, "seconds": 2.0, "warm_up": 0.5,
                  "congestion_control": null, "rate": null },
        "started_at": 1.8e9,
        "ran": 2.0,
        "bytes": (rate / 4.0) as u64,
        "rate": rate,
        "retransmits": 0,
        "lost": null,
        "dead_streams": 0,
        "stalled": false,
        "congestion_control": "cubic",
        "intervals": [],
        "loaded_rtt": rtt(0.020),
        "windows": windows(),
        "here": delta,
        "far": delta,
    });
    serde_json::from_value(sample).expect("the shape of a sample")
}

/// A core busy for this share, a tenth of it in softirq.
pub(crate) fn core(busy: f64) -> CoreTime {
    CoreTime {
        user: busy * 0.9,
        softirq: busy * 0.1,
        idle: 1.0 - busy,
        ..CoreTime::default()
    }
}

/// A core busy for this share in the kernel alone, a tenth of it in softirq.
pub(crate) fn kernels_core(busy: f64) -> CoreTime {
    CoreTime {
        user: 0.0,
        system: busy * 0.9,
        ..core(busy)
    }
}

/// Changes every tunnel sample of a direction.
pub(crate) fn each_sample(
    evidence: &mut Evidence,
    direction: Direction,
    via: Via,
    change: impl Fn(&mut Sample),
) {
    for comparison in evidence
        .comparisons
        .iter_mut()
        .filter(|one| one.direction == direction)
    {
        comparison
            .samples
            .iter_mut()
            .filter(|sample| sample.load.via == via)
            .for_each(&change);
    }
}

/// The counters of one end in a sample.
pub(crate) fn at(sample: &mut Sample, end: End) -> &mut CountersDelta {
    match end {
        End::Here => &mut sample.here,
        End::Far => sample.far.get_or_insert_default(),
    }
}

/// The facts of one end.
pub(crate) fn facts_of(evidence: &mut Evidence, end: End) -> &mut Facts {
    match end {
        End::Here => &mut evidence.here,
        End::Far => evidence
            .far
            .as_mut()
            .expect("healthy evidence has a far end"),
    }
}

/// The tunnel of one end.
pub(crate) fn tunnel_of(evidence: &mut Evidence, end: End) -> &mut Tunnel {
    &mut facts_of(evidence, end).tunnels[0]
}

/// A wireguard-go, which may use these cores.
pub(crate) fn daemon(pid: u32, cpus_allowed: Option<&str>) -> Implementation {
    Implementation::Userspace {
        pid: Some(pid),
        program: Some("wireguard-go".to_owned()),
        cpus_allowed: cpus_allowed.map(str::to_owned),
    }
}

/// Both ends' tunnels, carried so.
pub(crate) fn carry_by(evidence: &mut Evidence, implementation: &Implementation) {
    for end in [End::Here, End::Far] {
        tunnel_of(evidence, end).implementation = implementation.clone();
    }
}

/// A card, `eth0`, that the outer packets take.
pub(crate) fn add_card(facts: &mut Facts, card: Link) {
    let name = "eth0".to_owned();
    facts.outer_links = vec![name.clone()];
    facts.links.push(Link {
        name,
        index: 3,
        up: true,
        mtu: 1500,
        ..card
    });
}

/// Behind a NAT that forgot the tunnel's mapping, the far end is heard only once it was spoken to.
pub(crate) fn asleep() -> Evidence {
    let mut evidence = healthy();
    evidence.idle_return = Known::Value(IdleReturn {
        far_first: (0, 3),
        far_again: None,
        here_then: (3, 3),
        far_after: (3, 3),
        translated_to: Some("192.0.2.7:40000".to_owned()),
        carried_before: 0,
    });
    evidence
}

/// Sets the interval of tunnel/bare in a direction to about `ratio`.
pub(crate) fn set_ratio(evidence: &mut Evidence, direction: Direction, ratio: f64) {
    for comparison in evidence
        .comparisons
        .iter_mut()
        .filter(|one| one.direction == direction)
    {
        comparison.tunnel = BARE * ratio;
        comparison.ratio = Some(ratio);
        comparison.ratio_low = Some(ratio * 0.98);
        comparison.ratio_high = Some(ratio * 1.01);
    }
}

/// Numbered datagrams outside the tunnel that took next to nothing of the road; each loss by itself.
pub(crate) fn sequence(direction: Direction, sent: u64, lost: u64) -> SequenceProbe {
    SequenceProbe {
        via: Via::Bare,
        direction,
        payload: 64,
        offered: 512e3,
        arrived: 512e3 * (sent - lost) as f64 / sent as f64,
        port: 5201,
        seconds: sent as f64 / 1000.0,
        sent,
        received: sent - lost,
        duplicates: 0,
        reordered: 0,
        reorder_extent: 0,
        longest_gap: 1.min(lost),
        gaps: lost,
        send_refused: 0,
        receiver_dropped: 0,
    }
}

/// A connection that is held back by its congestion window alone, as it should be.
pub(crate) fn windows() -> Windows {
    Windows {
        connections: 1,
        seconds: 2.0,
        busy: Some(1.0),
        receiver_limited: Some(0.0),
        sender_limited: Some(0.0),
        congestion_window: Some(300_000),
        in_flight: Some(250_000),
        offered_window: Some(3_000_000),
        rtt: Some(0.02),
        min_rtt: Some(0.011),
        send_buffer: Some(1_000_000),
        receive_buffer: Some(4_000_000),
        reordering: Some(3),
        duplicates_reported: Some(0),
        congestion_control: Some("cubic".to_owned()),
        segment: Some(1368),
    }
}

/// Sets what the tunnel's peers sent and received outside in each of a direction's samples, bytes.
pub(crate) fn set_outer(evidence: &mut Evidence, direction: Direction, sent: u64, received: u64) {
    let ((from, to_key), (to, from_key)) = match direction {
        Direction::Upload => ((End::Here, "far-key"), (End::Far, "here-key")),
        Direction::Download => ((End::Far, "here-key"), (End::Here, "far-key")),
    };
    each_sample(evidence, direction, Via::Tunnel, |sample| {
        at(sample, from)
            .peers
            .entry(to_key.to_owned())
            .or_default()
            .tx_bytes = sent;
        at(sample, to)
            .peers
            .entry(from_key.to_owned())
            .or_default()
            .rx_bytes = received;
    });
}

/// The far end has nothing but (perhaps) an iperf3 server.
pub(crate) fn forget_far(evidence: &mut Evidence) {
    evidence.far = None;
    evidence.far_interface = None;
    evidence.far_kind = FarKind::Iperf3;
    evidence.idle_return = Known::because("wirespeed does not run at the far end");
    evidence
        .path_mtu
        .retain(|probe| probe.direction == Direction::Upload);
    evidence
        .tunnel_sweep
        .retain(|sweep| sweep.direction == Direction::Upload);
    evidence.sequences.clear();
    evidence.probing_far = None;
    for sample in evidence
        .comparisons
        .iter_mut()
        .flat_map(|comparison| &mut comparison.samples)
    {
        sample.far = None;
    }
}
