use std::net::SocketAddr;

use wirespeed_facts::{Known, Link};
use wirespeed_measure::{Direction, Via};

use super::{CODE, wants};
use crate::probe::{Datagrams, Probe};
use crate::testing::{
    at, codes, core, each_sample, facts_of, healthy, not_checked, only_finding, path_mtu, rtt,
    sequence, set_outer, set_ratio, tunnel_of,
};
use crate::{End, Evidence, judge};

fn at_rate(arrived: f64) -> wirespeed_measure::SequenceProbe {
    let sent = 10_000;
    let mut probe = sequence(
        Direction::Upload,
        sent,
        (sent as f64 * (1.0 - arrived)) as u64,
    );
    probe.payload = 1360;
    probe.offered = 70e6;
    probe.arrived = 70e6 * arrived;
    probe
}

fn slow(arrived: f64) -> Evidence {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.3);
    evidence.sequences.push(at_rate(arrived));
    evidence
}

fn has(evidence: &Evidence) -> bool {
    codes(&judge(evidence)).contains(&CODE)
}

#[test]
fn udp_that_loses_a_seventh_where_tcp_does_not_is_policed() {
    assert!(!has(&slow(0.86)));
    let finding = only_finding(&slow(0.84), CODE);
    assert_eq!(
        (finding.host.as_str(), finding.direction),
        ("client", Some(Direction::Upload))
    );
    // Neither end has the address that is called: the port would be that of somebody's port forward.
    assert!(finding.remedies[0].commands.is_empty());
    assert!(finding.remedies[0].title.contains("by hand"));
}

#[test]
fn the_end_that_is_called_gets_the_other_port() {
    let called = |end: End| {
        let mut evidence = slow(0.3);
        let caller = if end == End::Here {
            End::Far
        } else {
            End::Here
        };
        facts_of(&mut evidence, end).links.push(Link {
            index: 3,
            name: "eth0".to_owned(),
            up: true,
            mtu: 1500,
            addresses: vec!["192.0.2.1/24".to_owned()],
            ..Link::default()
        });
        // The caller is behind a NAT and has the port that its kernel chose.
        tunnel_of(&mut evidence, caller).listen_port = Some(41_234);
        if let Known::Value(peers) = &mut tunnel_of(&mut evidence, end).peers {
            peers[0].endpoint = Some(SocketAddr::from(([198, 51, 100, 7], 6_112)));
        }
        only_finding(&evidence, CODE).remedies[0].clone()
    };
    let remedy = called(End::Far);
    assert!(remedy.commands[0].starts_with("wg set wg1 listen-port 443  # on server"));
    assert!(remedy.commands[1].contains("peer far-key endpoint 192.0.2.1:443  # on client"));
    assert!(remedy.undo.contains("192.0.2.1:51820"));
    let remedy = called(End::Here);
    assert!(remedy.commands[0].starts_with("wg set wg0 listen-port 443  # on client"));
    assert!(remedy.commands[1].contains("peer here-key endpoint 192.0.2.1:443  # on server"));
    assert!(remedy.undo.contains("192.0.2.1:51820"));
}

#[test]
fn the_other_port_is_another_one_and_free() {
    let mut evidence = slow(0.3);
    facts_of(&mut evidence, End::Far).links.push(Link {
        addresses: vec!["192.0.2.1/24".to_owned()],
        ..Link::default()
    });
    tunnel_of(&mut evidence, End::Far).listen_port = Some(443);
    if let Known::Value(peers) = &mut tunnel_of(&mut evidence, End::Here).peers {
        peers[0].endpoint = Some(SocketAddr::from(([192, 0, 2, 1], 443)));
    }
    let moved_to = |evidence: &Evidence, port: u16| {
        let remedy = only_finding(evidence, CODE).remedies[0].clone();
        let listen = format!("wg set wg1 listen-port {port}  # on server");
        assert_eq!(remedy.commands[0], listen);
        assert!(remedy.undo.contains("192.0.2.1:443"));
        assert!(remedy.title.contains(&port.to_string()));
    };
    moved_to(&evidence, 4500);
    let mut others = evidence.clone();
    for port in [4500, 51_820] {
        let mut other = tunnel_of(&mut others, End::Far).clone();
        other.name = format!("wg{port}");
        other.listen_port = Some(port);
        facts_of(&mut others, End::Far).tunnels.push(other);
    }
    moved_to(&others, 51_821);
}

#[test]
fn it_is_asked_only_where_the_tunnel_is_far_slower_and_nothing_explains_it() {
    let mut evidence = healthy();
    assert_eq!(wants(&evidence, Direction::Upload), None);
    set_ratio(&mut evidence, Direction::Upload, 0.69);
    let probe = Some(Probe::Sequence(Datagrams::at_rate(
        Direction::Upload,
        70e6,
        2.5,
    )));
    assert_eq!(wants(&evidence, Direction::Upload), probe);
    assert!(not_checked(&evidence, CODE));
    evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
    assert_eq!(wants(&evidence, Direction::Upload), None);
}

#[test]
fn datagrams_tell_a_policed_road_from_a_processor_that_is_busy_with_other_work() {
    let busy = |mut evidence: Evidence| {
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        evidence
    };
    only_finding(&busy(slow(0.4)), CODE);
    only_finding(&busy(slow(1.0)), "cpu-saturated");
    let mut evidence = slow(1.0);
    set_outer(&mut evidence, Direction::Upload, 10_000_000, 9_000_000);
    only_finding(&busy(evidence), "cpu-saturated");
    // Too little room is enough to leave it open.
    let mut evidence = slow(1.0);
    set_outer(&mut evidence, Direction::Upload, 10_000_000, 9_000_000);
    assert!(has(&evidence));
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![core(0.76); 4];
    });
    assert!(!has(&evidence));
}

#[test]
fn a_tunnel_that_keeps_up_is_not_shaped_whatever_udp_does() {
    let mut evidence = slow(0.3);
    set_ratio(&mut evidence, Direction::Upload, 0.72);
    assert!(!has(&evidence));
}

#[test]
fn the_tunnels_own_packets_lost_and_no_others_is_its_port() {
    let mut evidence = slow(1.0);
    assert!(!has(&evidence));
    set_outer(&mut evidence, Direction::Upload, 10_000_000, 9_810_000);
    assert!(!has(&evidence));
    set_outer(&mut evidence, Direction::Upload, 10_000_000, 9_790_000);
    let finding = only_finding(&evidence, CODE);
    assert!(finding.confidence < 0.8);
    // What the receiver's own socket dropped the road did not lose.
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .socket_drops
            .insert("78".to_owned(), 100);
    });
    assert!(!has(&evidence));
}

#[test]
fn a_receiver_that_lost_them_itself_proves_nothing() {
    let mut evidence = slow(0.3);
    evidence.sequences.last_mut().unwrap().receiver_dropped = 300;
    assert!(!has(&evidence));
}

#[test]
fn a_queue_that_only_the_tunnel_fills_is_the_shapers() {
    let mut evidence = slow(0.3);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.4));
    });
    only_finding(&evidence, CODE);
}
