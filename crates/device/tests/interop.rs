//! Against other implementations of WireGuard of today: traffic, new keys and roaming, each way.
//!
//! A peer that isn't built is a skipped test with its reason (`make peers` builds them all); against the kernel's driver the
//! same tests run in an emulated machine where this one's kernel has none (`make test-kernel`).

use std::fmt::Write as _;
use std::time::Duration;

use support::peers::{self, End, Outer, PORT, Program, Tunnel, loads};

mod support {
    pub(crate) mod peers;
}

#[test]
fn traffic_with_wireguard_go() {
    with(Program::WireguardGo, "traffic_with_wireguard_go", traffic);
}

#[test]
fn traffic_with_the_kernel() {
    with(Program::Kernel, "traffic_with_the_kernel", traffic);
}

#[test]
fn traffic_with_gotatun() {
    with(Program::Gotatun, "traffic_with_gotatun", traffic);
}

#[test]
fn traffic_with_boringtun() {
    with(Program::Boringtun, "traffic_with_boringtun", traffic);
}

#[test]
fn new_keys_with_wireguard_go() {
    with(Program::WireguardGo, "new_keys_with_wireguard_go", new_keys);
}

#[test]
fn new_keys_with_the_kernel() {
    with(Program::Kernel, "new_keys_with_the_kernel", new_keys);
}

#[test]
fn new_keys_with_gotatun() {
    with(Program::Gotatun, "new_keys_with_gotatun", new_keys);
}

#[test]
fn new_keys_with_boringtun() {
    with(Program::Boringtun, "new_keys_with_boringtun", new_keys);
}

#[test]
fn roaming_with_wireguard_go() {
    with(Program::WireguardGo, "roaming_with_wireguard_go", roaming);
}

#[test]
fn roaming_with_the_kernel() {
    with(Program::Kernel, "roaming_with_the_kernel", roaming);
}

#[test]
fn roaming_with_gotatun() {
    with(Program::Gotatun, "roaming_with_gotatun", roaming);
}

#[test]
fn roaming_with_boringtun() {
    with(Program::Boringtun, "roaming_with_boringtun", roaming);
}

#[test]
#[ignore = "waits for the keys' own two minutes; make test-full"]
fn keys_of_two_minutes_with_wireguard_go() {
    let name = "keys_of_two_minutes_with_wireguard_go";
    with(Program::WireguardGo, name, keys_of_two_minutes);
}

#[test]
#[ignore = "waits for the keys' own two minutes; make test-full"]
fn keys_of_two_minutes_with_gotatun() {
    let name = "keys_of_two_minutes_with_gotatun";
    with(Program::Gotatun, name, keys_of_two_minutes);
}

#[test]
#[ignore = "waits for the keys' own two minutes; make test-full"]
fn keys_of_two_minutes_with_boringtun() {
    let name = "keys_of_two_minutes_with_boringtun";
    with(Program::Boringtun, name, keys_of_two_minutes);
}

#[test]
#[ignore = "waits for the keys' own two minutes; make test-full"]
fn keys_of_two_minutes_with_the_kernel() {
    let name = "keys_of_two_minutes_with_the_kernel";
    with(Program::Kernel, name, keys_of_two_minutes);
}

#[test]
fn traffic_classes_are_the_kernels() {
    with(
        Program::Kernel,
        "traffic_classes_are_the_kernels",
        traffic_classes,
    );
}

/// Who begins the first handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    Ours,
    Theirs,
}

fn with(program: Program, name: &str, test: fn(Program)) {
    match peers::missing(&[Program::Wirespeed, program]) {
        None => test(program),
        Some(why) => peers::skip(name, &why),
    }
}

fn up(theirs: Program, begins: Begins, outer: Outer) -> Tunnel {
    match begins {
        Begins::Ours => Tunnel::up(Program::Wirespeed, theirs, outer),
        Begins::Theirs => Tunnel::up(theirs, Program::Wirespeed, outer),
    }
}

/// Pings of all sizes, TCP and UDP with every byte checked, each way, over IPv4 and IPv6, inside and outside.
fn traffic(theirs: Program) {
    for (begins, outer) in [(Begins::Ours, Outer::V4), (Begins::Theirs, Outer::V6)] {
        let tunnel = up(theirs, begins, outer);
        let (a, b) = (&tunnel.a, &tunnel.b);
        for inner in [Outer::V4, Outer::V6] {
            for (from, to) in [(a, b), (b, a)] {
                let to = to.inner(inner);
                // Padding of every kind, then a packet of the full MTU, then fragments.
                for size in (56..73).chain([1_372, 4_000]) {
                    from.ping(to, &format!("-c 1 -W 2 -s {size}"))
                        .unwrap_or_else(|said| panic!("{begins:?} {outer:?} size {size}: {said}"));
                }
                from.ping(to, "-c 100 -i 0.002 -W 2").unwrap();
            }
            for (from, to) in [(a, b), (b, a)] {
                loads::tcp(from, to, inner, 8 << 20);
                loads::udp(from, to, inner, 1_000);
                loads::checksums_of_zero(from, to, inner);
            }
        }
        for end in [a, b] {
            let transfer = end.show("transfer");
            let counts: Vec<u64> = transfer
                .split_whitespace()
                .map(|count| count.parse().unwrap())
                .collect();
            assert!(counts.iter().all(|count| *count > 16 << 20), "{transfer}");
            assert!(end.handshake() > 0);
        }
    }
}

/// A side that lost its keys – its peer was removed and added again, or its program was killed – gets new ones as soon as
/// it has something to say, and the other side goes along.
fn new_keys(theirs: Program) {
    for begins in [Begins::Ours, Begins::Theirs] {
        let mut tunnel = up(theirs, begins, Outer::V4);
        let (to_a, to_b) = (tunnel.a.inner(Outer::V4), tunnel.b.inner(Outer::V4));
        tunnel.a.ping(to_b, "-c 10 -i 0.002 -W 2").unwrap();

        let before = tunnel.ours().handshake();
        // Handshakes are told in whole seconds.
        std::thread::sleep(Duration::from_millis(1_100));
        let endpoint = tunnel.b.road(Outer::V4, PORT);
        tunnel.forget_and_learn(&tunnel.a, &tunnel.b, endpoint);
        let took = tunnel.a.answered_within(to_b, Duration::from_secs(5));
        assert!(took.is_some(), "{begins:?} forgot: no answer");
        assert!(tunnel.ours().handshake() > before, "{begins:?} forgot");
        tunnel.b.ping(to_a, "-c 10 -i 0.002 -W 2").unwrap();

        tunnel.a.kill();
        tunnel.a.start();
        tunnel.configure_a(Some(endpoint));
        let took = tunnel.a.answered_within(to_b, Duration::from_secs(5));
        assert!(took.is_some(), "{begins:?} killed and started: no answer");
        tunnel.b.ping(to_a, "-c 10 -i 0.002 -W 2").unwrap();
        loads::tcp(&tunnel.b, &tunnel.a, Outer::V4, 1 << 20);
    }
}

/// One side changes its port, then its address, then the family; the other side follows, and answers there.
fn roaming(theirs: Program) {
    for begins in [Begins::Ours, Begins::Theirs] {
        let tunnel = up(theirs, begins, Outer::V4);
        let (a, b) = (&tunnel.a, &tunnel.b);
        let (to_a, to_b) = (a.inner(Outer::V4), b.inner(Outer::V4));
        a.ping(to_b, "-c 2 -i 0.1 -W 2").unwrap();
        assert_eq!(b.show("endpoints"), a.road(Outer::V4, PORT).to_string());

        let after = |what: &str, expected: String| {
            let took = a.answered_within(to_b, Duration::from_secs(5));
            assert!(took.is_some(), "{begins:?} {what}: no answer");
            assert_eq!(b.show("endpoints"), expected, "{begins:?} {what}");
            // wireguard-go sends some datagrams elsewhere after a change from IPv4 to IPv6: an address that it uses again
            // keeps its four bytes, and the rest of the new one is missing.
            let tries = if theirs == Program::WireguardGo { 4 } else { 1 };
            let mut said = b.ping(to_a, "-c 10 -i 0.002 -W 2");
            for _ in 1..tries {
                said = said.or_else(|_| b.ping(to_a, "-c 10 -i 0.002 -W 2"));
            }
            said.unwrap_or_else(|said| panic!("{begins:?} {what}, back: {said}"));
        };
        let mut port = PORT;
        // It sometimes ends itself when it changes its own ("channel closed").
        if a.program != Program::Gotatun {
            port = 40_001;
            a.wg(&["set", &a.interface, "listen-port", "40001"]);
            after("another port", a.road(Outer::V4, port).to_string());
        }

        a.ip("addr add 10.99.0.77/24 dev road");
        a.ip("addr del 10.99.0.1/24 dev road");
        after("another address", format!("10.99.0.77:{port}"));

        let endpoint = b.road(Outer::V6, PORT);
        if a.program == Program::Boringtun {
            // It can't change a peer, and ends its control thread when it is asked to.
            tunnel.forget_and_learn(a, b, endpoint);
            a.wg(&["set", &a.interface, "listen-port", "40001"]);
        } else {
            let endpoint = endpoint.to_string();
            let change = ["peer", &b.public(), "endpoint", &endpoint];
            a.wg(&[&["set", &a.interface], &change[..]].concat());
        }
        after("over IPv6", a.road(Outer::V6, port).to_string());
    }
}

/// Whoever began renews the keys after two minutes under traffic, and nothing is lost at that moment.
fn keys_of_two_minutes(theirs: Program) {
    let tunnels = [Begins::Ours, Begins::Theirs].map(|begins| up(theirs, begins, Outer::V4));
    std::thread::scope(|scope| {
        for tunnel in &tunnels {
            scope.spawn(|| {
                let (a, b) = (&tunnel.a, &tunnel.b);
                let to = b.inner(Outer::V4);
                a.ping(to, "-c 1 -W 3").unwrap();
                let before = tunnel.ours().handshake();
                a.ping(to, "-i 0.05 -c 2600 -W 3").unwrap();
                let renewed = tunnel.ours().handshake() - before;
                assert!((115..=130).contains(&renewed), "{renewed} s");
            });
        }
    });
}

/// Outside, data has no DSCP and the packet's own ECN, and handshakes are AF41; inside, a packet keeps its DSCP, and is marked
/// as congested when the datagram was, if it said that it would understand. As the kernel's driver does it, so that one is
/// the other's measure.
fn traffic_classes(theirs: Program) {
    const EF_ECT0: &str = "0xba";
    for begins in [Begins::Ours, Begins::Theirs] {
        let tunnel = up(theirs, begins, Outer::V4);
        let (from, to) = (&tunnel.a, &tunnel.b);
        let ping = |class: &str| {
            count_classes(to);
            from.ping(
                to.inner(Outer::V4),
                &format!("-c 10 -i 0.01 -W 2 -Q {class}"),
            )
            .unwrap();
            (seen_classes(to, "road"), seen_classes(to, "tunnel"))
        };
        let (road, inside) = ping(EF_ECT0);
        assert_eq!(road, ["af41 not-ect", "cs0 ect0"], "{begins:?}");
        assert_eq!(inside, ["ef ect0"], "{begins:?}");
        let (road, inside) = ping("0x00");
        assert_eq!(road, ["cs0 not-ect"], "{begins:?}");
        assert_eq!(inside, ["cs0 not-ect"], "{begins:?}");

        from.nft("add table inet congest");
        from.nft("add chain inet congest out { type filter hook output priority 0; }");
        from.nft("add rule inet congest out oifname road udp dport 51820 ip ecn set ce");
        let (road, inside) = ping(EF_ECT0);
        assert_eq!(road, ["cs0 ce"], "{begins:?}");
        assert_eq!(inside, ["ef ce"], "{begins:?}");
        let (_, inside) = ping("0xb8");
        assert_eq!(inside, ["ef not-ect"], "{begins:?}");
    }
}

/// From now on counts what comes in, by class, on the road and out of the tunnel.
fn count_classes(end: &End) {
    end.nft("add table inet seen");
    end.nft("delete table inet seen");
    let mut table = String::from("table inet seen {\n");
    for (chain, packets) in [
        ("road", "iifname road udp dport 51820".to_owned()),
        (
            "tunnel",
            format!("iifname {} icmp type echo-request", end.interface),
        ),
    ] {
        let _ = writeln!(
            table,
            "chain {chain} {{\n type filter hook input priority 0;"
        );
        for dscp in ["cs0", "af41", "ef"] {
            for ecn in ["not-ect", "ect0", "ce"] {
                let _ = writeln!(
                    table,
                    "{packets} ip dscp {dscp} ip ecn {ecn} counter comment \"{dscp} {ecn}\""
                );
            }
        }
        table += "}\n";
    }
    end.nft(&(table + "}"));
}

/// The classes of which there were packets, in alphabetical order.
fn seen_classes(end: &End, chain: &str) -> Vec<String> {
    let said = end.nft(&format!("list chain inet seen {chain}"));
    let mut seen: Vec<String> = said
        .lines()
        .filter(|line| line.contains(" counter ") && !line.contains("packets 0 "))
        .filter_map(|line| line.rsplit('"').nth(1).map(str::to_owned))
        .collect();
    seen.sort();
    seen
}
