//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Each takes any bytes, gives them to a parser as the crate itself would, and panics when what comes out breaks a
//! promise. Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use std::fmt::Debug;
use std::hint::black_box;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirespeed_facts::{CountersDelta, Facts};

use crate::addresses::{Wanted, find};
use crate::compare::{ComparePlan, conclude, empty};
use crate::datagram;
use crate::echo_packet::{self, Kind};
use crate::exchange_request::{self, Request};
use crate::iperf3_client::Iperf3Outcome;
use crate::iperf3_report::Iperf3Report;
use crate::iperf3_server::ServerEnded;
use crate::sample::{Left, assemble};
use crate::tally::Tally;
use crate::{Direction, Overrides, Pair, Protocol, Sample, Via, sensible};

/// Seconds that either side of a load of two seconds may live.
const OF_A_LOAD: f64 = 36.0;

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// What iperf3 printed, on either side.
pub fn iperf3(text: &[u8]) {
    let report = Iperf3Report::parse(&String::from_utf8_lossy(text));
    for piece in &report.pieces {
        assert!(piece.start >= 0.0 && piece.seconds > 0.0, "{piece:?}");
    }
    travels(&report);
    let outcome = Iperf3Outcome {
        report: report.clone(),
        started_at: 1.7e9,
        elapsed: 3.5,
        overran: false,
        missing: None,
        echoes: None,
        tcp: None,
    };
    loads(&outcome, None);
    loads(&outcome, Some(&ServerEnded { report, tcp: None }));
}

/// What a far end's agent says of a load, `[what the client left behind, what the server did, or null]` in JSON.
pub fn outcome(json: &[u8]) {
    const MACHINE: &str = "ssh://far";
    let Ok((outcome, server)) =
        serde_json::from_slice::<(Iperf3Outcome, Option<ServerEnded>)>(json)
    else {
        return;
    };
    let server = server.map(|server| sensible::ended(MACHINE, OF_A_LOAD, server));
    match (
        sensible::outcome(MACHINE, OF_A_LOAD, outcome),
        server.transpose(),
    ) {
        (Ok(outcome), Ok(server)) => loads(&outcome, server.as_ref()),
        (Err(error), _) | (_, Err(error)) => assert!(error.to_string().len() < 300, "{error}"),
    }
}

/// The sample and the comparison that are made of it, both ways and by both protocols.
fn loads(outcome: &Iperf3Outcome, server: Option<&ServerEnded>) {
    for (direction, protocol) in [
        (Direction::Upload, Protocol::Tcp),
        (Direction::Download, Protocol::Tcp),
        (Direction::Upload, Protocol::Udp),
        (Direction::Download, Protocol::Udp),
    ] {
        let plan = ComparePlan {
            protocol,
            rate: (protocol == Protocol::Udp).then_some(1e7),
            ..ComparePlan::quick(direction, 10)
        };
        let load = plan.load(Via::Tunnel);
        let left = Left {
            load: &load,
            planned: (load.warm_up + load.seconds).ceil(),
            outcome,
            server: server.map(|server| &server.report),
            server_tcp: server.and_then(|server| server.tcp.as_ref()),
            here: CountersDelta::default(),
            far: None,
            link_bytes: Some(1_000_000),
        };
        let sample = assemble(left).expect("the link's counter is a sample at least");
        sound(&sample);
        let mut comparison = empty(&plan);
        for via in [Via::Bare, Via::Tunnel] {
            let mut sample = sample.clone();
            sample.load.via = via;
            comparison.samples.push(sample);
        }
        comparison.pairs.push(Pair {
            bare: sample.rate,
            tunnel: sample.rate,
            ratio: 1.0,
        });
        conclude(&mut comparison, 1);
        travels(&comparison);
    }
}

fn sound(sample: &Sample) {
    assert!(sample.rate.is_finite() && sample.rate >= 0.0, "{sample:?}");
    assert!(sample.ran.is_finite() && sample.ran > 0.0, "{sample:?}");
    assert!(sample.dead_streams <= sample.load.streams, "{sample:?}");
    assert!(
        sample.lost.is_none_or(|share| (0.0..=1.0).contains(&share)),
        "{sample:?}"
    );
    travels(sample);
}

/// A packet off the wire; the first eight bytes are the train's token.
pub fn echo(input: &[u8]) {
    let Some((token, packet)) = input.split_first_chunk() else {
        return;
    };
    let token = u64::from_be_bytes(*token);
    let after = echo_packet::after_v4_header(packet).unwrap_or_default();
    for icmp in [packet, after] {
        for (v4, kind) in [
            (true, Kind::Request),
            (true, Kind::Reply),
            (false, Kind::Request),
            (false, Kind::Reply),
        ] {
            // Without `black_box` the compiler proves all of it away, and nothing is left to fuzz.
            if let Some(number) = black_box(echo_packet::number(black_box(icmp), v4, kind, token)) {
                assert_eq!(icmp[16..20], number.to_be_bytes());
                assert!(!echo_packet::is_foreign(icmp, token), "ours is not foreign");
            }
        }
        black_box(echo_packet::is_foreign(black_box(icmp), token));
    }
}

/// Datagrams off the wire, each behind its length in two bytes; the first eight bytes are the probe's token.
pub fn datagrams(input: &[u8]) {
    let Some((token, mut rest)) = input.split_first_chunk() else {
        return;
    };
    let token = u64::from_be_bytes(*token);
    let mut tally = Tally::default();
    let mut ours = 0;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (datagram, behind) = after.split_at(length);
        rest = behind;
        let Some((kind, number)) = datagram::read(datagram, token) else {
            continue;
        };
        let header = datagram::bare(token, kind, number);
        assert_eq!(datagram.first_chunk(), Some(&header));
        black_box(datagram::is_whole(datagram, token, number));
        tally.arrived(number);
        ours += 1;
    }
    let gaps = tally.gaps();
    let missing = tally.next() - tally.received();
    assert!(tally.received() + tally.duplicates() <= ours);
    assert!(gaps.count <= missing && gaps.longest <= missing, "{gaps:?}");
    assert!(tally.extent() <= tally.received() && tally.reordered() <= tally.received());
}

/// The beginning of a short exchange's request; the first eight bytes are the sample's token.
pub fn request(input: &[u8]) {
    let token: Option<&[u8; 8]> = input.first_chunk();
    let header: Option<&[u8; exchange_request::HEADER]> =
        input.get(8..).and_then(<[u8]>::first_chunk);
    let (Some(token), Some(header)) = (token, header) else {
        return;
    };
    if let Some(request) = Request::read(header, u64::from_be_bytes(*token)) {
        assert!(request.is_sensible(), "{request:?}");
        assert_eq!(request.bytes().first_chunk(), Some(header));
    }
}

/// The facts of both ends, `[here, far or null]` in JSON: which peer is the far end, and where is it?
pub fn ends(json: &[u8]) {
    let Ok((here, far)) = serde_json::from_slice::<(Facts, Option<Facts>)>(json) else {
        return;
    };
    for (far, iperf3_address) in [
        (far.as_ref().map(|far| (far, "far")), None),
        (None, Some([192, 0, 2, 1].into())),
    ] {
        let wanted = Wanted {
            here_name: "here",
            here: &here,
            far,
            iperf3_address,
            interface: None,
            overrides: &Overrides::default(),
        };
        match find(&wanted) {
            Ok(found) => assert!(
                here.tunnels
                    .iter()
                    .any(|tunnel| tunnel.name == found.interface)
            ),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
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
        corpus("measure_iperf3", super::iperf3);
        corpus("measure_outcome", super::outcome);
        corpus("measure_echo", super::echo);
        corpus("measure_datagrams", super::datagrams);
        corpus("measure_request", super::request);
        corpus("measure_ends", super::ends);
    }
}
