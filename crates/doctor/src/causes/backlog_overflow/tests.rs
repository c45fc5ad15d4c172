use wirespeed_facts::{Known, Link, LinkDetail, ReceiveQueue, Softnet};
use wirespeed_measure::{Direction, Via};

use super::{CODE, SYSCTL, next};
use crate::testing::{
    at, codes, core, each_sample, facts_of, healthy, nothing, only_finding, set_ratio,
};
use crate::{End, Evidence, Severity, judge};

fn overflowing(of_cores: u64, of_link: u64) -> Evidence {
    let mut evidence = healthy();
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        let delta = at(sample, End::Far);
        delta.softnet = vec![Softnet::default(); 4];
        delta.softnet[2] = Softnet {
            processed: 10_000,
            dropped: of_cores,
            time_squeeze: 0,
        };
        delta.links.get_mut("wg1").unwrap().rx_dropped = of_link;
    });
    evidence
}

fn with_backlog(mut evidence: Evidence, packets: &str) -> Evidence {
    for end in [End::Here, End::Far] {
        facts_of(&mut evidence, end)
            .sysctls
            .insert(SYSCTL.to_owned(), Known::Value(packets.to_owned()));
    }
    evidence
}

#[test]
fn drops_count_where_the_core_and_the_link_tell_of_them() {
    nothing(&overflowing(4, 4));
    nothing(&overflowing(500, 0));
    nothing(&overflowing(0, 500));
    let finding = only_finding(&overflowing(500, 300), CODE);
    assert_eq!(
        (finding.severity, finding.host.as_str(), finding.direction),
        (Severity::Warning, "server", Some(Direction::Upload))
    );
    assert!(finding.because.starts_with("1500 packets"));
    assert!(finding.evidence[0].r#where.ends_with("core 2"));
    assert!(finding.refused[0].why.contains("before any socket"));
}

#[test]
fn drops_in_another_namespace_count_where_as_much_is_sent_again() {
    let with = |dropped: u64, again: u64| {
        let mut evidence = overflowing(dropped, 0);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.retransmits = Some(again);
        });
        evidence
    };
    nothing(&with(500, 100));
    nothing(&with(500, 2000));
    nothing(&with(4, 4));
    let finding = only_finding(&with(500, 400), CODE);
    assert!(finding.because.contains("none of them at a link of this"));
    assert!(finding.confidence < 0.7);
    // In one load of five it does not agree; in two of five it is chance.
    let mut evidence = with(500, 400);
    let mut left = 1;
    let mut disagree = |evidence: &mut Evidence, samples| {
        left = samples;
        for sample in &mut evidence.comparisons[0].samples {
            if sample.load.via == Via::Tunnel && left > 0 {
                left -= 1;
                sample.retransmits = Some(0);
            }
        }
    };
    disagree(&mut evidence, 1);
    only_finding(&evidence, CODE);
    disagree(&mut evidence, 2);
    nothing(&evidence);
}

#[test]
fn one_reading_alone_is_somebody_elses_burst() {
    let mut evidence = overflowing(500, 500);
    let mut first = true;
    for sample in &mut evidence.comparisons[0].samples {
        if sample.load.via == Via::Tunnel && !std::mem::take(&mut first) {
            at(sample, End::Far).softnet.clear();
        }
    }
    nothing(&evidence);
}

#[test]
fn the_backlog_is_doubled_and_put_back() {
    let finding = only_finding(&with_backlog(overflowing(500, 500), "1000"), CODE);
    let remedy = &finding.remedies[0];
    assert_eq!(remedy.changes[0].value, "2000");
    assert!(remedy.undo.contains("netdev_max_backlog='1000'"));
    assert!(remedy.risk.contains("24 ms"));
}

#[test]
fn in_a_namespace_it_is_for_a_person_to_change() {
    let finding = only_finding(&overflowing(500, 500), CODE);
    let remedy = &finding.remedies[0];
    assert!(remedy.changes.is_empty());
    assert!(remedy.commands[0].starts_with("sysctl net.core.netdev_max_backlog  # WHAT-IT-IS"));
    assert!(remedy.commands[1].contains("netdev_max_backlog=TWICE-THAT"));
    assert!(remedy.undo.contains("netdev_max_backlog=WHAT-IT-IS"));
    assert!(remedy.risk.ends_with("not beyond 65\u{a0}536"));
}

#[test]
fn steering_is_widened_for_the_queues_on_the_way_and_put_back() {
    let mut evidence = with_backlog(overflowing(500, 500), "1000");
    let facts = facts_of(&mut evidence, End::Far);
    facts.cpu.online = 48;
    let link = |name: &str, queues: &[&[u32]]| Link {
        name: name.to_owned(),
        detail: Known::Value(LinkDetail {
            receive_queues: Known::Value(
                queues
                    .iter()
                    .map(|cores| ReceiveQueue {
                        rps_cores: cores.to_vec(),
                        ..ReceiveQueue::default()
                    })
                    .collect(),
            ),
            ..LinkDetail::default()
        }),
        ..Link::default()
    };
    facts.links.push(link("lan", &[&[0]]));
    facts.links.push(link("wan", &[&[], &[1, 40]]));
    facts.outer_links = vec!["wan".to_owned()];
    let finding = only_finding(&evidence, CODE);
    let remedy = &finding.remedies[1];
    assert_eq!(
        remedy.commands,
        ["echo ffff,ffffffff > /sys/class/net/wan/queues/rx-1/rps_cpus  # on server"]
    );
    assert_eq!(
        remedy.undo,
        "echo 100,00000002 > /sys/class/net/wan/queues/rx-1/rps_cpus  # on server"
    );
}

#[test]
fn a_long_backlog_gets_no_longer_one() {
    assert_eq!(next(Some(5)), Some(1000));
    assert_eq!(next(Some(40_000)), None);
    assert_eq!(next(Some(u64::MAX)), None);
    let finding = only_finding(&with_backlog(overflowing(500, 500), "250000"), CODE);
    assert!(finding.remedies.is_empty());
    assert!(finding.refused[1].why.contains("250\u{a0}000"));
}

#[test]
fn a_core_without_time_explains_it_unless_the_backlog_is_short() {
    let mut evidence = with_backlog(overflowing(500, 500), "1000");
    set_ratio(&mut evidence, Direction::Upload, 0.6);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![core(0.99); 4];
    });
    assert_eq!(codes(&judge(&evidence)), ["cpu-saturated"]);
    assert_eq!(codes(&judge(&with_backlog(evidence, "10"))).len(), 2);
}
