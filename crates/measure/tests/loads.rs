//! Real loads between namespaces, through real agents.

#[path = "common/road.rs"]
mod road;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use road::{B_BARE, Road};
use wirespeed_measure::{
    AbPlan, ComparePlan, CountedBy, Direction, FarEnd, Load, MeasureError, Protocol, Quiet, Side,
    Via, ab, compare, goodput,
};

fn tcp(via: Via, direction: Direction, streams: u32) -> Load {
    Load {
        via,
        direction,
        protocol: Protocol::Tcp,
        streams,
        seconds: 1.5,
        warm_up: 0.5,
        congestion_control: None,
        rate: None,
    }
}

/// The quick plan, on a machine that may be busy with other tests.
fn patient(direction: Direction) -> ComparePlan {
    ComparePlan {
        budget: Duration::from_secs(120),
        ..ComparePlan::quick(direction, 1)
    }
}

#[test]
fn both_directions_tell_bytes_windows_and_round_trips() {
    let Some(road) = Road::make("both_directions_tell_bytes_windows_and_round_trips") else {
        return;
    };
    road.limit("100mbit");
    let ends = road.ends();
    for direction in [Direction::Upload, Direction::Download] {
        for streams in [1, 4] {
            let load = tcp(Via::Tunnel, direction, streams);
            let sample = ends.sample(&load).unwrap();
            let what = format!("{direction:?} {streams}: {:.1} Mbit/s", sample.rate / 1e6);
            assert!(sample.rate > 30e6 && sample.rate < 120e6, "{what}");
            assert!(
                (1.0..2.0).contains(&sample.ran),
                "{what}, ran {}",
                sample.ran
            );
            assert_eq!(sample.counted_by, CountedBy::Receiver, "{what}");
            assert!(
                !sample.stalled && sample.dead_streams == 0,
                "{what}, dead {}",
                sample.dead_streams
            );
            let told = sample
                .intervals
                .iter()
                .filter(|interval| interval.congestion_window > Some(0))
                .count();
            assert!(
                told * 10 >= sample.intervals.len() * 7,
                "{what}: window in {told} of {}",
                sample.intervals.len()
            );
            assert!(
                sample.retransmits.is_some() && sample.congestion_control.is_some(),
                "{what}"
            );
            let warm_up = sample
                .intervals
                .iter()
                .filter(|interval| interval.warm_up)
                .count();
            assert!((2..=6).contains(&warm_up), "{what}: {warm_up}");
            let rtt = sample.loaded_rtt.unwrap();
            assert!(
                rtt.sent > 50 && rtt.received > 10 && rtt.median.unwrap() < 0.2,
                "{what}: {rtt:?}"
            );
            let far = sample.far.unwrap();
            let (link, delta) = match direction {
                Direction::Upload => (road.link("b"), far),
                Direction::Download => (road.link("a"), sample.here),
            };
            assert!(delta.links[&link].rx_bytes >= sample.bytes, "{what}");
        }
    }
    assert!(
        road.running("b", "iperf3").is_empty(),
        "a server stayed behind"
    );
}

#[test]
fn the_senders_congestion_control_is_the_one_asked_for() {
    let Some(road) = Road::make("the_senders_congestion_control_is_the_one_asked_for") else {
        return;
    };
    road.limit("100mbit");
    let ends = road.ends();
    for direction in [Direction::Upload, Direction::Download] {
        let load = Load {
            congestion_control: Some("reno".to_owned()),
            ..tcp(Via::Bare, direction, 1)
        };
        assert_eq!(
            ends.sample(&load).unwrap().congestion_control.as_deref(),
            Some("reno")
        );
    }
    let unknown = Load {
        congestion_control: Some("nosuch".to_owned()),
        ..tcp(Via::Bare, Direction::Upload, 1)
    };
    let error = ends.sample(&unknown).unwrap_err();
    assert!(matches!(&error, MeasureError::LoadFailed { .. }), "{error}");
    assert!(error.to_string().contains("TCP_CONGESTION"), "{error}");
}

#[test]
fn udp_above_the_rate_of_the_road_is_lost() {
    let Some(road) = Road::make("udp_above_the_rate_of_the_road_is_lost") else {
        return;
    };
    road.limit("50mbit");
    let ends = road.ends();
    for direction in [Direction::Upload, Direction::Download] {
        let load = Load {
            protocol: Protocol::Udp,
            rate: Some(100e6),
            ..tcp(Via::Tunnel, direction, 2)
        };
        let sample = ends.sample(&load).unwrap();
        let lost = sample.lost.unwrap();
        assert!((0.2..0.8).contains(&lost), "{direction:?}: lost {lost}");
        assert!(
            sample.rate < 55e6 && sample.retransmits.is_none(),
            "{direction:?}: {}",
            sample.rate
        );
        let below = Load {
            rate: Some(10e6),
            ..load
        };
        let sample = ends.sample(&below).unwrap();
        assert!(
            sample.lost.unwrap() < 0.05,
            "{direction:?}: lost {:?}",
            sample.lost
        );
        assert!(
            // iperf3 sends later what it could not send in time, during the warm-up for instance.
            (8e6..13e6).contains(&sample.rate),
            "{direction:?}: {}",
            sample.rate
        );
    }
}

#[test]
fn a_black_hole_is_a_stalled_sample_and_ends_in_time() {
    let Some(road) = Road::make("a_black_hole_is_a_stalled_sample_and_ends_in_time") else {
        return;
    };
    let ends = road.ends();
    road.filter("r", "table inet hole { chain f { type filter hook forward priority 0; meta length > 1000 drop\n }\n }");
    for (direction, streams) in [
        (Direction::Upload, 1),
        (Direction::Download, 1),
        (Direction::Upload, 10),
        (Direction::Download, 10),
    ] {
        let begun = Instant::now();
        let sample = ends.sample(&tcp(Via::Tunnel, direction, streams)).unwrap();
        assert!(
            sample.stalled && sample.bytes == 0,
            "{direction:?} {streams}: {} bytes",
            sample.bytes
        );
        assert_eq!(sample.dead_streams, streams);
        let limit = Duration::from_secs_f64(2.0 + 3.0 + 0.5 + 3.0);
        assert!(
            begun.elapsed() < limit,
            "{direction:?} {streams}: {:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn a_load_that_did_not_run_is_an_error() {
    let Some(road) = Road::make("a_load_that_did_not_run_is_an_error") else {
        return;
    };
    let load = tcp(Via::Bare, Direction::Upload, 1);

    let nothing = road.ends_with(road.machine("a"), FarEnd::Nothing);
    assert!(matches!(
        nothing.sample(&load),
        Err(MeasureError::NothingFar)
    ));

    let far = FarEnd::Iperf3 {
        host: B_BARE.to_owned(),
        port: 5999,
    };
    let refused = road.ends_with(road.machine("a"), far);
    let error = refused.sample(&load).unwrap_err();
    assert!(
        matches!(&error, MeasureError::NoConnection { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("Connection refused"), "{error}");

    road.filter(
        "b",
        "table inet f { chain i { type filter hook input priority 0; tcp dport 5999 drop\n }\n }",
    );
    let begun = Instant::now();
    let error = refused.sample(&load).unwrap_err();
    assert!(
        matches!(&error, MeasureError::NoConnection { .. }),
        "{error}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );

    // An agent whose PATH leads to setpriv only.
    let folder = std::env::temp_dir().join(road.netns("path"));
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/usr/bin/setpriv", folder.join("setpriv")).unwrap();
    let wrapper = folder.join("agent");
    let script = format!(
        "#!/bin/sh\nPATH={} exec {} \"$@\"\n",
        folder.display(),
        road::agent().display()
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let bare = road.ends_with(
        road.machine("a"),
        FarEnd::Wirespeed(road.machine_with("b", wrapper)),
    );
    let error = bare.sample(&load).unwrap_err();
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(&error, MeasureError::NoIperf3 { .. }), "{error}");
    assert!(error.to_string().contains(&road.netns("b")), "{error}");
}

#[test]
fn a_plain_iperf3_server_will_do_and_may_be_busy() {
    let Some(road) = Road::make("a_plain_iperf3_server_will_do_and_may_be_busy") else {
        return;
    };
    road.limit("50mbit");
    let mut server = Command::new("ip")
        .args([
            "netns",
            "exec",
            &road.netns("b"),
            "iperf3",
            "-s",
            "-p",
            "5333",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let far = FarEnd::Iperf3 {
        host: B_BARE.to_owned(),
        port: 5333,
    };
    let ends = road.ends_with(road.machine("a"), far);
    let upload = ends.sample(&tcp(Via::Bare, Direction::Upload, 1)).unwrap();
    assert_eq!(upload.counted_by, CountedBy::Sender);
    assert!(upload.retransmits.is_some() && upload.far.is_none());
    assert!(upload.rate > 10e6 && upload.rate < 60e6, "{}", upload.rate);
    let download = ends
        .sample(&tcp(Via::Bare, Direction::Download, 1))
        .unwrap();
    assert_eq!(download.counted_by, CountedBy::Receiver);
    assert!(download.retransmits.is_none() && download.retransmits_with_warm_up.is_some());

    let mut other = Command::new("ip")
        .args([
            "netns",
            "exec",
            &road.netns("a"),
            "iperf3",
            "-c",
            B_BARE,
            "-p",
            "5333",
            "-t",
            "2",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let waited = Instant::now();
    let sample = ends.sample(&tcp(Via::Bare, Direction::Upload, 1)).unwrap();
    assert!(!sample.stalled && waited.elapsed() > Duration::from_secs(3));
    other.wait().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_stop_ends_a_load_within_a_second() {
    let Some(road) = Road::make("a_stop_ends_a_load_within_a_second") else {
        return;
    };
    road.limit("50mbit");
    let ends = road.ends();
    let stop = ends.stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        stop.stop();
        Instant::now()
    });
    let load = Load {
        seconds: 60.0,
        ..tcp(Via::Tunnel, Direction::Download, 2)
    };
    let error = ends.sample(&load).unwrap_err();
    let took = stopper.join().unwrap().elapsed();
    assert!(matches!(error, MeasureError::Stopped), "{error}");
    assert!(took < Duration::from_millis(1500), "{took:?}");
    std::thread::sleep(Duration::from_secs(2));
    assert!(road.running("a", "iperf3").is_empty() && road.running("b", "iperf3").is_empty());
}

#[test]
fn children_die_with_their_agents() {
    let Some(road) = Road::make("children_die_with_their_agents") else {
        return;
    };
    road.limit("50mbit");
    let ends = road.ends();
    let load = Load {
        seconds: 60.0,
        ..tcp(Via::Tunnel, Direction::Upload, 1)
    };
    std::thread::scope(|scope| {
        let sampling = scope.spawn(|| ends.sample(&load));
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!road.running("a", "iperf3").is_empty() && !road.running("b", "iperf3").is_empty());
        for host in ["a", "b"] {
            for pid in road.running(host, "measure_agent") {
                road::run("kill", &["-KILL", &pid]);
            }
        }
        assert!(sampling.join().unwrap().is_err());
    });
    let until = Instant::now() + Duration::from_secs(5);
    while !(road.running("a", "iperf3").is_empty() && road.running("b", "iperf3").is_empty()) {
        assert!(Instant::now() < until, "iperf3 outlived its agent");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_comparison_takes_turns_and_holds_its_ratio() {
    let Some(road) = Road::make("a_comparison_takes_turns_and_holds_its_ratio") else {
        return;
    };
    road.limit("100mbit");
    let ends = road.ends();
    let found = compare(&ends, &patient(Direction::Upload), &Quiet).unwrap();
    let order: Vec<Via> = found.samples.iter().map(|sample| sample.load.via).collect();
    assert_eq!(
        order,
        [
            Via::Bare,
            Via::Tunnel,
            Via::Tunnel,
            Via::Bare,
            Via::Bare,
            Via::Tunnel,
            Via::Tunnel,
            Via::Bare,
            Via::Bare,
            Via::Tunnel
        ]
    );
    assert_eq!(found.pairs.len(), 5);
    let (ratio, low, high) = (
        found.ratio.unwrap(),
        found.ratio_low.unwrap(),
        found.ratio_high.unwrap(),
    );
    assert!(
        low <= ratio && ratio <= high && (0.6..1.5).contains(&ratio),
        "{low} {ratio} {high}"
    );
    assert!(found.bare.is_some() && found.bare_unknown.is_none());
}

#[test]
fn without_a_bare_path_the_tunnel_alone_is_measured() {
    let Some(road) = Road::make("without_a_bare_path_the_tunnel_alone_is_measured") else {
        return;
    };
    road.limit("100mbit");
    let mut ends = road.ends();
    ends.bare_address = None;
    let found = compare(&ends, &patient(Direction::Download), &Quiet).unwrap();
    assert!(found.bare_unknown.unwrap().contains("--bare-address"));
    assert!(found.ratio.is_none() && found.bare.is_none() && found.tunnel > 30e6);
    assert_eq!(found.samples.len(), 5);
}

#[test]
fn a_stalled_tunnel_is_not_measured_to_the_end_of_the_budget() {
    let Some(road) = Road::make("a_stalled_tunnel_is_not_measured_to_the_end_of_the_budget") else {
        return;
    };
    road.limit("100mbit");
    let ends = road.ends();
    let hole = "table ip hole { chain f { type filter hook forward priority 0; ip daddr 10.92.0.0/16 meta length > 1000 drop\n }\n }";
    road.filter("r", hole);
    let found = compare(&ends, &patient(Direction::Upload), &Quiet).unwrap();
    assert_eq!(
        (found.ratio, found.ratio_low, found.tunnel),
        (Some(0.0), Some(0.0), 0.0)
    );
    assert!(found.bare.unwrap() > 30e6 && found.pairs.len() == 2);
    assert!(
        found
            .remarks
            .iter()
            .any(|remark| remark.contains("stalled")),
        "{:?}",
        found.remarks
    );
}

#[test]
fn an_experiment_proves_a_faster_road() {
    let Some(road) = Road::make("an_experiment_proves_a_faster_road") else {
        return;
    };
    road.limit("40mbit");
    let ends = road.ends();
    let load = Load {
        seconds: 0.7,
        warm_up: 0.3,
        ..tcp(Via::Tunnel, Direction::Upload, 1)
    };
    let plan = AbPlan {
        load_a: load.clone(),
        load_b: load,
        figure: goodput,
        pairs_min: 3,
        pairs_max: 3,
        budget: Duration::from_secs(60),
        target_width: 0.05,
        seed: 1,
    };
    let mut order = Vec::new();
    let found = ab(
        &ends,
        &plan,
        &mut |side| {
            order.push(side);
            road.limit(if side == Side::A { "40mbit" } else { "80mbit" });
            Ok(())
        },
        &Quiet,
    )
    .unwrap();
    assert_eq!(order, [Side::A, Side::B, Side::A, Side::B]);
    let gain = found.relative.unwrap();
    assert!(
        gain.low > 0.3 && gain.value < 2.0,
        "{gain:?} {:?}",
        found.pairs
    );
    let failed = ab(
        &ends,
        &plan,
        &mut |_| Err("the knob is stuck".to_owned()),
        &Quiet,
    )
    .unwrap_err();
    assert_eq!(failed.to_string(), "the knob is stuck");
}
