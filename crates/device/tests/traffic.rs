//! Two devices in network namespaces: what goes in comes out, whatever changes meanwhile.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use support::peers::{self, Outer, PORT, Program, Tunnel, loads};

mod support {
    #[allow(dead_code, reason = "other tests use the rest")]
    pub(crate) mod peers;
}

const BOTH: [Outer; 2] = [Outer::V4, Outer::V6];

/// Traffic is back within this time after a change.
const SOON: Duration = Duration::from_secs(5);

/// Runs a test with two devices, or says why it can't.
fn with(name: &str, options: &'static str, outer: Outer, test: impl FnOnce(&mut Tunnel)) {
    if let Some(reason) = peers::missing(&[Program::Wirespeed]) {
        return peers::skip(name, &reason);
    }
    let ours = (Program::Wirespeed, options);
    test(&mut Tunnel::up_with(ours, ours, outer));
}

/// Pings and streams of either IP version, each way.
fn carries(tunnel: &Tunnel) {
    for inner in BOTH {
        let (a, b) = (&tunnel.a, &tunnel.b);
        // One by one: after an answer ping waits for only two round trips more, which a busy machine may exceed.
        for _ in 0..3 {
            a.ping(b.inner(inner), "-c 1 -W 2").unwrap();
            b.ping(a.inner(inner), "-c 1 -W 2 -s 1300").unwrap();
        }
        for (from, to) in [(a, b), (b, a)] {
            loads::tcp(from, to, inner, 4_000_000);
            loads::udp(from, to, inner, 500);
            loads::checksums_of_zero(from, to, inner);
        }
    }
}

#[test]
fn over_ipv4() {
    with("over_ipv4", "", Outer::V4, |tunnel| carries(tunnel));
}

#[test]
fn over_ipv6() {
    with("over_ipv6", "", Outer::V6, |tunnel| carries(tunnel));
}

#[test]
fn with_four_workers() {
    let options = "--workers 4 --pin";
    with("with_four_workers", options, Outer::V4, |tunnel| {
        carries(tunnel);
    });
}

#[test]
fn with_four_workers_spread() {
    let options = "--workers 4 --spread";
    with("with_four_workers_spread", options, Outer::V6, |tunnel| {
        carries(tunnel);
    });
}

#[test]
fn in_the_pipeline() {
    let options = "--engine pipeline --workers 2";
    with("in_the_pipeline", options, Outer::V4, |tunnel| {
        carries(tunnel);
    });
}

#[test]
fn without_any_one_offload() {
    let each = [
        "--no-offload tun-checksum",
        "--no-offload tun-tso4",
        "--no-offload tun-tso6",
        "--no-offload tun-uso",
        "--no-offload tun-steering --workers 2",
        "--no-offload udp-gso",
        "--no-offload udp-gro",
        "--no-offload tun-checksum,tun-tso4,tun-tso6,tun-uso,tun-steering,udp-gso,udp-gro",
    ];
    for options in each {
        with("without_any_one_offload", options, Outer::V4, |tunnel| {
            for inner in BOTH {
                loads::tcp(&tunnel.a, &tunnel.b, inner, 2_000_000);
                loads::udp(&tunnel.b, &tunnel.a, inner, 200);
            }
        });
    }
}

#[test]
fn while_the_mtu_changes() {
    with("while_the_mtu_changes", "", Outer::V4, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        for mtu in [1_420, 1_280, 1_500, 9_000, 1_420] {
            for end in [a, b] {
                end.ip(&format!("link set {} mtu {mtu}", end.interface));
            }
            // Without the headers of IP and ICMP.
            let longest = format!("-c 1 -W 2 -M do -s {}", mtu - 28);
            a.ping(b.inner(Outer::V4), &longest).unwrap();
            loads::tcp(a, b, Outer::V4, 2_000_000);
            loads::tcp(b, a, Outer::V6, 2_000_000);
        }
    });
}

#[test]
fn after_down_and_up() {
    with("after_down_and_up", "", Outer::V4, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        for _ in 0..3 {
            a.ip(&format!("link set {} down", a.interface));
            let bound = move || {
                let somebody_else = || UdpSocket::bind(("0.0.0.0", PORT)).is_ok();
                (0..100).any(|_| {
                    somebody_else() || {
                        thread::sleep(Duration::from_millis(10));
                        false
                    }
                })
            };
            assert!(
                a.inside(bound).join().unwrap(),
                "the port is free while the link is down"
            );
            assert!(b.ping(a.inner(Outer::V4), "-c 1 -W 0.3").is_err());
            a.ip(&format!("link set {} up", a.interface));
            // The addresses of IPv6 went with the link.
            a.ip(&format!(
                "addr replace {}/64 dev {}",
                a.inner(Outer::V6),
                a.interface
            ));
            assert!(a.answered_within(b.inner(Outer::V4), SOON).is_some());
        }
        carries(tunnel);
    });
}

#[test]
fn after_a_crash_without_touching_the_peer() {
    with(
        "after_a_crash_without_touching_the_peer",
        "",
        Outer::V4,
        |tunnel| {
            tunnel
                .a
                .ping(tunnel.b.inner(Outer::V4), "-c 1 -W 2")
                .unwrap();
            tunnel.a.kill();
            tunnel.a.start();
            tunnel.configure_a(Some(tunnel.b.road(Outer::V4, PORT)));
            let back = tunnel.a.answered_within(tunnel.b.inner(Outer::V4), SOON);
            assert!(back.is_some(), "back within {SOON:?}");
            carries(tunnel);
        },
    );
}

#[test]
fn after_new_keys() {
    with("after_new_keys", "", Outer::V6, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        for _ in 0..3 {
            loads::tcp(b, a, Outer::V4, 1_000_000);
            tunnel.forget_and_learn(a, b, b.road(Outer::V6, PORT));
            tunnel.forget_and_learn(b, a, a.road(Outer::V6, PORT));
            assert!(b.answered_within(a.inner(Outer::V6), SOON).is_some());
        }
        carries(tunnel);
    });
}

#[test]
fn from_64_addresses_in_a_row() {
    with("from_64_addresses_in_a_row", "", Outer::V4, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        for number in 100..164 {
            a.ip(&format!("addr add 10.99.0.{number}/24 dev road"));
            let old = if number == 100 { 1 } else { number - 1 };
            a.ip(&format!("addr del 10.99.0.{old}/24 dev road"));
            a.ping(b.inner(Outer::V4), "-c 1 -W 1").unwrap();
            let seen: SocketAddr = b.show("endpoints").parse().unwrap();
            assert_eq!(seen, SocketAddr::from(([10, 99, 0, number], PORT)));
            // The other way only works if it followed.
            b.ping(a.inner(Outer::V6), "-c 1 -W 1").unwrap();
        }
        carries(tunnel);
    });
}

#[test]
fn while_the_port_changes() {
    with("while_the_port_changes", "", Outer::V4, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        for port in ["5555", "5556", "0", "51820"] {
            a.wg(&["set", &a.interface, "listen-port", port]);
            a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
            let seen: SocketAddr = b.show("endpoints").parse().unwrap();
            let own = a.wg(&["show", &a.interface, "listen-port"]);
            assert_eq!(seen.port().to_string(), own.trim());
            assert!(port == "0" || port == own.trim());
            loads::tcp(b, a, Outer::V4, 1_000_000);
        }
        let taken = a
            .inside(|| UdpSocket::bind(("0.0.0.0", 5_557)).unwrap())
            .join()
            .unwrap();
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            a.wg(&["set", &a.interface, "listen-port", "5557"]);
        }));
        assert!(refused.is_err(), "the port is somebody else's");
        drop(taken);
        carries(tunnel);
    });
}

#[test]
fn with_a_firewall_mark() {
    with("with_a_firewall_mark", "", Outer::V4, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        a.nft("add table ip marked");
        a.nft("add chain ip marked out { type filter hook output priority 0; }");
        a.nft("add rule ip marked out udp sport 51820 mark != 0x2a drop");
        assert!(a.ping(b.inner(Outer::V4), "-c 1 -W 0.3").is_err());
        a.wg(&["set", &a.interface, "fwmark", "0x2a"]);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        loads::tcp(a, b, Outer::V6, 1_000_000);
        // Sockets of another port have it, too.
        a.wg(&["set", &a.interface, "listen-port", "51821"]);
        a.nft("add rule ip marked out udp sport 51821 mark != 0x2a drop");
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        a.wg(&["set", &a.interface, "fwmark", "0"]);
        assert!(a.ping(b.inner(Outer::V4), "-c 1 -W 0.3").is_err());
    });
}

#[test]
fn among_garbage() {
    with("among_garbage", "", Outer::V4, |tunnel| {
        let (a, b) = (&tunnel.a, &tunnel.b);
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let target = a.road(Outer::V4, PORT);
        let thrower = b.inside({
            let stop = Arc::clone(&stop);
            move || throw(target, &stop)
        });
        for _ in 0..3 {
            loads::tcp(a, b, Outer::V4, 4_000_000);
            loads::tcp(b, a, Outer::V6, 4_000_000);
        }
        a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(thrower.join().unwrap() > 100);
        carries(tunnel);
    });
}

/// Throws all kinds of garbage, and says how many pieces.
fn throw(target: SocketAddr, stop: &AtomicBool) -> usize {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    let mut thrown = 0;
    let mut random = 1u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 8
    };
    while !stop.load(Ordering::Relaxed) {
        // Lengths of messages, of near misses, of nothing, of anything.
        let length = match next() % 8 {
            0 => 148,
            1 => 92,
            2 => 64,
            3 => 0,
            4 => 32,
            5 => 147 + next() as usize % 3,
            _ => next() as usize % 3_000,
        };
        let mut bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        if let Some(kind) = bytes.get_mut(..4) {
            kind.copy_from_slice(&(next() % 6).to_le_bytes());
        }
        if socket.send_to(&bytes, target).is_ok() {
            thrown += 1;
        }
        if thrown % 16 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    thrown
}
