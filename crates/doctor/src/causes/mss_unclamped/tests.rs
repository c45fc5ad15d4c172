use wirespeed_facts::{Firewall, Known, Link};
use wirespeed_measure::{Direction, Via};

use super::CODE;
use crate::testing::{
    at, codes, each_sample, facts_of, forget_far, healthy, not_checked, nothing, only_finding,
    set_ratio, tunnel_of,
};
use crate::{End, Evidence, Severity, judge};

/// Two sites, and at the first some host sends packets of 1,500 bytes all the time.
fn sites(per_sample: u64, discarded: u64) -> Evidence {
    let mut evidence = healthy();
    for end in [End::Here, End::Far] {
        let facts = facts_of(&mut evidence, end);
        facts.firewall = Known::Value(Firewall::default());
        facts.links.push(Link {
            index: 5,
            name: "lan0".to_owned(),
            up: true,
            mtu: 1500,
            addresses: vec!["10.1.0.1/24".to_owned()],
            forwards_ipv4: Some(true),
            ..Link::default()
        });
    }
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        let protocols = &mut at(sample, End::Here).protocols;
        protocols.insert("Ip.FragFails".to_owned(), per_sample);
        protocols.insert("Ip.OutDiscards".to_owned(), discarded);
    });
    evidence
}

#[test]
fn gateways_that_do_not_clamp_are_healthy_while_nobody_suffers() {
    nothing(&sites(0, 0));
}

#[test]
fn packets_too_large_are_worth_a_word_when_they_keep_coming() {
    nothing(&sites(1, 0));
    let finding = only_finding(&sites(2, 0), CODE);
    assert_eq!(
        (finding.severity, finding.host.as_str()),
        (Severity::Info, "client")
    );
    let mut burst = sites(0, 0);
    burst
        .probing_here
        .as_mut()
        .unwrap()
        .protocols
        .insert("Ip.FragFails".to_owned(), 500);
    nothing(&burst);
}

#[test]
fn errors_that_never_leave_the_gateway_are_a_warning() {
    assert_eq!(only_finding(&sites(10, 7), CODE).severity, Severity::Info);
    let finding = only_finding(&sites(10, 8), CODE);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.remedies[0].commands[2].contains("oifname '\"wg0\"'"));
}

/// The doctor's own loads fit the tunnel.
#[test]
fn what_hosts_behind_the_gateway_suffer_explains_no_slow_tunnel() {
    let mut evidence = sites(10, 8);
    set_ratio(&mut evidence, Direction::Upload, 0.3);
    let diagnosis = judge(&evidence);
    assert_eq!(codes(&diagnosis), ["unexplained", CODE]);
}

#[test]
fn what_a_queue_drops_meanwhile_are_no_errors() {
    assert_eq!(
        only_finding(&sites(10, 12), CODE).severity,
        Severity::Warning
    );
    assert_eq!(only_finding(&sites(10, 13), CODE).severity, Severity::Info);
    let finding = only_finding(&sites(10, 5000), CODE);
    assert_eq!(finding.severity, Severity::Info);
    assert!(!finding.because.contains("packet filter"));
    // As many by chance, but without packets that are too large, too.
    let elsewhere = |each: u64| {
        let mut evidence = sites(10, 10);
        each_sample(&mut evidence, Direction::Upload, Via::Bare, |sample| {
            let protocols = &mut at(sample, End::Here).protocols;
            protocols.insert("Ip.OutDiscards".to_owned(), each);
        });
        only_finding(&evidence, CODE).severity
    };
    assert_eq!(elsewhere(2), Severity::Warning);
    assert_eq!(elsewhere(3), Severity::Info);
}

#[test]
fn errors_of_ipv6_are_swallowed_alike() {
    let mut evidence = sites(0, 0);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        let protocols = &mut at(sample, End::Here).protocols;
        protocols.insert("Ip6.InTooBigErrors".to_owned(), 10);
        protocols.insert("Ip6.OutDiscards".to_owned(), 10);
    });
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
}

#[test]
fn packets_too_large_for_another_link_count_in_the_same_place() {
    let with = |up: bool, mtu: u32| {
        let mut evidence = sites(10, 0);
        facts_of(&mut evidence, End::Here).links.push(Link {
            index: 6,
            name: "ppp0".to_owned(),
            up,
            mtu,
            addresses: vec!["192.0.2.9/32".to_owned()],
            ..Link::default()
        });
        evidence
    };
    nothing(&with(true, 1492));
    assert!(not_checked(&with(true, 1492), CODE));
    only_finding(&with(false, 1492), CODE);
    only_finding(&with(true, 1500), CODE);
}

#[test]
fn an_exit_to_the_internet_has_it_behind_its_own_way_out() {
    let exit = |allowed: &str| {
        let mut evidence = sites(10, 10);
        facts_of(&mut evidence, End::Far).outer_links = vec!["lan0".to_owned()];
        if let Known::Value(peers) = &mut tunnel_of(&mut evidence, End::Here).peers {
            peers[0].allowed_ips = vec![allowed.to_owned()];
        }
        evidence
    };
    // Its own connections announce what fits …
    nothing(&exit("10.9.0.2/32"));
    // … and those it forwards do not.
    only_finding(&exit("0.0.0.0/0"), CODE);
    only_finding(&exit("128.0.0.0/1"), CODE);
    let mut clamping = exit("0.0.0.0/0");
    if let Known::Value(firewall) = &mut facts_of(&mut clamping, End::Far).firewall {
        let filter = firewall.tunnels.entry("wg1".to_owned()).or_default();
        filter.clamps_mss_out = true;
    }
    nothing(&clamping);
}

#[test]
fn a_clamp_at_either_end_is_enough() {
    let clamping = |end: End, incoming: bool| {
        let mut evidence = sites(10, 10);
        if let Known::Value(firewall) = &mut facts_of(&mut evidence, end).firewall {
            let name = if end == End::Here { "wg0" } else { "wg1" };
            let filter = firewall.tunnels.entry(name.to_owned()).or_default();
            filter.clamps_mss_in = incoming;
            filter.clamps_mss_out = !incoming;
        }
        evidence
    };
    nothing(&clamping(End::Here, true));
    nothing(&clamping(End::Far, false));
    only_finding(&clamping(End::Here, false), CODE);
    only_finding(&clamping(End::Far, true), CODE);
}

#[test]
fn a_machine_without_hosts_behind_it_has_nothing_to_clamp() {
    let mut evidence = sites(10, 10);
    facts_of(&mut evidence, End::Here).links[1].forwards_ipv4 = Some(false);
    nothing(&evidence);
    let mut evidence = sites(10, 10);
    facts_of(&mut evidence, End::Here).links[1].mtu = 1420;
    nothing(&evidence);
    let mut evidence = sites(10, 10);
    facts_of(&mut evidence, End::Here).outer_links = vec!["lan0".to_owned()];
    nothing(&evidence);
    // The far end's own connections announce what fits.
    let mut evidence = sites(10, 10);
    facts_of(&mut evidence, End::Far).links.pop();
    nothing(&evidence);
}

#[test]
fn an_unknown_packet_filter_or_far_end_is_said_to_be_unknown() {
    let mut evidence = sites(10, 10);
    facts_of(&mut evidence, End::Here).firewall = Known::because("nft is not installed");
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
    let mut evidence = sites(10, 10);
    forget_far(&mut evidence);
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
}
