//! Runs one load between the ends.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_facts::{Counters, CountersDelta};
use wirespeed_reach::Machine;
use wirespeed_words::say;

use crate::iperf3_client::{Iperf3Outcome, Iperf3Run};
use crate::iperf3_report::Iperf3Report;
use crate::iperf3_server::{ServerEnded, ServerStart, ServerStarted};
use crate::operations::{CLIENT, Number, SERVER_FINISH, SERVER_START};
use crate::sample::{Left, assemble};
use crate::tcp_watch::TcpWatch;
use crate::{Direction, Ends, FarEnd, Load, MeasureError, Protocol, Sample, Via, sensible};

/// Where iperf3 servers listen by default; ours take the first free port from here on.
const FIRST_PORT: u16 = 5201;
/// Seconds between two echo requests while a load runs.
const ECHO_INTERVAL: f64 = 0.02;
/// Seconds a client may need beyond the load, and more for each stream: to connect, to exchange results over a
/// path that is still full.
const GRACE_SECONDS: f64 = 3.0;
const GRACE_SECONDS_PER_STREAM: f64 = 0.05;
/// What a server that nobody ends lives on beyond the client's time.
const SERVER_LIVES_ON: Duration = Duration::from_secs(30);
/// How long a server may take to start, and to hand over its report.
const SERVER_WITHIN: Duration = Duration::from_secs(10);
/// What agent and line may take beyond the operation itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often and after which pauses a busy server is asked again.
const BUSY_PAUSES: [Duration; 4] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_millis(1500),
    Duration::from_secs(3),
];
/// Longest load.
const SECONDS_AT_MOST: f64 = 600.0;

impl Ends {
    /// Runs one load. The counters in the sample are from just before it to just after it, warm-up included.
    ///
    /// # Errors
    /// A load that did not run is an error, never a zero; one that ran and moved nothing is a sample with `stalled`.
    pub fn sample(&self, load: &Load) -> Result<Sample, MeasureError> {
        if load.protocol == Protocol::Tcp
            && load.direction == Direction::Download
            && load.rate.is_some()
        {
            return self.sample_from_there(load);
        }
        let begun = Instant::now();
        for pause in BUSY_PAUSES {
            match self.sample_once(load) {
                Err(MeasureError::ServerBusy { .. }) => {}
                result => return result,
            }
            if !self.stop.sleep(pause) {
                return Err(MeasureError::Stopped);
            }
        }
        match self.sample_once(load) {
            Err(MeasureError::ServerBusy { server, .. }) => Err(MeasureError::ServerBusy {
                server,
                waited: begun.elapsed(),
            }),
            result => result,
        }
    }

    /// A download as the far end's upload: only a client can be told to pace itself.
    fn sample_from_there(&self, load: &Load) -> Result<Sample, MeasureError> {
        let mirrored = self
            .mirrored()
            .ok_or_else(|| self.failed(load, say!("measure-rate-needs")))?;
        let sample = mirrored.sample(&Load {
            direction: Direction::Upload,
            ..load.clone()
        })?;
        let here = sample.far.ok_or(MeasureError::NothingFar)?;
        Ok(Sample {
            load: load.clone(),
            here,
            far: Some(sample.here),
            ..sample
        })
    }

    fn sample_once(&self, load: &Load) -> Result<Sample, MeasureError> {
        self.check_stop()?;
        let total = load.warm_up + load.seconds;
        let sensible = load.seconds > 0.0 && load.warm_up >= 0.0 && total <= SECONDS_AT_MOST;
        if !sensible || !(1..=128).contains(&load.streams) {
            return Err(self.failed(load, say!("measure-load-limits")));
        }
        let address = self.address(load.via)?;
        let planned = total.ceil() as u32;
        let grace = GRACE_SECONDS + GRACE_SECONDS_PER_STREAM * f64::from(load.streams);
        let limit = Duration::from_secs_f64(f64::from(planned) + grace);
        let server = match &self.far {
            FarEnd::Nothing => return Err(MeasureError::NothingFar),
            FarEnd::Iperf3 { port, .. } => Server::Given(*port),
            FarEnd::Wirespeed(machine) => self.start_server(machine, load, address, limit)?,
        };
        let run = Iperf3Run {
            address,
            port: server.port(),
            seconds: planned,
            streams: load.streams,
            reverse: load.direction == Direction::Download,
            udp_payload: (load.protocol == Protocol::Udp).then(|| self.udp_payload()),
            // iperf3's rate is each stream's.
            rate_per_stream: load
                .rate
                .map(|rate| (rate / f64::from(load.streams)).max(1.0) as u64),
            congestion_control: load.congestion_control.clone(),
            grace,
            device: self.here_device(load.via),
            echo: Some((address, ECHO_INTERVAL)),
            tcp: watch_of(load),
        };
        let ran = self.run_between_counters(&run, limit);
        // In any case, so that no server stays behind a client that failed.
        let server = server.finish(self, limit);
        let (before, outcome, after) = ran?;
        self.still_there(&after)?;
        let server = server?;
        let server_report = server.as_ref().map(|server| &server.report);
        self.check_ran(load, &run, &outcome, server_report)?;

        let (here, far) = deltas(&before, &after);
        let link_bytes = self.link_bytes(load, &here, far.as_ref());
        let left = Left {
            load,
            planned: f64::from(planned),
            outcome: &outcome,
            server: server_report,
            server_tcp: server.as_ref().and_then(|server| server.tcp.as_ref()),
            here,
            far,
            link_bytes,
        };
        assemble(left).ok_or_else(|| {
            let words = outcome.report.error.clone();
            let words = words.unwrap_or_else(|| say!("measure-no-report"));
            self.failed(load, say!("measure-iperf3-said", words = words))
        })
    }

    fn run_between_counters(
        &self,
        run: &Iperf3Run,
        limit: Duration,
    ) -> Result<(BothCounters, Iperf3Outcome, BothCounters), MeasureError> {
        let before = self.counters()?;
        let outcome = self.call(&self.here, CLIENT, run, limit + ANSWER_WITHIN)?;
        let outcome = sensible::outcome(self.here.name(), longest(limit), outcome)?;
        Ok((before, outcome, self.counters()?))
    }

    fn start_server<'a>(
        &self,
        machine: &'a Machine,
        load: &Load,
        address: IpAddr,
        limit: Duration,
    ) -> Result<Server<'a>, MeasureError> {
        let number = rand::random();
        let wanted = ServerStart {
            number,
            first_port: FIRST_PORT,
            // As narrow as possible; behind address translation the endpoint's address is none of the machine's.
            bind: self.far_has(address).then_some(address),
            device: self.far_device(load.via),
            seconds: longest(limit),
            tcp: watch_of(load),
        };
        let started = self
            .call(machine, SERVER_START, &wanted, SERVER_WITHIN)
            .map_err(|error| match error {
                MeasureError::Reach(wirespeed_reach::ReachError::Operation { message, .. }) => {
                    self.failed(load, message)
                }
                other => other,
            })?;
        match started {
            ServerStarted::Port(port) => Ok(Server::Ours {
                machine,
                number,
                port,
            }),
            ServerStarted::Missing(because) => Err(MeasureError::NoIperf3 {
                machine: machine.name().to_owned(),
                because: sensible::text(&because),
            }),
        }
    }

    /// Did the load run? A load that got as far as moving data did, whatever became of it then.
    fn check_ran(
        &self,
        load: &Load,
        run: &Iperf3Run,
        outcome: &Iperf3Outcome,
        server: Option<&Iperf3Report>,
    ) -> Result<(), MeasureError> {
        let machine = self.here.name().to_owned();
        let name = format!("{} port {}", run.address, run.port);
        if let Some(because) = &outcome.missing {
            return Err(MeasureError::NoIperf3 {
                machine,
                because: because.clone(),
            });
        }
        let report = &outcome.report;
        let started = report.test_started || server.is_some_and(|server| server.test_started);
        let words = report.error.clone().unwrap_or_default();
        if started {
            // Cut off by us because results could not be exchanged: a sample. Ended early by itself: not.
            let reached: f64 = report.pieces.iter().map(|piece| piece.seconds).sum();
            let early = reached < f64::from(run.seconds) / 2.0;
            return if early && !outcome.overran && !words.is_empty() {
                let seconds = (reached * 10.0).round() / 10.0;
                Err(self.failed(
                    load,
                    say!("measure-iperf3-ended", seconds = seconds, words = words),
                ))
            } else {
                Ok(())
            };
        }
        if words.contains("server is busy") {
            return Err(MeasureError::ServerBusy {
                server: name,
                waited: Duration::ZERO,
            });
        }
        if words.starts_with("unable to connect to server") {
            return Err(MeasureError::NoConnection {
                machine,
                server: name,
                because: words,
            });
        }
        if outcome.overran {
            return Err(self.failed(
                load,
                say!(
                    "measure-not-begun",
                    seconds = (outcome.elapsed * 10.0).round() / 10.0
                ),
            ));
        }
        Err(self.failed(load, say!("measure-iperf3-said", words = words)))
    }

    fn failed(&self, load: &Load, because: String) -> MeasureError {
        let (direction, streams) = (load.direction.word(), load.streams);
        MeasureError::LoadFailed {
            load: match load.via {
                Via::Bare => say!(
                    "measure-load-outside",
                    direction = direction,
                    streams = streams
                ),
                Via::Tunnel => say!(
                    "measure-load-through",
                    direction = direction,
                    streams = streams
                ),
            },
            machine: self.here.name().to_owned(),
            because,
        }
    }

    pub(crate) fn far_has(&self, address: IpAddr) -> bool {
        let links = self.far_facts.iter().flat_map(|facts| &facts.links);
        let mut addresses = links.flat_map(|link| &link.addresses);
        addresses
            .any(|text| text.split('/').next().and_then(|text| text.parse().ok()) == Some(address))
    }

    /// Fills the tunnel's MTU exactly; the same outside, so that both ways carry the same datagrams.
    fn udp_payload(&self) -> u32 {
        let mtu = self.tunnel_mtu();
        let headers = if self.tunnel_address.is_none_or(|address| address.is_ipv4()) {
            28
        } else {
            48
        };
        mtu.saturating_sub(headers).max(64)
    }

    /// MTU of our tunnel interface, bytes.
    pub(crate) fn tunnel_mtu(&self) -> u32 {
        let mut tunnels = self.here_facts.tunnels.iter();
        tunnels
            .find(|tunnel| tunnel.name == self.interface)
            .map_or(1280, |tunnel| tunnel.mtu)
    }

    fn link_bytes(
        &self,
        load: &Load,
        here: &CountersDelta,
        far: Option<&CountersDelta>,
    ) -> Option<u64> {
        let (delta, interface) = match load.direction {
            Direction::Download => (here, &self.interface),
            Direction::Upload => (far?, self.far_interface.as_ref()?),
        };
        // A link without any movement has no row, and one that was made anew meanwhile has none that can be believed;
        // outside the tunnel other traffic shares the link.
        let known = !delta.unreliable.contains(&format!("links.{interface}"));
        (load.via == Via::Tunnel && known)
            .then(|| delta.links.get(interface).map_or(0, |link| link.rx_bytes))
    }
}

/// Seconds that either side of a load may live whose client has as much time as `limit`.
fn longest(limit: Duration) -> f64 {
    (limit + SERVER_LIVES_ON).as_secs_f64()
}

fn watch_of(load: &Load) -> Option<TcpWatch> {
    (load.protocol == Protocol::Tcp).then_some(TcpWatch {
        streams: load.streams,
        warm_up: load.warm_up,
        seconds: load.seconds,
    })
}

pub(crate) type BothCounters = (Counters, Option<Counters>);

pub(crate) fn deltas(
    before: &BothCounters,
    after: &BothCounters,
) -> (CountersDelta, Option<CountersDelta>) {
    let far = after
        .1
        .as_ref()
        .zip(before.1.as_ref())
        .map(|(after, before)| after.delta(before));
    (after.0.delta(&before.0), far)
}

/// The server of one load.
enum Server<'a> {
    /// Somebody else's.
    Given(u16),
    /// Started for this load.
    Ours {
        machine: &'a Machine,
        number: u64,
        port: u16,
    },
}

impl Server<'_> {
    fn port(&self) -> u16 {
        match self {
            Self::Given(port) | Self::Ours { port, .. } => *port,
        }
    }

    /// Ends it and takes its report, of a load whose client had as much time as `limit`.
    fn finish(self, ends: &Ends, limit: Duration) -> Result<Option<ServerEnded>, MeasureError> {
        match self {
            Self::Given(_) => Ok(None),
            Self::Ours {
                machine, number, ..
            } => {
                let told = ends.call(machine, SERVER_FINISH, &Number { number }, SERVER_WITHIN)?;
                sensible::ended(machine.name(), longest(limit), told).map(Some)
            }
        }
    }
}
