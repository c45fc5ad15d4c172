//! What was watched without a load, and the table of a rate sweep.

use wirespeed_facts::{CoreTime, Known};
use wirespeed_measure::{PassiveWatch, PeerWatched, RateSweep, SequenceProbe, Via, Watched};
use wirespeed_words::say;

use crate::look::{Look, table, table_or_without};
use crate::measured_text::{PROBES, or_unknown};
use crate::record::{DoctorRecord, MachineRecord, Measurements};
use crate::{places, units};

/// In one clause: `watched for 60 s without a load; 12.3 Mbit/s in and 400 kbit/s out`.
pub(crate) fn watched(record: &DoctorRecord) -> Option<String> {
    let passive = record.measurements.passive.as_ref()?;
    let here = &passive.here;
    let time = units::time(here.seconds);
    Some(match rates(here, &record.interface) {
        Some((received, sent)) => say!(
            "report-watched-for",
            time = time,
            received = units::rate(received),
            sent = units::rate(sent)
        ),
        None => say!("report-watched-unread", time = time),
    })
}

/// A row per machine: what flowed, over how many connections, and how busy it was. Where their names leave no room for
/// that, a column per machine.
pub(crate) fn watch_table(record: &DoctorRecord, passive: &PassiveWatch, look: &Look) -> String {
    let (header, rows) = what_flowed(record, passive);
    let mut all = table(look, 2, &header, &rows, 1);
    if !look.has_room_for(&all) {
        let cells: Vec<&Vec<String>> = [&header].into_iter().chain(&rows).collect();
        let column = |index: usize| cells.iter().map(|row| row[index].clone()).collect();
        let mut turned: Vec<Vec<String>> = (0..header.len()).map(column).collect();
        let names = turned.remove(0);
        all = table(look, 2, &names, &turned, 1);
    }
    let mut out = format!("\n{all}");
    if let Some(heard) = last_heard(record, passive) {
        out.push_str(&look.paragraph(2, &heard));
    }
    out
}

/// The heads, and a row per machine: its name, then in, out, connections, sent again, busiest core.
pub(crate) fn what_flowed(
    record: &DoctorRecord,
    passive: &PassiveWatch,
) -> (Vec<String>, Vec<Vec<String>>) {
    let heads = vec![
        String::new(),
        say!("report-in"),
        say!("report-out"),
        say!("report-connections"),
        say!("report-sent-again"),
        say!("report-busiest-core"),
    ];
    let ends = [Some(&passive.here), passive.far.as_ref()];
    let rows = record
        .machines
        .iter()
        .zip(ends)
        .filter_map(|(machine, watched)| Some(row_of(machine, watched?)))
        .collect();
    (heads, rows)
}

fn row_of(machine: &MachineRecord, watched: &Watched) -> Vec<String> {
    let rates = machine
        .interface
        .as_ref()
        .and_then(|interface| rates(watched, interface));
    vec![
        places::name(&machine.name),
        rates.map_or_else(unknown, |rates| units::rate(rates.0)),
        rates.map_or_else(unknown, |rates| units::rate(rates.1)),
        watched
            .open
            .map_or_else(unknown, |open| units::count(open as f64)),
        sent_again(watched),
        watched
            .counters
            .cores
            .iter()
            .map(CoreTime::busy_share)
            .max_by(f64::total_cmp)
            .map_or_else(unknown, units::percent),
    ]
}

/// When the peer was last heard, as this end knows it.
pub(crate) fn last_heard(record: &DoctorRecord, passive: &PassiveWatch) -> Option<String> {
    passive.here.peers.get(record.peer.as_ref()?).map(heard)
}

fn heard(peer: &PeerWatched) -> String {
    let silent = peer.unanswered > 0 && peer.unanswered_for > 0.0;
    let sent = units::bytes(peer.unanswered as f64);
    let time = units::time(peer.unanswered_for);
    match (peer.handshake_age.map(units::time), silent) {
        (Some(age), false) => say!("report-heard", age = age),
        (Some(age), true) => say!("report-heard-silent", age = age, sent = sent, time = time),
        (None, false) => say!("report-never-heard"),
        (None, true) => say!("report-never-heard-silent", sent = sent, time = time),
    }
}

/// Received and sent through an interface, bit/s. A link without any movement has no row.
fn rates(watched: &Watched, interface: &str) -> Option<(f64, f64)> {
    (watched.seconds > 0.0).then(|| {
        let moved = watched.counters.links.get(interface);
        let rate = |bytes: u64| bytes as f64 * 8.0 / watched.seconds;
        moved.map_or((0.0, 0.0), |link| {
            (rate(link.rx_bytes), rate(link.tx_bytes))
        })
    })
}

/// Segments sent again by the connections that were there all the time.
fn sent_again(watched: &Watched) -> String {
    match &watched.connections {
        Known::Value(connections) => units::count(
            connections
                .iter()
                .map(|one| u64::from(one.retransmits))
                .sum::<u64>() as f64,
        ),
        Known::Unknown(_) => unknown(),
    }
}

fn unknown() -> String {
    "?".to_owned()
}

/// The column of how much a rate varied, which the last one tells, too.
const VARIATION: usize = 2;

/// The rates that were tried, lowest cap first.
pub(crate) fn sweep(sweep: &RateSweep, look: &Look) -> String {
    let mut steps: Vec<_> = sweep.steps.iter().collect();
    steps.sort_by(|one, other| {
        let key = |cap: Option<f64>| cap.unwrap_or(f64::INFINITY);
        key(one.cap).total_cmp(&key(other.cap))
    });
    let rows: Vec<Vec<String>> = steps
        .into_iter()
        .map(|step| {
            vec![
                step.cap
                    .map_or_else(|| say!("report-sweep-uncapped"), units::rate),
                units::rate(step.goodput),
                units::percent(step.variation),
                step.retransmits
                    .map_or_else(unknown, |rate| format!("{}/s", units::count(rate))),
                step.loaded_rtt.map_or_else(unknown, units::time),
                units::yes_or_no(step.stable),
            ]
        })
        .collect();
    let header = vec![
        say!("report-sweep-cap"),
        say!("report-sweep-goodput"),
        say!("report-sweep-variation"),
        say!("report-sent-again"),
        say!("report-sweep-rtt"),
        say!("report-sweep-stable"),
    ];
    let found = match sweep.stable_cap {
        Some(cap) => say!(
            "report-sweep-found",
            cap = units::rate(cap),
            by = sweep.capped_by_words()
        ),
        None => say!("report-sweep-none", by = sweep.capped_by_words()),
    };
    let mut out = String::from("\n");
    out.push_str(&look.bold(&say!("report-sweep", direction = sweep.direction.word())));
    out.push('\n');
    out.push_str(&table_or_without(look, 2, header, rows, 0, VARIATION));
    out.push_str(&look.paragraph(2, &found));
    out
}

/// What became of numbered datagrams, for the details.
pub(crate) fn datagrams(measurements: &Measurements, look: &Look) -> String {
    let mut out = String::new();
    for probe in &measurements.sequences {
        let label = say!("report-label-datagrams");
        out.push_str(&look.labelled(&label, PROBES, &sequence(probe)));
    }
    for probe in &measurements.segmentation {
        let mut text = say!(
            "report-segmentation",
            direction = probe.direction.word(),
            sent = probe.plain_sent,
            arrived = probe.plain_received,
            trains_sent = probe.trains_sent,
            trains_arrived = probe.trains_received
        );
        if let Some(why) = &probe.refused {
            let refused = say!("report-segmentation-refused", why = why);
            text = say!("report-and", one = text, other = refused);
        }
        out.push_str(&look.labelled(&say!("report-label-segmentation"), PROBES, &text));
    }
    out
}

fn sequence(probe: &SequenceProbe) -> String {
    // Tenths of a percent matter here: one lost in a thousand halves a long path's TCP.
    let fine = |share: Option<f64>| or_unknown(share, |share| units::fixed(share * 100.0, 2, "%"));
    let (sent, rate) = (probe.sent, units::rate(probe.offered));
    let (direction, payload) = (probe.direction.word(), probe.payload);
    let (lost, disordered) = (fine(probe.lost()), fine(probe.out_of_order()));
    match probe.via {
        Via::Bare => say!(
            "report-datagrams-road",
            direction = direction,
            sent = sent,
            payload = payload,
            rate = rate,
            lost = lost,
            disordered = disordered
        ),
        Via::Tunnel => say!(
            "report-datagrams-tunnel",
            direction = direction,
            sent = sent,
            payload = payload,
            rate = rate,
            lost = lost,
            disordered = disordered
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wirespeed_facts::CountersDelta;
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn of_no_connection_nothing_was_sent_again() {
        let watched = Watched {
            seconds: 1.0,
            counters: CountersDelta::default(),
            slices: Vec::new(),
            connections: Known::Value(Vec::new()),
            open: Some(0),
            peers: BTreeMap::new(),
        };
        assert_eq!(sent_again(&watched), "0");
    }

    #[test]
    fn a_peer_that_went_silent_is_told() {
        let mut peer = PeerWatched {
            handshake_age: Some(47.0),
            ..PeerWatched::default()
        };
        assert_eq!(
            heard(&peer),
            "The last handshake with the peer was 47.0 s ago."
        );
        peer.handshake_age = Some(400.0);
        (peer.unanswered, peer.unanswered_for) = (1480, 60.0);
        assert_eq!(
            heard(&peer),
            "The last handshake with the peer was 7 min ago; 1480 bytes were sent to it in the last 60.0 s, and nothing came back."
        );
        let french = within(Language::French, || heard(&peer)).replace('\u{202f}', "_");
        assert_eq!(
            french,
            "Le dernier handshake avec le pair remonte à 7_min_; 1480_octets lui ont été envoyés dans les dernières 60,0_s, et rien n’est revenu."
        );
    }
}
