//! Is what another machine says of itself of a size that a machine can have?
//!
//! A line is bounded, but counters are asked for before and after each load, and what moved between two readings is kept
//! for all of them, as are a load's intervals: a far end that means ill could fill this machine's memory line by line.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use wirespeed_facts::{Counters, Facts};
use wirespeed_reach::ReachError;

use crate::iperf3_client::Iperf3Outcome;
use crate::iperf3_report::{Iperf3Report, LONGEST_TEXT, STREAMS_AT_MOST};
use crate::iperf3_server::ServerEnded;
use crate::passive::SLICES_AT_MOST;
use crate::tcp_watch::TcpWatched;
use crate::{MeasureError, Watched};

/// Room for the counters of ten thousand peers, or of a thousand interrupts on 128 cores, bytes.
const WEIGHT_AT_MOST: usize = 2 << 20;
/// Room for the rest of a snapshot of ten thousand peers and of four thousand links with their features, bytes.
const FACTS_AT_MOST: usize = 24 << 20;
/// Room for a watch that just fits into a line, most of it zeros: of an interrupt of one core of hundreds, bytes.
const WATCH_AT_MOST: usize = 96 << 20;
/// iperf3 tells of ten intervals a second.
const PIECES_PER_SECOND: f64 = 20.0;
/// While a load runs, fifty echo requests a second are sent.
const ECHOES_PER_SECOND: f64 = 100.0;
/// Bytes of one character at most.
const LETTER: usize = 4;
/// What a value takes in memory beyond its text, bytes.
const VALUE: usize = 24;
/// The same of a number in a row of numbers.
const NUMBER: usize = 8;
/// The name of the agent beside us, which is this program.
const OURS: &str = "here";
/// What a row of counters takes beyond its name, bytes.
const ROW: usize = 128;
/// A process has a short name; only ten of them are kept.
const NAME: usize = 64;

/// A machine's counters, unless it is another one that tells of more than a machine has.
pub(crate) fn counters(machine: &str, told: Counters) -> Result<Counters, MeasureError> {
    if machine == OURS || weight(&told) <= WEIGHT_AT_MOST {
        return Ok(told);
    }
    Err(rubbish(
        machine,
        "it tells of more counters than any machine has",
    ))
}

/// The same of a snapshot, counters and the rest.
pub(crate) fn facts(machine: &str, mut told: Facts) -> Result<Facts, MeasureError> {
    let counters = counters(machine, std::mem::take(&mut told.counters))?;
    if machine != OURS && weight_of_any(&told) > FACTS_AT_MOST {
        return Err(rubbish(
            machine,
            "it tells more of itself than there is to any machine",
        ));
    }
    told.counters = counters;
    Ok(told)
}

/// The same of what was watched.
pub(crate) fn watched(machine: &str, told: Watched) -> Result<Watched, MeasureError> {
    let sound =
        || told.slices.len() as f64 <= SLICES_AT_MOST && weight_of_any(&told) <= WATCH_AT_MOST;
    if machine == OURS || sound() {
        return Ok(told);
    }
    Err(rubbish(machine, "it tells of more than a watch can see"))
}

/// What a client of a load left behind, unless another machine tells of more than there can be in so many `seconds`.
pub(crate) fn outcome(
    machine: &str,
    seconds: f64,
    told: Iperf3Outcome,
) -> Result<Iperf3Outcome, MeasureError> {
    let echoes = told.echoes.as_ref().and_then(|echoes| echoes.as_ref().ok());
    let echoes = echoes.map_or(0, |report| report.echoes.len());
    let texts = [
        told.missing.as_ref(),
        told.echoes
            .as_ref()
            .and_then(|echoes| echoes.as_ref().err()),
    ];
    let sound = is_report(&told.report, seconds)
        && told.tcp.as_ref().is_none_or(is_watched)
        && echoes as f64 <= seconds * ECHOES_PER_SECOND
        && texts.into_iter().flatten().all(|text| is_text(text));
    of_a_load(machine, sound, told)
}

/// The same of its server.
pub(crate) fn ended(
    machine: &str,
    seconds: f64,
    told: ServerEnded,
) -> Result<ServerEnded, MeasureError> {
    let sound = is_report(&told.report, seconds) && told.tcp.as_ref().is_none_or(is_watched);
    of_a_load(machine, sound, told)
}

/// A text of another machine, but no more of it than of any text of iperf3's.
pub(crate) fn text(told: &str) -> String {
    told.chars().take(LONGEST_TEXT).collect()
}

fn of_a_load<T>(machine: &str, sound: bool, told: T) -> Result<T, MeasureError> {
    if machine == OURS || sound {
        return Ok(told);
    }
    Err(rubbish(machine, "it tells of more than happens in a load"))
}

fn is_report(report: &Iperf3Report, seconds: f64) -> bool {
    let texts = [
        &report.version,
        &report.error,
        &report.sender_congestion_control,
    ];
    let mut pieces = report.pieces.iter();
    report.pieces.len() as f64 <= seconds * PIECES_PER_SECOND
        && pieces.all(|piece| piece.stream_bytes.len() <= STREAMS_AT_MOST)
        && texts.into_iter().flatten().all(|text| is_text(text))
}

fn is_watched(watched: &TcpWatched) -> bool {
    let name = watched.windows.congestion_control.as_deref();
    name.is_none_or(is_text)
}

fn is_text(text: &str) -> bool {
    text.len() <= LETTER * LONGEST_TEXT
}

fn rubbish(machine: &str, what: &str) -> MeasureError {
    MeasureError::Reach(ReachError::Rubbish {
        machine: machine.to_owned(),
        detail: format!("{what}; look at what answers there in place of wirespeed"),
    })
}

/// About the bytes that any value takes in memory: its text, and something for each value in it.
fn weight_of_any(value: &impl Serialize) -> usize {
    #[derive(Default)]
    struct Weighed {
        bytes: usize,
        after_comma: bool,
    }
    impl io::Write for Weighed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            for byte in bytes {
                // In an object a name follows.
                self.bytes += match byte {
                    b'0'..=b'9' | b'-' if self.after_comma => NUMBER,
                    _ if self.after_comma => VALUE,
                    _ => 0,
                };
                self.bytes += match byte {
                    b'{' | b'[' => VALUE,
                    _ => 0,
                };
                self.after_comma = *byte == b',';
            }
            self.bytes += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut weighed = Weighed::default();
    // What was read from a line can be written to one.
    match serde_json::to_writer(&mut weighed, value) {
        Ok(()) => weighed.bytes,
        Err(_) => usize::MAX,
    }
}

/// About the bytes that counters take in memory, but for their many processes, of which only ten are kept.
fn weight(counters: &Counters) -> usize {
    let per_core = |row: &Vec<u64>| 8 * row.len();
    let names = |row: &BTreeMap<String, u64>| rows(row, |_| 0);
    [
        names(&counters.protocols),
        rows(&counters.links, |_| 0),
        rows(&counters.peers, |_| 0),
        names(&counters.socket_drops),
        rows(&counters.qdiscs, |_| 0),
        rows(&counters.devices, |device| {
            names(&device.drops) + rows(&device.workers, |_| 0)
        }),
        rows(&counters.drivers, names),
        rows(&counters.interrupts, per_core),
        rows(&counters.softirqs, per_core),
        rows(&counters.quotas, |quota| quota.group.len()),
        ROW * (counters.cores.len() + counters.softnet.len()),
        counters
            .processes
            .iter()
            .map(|(pid, process)| (pid.len() + process.program.len()).saturating_sub(NAME))
            .sum(),
    ]
    .iter()
    .sum()
}

fn rows<T>(rows: &BTreeMap<String, T>, more: impl Fn(&T) -> usize) -> usize {
    rows.iter()
        .map(|(name, row)| ROW + name.len() + more(row))
        .sum()
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{
        CoreTime, CountersDelta, DeviceStatistics, DeviceWorker, Implementation, Known, Link,
        LinkCounters, Peer, PeerCounters, ProcessTime, QdiscCounters, Tunnel,
    };

    use super::*;
    use crate::echo::{Echo, EchoReport};
    use crate::iperf3_report::Piece;
    use crate::passive::tests::{each_at_one_core, watch_of_a_hub};

    fn named<T: Clone>(count: u32, row: T) -> BTreeMap<String, T> {
        (0..count)
            .map(|number| (format!("{number:043}="), row.clone()))
            .collect()
    }

    #[test]
    fn the_biggest_machines_are_believed() {
        let big = Counters {
            cores: vec![CoreTime::default(); 512],
            protocols: named(500, 1),
            links: named(1000, LinkCounters::default()),
            peers: named(5000, PeerCounters::default()),
            interrupts: named(128, vec![1; 512]),
            processes: named(
                100_000,
                ProcessTime {
                    program: "fifteen letters".to_owned(),
                    cpu: 1.0,
                },
            ),
            ..Counters::default()
        };
        assert!(counters("hub", big).is_ok());
        let servers = Counters {
            cores: vec![CoreTime::default(); 384],
            peers: named(1000, PeerCounters::default()),
            interrupts: named(256, vec![1 << 30; 384]),
            ..Counters::default()
        };
        assert!(counters("hub", servers).is_ok());
    }

    #[test]
    fn more_than_any_machine_has_is_rubbish_from_another() {
        let process = |program: String| ProcessTime { program, cpu: 1.0 };
        for told in [
            Counters {
                protocols: named(100_000, 1),
                ..Counters::default()
            },
            Counters {
                interrupts: named(1, vec![0; 1 << 20]),
                ..Counters::default()
            },
            Counters {
                drivers: named(1, named(100_000, 1)),
                ..Counters::default()
            },
            Counters {
                processes: named(1, process("x".repeat(10 << 20))),
                ..Counters::default()
            },
        ] {
            assert!(counters("here", told.clone()).is_ok());
            let error = counters("ssh://far", told).unwrap_err().to_string();
            assert!(error.starts_with("ssh://far: it tells of more"), "{error}");
        }
    }

    fn says(error: &MeasureError) -> bool {
        let error = error.to_string();
        error.starts_with("ssh://far: it tells ") && error.len() < 200
    }

    fn tunnel(peers: u32) -> Tunnel {
        let peer = |number: u32| Peer {
            public_key: format!("{number:043}="),
            endpoint: Some("203.0.113.200:51820".parse().unwrap()),
            allowed_ips: vec!["10.100.100.100/32".to_owned()],
            handshake_age: Some(12.345_678),
            keepalive: 25,
            rx_bytes: 1 << 40,
            tx_bytes: 1 << 40,
        };
        Tunnel {
            name: "wg0".to_owned(),
            implementation: Implementation::Kernel,
            mtu: 1420,
            listen_port: Some(51820),
            fwmark: 0,
            public_key: None,
            peers: Known::Value((0..peers).map(peer).collect()),
            sockets: Known::because("not part of this test"),
            statistics: None,
        }
    }

    #[test]
    fn a_hub_of_ten_thousand_peers_is_believed_and_one_of_a_hundred_thousand_is_not() {
        let hub = |peers| Facts {
            tunnels: vec![tunnel(peers)],
            ..Facts::default()
        };
        assert_eq!(facts("ssh://far", hub(10_000)).unwrap(), hub(10_000));
        assert!(says(&facts("ssh://far", hub(100_000)).unwrap_err()));
        assert!(facts("here", hub(100_000)).is_ok());
    }

    /// A concentrator: a link for each customer, each with its features.
    #[test]
    fn a_machine_of_thousands_of_links_is_believed() {
        let features: BTreeMap<String, bool> = (0..50)
            .map(|number| (format!("tx-some-tunnel-segmentation-{number:02}"), true))
            .collect();
        let link = |number: u32| Link {
            index: number,
            name: format!("eth0.{number}"),
            kind: Some("vlan".to_owned()),
            up: true,
            mtu: 1500,
            speed: Known::Value(10_000_000_000),
            driver: Known::Value("802.1Q VLAN Support".to_owned()),
            addresses: vec!["100.100.100.100/32".to_owned(); 2],
            qdisc: Known::Value("noqueue".to_owned()),
            offloads: Known::Value(features.clone()),
            tx_queue_len: Some(1000),
            parent: Some("eth0".to_owned()),
            forwards_ipv4: Some(true),
            forwards_ipv6: Some(true),
            detail: Known::because("it is neither a tunnel nor on the way to a peer"),
            ..Link::default()
        };
        let concentrator = Facts {
            links: (0..4000).map(link).collect(),
            counters: Counters {
                links: named(4000, LinkCounters::default()),
                qdiscs: named(4000, QdiscCounters::default()),
                ..Counters::default()
            },
            ..Facts::default()
        };
        assert!(facts("ssh://far", concentrator).is_ok());
    }

    #[test]
    fn what_takes_little_of_a_line_and_much_memory_is_weighed_by_the_memory() {
        let statistics = DeviceStatistics {
            workers: vec![DeviceWorker::default(); 100_000],
            ..DeviceStatistics::default()
        };
        let told = Facts {
            tunnels: vec![Tunnel {
                statistics: Some(Known::Value(statistics)),
                ..tunnel(1)
            }],
            ..Facts::default()
        };
        assert!(says(&facts("ssh://far", told).unwrap_err()));
    }

    #[test]
    fn a_watch_of_thousands_of_slices_is_rubbish() {
        let watch = |slices: usize, unreliable: usize| Watched {
            seconds: 60.0,
            counters: CountersDelta {
                unreliable: vec![String::new(); unreliable],
                ..CountersDelta::default()
            },
            slices: vec![CountersDelta::default(); slices],
            connections: Known::Value(Vec::new()),
            open: None,
            peers: BTreeMap::new(),
        };
        assert!(watched("ssh://far", watch(60, 6000)).is_ok());
        for (slices, unreliable) in [(61, 0), (20_000, 0), (60, 4_000_000)] {
            let error = watched("ssh://far", watch(slices, unreliable)).unwrap_err();
            assert!(says(&error), "{error}");
        }
        assert!(watched("here", watch(20_000, 0)).is_ok());
    }

    #[test]
    fn the_watch_of_a_big_hub_is_believed() {
        for interrupts in [
            each_at_one_core(384, 2 * 128),
            vec![vec![100_000; 128]; 128],
        ] {
            assert!(watched("ssh://far", watch_of_a_hub(interrupts)).is_ok());
        }
    }

    #[test]
    fn a_load_has_so_many_intervals_and_no_novels() {
        let report = |pieces: usize| Iperf3Report {
            pieces: vec![Piece::default(); pieces],
            ..Iperf3Report::default()
        };
        let left = |report| ServerEnded { report, tcp: None };
        let long = || Some("x".repeat(3000));
        let seconds = 10.0;
        assert!(ended("ssh://far", seconds, left(report(200))).is_ok());
        assert!(says(
            &ended("ssh://far", seconds, left(report(201))).unwrap_err()
        ));
        assert!(ended("here", seconds, left(report(201))).is_ok());
        let mut wide = report(1);
        wide.pieces[0].stream_bytes = vec![0; 129];
        let named = Iperf3Report {
            sender_congestion_control: long(),
            ..report(1)
        };
        for told in [wide, named] {
            assert!(says(&ended("ssh://far", seconds, left(told)).unwrap_err()));
        }
        let mut tcp: TcpWatched =
            serde_json::from_str(r#"{"windows":{"connections":1,"seconds":1.0}}"#).unwrap();
        tcp.windows.congestion_control = long();
        let tcp = Some(tcp);
        let told = ServerEnded {
            report: report(1),
            tcp,
        };
        assert!(says(&ended("ssh://far", seconds, told).unwrap_err()));

        let client = |echoes: usize, error: Option<String>| Iperf3Outcome {
            report: report(200),
            started_at: 0.0,
            elapsed: 10.0,
            overran: false,
            missing: error,
            echoes: Some(Ok(EchoReport {
                echoes: vec![
                    Echo {
                        size: 84,
                        sent: 0.0,
                        rtt: None,
                        refused: None,
                    };
                    echoes
                ],
                ..EchoReport::default()
            })),
            tcp: None,
        };
        assert!(outcome("ssh://far", seconds, client(500, None)).is_ok());
        assert!(says(
            &outcome("ssh://far", seconds, client(1001, None)).unwrap_err()
        ));
        assert!(says(
            &outcome("ssh://far", seconds, client(1, long())).unwrap_err()
        ));
    }
}
