//! A tunnel that was watched without a load.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use wirespeed_facts::{Known, TcpConnection, TcpInfo, TcpProgress};
use wirespeed_measure::{Direction, PassiveWatch, Via, Watched};

use super::{BARE, healthy, sample};
use crate::Evidence;

/// The healthy tunnel, watched for ten seconds without a load: one connection sends 10 MB from here.
pub(crate) fn watched() -> Evidence {
    let mut evidence = healthy();
    evidence.comparisons.clear();
    evidence.sequences.clear();
    evidence.path_mtu.clear();
    evidence.tunnel_sweep.clear();
    evidence.idle_return = Known::because("not measured");
    evidence.idle_rtt_bare = Known::because("not measured");
    evidence.idle_rtt_tunnel = Known::because("not measured");
    evidence.probing_here = None;
    evidence.probing_far = None;
    let slice = sample(Via::Tunnel, Direction::Upload, BARE).here;
    let connection = TcpProgress {
        seconds: 10.0,
        bytes_acked: Some(10_000_000),
        bytes_received: Some(0),
        retransmits: 0,
        bytes_retransmitted: Some(0),
        busy: Some(10.0),
        rwnd_limited: Some(0.0),
        sndbuf_limited: Some(0.0),
        now: TcpConnection {
            local: SocketAddr::from(([10, 9, 0, 1], 40_000)),
            remote: SocketAddr::from(([10, 9, 0, 2], 443)),
            inode: 5,
            cookie: 5,
            congestion_control: Some("cubic".to_owned()),
            receive_queue: 0,
            send_queue: 0,
            receive_buffer: Some(131_072),
            send_buffer: Some(1_000_000),
            info: TcpInfo {
                rtt: 0.012,
                min_rtt: Some(0.011),
                ..TcpInfo::default()
            },
        },
    };
    let at_end = |connections| Watched {
        seconds: 10.0,
        counters: slice.clone(),
        slices: vec![slice.clone(); 10],
        connections: Known::Value(connections),
        open: Some(1),
        peers: BTreeMap::new(),
    };
    evidence.passive = Some(PassiveWatch {
        here: at_end(vec![connection]),
        far: Some(at_end(Vec::new())),
    });
    evidence
}

/// What was watched here.
pub(crate) fn watched_here(evidence: &mut Evidence) -> &mut Watched {
    let watch = evidence.passive.as_mut();
    &mut watch.expect("watched evidence has a watch").here
}

/// The connection that was watched.
pub(crate) fn connection(evidence: &mut Evidence) -> &mut TcpProgress {
    match &mut watched_here(evidence).connections {
        Known::Value(connections) => &mut connections[0],
        Known::Unknown(because) => panic!("{because}"),
    }
}
