use wirespeed_facts::{CoreTime, Known};
use wirespeed_measure::{Direction, Sample, Via};

use super::CODE;
use crate::testing::{
    at, codes, connection, core, each_sample, healthy, kernels_core, not_checked, nothing,
    only_finding, rtt, sample, set_ratio, watched,
};
use crate::{End, Evidence, Goal, Severity, judge};

pub(super) fn swollen(seconds: f64, via: &[Via]) -> Evidence {
    swollen_in(Direction::Download, seconds, via)
}

fn swollen_in(direction: Direction, seconds: f64, via: &[Via]) -> Evidence {
    let mut evidence = healthy();
    for via in via {
        each_sample(&mut evidence, direction, *via, |sample| {
            sample.loaded_rtt = Some(rtt(seconds));
        });
    }
    evidence
}

#[test]
fn sixty_milliseconds_more_are_found_and_less_are_not() {
    nothing(&swollen(0.070, &[Via::Tunnel, Via::Bare]));
    let finding = only_finding(&swollen(0.072, &[Via::Tunnel, Via::Bare]), CODE);
    assert_eq!(
        (finding.host.as_str(), finding.direction),
        ("server", Some(Direction::Download))
    );
    assert!(finding.confidence > 0.8);
    let remedy = &finding.remedies[0];
    assert_eq!(
        (remedy.goal, remedy.changes[0].end),
        (Goal::LoadedRtt, End::Far)
    );
    assert!(remedy.risk.contains("traffic beside the tunnel"));
    let of_the_tunnel = only_finding(&swollen(0.072, &[Via::Tunnel]), CODE);
    assert!(!of_the_tunnel.remedies[0].risk.contains("beside"));
    let share = remedy.changes[0].value.as_f64().unwrap() / (96e6 * 1420.0 / 1368.0);
    assert!((0.90..=0.951).contains(&share), "{share}");
}

#[test]
fn a_long_path_may_swell_more() {
    let mut evidence = swollen(0.240, &[Via::Tunnel, Via::Bare]);
    evidence.idle_rtt_tunnel = Known::Value(rtt(0.100));
    evidence.idle_rtt_bare = Known::Value(rtt(0.100));
    nothing(&evidence);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        sample.loaded_rtt = Some(rtt(0.251));
    });
    only_finding(&evidence, CODE);
}

#[test]
fn the_roads_own_queue_is_not_the_tunnels() {
    nothing(&swollen(0.5, &[Via::Bare]));
}

#[test]
fn a_starved_machine_explains_a_queue_that_only_the_tunnel_has() {
    let starve = |evidence: &mut Evidence| {
        set_ratio(evidence, Direction::Download, 0.6);
        each_sample(evidence, Direction::Download, Via::Tunnel, |sample| {
            at(sample, End::Here).cores = vec![core(0.99); 4];
        });
    };
    let mut evidence = swollen(0.3, &[Via::Tunnel]);
    starve(&mut evidence);
    assert_eq!(codes(&judge(&evidence)), ["cpu-saturated"]);
    let mut evidence = swollen(0.3, &[Via::Tunnel, Via::Bare]);
    starve(&mut evidence);
    assert_eq!(codes(&judge(&evidence)).len(), 2);
}

fn soak(via: Via, seconds: f64) -> Sample {
    let mut soak = sample(via, Direction::Upload, 95e6);
    soak.loaded_rtt = Some(rtt(seconds));
    soak
}

/// A queue that only the longer loads fill.
pub(super) fn soaked() -> Evidence {
    let mut evidence = swollen_in(Direction::Upload, 0.0155, &[Via::Tunnel]);
    evidence.soaks = [Via::Tunnel, Via::Bare].map(|via| soak(via, 0.150)).into();
    evidence
}

#[test]
fn a_queue_that_fills_slowly_shows_in_the_longer_loads_inside_and_outside() {
    let mut evidence = soaked();
    assert_eq!(
        only_finding(&evidence, CODE).direction,
        Some(Direction::Upload)
    );
    evidence.soaks[1] = soak(Via::Bare, 0.069);
    nothing(&evidence);
    evidence.soaks.truncate(1);
    nothing(&evidence);
}

/// The cores of both machines while the direction that swells is loaded that way.
fn with_cores(mut evidence: Evidence, via: Via, cores: &[CoreTime]) -> Evidence {
    let busy = |sample: &mut Sample| {
        for end in [End::Here, End::Far] {
            at(sample, end).cores = cores.to_vec();
        }
    };
    each_sample(&mut evidence, Direction::Upload, via, busy);
    evidence
        .soaks
        .iter_mut()
        .filter(|soak| soak.load.via == via)
        .for_each(busy);
    evidence
}

fn swollen_upload(seconds: f64) -> Evidence {
    swollen_in(Direction::Upload, seconds, &[Via::Tunnel, Via::Bare])
}

#[test]
fn where_a_core_is_full_in_all_loads_the_queue_may_not_be_the_roads() {
    for evidence in [swollen_upload(0.150), soaked()] {
        let full = [kernels_core(0.9), kernels_core(0.2)];
        let evidence = with_cores(evidence, Via::Tunnel, &full);
        only_finding(&evidence, CODE);
        let evidence = with_cores(evidence, Via::Bare, &full);
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
        // Busy, not full; full of programs, whose turn comes after the packets'.
        for others in [[kernels_core(0.8), kernels_core(0.2)], [core(1.0); 2]] {
            let evidence = with_cores(evidence.clone(), Via::Bare, &others);
            only_finding(&evidence, CODE);
            assert!(!not_checked(&evidence, CODE));
        }
        // The tunnel had time to spare, and waited all the same.
        let evidence = with_cores(evidence, Via::Tunnel, &[kernels_core(0.5); 2]);
        only_finding(&evidence, CODE);
    }
}

#[test]
fn a_full_core_without_a_longer_round_trip_leaves_nothing_open() {
    let full = [kernels_core(0.9), kernels_core(0.2)];
    let evidence = with_cores(swollen_upload(0.070), Via::Tunnel, &full);
    let evidence = with_cores(evidence, Via::Bare, &full);
    nothing(&evidence);
    assert!(!not_checked(&evidence, CODE));
}

#[test]
fn one_load_outside_with_time_to_spare_shows_whose_queue_it_is() {
    let full = [kernels_core(1.0), kernels_core(0.2)];
    let mut evidence = with_cores(swollen_upload(0.150), Via::Tunnel, &full);
    evidence = with_cores(evidence, Via::Bare, &full);
    nothing(&evidence);
    evidence.soaks = [Via::Tunnel, Via::Bare].map(|via| soak(via, 0.150)).into();
    only_finding(&evidence, CODE);
}

#[test]
fn a_watched_connection_that_swells_is_for_information() {
    let mut evidence = watched();
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
    connection(&mut evidence).now.info.rtt = 0.070;
    nothing(&evidence);
    connection(&mut evidence).now.info.rtt = 0.072;
    let finding = only_finding(&evidence, CODE);
    assert_eq!(
        (finding.severity, finding.direction),
        (Severity::Info, Some(Direction::Upload))
    );
    connection(&mut evidence).bytes_acked = Some(999_999);
    nothing(&evidence);
}

#[test]
fn too_few_replies_are_said_to_be_too_few() {
    let mut evidence = swollen(0.5, &[Via::Tunnel]);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        sample.loaded_rtt.as_mut().unwrap().received = 2;
    });
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
    let mut evidence = swollen(0.5, &[Via::Tunnel]);
    evidence.idle_rtt_tunnel = Known::because("no raw socket");
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
}
