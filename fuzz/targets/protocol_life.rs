//! Any order of settings, packets, losses and waiting, on both sides of a tunnel: no panic, nothing due while down, and
//! once all is set right again the tunnel works.

#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use rand::SeedableRng;
use rand::rngs::StdRng;
use wirespeed_protocol::{
    Incoming, Now, Options, Outgoing, Prefix, PresharedKey, PrivateKey, Sealed, Tunnel, Verdict,
    WallTime,
};

const PACKET: [u8; 20] = [
    0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1,
];

#[derive(Arbitrary, Debug)]
enum Step {
    Pass {
        tenths: u16,
    },
    Send {
        packets: u8,
    },
    /// Of the next messages those are lost whose bit is set.
    Lose(u8),
    RemovePeer,
    AddPeer,
    PrivateKey(Option<u8>),
    PresharedKey(u8),
    Keepalive(Option<u8>),
    Endpoint(u8),
    Allow(u8, u8),
    Disallow(u8, u8),
    DisallowAll,
    Stop,
    Start,
    ForceLoad(bool),
    WallClockBack(u16),
}

struct World {
    tunnels: [Tunnel; 2],
    now: Now,
    rng: StdRng,
    losses: u8,
    delivered: usize,
    down: [bool; 2],
}

fuzz_target!(|steps: Vec<(bool, Step)>| {
    // Longer lives only repeat themselves.
    if steps.len() > 60 {
        return;
    }
    let mut rng = StdRng::seed_from_u64(1);
    let now = Now {
        wall: WallTime(Duration::from_secs(1_000_000_000)),
        ..Now::default()
    };
    let tunnels = [0, 1].map(|_| Tunnel::new(now.instant, Options::default(), &mut rng));
    let mut world = World {
        tunnels,
        now,
        rng,
        losses: 0,
        delivered: 0,
        down: [false; 2],
    };
    world.set_right();
    for (second, step) in steps {
        world.take(usize::from(second), step);
        world.settle();
        for side in [0, 1] {
            let deadline = world.tunnels[side].next_deadline();
            assert!(!world.down[side] || deadline.is_none());
            assert!(deadline.is_none_or(|deadline| deadline > world.now.instant));
        }
    }
    world.set_right();
    // Sessions of before are over, and with them all that was lost on the way.
    world.pass(Duration::from_secs(600));
    for from in [0, 1] {
        let before = world.delivered;
        world.send(from, 1);
        world.pass(Duration::from_secs(20));
        assert!(world.delivered > before, "{from} doesn't reach the other");
    }
});

impl World {
    fn set_right(&mut self) {
        self.losses = 0;
        // A peer that was removed is forgotten with its last timestamp, and then only time helps.
        self.now.wall = WallTime(self.now.wall.0 + Duration::from_secs(100_000_000));
        for side in [0, 1] {
            let tunnel = &self.tunnels[side];
            tunnel.set_private_key(Some(key(side)));
            let peer = tunnel.add_peer(key(1 - side).public(), &mut self.rng);
            let peer = peer.unwrap();
            tunnel.set_preshared_key(&peer, PresharedKey::default());
            tunnel.allow(&peer, Prefix::new([10, 0, 0, 1].into(), 32).unwrap());
            tunnel.force_load(false);
            tunnel.start(self.now);
            tunnel.set_endpoint(self.now, &peer, address(1 - side));
            self.down[side] = false;
        }
    }

    fn take(&mut self, side: usize, step: Step) {
        let tunnel = &self.tunnels[side];
        let peer = tunnel.peer(&key(1 - side).public());
        match (step, peer) {
            (Step::Pass { tenths }, _) => self.pass(Duration::from_millis(100) * u32::from(tenths)),
            (Step::Send { packets }, _) => self.send(side, usize::from(packets)),
            (Step::Lose(losses), _) => self.losses = losses,
            (Step::RemovePeer, _) => {
                tunnel.remove_peer(&key(1 - side).public());
            }
            (Step::AddPeer, _) => {
                // Refused while the key is our own.
                let _ = tunnel.add_peer(key(1 - side).public(), &mut self.rng);
            }
            (Step::PrivateKey(byte), _) => {
                tunnel.set_private_key(byte.map(|byte| key(usize::from(byte % 4))));
            }
            (Step::Stop, _) => {
                tunnel.stop();
                self.down[side] = true;
            }
            (Step::Start, _) => {
                tunnel.start(self.now);
                self.down[side] = false;
            }
            (Step::ForceLoad(load), _) => tunnel.force_load(load),
            (Step::WallClockBack(seconds), _) => {
                let back = Duration::from_secs(u64::from(seconds));
                self.now.wall = WallTime(self.now.wall.0.saturating_sub(back));
            }
            (Step::PresharedKey(byte), Some(peer)) => {
                tunnel.set_preshared_key(&peer, PresharedKey::from_bytes([byte & 1; 32]));
            }
            (Step::Keepalive(seconds), Some(peer)) => {
                let interval = seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
                tunnel.set_persistent_keepalive(self.now, &peer, interval);
            }
            (Step::Endpoint(host), Some(peer)) => {
                tunnel.set_endpoint(self.now, &peer, address(usize::from(host)));
            }
            (Step::Allow(host, length), Some(peer)) => tunnel.allow(&peer, prefix(host, length)),
            (Step::Disallow(host, length), Some(peer)) => {
                tunnel.disallow(&peer, prefix(host, length));
            }
            (Step::DisallowAll, Some(peer)) => tunnel.disallow_all(&peer),
            (_, None) => {}
        }
    }

    fn send(&mut self, from: usize, packets: usize) {
        let mut batch = Outgoing::new(64 * 64, 64);
        for _ in 0..packets.min(64) {
            assert!(batch.push(&PACKET, 1420));
        }
        let Some(peer) = self.tunnels[from].route([10, 0, 0, 1].into()) else {
            return;
        };
        if let Sealed::To(destination) = self.tunnels[from].seal(self.now, &peer, &mut batch) {
            let datagrams: Vec<Vec<u8>> = batch
                .datagrams()
                .map(|datagram| datagram.bytes.to_vec())
                .collect();
            self.settle();
            for mut bytes in datagrams {
                self.arrive(from, destination, &mut bytes);
            }
        }
        self.settle();
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now.instant + time;
        loop {
            let deadlines = self.tunnels.iter().filter_map(Tunnel::next_deadline);
            let next = deadlines.min().unwrap_or(end).min(end);
            let step = next.since(self.now.instant);
            self.now.instant = next.max(self.now.instant);
            self.now.wall = WallTime(self.now.wall.0 + step);
            self.settle();
            if next >= end {
                return;
            }
        }
    }

    /// Lets all happen that is due.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1_000, "they never come to rest");
            let mut quiet = true;
            for from in [0, 1] {
                self.tunnels[from].timers(self.now, &mut self.rng);
                while let Some(mut transmit) = self.tunnels[from].poll_transmit() {
                    quiet = false;
                    self.arrive(from, transmit.destination, &mut transmit.bytes);
                }
                while self.tunnels[from].poll_event().is_some() {}
            }
            if quiet {
                return;
            }
        }
    }

    fn arrive(&mut self, from: usize, destination: SocketAddr, bytes: &mut [u8]) {
        let lost = self.losses & 1 == 1;
        self.losses >>= 1;
        if lost || destination != address(1 - from) {
            return;
        }
        let to = &self.tunnels[1 - from];
        let mut incoming = [Incoming::new(bytes, address(from))];
        to.open(self.now, &mut incoming);
        match incoming[0].verdict {
            Verdict::Handshake => {
                let _counted =
                    to.handshake(self.now, address(from), incoming[0].bytes, &mut self.rng);
            }
            Verdict::Packet { .. } => {
                assert_eq!(incoming[0].packet(), Some(&PACKET[..]));
                assert!(!self.down[1 - from]);
                self.delivered += 1;
            }
            _ => {}
        }
    }
}

fn key(number: usize) -> PrivateKey {
    PrivateKey::from_bytes([number as u8 * 8 + 8; 32])
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host as u8], 51_820))
}

fn prefix(host: u8, length: u8) -> Prefix {
    Prefix::new([10, 0, 0, host].into(), length % 33).unwrap()
}
