//! What holds for any evidence at all: the judge neither panics nor wavers, and never speaks without evidence.

use proptest::prelude::*;
use serde_json::{Value, json};
use wirespeed_measure::{Direction, Via};

use crate::testing::{at, core, each_sample, healthy, path_mtu, rtt, set_ratio, tunnel_of};
use crate::{End, Evidence, judge};

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
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_evidence_gets_a_sound_diagnosis(
        well in any::<bool>(),
        changes in prop::collection::vec((prop::collection::vec(any::<usize>(), 1..10), anything()), 0..12),
    ) {
        let mut evidence = if well { healthy() } else { sick() };
        for (steps, with) in &changes {
            // A change that makes it no evidence at all is not taken.
            let mut tree = json!(evidence);
            replace(&mut tree, steps, with);
            if let Ok(changed) = serde_json::from_value(tree) {
                evidence = changed;
            }
        }
        let diagnosis = judge(&evidence);
        prop_assert_eq!(json!(&diagnosis), json!(judge(&evidence)));
        for finding in &diagnosis.findings {
            prop_assert!(!finding.evidence.is_empty(), "{} without evidence", finding.code);
            prop_assert!((0.0..=1.0).contains(&finding.confidence));
            prop_assert!(!finding.because.is_empty());
            for change in finding.remedies.iter().flat_map(|remedy| &remedy.changes) {
                prop_assert!(change.end == End::Here || evidence.far.is_some(), "a change on a machine nobody can reach");
                prop_assert!(!change.value.is_null());
            }
            if let Some(cause) = &finding.consequence_of {
                prop_assert!(diagnosis.findings.iter().any(|other| &other.code == cause && other.severity >= finding.severity));
            }
        }
        let roots: Vec<_> = diagnosis.findings.iter().filter(|finding| finding.consequence_of.is_none()).map(|finding| finding.severity).collect();
        prop_assert!(roots.windows(2).all(|pair| pair[0] >= pair[1]), "worst first");
    }
}
