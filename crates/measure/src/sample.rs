//! From what iperf3's two sides, the echo train and the counters said to one [`Sample`].

use wirespeed_facts::CountersDelta;

use crate::iperf3_client::Iperf3Outcome;
use crate::iperf3_report::{Iperf3Report, Piece};
use crate::tcp_watch::TcpWatched;
use crate::{CountedBy, Direction, Interval, Load, Protocol, Sample, Windows};

/// A load that carried data in fewer of its intervals is stalled.
const MOVING_SHARE: f64 = 0.01;
/// Below this the link's counter shows only echoes, handshakes and keepalives: 20 echo packets a second and more
/// make some 100 kbit/s.
const LINK_NOISE_BITS_PER_SECOND: f64 = 150e3;
/// A boundary of iperf3's intervals may lie this much beside the tenth of a second it stands for.
const SLACK: f64 = 0.05;

/// What one load left behind.
pub(crate) struct Left<'a> {
    pub(crate) load: &'a Load,
    /// Whole seconds the client was told to run.
    pub(crate) planned: f64,
    pub(crate) outcome: &'a Iperf3Outcome,
    pub(crate) server: Option<&'a Iperf3Report>,
    /// What the server's TCP waited for.
    pub(crate) server_tcp: Option<&'a TcpWatched>,
    pub(crate) here: CountersDelta,
    pub(crate) far: Option<CountersDelta>,
    /// Bytes that came in by the tunnel's link at the receiving end (tunnel loads only).
    pub(crate) link_bytes: Option<u64>,
}

/// Puts them together; `None` when there is nothing that says how much arrived.
pub(crate) fn assemble(left: Left<'_>) -> Option<Sample> {
    let client = &left.outcome.report;
    let (receiver, sender) = match left.load.direction {
        Direction::Upload => (left.server, Some(client)),
        Direction::Download => (Some(client), left.server),
    };
    let has_pieces = |report: &&Iperf3Report| !report.pieces.is_empty();
    let receiver = receiver.filter(has_pieces);
    let sender = sender.filter(has_pieces);
    let counted = receiver.or(sender);
    let intervals = counted
        .map(|counted| intervals(&left, counted, sender))
        .unwrap_or_default();
    let measured: Vec<&Piece> = counted
        .map(|counted| in_window(counted, left.load.warm_up, left.planned).collect())
        .unwrap_or_default();
    let at_most = client
        .received
        .filter(|_| receiver.is_none() && client.error.is_none());
    let Arrived {
        bytes,
        ran,
        counted_by,
        stalled,
    } = match arrived(&measured, at_most.map(|total| total.bytes)) {
        Some(arrived) if receiver.is_some() => arrived,
        Some(arrived) => Arrived {
            counted_by: CountedBy::Sender,
            ..arrived
        },
        None => by_the_link(left.link_bytes?, left.planned),
    };

    let retransmits = sender.and_then(|sender| {
        in_window(sender, left.load.warm_up, left.planned)
            .map(|piece| piece.retransmits)
            .try_fold(0u64, |sum, retransmits| {
                Some(sum.saturating_add(retransmits?))
            })
    });
    let dead_streams = if stalled {
        left.load.streams
    } else {
        dead_streams(&measured, left.load.streams)
    };
    let congestion_control = client.sender_congestion_control.clone().or_else(|| {
        left.server
            .and_then(|server| server.sender_congestion_control.clone())
    });
    Some(Sample {
        load: left.load.clone(),
        started_at: left.outcome.started_at,
        ran,
        bytes,
        rate: bytes as f64 * 8.0 / ran,
        counted_by,
        retransmits: retransmits.filter(|_| left.load.protocol == Protocol::Tcp),
        retransmits_with_warm_up: sender
            .and_then(|sender| sender.sent)
            .or(client.sent)
            .and_then(|sent| sent.retransmits),
        lost: lost(&measured, client),
        dead_streams,
        stalled,
        congestion_control,
        intervals,
        loaded_rtt: loaded_rtt(&left),
        windows: windows(&left),
        here: left.here,
        far: left.far,
    })
}

struct Arrived {
    bytes: u64,
    ran: f64,
    counted_by: CountedBy,
    stalled: bool,
}

/// What iperf3's intervals say; `None` when there are none. A sender's count runs ahead of what arrived: the
/// receiver's total bounds it, where it is known (it is exchanged at the end of a run that ended well).
fn arrived(measured: &[&Piece], at_most: Option<u64>) -> Option<Arrived> {
    let ran: f64 = measured.iter().map(|piece| piece.seconds).sum();
    let moved = measured
        .iter()
        .fold(0u64, |sum, piece| sum.saturating_add(piece.bytes()));
    let moving = measured.iter().filter(|piece| piece.bytes() > 0).count() as f64;
    let bytes = moved.min(at_most.unwrap_or(u64::MAX));
    let stalled = bytes == 0 || moving < measured.len() as f64 * MOVING_SHARE;
    (ran > 0.0).then_some(Arrived {
        bytes,
        ran,
        counted_by: CountedBy::Receiver,
        stalled,
    })
}

/// What came in by the tunnel's link while the load was meant to run.
fn by_the_link(bytes: u64, planned: f64) -> Arrived {
    let stalled = bytes as f64 * 8.0 / planned < LINK_NOISE_BITS_PER_SECOND;
    Arrived {
        bytes,
        ran: planned,
        counted_by: CountedBy::Link,
        stalled,
    }
}

fn in_window(report: &Iperf3Report, from: f64, until: f64) -> impl Iterator<Item = &Piece> {
    // What drains after the end, and the long last interval of a client that was cut off, are not of the load.
    report
        .pieces
        .iter()
        .filter(move |piece| piece.start >= from - SLACK && piece.start < until - SLACK)
        .filter(|piece| piece.is_sound())
}

fn intervals(
    left: &Left<'_>,
    counted: &Iperf3Report,
    sender: Option<&Iperf3Report>,
) -> Vec<Interval> {
    in_window(counted, 0.0, left.planned)
        .map(|piece| {
            // Both sides began their clock within a round trip of each other: the nearest interval is the same one.
            let sent = sender.and_then(|sender| {
                let distance = |other: &&Piece| (other.start - piece.start).abs();
                sender
                    .pieces
                    .iter()
                    .min_by(|a, b| distance(a).total_cmp(&distance(b)))
                    .filter(|nearest| distance(nearest) <= 2.0 * SLACK)
            });
            Interval {
                start: piece.start,
                seconds: piece.seconds,
                rate: piece.bytes() as f64 * 8.0 / piece.seconds,
                retransmits: sent.and_then(|sent| sent.retransmits),
                congestion_window: sent.and_then(|sent| sent.congestion_window),
                rtt: sent.and_then(|sent| sent.rtt),
                warm_up: piece.start < left.load.warm_up - SLACK,
            }
        })
        .collect()
}

/// Streams that moved nothing after the warm-up, fell silent for the second half of it, or never came to be.
fn dead_streams(measured: &[&Piece], streams: u32) -> u32 {
    let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
        return streams;
    };
    let half = (first.start + last.start + last.seconds) / 2.0;
    let alive = (0..streams as usize).filter(|stream| {
        measured.iter().any(|piece| {
            piece.start + piece.seconds >= half
                && piece
                    .stream_bytes
                    .get(*stream)
                    .is_some_and(|bytes| *bytes > 0)
        })
    });
    streams - alive.count() as u32
}

fn lost(measured: &[&Piece], client: &Iperf3Report) -> Option<f64> {
    let share = |lost: u64, datagrams: u64| {
        (datagrams > 0).then(|| (lost as f64 / datagrams as f64).min(1.0))
    };
    let sum = |field: fn(&Piece) -> Option<u64>| {
        measured
            .iter()
            .map(|piece| field(piece))
            .try_fold(0u64, |sum, value| Some(sum.saturating_add(value?)))
    };
    match (sum(|piece| piece.lost), sum(|piece| piece.datagrams)) {
        (Some(lost), Some(datagrams)) => share(lost, datagrams),
        // Only the client's summary: the whole run, warm-up included.
        _ => client
            .received
            .and_then(|total| share(total.lost?, total.datagrams?)),
    }
}

/// As the sender saw them; the receive buffer is the receiver's.
fn windows(left: &Left<'_>) -> Option<Windows> {
    let (here, there) = (left.outcome.tcp.as_ref(), left.server_tcp);
    let (sender, receiver) = match left.load.direction {
        Direction::Upload => (here, there),
        Direction::Download => (there, here),
    };
    Some(Windows {
        receive_buffer: receiver.and_then(|receiver| receiver.receive_buffer),
        ..sender?.windows.clone()
    })
}

fn loaded_rtt(left: &Left<'_>) -> Option<crate::RttSummary> {
    let echoes = left.outcome.echoes.as_ref()?.as_ref().ok()?;
    // Connecting before and exchanging results after the load take about the same few round trips.
    let begins = ((left.outcome.elapsed - left.planned) / 2.0).clamp(0.0, 0.5);
    Some(echoes.summary_between(begins + left.load.warm_up, begins + left.planned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Via;
    use crate::echo::{Echo, EchoReport};

    fn report(name: &str) -> Iperf3Report {
        let path = format!("{}/tests/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
        Iperf3Report::parse(&std::fs::read_to_string(&path).unwrap())
    }

    fn load(direction: Direction, protocol: Protocol, streams: u32, seconds: f64) -> Load {
        Load {
            via: Via::Tunnel,
            direction,
            protocol,
            streams,
            seconds,
            warm_up: 0.5,
            congestion_control: None,
            rate: None,
        }
    }

    fn outcome(report: Iperf3Report) -> Iperf3Outcome {
        Iperf3Outcome {
            report,
            started_at: 1.0,
            elapsed: 2.1,
            overran: false,
            missing: None,
            echoes: None,
            tcp: None,
        }
    }

    /// Assembles a recorded run of two seconds (one for those of one second), half a second of it warm-up.
    fn assembled(
        load: &Load,
        outcome: &Iperf3Outcome,
        server: Option<&Iperf3Report>,
        link_bytes: Option<u64>,
    ) -> Option<Sample> {
        let (here, far) = (CountersDelta::default(), None);
        assemble(Left {
            load,
            planned: load.seconds + load.warm_up,
            outcome,
            server,
            server_tcp: None,
            here,
            far,
            link_bytes,
        })
    }

    #[test]
    fn an_upload_counts_what_the_server_received() {
        let load = load(Direction::Upload, Protocol::Tcp, 1, 1.5);
        let server = report("server_upload");
        let sample = assembled(
            &load,
            &outcome(report("client_upload")),
            Some(&server),
            None,
        )
        .unwrap();
        assert_eq!(
            (sample.counted_by, sample.stalled, sample.dead_streams),
            (CountedBy::Receiver, false, 0)
        );
        let after: u64 = server.pieces[5..20].iter().map(Piece::bytes).sum();
        assert_eq!(sample.bytes, after);
        assert!(
            (sample.ran - 1.5).abs() < 0.01 && (sample.rate - 191e6).abs() < 5e6,
            "{} {}",
            sample.ran,
            sample.rate
        );
        assert_eq!(sample.intervals.len(), 20);
        assert_eq!(
            sample
                .intervals
                .iter()
                .filter(|interval| interval.warm_up)
                .count(),
            5
        );
        assert!(
            sample
                .intervals
                .iter()
                .all(|interval| interval.congestion_window > Some(0) && interval.rtt > Some(0.0))
        );
        assert_eq!(sample.retransmits, Some(0));
    }

    #[test]
    fn without_the_servers_report_the_sender_counts() {
        let load = load(Direction::Upload, Protocol::Tcp, 1, 1.5);
        let sample = assembled(&load, &outcome(report("client_upload")), None, None).unwrap();
        assert_eq!(sample.counted_by, CountedBy::Sender);
        assert!((sample.rate - 193e6).abs() < 10e6, "{}", sample.rate);
    }

    #[test]
    fn a_download_has_its_window_from_the_servers_report_only() {
        let load = load(Direction::Download, Protocol::Tcp, 1, 1.5);
        let client = outcome(report("client_download"));
        let alone = assembled(&load, &client, None, None).unwrap();
        assert_eq!(
            (alone.counted_by, alone.retransmits),
            (CountedBy::Receiver, None)
        );
        assert!(alone.retransmits_with_warm_up.is_some());
        assert!(
            alone
                .intervals
                .iter()
                .all(|interval| interval.congestion_window.is_none())
        );
        let both = assembled(&load, &client, Some(&report("server_download")), None).unwrap();
        assert_eq!((both.bytes, both.retransmits), (alone.bytes, Some(0)));
        assert!(
            both.intervals
                .iter()
                .all(|interval| interval.congestion_window > Some(0))
        );
    }

    #[test]
    fn ten_streams_that_all_moved_are_alive_and_an_eleventh_is_not() {
        let server = report("server_upload10");
        let client = outcome(report("client_upload10"));
        let ten = load(Direction::Upload, Protocol::Tcp, 10, 0.5);
        assert_eq!(
            assembled(&ten, &client, Some(&server), None)
                .unwrap()
                .dead_streams,
            0
        );
        let eleven = load(Direction::Upload, Protocol::Tcp, 11, 0.5);
        assert_eq!(
            assembled(&eleven, &client, Some(&server), None)
                .unwrap()
                .dead_streams,
            1
        );
    }

    #[test]
    fn a_stream_that_falls_silent_is_dead() {
        let mut server = report("server_download10");
        let mut client = report("client_download10");
        for piece in client
            .pieces
            .iter_mut()
            .chain(&mut server.pieces)
            .filter(|piece| piece.start > 0.55)
        {
            piece.stream_bytes[3] = 0;
        }
        let load = load(Direction::Download, Protocol::Tcp, 10, 0.5);
        let sample = assembled(&load, &outcome(client), Some(&server), None).unwrap();
        assert_eq!((sample.dead_streams, sample.stalled), (1, false));
    }

    #[test]
    fn udp_losses_are_of_the_time_after_the_warm_up() {
        for (direction, client, server) in [
            (Direction::Upload, "client_udp_upload", "server_udp_upload"),
            (
                Direction::Download,
                "client_udp_download",
                "server_udp_download",
            ),
        ] {
            let load = load(direction, Protocol::Udp, 1, 0.5);
            let sample =
                assembled(&load, &outcome(report(client)), Some(&report(server)), None).unwrap();
            assert!(sample.lost.is_some_and(|lost| lost < 0.01) && sample.retransmits.is_none());
            assert!((sample.rate - 194e6).abs() < 5e6, "{}", sample.rate);
        }
        let upload = load(Direction::Upload, Protocol::Udp, 1, 0.5);
        let alone = assembled(&upload, &outcome(report("client_udp_upload")), None, None).unwrap();
        assert!(alone.lost.is_some());
    }

    #[test]
    fn a_black_hole_is_stalled_whoever_counts() {
        for (direction, streams, name) in [
            (Direction::Upload, 1, "hole_upload"),
            (Direction::Download, 1, "hole_download"),
            (Direction::Upload, 10, "hole_upload10"),
            (Direction::Download, 10, "hole_download10"),
        ] {
            let load = load(direction, Protocol::Tcp, streams, 1.5);
            let client = outcome(report(&format!("client_{name}")));
            let server = report(&format!("server_{name}"));
            for server in [Some(&server), None] {
                let sample = assembled(&load, &client, server, Some(9_000_000)).unwrap();
                assert!(
                    sample.stalled && sample.bytes == 0,
                    "{name}: {} bytes",
                    sample.bytes
                );
                assert_eq!(sample.dead_streams, streams, "{name}");
                // Not the seconds in which the client waited for results.
                assert!(sample.ran < 1.6, "{name}: {}", sample.ran);
            }
        }
    }

    #[test]
    fn the_link_counts_when_iperf3_left_nothing() {
        let load = load(Direction::Download, Protocol::Tcp, 1, 1.5);
        let nothing = outcome(Iperf3Report::default());
        assert_eq!(assembled(&load, &nothing, None, None), None);
        let moved = assembled(&load, &nothing, None, Some(10_000_000)).unwrap();
        assert_eq!(
            (moved.counted_by, moved.stalled, moved.bytes),
            (CountedBy::Link, false, 10_000_000)
        );
        let silent = assembled(&load, &nothing, None, Some(20_000)).unwrap();
        assert!(silent.stalled && silent.rate < 150e3);
    }

    #[test]
    fn round_trips_of_the_warm_up_do_not_count() {
        let load = load(Direction::Download, Protocol::Tcp, 1, 1.5);
        let echo = |number: u32| Echo {
            size: 84,
            sent: f64::from(number) * 0.02,
            rtt: Some(if number < 25 { 0.001 } else { 0.050 }),
            refused: None,
        };
        let mut client = outcome(report("client_download"));
        client.echoes = Some(Ok(EchoReport {
            echoes: (0..110).map(echo).collect(),
            ..EchoReport::default()
        }));
        let rtt = assembled(&load, &client, None, None)
            .unwrap()
            .loaded_rtt
            .unwrap();
        assert_eq!((rtt.min, rtt.median), (Some(0.050), Some(0.050)));
        assert!((70..=80).contains(&rtt.sent), "{}", rtt.sent);
    }
}
