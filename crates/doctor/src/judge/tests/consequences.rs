//! What is shown under its cause.

use wirespeed_facts::Link;
use wirespeed_measure::{Direction, Via};

use super::super::{UNEXPLAINED, Weighed, judge, set_consequences, worst_first};
use crate::testing::{codes, each_sample, healthy, only_finding, path_mtu, set_ratio};
use crate::{Finding, Severity};

/// Two machines without processor time to spare, one per direction.
#[test]
fn a_consequence_names_the_finding_of_its_own_machine() {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.7);
    let any = only_finding(&evidence, UNEXPLAINED);
    let finding = |code: &str, host: &str, direction| {
        let finding = Finding {
            code: code.to_owned(),
            severity: Severity::Warning,
            host: host.to_owned(),
            direction,
            ..any.clone()
        };
        Weighed {
            finding,
            weight: 0.5,
            costs: true,
        }
    };
    let mut found = vec![
        finding("socket-overflow", "server", Some(Direction::Upload)),
        finding("socket-overflow", "client", Some(Direction::Download)),
        finding("cpu-saturated", "client", None),
        finding("cpu-saturated", "server", None),
    ];
    // One kernel: the want of one is the other's, too, and only the names tell them apart.
    evidence.far.as_mut().unwrap().host.boot_id = evidence.here.host.boot_id.clone();
    set_consequences(&evidence, &mut found);
    let findings = worst_first(found);
    let told: Vec<_> = findings
        .iter()
        .map(|one| (one.host.as_str(), one.cause_index))
        .collect();
    assert_eq!(
        told,
        [
            ("client", None),
            ("server", None),
            ("server", Some(1)),
            ("client", Some(0))
        ]
    );
    assert_eq!(findings[2].consequence_of.as_deref(), Some("cpu-saturated"));
    assert_eq!(findings[2].cause_in(&findings), Some(1));
    // A record of before there was an index, and one whose index is nonsense.
    let mut old = findings[2].clone();
    for index in [None, Some(2), Some(usize::MAX)] {
        old.cause_index = index;
        assert_eq!(old.cause_in(&findings), Some(0));
    }
    assert_eq!(findings[0].cause_in(&findings), None);
}

/// A tunnel in a tunnel, on a road that is silent about what it drops: the first explains the second, and that the third.
#[test]
fn consequences_hang_below_what_nothing_explains() {
    let mut evidence = healthy();
    evidence.here.links.push(Link {
        index: 9,
        name: "vpn0".to_owned(),
        kind: Some("ipip".to_owned()),
        up: true,
        mtu: 1400,
        ..Link::default()
    });
    evidence.here.routes = vec![crate::cards::tests::route([192, 0, 2, 1], "vpn0")];
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    evidence.path_mtu[0].reported = None;
    evidence.path_mtu[0].silent_loss = true;
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.stalled = true;
    });
    let diagnosis = judge(&evidence);
    assert_eq!(codes(&diagnosis), ["nested-tunnel"]);
    let below: Vec<_> = diagnosis.findings[1..]
        .iter()
        .map(|one| (one.code.as_str(), one.consequence_of.as_deref()))
        .collect();
    assert_eq!(
        below,
        [
            ("icmp-black-hole", Some("nested-tunnel")),
            ("mtu-exceeds-path", Some("nested-tunnel"))
        ]
    );
}

/// A provider's limit that costs nothing so far, beside losses without any load.
#[test]
fn information_hides_no_warning() {
    let finding = |code: &str, severity| {
        let mut one = only_finding(
            &{
                let mut evidence = healthy();
                set_ratio(&mut evidence, Direction::Upload, 0.7);
                evidence
            },
            UNEXPLAINED,
        );
        code.clone_into(&mut one.code);
        one.severity = severity;
        Weighed {
            finding: one,
            weight: 1.0,
            costs: true,
        }
    };
    let mut found = [
        finding("cloud-limit", Severity::Info),
        finding("path-loss", Severity::Warning),
    ];
    set_consequences(&healthy(), &mut found);
    assert_eq!(found[1].finding.consequence_of, None);
    assert_eq!(found[1].finding.severity, Severity::Warning);
    found[0].finding.severity = Severity::Warning;
    found[1].finding.severity = Severity::Critical;
    set_consequences(&healthy(), &mut found);
    let loss = &found[1].finding;
    assert_eq!(loss.consequence_of.as_deref(), Some("cloud-limit"));
    assert_eq!(loss.severity, Severity::Warning);
}
