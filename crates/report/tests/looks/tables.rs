//! How chains, watches, short exchanges and sweeps look: their tables are the widest there are.

use std::collections::BTreeMap;

use wirespeed_doctor::{End, Evidence, Verdict, judge, judge_hops};
use wirespeed_facts::{CoreTime, CountersDelta, Known, LinkCounters};
use wirespeed_measure::{
    CUT_OFF, Direction, Estimate, ExchangeComparison, ExchangeSample, PassiveWatch, PeerWatched,
    Percentiles, RateSweep, SweepStep, Via, Watched,
};
use wirespeed_report::{DemoStory, DoctorRecord, HopsRecord, Look, TestRecord, TuneRecord};
use wirespeed_tune::Stage;
use wirespeed_words::{Language, say, units, within};

use super::{WIDTHS, assert_fits_but, commands, recorded};

/// Holds what `shown` gives at every width, in both languages and with details, and keeps how the answer looks at two widths.
/// `typed` are the commands in it.
fn looks(name: &str, typed: impl Fn(bool) -> Vec<String>, shown: impl Fn(&Look) -> String) {
    for (language, mark) in [(Language::English, ""), (Language::French, "fr-")] {
        within(language, || {
            fits(&typed, &shown);
            for width in [80, 120] {
                let text = shown(&Look::new(width, false, false));
                insta::assert_snapshot!(format!("{mark}{name}-{width}"), text);
            }
        });
    }
}

fn fits(typed: impl Fn(bool) -> Vec<String>, shown: impl Fn(&Look) -> String) {
    for details in [false, true] {
        for width in WIDTHS {
            let text = shown(&Look::new(width, false, details));
            assert_fits_but(&text, width, &typed(details));
        }
    }
}

/// Two tunnels in a row, of which the second loses half of its road.
fn chain(hub: &str, nas: &str) -> HopsRecord {
    let text = include_str!("../recorded/chain-second-hop-slow.json");
    let text = text
        .replace("ssh://root@hub", hub)
        .replace("ssh://root@nas", nas);
    let report = judge_hops(serde_json::from_str(&text).expect("a chain"));
    let mut doctor: DoctorRecord = recorded("doctor-black-hole.json");
    for (machine, name) in doctor.machines.iter_mut().zip([hub, nas]) {
        name.clone_into(&mut machine.name);
    }
    HopsRecord::new(report, Some(doctor))
}

/// The commands for the second hop of a chain of these.
fn of_chain(chain: &HopsRecord, nas: &str, details: bool) -> Vec<String> {
    let doctor = chain.doctor.as_ref().expect("a look at the worst hop");
    commands(doctor, &format!(" --far {nas}"), details)
}

#[test]
fn a_chain_of_hops() {
    let nas = "ssh://root@nas";
    let record = || chain("ssh://root@hub", nas);
    looks(
        "hops",
        |details| of_chain(&record(), nas, details),
        |look| wirespeed_report::hops(&record(), look),
    );
}

#[test]
fn a_chain_of_machines_with_long_names_fits_as_well() {
    let nas = "ssh://root@nas.example.org";
    let record = || chain("ssh://root@hub.example.org", nas);
    for language in Language::ALL {
        within(language, || {
            fits(
                |details| of_chain(&record(), nas, details),
                |look| wirespeed_report::hops(&record(), look),
            );
        });
    }
}

#[test]
fn the_end_of_a_hop_that_has_no_name_is_not_typed() {
    let mut record = chain("ssh://root@hub", "ssh://root@nas");
    let doctor = record.doctor.as_mut().expect("a look at the worst hop");
    doctor.machines.retain(|machine| machine.end == End::Here);
    let text = wirespeed_report::hops(&record, &Look::new(120, false, false));
    assert!(text.contains(" to the next machine"), "{text}");
    assert!(!text.contains("--far"), "{text}");
}

fn watched(interface: &str, received: u64, sent: u64) -> Watched {
    let link = LinkCounters {
        rx_bytes: received,
        tx_bytes: sent,
        ..LinkCounters::default()
    };
    Watched {
        seconds: 60.0,
        counters: CountersDelta {
            seconds: 60.0,
            links: [(interface.to_owned(), link)].into(),
            cores: vec![
                CoreTime {
                    softirq: 12.0,
                    idle: 48.0,
                    ..CoreTime::default()
                };
                2
            ],
            ..CountersDelta::default()
        },
        slices: Vec::new(),
        connections: Known::Value(Vec::new()),
        open: Some(12),
        peers: BTreeMap::new(),
    }
}

/// A minute of somebody's own transfers, after which the peer went silent.
fn a_watch(far_name: &str) -> DoctorRecord {
    let mut record: DoctorRecord = recorded("doctor-healthy.json");
    let interface = |index: usize| record.machines[index].interface.clone().expect("a tunnel");
    let mut here = watched(&interface(0), 90_000_000, 3_000_000);
    let mut far = watched(&interface(1), 3_000_000, 90_000_000);
    let peer = PeerWatched {
        handshake_age: Some(200.0),
        unanswered: 1480,
        unanswered_for: 12.0,
    };
    here.peers
        .insert(record.peer.clone().expect("a peer"), peer);
    far.connections = Known::because("the kernel tells no connections");
    far_name.clone_into(&mut record.machines[1].name);
    record.verdict = Verdict::Unmeasured;
    record.measurements.comparisons.clear();
    record.measurements.passive = Some(PassiveWatch {
        here,
        far: Some(far),
    });
    record
}

#[test]
fn a_watch_without_a_load() {
    let far = " --far ssh://root@nas";
    looks(
        "watch",
        |details| commands(&a_watch("ssh://root@nas"), far, details),
        |look| wirespeed_report::doctor(&a_watch("ssh://root@nas"), far, look),
    );
    let record = || a_watch("ssh://root@nas.example.org");
    for language in Language::ALL {
        within(language, || {
            fits(
                |details| commands(&record(), "", details),
                |look| wirespeed_report::doctor(&record(), "", look),
            );
        });
    }
}

fn exchange(via: Via, slower: f64, failed: &[(&str, u64)]) -> ExchangeSample {
    let times = |milliseconds: f64| Percentiles {
        p50: 0.001 * milliseconds * slower,
        p90: 0.002 * milliseconds * slower,
        p99: 0.011 * milliseconds * slower,
        p999: 0.031 * milliseconds * slower,
        max: 0.102 * milliseconds * slower,
    };
    ExchangeSample {
        via,
        at_once: 1000,
        wanted: 40_000,
        completed: 40_000 - failed.iter().map(|(_, times)| times).sum::<u64>(),
        failed: failed
            .iter()
            .map(|(reason, times)| ((*reason).to_owned(), *times))
            .collect(),
        request: 256,
        response: 16_384,
        seconds: 10.0,
        per_second: 4000.0 / slower,
        connect: Some(times(10.2)),
        first_byte: Some(times(20.5)),
        total: Some(times(31.4)),
        here: CountersDelta::default(),
        far: None,
    }
}

/// A thousand connections at once, of which the tunnel loses some.
fn an_exchange() -> TestRecord {
    let mut record: TestRecord = recorded("test-healthy.json");
    record.comparisons.clear();
    let failed = [
        ("connect: timed out", 420),
        ("answer: connection reset by peer", 7),
        (CUT_OFF, 31),
    ];
    record.exchanges = Some(ExchangeComparison {
        at_once: 1000,
        ratio: Some(Estimate {
            value: 0.71,
            low: 0.684,
            high: 0.733,
        }),
        bare_unknown: None,
        samples: (0..5)
            .flat_map(|_| {
                [
                    exchange(Via::Bare, 1.0, &[]),
                    exchange(Via::Tunnel, 1.4, &failed),
                ]
            })
            .collect(),
        remarks: Vec::new(),
    });
    record.verdict = Verdict::Findings;
    record
}

#[test]
fn short_exchanges() {
    looks(
        "exchanges",
        |_| Vec::new(),
        |look| wirespeed_report::test(&an_exchange(), look),
    );
}

/// A collapse above some rate, and the search for the highest one that stays stable.
fn a_sweep() -> DoctorRecord {
    let evidence: Evidence = recorded("../../../doctor/tests/cases/bufferbloat.json");
    let mut record = DoctorRecord::new(&evidence, &judge(&evidence));
    let step = |cap: Option<f64>, goodput: f64, stable: bool| SweepStep {
        cap,
        goodput,
        variation: if stable { 0.03 } else { 0.42 },
        retransmits: Some(if stable { 3.0 } else { 1240.0 }),
        loaded_rtt: Some(if stable { 0.021 } else { 0.4 }),
        stable,
    };
    record.measurements.sweeps = vec![RateSweep {
        direction: Direction::Upload,
        capped_by: "TCP pacing".to_owned(),
        steps: vec![
            step(None, 141e6, false),
            step(Some(200e6), 138e6, false),
            step(Some(100e6), 99e6, true),
            step(Some(150e6), 148e6, true),
            step(Some(175e6), 160e6, false),
        ],
        stable_cap: Some(150e6),
    }];
    record
}

#[test]
fn the_rates_of_a_sweep() {
    let far = " --far ssh://root@nas";
    looks(
        "sweep",
        |details| commands(&a_sweep(), far, details),
        |look| wirespeed_report::doctor(&a_sweep(), far, look),
    );
}

/// What the demonstration ends with, in the figures of docs/first-tunnel.md.
fn a_demonstration() -> DemoStory {
    let mut outcome = recorded::<TuneRecord>("tune-black-hole.json").outcome;
    let stages = [
        ("before", 0.0, 0.0, 0.0104),
        ("icmp-black-hole", 4.9e6, 4.75e6, 0.0103),
        ("socket-overflow", 178e6, 182e6, 0.0528),
        ("bufferbloat", 169e6, 173e6, 0.0254),
    ];
    let like = outcome.stages[0].clone();
    outcome.stages = stages
        .map(|(label, upload, download, loaded_rtt)| Stage {
            label: label.to_owned(),
            upload: Some(upload),
            download: Some(download),
            loaded_rtt: Some(loaded_rtt),
            ..like.clone()
        })
        .into();
    let mut knobs = Vec::new();
    for (link, host) in [("wganqd0", "gw1"), ("wganqd1", "gw2")] {
        let named = |name: String, values: [String; 3]| {
            let [before, tuned, undone] = values;
            [name, before, tuned, undone]
        };
        let bytes = |values: [f64; 3]| values.map(units::bytes);
        knobs.push(named(
            say!("cli-knob-mtu", link = link, host = host),
            bytes([1420.0, 1340.0, 1420.0]),
        ));
        knobs.push(named(
            say!("cli-knob-buffers", link = link, host = host),
            bytes([12_288.0, 4_194_304.0, 12_288.0]),
        ));
        knobs.push(named(
            say!("cli-knob-queueing", link = link, host = host),
            ["noqueue", "tbf", "noqueue"].map(str::to_owned),
        ));
    }
    DemoStory {
        outcome,
        possible: Some(185e6),
        reached: Some(0.91),
        knobs,
        put_back: true,
    }
}

#[test]
fn the_stages_of_the_demonstration() {
    looks(
        "demo",
        |_| Vec::new(),
        |look| wirespeed_report::demo_table(&a_demonstration(), look),
    );
}
