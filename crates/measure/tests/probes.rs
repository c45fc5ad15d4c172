//! Echo trains between namespaces, through real agents: sizes, round trips, order of events.

#[path = "common/road.rs"]
mod road;

use std::time::{Duration, Instant};

use road::{B_BARE_V6, Road};
use wirespeed_measure::{Direction, Ends, FarEnd, MeasureError, Via};

#[test]
fn a_road_of_ethernet_passes_all_of_it() {
    let Some(road) = Road::make("a_road_of_ethernet_passes_all_of_it") else {
        return;
    };
    let ends = road.ends();
    for direction in [Direction::Upload, Direction::Download] {
        let found = ends.path_mtu(direction).unwrap();
        assert_eq!(
            (found.largest_passed, found.smallest_failed),
            (Some(1500), None),
            "{found:?}"
        );
        assert!(
            !found.silent_loss && found.reported.is_none() && found.link_mtu == 1500,
            "{found:?}"
        );
        let sweep = ends.tunnel_sweep(direction).unwrap();
        assert_eq!(sweep.smallest_failed, None);
    }
}

#[test]
fn a_smaller_link_that_says_so_is_found_to_the_byte() {
    let Some(road) = Road::make("a_smaller_link_that_says_so_is_found_to_the_byte") else {
        return;
    };
    // Only towards b: the way back stays at 1500.
    road.on(
        "r",
        &format!(
            "ip route add 10.91.2.1/32 dev {} mtu lock 1413",
            road.link("rb")
        ),
    );
    let ends = road.ends();
    let begun = Instant::now();
    let up = ends.path_mtu(Direction::Upload).unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        (up.largest_passed, up.smallest_failed, up.reported),
        (Some(1413), Some(1414), Some(1413)),
        "{up:?}"
    );
    assert!(!up.silent_loss && up.method == "icmp-echo");
    let down = ends.path_mtu(Direction::Download).unwrap();
    assert_eq!(
        (down.largest_passed, down.smallest_failed),
        (Some(1500), None),
        "{down:?}"
    );
    // Probed again: what the kernel has learned meanwhile must not hide the answer.
    assert_eq!(
        ends.path_mtu(Direction::Upload).unwrap().largest_passed,
        Some(1413)
    );
}

#[test]
fn a_silent_hole_in_one_direction_is_told_from_a_random_loss() {
    let Some(road) = Road::make("a_silent_hole_in_one_direction_is_told_from_a_random_loss") else {
        return;
    };
    let rules = "table ip hole {
        chain f {
            type filter hook forward priority 0;
            numgen random mod 100 < 2 drop
            ip saddr 10.91.1.1 ip length > 1390 drop
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let up = ends.path_mtu(Direction::Upload).unwrap();
    assert!(
        (1385..=1390).contains(&up.largest_passed.unwrap()),
        "{up:?}"
    );
    assert!(up.silent_loss && up.reported.is_none(), "{up:?}");
    let down = ends.path_mtu(Direction::Download).unwrap();
    assert_eq!(down.smallest_failed, None, "{down:?}");
    assert!(!down.silent_loss);
}

#[test]
fn replies_have_to_do_where_nobody_watches() {
    let Some(road) = Road::make("replies_have_to_do_where_nobody_watches") else {
        return;
    };
    let rules = "table ip hole {
        chain f {
            type filter hook forward priority 0;
            ip saddr 10.91.2.1 ip length > 1450 drop
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends_with(road.machine("a"), FarEnd::Nothing);
    let there_and_back = ends.path_mtu(Direction::Upload).unwrap();
    assert_eq!(
        there_and_back.largest_passed,
        Some(1450),
        "{there_and_back:?}"
    );
    assert_eq!(there_and_back.method, "icmp-echo-and-reply");
    let error = ends.path_mtu(Direction::Download).unwrap_err();
    assert!(error.to_string().contains("does not run there"), "{error}");

    let mut translated = road.ends();
    translated.here_bare_address = None;
    translated.translated_to = Some("192.0.2.7:4242".to_owned());
    let error = translated.path_mtu(Direction::Download).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("behind address translation (seen there as 192.0.2.7:4242)"),
        "{error}"
    );
}

#[test]
fn ipv6_is_probed_alike() {
    let Some(road) = Road::make("ipv6_is_probed_alike") else {
        return;
    };
    let v6 = |ends: &mut Ends| ends.bare_address = Some(B_BARE_V6.parse().unwrap());
    let mut ends = road.ends();
    v6(&mut ends);
    assert_eq!(
        ends.path_mtu(Direction::Upload).unwrap().smallest_failed,
        None
    );
    assert_eq!(ends.idle_rtt(Via::Bare, 5, 0.05).unwrap().received, 5);
    road.on("r", &format!("ip link set {} mtu 1400", road.link("rb")));
    road.on("b", &format!("ip link set {} mtu 1400", road.link("b")));
    let up = ends.path_mtu(Direction::Upload).unwrap();
    assert_eq!(
        (up.largest_passed, up.smallest_failed, up.reported),
        (Some(1400), Some(1401), Some(1400)),
        "{up:?}"
    );
}

#[test]
fn nobody_there_is_an_error_and_no_small_mtu() {
    let Some(road) = Road::make("nobody_there_is_an_error_and_no_small_mtu") else {
        return;
    };
    let mut ends = road.ends();
    ends.bare_address = Some("10.91.2.99".parse().unwrap());
    let begun = Instant::now();
    let error = ends.path_mtu(Direction::Upload).unwrap_err();
    assert!(
        matches!(&error, MeasureError::ProbeFailed { .. }),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
    let rtt = ends.idle_rtt(Via::Bare, 3, 0.1).unwrap();
    assert_eq!((rtt.sent, rtt.received, rtt.median), (3, 0, None));
    ends.bare_address = None;
    assert!(matches!(
        ends.idle_rtt(Via::Bare, 3, 0.1),
        Err(MeasureError::NoAddress { .. })
    ));
}

#[test]
fn idle_pings_tell_who_is_heard() {
    let Some(road) = Road::make("idle_pings_tell_who_is_heard") else {
        return;
    };
    let ends = road.ends();
    let heard = ends.idle_return(true).unwrap();
    assert_eq!(
        (heard.far_first, heard.here_then, heard.far_after),
        ((3, 3), (3, 3), (3, 3))
    );
    assert_eq!(heard.far_again, None, "it was heard at once");
    // As a translator that lets in only what answers something we sent, and forgets nothing from then on.
    let rules = "table ip nat {
        set seen { type ipv4_addr\n flags dynamic\n }
        chain f {
            type filter hook forward priority 0;
            ip saddr 10.92.1.1 icmp type echo-request add @seen { ip daddr }
            ip saddr @seen accept
            ip saddr 10.92.2.1 drop
        }
    }\n";
    road.filter("r", rules);
    let begun = Instant::now();
    let heard = ends.idle_return(true).unwrap();
    assert_eq!(
        (heard.far_first, heard.here_then, heard.far_after),
        ((0, 3), (3, 3), (3, 3))
    );
    assert_eq!(heard.far_again, Some((0, 3)));
    assert!(begun.elapsed() > Duration::from_secs_f64(1.4 + 5.33 + 1.2));
}

#[test]
fn a_stop_ends_a_probe_too() {
    let Some(road) = Road::make("a_stop_ends_a_probe_too") else {
        return;
    };
    let ends = road.ends();
    let stop = ends.stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        stop.stop();
        Instant::now()
    });
    let error = ends.idle_rtt(Via::Bare, 1000, 0.1).unwrap_err();
    assert!(matches!(error, MeasureError::Stopped), "{error}");
    assert!(stopper.join().unwrap().elapsed() < Duration::from_secs(1));
}
