//! From what iperf3's two sides, the echo train and the counters said to one [`Sample`].

use wirespeed_facts::CountersDelta;

use crate::iperf3_client::Iperf3Outcome;
use crate::iperf3_report::{Iperf3Report, Piece};
use crate::{CountedBy, Direction, Interval, Load, Protocol, Sample};

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
                    .filter(|nearest| distance(nearest) <= SLACK)
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

fn loaded_rtt(left: &Left<'_>) -> Option<crate::RttSummary> {
    let echoes = left.outcome.echoes.as_ref()?.as_ref().ok()?;
    // Connecting before and exchanging results after the load take about the same few round trips.
    let begins = ((left.outcome.elapsed - left.planned) / 2.0).clamp(0.0, 0.5);
    Some(echoes.summary_between(begins + left.load.warm_up, begins + left.planned))
}
