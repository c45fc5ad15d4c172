//! Takes one sample.

mod daemons;
mod loads;

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use crate::BenchError;
use crate::implementation::Implementation;
use crate::iperf3::{Direction, Load};
use crate::model::{Figures, Metric};
use crate::options::Options;
use crate::road::Road;
use crate::rows::{Kind, Row};

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

fn put<const N: usize>(figures: &mut Figures, some: [(Metric, Option<f64>); N]) {
    figures.extend(
        some.into_iter()
            .filter_map(|(metric, value)| Some((metric, value?))),
    );
}
