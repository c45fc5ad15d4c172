//! What goes wrong while something is measured: every fault is a clear error or a sample that says so, in bounded time.

#[path = "common/road.rs"]
mod road;
#[path = "common/tunnel.rs"]
mod wireguard;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use road::{B_BARE, Road};
use wireguard::Tunnel;
use wirespeed_measure::{
    ComparePlan, Direction, Ends, ExchangePlan, Load, MeasureError, Overrides, Protocol, Quiet,
    Sample, Via, compare, exchanges,
};
use wirespeed_reach::ReachError;

fn tcp(seconds: f64) -> Load {
    Load {
        via: Via::Tunnel,
        direction: Direction::Upload,
        protocol: Protocol::Tcp,
        streams: 1,
        seconds,
        warm_up: 0.5,
        congestion_control: None,
        rate: None,
    }
}

/// Runs a load, and does something to it after a while.
fn disturbed(
    ends: &Ends,
    seconds: f64,
    after: Duration,
    disturb: impl FnOnce() + Send,
) -> Result<Sample, MeasureError> {
    std::thread::scope(|scope| {
        let sample = scope.spawn(|| ends.sample(&tcp(seconds)));
        std::thread::sleep(after);
        disturb();
        sample.join().unwrap()
    })
}

/// Kills the agent on a host, as a machine that loses its power.
fn kill_agent(road: &Road, host: &str) {
    for pid in road.running(host, "measure_agent") {
        let killed = Command::new("kill").args(["-KILL", &pid]).status();
        assert!(killed.unwrap().success());
    }
}

fn assert_died(error: &MeasureError) {
    assert!(
        matches!(
            error,
            MeasureError::Reach(ReachError::Died { .. } | ReachError::NotCalled { .. })
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("ws-m"), "{error}");
}

#[test]
fn a_far_end_that_dies_between_pairs_is_an_error_at_once() {
    let Some(road) = Road::make("a_far_end_that_dies_between_pairs_is_an_error_at_once") else {
        return;
    };
    road.limit("50mbit");
    let ends = road.ends();
    let steps = AtomicU32::new(0);
    let died = std::sync::Mutex::new(None);
    // The third sample is the first of the second pair.
    let progress = |_: &str, _: f64, _: f64| {
        if steps.fetch_add(1, Ordering::SeqCst) == 2 {
            kill_agent(&road, "b");
            *died.lock().unwrap() = Some(Instant::now());
        }
    };
    let plan = ComparePlan::quick(Direction::Upload, 1);
    let error = compare(&ends, &plan, &progress).unwrap_err();
    let waited = died.lock().unwrap().expect("it was killed").elapsed();
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    assert_died(&error);
    assert!(road.running("b", "iperf3").is_empty());
}

#[test]
fn a_far_end_that_dies_during_a_probe_is_an_error_at_once() {
    let Some(road) = Road::make("a_far_end_that_dies_during_a_probe_is_an_error_at_once") else {
        return;
    };
    let begun = Instant::now();
    let killed_during = |what: &(dyn Fn(&Ends) -> Option<MeasureError> + Sync)| {
        let ends = road.ends();
        let error = std::thread::scope(|scope| {
            let probing = scope.spawn(|| what(&ends));
            std::thread::sleep(Duration::from_millis(700));
            kill_agent(&road, "b");
            probing.join().unwrap()
        });
        assert_died(&error.expect("nothing can be known"));
    };
    killed_during(&|ends| ends.watch(60.0, &Quiet).err());
    for direction in [Direction::Upload, Direction::Download] {
        killed_during(&|ends| {
            ends.sequence_probe(Via::Tunnel, direction, 1e6, 500, 20.0, None)
                .err()
        });
    }
    let endless = ExchangePlan {
        wanted: 1_000_000,
        seconds: 4.0,
        ..ExchangePlan::quick(20)
    };
    killed_during(&|ends| exchanges(ends, &endless, &Quiet).err());
    // Waits of 20 s, a minute and more were cut short.
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_peer_that_roams_or_shakes_hands_again_does_not_end_a_load() {
    let Some(tunnel) = Tunnel::make("a_peer_that_roams_or_shakes_hands_again_does_not_end_a_load")
    else {
        return;
    };
    tunnel.road.limit("30mbit");
    let ends = tunnel.discover(None, &Overrides::default()).unwrap();
    let ours = tunnel.interface("a");
    // Another port of ours: the far end hears us from elsewhere.
    let roamed = disturbed(&ends, 3.0, Duration::from_millis(1800), || {
        tunnel
            .road
            .on("a", &format!("wg set {ours} listen-port 51999"));
    })
    .unwrap();
    assert!(!roamed.stalled && roamed.rate > 3e6, "{}", roamed.rate);
    // The peer taken out and put in again has no keys: a new handshake.
    let peer = tunnel.public[1].trim();
    let again = disturbed(&ends, 3.0, Duration::from_millis(1800), || {
        tunnel
            .road
            .on("a", &format!("wg set {ours} peer {peer} remove"));
        tunnel.road.on(
            "a",
            &format!("wg set {ours} peer {peer} allowed-ips 10.99.0.2/32 endpoint {B_BARE}:51820"),
        );
    })
    .unwrap();
    assert!(!again.stalled && again.rate > 3e6, "{}", again.rate);
    let probe = ends
        .sequence_probe(Via::Tunnel, Direction::Download, 2e6, 800, 0.5, None)
        .unwrap();
    assert!(probe.lost().unwrap() < 0.2, "{probe:?}");
}

#[test]
fn a_peer_that_is_unplugged_ends_a_load_in_time() {
    let Some(tunnel) = Tunnel::make("a_peer_that_is_unplugged_ends_a_load_in_time") else {
        return;
    };
    tunnel.road.limit("30mbit");
    let ends = tunnel.discover(None, &Overrides::default()).unwrap();
    let link = tunnel.road.link("b");
    let begun = Instant::now();
    let result = disturbed(&ends, 3.0, Duration::from_millis(1500), || {
        tunnel.road.on("b", &format!("ip link set {link} down"));
    });
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    // What arrived until then is a sample that is short of most of it; or there is none.
    match result {
        Ok(sample) => {
            let silent = sample.intervals.iter().filter(|one| one.rate < 1e5).count();
            assert!(
                sample.stalled || sample.dead_streams == 1 || silent > 5,
                "{sample:?}"
            );
        }
        Err(error) => assert!(matches!(error, MeasureError::LoadFailed { .. }), "{error}"),
    }
    let error = ends.check_tunnel().unwrap_err();
    assert!(
        matches!(error, MeasureError::TunnelSilent { .. }),
        "{error}"
    );
    for (via, direction) in [
        (Via::Bare, Direction::Upload),
        (Via::Tunnel, Direction::Download),
    ] {
        let error = ends
            .sequence_probe(via, direction, 1e6, 500, 0.5, None)
            .unwrap_err();
        assert!(matches!(error, MeasureError::ProbeFailed { .. }), "{error}");
    }
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_interface_that_goes_during_a_run_is_named() {
    let Some(tunnel) = Tunnel::make("an_interface_that_goes_during_a_run_is_named") else {
        return;
    };
    tunnel.road.limit("30mbit");
    let ends = tunnel.discover(None, &Overrides::default()).unwrap();
    let (ours, theirs) = (tunnel.interface("a"), tunnel.interface("b"));
    let gone = |error: MeasureError, interface: &str| {
        assert!(
            matches!(&error, MeasureError::InterfaceGone { interface: named, .. } if named == interface),
            "{error:?}"
        );
    };
    let begun = Instant::now();
    // Renamed, at the far end, and back.
    let other = format!("{theirs}x");
    let renamed = disturbed(&ends, 2.0, Duration::from_millis(1200), || {
        tunnel.road.on("b", &format!("ip link set {theirs} down"));
        tunnel
            .road
            .on("b", &format!("ip link set {theirs} name {other}"));
        tunnel.road.on("b", &format!("ip link set {other} up"));
    });
    gone(renamed.unwrap_err(), &theirs);
    tunnel.road.on("b", &format!("ip link set {other} down"));
    tunnel
        .road
        .on("b", &format!("ip link set {other} name {theirs}"));
    tunnel.road.on("b", &format!("ip link set {theirs} up"));
    // Deleted, here.
    let deleted = disturbed(&ends, 2.0, Duration::from_millis(1200), || {
        tunnel.road.on("a", &format!("ip link del {ours}"));
    });
    gone(deleted.unwrap_err(), &ours);
    gone(ends.sample(&tcp(1.0)).unwrap_err(), &ours);
    gone(ends.watch(0.5, &Quiet).unwrap_err(), &ours);
    let probe = ends.sequence_probe(Via::Tunnel, Direction::Upload, 1e6, 500, 0.5, None);
    gone(probe.unwrap_err(), &ours);
    let plan = ExchangePlan {
        seconds: 2.0,
        ..ExchangePlan::quick(5)
    };
    let few = exchanges(&ends, &plan, &Quiet).unwrap_err();
    gone(few, &ours);
    assert!(
        begun.elapsed() < Duration::from_secs(90),
        "{:?}",
        begun.elapsed()
    );
}
