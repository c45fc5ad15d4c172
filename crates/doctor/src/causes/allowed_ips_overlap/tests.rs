use super::{CODE, covers, prefix};
use wirespeed_facts::{DeviceCounters, Known, LinkCounters, Peer, PeerCounters};
use wirespeed_measure::NotMeasured;

use crate::testing::{
    facts_of, forget_far, healthy, not_checked, nothing, only_finding, rtt, tunnel_of, watched,
    watched_here,
};
use crate::{End, Evidence, Severity, Verdict, judge};

fn peers(evidence: &mut Evidence, end: End) -> &mut Vec<Peer> {
    match &mut tunnel_of(evidence, end).peers {
        Known::Value(peers) => peers,
        Known::Unknown(because) => panic!("{because}"),
    }
}

fn another(allowed: &[&str]) -> Peer {
    Peer {
        public_key: "another-key".to_owned(),
        endpoint: None,
        allowed_ips: allowed.iter().map(|&text| text.to_owned()).collect(),
        handshake_age: None,
        keepalive: 0,
        rx_bytes: 0,
        tx_bytes: 0,
    }
}

/// No echo comes back, and no load could run.
fn nothing_passes(evidence: &mut Evidence) {
    evidence.comparisons.clear();
    let mut silence = rtt(0.0);
    (silence.received, silence.median) = (0, None);
    evidence.idle_rtt_tunnel = Known::Value(silence);
}

/// Beside the far end, which has the network behind it alone, a peer for all the rest.
fn joined_by_networks(evidence: &mut Evidence) {
    peers(evidence, End::Here)[0].allowed_ips = vec!["192.168.5.0/24".to_owned()];
    peers(evidence, End::Here).push(another(&["0.0.0.0/0"]));
}

#[test]
fn prefixes_inside_each_other_are_no_fault() {
    let mut evidence = healthy();
    peers(&mut evidence, End::Far).push(another(&["10.9.0.0/24"]));
    nothing(&evidence);
}

#[test]
fn a_peer_robbed_of_its_prefix_is_critical_when_it_is_us_and_no_load_could_run() {
    let mut evidence = healthy();
    peers(&mut evidence, End::Far)[0].allowed_ips.clear();
    peers(&mut evidence, End::Far).push(another(&["10.9.0.1/32"]));
    nothing_passes(&mut evidence);
    evidence.probing_far.as_mut().unwrap().links.insert(
        "wg1".to_owned(),
        LinkCounters {
            rx_frame_errors: 7,
            ..LinkCounters::default()
        },
    );
    let counters = DeviceCounters {
        drops: [("source-not-allowed".to_owned(), 9)].into(),
        ..DeviceCounters::default()
    };
    evidence
        .probing_far
        .as_mut()
        .unwrap()
        .devices
        .insert("wg1".to_owned(), counters);
    let finding = only_finding(&evidence, CODE);
    assert_eq!(
        (finding.severity, finding.host.as_str()),
        (Severity::Critical, "server")
    );
    assert!(
        finding
            .evidence
            .iter()
            .any(|line| line.after == "another-…")
    );
    assert!(finding.evidence.iter().any(|line| line.after == 7));
    assert!(finding.evidence.iter().any(|line| line.after == 9));
    assert!(finding.remedies[0].commands[0].contains("allowed-ips 10.9.0.1/32"));
}

#[test]
fn a_robbed_bystander_is_a_warning() {
    let mut evidence = healthy();
    peers(&mut evidence, End::Far).push(another(&[]));
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
}

#[test]
fn an_address_held_by_another_is_found_though_some_prefix_is_left() {
    let mut evidence = healthy();
    peers(&mut evidence, End::Here)[0].allowed_ips = vec!["192.168.7.0/24".to_owned()];
    peers(&mut evidence, End::Here).push(another(&["10.9.0.0/24"]));
    nothing_passes(&mut evidence);
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
}

#[test]
fn sites_that_are_joined_by_the_networks_behind_them_are_not_cut_off() {
    let mut evidence = healthy();
    joined_by_networks(&mut evidence);
    let finding = only_finding(&evidence, CODE);
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.because.contains("only if 10.9.0.2 is meant"));
    // Loads alone tell it too, and so do echoes.
    let echoes = evidence.idle_rtt_tunnel.clone();
    evidence.idle_rtt_tunnel = Known::because("no permission");
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Info);
    evidence.comparisons.clear();
    evidence.idle_rtt_tunnel = echoes;
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Info);
}

#[test]
fn a_peer_whose_very_address_another_has_is_not_cut_off_while_something_passes() {
    let mut evidence = healthy();
    joined_by_networks(&mut evidence);
    peers(&mut evidence, End::Here)[1].allowed_ips = vec!["10.9.0.2/32".to_owned()];
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
    nothing_passes(&mut evidence);
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
}

#[test]
fn what_flows_by_itself_tells_whether_a_peer_is_cut_off() {
    let mut evidence = watched();
    joined_by_networks(&mut evidence);
    let severity = |evidence: &Evidence| {
        let findings = judge(evidence).findings;
        let own = findings.iter().find(|one| one.code == CODE);
        own.map(|own| own.severity)
    };
    let moved = |evidence: &mut Evidence, rx_bytes: u64, tx_bytes: u64| {
        let moved = PeerCounters { rx_bytes, tx_bytes };
        let watched = watched_here(evidence);
        watched.counters.peers.insert("far-key".to_owned(), moved);
    };
    moved(&mut evidence, 5_000, 5_000);
    assert_eq!(severity(&evidence), Some(Severity::Info));
    // A handshake, or what comes and is dropped: that proves no more than silence does.
    for (rx_bytes, tx_bytes) in [(92, 148), (1_000_000, 148), (0, 0)] {
        moved(&mut evidence, rx_bytes, tx_bytes);
        assert_eq!(severity(&evidence), None);
        let not_checked = judge(&evidence).not_checked;
        let said = |one: &NotMeasured| one.because.contains("nothing was sent that would tell");
        assert!(not_checked.iter().any(|one| one.what == CODE && said(one)));
    }
    // Nobody means to have nothing, nor an address of another's.
    peers(&mut evidence, End::Here)[0].allowed_ips.clear();
    assert_eq!(severity(&evidence), Some(Severity::Critical));
}

#[test]
fn a_further_address_that_the_peer_need_not_hold_is_no_loss() {
    let with = |addresses: &[&str], own: &[&str], anothers: &[&str]| {
        let mut evidence = healthy();
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        facts_of(&mut evidence, End::Far).links[0].addresses = owned(addresses);
        peers(&mut evidence, End::Here)[0].allowed_ips = owned(own);
        peers(&mut evidence, End::Here).push(another(anothers));
        evidence
    };
    let router = ["192.168.50.1/32", "10.9.0.2/24"];
    nothing(&with(&router, &["10.9.0.2/32"], &["0.0.0.0/0"]));
    nothing(&with(&router, &["10.9.0.2/32"], &["192.168.50.1/32"]));
    let both = ["10.9.0.2/24", "fd00::2/64"];
    nothing(&with(&both, &["10.9.0.2/32"], &["0.0.0.0/0", "::/0"]));
    let robbed = with(&both, &["fd00::2/128"], &["10.9.0.2/32"]);
    assert_eq!(only_finding(&robbed, CODE).severity, Severity::Warning);
    let mut robbed = with(&router, &["10.1.0.0/24"], &["10.9.0.0/24"]);
    nothing_passes(&mut robbed);
    let finding = only_finding(&robbed, CODE);
    assert_eq!(finding.severity, Severity::Critical);
    assert!(finding.remedies[0].commands[0].contains("10.1.0.0/24,10.9.0.2/32"));
}

#[test]
fn a_prefix_goes_back_to_whom_it_was_taken_from() {
    let mut evidence = healthy();
    peers(&mut evidence, End::Here)[0].allowed_ips.clear();
    peers(&mut evidence, End::Here).push(another(&["10.9.0.0/30", "10.9.0.2/32"]));
    let undo = &only_finding(&evidence, CODE).remedies[0].undo;
    let lines: Vec<&str> = undo.lines().collect();
    assert_eq!(lines.len(), 2, "{undo}");
    assert!(lines[0].contains("peer far-key allowed-ips ''"), "{undo}");
    assert!(
        lines[1].contains("peer another-key allowed-ips 10.9.0.0/30,10.9.0.2/32"),
        "{undo}"
    );
}

#[test]
fn a_silent_far_end_does_not_make_others_critical() {
    let mut evidence = healthy();
    forget_far(&mut evidence);
    peers(&mut evidence, End::Here).push(another(&[]));
    nothing_passes(&mut evidence);
    let diagnosis = judge(&evidence);
    let own = diagnosis.findings.iter().find(|one| one.code == CODE);
    assert_eq!(own.map(|own| own.severity), Some(Severity::Warning));
    assert!(own.is_some_and(|own| own.confidence < 0.7));
}

#[test]
fn many_peers_that_are_switched_off_are_one_finding() {
    let mut evidence = healthy();
    for number in 0..200 {
        let mut peer = another(&[]);
        peer.public_key = format!("{number:08}-key");
        peers(&mut evidence, End::Far).push(peer);
    }
    let diagnosis = judge(&evidence);
    assert_eq!(diagnosis.findings.len(), 1);
    let finding = &diagnosis.findings[0];
    assert!(finding.because.contains("200 peers"));
    assert!(finding.because.contains("00000007…, …)"));
    assert_eq!(finding.remedies[0].commands.len(), 8);
    assert!(finding.evidence.len() < 20);
}

#[test]
fn without_the_far_ends_address_little_can_be_told() {
    let mut evidence = healthy();
    forget_far(&mut evidence);
    let said = |evidence: &Evidence| {
        let not_checked = judge(evidence).not_checked;
        let said = |one: &NotMeasured| one.because.contains("inside the tunnel is not known");
        not_checked.iter().any(|one| one.what == CODE && said(one))
    };
    assert!(!said(&evidence));
    peers(&mut evidence, End::Here).push(another(&["10.9.0.2/32"]));
    assert!(said(&evidence));
}

#[test]
fn unknown_peers_are_said_to_be_unknown() {
    let mut evidence = healthy();
    tunnel_of(&mut evidence, End::Far).peers = Known::because("no permission");
    assert!(not_checked(&evidence, CODE));
    evidence.comparisons.clear();
    assert_eq!(judge(&evidence).verdict, Verdict::Unmeasured);
}

#[test]
fn a_prefix_covers_its_addresses() {
    let covered =
        |network: &str, address: &str| covers(prefix(network).unwrap(), address.parse().unwrap());
    assert!(covered("10.0.0.0/24", "10.0.0.7"));
    assert!(!covered("10.0.0.0/24", "10.0.1.7"));
    assert!(covered("0.0.0.0/0", "192.0.2.1"));
    assert!(covered("::/0", "2001:db8::1"));
    assert!(!covered("::/0", "192.0.2.1"));
    assert!(covered("fd00::2/128", "fd00::2"));
    assert!(prefix("10.0.0.1/33").is_none());
}
