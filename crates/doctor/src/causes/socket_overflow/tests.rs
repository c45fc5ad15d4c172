use wirespeed_facts::{DeviceStatistics, Implementation, Known};
use wirespeed_measure::{Direction, Via};

use super::CODE;
use crate::testing::{
    at, codes, core, each_sample, facts_of, healthy, not_checked, nothing, only_finding, set_ratio,
    tunnel_of, watched, watched_here,
};
use crate::{End, Evidence, Severity, judge};

fn dropping(each: u64) -> Evidence {
    let mut evidence = healthy();
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .socket_drops
            .insert("77".to_owned(), each);
    });
    evidence
}

#[test]
fn twenty_drops_are_tolerated_and_more_are_not() {
    nothing(&dropping(4));
    let finding = only_finding(&dropping(5), CODE);
    assert_eq!(
        (finding.severity, finding.host.as_str(), finding.direction),
        (Severity::Warning, "server", Some(Direction::Upload))
    );
    assert_eq!(finding.remedies[0].changes[0].value, 4 << 20);
    assert!(finding.evidence.iter().any(|line| line.after == 212_992));
}

#[test]
fn the_far_socket_is_tuned_from_here() {
    let remedy = only_finding(&dropping(500), CODE).remedies[0].clone();
    assert_eq!(remedy.changes[0].end, End::Far);
    assert!(remedy.commands.is_empty(), "by hand nobody can");
    assert!(remedy.undo.contains("wg1 back to 212\u{a0}992 bytes"));
}

#[test]
fn larger_defaults_are_put_back_with_a_restart() {
    let restart = "wg-quick down wg1 && wg-quick up wg1  # on server";
    let mut evidence = dropping(500);
    let remedy = only_finding(&evidence, CODE).remedies[1].clone();
    assert_eq!(remedy.commands.len(), 3);
    let undo: Vec<&str> = remedy.undo.lines().collect();
    assert_eq!(undo.len(), 3);
    assert!(undo[1].starts_with("sysctl -w net.core.rmem_default='212992'"));
    assert_eq!(undo[2], restart);
    assert!(
        remedy
            .risk
            .contains("not from a session through this tunnel")
    );
    // A namespace may not show them.
    facts_of(&mut evidence, End::Far).sysctls.clear();
    let remedy = only_finding(&evidence, CODE).remedies[1].clone();
    assert!(remedy.commands[0].starts_with("sysctl net.core.rmem_max  # in the host's"));
    let undo: Vec<&str> = remedy.undo.lines().collect();
    assert!(undo[0].starts_with("sysctl -w net.core.rmem_max=…"));
    assert_eq!(undo[2], restart);
}

#[test]
fn few_drops_among_many_packets_are_tolerated() {
    let mut evidence = dropping(30);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .links
            .get_mut("wg1")
            .unwrap()
            .rx_packets = 200_000;
    });
    nothing(&evidence);
}

#[test]
fn a_device_that_sizes_its_own_sockets_gains_nothing_by_the_sysctls() {
    let mut evidence = dropping(500);
    tunnel_of(&mut evidence, End::Far).statistics = Some(Known::Value(DeviceStatistics::default()));
    let finding = only_finding(&evidence, CODE);
    assert_eq!(finding.remedies.len(), 1);
    assert!(finding.refused[0].why.contains("SO_RCVBUFFORCE"));
}

#[test]
fn a_large_socket_gets_no_larger_one() {
    let mut evidence = dropping(500);
    if let Known::Value(sockets) = &mut tunnel_of(&mut evidence, End::Far).sockets {
        sockets[0].receive_buffer = 64 << 20;
    }
    let finding = only_finding(&evidence, CODE);
    assert!(finding.remedies.is_empty());
    assert!(finding.refused[0].why.contains("64 MiB"));
}

/// wireguard-go's own 7 MiB, as the kernel reports them.
#[test]
fn a_daemon_that_has_forced_its_size_is_not_told_to_raise_the_defaults() {
    let with = |buffer: u32| {
        let mut evidence = dropping(500);
        if let Known::Value(sockets) = &mut tunnel_of(&mut evidence, End::Far).sockets {
            sockets[0].receive_buffer = buffer;
        }
        only_finding(&evidence, CODE)
    };
    let forced = with(14_680_064);
    assert!(forced.remedies.is_empty());
    assert!(forced.refused[0].why.contains("14 MiB"));
    assert_eq!(with(14_680_062).remedies.len(), 2);
}

#[test]
fn drops_while_watched_are_found_and_one_burst_is_not() {
    let dropping = |slices: usize, each: u64| {
        let mut evidence = watched();
        for slice in watched_here(&mut evidence).slices.iter_mut().take(slices) {
            slice.socket_drops.insert("77".to_owned(), each);
        }
        evidence
    };
    nothing(&dropping(0, 0));
    assert!(not_checked(&dropping(0, 0), CODE));
    nothing(&dropping(1, 500));
    nothing(&dropping(2, 10));
    let finding = only_finding(&dropping(2, 11), CODE);
    assert_eq!(
        (finding.severity, finding.direction),
        (Severity::Warning, None)
    );
}

#[test]
fn another_socket_is_not_the_tunnels() {
    let mut evidence = healthy();
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .socket_drops
            .insert("78".to_owned(), 500);
    });
    nothing(&evidence);
}

#[test]
fn one_sample_alone_makes_no_finding() {
    let mut evidence = healthy();
    let sample = evidence.comparisons[0]
        .samples
        .iter_mut()
        .find(|sample| sample.load.via == Via::Tunnel)
        .unwrap();
    at(sample, End::Far)
        .socket_drops
        .insert("77".to_owned(), 500);
    nothing(&evidence);
}

#[test]
fn it_is_critical_below_half_of_bare() {
    let mut evidence = dropping(500);
    set_ratio(&mut evidence, Direction::Upload, 0.3);
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
}

#[test]
fn the_kernels_tunnel_is_refused_and_never_found() {
    let mut evidence = dropping(500);
    tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
    let diagnosis = judge(&evidence);
    assert_eq!(diagnosis.findings, []);
    assert_eq!(diagnosis.refused.len(), 1);
    assert!(diagnosis.refused[0].why.contains("encap handler"));
}

#[test]
fn a_starved_daemon_explains_it() {
    let mut evidence = dropping(500);
    set_ratio(&mut evidence, Direction::Upload, 0.6);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![core(0.99); 4];
    });
    let diagnosis = judge(&evidence);
    assert_eq!(codes(&diagnosis), ["cpu-saturated"]);
    assert_eq!(
        diagnosis.findings[1].consequence_of.as_deref(),
        Some("cpu-saturated")
    );
    // Out of processor at the other machine explains nothing here.
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![core(0.3); 4];
        at(sample, End::Here).cores = vec![core(0.99); 4];
    });
    assert_eq!(codes(&judge(&evidence)).len(), 2);
}

#[test]
fn a_buffer_too_small_for_anybody_is_not_the_processors_fault() {
    let mut evidence = dropping(500);
    set_ratio(&mut evidence, Direction::Upload, 0.2);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![core(0.99); 4];
    });
    if let Known::Value(sockets) = &mut tunnel_of(&mut evidence, End::Far).sockets {
        sockets[0].receive_buffer = 12_288;
    }
    only_finding(&evidence, CODE);
}

#[test]
fn unknown_sockets_are_said_to_be_unknown() {
    let mut evidence = healthy();
    tunnel_of(&mut evidence, End::Here).sockets = Known::because("sock_diag was refused");
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
}
