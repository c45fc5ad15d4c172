//! Samples of loads and of round trips, over the bare road or through a tunnel.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, put};
use crate::BenchError;
use crate::echo::{Echo, RoundTrips};
use crate::implementation::Implementation;
use crate::iperf3::{self, Direction, Load, Moved};
use crate::model::{Figures, Metric};
use crate::proc;
use crate::road::{Cable, INSIDE};
use crate::rows::Row;
use crate::tunnel::Tunnel;

/// Between two echoes, while nothing else goes on and beside a load.
const ECHO_EVERY: Duration = Duration::from_millis(4);
/// How long an idle tunnel is watched.
const IDLE: Duration = Duration::from_millis(1_200);
/// What may be lost of a clean load.
const CLEAN: f64 = 0.01;
/// How often the range of the clean rate is halved.
const HALVINGS: u32 = 5;

impl Bench<'_> {
    pub(super) fn tcp(
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

    pub(super) fn udp(
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
    /// twice that there are four doublings; five halvings of these leave 9 %.
    pub(super) fn udp_clean(
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
            (arrived * 2.0).min(figure(&best, Metric::Offered)).ln(),
        );
        best.clear();
        for _ in 0..HALVINGS {
            let rate = f64::midpoint(low, high);
            let load = Load {
                udp_rate: Some(rate.exp()),
                ..unlimited.clone()
            };
            let mut figures = self.datagrams(tunnel.as_ref(), &load, payload)?;
            if figure(&figures, Metric::Lost) > CLEAN {
                // A machine that looked elsewhere for a moment must not cost all that is above.
                figures = self.datagrams(tunnel.as_ref(), &load, payload)?;
            }
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

    pub(super) fn latency(
        &self,
        row: &Row,
        implementation: &Implementation,
    ) -> Result<Figures, BenchError> {
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
