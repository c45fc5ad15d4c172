//! A deterministic world: machines with a tunnel each, a road between them, and a clock that jumps from one thing
//! that happens to the next.
//!
//! The world checks on each delivery what must never be violated: no packet twice, none changed, none from an inner
//! address its peer wasn't allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use wirespeed_protocol::wire::{Kind, kind};
use wirespeed_protocol::{
    Event, Incoming, InnerHeader, Instant, Now, Options, Outgoing, Peer, Prefix, PrivateKey,
    PublicKey, Sealed, Tunnel, Verdict, WallTime,
};

pub(crate) const MTU: usize = 1420;

/// One way; a round trip takes 40 ms.
pub(crate) const DELAY: Duration = Duration::from_millis(20);

/// When a world begins.
pub(crate) const START: Duration = Duration::from_secs(1_000);

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) machines: Vec<Machine>,
    pub(crate) road: Road,
    /// All datagrams ever put on the road.
    pub(crate) log: Vec<Sent>,
    flights: BTreeMap<(Duration, u64), Flight>,
    next_flight: u64,
    next_packet: u64,
    sent_packets: BTreeSet<u64>,
    delivered_packets: BTreeSet<(usize, u64)>,
}

pub(crate) struct Machine {
    pub(crate) tunnel: Tunnel,
    pub(crate) address: SocketAddr,
    pub(crate) private: PrivateKey,
    pub(crate) events: Vec<(Duration, Event)>,
    /// Numbers of the packets delivered, in order, and when.
    pub(crate) delivered: Vec<(Duration, u64)>,
    /// How often the timers were asked, and nothing came of it.
    pub(crate) idle_wakeups: usize,
    wall_offset_seconds: i64,
    rng: StdRng,
}

/// What the road does to a datagram, each by chance (0 to 1).
#[derive(Clone, Debug, Default)]
pub(crate) struct RoadSettings {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) corruption: f64,
    /// Up to so much later than others.
    pub(crate) delay_variation: Duration,
}

type Judge = Box<dyn FnMut(&Sent) -> bool>;

pub(crate) struct Road {
    pub(crate) settings: RoadSettings,
    /// Says which datagrams arrive, beside chance.
    pub(crate) lets_through: Judge,
    rng: StdRng,
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Duration,
    pub(crate) from: usize,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn is_keepalive(&self) -> bool {
        self.kind == Kind::Data && self.bytes.len() == 32
    }
}

struct Flight {
    source: SocketAddr,
    destination: SocketAddr,
    bytes: Vec<u8>,
}

impl World {
    /// Machines without peers, numbered from 0.
    pub(crate) fn new(machines: usize, seed: u64) -> Self {
        let mut world = Self {
            now: START,
            machines: Vec::new(),
            road: Road {
                settings: RoadSettings::default(),
                lets_through: Box::new(|_| true),
                rng: StdRng::seed_from_u64(seed),
            },
            log: Vec::new(),
            flights: BTreeMap::new(),
            next_flight: 0,
            next_packet: 0,
            sent_packets: BTreeSet::new(),
            delivered_packets: BTreeSet::new(),
        };
        for number in 0..machines {
            let mut rng = StdRng::seed_from_u64(seed ^ (number as u64 + 1) << 32);
            let mut key = [0; 32];
            rng.fill_bytes(&mut key);
            let private = PrivateKey::from_bytes(key);
            let tunnel = Tunnel::new(world.instant(), Options::default(), &mut rng);
            tunnel.set_private_key(Some(private.clone()));
            world.machines.push(Machine {
                tunnel,
                address: outer(number, 51_820),
                private,
                events: Vec::new(),
                delivered: Vec::new(),
                idle_wakeups: 0,
                wall_offset_seconds: 1_700_000_000,
                rng,
            });
        }
        world
    }

    /// Two machines that know each other's key and address.
    pub(crate) fn pair(seed: u64) -> Self {
        let mut world = Self::new(2, seed);
        world.introduce(0, 1, true);
        world.introduce(1, 0, true);
        world
    }

    /// Makes `peer` known to `machine`, with its address or without.
    pub(crate) fn introduce(&mut self, machine: usize, peer: usize, with_address: bool) {
        let now = self.now_of(machine);
        let key = self.key(peer);
        let address = self.machines[peer].address;
        let Machine { tunnel, rng, .. } = &mut self.machines[machine];
        let handle = tunnel.add_peer(key, rng).unwrap();
        tunnel.allow(&handle, Prefix::new(inner(peer), 32).unwrap());
        if with_address {
            tunnel.set_endpoint(now, &handle, address);
        }
    }

    pub(crate) fn key(&self, machine: usize) -> PublicKey {
        self.machines[machine].private.public()
    }

    pub(crate) fn peer(&self, machine: usize, peer: usize) -> Arc<Peer> {
        self.machines[machine].tunnel.peer(&self.key(peer)).unwrap()
    }

    pub(crate) fn now_of(&self, machine: usize) -> Now {
        let offset = self.machines[machine].wall_offset_seconds;
        let seconds = self.now.as_secs().checked_add_signed(offset).unwrap();
        Now {
            instant: self.instant(),
            wall: WallTime(Duration::new(seconds, self.now.subsec_nanos())),
        }
    }

    pub(crate) fn jump_wall(&mut self, machine: usize, seconds: i64) {
        self.machines[machine].wall_offset_seconds += seconds;
    }

    /// The machine loses all but its configuration.
    pub(crate) fn restart(&mut self, machine: usize) {
        let instant = self.instant();
        let known: Vec<(usize, Option<SocketAddr>)> = (0..self.machines.len())
            .filter_map(|other| {
                let peer = self.machines[machine].tunnel.peer(&self.key(other))?;
                Some((other, peer.endpoint()))
            })
            .collect();
        let Machine {
            tunnel,
            rng,
            private,
            ..
        } = &mut self.machines[machine];
        *tunnel = Tunnel::new(instant, Options::default(), rng);
        tunnel.set_private_key(Some(private.clone()));
        for (other, endpoint) in known {
            self.introduce(machine, other, false);
            if let Some(endpoint) = endpoint {
                let now = self.now_of(machine);
                let peer = self.peer(machine, other);
                self.machines[machine]
                    .tunnel
                    .set_endpoint(now, &peer, endpoint);
            }
        }
    }

    /// Sends one packet from machine to machine; returns its number.
    pub(crate) fn send(&mut self, from: usize, to: usize) -> u64 {
        self.send_many(from, to, 1).start
    }

    /// Sends packets in one batch; returns their numbers.
    pub(crate) fn send_many(&mut self, from: usize, to: usize, count: u64) -> std::ops::Range<u64> {
        let numbers = self.next_packet..self.next_packet + count;
        self.next_packet = numbers.end;
        let mut batch = Outgoing::new(1 << 20, 512);
        for number in numbers.clone() {
            self.sent_packets.insert(number);
            assert!(batch.push(&packet(inner(from), inner(to), number), MTU));
        }
        self.send_batch(from, to, &mut batch);
        numbers
    }

    /// Seals a batch and puts it on the road.
    pub(crate) fn send_batch(&mut self, from: usize, to: usize, batch: &mut Outgoing) {
        let now = self.now_of(from);
        let peer = self.machines[from].tunnel.route(inner(to)).unwrap();
        match self.machines[from].tunnel.seal(now, &peer, batch) {
            Sealed::To(destination) => {
                let datagrams: Vec<Vec<u8>> = batch
                    .datagrams()
                    .map(|datagram| datagram.bytes.to_vec())
                    .collect();
                self.drain(from);
                for bytes in datagrams {
                    self.put_on_road(from, destination, &bytes);
                }
            }
            Sealed::Staged => assert!(batch.is_empty()),
            Sealed::Nothing => {}
        }
        self.drain(from);
        self.run_due_timers();
    }

    /// Gives a machine datagrams as if they had come from `source`, and says what became of them.
    pub(crate) fn inject(
        &mut self,
        to: usize,
        source: SocketAddr,
        datagrams: &[Vec<u8>],
    ) -> Vec<Verdict> {
        let now = self.now_of(to);
        let mut buffers = datagrams.to_vec();
        let mut batch: Vec<Incoming<'_>> = buffers
            .iter_mut()
            .map(|bytes| Incoming::new(bytes, source))
            .collect();
        let Machine { tunnel, rng, .. } = &mut self.machines[to];
        tunnel.open(now, &mut batch);
        let mut verdicts = Vec::new();
        let mut packets = Vec::new();
        for incoming in &batch {
            verdicts.push(match &incoming.verdict {
                Verdict::Handshake => match tunnel.handshake(now, source, incoming.bytes, rng) {
                    Ok(()) => Verdict::Handshake,
                    Err(reason) => Verdict::Dropped(reason),
                },
                verdict => verdict.clone(),
            });
            if let Verdict::Packet { peer, .. } = incoming.verdict {
                packets.push((peer, incoming.packet().unwrap().to_vec()));
            }
        }
        for (peer, bytes) in packets {
            self.deliver(to, peer, &bytes);
        }
        self.drain(to);
        self.run_due_timers();
        verdicts
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    pub(crate) fn run_seconds(&mut self, seconds: u64) {
        self.run_for(Duration::from_secs(seconds));
    }

    /// Lets everything happen that is due until then.
    pub(crate) fn run_until(&mut self, end: Duration) {
        self.run_due_timers();
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.land();
            self.run_due_timers();
        }
        self.now = end;
    }

    /// Runs until the packet is delivered; false when it isn't within the time.
    pub(crate) fn run_until_delivered(&mut self, to: usize, number: u64, within: Duration) -> bool {
        let end = self.now + within;
        while !self.has(to, number) {
            let Some(next) = self.next_event().filter(|next| *next <= end) else {
                self.now = end;
                return false;
            };
            self.run_until(next);
        }
        true
    }

    /// Each machine of the pair sends a packet each second.
    pub(crate) fn chat(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.send(0, 1);
            self.send(1, 0);
            self.run_seconds(1);
        }
    }

    pub(crate) fn has(&self, machine: usize, number: u64) -> bool {
        self.delivered_packets.contains(&(machine, number))
    }

    /// What this machine sent of this kind.
    pub(crate) fn sent(&self, from: usize, kind: Kind) -> Vec<&Sent> {
        self.log
            .iter()
            .filter(|sent| sent.from == from && sent.kind == kind)
            .collect()
    }

    pub(crate) fn sent_keepalives(&self, from: usize) -> Vec<Duration> {
        self.sent(from, Kind::Data)
            .iter()
            .filter(|sent| sent.is_keepalive())
            .map(|sent| sent.at)
            .collect()
    }

    fn next_event(&self) -> Option<Duration> {
        let landing = self.flights.keys().next().map(|(at, _)| *at);
        let deadline = self
            .machines
            .iter()
            .filter_map(|machine| machine.tunnel.next_deadline())
            .map(|deadline| Duration::from_nanos(deadline.as_nanos()))
            .min();
        landing.into_iter().chain(deadline).min()
    }

    /// What arrives now comes in batches, one for each machine and source, in order of arrival.
    fn land(&mut self) {
        let mut batches: Vec<(SocketAddr, SocketAddr, Vec<Vec<u8>>)> = Vec::new();
        while let Some(entry) = self
            .flights
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            let Flight {
                source,
                destination,
                bytes,
            } = entry.remove();
            match batches.last_mut() {
                Some((s, d, datagrams)) if (*s, *d) == (source, destination) => {
                    datagrams.push(bytes);
                }
                _ => batches.push((source, destination, vec![bytes])),
            }
        }
        for (source, destination, datagrams) in batches {
            let to = self
                .machines
                .iter()
                .position(|machine| machine.address == destination);
            if let Some(to) = to {
                self.inject(to, source, &datagrams);
            }
        }
    }

    fn run_due_timers(&mut self) {
        for number in 0..self.machines.len() {
            let due = |machine: &Machine, now| {
                machine
                    .tunnel
                    .next_deadline()
                    .is_some_and(|deadline| deadline <= now)
            };
            while due(&self.machines[number], self.instant()) {
                let now = self.now_of(number);
                let before = self.log.len() + self.machines[number].events.len();
                let Machine { tunnel, rng, .. } = &mut self.machines[number];
                tunnel.timers(now, rng);
                self.drain(number);
                if self.log.len() + self.machines[number].events.len() == before {
                    self.machines[number].idle_wakeups += 1;
                }
            }
        }
    }

    fn drain(&mut self, number: usize) {
        while let Some(event) = self.machines[number].tunnel.poll_event() {
            self.machines[number].events.push((self.now, event));
        }
        while let Some(transmit) = self.machines[number].tunnel.poll_transmit() {
            self.put_on_road(number, transmit.destination, &transmit.bytes);
        }
    }

    fn put_on_road(&mut self, from: usize, destination: SocketAddr, bytes: &[u8]) {
        let sent = Sent {
            at: self.now,
            from,
            kind: kind(bytes).expect("a tunnel sends nothing but messages"),
            bytes: bytes.to_vec(),
        };
        let arrives = (self.road.lets_through)(&sent);
        self.log.push(sent);
        if !arrives || self.road.chance(self.road.settings.loss) {
            return;
        }
        let copies = 1 + usize::from(self.road.chance(self.road.settings.duplication));
        for _ in 0..copies {
            let mut bytes = bytes.to_vec();
            if self.road.chance(self.road.settings.corruption) {
                let at = self.road.rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << self.road.rng.random_range(0..8);
            }
            let variation = self
                .road
                .settings
                .delay_variation
                .mul_f64(self.road.rng.random());
            self.next_flight += 1;
            let flight = Flight {
                source: self.machines[from].address,
                destination,
                bytes,
            };
            self.flights
                .insert((self.now + DELAY + variation, self.next_flight), flight);
        }
    }

    fn deliver(&mut self, to: usize, peer: wirespeed_protocol::PeerId, bytes: &[u8]) {
        let header = InnerHeader::parse(bytes).expect("only IP packets are delivered");
        let number = u64::from_be_bytes(bytes[20..28].try_into().unwrap());
        let tunnel = &self.machines[to].tunnel;
        let owner = tunnel
            .route(header.source)
            .expect("a source nobody may use");
        assert_eq!(owner.id(), peer, "a source another peer may use");
        assert!(self.sent_packets.contains(&number), "a packet nobody sent");
        assert_eq!(
            bytes,
            packet(header.source, header.destination, number),
            "a changed packet"
        );
        assert!(
            self.delivered_packets.insert((to, number)),
            "packet {number} delivered twice"
        );
        self.machines[to].delivered.push((self.now, number));
    }

    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now.as_nanos() as u64)
    }
}

impl Road {
    fn chance(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.rng.random_bool(chance)
    }
}

/// The address of a machine in the tunnel.
pub(crate) fn inner(machine: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, machine as u8 + 1))
}

/// The address of a machine on the road.
pub(crate) fn outer(machine: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, machine as u8 + 1], port))
}

/// A packet of which number and addresses decide every byte, its length, too.
pub(crate) fn packet(source: IpAddr, destination: IpAddr, number: u64) -> Vec<u8> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, destination) else {
        panic!("the world inside is IPv4");
    };
    let length = 28 + (number.wrapping_mul(7_919) % 1_393) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    bytes.extend(number.to_be_bytes());
    bytes.resize(usize::from(length), number as u8);
    bytes
}
