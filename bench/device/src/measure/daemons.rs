//! Samples of what a daemon does beside carrying traffic: starting, holding peers, shaking hands, being flooded and killed.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, put};
use crate::BenchError;
use crate::crowd::{self, Crowd};
use crate::echo::Echo;
use crate::flood::Flood;
use crate::implementation::Implementation;
use crate::iperf3::{self, Direction};
use crate::model::{Figures, Metric};
use crate::proc;
use crate::road::{CROWDED, INSIDE, crowd_address};
use crate::rows::Row;
use crate::tunnel::{Daemon, Keys, PORT, Tunnel};
use crate::uapi::{self, Request};

/// How long a daemon gets to settle before it is looked at.
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
/// A port of the far end where nobody reads.
const DEAD_PORT: u16 = 9;
/// How long traffic may take to resume.
const RESUMES_WITHIN: Duration = Duration::from_secs(20);

impl Bench<'_> {
    pub(super) fn start_up(
        &self,
        row: &Row,
        implementation: &Implementation,
    ) -> Result<Figures, BenchError> {
        let tunnel = Tunnel::start(self.road, implementation, row.cable, 0, self.goes_on)?;
        Ok(Figures::from([
            (Metric::Ready, tunnel.ready.as_secs_f64()),
            (Metric::FirstEcho, tunnel.first_echo.as_secs_f64()),
        ]))
    }

    pub(super) fn memory(
        &self,
        row: &Row,
        implementation: &Implementation,
    ) -> Result<Figures, BenchError> {
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
            request.peer(&key, None, 0, inside(number));
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

    pub(super) fn handshakes(
        &self,
        implementation: &Implementation,
    ) -> Result<Figures, BenchError> {
        let keys = Keys::random();
        let address = SocketAddrV4::new(CROWDED, PORT);
        let crowd = Crowd::open(&self.road.crowd)?;
        let port = crowd.port()?;
        let mut callers = crowd::callers((address, &keys.public), CALLERS)?;
        let mut daemon = Daemon::start(&self.road.far, implementation, 'b')?;
        daemon.ready()?;
        let mut request = Request::set(&*keys.private.to_bytes(), PORT);
        for (number, caller) in (0..).zip(&callers) {
            // One of them doesn't answer to the address a handshake came from, so all are told.
            let endpoint = SocketAddrV4::new(crowd_address(number), port);
            request.peer(caller.public.as_bytes(), Some(endpoint), 0, inside(number));
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

    pub(super) fn flood(
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
                    let flood = Flood::start(
                        self.road,
                        SocketAddrV4::new(CROWDED, port),
                        tunnel.far_key(),
                        FLOOD_PER_SECOND,
                    )?;
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
            (Metric::FloodShareDead, dead / quiet),
        ]);
        Ok(figures)
    }

    pub(super) fn restart(
        &self,
        row: &Row,
        implementation: &Implementation,
    ) -> Result<Figures, BenchError> {
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
}

/// The inner address of one of many peers.
fn inside(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 128, 0, 0).to_bits() + number)
}

fn memory(pid: u32) -> Result<proc::Memory, BenchError> {
    proc::memory(pid).ok_or_else(|| {
        BenchError::Measured("the daemon's memory can't be read: it has ended".to_owned())
    })
}
