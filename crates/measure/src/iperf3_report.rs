//! What iperf3 says in its JSON (`-J`), as plain values.
//!
//! Read from a [`serde_json::Value`] rather than into a struct: versions differ in fields and in number types,
//! and what a broken run leaves behind is a fragment. A field that is missing or makes no sense is `None`;
//! nothing here fails. Client and server write the same shape.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// More intervals than an hour of tenths of a second are not looked at.
const INTERVALS_AT_MOST: usize = 36_000;
/// Intervals of other lengths than these many seconds are no intervals, and would make rates without a bound.
const SHORTEST: f64 = 1e-5;
const LONGEST: f64 = 1e5;
/// iperf3 allows 128 streams.
pub(crate) const STREAMS_AT_MOST: usize = 128;
/// Letters that are taken of a text.
pub(crate) const LONGEST_TEXT: usize = 500;

/// One side's report of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Iperf3Report {
    /// `iperf 3.12`.
    pub(crate) version: Option<String>,
    /// iperf3's own words on what went wrong. Its exit status says nothing: with `-J` it is 0.
    pub(crate) error: Option<String>,
    /// Data connections that were made.
    pub(crate) connected: usize,
    /// The test's parameters were exchanged: the control connection works.
    pub(crate) test_started: bool,
    /// Interval by interval.
    pub(crate) pieces: Vec<Piece>,
    /// What the sender counted over the whole run.
    pub(crate) sent: Option<Total>,
    /// What the receiver counted over the whole run, as far as this side knows.
    pub(crate) received: Option<Total>,
    /// Congestion control of the sender.
    pub(crate) sender_congestion_control: Option<String>,
}

/// One interval of one side, all streams together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Seconds since the start of the test.
    pub(crate) start: f64,
    /// Length in seconds.
    pub(crate) seconds: f64,
    /// Bytes per stream, in iperf3's order.
    pub(crate) stream_bytes: Vec<u64>,
    /// Retransmitted segments (sender, TCP).
    pub(crate) retransmits: Option<u64>,
    /// Congestion window, bytes, summed over the streams (sender, TCP).
    pub(crate) congestion_window: Option<u64>,
    /// Smoothed RTT in seconds, mean over the streams (sender, TCP).
    pub(crate) rtt: Option<f64>,
    /// Datagrams lost (receiver, UDP).
    pub(crate) lost: Option<u64>,
    /// Datagrams expected (receiver, UDP).
    pub(crate) datagrams: Option<u64>,
}

impl Piece {
    /// Does it have a length that a rate can be made of?
    pub(crate) fn is_sound(&self) -> bool {
        self.start.is_finite() && (SHORTEST..=LONGEST).contains(&self.seconds)
    }

    /// Bytes of all streams.
    pub(crate) fn bytes(&self) -> u64 {
        self.stream_bytes
            .iter()
            .fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// Sums over a whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Total {
    /// Length in seconds.
    pub(crate) seconds: f64,
    /// Bytes.
    pub(crate) bytes: u64,
    /// Retransmitted segments, where told.
    pub(crate) retransmits: Option<u64>,
    /// Datagrams lost, where told.
    pub(crate) lost: Option<u64>,
    /// Datagrams expected, where told.
    pub(crate) datagrams: Option<u64>,
}

impl Iperf3Report {
    /// Reads the text iperf3 printed. Text that is no JSON object becomes a report with an `error` that quotes
    /// its beginning.
    pub(crate) fn parse(text: &str) -> Self {
        match serde_json::from_str::<Value>(text.trim()) {
            Ok(value) if value.is_object() => Self::from_json(&value),
            _ if text.trim().is_empty() => Self {
                error: Some("iperf3 printed nothing".to_owned()),
                ..Self::default()
            },
            _ => {
                let beginning: String = text
                    .trim()
                    .chars()
                    .take(200)
                    .flat_map(char::escape_debug)
                    .collect();
                Self {
                    error: Some(format!("iperf3 printed no JSON: {beginning}")),
                    ..Self::default()
                }
            }
        }
    }

    fn from_json(value: &Value) -> Self {
        let start = &value["start"];
        let end = &value["end"];
        // UDP in one direction has only `sum` in some versions; TCP has `sum_sent` and `sum_received`.
        let received = total(&end["sum_received"]).or_else(|| total(&end["sum"]));
        Self {
            version: text(&start["version"]),
            error: text(&value["error"]),
            connected: start["connected"]
                .as_array()
                .map_or(0, |list| list.len().min(STREAMS_AT_MOST)),
            test_started: start["test_start"].is_object(),
            pieces: value["intervals"]
                .as_array()
                .map(|list| {
                    list.iter()
                        .take(INTERVALS_AT_MOST)
                        .filter_map(piece)
                        .collect()
                })
                .unwrap_or_default(),
            sent: total(&end["sum_sent"]),
            received,
            sender_congestion_control: text(&end["sender_tcp_congestion"]),
        }
    }
}

fn piece(interval: &Value) -> Option<Piece> {
    let streams: Vec<&Value> = interval["streams"]
        .as_array()?
        .iter()
        .take(STREAMS_AT_MOST)
        .collect();
    let sum = &interval["sum"];
    let first = streams.first()?;
    let start = number(&sum["start"]).or_else(|| number(&first["start"]))?;
    let seconds = number(&sum["seconds"])
        .or_else(|| number(&first["seconds"]))
        .filter(|seconds| (SHORTEST..=LONGEST).contains(seconds))?;
    let rtts: Vec<f64> = streams
        .iter()
        .filter_map(|stream| number(&stream["rtt"]))
        .filter(|rtt| *rtt > 0.0)
        .collect();
    Some(Piece {
        start,
        seconds,
        stream_bytes: streams
            .iter()
            .map(|stream| count(&stream["bytes"]).unwrap_or(0))
            .collect(),
        retransmits: summed(&streams, "retransmits"),
        congestion_window: summed(&streams, "snd_cwnd"),
        rtt: crate::statistics::mean(&rtts).map(|microseconds| microseconds / 1e6),
        lost: summed(&streams, "lost_packets"),
        // Without `lost_packets` this is the sender's own count of what it sent.
        datagrams: summed(&streams, "lost_packets").and_then(|_| summed(&streams, "packets")),
    })
}

fn total(sum: &Value) -> Option<Total> {
    Some(Total {
        seconds: number(&sum["seconds"])?,
        bytes: count(&sum["bytes"])?,
        retransmits: count(&sum["retransmits"]),
        lost: count(&sum["lost_packets"]),
        datagrams: count(&sum["packets"]),
    })
}

/// The sum over the streams that have the field; `None` when none has it.
fn summed(streams: &[&Value], field: &str) -> Option<u64> {
    streams
        .iter()
        .filter_map(|stream| count(&stream[field]))
        .reduce(u64::saturating_add)
}

fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

/// Counts arrive as integers or, above 2^53 or with another cJSON, as floats; lost datagrams may be negative
/// after reordering, which is none lost.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        value
            .as_f64()
            .filter(|number| number.is_finite())
            .map(|number| number.max(0.0) as u64)
    })
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .map(|text| text.chars().take(LONGEST_TEXT).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fixture(name: &str) -> Iperf3Report {
        Iperf3Report::parse(&fixture_text(name))
    }

    fn fixture_text(name: &str) -> String {
        let path = format!("{}/tests/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn bytes(report: &Iperf3Report) -> u64 {
        report.pieces.iter().map(Piece::bytes).sum()
    }

    #[test]
    fn an_upload_has_the_senders_view_here_and_the_receivers_at_the_server() {
        let client = fixture("client_upload");
        assert_eq!(
            (
                client.connected,
                client.test_started,
                client.error.as_deref()
            ),
            (1, true, None)
        );
        assert_eq!(client.pieces.len(), 20);
        assert!(
            client
                .pieces
                .iter()
                .all(|piece| piece.retransmits.is_some() && piece.congestion_window > Some(0))
        );
        assert!(
            client
                .pieces
                .iter()
                .all(|piece| piece.rtt.is_some_and(|rtt| rtt > 0.0 && rtt < 1.0))
        );
        assert_eq!(client.sender_congestion_control.as_deref(), Some("bbr"));
        assert_eq!(bytes(&client), client.sent.unwrap().bytes);
        let server = fixture("server_upload");
        assert_eq!(server.pieces[0].congestion_window, None);
        assert_eq!(bytes(&server), server.received.unwrap().bytes);
        assert_eq!(
            client.received.unwrap().bytes,
            server.received.unwrap().bytes
        );
    }

    #[test]
    fn a_download_has_it_the_other_way_round() {
        let client = fixture("client_download");
        let server = fixture("server_download");
        assert!(
            client
                .pieces
                .iter()
                .all(|piece| piece.retransmits.is_none() && piece.rtt.is_none())
        );
        assert!(
            server
                .pieces
                .iter()
                .all(|piece| piece.retransmits.is_some() && piece.rtt.is_some())
        );
        assert_eq!(bytes(&client), client.received.unwrap().bytes);
    }

    #[test]
    fn ten_streams_are_summed_and_told_apart() {
        for name in [
            "client_upload10",
            "client_download10",
            "server_upload10",
            "server_download10",
        ] {
            let report = fixture(name);
            assert!(
                report
                    .pieces
                    .iter()
                    .all(|piece| piece.stream_bytes.len() == 10),
                "{name}"
            );
        }
        let client = fixture("client_upload10");
        assert_eq!(client.connected, 10);
        assert_eq!(bytes(&client), client.sent.unwrap().bytes);
    }

    #[test]
    fn udp_losses_are_the_receivers() {
        let client = fixture("client_udp_download");
        assert!(
            client
                .pieces
                .iter()
                .all(|piece| piece.lost.is_some() && piece.datagrams > Some(0))
        );
        assert!(client.received.unwrap().lost.is_some());
        let server = fixture("server_udp_upload");
        assert!(server.pieces.iter().all(|piece| piece.lost.is_some()));
        assert!(
            fixture("client_udp_upload")
                .pieces
                .iter()
                .all(|piece| piece.datagrams.is_none())
        );
    }

    #[test]
    fn the_senders_congestion_control_is_told_for_both_directions() {
        assert_eq!(
            fixture("client_reno").sender_congestion_control.as_deref(),
            Some("reno")
        );
        assert_eq!(
            fixture("server_reno").sender_congestion_control.as_deref(),
            Some("reno")
        );
    }

    #[test]
    fn errors_are_iperf3s_own_words() {
        let refused = fixture("client_refused");
        assert_eq!(
            refused.error.as_deref(),
            Some("unable to connect to server: Connection refused")
        );
        assert!(!refused.test_started && refused.connected == 0 && refused.pieces.is_empty());
        assert_eq!(
            fixture("client_busy").error.as_deref(),
            Some("the server is busy running a test. try again later")
        );
        let unknown = fixture("client_unknown_congestion_control");
        assert!(unknown.error.unwrap().contains("TCP_CONGESTION"));
    }

    #[test]
    fn a_black_hole_leaves_a_report_without_bytes() {
        let client = fixture("client_hole_download");
        assert_eq!((client.connected, bytes(&client)), (1, 0));
        let interrupted = fixture("client_hole_upload10");
        assert_eq!(
            interrupted.error.as_deref(),
            Some("interrupt - the client has terminated")
        );
        assert!(interrupted.test_started && interrupted.connected == 10);
        assert_eq!(bytes(&fixture("server_hole_upload10")), 0);
    }

    #[test]
    fn what_is_no_json_is_quoted() {
        assert_eq!(
            Iperf3Report::parse(" \n").error.as_deref(),
            Some("iperf3 printed nothing")
        );
        let other = Iperf3Report::parse("iperf3: error - unable\u{1b}[31m");
        assert_eq!(
            other.error.as_deref(),
            Some("iperf3 printed no JSON: iperf3: error - unable\\u{1b}[31m")
        );
        assert!(Iperf3Report::parse("[1,2]").error.is_some());
        assert_eq!(Iperf3Report::parse("{}"), Iperf3Report::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn damaged_reports_never_panic(name in prop::sample::select(vec!["client_upload10", "server_udp_upload", "client_busy"]),
                                       cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
            let mut text = fixture_text(name).into_bytes();
            for (place, byte) in &cuts {
                let place = place.index(text.len());
                text[place] = *byte;
            }
            let report = Iperf3Report::parse(&String::from_utf8_lossy(&text));
            prop_assert!(report.pieces.iter().all(|piece| piece.seconds > 0.0 && piece.start >= 0.0));
            let cut = cuts[0].0.index(text.len());
            Iperf3Report::parse(&String::from_utf8_lossy(&text[..cut]));
        }

        #[test]
        fn swapped_values_never_panic(at in any::<prop::sample::Index>(), with in prop::sample::select(vec!["null", "-1", "1e308", "\"x\"", "[]", "{}", "18446744073709551616"])) {
            let text = fixture_text("server_download");
            let colons: Vec<usize> = text.match_indices(':').map(|(place, _)| place).collect();
            let colon = colons[at.index(colons.len())];
            let end = text[colon..].find([',', '\n']).map_or(text.len(), |length| colon + length);
            let report = Iperf3Report::parse(&format!("{}:{with}{}", &text[..colon], &text[end..]));
            for piece in &report.pieces {
                prop_assert!(piece.start.is_finite() && piece.seconds.is_finite());
                let _ = piece.bytes();
            }
        }
    }
}
