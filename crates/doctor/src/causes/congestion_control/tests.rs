use super::{CODE, before_4_20};
use wirespeed_facts::{EndpointRoute, Known};
use wirespeed_measure::{Direction, Estimate, Via};

use crate::testing::{
    at, each_sample, facts_of, healthy, not_checked, nothing, only_finding, path_mtu, rtt, sample,
    sequence, set_ratio,
};
use crate::{CongestionTrial, End, Evidence, judge};

fn lossy(gain_low: f64) -> Evidence {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.9);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.013));
    });
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.retransmits = Some(100);
    });
    evidence.congestion_trials.push(CongestionTrial {
        direction: Direction::Upload,
        current: "cubic".to_owned(),
        tried: "bbr".to_owned(),
        gain: Estimate {
            value: gain_low + 0.2,
            low: gain_low,
            high: gain_low + 0.4,
        },
        samples: vec![sample(Via::Tunnel, Direction::Upload, 50e6); 10],
    });
    evidence
}

#[test]
fn four_pairs_are_too_few() {
    let mut evidence = lossy(0.5);
    evidence.congestion_trials[0].samples.truncate(8);
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
}

#[test]
fn a_gain_of_a_tenth_for_sure_is_found_and_less_is_not() {
    nothing(&lossy(0.10));
    let finding = only_finding(&lossy(0.11), CODE);
    assert_eq!(
        (finding.host.as_str(), finding.direction),
        ("client", Some(Direction::Upload))
    );
    assert_eq!(finding.remedies[0].changes[0].value, "bbr");
    assert!(finding.remedies[1].changes.is_empty());
    assert!(!finding.remedies[0].risk.contains("fq"));
}

#[test]
fn what_the_routes_have_is_given_back() {
    let route = |to: [u8; 4], congestion_control: Option<&str>| EndpointRoute {
        to: to.into(),
        inside: true,
        interface: Known::Value("wg0".to_owned()),
        gateway: None,
        source: None,
        mtu: None,
        congestion_control: congestion_control.map(str::to_owned),
    };
    let mut evidence = lossy(0.5);
    let undo = |evidence: &Evidence| {
        let remedy = only_finding(evidence, CODE).remedies.swap_remove(0);
        (remedy.undo.contains(" congctl htcp;"), remedy.risk)
    };
    let without_undo = |evidence: &Evidence| {
        let remedy = only_finding(evidence, CODE).remedies.swap_remove(0);
        assert!(!remedy.commands.is_empty());
        remedy.undo.is_empty()
    };
    // Peers, and no route known to any of them.
    assert!(without_undo(&evidence));
    assert!(undo(&evidence).1.contains("not known"));
    facts_of(&mut evidence, End::Here).routes = vec![
        route([10, 9, 0, 2], Some("htcp")),
        EndpointRoute {
            inside: false,
            ..route([192, 0, 2, 1], None)
        },
    ];
    assert!(undo(&evidence).0);
    assert!(!undo(&evidence).1.contains("way back"));
    facts_of(&mut evidence, End::Here)
        .routes
        .push(route([10, 9, 0, 3], None));
    let (gives_back, risk) = undo(&evidence);
    assert!(!gives_back && risk.contains("different ones now"));
    assert!(without_undo(&evidence));
}

#[test]
fn without_loss_or_with_bbr_already_it_is_not_suspected() {
    let mut evidence = lossy(0.5);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.retransmits = Some(1);
    });
    nothing(&evidence);
    let mut evidence = lossy(0.5);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.congestion_control = Some("bbr".to_owned());
    });
    nothing(&evidence);
}

#[test]
fn loss_from_a_full_queue_is_congestion() {
    let mut evidence = lossy(0.5);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.021));
    });
    nothing(&evidence);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.0155));
    });
    only_finding(&evidence, CODE);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt.as_mut().unwrap().p95 = Some(0.021);
    });
    nothing(&evidence);
}

#[test]
fn loss_without_a_load_is_not_congestion_though_a_queue_fills() {
    let mut evidence = lossy(0.5);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.021));
    });
    nothing(&evidence);
    evidence.sequences[0] = sequence(Direction::Upload, 3000, 30);
    let findings = judge(&evidence).findings;
    assert_eq!(
        (findings[0].code.as_str(), findings[1].code.as_str()),
        (CODE, "path-loss")
    );
}

#[test]
fn anything_else_that_explains_the_loss_comes_first() {
    let not_found = |evidence: &Evidence| {
        assert!(
            judge(evidence)
                .findings
                .iter()
                .all(|finding| finding.code != CODE)
        );
    };
    let mut evidence = lossy(0.5);
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    not_found(&evidence);
    let mut evidence = lossy(0.5);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .socket_drops
            .insert("77".to_owned(), 500);
    });
    not_found(&evidence);
    let mut evidence = lossy(0.5);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.5));
    });
    not_found(&evidence);
}

#[test]
fn loss_without_a_trial_is_said_to_be_untried() {
    let mut evidence = lossy(0.5);
    evidence.congestion_trials.clear();
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
}

#[test]
fn old_kernels_are_told_about_fq_and_a_missing_module_is_not_tuned() {
    let mut evidence = lossy(0.5);
    let facts = facts_of(&mut evidence, End::Here);
    facts.host.kernel = "4.19.0-26-amd64".to_owned();
    facts.sysctls.insert(
        "net.ipv4.tcp_available_congestion_control".to_owned(),
        Known::Value("reno cubic".to_owned()),
    );
    let finding = only_finding(&evidence, CODE);
    assert!(finding.remedies[0].risk.contains("fq"));
    assert!(finding.remedies[0].changes.is_empty());
}

#[test]
fn what_was_tried_is_no_more_than_a_word_of_a_command() {
    let first = |tried: &str| {
        let mut evidence = lossy(0.5);
        evidence.congestion_trials[0].tried = tried.to_owned();
        let finding = only_finding(&evidence, CODE);
        finding.remedies[0].commands[0].clone()
    };
    assert!(first("bbr2").starts_with("modprobe tcp_bbr2 "));
    assert!(first("bbr; reboot").starts_with("modprobe 'tcp_bbr; reboot' "));
    assert!(first("'; reboot").starts_with(r"modprobe 'tcp_'\''; reboot' "));
}

#[test]
fn knows_the_kernels_that_need_fq() {
    assert!(before_4_20("4.19.0-26-amd64"));
    assert!(!before_4_20("4.20.1"));
    assert!(!before_4_20("6.1.0-21-amd64"));
    assert!(!before_4_20("unheard of"));
}
