//! What a peer costs in memory, by what is asked of the allocator.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure, opt_out};
use rand::SeedableRng;
use rand::rngs::StdRng;
use wirespeed_protocol::{
    Incoming, Instant, Now, Options, Outgoing, Prefix, PresharedKey, PrivateKey, PublicKey, Sealed,
    Tunnel, Verdict, WallTime,
};

const PEERS: u32 = 10_000;

/// What an allocator adds to each piece; glibc's takes 8 bytes and rounds up to 16.
const PER_PIECE_BYTES: i64 = 16;

/// What a peer may cost.
const LIMIT_BYTES: i64 = 4_096;

/// Counters that a replay window covers.
const WINDOW: usize = 8_192;

#[test]
fn a_configured_peer_is_far_below_its_limit() {
    let mut kept = None;
    let used = measure(|| {
        let mut rng = StdRng::seed_from_u64(1);
        let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
        for number in 0..PEERS {
            let mut key = [7; 32];
            key[..4].copy_from_slice(&number.to_le_bytes());
            let peer = tunnel
                .add_peer(PublicKey::from_bytes(key), &mut rng)
                .unwrap();
            tunnel.set_preshared_key(&peer, PresharedKey::from_bytes(key));
            tunnel.set_endpoint(Now::default(), &peer, outer(number));
            for (address, length) in inner(number) {
                tunnel.allow(&peer, Prefix::new(address, length).unwrap());
            }
        }
        kept = Some(tunnel);
    });
    let each = per_peer(used, PEERS);
    eprintln!("a configured peer: {each} bytes");
    assert!(each < LIMIT_BYTES / 2, "{each} bytes a peer");

    // And all of it comes back.
    let tunnel = kept.unwrap();
    let freed = measure(|| {
        for peer in uncounted(|| tunnel.peers()) {
            tunnel.remove_peer(peer.public_key());
            drop(peer);
        }
        drop(tunnel);
    });
    assert!(
        (freed.bytes_current + used.bytes_current).abs() < 200_000,
        "{freed:?} of {used:?}"
    );
}

#[test]
fn a_peer_with_sessions_stays_below_its_limit_and_gives_their_memory_back() {
    const PEERS: u32 = 100;
    let mut clients: Vec<Client> = (0..PEERS).map(Client::new).collect();
    let mut server = None;
    let mut now = Now {
        wall: WallTime(Duration::from_secs(1_700_000_000)),
        ..Now::default()
    };
    let configured = measure(|| {
        let tunnel = uncounted(|| {
            let tunnel = Tunnel::new(now.instant, Options::default(), &mut rng(0));
            tunnel.set_private_key(Some(server_key()));
            tunnel
        });
        for client in &clients {
            let key = uncounted(|| client.tunnel.public_key().unwrap());
            let peer = tunnel.add_peer(key, &mut rng(1)).unwrap();
            for (address, length) in inner(client.number) {
                tunnel.allow(&peer, Prefix::new(address, length).unwrap());
            }
        }
        server = Some(tunnel);
    });
    let server = server.unwrap();
    let mut total = configured;
    let mut each = Vec::new();
    for _ in 0..3 {
        for client in &mut clients {
            total += client.new_session(&server, now);
        }
        each.push(per_peer(total, PEERS));
        now.instant = now.instant + Duration::from_secs(60);
        now.wall = WallTime(now.wall.0 + Duration::from_secs(60));
    }
    eprintln!(
        "a peer: {} bytes configured, {each:?} with one session, two and three",
        per_peer(configured, PEERS)
    );
    // A session and the one before it are what a peer has that's never silent.
    assert!(each[0] < LIMIT_BYTES * 3 / 4, "{each:?}");
    assert!(each[1] < LIMIT_BYTES, "{each:?}");

    total += measure(|| {
        while let Some(deadline) = server.next_deadline() {
            now.instant = deadline;
            server.timers(now, &mut rng(2));
            while server.poll_transmit().is_some() {}
            while server.poll_event().is_some() {}
        }
    });
    let wiped = per_peer(total, PEERS);
    eprintln!("wiped: {wiped} bytes");
    assert!(
        wiped <= per_peer(configured, PEERS) + 400,
        "what the tables grew to, and no session: {wiped}"
    );
}

/// The other side of one peer.
struct Client {
    number: u32,
    tunnel: Tunnel,
    rng: StdRng,
}

impl Client {
    fn new(number: u32) -> Self {
        let mut rng = rng(u64::from(number) + 100);
        let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
        let mut key = [9; 32];
        key[4..8].copy_from_slice(&number.to_le_bytes());
        tunnel.set_private_key(Some(PrivateKey::from_bytes(key)));
        let server = tunnel.add_peer(server_key().public(), &mut rng).unwrap();
        tunnel.set_endpoint(Now::default(), &server, outer(0));
        Self {
            number,
            tunnel,
            rng,
        }
    }

    /// Makes a session, of which the server has seen as many counters as a replay window covers; returns what the
    /// server took for it.
    fn new_session(&mut self, server: &Tunnel, now: Now) -> AllocationInfo {
        let source = outer(self.number);
        let peer = self.tunnel.peers().remove(0);
        // As after a restart: what was agreed is forgotten.
        self.tunnel.stop();
        self.tunnel.start(now);
        let mut batch = Outgoing::new(100, 1);
        batch.push(&self.packet(), 1420);
        assert_eq!(self.tunnel.seal(now, &peer, &mut batch), Sealed::Staged);
        self.tunnel.timers(now, &mut self.rng);
        let initiation = self.tunnel.poll_transmit().unwrap().bytes;
        let mut response = Vec::new();
        let mut used = measure(|| {
            let mut rng = uncounted(|| StdRng::seed_from_u64(now.instant.as_nanos()));
            server
                .handshake(now, source, &initiation, &mut rng)
                .unwrap();
            let transmit = server.poll_transmit().unwrap();
            opt_out(|| response.extend_from_slice(&transmit.bytes));
        });
        self.tunnel
            .handshake(now, outer(0), &response, &mut self.rng)
            .unwrap();
        let mut first = self.tunnel.poll_transmit().unwrap().bytes;

        drop(self.tunnel.begin_send(now, &peer, WINDOW).unwrap());
        batch.clear();
        batch.push(&self.packet(), 1420);
        let sealed = self.tunnel.seal(now, &peer, &mut batch);
        assert!(matches!(sealed, Sealed::To(_)));
        let mut last = batch.bytes().to_vec();
        for datagram in [&mut first, &mut last] {
            let mut incoming = [Incoming::new(datagram, source)];
            used += measure(|| {
                server.open(now, &mut incoming);
                while server.poll_event().is_some() {}
            });
            assert!(matches!(incoming[0].verdict, Verdict::Packet { .. }));
        }
        used
    }

    fn packet(&self) -> [u8; 20] {
        let mut packet = [0; 20];
        packet[0] = 0x45;
        packet[3] = 20;
        packet[12..16].copy_from_slice(&inner_v4(self.number));
        packet
    }
}

fn uncounted<R>(run: impl FnOnce() -> R) -> R {
    let mut result = None;
    opt_out(|| result = Some(run()));
    result.unwrap()
}

fn per_peer(used: AllocationInfo, peers: u32) -> i64 {
    (used.bytes_current + used.count_current * PER_PIECE_BYTES) / i64::from(peers)
}

fn server_key() -> PrivateKey {
    PrivateKey::from_bytes([3; 32])
}

fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn outer(number: u32) -> SocketAddr {
    SocketAddr::from((number.to_be_bytes(), 51_820))
}

fn inner(number: u32) -> [(IpAddr, u8); 2] {
    let v6 = Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(number));
    [(inner_v4(number).into(), 32), (v6.into(), 128)]
}

fn inner_v4(number: u32) -> [u8; 4] {
    (10 << 24 | number).to_be_bytes()
}
