//! Takes one sample.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::BenchError;
use crate::crowd::{self, Crowd, Flood};
use crate::echo::{Echo, RoundTrips};
use crate::implementation::Implementation;
use crate::iperf3::{self, Direction, Load, Moved};
use crate::model::{Figures, Metric};
use crate::options::Options;
use crate::proc;
use crate::road::{CROWDED, Cable, INSIDE, Road};
use crate::rows::{Kind, Row};
use crate::tunnel::{Daemon, Keys, PORT, Tunnel};
use crate::uapi::{self, Request};

/// Between two echoes while nothing else goes on, and beside a load.
const ECHO_EVERY: Duration = Duration::from_millis(4);
/// How long an idle tunnel is watched.
const IDLE: Duration = Duration::from_millis(1_200);
/// How long a daemon gets to settle before its memory is read.
const SETTLES: Duration = Duration::from_millis(500);
/// How long it is watched for wake-ups.
const WATCHED: Duration = Duration::from_secs(2);
const PEERS: u32 = 10_000;
const CALLERS: usize = 2_000;
/// Handshakes are counted for no longer.
const CALLED_FOR: Duration = Duration::from_secs(4);
const FLOOD_PER_SECOND: f64 = 50_000.0;
/// A flood begins so much before the load.
const FLOOD_AHEAD: Duration = Duration::from_millis(200);
/// How long traffic may take to resume.
const RESUMES_WITHIN: Duration = Duration::from_secs(30);
/// What may be lost of a clean load.
const CLEAN: f64 = 0.01;
/// A port of the far end where nobody reads.
const DEAD_PORT: u16 = 9;

/// What every sample needs.
pub(crate) struct Bench<'a> {
    pub(crate) road: &'a Road,
    pub(crate) options: &'a Options,
    pub(crate) goes_on: &'a (dyn Fn() -> bool + Sync),
}

impl Bench<'_> {
    /// The figures of one sample.
    pub(crate) fn sample(
        &self,
        row: &Row,
        implementation: &Implementation,
        round: u32,
    ) -> Result<Figures, BenchError> {
        match row.kind {
            Kind::Tcp {
                streams,
                direction,
                echoes,
            } => self.tcp(row, implementation, streams, direction, echoes),
            Kind::Udp { payload } => self.udp(row, implementation, payload),
            Kind::UdpClean { payload } => self.udp_clean(row, implementation, payload),
            Kind::Latency => self.latency(row, implementation),
            Kind::StartUp => self.start_up(row, implementation),
            Kind::Memory => self.memory(row, implementation),
            Kind::Handshakes => self.handshakes(implementation),
            Kind::Flood => self.flood(row, implementation, round),
            Kind::Restart => self.restart(row, implementation),
        }
    }

    fn tcp(
        &self,
        row: &Row,
        implementation: &Implementation,
        streams: u32,
        direction: Direction,
        echoes: bool,
    ) -> Result<Figures, BenchError> {
        let tunnel = self.tunnel(row, implementation)?;
        let load = self.load(
            address(tunnel.as_ref(), row.cable),
            streams,
            direction,
            None,
        );
        let (moved, round_trips, mut figures) = self.loaded(tunnel.as_ref(), &load, echoes)?;
        figures.insert(Metric::Rate, moved.rate());
        if let (Some(up), Some(down)) = (moved.up, moved.down) {
            figures.extend([(Metric::RateUp, up.rate), (Metric::RateDown, down.rate)]);
        }
        if let Some(again) = moved.retransmits() {
            let measured = f64::from(load.seconds) - load.warm_up;
            figures.insert(
                Metric::RetransmitsPerGigabyte,
                again / (moved.rate() / 8.0 * measured / 1e9),
            );
        }
        if let Some(round_trips) = round_trips {
            put(
                &mut figures,
                [
                    (Metric::RttLoaded, round_trips.median),
                    (Metric::RttLoadedP99, round_trips.p99),
                    (Metric::EchoesLost, round_trips.lost),
                ],
            );
        }
        Ok(figures)
    }

    fn udp(
        &self,
        row: &Row,
        implementation: &Implementation,
        payload: u32,
    ) -> Result<Figures, BenchError> {
        let tunnel = self.tunnel(row, implementation)?;
        let load = self.load(
            address(tunnel.as_ref(), row.cable),
            1,
            Direction::Up,
            Some(payload),
        );
        self.datagrams(tunnel.as_ref(), &load, payload)
    }

    /// The most that arrives while no more than [`CLEAN`] is lost. Between the eighth of what arrives of an unlimited load and
    /// four times that there are five doublings; six halvings of these leave 6 %.
    fn udp_clean(
        &self,
        row: &Row,
        implementation: &Implementation,
        payload: u32,
    ) -> Result<Figures, BenchError> {
        let tunnel = self.tunnel(row, implementation)?;
        let unlimited = Load {
            seconds: 1,
            warm_up: 0.3,
            ..self.load(
                address(tunnel.as_ref(), row.cable),
                1,
                Direction::Up,
                Some(payload),
            )
        };
        let figure = |figures: &Figures, metric| figures.get(&metric).copied().unwrap_or(0.0);
        let mut best = self.datagrams(tunnel.as_ref(), &unlimited, payload)?;
        let arrived = figure(&best, Metric::Datagrams);
        if figure(&best, Metric::Lost) <= CLEAN {
            return Ok(best);
        }
        let (mut low, mut high) = (
            (arrived / 8.0).ln(),
            (arrived * 4.0).min(figure(&best, Metric::Offered)).ln(),
        );
        best.clear();
        for _ in 0..6 {
            let rate = f64::midpoint(low, high);
            let load = Load {
                udp_rate: Some(rate.exp()),
                ..unlimited.clone()
            };
            let figures = self.datagrams(tunnel.as_ref(), &load, payload)?;
            if figure(&figures, Metric::Lost) <= CLEAN {
                low = rate;
                best = figures;
            } else {
                high = rate;
            }
        }
        if best.is_empty() {
            return Err(BenchError::Measured(format!(
                "more than {:.0} % is lost even at an eighth of what arrives of an unlimited load",
                CLEAN * 100.0
            )));
        }
        Ok(best)
    }

    fn datagrams(
        &self,
        tunnel: Option<&Tunnel<'_>>,
        load: &Load,
        payload: u32,
    ) -> Result<Figures, BenchError> {
        let (moved, _, mut figures) = self.loaded(tunnel, load, false)?;
        let up = moved.up.unwrap_or_default();
        let each = |figure: Option<&f64>| {
            figure.map(|per_gigabyte| per_gigabyte * f64::from(payload) / 1e9)
        };
        let (daemons, machine) = (
            each(figures.get(&Metric::CpuBoth)),
            each(figures.get(&Metric::CpuMachine)),
        );
        put(
            &mut figures,
            [
                (Metric::Datagrams, up.datagrams),
                (Metric::Offered, up.offered),
                (Metric::Lost, up.lost),
                (Metric::PacketCpu, daemons),
                (Metric::PacketCpuMachine, machine),
            ],
        );
        figures.insert(Metric::Rate, up.rate);
        Ok(figures)
    }

    fn latency(&self, row: &Row, implementation: &Implementation) -> Result<Figures, BenchError> {
        let tunnel = self.tunnel(row, implementation)?;
        let echo = Echo::open(&self.road.near, address(tunnel.as_ref(), row.cable))?;
        let end = Instant::now() + IDLE;
        let train = echo.train(ECHO_EVERY, &|| Instant::now() < end && (self.goes_on)());
        let round_trips = RoundTrips::of(&train);
        let mut figures = Figures::new();
        put(
            &mut figures,
            [
                (Metric::RttIdle, round_trips.median),
                (Metric::RttIdleP99, round_trips.p99),
                (Metric::EchoesLost, round_trips.lost),
            ],
        );
        Ok(figures)
    }

    fn start_up(&self, row: &Row, implementation: &Implementation) -> Result<Figures, BenchError> {
        let tunnel = Tunnel::start(self.road, implementation, row.cable, 0, self.goes_on)?;
        Ok(Figures::from([
            (Metric::Ready, tunnel.ready.as_secs_f64()),
            (Metric::FirstEcho, tunnel.first_echo.as_secs_f64()),
        ]))
    }

    fn memory(&self, row: &Row, implementation: &Implementation) -> Result<Figures, BenchError> {
        let mut figures = Figures::new();
        {
            let tunnel = Tunnel::start(self.road, implementation, row.cable, 0, self.goes_on)?;
            let pid = tunnel.ends[0].pid();
            thread::sleep(SETTLES);
            let idle = memory(pid)?;
            figures.extend([
                (Metric::MemoryIdle, idle.proportional as f64),
                (Metric::ResidentIdle, idle.resident as f64),
            ]);
            let load = self.load(INSIDE[1], 10, Direction::Up, None);
            let over = AtomicBool::new(false);
            let peak = thread::scope(|scope| {
                let watch = scope.spawn(|| {
                    let mut peak = 0;
                    while !over.load(Ordering::Relaxed) {
                        peak = peak.max(proc::memory(pid).map_or(0, |memory| memory.proportional));
                        thread::sleep(Duration::from_millis(100));
                    }
                    peak
                });
                let moved = iperf3::run(&self.road.near, &self.road.far, &load, self.goes_on);
                over.store(true, Ordering::Relaxed);
                let peak = watch.join().unwrap_or(0);
                moved.map(|_| peak)
            })?;
            figures.insert(Metric::MemoryLoaded, peak as f64);
        }
        let mut daemon = Daemon::start(&self.road.near, implementation, 'a')?;
        daemon.ready()?;
        self.road
            .near
            .ip(&format!("link set {} up\n", daemon.interface()))?;
        thread::sleep(SETTLES);
        let without = memory(daemon.pid())?;
        let mut request = Request::set(&*Keys::random().private.to_bytes(), PORT);
        for number in 0..PEERS {
            let key: [u8; 32] = rand::random();
            request.peer(
                &key,
                None,
                0,
                Ipv4Addr::from_bits(Ipv4Addr::new(10, 128, 0, 0).to_bits() + number),
            );
        }
        figures.insert(
            Metric::SetPeers,
            request
                .send(daemon.name(), daemon.interface())?
                .as_secs_f64(),
        );
        thread::sleep(SETTLES);
        let with = memory(daemon.pid())?;
        figures.insert(Metric::MemoryWithPeers, with.proportional as f64);
        figures.insert(
            Metric::BytesPerPeer,
            (with.proportional as f64 - without.proportional as f64) / f64::from(PEERS),
        );
        let before = proc::switches(daemon.pid());
        self.pause(WATCHED)?;
        if let Some((before, after)) = before.zip(proc::switches(daemon.pid())) {
            figures.insert(
                Metric::WakeUps,
                after.saturating_sub(before) as f64 / WATCHED.as_secs_f64(),
            );
        }
        let (took, length) = uapi::get(daemon.name(), daemon.interface())?;
        // Less than a key each means that it doesn't show them all.
        if length > PEERS as usize * 64 {
            figures.insert(Metric::GetPeers, took.as_secs_f64());
        }
        Ok(figures)
    }

    fn handshakes(&self, implementation: &Implementation) -> Result<Figures, BenchError> {
        let keys = Keys::random();
        let address = SocketAddrV4::new(CROWDED, PORT);
        let crowd = Crowd::open(&self.road.crowd)?;
        let mut callers = crowd::callers((address, &keys.public), CALLERS)?;
        let mut daemon = Daemon::start(&self.road.far, implementation, 'b')?;
        daemon.ready()?;
        let mut request = Request::set(&*keys.private.to_bytes(), PORT);
        for (number, caller) in (0..).zip(&callers) {
            request.peer(
                caller.public.as_bytes(),
                None,
                0,
                Ipv4Addr::from_bits(Ipv4Addr::new(10, 128, 0, 0).to_bits() + number),
            );
        }
        request.send(daemon.name(), daemon.interface())?;
        self.road
            .far
            .ip(&format!("link set {} up\n", daemon.interface()))?;
        self.pause(SETTLES)?;
        let before = proc::cpu_seconds(daemon.pid());
        let called = crowd.call(
            &mut callers,
            (address, &keys.public),
            CALLED_FOR,
            self.goes_on,
        );
        let cpu = before
            .zip(proc::cpu_seconds(daemon.pid()))
            .map(|(before, after)| after - before);
        if called.answered == 0 {
            return Err(BenchError::Measured(format!(
                "none of {} handshakes was answered",
                called.calls
            )));
        }
        let answered = f64::from(called.answered);
        let mut figures = Figures::from([
            (Metric::Handshakes, answered / called.seconds),
            (
                Metric::Cookies,
                f64::from(called.cookies) / f64::from(called.calls),
            ),
            (
                Metric::HandshakesLost,
                1.0 - answered / f64::from(called.calls),
            ),
        ]);
        put(
            &mut figures,
            [(Metric::HandshakeCpu, cpu.map(|cpu| cpu / answered))],
        );
        Ok(figures)
    }

    fn flood(
        &self,
        row: &Row,
        implementation: &Implementation,
        round: u32,
    ) -> Result<Figures, BenchError> {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum State {
            Quiet,
            DeadPort,
            Flooded,
        }
        let tunnel = Tunnel::start(self.road, implementation, row.cable, 0, self.goes_on)?;
        let load = self.load(INSIDE[1], 1, Direction::Up, None);
        // Bound so that the kernel has no errors to send; never read.
        let _dead = self
            .road
            .far
            .run(|| UdpSocket::bind((CROWDED, DEAD_PORT)))?
            .map_err(BenchError::system("bind a port for nobody"))?;
        let mut order = [State::Quiet, State::DeadPort, State::Flooded];
        order.rotate_left(round as usize % 3);
        let mut rates = [0.0; 3];
        let mut figures = Figures::new();
        for state in order {
            let flood = match state {
                State::Quiet => None,
                State::DeadPort => Some(DEAD_PORT),
                State::Flooded => Some(PORT),
            };
            let flood = match flood {
                Some(port) => {
                    let crowd = Crowd::open(&self.road.crowd)?;
                    let flood = Flood::start(
                        crowd,
                        SocketAddrV4::new(CROWDED, port),
                        tunnel.far_key(),
                        FLOOD_PER_SECOND,
                    );
                    self.pause(FLOOD_AHEAD)?;
                    Some(flood)
                }
                None => None,
            };
            let moved = iperf3::run(&self.road.near, &self.road.far, &load, self.goes_on)?;
            rates[state as usize] = moved.rate();
            if let Some(flood) = flood {
                let sent = flood.stop();
                if state == State::Flooded {
                    figures.insert(Metric::FloodSent, sent);
                }
            }
        }
        let [quiet, dead, flooded] = rates;
        figures.extend([
            (Metric::Rate, quiet),
            (Metric::FloodRate, flooded),
            (Metric::FloodShare, flooded / quiet),
            (Metric::FloodShareOfDead, flooded / dead),
        ]);
        Ok(figures)
    }

    fn restart(&self, row: &Row, implementation: &Implementation) -> Result<Figures, BenchError> {
        let mut tunnel = Tunnel::start(self.road, implementation, row.cable, 25, self.goes_on)?;
        let echo = Echo::open(&self.road.near, INSIDE[1])?;
        self.pause(SETTLES)?;
        let killed = Instant::now();
        tunnel.ends[1]
            .kill()
            .map_err(BenchError::system("kill the far daemon"))?;
        let resumed = thread::scope(|scope| {
            // Only the new daemon can answer these.
            let answer = scope.spawn(|| {
                echo.first_answer(RESUMES_WITHIN, Duration::from_millis(5), self.goes_on)
            });
            let restarted = tunnel.restart_far();
            let answered = answer.join().unwrap_or(Err(BenchError::Stopped));
            restarted.and(answered)
        })?;
        Ok(Figures::from([(
            Metric::Resumed,
            (resumed - killed).as_secs_f64(),
        )]))
    }

    /// A tunnel, or none for the bare road.
    fn tunnel<'b>(
        &'b self,
        row: &Row,
        implementation: &'b Implementation,
    ) -> Result<Option<Tunnel<'b>>, BenchError> {
        match implementation.program {
            Some(_) => {
                Tunnel::start(self.road, implementation, row.cable, 0, self.goes_on).map(Some)
            }
            None => Ok(None),
        }
    }

    fn load(
        &self,
        to: Ipv4Addr,
        streams: u32,
        direction: Direction,
        udp_payload: Option<u32>,
    ) -> Load {
        Load {
            to,
            streams,
            direction,
            udp_payload,
            udp_rate: None,
            congestion_control: Some(self.options.congestion_control.clone()),
            seconds: self.options.seconds,
            warm_up: self.options.warm_up,
        }
    }

    /// Runs a load, echoes beside it if wanted, and reads what it cost.
    fn loaded(
        &self,
        tunnel: Option<&Tunnel<'_>>,
        load: &Load,
        echoes: bool,
    ) -> Result<(Moved, Option<RoundTrips>, Figures), BenchError> {
        let echo = echoes
            .then(|| Echo::open(&self.road.near, load.to))
            .transpose()?;
        let over = AtomicBool::new(false);
        let before = Cpu::of(tunnel);
        let (moved, round_trips) = thread::scope(|scope| {
            let over = &over;
            let train = echo.as_ref().map(|echo| {
                scope.spawn(move || {
                    echo.train(ECHO_EVERY, &|| {
                        !over.load(Ordering::Relaxed) && (self.goes_on)()
                    })
                })
            });
            let moved = iperf3::run(&self.road.near, &self.road.far, load, self.goes_on);
            over.store(true, Ordering::Relaxed);
            (moved, train.and_then(|train| train.join().ok()))
        });
        let after = Cpu::of(tunnel);
        let moved = moved?;
        let mut figures = Figures::new();
        let gigabytes = moved.bytes() / 1e9;
        let spent = |before: Option<f64>, after: Option<f64>| {
            before
                .zip(after)
                .map(|(before, after)| (after - before) / gigabytes)
        };
        let (near, far) = (spent(before.near, after.near), spent(before.far, after.far));
        let both = near.zip(far).map(|(near, far)| near + far);
        put(
            &mut figures,
            [
                (Metric::CpuNear, near),
                (Metric::CpuFar, far),
                (Metric::CpuBoth, both),
                (Metric::CpuMachine, spent(before.machine, after.machine)),
            ],
        );
        let warm_up = Duration::from_secs_f64(load.warm_up);
        let round_trips = round_trips.map(|train| {
            let begun = train.first().map(|request| request.at);
            let warm: Vec<_> = train
                .into_iter()
                .filter(|request| begun.is_some_and(|begun| request.at - begun > warm_up))
                .collect();
            RoundTrips::of(&warm)
        });
        Ok((moved, round_trips, figures))
    }

    fn pause(&self, time: Duration) -> Result<(), BenchError> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if !(self.goes_on)() {
                return Err(BenchError::Stopped);
            }
            thread::sleep(
                end.saturating_duration_since(Instant::now())
                    .min(Duration::from_millis(50)),
            );
        }
        Ok(())
    }
}

/// CPU seconds so far.
struct Cpu {
    near: Option<f64>,
    far: Option<f64>,
    machine: Option<f64>,
}

impl Cpu {
    fn of(tunnel: Option<&Tunnel<'_>>) -> Self {
        let daemon =
            |end: usize| tunnel.and_then(|tunnel| proc::cpu_seconds(tunnel.ends[end].pid()));
        Self {
            near: daemon(0),
            far: daemon(1),
            machine: proc::busy_seconds(),
        }
    }
}

fn address(tunnel: Option<&Tunnel<'_>>, cable: Cable) -> Ipv4Addr {
    if tunnel.is_some() {
        INSIDE[1]
    } else {
        cable.addresses()[1]
    }
}

fn memory(pid: u32) -> Result<proc::Memory, BenchError> {
    proc::memory(pid).ok_or_else(|| {
        BenchError::Measured("the daemon's memory can't be read: it has ended".to_owned())
    })
}

fn put<const N: usize>(figures: &mut Figures, some: [(Metric, Option<f64>); N]) {
    figures.extend(
        some.into_iter()
            .filter_map(|(metric, value)| Some((metric, value?))),
    );
}
