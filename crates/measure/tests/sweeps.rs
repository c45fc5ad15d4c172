//! Loads that pace themselves, and the search for the rate that stays stable, between namespaces.

#[path = "common/road.rs"]
mod road;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use road::Road;
use wirespeed_measure::{Direction, FarEnd, Load, MeasureError, Protocol, Quiet, Via};

const BOTH: [Direction; 2] = [Direction::Upload, Direction::Download];

fn paced(direction: Direction, streams: u32, rate: f64) -> Load {
    Load {
        via: Via::Tunnel,
        direction,
        protocol: Protocol::Tcp,
        streams,
        seconds: 2.0,
        warm_up: 1.0,
        congestion_control: None,
        rate: Some(rate),
    }
}

#[test]
fn a_paced_load_keeps_its_rate_both_ways() {
    let Some(road) = Road::make("a_paced_load_keeps_its_rate_both_ways") else {
        return;
    };
    let ends = road.ends();
    for direction in BOTH {
        for (streams, control) in [(1, None), (1, Some("reno")), (4, None)] {
            let load = Load {
                congestion_control: control.map(str::to_owned),
                ..paced(direction, streams, 20e6)
            };
            let sample = ends.sample(&load).unwrap();
            let what = format!(
                "{direction:?} {streams} {control:?}: {:.1}",
                sample.rate / 1e6
            );
            assert_eq!(sample.load, load, "{what}");
            // A busy machine may be slower; faster is no pacing.
            assert!((8e6..22e6).contains(&sample.rate), "{what}");
            let (link, delta) = match direction {
                Direction::Upload => (road.link("a"), &sample.here),
                Direction::Download => (road.link("b"), sample.far.as_ref().unwrap()),
            };
            assert!(delta.links[&link].tx_bytes > sample.bytes, "{what}");
            assert!(
                sample.windows.is_some() && sample.retransmits.is_some(),
                "{what}"
            );
        }
    }
    let other = road.ends_with(
        road.machine("a"),
        FarEnd::Iperf3 {
            host: "10.92.2.1".to_owned(),
            port: 5201,
        },
    );
    let error = other
        .sample(&paced(Direction::Download, 1, 1e6))
        .unwrap_err();
    assert!(
        matches!(&error, MeasureError::LoadFailed { because, .. } if because.contains("far end")),
        "{error}"
    );
}

#[test]
fn a_steady_road_is_stable_just_below_its_rate() {
    let Some(road) = Road::make("a_steady_road_is_stable_just_below_its_rate") else {
        return;
    };
    road.limit("30mbit");
    let ends = road.ends();
    let told = AtomicU32::new(0);
    let progress = |_: &str, done: f64, _: f64| {
        assert!((0.0..=1.0).contains(&done));
        told.fetch_add(1, Ordering::Relaxed);
    };
    let sweep = ends
        .rate_sweep(
            Direction::Download,
            28e6,
            Duration::from_secs(60),
            &progress,
        )
        .unwrap();
    assert!(told.load(Ordering::Relaxed) >= 2);
    assert!(
        sweep.steps[0].cap.is_none() && sweep.steps.len() >= 2,
        "{sweep:?}"
    );
    let stable = sweep.stable_cap.expect("a steady road");
    assert!((10e6..30e6).contains(&stable), "{sweep:?}");
    assert!(
        sweep.steps.iter().all(|step| step.loaded_rtt.is_some()),
        "{sweep:?}"
    );
}

#[test]
fn a_road_that_polices_is_stable_below_what_it_passes() {
    let Some(road) = Road::make("a_road_that_polices_is_stable_below_what_it_passes") else {
        return;
    };
    // About 12 Mbit/s of the 60 that it might seem to have; what is above is thrown away, not queued.
    let rules = "table ip police {
        chain f {
            type filter hook forward priority 0;
            ip length > 500 limit rate over 1500 kbytes/second burst 20 kbytes drop
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let sweep = ends
        .rate_sweep(Direction::Upload, 60e6, Duration::from_secs(60), &Quiet)
        .unwrap();
    assert!(!sweep.steps[1].stable, "{sweep:?}");
    let stable = sweep.stable_cap.expect("a policer passes its rate");
    assert!((4e6..13e6).contains(&stable), "{sweep:?}");
}

#[test]
fn a_sweep_keeps_to_its_budget() {
    let Some(road) = Road::make("a_sweep_keeps_to_its_budget") else {
        return;
    };
    road.limit("30mbit");
    let begun = Instant::now();
    let sweep = road
        .ends()
        .rate_sweep(Direction::Upload, 1e9, Duration::from_secs(3), &Quiet)
        .unwrap();
    assert_eq!((sweep.steps.len(), sweep.stable_cap), (1, None));
    assert!(begun.elapsed() < Duration::from_secs(15));
}
