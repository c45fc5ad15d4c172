//! Takes a chain's samples, hop by hop and as a whole, in turn.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wirespeed_words::say;

use super::{
    Chain, ChainMeasured, ChainPlan, Hop, HopMeasured, HopRates, Round, hop_rates, whole_rates,
};
use crate::interleave::{goodput, sample_with_retry};
use crate::{Direction, Ends, Load, MeasureError, NotMeasured, Progress, Protocol, Via};

/// What one sample takes beyond its load: starting, counters, results.
const AROUND_A_SAMPLE: f64 = 0.5;

pub(super) struct Taking<'a> {
    chain: &'a Chain,
    plan: &'a ChainPlan,
    progress: &'a dyn Progress,
    begun: Instant,
    /// Seconds since the Unix epoch.
    started_at: Option<f64>,
    taken: usize,
    /// Per direction, per round, per hop.
    hops: Vec<Vec<Vec<Round>>>,
    /// Per direction, per round.
    whole: Vec<Vec<Option<f64>>>,
    idle: Vec<Option<f64>>,
    whole_idle: Option<f64>,
    /// What failed once is not tried again: hop (or the whole) and way and direction.
    failed: Vec<(Option<usize>, Via, Direction)>,
    not_measured: Vec<NotMeasured>,
}

impl<'a> Taking<'a> {
    pub(super) fn new(chain: &'a Chain, plan: &'a ChainPlan, progress: &'a dyn Progress) -> Self {
        let mut not_measured: Vec<NotMeasured> = chain.hops.iter().filter_map(others).collect();
        if let Err(because) = &chain.whole {
            not_measured.push(NotMeasured {
                what: say!("measure-whole-chain"),
                because: because.clone(),
            });
        }
        Self {
            chain,
            plan,
            progress,
            begun: Instant::now(),
            started_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()
                .map(|since| since.as_secs_f64()),
            taken: 0,
            hops: vec![Vec::new(); plan.directions.len()],
            whole: vec![Vec::new(); plan.directions.len()],
            idle: Vec::new(),
            whole_idle: None,
            failed: Vec::new(),
            not_measured,
        }
    }

    pub(super) fn idle(&mut self) -> Result<(), MeasureError> {
        let chain = self.chain;
        for hop in &chain.hops {
            let (from, to) = hop.names();
            let what = say!("measure-idle-hop", from = from, to = to);
            self.progress.step(&what, 0.0, self.seconds_of(self.all()));
            let idle = self.idle_of(what, &hop.ends, hop.idle_via())?;
            self.idle.push(idle);
        }
        if let Ok(whole) = &chain.whole {
            let what = say!("measure-idle-chain");
            self.whole_idle = self.idle_of(what, whole, Via::Tunnel)?;
        }
        Ok(())
    }

    fn idle_of(
        &mut self,
        what: String,
        ends: &Ends,
        via: Via,
    ) -> Result<Option<f64>, MeasureError> {
        let idle = ends.idle_rtt(via, 8, 0.05);
        let idle = self.keep(what, idle.map_err(|error| ends.or_gone(error)))?;
        Ok(idle.and_then(|rtt| rtt.median))
    }

    /// What only one hop can't do is no reason to end the chain.
    fn keep<T>(
        &mut self,
        what: String,
        result: Result<T, MeasureError>,
    ) -> Result<Option<T>, MeasureError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if of_one_hop(&error) => {
                self.not_measured.push(NotMeasured {
                    what,
                    because: error.said(),
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn round(&mut self, round: u32, direction: usize) -> Result<(), MeasureError> {
        let way = self.plan.directions[direction];
        let mut figures = vec![Round::default(); self.chain.hops.len()];
        // Each round begins elsewhere and goes the other way round, so that no sample always has the same neighbour.
        let mut order: Vec<Option<usize>> = (0..self.chain.hops.len()).map(Some).collect();
        if self.chain.hops.len() > 1 && self.chain.whole.is_ok() {
            order.push(None);
        }
        let places = order.len();
        order.rotate_left(round as usize % places);
        if round % 2 == 1 {
            order.reverse();
        }
        let mut whole = None;
        for place in order {
            match place {
                Some(index) => {
                    let hop = &self.chain.hops[index];
                    let mut vias = if hop.tunnel {
                        vec![Via::Bare, Via::Tunnel]
                    } else {
                        vec![Via::Bare]
                    };
                    if round % 2 == 1 {
                        vias.reverse();
                    }
                    for via in vias {
                        let rate = self.take(Some(index), &hop.ends, via, way)?;
                        match via {
                            Via::Bare => figures[index].bare = rate,
                            Via::Tunnel => figures[index].tunnel = rate,
                        }
                    }
                }
                None => {
                    if let Ok(ends) = &self.chain.whole {
                        whole = self.take(None, ends, Via::Tunnel, way)?;
                    }
                }
            }
        }
        self.hops[direction].push(figures);
        self.whole[direction].push(whole);
        Ok(())
    }

    /// One sample's goodput, bit/s; `None` when it can't be had.
    fn take(
        &mut self,
        hop: Option<usize>,
        ends: &Ends,
        via: Via,
        direction: Direction,
    ) -> Result<Option<f64>, MeasureError> {
        let done = self.taken as f64 / self.all() as f64;
        self.taken += 1;
        if self.failed.contains(&(hop, via, direction)) {
            return Ok(None);
        }
        let what = self.describe(hop, via, direction);
        self.progress.step(
            &what,
            done.min(1.0),
            self.seconds_of(self.all() - self.taken + 1),
        );
        let load = Load {
            via,
            direction,
            protocol: Protocol::Tcp,
            streams: self.plan.streams,
            seconds: self.plan.seconds,
            warm_up: self.plan.warm_up,
            congestion_control: None,
            rate: None,
        };
        let sample = self.keep(what, sample_with_retry(ends, &load))?;
        if sample.is_none() {
            self.failed.push((hop, via, direction));
        }
        Ok(sample.and_then(|sample| goodput(&sample)))
    }

    fn describe(&self, hop: Option<usize>, via: Via, direction: Direction) -> String {
        let direction = direction.word();
        match hop.and_then(|index| self.chain.hops.get(index)) {
            None => say!("measure-load-chain", direction = direction),
            Some(hop) => {
                let (from, to) = hop.names();
                match via {
                    Via::Bare => {
                        say!(
                            "measure-load-bare",
                            from = from,
                            to = to,
                            direction = direction
                        )
                    }
                    Via::Tunnel => {
                        say!(
                            "measure-load-tunnel",
                            from = from,
                            to = to,
                            direction = direction
                        )
                    }
                }
            }
        }
    }

    /// Samples in all.
    fn all(&self) -> usize {
        let a_round: usize = self
            .chain
            .hops
            .iter()
            .map(|hop| if hop.tunnel { 2 } else { 1 })
            .sum::<usize>()
            + usize::from(self.chain.hops.len() > 1 && self.chain.whole.is_ok());
        (a_round * self.plan.directions.len() * self.plan.rounds.max(1) as usize).max(1)
    }

    fn seconds_of(&self, samples: usize) -> f64 {
        let planned = self.plan.seconds + self.plan.warm_up + AROUND_A_SAMPLE;
        let each = if self.taken > 1 {
            self.begun.elapsed().as_secs_f64() / (self.taken - 1) as f64
        } else {
            planned
        };
        samples as f64 * each
    }

    pub(super) fn conclude(self) -> ChainMeasured {
        let hops = self
            .chain
            .hops
            .iter()
            .enumerate()
            .map(|(index, hop)| {
                let (from, to) = hop.names();
                let rates = self
                    .plan
                    .directions
                    .iter()
                    .zip(&self.hops)
                    .map(|(direction, rounds)| {
                        let rounds = rounds.iter().map(|round| round[index]).collect();
                        hop_rates(*direction, rounds, self.plan.seed)
                    })
                    .collect();
                HopMeasured {
                    from,
                    to,
                    interface: hop.tunnel.then(|| hop.ends.interface.clone()),
                    rates,
                    idle_rtt: self.idle.get(index).copied().flatten(),
                }
            })
            .collect::<Vec<_>>();
        // A chain of one hop is that hop; there is nothing more to it.
        let whole = if hops.len() > 1 {
            self.plan
                .directions
                .iter()
                .zip(self.whole)
                .enumerate()
                .map(|(place, (direction, rounds))| {
                    let of_hops: Vec<&HopRates> =
                        hops.iter().map(|hop| &hop.rates[place]).collect();
                    whole_rates(*direction, rounds, &of_hops, self.plan.seed)
                })
                .collect()
        } else {
            Vec::new()
        };
        ChainMeasured {
            started_at: self.started_at,
            hops,
            whole,
            whole_idle_rtt: self.whole_idle,
            not_measured: self.not_measured,
        }
    }
}

/// The tunnels beside the one that stands for a hop.
fn others(hop: &Hop) -> Option<NotMeasured> {
    let (from, to) = hop.names();
    (!hop.others.is_empty()).then(|| NotMeasured {
        what: say!(
            "measure-other-tunnels",
            from = from,
            to = to,
            others = hop.others.join(", ")
        ),
        because: say!("measure-other-tunnels-because", taken = &hop.ends.interface),
    })
}

/// Does an error say something of one hop, and nothing of the others?
fn of_one_hop(error: &MeasureError) -> bool {
    matches!(
        error,
        MeasureError::NoConnection { .. }
            | MeasureError::NoAddress { .. }
            | MeasureError::NoIperf3 { .. }
            | MeasureError::LoadFailed { .. }
            | MeasureError::ProbeFailed { .. }
            | MeasureError::InterfaceGone { .. }
            | MeasureError::ServerBusy { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_gone_ends_the_chain_and_a_hop_that_fails_does_not() {
        let (machine, interface) = ("hub".to_owned(), "wg0".to_owned());
        assert!(of_one_hop(&MeasureError::InterfaceGone {
            machine,
            interface
        }));
        assert!(of_one_hop(&MeasureError::ProbeFailed {
            what: "round-trip time".to_owned(),
            machine: "hub".to_owned(),
            because: "operation not permitted".to_owned(),
        }));
        assert!(!of_one_hop(&MeasureError::Stopped));
        assert!(!of_one_hop(&MeasureError::Reach(
            wirespeed_reach::ReachError::Rubbish {
                machine: "hub".to_owned(),
                detail: "not ours".to_owned(),
            }
        )));
    }
}
