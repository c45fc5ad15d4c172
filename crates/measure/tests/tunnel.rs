//! The ends of a real WireGuard tunnel, found out and measured.

#[path = "common/road.rs"]
mod road;
#[path = "common/tunnel.rs"]
mod wireguard;

use road::{A_BARE, B_BARE};
use wireguard::{MTU, Tunnel};
use wirespeed_measure::{
    Chain, ChainPlan, Direction, Ends, FarEnd, Load, MeasureError, Overrides, Protocol, Quiet,
    Stop, Via,
};

#[test]
fn the_ends_are_found_and_measured() {
    let Some(tunnel) = Tunnel::make("the_ends_are_found_and_measured") else {
        return;
    };
    tunnel.road.limit("100mbit");
    let ends = tunnel.discover(None, &Overrides::default()).unwrap();
    assert_eq!(
        (ends.interface.clone(), ends.far_interface.clone()),
        (tunnel.interface("a"), Some(tunnel.interface("b")))
    );
    assert_eq!(ends.peer, tunnel.public[1].trim());
    let text = |address: Option<std::net::IpAddr>| address.map(|address| address.to_string());
    assert_eq!(text(ends.bare_address).as_deref(), Some(B_BARE));
    assert_eq!(text(ends.tunnel_address).as_deref(), Some("10.99.0.2"));
    assert_eq!(text(ends.here_tunnel_address).as_deref(), Some("10.99.0.1"));
    assert_eq!(text(ends.here_bare_address).as_deref(), Some(A_BARE));
    ends.check_tunnel().unwrap();

    for direction in [Direction::Upload, Direction::Download] {
        let load = Load {
            via: Via::Tunnel,
            direction,
            protocol: Protocol::Tcp,
            streams: 1,
            seconds: 0.7,
            warm_up: 0.3,
            congestion_control: None,
            rate: None,
        };
        let sample = ends.sample(&load).unwrap();
        assert!(
            sample.rate > 20e6 && sample.rate < 120e6,
            "{direction:?} {}",
            sample.rate
        );
        assert!(sample.here.peers[tunnel.public[1].trim()].rx_bytes > 0);
        assert!(sample.far.unwrap().peers[tunnel.public[0].trim()].tx_bytes > 0);
        let sweep = ends.tunnel_sweep(direction).unwrap();
        assert_eq!(
            (sweep.largest_passed, sweep.smallest_failed),
            (Some(MTU), None)
        );
    }

    // From b, which is the server and knows no endpoint of its own accord.
    let far = FarEnd::Wirespeed(tunnel.road.machine("a"));
    let other_way =
        Ends::discover(tunnel.road.machine("b"), far, None, &Overrides::default()).unwrap();
    assert_eq!(text(other_way.bare_address).as_deref(), Some(A_BARE));
    assert_eq!(text(other_way.tunnel_address).as_deref(), Some("10.99.0.1"));
}

/// As `wg-quick` sets it up for `AllowedIPs = 0.0.0.0/0`: everything but WireGuard's own, marked packets goes inside.
#[test]
fn outside_is_outside_also_when_everything_goes_through_the_tunnel() {
    let Some(tunnel) =
        Tunnel::make("outside_is_outside_also_when_everything_goes_through_the_tunnel")
    else {
        return;
    };
    let (ours, peer) = (tunnel.interface("a"), tunnel.public[1].trim());
    let everything = [
        format!("wg set {ours} fwmark 51820 peer {peer} allowed-ips 0.0.0.0/0"),
        format!("ip route add default dev {ours} table 51820"),
        "ip rule add not fwmark 51820 table 51820".to_owned(),
        "ip rule add table main suppress_prefixlength 0".to_owned(),
        // The road's own route to b is a host's or a network's here; elsewhere it is the default.
        format!("ip rule add pref 100 not fwmark 51820 to {B_BARE} table 51820"),
    ];
    for line in everything {
        tunnel.road.on("a", &line);
    }
    let ends = tunnel.discover(None, &Overrides::default()).unwrap();
    assert_eq!(ends.here_bare_device, Some(tunnel.road.link("a")));
    assert_eq!(ends.far_bare_device, None);
    for direction in [Direction::Upload, Direction::Download] {
        let path = ends.path_mtu(direction).unwrap();
        assert_eq!(path.largest_passed, Some(1500), "{direction:?}");
    }

    tunnel.road.on("a", &format!("wg set {ours} fwmark 0"));
    let ends = tunnel.discover(None, &Overrides::default()).unwrap();
    assert_eq!(ends.bare_address, None);
    let why = ends.idle_rtt(Via::Bare, 1, 0.1).unwrap_err().to_string();
    assert!(why.contains("goes through a tunnel itself"), "{why}");

    let inside = FarEnd::Iperf3 {
        host: "10.99.0.2".to_owned(),
        port: 5201,
    };
    let machine = tunnel.road.machine("a");
    let ends = Ends::discover(machine, inside, None, &Overrides::default()).unwrap();
    assert_eq!(ends.tunnel_address, Some("10.99.0.2".parse().unwrap()));
}

#[test]
fn of_two_tunnels_the_busiest_stands_for_a_hop_that_nobody_can_name() {
    let test = "of_two_tunnels_the_busiest_stands_for_a_hop_that_nobody_can_name";
    let Some(mut tunnel) = Tunnel::make(test) else {
        return;
    };
    let [second, _] = tunnel.second();
    let first = tunnel.interface("a");
    tunnel
        .road
        .on("a", "ping -q -c 5 -i 0.01 -s 1000 -W 5 10.98.0.2");
    let [r, a, b] = ["r", "a", "b"].map(|host| tunnel.road.machine(host));
    let stop = Stop::default();

    let machines = [a, b];
    let error = Chain::discover(&machines, None, &stop).unwrap_err();
    let MeasureError::WhichInterface { known, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(known, &[second.clone(), first.clone()]);
    let named = Chain::discover(&machines, Some(&first), &stop).unwrap();
    assert_eq!(named.hops[0].ends.interface, first);

    let [a, b] = machines;
    let chain = Chain::discover(&[r, a, b], None, &stop).unwrap();
    let hop = &chain.hops[1];
    assert!(!chain.hops[0].tunnel && hop.tunnel);
    assert_eq!(
        (&hop.ends.interface, &hop.others),
        (&second, &vec![first.clone()])
    );
    let plan = ChainPlan {
        directions: vec![Direction::Upload],
        streams: 1,
        seconds: 0.3,
        warm_up: 0.1,
        rounds: 1,
        seed: 1,
    };
    let measured = chain.measure(&plan, &Quiet).unwrap();
    assert!(
        measured
            .not_measured
            .iter()
            .any(|missing| missing.what.contains(&first) && missing.because.contains(&second)),
        "{:?}",
        measured.not_measured
    );
}

#[test]
fn what_is_wrong_with_the_ends_is_one_sentence() {
    let Some(tunnel) = Tunnel::make("what_is_wrong_with_the_ends_is_one_sentence") else {
        return;
    };
    let none = Overrides::default();
    let error = tunnel.discover(Some("wg77"), &none).unwrap_err();
    assert!(
        error.to_string().contains(&format!(
            "no WireGuard interface wg77; it has {}",
            tunnel.interface("a")
        )),
        "{error}"
    );

    let wrong = Ends::discover(
        tunnel.road.machine("a"),
        FarEnd::Wirespeed(tunnel.road.machine("r")),
        None,
        &none,
    );
    let error = wrong.unwrap_err();
    assert!(
        matches!(&error, MeasureError::WrongFarEnd { .. }),
        "{error}"
    );

    let alone = Ends::discover(tunnel.road.machine("a"), FarEnd::Nothing, None, &none).unwrap();
    assert_eq!(alone.tunnel_address, Some("10.99.0.2".parse().unwrap()));
    assert_eq!(alone.bare_address, Some(B_BARE.parse().unwrap()));

    let inside = FarEnd::Iperf3 {
        host: "10.99.0.2".to_owned(),
        port: 5201,
    };
    let inside = Ends::discover(tunnel.road.machine("a"), inside, None, &none).unwrap();
    assert_eq!(inside.tunnel_address, Some("10.99.0.2".parse().unwrap()));
    assert_eq!(inside.bare_address, Some(B_BARE.parse().unwrap()));

    let (ours, theirs) = (tunnel.interface("a"), tunnel.interface("b"));
    tunnel.road.on("b", &format!("ip link set {theirs} down"));
    let error = tunnel.discover(None, &none).unwrap_err();
    assert!(
        matches!(&error, MeasureError::InterfaceDown { .. }),
        "{error}"
    );
    let error = alone.check_tunnel().unwrap_err();
    assert!(error.to_string().contains("handshake"), "{error}");
    assert!(
        error
            .to_string()
            .contains(&format!("its host {B_BARE} answers outside the tunnel")),
        "{error}"
    );

    tunnel.road.on(
        "a",
        &format!("wg set {ours} peer {} remove", tunnel.public[1].trim()),
    );
    let error = tunnel.discover(None, &none).unwrap_err();
    assert!(matches!(&error, MeasureError::NoPeers { .. }), "{error}");
    tunnel.road.on("a", &format!("ip link set {ours} down"));
    let error = tunnel.discover(Some(&ours), &none).unwrap_err();
    assert!(
        matches!(&error, MeasureError::InterfaceDown { .. }),
        "{error}"
    );
}
