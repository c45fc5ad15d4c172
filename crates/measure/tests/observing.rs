//! What is seen beside and without loads, between namespaces: windows, trains of datagrams, passive watches.

#[path = "common/road.rs"]
mod road;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use road::{B_INSIDE, Road};
use wirespeed_measure::{Direction, FarEnd, Load, MeasureError, Protocol, Quiet, Via};

const BOTH: [Direction; 2] = [Direction::Upload, Direction::Download];

fn tcp(direction: Direction, streams: u32) -> Load {
    Load {
        via: Via::Tunnel,
        direction,
        protocol: Protocol::Tcp,
        streams,
        seconds: 1.5,
        warm_up: 0.5,
        congestion_control: Some("reno".to_owned()),
        rate: None,
    }
}

#[test]
fn a_load_says_what_its_sender_waited_for() {
    let Some(road) = Road::make("a_load_says_what_its_sender_waited_for") else {
        return;
    };
    road.limit("50mbit");
    let ends = road.ends();
    for direction in BOTH {
        for streams in [1, 4] {
            let sample = ends.sample(&tcp(direction, streams)).unwrap();
            let windows = sample.windows.expect("the agent reads its own connections");
            let what = format!("{direction:?} {streams}: {windows:?}");
            assert_eq!(windows.connections, streams, "{what}");
            assert!((0.8..3.0).contains(&windows.seconds), "{what}");
            // Limited by the road: busy all the time, and nobody's window is in the way.
            assert!(windows.busy > Some(0.8), "{what}");
            assert!(windows.receiver_limited < Some(0.3), "{what}");
            assert!(windows.congestion_window > Some(10_000), "{what}");
            assert!(
                windows.in_flight <= windows.congestion_window.map(|bytes| bytes * 2),
                "{what}"
            );
            assert!(windows.offered_window > Some(10_000), "{what}");
            assert!(
                windows.rtt >= windows.min_rtt && windows.rtt < Some(1.0),
                "{what}"
            );
            assert!(
                windows.send_buffer > Some(10_000) && windows.receive_buffer > Some(10_000),
                "{what}"
            );
            assert_eq!(
                windows.congestion_control.as_deref(),
                Some("reno"),
                "{what}"
            );
        }
    }
    let udp = Load {
        protocol: Protocol::Udp,
        rate: Some(5e6),
        congestion_control: None,
        ..tcp(Direction::Upload, 1)
    };
    assert_eq!(ends.sample(&udp).unwrap().windows, None);
}

#[test]
fn a_small_receive_buffer_is_what_the_sender_waits_for() {
    let Some(road) = Road::make("a_small_receive_buffer_is_what_the_sender_waits_for") else {
        return;
    };
    // 64 KiB over a queue that holds three times that and makes milliseconds of round trip: nothing is lost, and what ends
    // a flight is the window. (Where a round trip takes microseconds and a window three segments, the two cores' backlogs of
    // a veth link reorder, and what follows from that holds the sender as long as the window does.)
    road.limit("50mbit");
    for host in ["a", "b"] {
        let netns = road.netns(host);
        let set = Command::new("ip")
            .args(["netns", "exec", &netns, "sysctl", "-qw"])
            .args(["net.ipv4.tcp_rmem=4096 65536 65536"])
            .status();
        assert!(set.unwrap().success());
    }
    let ends = road.ends();
    for direction in BOTH {
        let sample = ends.sample(&tcp(direction, 1)).unwrap();
        let windows = sample.windows.unwrap();
        assert!(windows.receiver_limited > Some(0.7), "{windows:?}");
        assert_eq!(windows.receive_buffer, Some(65_536), "{windows:?}");
        assert!(windows.in_flight <= Some(65_536), "{windows:?}");
    }
}

#[test]
fn windows_are_known_from_the_sending_side_alone() {
    let Some(road) = Road::make("windows_are_known_from_the_sending_side_alone") else {
        return;
    };
    road.limit("50mbit");
    let mut server = Command::new("ip")
        .args([
            "netns",
            "exec",
            &road.netns("b"),
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
        ])
        .args(["iperf3", "-s"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let far = FarEnd::Iperf3 {
        host: B_INSIDE.to_owned(),
        port: 5201,
    };
    let ends = road.ends_with(road.machine("a"), far);
    let up = ends.sample(&tcp(Direction::Upload, 1)).unwrap();
    let windows = up.windows.unwrap();
    assert!(
        windows.busy > Some(0.8) && windows.receive_buffer.is_none(),
        "{windows:?}"
    );
    let down = ends.sample(&tcp(Direction::Download, 1)).unwrap();
    assert_eq!(down.windows, None);
    let _ = server.kill();
    let _ = server.wait();
}

#[test]
fn trains_of_datagrams_arrive_whole_on_a_good_road() {
    let Some(road) = Road::make("trains_of_datagrams_arrive_whole_on_a_good_road") else {
        return;
    };
    let ends = road.ends();
    for direction in BOTH {
        let begun = Instant::now();
        let probe = ends.segmentation_probe(direction).unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(probe.refused, None, "{probe:?}");
        assert_eq!(
            (probe.plain_sent, probe.trains_sent),
            (400, 400),
            "{probe:?}"
        );
        assert_eq!(
            (probe.plain_received, probe.trains_received),
            (400, 400),
            "{probe:?}"
        );
        assert_eq!(probe.trains_mangled, 0, "{probe:?}");
    }
    let alone = road.ends_with(road.machine("a"), FarEnd::Nothing);
    let error = alone.segmentation_probe(Direction::Upload).unwrap_err();
    assert!(matches!(error, MeasureError::ProbeFailed { .. }), "{error}");
}

#[test]
fn a_watch_sees_what_others_send_and_sends_nothing() {
    let Some(road) = Road::make("a_watch_sees_what_others_send_and_sends_nothing") else {
        return;
    };
    let ends = road.ends();
    let begun = Instant::now();
    let quiet = ends.watch(1.0, &Quiet).unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(quiet.here.slices.len(), 1);
    let moved = quiet.here.counters.links.get(&road.link("a"));
    // A neighbour may be looked for, nothing more.
    assert!(moved.is_none_or(|link| link.tx_packets < 10), "{moved:?}");
    assert_eq!(quiet.here.open, Some(0));

    road.limit("20mbit");
    let ends = road.ends();
    let load = Load {
        seconds: 4.0,
        ..tcp(Direction::Upload, 2)
    };
    let watched = std::thread::scope(|scope| {
        let running = scope.spawn(|| ends.sample(&load));
        std::thread::sleep(Duration::from_secs(1));
        let watched = road.ends().watch(2.0, &Quiet).unwrap();
        running.join().unwrap().unwrap();
        watched
    });
    let sent = watched.here.counters.links[&road.link("a")].tx_bytes;
    assert!(sent > 1_000_000, "{sent}");
    assert_eq!(watched.here.slices.len(), 2);
    let progress = watched.here.connections.value().expect("sock_diag answers");
    let busy = progress
        .iter()
        .filter(|one| one.bytes_acked > Some(500_000))
        .count();
    assert_eq!(busy, 2, "{progress:?}");
    assert!(watched.here.open >= Some(2));
    let far = watched.far.expect("wirespeed runs there");
    assert!(far.counters.links[&road.link("b")].rx_bytes > 1_000_000);
    assert!(
        far.connections
            .value()
            .unwrap()
            .iter()
            .any(|one| one.bytes_received > Some(500_000))
    );
}

#[test]
fn a_stop_ends_a_watch() {
    let Some(road) = Road::make("a_stop_ends_a_watch") else {
        return;
    };
    let ends = road.ends();
    let stop = ends.stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.stop();
        Instant::now()
    });
    let error = ends.watch(60.0, &Quiet).unwrap_err();
    assert!(matches!(error, MeasureError::Stopped), "{error}");
    assert!(stopper.join().unwrap().elapsed() < Duration::from_secs(3));
}
