//! What holds for any evidence at all: the judge neither panics nor wavers, and never speaks without evidence.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use wirespeed_facts::{
    CoreTime, CountersDelta, Frequencies, Interrupt, Known, Link, LinkCounters, LinkDetail,
    NumaNode, Quota, Rings, Softnet, Throttling,
};
use wirespeed_measure::{Direction, PassiveWatch, Via, Watched};

use crate::causes::CHECKS;
use crate::testing::{
    add_card, at, core, each_sample, facts_of, healthy, path_mtu, rtt, set_ratio, tunnel_of,
};
use crate::trust::without_unreliable;
use crate::{Diagnosis, End, Evidence, Finding, Severity, judge};

/// Evidence with many faults at once, so that most code of the checks runs.
fn sick() -> Evidence {
    let mut evidence = healthy();
    evidence.expected_rate = Some(1e9);
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    evidence.path_mtu[0].silent_loss = true;
    tunnel_of(&mut evidence, End::Far).mtu = 1280;
    set_ratio(&mut evidence, Direction::Upload, 0.4);
    for direction in [Direction::Upload, Direction::Download] {
        each_sample(&mut evidence, direction, Via::Tunnel, |sample| {
            sample.retransmits = Some(100);
            sample.loaded_rtt = Some(rtt(0.4));
            at(sample, End::Here).cores = vec![core(1.0); 2];
            at(sample, End::Far).cores = vec![core(1.0), core(0.1)];
            at(sample, End::Far)
                .socket_drops
                .insert("77".to_owned(), 900);
        });
    }
    evidence
}

/// The same on machines of which everything that can be counted tells of losses and of a processor held back.
fn worn_out() -> Evidence {
    let mut evidence = healthy();
    for end in [End::Here, End::Far] {
        let facts = facts_of(&mut evidence, end);
        let interrupt = |number| Interrupt {
            number,
            name: format!("eth0-{number}"),
            allowed: vec![0, 1],
            ..Interrupt::default()
        };
        add_card(
            facts,
            Link {
                detail: Known::Value(LinkDetail {
                    numa_node: Known::Value(Some(1)),
                    rings: Known::Value(Rings {
                        receive: Some(256),
                        receive_most: Some(4096),
                        ..Rings::default()
                    }),
                    interrupts: Known::Value(vec![interrupt(41), interrupt(42)]),
                    ..LinkDetail::default()
                }),
                ..Link::default()
            },
        );
        facts.hardware.irqbalance = Known::Value(true);
        facts.hardware.numa_nodes = Known::Value(
            [0, 1]
                .map(|node| NumaNode {
                    node,
                    cores: vec![node],
                })
                .to_vec(),
        );
        facts.hardware.frequencies = Known::Value(Frequencies {
            current: vec![1_000_000_000; 2],
            maximum: Some(4_000_000_000),
            allowed: Some(1_000_000_000),
        });
        facts.cpu.governor = Known::Value("powersave".to_owned());
    }
    let counted = losing(&["wg0", "wg1"]);
    for direction in [Direction::Upload, Direction::Download] {
        set_ratio(&mut evidence, direction, 0.4);
        each_sample(&mut evidence, direction, Via::Tunnel, |sample| {
            *at(sample, End::Here) = counted.clone();
            *at(sample, End::Far) = counted.clone();
        });
    }
    let watched = Watched {
        seconds: 4.0,
        counters: counted.clone(),
        slices: vec![counted; 2],
        connections: Known::because("made up"),
        open: None,
        peers: BTreeMap::new(),
    };
    evidence.passive = Some(PassiveWatch {
        here: watched.clone(),
        far: Some(watched),
    });
    evidence
}

/// What a machine counts that loses packets everywhere.
fn losing(tunnels: &[&str]) -> CountersDelta {
    let link = LinkCounters {
        rx_packets: 10_000,
        tx_packets: 10_000,
        rx_dropped: 900,
        rx_missed_errors: 900,
        ..LinkCounters::default()
    };
    let held_back = CoreTime {
        user: 1.2,
        softirq: 0.1,
        steal: 0.6,
        idle: 0.1,
        ..CoreTime::default()
    };
    let statistics = [
        ("rx_missed_errors", 900),
        ("pps_allowance_exceeded", 900),
        ("bw_in_allowance_exceeded", 900),
        ("bw_out_allowance_exceeded", 900),
    ];
    CountersDelta {
        seconds: 2.0,
        cores: vec![held_back; 2],
        links: tunnels
            .iter()
            .chain(&["eth0"])
            .map(|name| ((*name).to_owned(), link))
            .collect(),
        socket_drops: [("77".to_owned(), 900)].into(),
        softnet: vec![
            Softnet {
                processed: 10_000,
                dropped: 900,
                time_squeeze: 900,
            };
            2
        ],
        softirqs: [("NET_RX".to_owned(), vec![1000, 1000])].into(),
        drivers: [(
            "eth0".to_owned(),
            statistics
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
        )]
        .into(),
        interrupts: ["41", "42"]
            .map(|number| (number.to_owned(), vec![5000, 0]))
            .into(),
        throttling: Some(Throttling {
            core_events: 9,
            package_events: 9,
        }),
        quotas: tunnels
            .iter()
            .map(|name| {
                let quota = Quota {
                    group: "/wg.service".to_owned(),
                    cores: 0.5,
                    periods: 20,
                    throttled: 19,
                    seconds: 9.0,
                };
                ((*name).to_owned(), quota)
            })
            .collect(),
        ..CountersDelta::default()
    }
}

/// The recorded cases, each by its name.
static RECORDED: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    std::fs::read_dir(folder)
        .expect("the folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a readable case");
            let tree = serde_json::from_str(&text).expect("a case in JSON");
            (path.display().to_string(), tree)
        })
        .collect()
});

/// Every delta in the tree, which is where seconds and cores stand beside each other.
fn each_delta(tree: &mut Value, change: &impl Fn(&mut serde_json::Map<String, Value>)) {
    match tree {
        Value::Array(items) => items.iter_mut().for_each(|item| each_delta(item, change)),
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| each_delta(field, change));
            if fields.contains_key("unreliable") && fields.contains_key("softnet") {
                change(fields);
            }
        }
        _ => {}
    }
}

/// Causes that are known from counters alone.
const COUNTED: [&str; 10] = [
    "backlog-overflow",
    "cloud-limit",
    "cpu-saturated",
    "cpu-throttled",
    "irq-placement",
    "numa-remote",
    "one-core-bound",
    "ring-overflow",
    "socket-overflow",
    "softirq-budget",
];

/// Names every row of a delta as unreliable.
fn doubt(delta: &mut serde_json::Map<String, Value>) {
    let mut names = vec![
        json!("cores"),
        json!("softnet"),
        json!("throttling"),
        json!("nothing.known"),
    ];
    for (section, rows) in delta.iter() {
        if let Value::Object(rows) = rows {
            names.extend(rows.keys().map(|row| json!(format!("{section}.{row}"))));
        }
    }
    delta.insert("unreliable".to_owned(), Value::Array(names));
}

fn sound(evidence: &Evidence, diagnosis: &Diagnosis) {
    assert_eq!(json!(diagnosis), json!(judge(evidence)));
    for finding in &diagnosis.findings {
        assert!(
            !finding.evidence.is_empty(),
            "{} without evidence",
            finding.code
        );
        assert!((0.0..=1.0).contains(&finding.confidence));
        assert!(!finding.because.is_empty());
        for change in finding.remedies.iter().flat_map(|remedy| &remedy.changes) {
            assert!(
                change.end == End::Here || evidence.far.is_some(),
                "a change on a machine nobody can reach"
            );
            assert!(!change.value.is_null());
        }
        if let Some(cause) = &finding.consequence_of {
            assert_eq!(finding.cause_index, finding.cause_in(&diagnosis.findings));
            assert!(finding.cause_index.is_some_and(|index| {
                let other = &diagnosis.findings[index];
                &other.code == cause && other.severity >= finding.severity
            }));
            // What is a consequence may count less, but not as little as information.
            assert!(finding.severity > Severity::Info || informs(evidence, finding));
        }
    }
    let roots: Vec<_> = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.consequence_of.is_none())
        .map(|finding| finding.severity)
        .collect();
    assert!(
        roots.windows(2).all(|pair| pair[0] >= pair[1]),
        "worst first"
    );
}

/// Is a finding for information by itself?
fn informs(evidence: &Evidence, finding: &Finding) -> bool {
    let trusted = without_unreliable(evidence);
    CHECKS
        .iter()
        .filter(|check| check.code == finding.code)
        .map(|check| (check.run)(&trusted))
        .flat_map(|outcome| outcome.found.into_iter().chain(outcome.of_no_load))
        .any(|own| own.severity == Severity::Info && own.host == finding.host)
}

#[test]
fn a_worn_out_machine_shows_what_wears_it() {
    let codes: Vec<String> = judge(&worn_out())
        .findings
        .into_iter()
        .map(|finding| finding.code)
        .collect();
    for code in [
        "ring-overflow",
        "backlog-overflow",
        "cpu-throttled",
        "cloud-limit",
        "numa-remote",
    ] {
        assert!(codes.iter().any(|found| found == code), "{code}: {codes:?}");
    }
    sound(&worn_out(), &judge(&worn_out()));
}

#[test]
fn counters_that_cannot_be_relied_on_make_no_finding() {
    let mut cases = RECORDED.clone();
    cases.insert("sick".to_owned(), json!(sick()));
    cases.insert("worn out".to_owned(), json!(worn_out()));
    for (name, mut tree) in cases {
        each_delta(&mut tree, &doubt);
        let evidence: Evidence = serde_json::from_value(tree.clone()).expect("evidence still");
        let found = judge(&evidence).findings;
        assert!(
            found
                .iter()
                .all(|finding| !COUNTED.contains(&finding.code.as_str())),
            "{name}: {:#}",
            json!(found)
        );
        // And where the clock itself jumped, each reading as a whole.
        each_delta(&mut tree, &|delta| {
            delta.insert("unreliable".to_owned(), json!(["at"]));
        });
        let evidence: Evidence = serde_json::from_value(tree).expect("evidence still");
        let found = judge(&evidence).findings;
        assert!(
            found
                .iter()
                .all(|finding| !COUNTED.contains(&finding.code.as_str())),
            "{name}, after a jump of the clock: {:#}",
            json!(found)
        );
    }
}

/// Every number of a delta at the greatest it can be: no sum may overflow.
#[test]
fn absurd_counts_are_borne() {
    fn absurd(tree: &mut Value) {
        match tree {
            Value::Array(items) => items.iter_mut().for_each(absurd),
            Value::Object(fields) => fields.values_mut().for_each(absurd),
            Value::Number(number) if number.is_u64() => *tree = json!(u64::MAX),
            _ => {}
        }
    }
    let mut cases = RECORDED.clone();
    cases.insert("worn out".to_owned(), json!(worn_out()));
    for (name, mut tree) in cases {
        each_delta(&mut tree, &|delta| delta.values_mut().for_each(absurd));
        let evidence: Result<Evidence, _> = serde_json::from_value(tree);
        match evidence {
            Ok(evidence) => sound(&evidence, &judge(&evidence)),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

/// Follows `steps` down the tree (each picks a child) and replaces what is there.
fn replace(tree: &mut Value, steps: &[usize], with: &Value) {
    let next = match tree {
        Value::Array(items) if !items.is_empty() => steps
            .first()
            .map(|step| step % items.len())
            .and_then(|at| items.get_mut(at)),
        Value::Object(fields) if !fields.is_empty() => {
            let count = fields.len();
            steps
                .first()
                .and_then(|step| fields.values_mut().nth(step % count))
        }
        _ => None,
    };
    match next {
        Some(child) => replace(child, &steps[1..], with),
        None => *tree = with.clone(),
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!(true)),
        any::<u32>().prop_map(|number| json!(number)),
        Just(json!(u64::MAX)),
        any::<f64>().prop_map(|number| json!(number)),
        Just(json!("0-18446744073709551615")),
        Just(json!("10.9.0.0/0")),
        "\\PC{0,12}".prop_map(|text| json!(text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_evidence_gets_a_sound_diagnosis(
        which in 0..3,
        changes in prop::collection::vec((prop::collection::vec(any::<usize>(), 1..10), anything()), 0..12),
    ) {
        let mut evidence = match which {
            0 => healthy(),
            1 => sick(),
            _ => worn_out(),
        };
        for (steps, with) in &changes {
            // A change that makes it no evidence at all is not taken.
            let mut tree = json!(evidence);
            replace(&mut tree, steps, with);
            if let Ok(changed) = serde_json::from_value(tree) {
                evidence = changed;
            }
        }
        sound(&evidence, &judge(&evidence));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_a_recorded_case_gets_a_sound_diagnosis(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((prop::collection::vec(any::<usize>(), 2..12), anything()), 1..5),
    ) {
        let tree = RECORDED.values().nth(which.index(RECORDED.len())).expect("a case");
        let mut evidence: Evidence = serde_json::from_value(tree.clone()).expect("evidence");
        for (steps, with) in &changes {
            let mut tree = json!(evidence);
            replace(&mut tree, steps, with);
            if let Ok(changed) = serde_json::from_value(tree) {
                evidence = changed;
            }
        }
        sound(&evidence, &judge(&evidence));
    }
}
