//! Numbered datagrams between namespaces, through real agents: loss, order and duplicates made on purpose.

#[path = "common/road.rs"]
mod road;

use std::time::{Duration, Instant};

use road::{B_BARE, Road, skipped};
use wirespeed_measure::{Direction, FarEnd, MeasureError, SequenceProbe, Via};

const BOTH: [Direction; 2] = [Direction::Upload, Direction::Download];

fn orderly(probe: &SequenceProbe) {
    assert_eq!(
        (probe.duplicates, probe.reordered, probe.reorder_extent),
        (0, 0, 0),
        "{probe:?}"
    );
}

#[test]
fn a_good_road_loses_nothing_and_keeps_order() {
    let Some(road) = Road::make("a_good_road_loses_nothing_and_keeps_order") else {
        return;
    };
    let ends = road.ends();
    for via in [Via::Bare, Via::Tunnel] {
        for direction in BOTH {
            let begun = Instant::now();
            let probe = ends
                .sequence_probe(via, direction, 20e6, 1200, 1.0, None)
                .unwrap();
            assert!(begun.elapsed() < Duration::from_secs(4));
            orderly(&probe);
            assert_eq!((probe.received, probe.gaps), (probe.sent, 0), "{probe:?}");
            assert_eq!(probe.lost(), Some(0.0));
            // The machine may be busy: slower than asked, never faster.
            assert!((1e6..22e6).contains(&probe.offered), "{probe:?}");
            assert!(
                probe.arrived > probe.offered * 0.9 && probe.port >= 5201,
                "{probe:?}"
            );
        }
    }
}

#[test]
fn loss_is_counted_where_it_is() {
    let Some(road) = Road::make("loss_is_counted_where_it_is") else {
        return;
    };
    let rules = "table ip loss {
        chain f {
            type filter hook forward priority 0;
            ip saddr 10.91.1.1 udp dport 7000 ip length > 1000 numgen inc mod 20 0 drop
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let up = ends
        .sequence_probe(Via::Bare, Direction::Upload, 8e6, 1000, 1.0, Some(7000))
        .unwrap();
    orderly(&up);
    assert_eq!(up.port, 7000);
    let lost = up.lost().unwrap();
    assert!((0.04..0.06).contains(&lost), "{lost} {up:?}");
    assert!(up.longest_gap == 1 && up.gaps > 30, "{up:?}");
    let down = ends
        .sequence_probe(Via::Bare, Direction::Download, 8e6, 1000, 1.0, Some(7000))
        .unwrap();
    assert_eq!(down.lost(), Some(0.0), "{down:?}");
}

/// What one probe could not send must not cut another short: its last datagrams would look lost.
#[test]
fn a_probe_that_fails_leaves_the_others_alone() {
    let Some(road) = Road::make("a_probe_that_fails_leaves_the_others_alone") else {
        return;
    };
    let rules = "table ip refuse {
        chain o {
            type filter hook output priority 0;
            udp sport 7002 ip length > 500 drop
        }
    }\n";
    road.filter("b", rules);
    let ends = road.ends();
    let (up, down) = std::thread::scope(|scope| {
        let up = scope.spawn(|| {
            ends.sequence_probe(Via::Bare, Direction::Upload, 2e6, 1000, 3.0, Some(7001))
        });
        std::thread::sleep(Duration::from_millis(500));
        let down = ends.sequence_probe(Via::Bare, Direction::Download, 8e6, 1000, 2.0, Some(7002));
        (up.join().unwrap().unwrap(), down)
    });
    assert!(down.is_err(), "{down:?}");
    assert!(up.seconds > 2.5, "{up:?}");
    assert_eq!(up.lost(), Some(0.0), "{up:?}");
}

#[test]
fn a_policer_passes_its_rate_only() {
    let Some(road) = Road::make("a_policer_passes_its_rate_only") else {
        return;
    };
    let rules = "table ip police {
        chain f {
            type filter hook forward priority 0;
            ip saddr 10.91.1.1 ip protocol udp limit rate over 100 kbytes/second burst 10 kbytes drop
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let up = ends
        .sequence_probe(Via::Bare, Direction::Upload, 20e6, 1200, 1.0, None)
        .unwrap();
    // The bucket holds a second of the rate from the beginning.
    assert!((0.8e6..2.2e6).contains(&up.arrived), "{up:?}");
    assert!(up.lost().unwrap() > 0.3 && up.longest_gap > 1, "{up:?}");
    orderly(&up);
}

#[test]
fn late_ones_are_told_from_lost_ones() {
    let Some(road) = Road::make("late_ones_are_told_from_lost_ones") else {
        return;
    };
    // Four in a row of twenty take a detour with a queue of its own, a few datagrams long.
    let link = road.link("rb");
    for line in [
        format!("tc qdisc add dev {link} root handle 1: htb default 1"),
        format!("tc class add dev {link} parent 1: classid 1:1 htb rate 1gbit"),
        format!(
            "tc class add dev {link} parent 1: classid 1:2 htb rate 9mbit burst 1300 cburst 1300"
        ),
    ] {
        road.on("r", &line);
    }
    let rules = "table ip detour {
        chain f {
            type filter hook forward priority 0;
            udp dport 7000 ip length > 1000 numgen inc mod 20 0-3 meta priority set 1:2
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let up = ends
        .sequence_probe(Via::Bare, Direction::Upload, 40e6, 1200, 1.0, Some(7000))
        .unwrap();
    assert!(up.reordered > 5 && up.reorder_extent >= 1, "{up:?}");
    assert_eq!(up.duplicates, 0, "{up:?}");
    assert!(up.out_of_order().unwrap() > 0.001, "{up:?}");
    assert!(up.lost().unwrap() < 0.1, "{up:?}");
}

#[test]
fn copies_are_counted_as_copies() {
    let Some(road) = Road::make("copies_are_counted_as_copies") else {
        return;
    };
    let rules = format!(
        "table ip copies {{
            chain f {{
                type filter hook forward priority 0;
                udp dport 7000 ip length > 1000 dup to {B_BARE} device \"{}\"
            }}
        }}\n",
        road.link("rb")
    );
    if !road.try_filter("r", &rules) {
        skipped::<()>(
            "copies_are_counted_as_copies",
            "this kernel can't copy packets (nft dup)",
        );
        return;
    }
    let ends = road.ends();
    let up = ends
        .sequence_probe(Via::Bare, Direction::Upload, 5e6, 1200, 0.5, Some(7000))
        .unwrap();
    assert!(up.duplicates > 0, "{up:?}");
    assert_eq!((up.received, up.lost()), (up.sent, Some(0.0)), "{up:?}");
}

#[test]
fn a_download_works_behind_address_translation() {
    let Some(road) = Road::make("a_download_works_behind_address_translation") else {
        return;
    };
    let rules = "table ip nat {
        chain s {
            type nat hook postrouting priority srcnat;
            ip saddr 10.91.1.1 masquerade
        }
        chain f {
            type filter hook forward priority 0;
            ct state established,related accept
            ip saddr 10.91.2.1 drop
        }
    }\n";
    road.filter("r", rules);
    let mut ends = road.ends();
    ends.here_bare_address = None;
    for direction in BOTH {
        let probe = ends
            .sequence_probe(Via::Bare, direction, 4e6, 1200, 0.5, None)
            .unwrap();
        assert_eq!(probe.lost(), Some(0.0), "{probe:?}");
        orderly(&probe);
    }
}

#[test]
fn what_cannot_be_probed_says_why_in_time() {
    let Some(road) = Road::make("what_cannot_be_probed_says_why_in_time") else {
        return;
    };
    let ends = road.ends();
    let probe = |port| ends.sequence_probe(Via::Bare, Direction::Upload, 1e6, 500, 0.5, port);
    // A firewall that lets nothing in.
    road.filter(
        "b",
        "table ip wall {
            chain i {
                type filter hook input priority 0;
                ip protocol udp drop
            }
        }\n",
    );
    let begun = Instant::now();
    for direction in BOTH {
        let error = ends
            .sequence_probe(Via::Bare, direction, 1e6, 500, 0.5, None)
            .unwrap_err();
        assert!(error.to_string().contains("firewall"), "{error}");
    }
    assert!(
        begun.elapsed() < Duration::from_secs(12),
        "{:?}",
        begun.elapsed()
    );
    road.on("b", "nft delete table ip wall");
    // A firewall of our own, on the way out.
    road.filter(
        "a",
        "table ip wall {
            chain o {
                type filter hook output priority 0;
                ip protocol udp ip length > 300 drop
            }
        }\n",
    );
    let error = probe(None).unwrap_err();
    assert!(
        matches!(&error, MeasureError::ProbeFailed { because, .. } if because.contains("not permitted")),
        "{error}"
    );
    road.on("a", "nft delete table ip wall");
    // Taken.
    let mut holder = std::process::Command::new("ip")
        .args([
            "netns",
            "exec",
            &road.netns("b"),
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
        ])
        .args(["iperf3", "-s", "-p", "7100"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        probe(Some(7100)).is_ok(),
        "TCP and UDP have ports of their own"
    );
    let _ = holder.kill();
    let _ = holder.wait();
    let error = probe(Some(0)).unwrap_err();
    assert!(error.to_string().contains("1 to 65535"), "{error}");

    let alone = road.ends_with(road.machine("a"), FarEnd::Nothing);
    let error = alone
        .sequence_probe(Via::Bare, Direction::Upload, 1e6, 500, 0.5, None)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("wirespeed has to run at the far end"),
        "{error}"
    );
}
