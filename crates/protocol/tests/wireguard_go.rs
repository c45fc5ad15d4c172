//! Against wireguard-go, over loopback in a network namespace: it has a TUN device with the kernel's IP stack behind it,
//! we are a UDP socket and answer pings by hand.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant as Clock, SystemTime, UNIX_EPOCH};

use nix::sched::{CloneFlags, unshare};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wirespeed_protocol::{
    Event, Incoming, Instant, Now, Options, Outgoing, Peer, Prefix, PresharedKey, PrivateKey,
    PublicKey, Sealed, Tunnel, Verdict, WallTime,
};

const MTU: usize = 1420;
const THEIR_PORT: u16 = 51_877;
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

#[test]
fn we_begin_and_pings_are_answered() {
    with_wireguard_go("we_begin_and_pings_are_answered", "127.0.0.1", |ours, _| {
        for number in 0..5 {
            ours.ping(number, 56);
            assert!(ours.pong(number, Duration::from_secs(3)), "ping {number}");
        }
        // All sizes, so that every padding occurs, in one batch.
        let sizes: Vec<usize> = (1_350..1_393).chain(0..17).collect();
        ours.ping_all(100, &sizes);
        for (number, size) in (100..).zip(&sizes) {
            assert!(ours.pong(number, Duration::from_secs(3)), "size {size}");
        }
        assert_eq!(ours.handshakes, 1);
    });
}

#[test]
fn it_begins_and_we_answer() {
    with_wireguard_go("it_begins_and_we_answer", "127.0.0.1", |ours, its| {
        its.configure(&format!(
            "peer {} endpoint {}",
            public_key_of(ours),
            ours.local()
        ));
        let mut ping = Command::new("ping")
            .args([
                "-c",
                "20",
                "-i",
                "0.02",
                "-s",
                "1392",
                "-W",
                "3",
                &OURS.to_string(),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let end = Clock::now() + Duration::from_secs(15);
        while ping.try_wait().unwrap().is_none() && Clock::now() < end {
            ours.turn(Duration::from_millis(20));
        }
        let said = ping.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains(" 0% packet loss"), "{said}");
        assert_eq!(ours.handshakes, 1);
    });
}

#[test]
fn keys_are_renewed_and_addresses_change() {
    with_wireguard_go(
        "keys_are_renewed_and_addresses_change",
        "[::1]",
        |ours, _| {
            ours.ping(1, 56);
            assert!(ours.pong(1, Duration::from_secs(3)));
            for round in 0..3u16 {
                // Our clock runs ahead; as the initiator we renew, and what is on its way uses the old keys.
                ours.skip(Duration::from_secs(121));
                ours.ping_all(10 + round * 10, &[100; 8]);
                for number in 0..8 {
                    assert!(
                        ours.pong(10 + round * 10 + number, Duration::from_secs(3)),
                        "round {round}"
                    );
                }
                assert!(
                    ours.has_shaken_hands(usize::from(round) + 2),
                    "round {round}"
                );
                ours.socket = socket("[::1]:0");
                ours.ping(50 + round, 1_000);
                assert!(
                    ours.pong(50 + round, Duration::from_secs(3)),
                    "from another port, round {round}"
                );
            }
            assert_eq!(ours.handshakes, 4, "roaming costs none");
            // Our wall clock goes back, which it must not notice.
            ours.behind = Duration::from_secs(3_600);
            ours.skip(Duration::from_secs(121));
            ours.ping(90, 56);
            assert!(ours.pong(90, Duration::from_secs(3)));
            ours.skip(Duration::from_secs(600));
            ours.ping(91, 56);
            assert!(
                ours.pong(91, Duration::from_secs(3)),
                "after all keys were wiped"
            );
        },
    );
}

#[test]
fn another_preshared_key_is_no_peer() {
    with_wireguard_go(
        "another_preshared_key_is_no_peer",
        "127.0.0.1",
        |ours, _| {
            let (tunnel, peer) = (&ours.tunnel, &ours.peer);
            tunnel.set_preshared_key(peer, PresharedKey::from_bytes([1; 32]));
            ours.ping(1, 56);
            assert!(!ours.pong(1, Duration::from_secs(1)));
            assert_eq!(ours.handshakes, 0);
            assert_eq!(
                ours.tunnel
                    .dropped(wirespeed_protocol::DropReason::NotAuthentic),
                1
            );
        },
    );
}

/// Our end: a tunnel, a socket, and a clock that may run ahead.
struct Ours {
    tunnel: Tunnel,
    peer: Arc<Peer>,
    key: PrivateKey,
    socket: UdpSocket,
    rng: StdRng,
    started: Clock,
    ahead: Duration,
    behind: Duration,
    handshakes: usize,
    pongs: Vec<u16>,
}

impl Ours {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Now {
            instant: Instant::from_nanos((self.started.elapsed() + self.ahead).as_nanos() as u64),
            wall: WallTime(wall.saturating_sub(self.behind)),
        }
    }

    /// Lets our clock jump ahead. The other's doesn't, and it takes no more than 50 initiations a second.
    fn skip(&mut self, time: Duration) {
        std::thread::sleep(Duration::from_millis(50));
        self.ahead += time;
    }

    fn local(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn ping(&mut self, number: u16, size: usize) {
        self.ping_all(number, &[size]);
    }

    fn ping_all(&mut self, first: u16, sizes: &[usize]) {
        let mut batch = Outgoing::new(1 << 17, 128);
        for (number, size) in (first..).zip(sizes) {
            assert!(batch.push(&echo_request(number, *size), MTU));
        }
        self.send(&mut batch);
    }

    fn send(&mut self, batch: &mut Outgoing) {
        if let Sealed::To(destination) = self.tunnel.seal(self.now(), &self.peer, batch) {
            self.flush();
            for datagram in batch.datagrams() {
                self.socket.send_to(datagram.bytes, destination).unwrap();
            }
        }
        self.flush();
    }

    fn pong(&mut self, number: u16, within: Duration) -> bool {
        self.turn_until(within, |ours| ours.pongs.contains(&number))
    }

    /// The peer works on handshakes beside data, so that one may come after the other.
    fn has_shaken_hands(&mut self, times: usize) -> bool {
        self.turn_until(Duration::from_secs(3), |ours| ours.handshakes >= times)
            && self.handshakes == times
    }

    fn turn_until(&mut self, within: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = Clock::now() + within;
        while !condition(self) && Clock::now() < end {
            self.turn(Duration::from_millis(20));
        }
        condition(self)
    }

    /// Waits for a datagram, works on it, and does what is due.
    fn turn(&mut self, wait: Duration) {
        self.socket.set_read_timeout(Some(wait)).unwrap();
        let mut buffer = [0; 2_048];
        match self.socket.recv_from(&mut buffer) {
            Ok((length, source)) => self.take(&mut buffer[..length], source),
            // Interrupted: the whole process was stopped for a while.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => panic!("{error}"),
        }
        self.flush();
    }

    fn take(&mut self, bytes: &mut [u8], source: SocketAddr) {
        let now = self.now();
        let mut incoming = [Incoming::new(bytes, source)];
        self.tunnel.open(now, &mut incoming);
        if incoming[0].verdict == Verdict::Handshake {
            let _counted = self
                .tunnel
                .handshake(now, source, incoming[0].bytes, &mut self.rng);
        } else if let Some(packet) = incoming[0].packet_mut() {
            match packet[20] {
                0 => self
                    .pongs
                    .push(u16::from_be_bytes([packet[26], packet[27]])),
                8 => {
                    // An answer is the request with addresses swapped and another type, and the checksum after that.
                    let (source, destination) = packet[12..20].split_at_mut(4);
                    source.swap_with_slice(destination);
                    packet[20] = 0;
                    packet[22..24].fill(0);
                    let checksum = checksum(&packet[20..]);
                    packet[22..24].copy_from_slice(&checksum);
                    let mut batch = Outgoing::new(2_048, 1);
                    assert!(batch.push(packet, MTU));
                    self.send(&mut batch);
                }
                _ => {}
            }
        }
    }

    fn flush(&mut self) {
        let now = self.now();
        self.tunnel.timers(now, &mut self.rng);
        while let Some(transmit) = self.tunnel.poll_transmit() {
            self.socket
                .send_to(&transmit.bytes, transmit.destination)
                .unwrap();
        }
        while let Some(event) = self.tunnel.poll_event() {
            self.handshakes += usize::from(matches!(event, Event::HandshakeComplete(_)));
        }
    }
}

/// Its end.
struct WireguardGo {
    child: Child,
    interface: String,
}

impl WireguardGo {
    fn start(interface: &str) -> Option<Self> {
        let child = Command::new("wireguard-go")
            .args(["--foreground", interface])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let daemon = Self {
            child,
            interface: interface.to_owned(),
        };
        let end = Clock::now() + Duration::from_secs(5);
        while !std::path::Path::new(&daemon.socket()).exists() {
            if Clock::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(daemon)
    }

    fn socket(&self) -> String {
        format!("/var/run/wireguard/{}.sock", self.interface)
    }

    fn configure(&self, settings: &str) {
        run(&format!("wg set {} {settings}", self.interface));
    }
}

impl Drop for WireguardGo {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = std::fs::remove_file(self.socket());
    }
}

/// Runs a test in a thread with a namespace of its own, where wireguard-go listens on this loopback address.
fn with_wireguard_go(
    test: &'static str,
    loopback: &'static str,
    body: impl FnOnce(&mut Ours, &WireguardGo) + Send + 'static,
) {
    for tool in ["wireguard-go", "wg", "ip", "ping"] {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {tool}")])
            .output()
            .unwrap();
        if !found.status.success() {
            return skip(test, &format!("{tool} is not installed"));
        }
    }
    let thread = std::thread::spawn(move || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            return skip(test, &format!("no network namespace: {error}"));
        }
        run("ip link set lo up");
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64;
        let mut rng = StdRng::seed_from_u64(nanos);
        let interface = format!("wgp{:08x}", rng.next_u32());
        let Some(its) = WireguardGo::start(&interface) else {
            return skip(test, "wireguard-go does not start here");
        };
        let mut keys = [[0; 32]; 3];
        for key in &mut keys {
            rng.fill_bytes(key);
        }
        let [key, its_key, psk] = keys;
        let key = PrivateKey::from_bytes(key);
        let its_key = PrivateKey::from_bytes(its_key);
        run(&format!(
            "echo {} | wg set {interface} listen-port {THEIR_PORT} private-key /dev/stdin",
            base64(&*its_key.to_bytes())
        ));
        run(&format!(
            "echo {} | wg set {interface} peer {} preshared-key /dev/stdin allowed-ips {OURS}/32",
            base64(&psk),
            base64(key.public().as_bytes())
        ));
        run(&format!(
            "ip addr add {THEIRS}/24 dev {interface} && ip link set {interface} mtu {MTU} up"
        ));
        wait_for_listener(&interface);
        let mut ours = ours(
            key,
            its_key.public(),
            PresharedKey::from_bytes(psk),
            loopback,
            rng,
        );
        body(&mut ours, &its);
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn ours(
    key: PrivateKey,
    its: PublicKey,
    psk: PresharedKey,
    loopback: &str,
    mut rng: StdRng,
) -> Ours {
    let tunnel = Tunnel::new(Instant::default(), Options::default(), &mut rng);
    tunnel.set_private_key(Some(key.clone()));
    let peer = tunnel.add_peer(its, &mut rng).unwrap();
    tunnel.set_preshared_key(&peer, psk);
    tunnel.allow(&peer, Prefix::new(THEIRS.into(), 32).unwrap());
    let ours = Ours {
        tunnel,
        peer,
        key,
        socket: socket(&format!("{loopback}:0")),
        rng,
        started: Clock::now(),
        ahead: Duration::ZERO,
        behind: Duration::ZERO,
        handshakes: 0,
        pongs: Vec::new(),
    };
    let endpoint = format!("{loopback}:{THEIR_PORT}").parse().unwrap();
    ours.tunnel.set_endpoint(ours.now(), &ours.peer, endpoint);
    ours
}

fn wait_for_listener(interface: &str) {
    let end = Clock::now() + Duration::from_secs(5);
    let listens = || {
        let sockets = Command::new("ss")
            .args(["-H", "-u", "-a", "-n"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&sockets.stdout).contains(&format!(":{THEIR_PORT}"))
    };
    while !listens() {
        assert!(Clock::now() < end, "{interface} doesn't listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn socket(address: &str) -> UdpSocket {
    UdpSocket::bind(address).unwrap()
}

fn echo_request(number: u16, size: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(((28 + size) as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 1, 0, 0]);
    packet.extend(OURS.octets());
    packet.extend(THEIRS.octets());
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum);
    packet.extend([8, 0, 0, 0, 0x77, 0x77]);
    packet.extend(number.to_be_bytes());
    packet.resize(28 + size, number as u8);
    let sum = checksum(&packet[20..]);
    packet[22..24].copy_from_slice(&sum);
    packet
}

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn public_key_of(ours: &Ours) -> String {
    base64(ours.key.public().as_bytes())
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn run(command: &str) {
    let status = Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os("WIRESPEED_SKIPS") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
