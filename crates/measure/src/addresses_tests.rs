//! The ends are found from facts alone: made-up machines.

use std::collections::BTreeMap;

use wirespeed_facts::{Counters, Cpu, EndpointRoute, Host, Implementation};

use std::net::IpAddr;

use wirespeed_facts::{Facts, Known, Link, Peer, Tunnel};

use crate::addresses::{Found, Wanted, find, joining};
use crate::{MeasureError, Overrides};

fn machine(links: Vec<Link>, tunnels: Vec<Tunnel>, routes: Vec<EndpointRoute>) -> Facts {
    let unknown = || "not part of this test".to_owned();
    Facts {
        taken_at: 0.0,
        host: Host {
            name: "host".to_owned(),
            boot_id: Known::because(unknown()),
            netns: Known::because(unknown()),
            kernel: "6.1".to_owned(),
            architecture: "x86_64".to_owned(),
            system: Known::because(unknown()),
            privileged: true,
            ..Host::default()
        },
        cpu: Cpu {
            model: Known::because(unknown()),
            online: 1,
            flags: Vec::new(),
            governor: Known::because(unknown()),
            frequency_driver: Known::because(unknown()),
        },
        links,
        tunnels,
        sysctls: BTreeMap::new(),
        routes,
        firewall: Known::because(unknown()),
        programs: BTreeMap::new(),
        counters: Counters::default(),
        ..Facts::default()
    }
}

fn link_with(name: &str, addresses: &[&str]) -> Link {
    let unknown = "not part of this test";
    Link {
        index: 1,
        name: name.to_owned(),
        kind: None,
        up: true,
        mtu: 1420,
        speed: Known::because(unknown),
        driver: Known::because(unknown),
        addresses: addresses
            .iter()
            .map(|address| (*address).to_owned())
            .collect(),
        qdisc: Known::because(unknown),
        offloads: Known::because(unknown),
        tx_queue_len: None,
        ..Link::default()
    }
}

fn tunnel(name: &str, key: &str, peers: Vec<Peer>) -> Tunnel {
    Tunnel {
        name: name.to_owned(),
        implementation: Implementation::Kernel,
        mtu: 1420,
        listen_port: Some(51820),
        fwmark: 0,
        public_key: Some(key.to_owned()),
        peers: Known::Value(peers),
        statistics: None,
        sockets: Known::because("not part of this test"),
    }
}

fn peer(key: &str, endpoint: Option<&str>, allowed: &[&str]) -> Peer {
    Peer {
        public_key: key.to_owned(),
        endpoint: endpoint.map(|endpoint| endpoint.parse().unwrap()),
        allowed_ips: allowed.iter().map(|prefix| (*prefix).to_owned()).collect(),
        handshake_age: None,
        keepalive: 0,
        rx_bytes: 0,
        tx_bytes: 0,
    }
}

fn route(to: &str, source: &str) -> EndpointRoute {
    EndpointRoute {
        to: to.parse().unwrap(),
        inside: false,
        interface: Known::Value("eth0".to_owned()),
        gateway: None,
        source: Some(source.parse().unwrap()),
        mtu: None,
        congestion_control: None,
    }
}

fn client() -> Facts {
    let peer = peer(
        "SERVER",
        Some("203.0.113.1:51820"),
        &["10.0.0.0/24", "192.168.9.0/24"],
    );
    machine(
        vec![
            link_with("eth0", &["198.51.100.7/24"]),
            link_with("wg0", &["fe80::1/64", "10.0.0.2/24"]),
        ],
        vec![tunnel("wg0", "CLIENT", vec![peer])],
        vec![route("203.0.113.1", "198.51.100.7")],
    )
}

fn server() -> Facts {
    let peer = peer("CLIENT", Some("198.51.100.7:40000"), &["10.0.0.2/32"]);
    let other = peer_other();
    machine(
        vec![
            link_with("ens3", &["203.0.113.1/24"]),
            link_with("wg9", &["172.16.0.1/16", "10.0.0.1/24"]),
        ],
        vec![tunnel("wg9", "SERVER", vec![other, peer])],
        vec![route("198.51.100.7", "203.0.113.1")],
    )
}

fn peer_other() -> Peer {
    peer("OTHER", None, &["10.0.0.3/32"])
}

fn ask(
    here: &Facts,
    far: Option<&Facts>,
    interface: Option<&str>,
    overrides: &Overrides,
) -> Result<Found, MeasureError> {
    let far = far.map(|far| (far, "there"));
    find(&Wanted {
        here_name: "here",
        here,
        far,
        iperf3_address: None,
        interface,
        overrides,
    })
}

fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

#[test]
fn the_client_finds_the_server() {
    let found = ask(&client(), Some(&server()), None, &Overrides::default()).unwrap();
    let expected = Found {
        interface: "wg0".to_owned(),
        far_interface: Some("wg9".to_owned()),
        peer: "SERVER".to_owned(),
        bare_address: ip("203.0.113.1"),
        tunnel_address: ip("10.0.0.1"),
        here_bare_address: ip("198.51.100.7"),
        here_tunnel_address: ip("10.0.0.2"),
        translated_to: None,
    };
    assert_eq!(found, expected);
}

#[test]
fn the_server_finds_the_client_among_its_peers() {
    let found = ask(
        &server(),
        Some(&client()),
        Some("wg9"),
        &Overrides::default(),
    )
    .unwrap();
    assert_eq!(
        (found.peer.as_str(), found.bare_address),
        ("CLIENT", ip("198.51.100.7"))
    );
    assert_eq!(
        (found.tunnel_address, found.here_tunnel_address),
        (ip("10.0.0.2"), ip("10.0.0.1"))
    );
    assert_eq!(found.here_bare_address, ip("203.0.113.1"));
}

#[test]
fn a_server_that_never_heard_of_the_client_asks_the_clients_routes() {
    let mut server = server();
    server.tunnels[0].peers = Known::Value(vec![peer("CLIENT", None, &["10.0.0.2/32"])]);
    let found = ask(&server, Some(&client()), None, &Overrides::default()).unwrap();
    assert_eq!(found.bare_address, ip("198.51.100.7"));
}

#[test]
fn address_translation_is_noticed() {
    let mut server = server();
    server.tunnels[0].peers = Known::Value(vec![peer(
        "CLIENT",
        Some("192.0.2.1:1024"),
        &["10.0.0.2/32"],
    )]);
    let found = ask(&client(), Some(&server), None, &Overrides::default()).unwrap();
    assert_eq!(
        (found.here_bare_address, found.translated_to.as_deref()),
        (None, Some("192.0.2.1:1024"))
    );
}

#[test]
fn a_far_end_that_is_not_ours_is_refused() {
    let stranger = machine(
        Vec::new(),
        vec![tunnel("wg0", "STRANGER", vec![peer_other()])],
        Vec::new(),
    );
    let mut not_our_peer = server();
    not_our_peer.tunnels[0].peers = Known::Value(vec![peer_other()]);
    for far in [stranger, not_our_peer] {
        let error = ask(&client(), Some(&far), None, &Overrides::default()).unwrap_err();
        assert!(
            error.to_string().contains("is --far the other end"),
            "{error}"
        );
    }
}

#[test]
fn allowed_ips_that_lost_their_address_still_leave_one_to_try() {
    let mut client = client();
    client.tunnels[0].peers = Known::Value(vec![peer("SERVER", Some("203.0.113.1:51820"), &[])]);
    let found = ask(&client, Some(&server()), None, &Overrides::default()).unwrap();
    assert_eq!(found.tunnel_address, ip("172.16.0.1"));
}

#[test]
fn several_peers_need_a_choice() {
    let error = ask(&server(), None, None, &Overrides::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "wg9 on here has 2 peers; choose one with --peer KEY: OTHER, CLIENT"
    );
    let chosen = Overrides {
        peer: Some("CLIENT".to_owned()),
        ..Overrides::default()
    };
    let found = ask(&server(), None, None, &chosen).unwrap();
    assert_eq!(
        (found.bare_address, found.tunnel_address),
        (ip("198.51.100.7"), ip("10.0.0.2"))
    );
    let unknown = Overrides {
        peer: Some("NOBODY".to_owned()),
        ..Overrides::default()
    };
    assert!(matches!(
        ask(&server(), None, None, &unknown),
        Err(MeasureError::NoSuchPeer { .. })
    ));
    // An address that belongs to one of them is a choice, too.
    let known = Overrides {
        tunnel_address: ip("10.0.0.3"),
        ..Overrides::default()
    };
    assert_eq!(ask(&server(), None, None, &known).unwrap().peer, "OTHER");
}

#[test]
fn of_several_peers_a_watch_takes_the_one_that_carried_most() {
    let mut server = server();
    let Known::Value(peers) = &mut server.tunnels[0].peers else {
        panic!("the server knows its peers");
    };
    let last = peers.last_mut().unwrap();
    last.rx_bytes = u64::MAX;
    let key = last.public_key.clone();
    let busiest = Overrides {
        busiest: true,
        ..Overrides::default()
    };
    assert_eq!(ask(&server, None, None, &busiest).unwrap().peer, key);
}

#[test]
fn of_several_tunnels_the_one_that_leads_to_the_far_machine_is_meant() {
    let mut hub = server();
    let mut other = hub.tunnels[0].clone();
    "wg1".clone_into(&mut other.name);
    other.public_key = Some("ANOTHER HUB KEY".to_owned());
    other.peers = Known::Value(vec![peer("SOMEBODY", None, &["10.99.0.2/32"])]);
    hub.links.push(link_with("wg1", &["10.99.0.1/24"]));
    hub.tunnels.insert(0, other);
    let client = client();
    let found = ask(&hub, Some(&client), None, &Overrides::default()).unwrap();
    assert_eq!(
        (found.interface.as_str(), found.peer.as_str()),
        ("wg9", "CLIENT")
    );
    assert!(matches!(
        ask(&hub, None, None, &Overrides::default()),
        Err(MeasureError::WhichInterface { .. })
    ));
}

#[test]
fn of_several_tunnels_between_two_machines_the_busiest_that_is_up_comes_first() {
    let names = ["wg1", "wg2", "wg3", "wg4"];
    let site = |own: &str, other: &str| {
        let tunnels = names.iter().enumerate().map(|(place, name)| {
            let mut peer = peer(&format!("{other}{place}"), None, &["10.0.0.0/24"]);
            peer.rx_bytes = 1000 * (place as u64 + 1);
            tunnel(name, &format!("{own}{place}"), vec![peer])
        });
        let mut links = names.map(|name| link_with(name, &["10.0.0.1/24"]));
        links[3].up = false;
        machine(links.to_vec(), tunnels.collect(), Vec::new())
    };
    let (mut here, far) = (site("HERE", "FAR"), site("FAR", "HERE"));
    let first = here.tunnels[0].peers.clone().map(|mut peers| {
        peers[0].public_key = "ANOTHER".to_owned();
        peers
    });
    here.tunnels[0].peers = first;
    let found: Vec<&str> = joining(&here, &far)
        .into_iter()
        .map(|tunnel| tunnel.name.as_str())
        .collect();
    assert_eq!(found, ["wg3", "wg2", "wg4"]);
    let error = ask(&here, Some(&far), None, &Overrides::default()).unwrap_err();
    let MeasureError::WhichInterface { known, .. } = error else {
        panic!("{error}");
    };
    // Not the one that leads elsewhere.
    assert_eq!(known, found);
    assert!(joining(&here, &client()).is_empty());
}

#[test]
fn an_iperf3_server_may_be_named_by_either_address() {
    let client = client();
    let with = |address: &str| {
        find(&Wanted {
            here_name: "here",
            here: &client,
            far: None,
            iperf3_address: ip(address),
            interface: None,
            overrides: &Overrides::default(),
        })
        .unwrap()
    };
    let inside = with("10.0.0.1");
    assert_eq!(
        (inside.bare_address, inside.tunnel_address),
        (ip("203.0.113.1"), ip("10.0.0.1"))
    );
    // The peer's allowed IPs are networks: nothing tells its address inside.
    let outside = with("203.0.113.9");
    assert_eq!(
        (outside.bare_address, outside.tunnel_address),
        (ip("203.0.113.9"), None)
    );
}

#[test]
fn what_is_not_there_is_named() {
    let none = Overrides::default();
    let text = |result: Result<Found, MeasureError>| result.unwrap_err().to_string();
    assert_eq!(
        text(ask(&client(), None, Some("wg5"), &none)),
        "here has no WireGuard interface wg5; it has wg0"
    );
    let empty = machine(Vec::new(), Vec::new(), Vec::new());
    assert_eq!(
        text(ask(&empty, None, None, &none)),
        "name the WireGuard interface to look at: here has none"
    );
    let mut down = client();
    down.links[1].up = false;
    assert!(text(ask(&down, None, None, &none)).starts_with("wg0 on here is down"));
    let mut lonely = client();
    lonely.tunnels[0].peers = Known::Value(Vec::new());
    assert!(text(ask(&lonely, None, None, &none)).starts_with("wg0 on here has no peers"));
    let mut secret = client();
    secret.tunnels[0].peers = Known::because("permission denied");
    assert!(
        text(ask(&secret, None, None, &none)).contains("permission denied; run wirespeed as root")
    );
}
