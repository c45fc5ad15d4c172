use std::collections::BTreeSet;

use wirespeed_facts::{ConntrackTable, Implementation, Known, LinkDetail};
use wirespeed_measure::{Direction, NotMeasured, Via};
use wirespeed_words::{Language, within};

use super::{UNEXPLAINED, judge, leaves_open};
use crate::testing::{
    asleep, at, codes, each_sample, facts_of, healthy, nothing, only_finding, path_mtu, rtt,
    sample, set_ratio, tunnel_of, watched,
};
use crate::view::DIRECTIONS;
use crate::{Asked, End, Evidence, Severity, Verdict};

mod consequences;

#[test]
fn a_good_tunnel_is_healthy() {
    let diagnosis = judge(&healthy());
    assert_eq!(
        (diagnosis.verdict, diagnosis.findings),
        (Verdict::Healthy, vec![])
    );
    assert_eq!(diagnosis.not_checked, []);
}

#[test]
fn what_was_only_watched_is_not_healthy_and_what_is_not_known_is_said_in_a_line_each() {
    let diagnosis = judge(&watched());
    assert_eq!(
        (diagnosis.verdict, diagnosis.findings),
        (Verdict::Unmeasured, vec![])
    );
    assert!(!diagnosis.not_checked.is_empty());
    for one in &diagnosis.not_checked {
        assert!(one.because.len() <= 120, "{}: {}", one.what, one.because);
        assert!(
            !one.because.contains("no load ran"),
            "{}: {}",
            one.what,
            one.because
        );
    }
}

#[test]
fn nothing_measured_is_not_healthy() {
    let mut evidence = healthy();
    evidence.comparisons.clear();
    assert_eq!(judge(&evidence).verdict, Verdict::Unmeasured);
}

#[test]
fn one_direction_alone_is_not_healthy() {
    let mut evidence = healthy();
    evidence.comparisons.truncate(1);
    assert_eq!(judge(&evidence).verdict, Verdict::Unmeasured);
}

/// A firewall that lets in WireGuard's port alone.
#[test]
fn a_tunnel_that_was_never_compared_is_not_healthy() {
    let mut evidence = healthy();
    for comparison in &mut evidence.comparisons {
        comparison.bare = None;
        comparison.bare_unknown = Some("no connection to 192.0.2.1".to_owned());
        comparison.ratio = None;
        comparison.ratio_low = None;
        comparison.ratio_high = None;
        comparison.pairs.clear();
        comparison
            .samples
            .retain(|sample| sample.load.via == Via::Tunnel);
    }
    let diagnosis = judge(&evidence);
    assert_eq!(
        (diagnosis.verdict, diagnosis.findings),
        (Verdict::Unmeasured, vec![])
    );
    let said = &diagnosis.not_checked[..2];
    assert!(said.iter().all(leaves_open), "{said:?}");
    let french = within(Language::French, || judge(&evidence)).not_checked;
    assert!(french[..2].iter().all(leaves_open), "{french:?}");
    assert!(
        said.iter()
            .all(|one| one.because.ends_with("no connection to 192.0.2.1")),
        "{said:?}"
    );
}

#[test]
fn each_direction_is_unexplained_by_itself() {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.7);
    set_ratio(&mut evidence, Direction::Download, 0.2);
    let found = judge(&evidence).findings;
    let told: Vec<_> = found
        .iter()
        .map(|one| (one.direction, one.host.as_str(), one.severity))
        .collect();
    assert_eq!(
        told,
        [
            (Some(Direction::Download), "server", Severity::Critical),
            (Some(Direction::Upload), "client", Severity::Warning)
        ]
    );
    assert!(found[0].because.contains("80 %") && found[1].because.contains("30 %"));
    // A cause in one direction says nothing of the other, and one of idle tunnels nothing of loads.
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    assert_eq!(
        codes_of(&evidence),
        [UNEXPLAINED, "mtu-exceeds-path"],
        "{:?}",
        judge(&evidence).findings
    );
    // Behind a NAT some probes can never be made; they tell of sizes, and of no other cause.
    evidence.not_measured = ["path MTU, download", "another congestion control, download"]
        .map(|what| NotMeasured {
            what: what.to_owned(),
            because: "we are behind address translation".to_owned(),
        })
        .to_vec();
    assert_eq!(codes_of(&evidence), [UNEXPLAINED, "mtu-exceeds-path"]);
    // What there was no time for leaves open what it would have told of: of another cause it tells nothing.
    let late = |code: &str, direction| Asked {
        what: "what there was no time for".to_owned(),
        direction,
        by: vec!["congestion-control".to_owned(), code.to_owned()],
    };
    for (code, direction) in [
        ("mtu-exceeds-path", Direction::Upload),
        ("udp-shaped", Direction::Download),
    ] {
        evidence.no_time = vec![late(code, direction)];
        assert_eq!(codes_of(&evidence), [UNEXPLAINED, "mtu-exceeds-path"]);
    }
    evidence.no_time = vec![late("mtu-exceeds-path", Direction::Download)];
    assert_eq!(codes_of(&evidence), ["mtu-exceeds-path"]);
}

#[test]
fn what_costs_no_load_explains_no_slow_tunnel() {
    let mut evidence = asleep();
    set_ratio(&mut evidence, Direction::Download, 0.7);
    unexplained_beside(&evidence, "nat-timeout");

    // A hub with an account that somebody switched off.
    let mut evidence = healthy();
    for direction in DIRECTIONS {
        set_ratio(&mut evidence, direction, 0.3);
    }
    let mut hub = evidence.clone();
    let Known::Value(peers) = &mut tunnel_of(&mut hub, End::Far).peers else {
        panic!("peers of the far end");
    };
    let mut other = peers[0].clone();
    other.public_key = "another-key".to_owned();
    other.allowed_ips.clear();
    peers.push(other);
    unexplained_beside(&hub, "allowed-ips-overlap");
    assert_eq!(codes_of(&hub).len(), 3, "one for each direction");
    // The same where it may be this very peer.
    facts_of(&mut hub, End::Here).tunnels.clear();
    hub.peer = None;
    assert_eq!(codes_of(&hub), ["allowed-ips-overlap"]);

    // A table that is nearly full has room for this connection …
    facts_of(&mut evidence, End::Far).counters.conntrack = Some(ConntrackTable {
        entries: 950,
        room: 1000,
    });
    unexplained_beside(&evidence, "conntrack-full");
    // … one that refuses had room for whatever carries something …
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        let counted = &mut at(sample, End::Far).protocols;
        counted.insert("Conntrack.drop".to_owned(), 5);
    });
    unexplained_beside(&evidence, "conntrack-full");
    // … and perhaps none for what carries nothing.
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.stalled = true;
    });
    assert_eq!(codes_of(&evidence), ["conntrack-full"]);

    // A further address that another peer has taken, beside the one that the loads take.
    let mut evidence = healthy();
    for direction in DIRECTIONS {
        set_ratio(&mut evidence, direction, 0.3);
    }
    let mut robbed = evidence.clone();
    facts_of(&mut robbed, End::Here).links[0]
        .addresses
        .push("fd00::1/64".to_owned());
    let Known::Value(peers) = &mut tunnel_of(&mut robbed, End::Far).peers else {
        panic!("peers of the far end");
    };
    let mut other = peers[0].clone();
    other.public_key = "another-key".to_owned();
    other.allowed_ips = vec!["fd00::1/128".to_owned()];
    peers.push(other);
    unexplained_beside(&robbed, "allowed-ips-overlap");

    // A kernel that may stop a peer for good, and has not.
    tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
    let facts = facts_of(&mut evidence, End::Far);
    facts.host.kernel = "6.1.150".to_owned();
    facts.links[0].detail = Known::Value(LinkDetail {
        threaded: Known::Value(true),
        ..LinkDetail::default()
    });
    unexplained_beside(&evidence, "old-kernel");

    // A program that accepts slowly.
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.3);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        let counted = &mut at(sample, End::Far).protocols;
        counted.insert("TcpExt.ListenOverflows".to_owned(), 20);
    });
    unexplained_beside(&evidence, "accept-queue");
}

/// What was found is said, and that the tunnel is slow for another reason, too.
fn unexplained_beside(evidence: &Evidence, code: &str) {
    let codes = codes_of(evidence);
    assert!(codes.iter().any(|one| one == code), "{codes:?}");
    assert!(codes.iter().any(|one| one == UNEXPLAINED), "{codes:?}");
}

/// What is found in one direction does not tell that the other is well.
#[test]
fn an_unsteady_direction_is_told_beside_a_finding_in_the_other() {
    let mut evidence = healthy();
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    evidence.comparisons[1].ratio_low = Some(0.45);
    let unsteady = |evidence: &Evidence| {
        let not_checked = judge(evidence).not_checked;
        not_checked.iter().any(|one| one.what == UNEXPLAINED)
    };
    assert!(unsteady(&evidence));
    evidence.comparisons.swap(0, 1);
    for comparison in &mut evidence.comparisons {
        comparison.direction = match comparison.direction {
            Direction::Upload => Direction::Download,
            Direction::Download => Direction::Upload,
        };
    }
    assert!(!unsteady(&evidence), "the finding may explain it");
}

#[test]
fn what_was_looked_for_and_not_found_is_said() {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.7);
    evidence.asked = vec![Asked {
        what: "numbered datagrams outside the tunnel, upload".to_owned(),
        direction: Direction::Upload,
        by: vec!["udp-shaped".to_owned()],
    }];
    let finding = only_finding(&evidence, UNEXPLAINED);
    let said = finding.evidence.last().unwrap();
    assert_eq!(said.after, "no sign of udp-shaped");
}

fn codes_of(evidence: &Evidence) -> Vec<String> {
    codes(&judge(evidence))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Nothing is found, and the first reason why the tunnel can't be called healthy begins so.
fn unmeasured_because(evidence: &Evidence, reason: &str) {
    let diagnosis = judge(evidence);
    assert_eq!(
        (diagnosis.verdict, diagnosis.findings),
        (Verdict::Unmeasured, vec![])
    );
    let because = &diagnosis.not_checked[0].because;
    assert!(because.starts_with(reason), "{because}");
}

#[test]
fn a_slow_tunnel_that_nobody_can_explain_is_not_healthy_either() {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.8);
    nothing(&evidence);
    set_ratio(&mut evidence, Direction::Upload, 0.75);
    assert_eq!(
        only_finding(&evidence, UNEXPLAINED).severity,
        Severity::Warning
    );
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    only_finding(&evidence, "mtu-exceeds-path");
}

#[test]
fn fewer_than_five_pairs_prove_nothing_and_that_is_said() {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.5);
    only_finding(&evidence, UNEXPLAINED);
    evidence.comparisons[0].pairs.truncate(4);
    unmeasured_because(&evidence, "there was time for 4 of at least 5 pairs");
}

#[test]
fn a_single_stall_is_chance() {
    let mut evidence = healthy();
    evidence.comparisons[0].samples.truncate(2);
    evidence.comparisons[0].pairs.truncate(1);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.stalled = true;
    });
    nothing(&evidence);
}

#[test]
fn an_interval_from_slow_to_healthy_is_said_to_be_too_wide() {
    let mut evidence = healthy();
    evidence.comparisons[1].ratio_low = Some(0.45);
    unmeasured_because(
        &evidence,
        "download: the tunnel carries between 45 % and 97 %",
    );
}

#[test]
fn what_several_connections_carry_is_said_where_one_is_too_unsteady() {
    let mut evidence = healthy();
    evidence.comparisons[0].ratio_low = Some(0.45);
    let together = |rate: f64| {
        let mut soak = sample(Via::Tunnel, Direction::Upload, rate);
        soak.load.streams = 8;
        soak
    };
    evidence.soaks = vec![together(95e6)];
    unmeasured_because(
        &evidence,
        "upload: one connection carries between 45 % and 97 %",
    );
    let because = judge(&evidence).not_checked[0].because.clone();
    let figures =
        "8 connections together carry 95.0 Mbit/s, where one outside carries 100.0 Mbit/s";
    assert!(because.contains(figures), "{because}");
    // Together, too, they carry less: nothing to say for the tunnel.
    evidence.soaks = vec![together(60e6)];
    unmeasured_because(
        &evidence,
        "upload: the tunnel carries between 45 % and 97 %",
    );
}

#[test]
fn a_long_road_is_named_where_its_loads_are_short() {
    let mut evidence = healthy();
    evidence.comparisons[1].ratio_low = Some(0.45);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        (sample.load.warm_up, sample.load.seconds) = (0.8, 1.2);
    });
    let because = |evidence: &Evidence| judge(evidence).not_checked[0].because.clone();
    evidence.idle_rtt_tunnel = Known::Value(rtt(0.08));
    let said = "a load of 2.0 s is over after 25 round trips of this road (80 ms)";
    assert!(because(&evidence).contains(said), "{}", because(&evidence));
    evidence.idle_rtt_tunnel = Known::Value(rtt(0.06));
    assert!(!because(&evidence).contains("round trips"));
}

#[test]
fn pairs_that_are_far_apart_prove_little_even_where_all_of_them_are_low() {
    let mut evidence = healthy();
    let mut upload = |low: f64, ratio: f64, high: f64| {
        set_ratio(&mut evidence, Direction::Upload, ratio);
        evidence.comparisons[0].ratio_low = Some(low);
        evidence.comparisons[0].ratio_high = Some(high);
        evidence.clone()
    };
    // As two healthy tunnels over 100 and 300 Mbit/s at 80 ms came out.
    let unsteady = "upload: the tunnel carries between 50 % and 78 %";
    unmeasured_because(&upload(0.5, 0.64, 0.78), unsteady);
    // Low in the middle, though the interval is narrow enough and reaches what is healthy.
    let rather_slow = "upload: the tunnel carries between 60 % and 85 %";
    unmeasured_because(&upload(0.6, 0.7, 0.85), rather_slow);
    // As far apart, but far from healthy.
    only_finding(&upload(0.2, 0.34, 0.48), UNEXPLAINED);
}

#[test]
fn codes_are_unique_and_stable_in_form() {
    let codes = super::codes();
    let unique: BTreeSet<_> = codes.iter().map(|(code, _)| code).collect();
    assert_eq!(unique.len(), codes.len());
    assert!(codes.iter().all(|(code, title)| {
        code.chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '-')
            && !title.is_empty()
    }));
}
