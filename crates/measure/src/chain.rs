//! A chain of machines: each hop by itself, outside its tunnel and through it, and all of them together, in turn.
//!
//! In a hub or a site-to-site connection the two ends often can't reach each other outside. Then the guide's yardstick
//! ("WireGuard Performance Tuning", section Testing) is the worst hop outside its tunnel, and over two or three hops the
//! whole should carry half of it; each hop by itself should carry nine tenths of its own bare path.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirespeed_facts::{EndpointRoute, Facts};
use wirespeed_reach::Machine;

use crate::interleave::{goodput, sample_with_retry};
use crate::operations::WAY;
use crate::outside::WantedWay;
use crate::prefix::{contains, prefix};
use crate::statistics::{bootstrap_median, median};
use crate::{
    Direction, Ends, Estimate, FarEnd, Load, MeasureError, NotMeasured, Overrides, Progress,
    Protocol, Stop, Via,
};

/// How long a machine may take to look up a route.
const WAY_WITHIN: Duration = Duration::from_secs(10);
/// What one sample takes beyond its load: starting, counters, results.
const AROUND_A_SAMPLE: f64 = 0.5;

/// Neighbours in a chain.
#[derive(Debug, Clone)]
pub struct Hop {
    /// The two machines, and the tunnel between them where there is one.
    pub ends: Ends,
    /// Does a tunnel join them? Otherwise they share a network, and only that is measured.
    pub tunnel: bool,
}

/// Machines in a row, from the one where wirespeed was started to the far end.
#[derive(Debug, Clone)]
pub struct Chain {
    /// At least one.
    pub hops: Vec<Hop>,
    /// The first and the last machine, over everything in between; or why that is out of reach.
    pub whole: Result<Box<Ends>, String>,
}

/// How a chain is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainPlan {
    /// Who sends, seen from the first machine.
    pub directions: Vec<Direction>,
    /// Parallel connections.
    pub streams: u32,
    /// Seconds of one sample after its warm-up.
    pub seconds: f64,
    /// Seconds thrown away at the start of each.
    pub warm_up: f64,
    /// Rounds; each takes every hop both ways round and the whole once.
    pub rounds: u32,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// One hop's figures of one direction, bit/s. A stalled sample counts as 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopRates {
    /// Who sends.
    pub direction: Direction,
    /// Median outside the tunnel; `None` when that could not be measured.
    pub bare: Option<f64>,
    /// Median through the tunnel; `None` without a tunnel, or when it could not be measured.
    pub tunnel: Option<f64>,
    /// tunnel / bare, median over the rounds with its interval.
    pub ratio: Option<Estimate>,
    /// Round by round.
    pub rounds: Vec<Round>,
}

/// One hop in one round, bit/s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Outside the tunnel.
    pub bare: Option<f64>,
    /// Through it.
    pub tunnel: Option<f64>,
}

/// One hop as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopMeasured {
    /// The machine nearer to the start.
    pub from: String,
    /// The next one.
    pub to: String,
    /// The tunnel's interface at `from`; `None` = no tunnel joins these two.
    pub interface: Option<String>,
    /// One per direction.
    pub rates: Vec<HopRates>,
    /// Median round trip through the tunnel (or the network where there is none) without load, seconds.
    pub idle_rtt: Option<f64>,
}

/// The whole chain in one direction, bit/s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeRates {
    /// Who sends, seen from the first machine.
    pub direction: Direction,
    /// Median over the rounds.
    pub rate: Option<f64>,
    /// The hop whose bare path carries least in this direction: its place in [`ChainMeasured::hops`].
    pub worst_hop: Option<usize>,
    /// rate / that hop's bare rate, median over the rounds with its interval.
    pub of_worst: Option<Estimate>,
    /// Round by round.
    pub rounds: Vec<Option<f64>>,
}

/// What a chain carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainMeasured {
    /// In order.
    pub hops: Vec<HopMeasured>,
    /// One per direction.
    pub whole: Vec<WholeRates>,
    /// Median round trip from end to end without load, seconds.
    pub whole_idle_rtt: Option<f64>,
    /// What was meant to be measured and was not.
    pub not_measured: Vec<NotMeasured>,
}

impl Chain {
    /// Finds out what joins each machine to the next, and how the last is reached from the first.
    ///
    /// `interface` is the first machine's, where it has several tunnels to the second.
    ///
    /// # Errors
    /// When there are fewer than two machines, one of them does not answer, or two neighbours share neither a tunnel nor a
    /// network.
    pub fn discover(
        machines: &[Machine],
        interface: Option<&str>,
        stop: &Stop,
    ) -> Result<Self, MeasureError> {
        let mut hops = Vec::new();
        for (index, pair) in machines.windows(2).enumerate() {
            let named = interface.filter(|_| index == 0);
            hops.push(Hop::between(&pair[0], &pair[1], named, stop)?);
        }
        let whole = match hops.as_slice() {
            [] => return Err(MeasureError::NothingFar),
            [only] => Ok(Box::new(only.ends.clone())),
            several => whole_of(several)?.map(Box::new),
        };
        Ok(Self { hops, whole })
    }

    /// Measures every hop and the whole, in turn.
    ///
    /// # Errors
    /// When a machine is gone or the work is stopped. A load that can't be run is in
    /// [`ChainMeasured::not_measured`], and not tried again.
    pub fn measure(
        &self,
        plan: &ChainPlan,
        progress: &dyn Progress,
    ) -> Result<ChainMeasured, MeasureError> {
        let mut taking = Taking::new(self, plan, progress);
        taking.idle()?;
        for round in 0..plan.rounds.max(1) {
            for direction in 0..plan.directions.len() {
                taking.round(round, direction)?;
            }
        }
        progress.step("done", 1.0, 0.0);
        Ok(taking.conclude())
    }
}

impl Hop {
    fn between(
        here: &Machine,
        far: &Machine,
        interface: Option<&str>,
        stop: &Stop,
    ) -> Result<Self, MeasureError> {
        let found = Ends::discover_stoppable(
            here.clone(),
            FarEnd::Wirespeed(far.clone()),
            interface,
            &Overrides::default(),
            stop.clone(),
        );
        match found {
            Ok(ends) => Ok(Self { ends, tunnel: true }),
            // No tunnel here at all, or none to that machine.
            Err(
                MeasureError::NoSuchInterface { .. }
                | MeasureError::WhichInterface { .. }
                | MeasureError::NoPeers { .. }
                | MeasureError::WrongFarEnd { .. },
            ) if interface.is_none() => Ok(Self {
                ends: Ends::side_by_side(here.clone(), far.clone(), stop.clone())?,
                tunnel: false,
            }),
            Err(error) => Err(error),
        }
    }

    /// The first machine's and the second's name.
    pub fn names(&self) -> (String, String) {
        (self.ends.here.name().to_owned(), self.ends.far_name())
    }

    fn idle_via(&self) -> Via {
        if self.tunnel { Via::Tunnel } else { Via::Bare }
    }
}

/// The first machine and the last, by the first of the last one's addresses that answers over the chain.
fn whole_of(hops: &[Hop]) -> Result<Result<Ends, String>, MeasureError> {
    let (Some(first), Some(last)) = (hops.first(), hops.last()) else {
        return Err(MeasureError::NothingFar);
    };
    let mut ends = Ends {
        far: last.ends.far.clone(),
        far_interface: last.ends.far_interface.clone(),
        far_facts: last.ends.far_facts.clone(),
        bare_address: None,
        here_bare_address: None,
        here_bare_device: None,
        far_bare_device: None,
        never_outside: Some("the whole chain is measured through its tunnels only".to_owned()),
        translated_to: None,
        ..first.ends.clone()
    };
    let mut tried = Vec::new();
    for address in candidates(last) {
        let way: EndpointRoute = first.ends.here.call(
            WAY,
            &WantedWay {
                to: address,
                mark: 0,
            },
            WAY_WITHIN,
        )?;
        if way.interface.value() != Some(&first.ends.interface) {
            tried.push(format!("{address} is not reached over the first hop"));
            continue;
        }
        ends.tunnel_address = Some(address);
        if ends.idle_rtt(Via::Tunnel, 4, 0.15)?.received > 0 {
            return Ok(Ok(ends));
        }
        tried.push(format!("{address} does not answer"));
    }
    Ok(Err(format!(
        "{} is not reached from {} over the chain: {}",
        last.ends.far_name(),
        first.ends.here.name(),
        if tried.is_empty() {
            "it has no address for it".to_owned()
        } else {
            tried.join(", ")
        }
    )))
}

/// The last machine's addresses but those of its bare path: the tunnel's first.
fn candidates(last: &Hop) -> Vec<IpAddr> {
    let Some(facts) = &last.ends.far_facts else {
        return Vec::new();
    };
    let mut links: Vec<_> = facts.links.iter().filter(|link| link.up).collect();
    links.sort_by_key(|link| Some(&link.name) != last.ends.far_interface.as_ref());
    links
        .into_iter()
        .flat_map(|link| &link.addresses)
        .filter_map(|text| prefix(text))
        .map(|(address, _)| address)
        .filter(|address| !address.is_loopback() && !link_local(*address))
        .filter(|address| !last.tunnel || last.ends.bare_address != Some(*address))
        .collect()
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

impl Ends {
    /// Two machines that share a network and no tunnel: only [`Via::Bare`] leads from one to the other.
    fn side_by_side(here: Machine, far: Machine, stop: Stop) -> Result<Self, MeasureError> {
        let (here_facts, far_facts) = (facts_of(&here)?, facts_of(&far)?);
        let Some((interface, address)) = shared_network(&here_facts, &far_facts) else {
            return Err(MeasureError::NotNeighbours {
                here: here.name().to_owned(),
                far: far.name().to_owned(),
            });
        };
        let back = shared_network(&far_facts, &here_facts);
        Ok(Self {
            interface,
            far_interface: back.as_ref().map(|(interface, _)| interface.clone()),
            peer: String::new(),
            bare_address: Some(address),
            tunnel_address: None,
            here_bare_address: back.map(|(_, address)| address),
            here_bare_device: None,
            far_bare_device: None,
            never_outside: None,
            here_tunnel_address: None,
            translated_to: None,
            here_facts,
            far_facts: Some(far_facts),
            far: FarEnd::Wirespeed(far),
            here,
            stop,
        })
    }
}

fn facts_of(machine: &Machine) -> Result<Facts, MeasureError> {
    Ok(machine.call(
        crate::operations::SNAPSHOT,
        &wirespeed_facts::Scope { interface: None },
        Duration::from_secs(20),
    )?)
}

/// The link of one machine on whose network the other has an address, and that address.
fn shared_network(one: &Facts, other: &Facts) -> Option<(String, IpAddr)> {
    let theirs: Vec<IpAddr> = other
        .links
        .iter()
        .filter(|link| link.up)
        .flat_map(|link| &link.addresses)
        .filter_map(|text| prefix(text))
        .map(|(address, _)| address)
        .filter(|address| !address.is_loopback() && !link_local(*address))
        .collect();
    let tunnels: Vec<&str> = one.tunnels.iter().map(|tunnel| &*tunnel.name).collect();
    one.links
        .iter()
        .filter(|link| link.up && link.name != "lo" && !tunnels.contains(&link.name.as_str()))
        .find_map(|link| {
            let networks: Vec<_> = link
                .addresses
                .iter()
                .filter_map(|text| prefix(text))
                .collect();
            let shared = theirs.iter().find(|address| {
                networks
                    .iter()
                    .any(|network| network.0 != **address && contains(*network, **address))
            })?;
            Some((link.name.clone(), *shared))
        })
}

struct Taking<'a> {
    chain: &'a Chain,
    plan: &'a ChainPlan,
    progress: &'a dyn Progress,
    begun: Instant,
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
    fn new(chain: &'a Chain, plan: &'a ChainPlan, progress: &'a dyn Progress) -> Self {
        let mut not_measured = Vec::new();
        if let Err(because) = &chain.whole {
            not_measured.push(NotMeasured {
                what: "the whole chain".to_owned(),
                because: because.clone(),
            });
        }
        Self {
            chain,
            plan,
            progress,
            begun: Instant::now(),
            taken: 0,
            hops: vec![Vec::new(); plan.directions.len()],
            whole: vec![Vec::new(); plan.directions.len()],
            idle: Vec::new(),
            whole_idle: None,
            failed: Vec::new(),
            not_measured,
        }
    }

    fn idle(&mut self) -> Result<(), MeasureError> {
        for hop in &self.chain.hops {
            let (from, to) = hop.names();
            self.progress.step(
                &format!("idle round trip, {from} to {to}"),
                0.0,
                self.seconds_of(self.all()),
            );
            self.idle
                .push(hop.ends.idle_rtt(hop.idle_via(), 8, 0.05)?.median);
        }
        if let Ok(whole) = &self.chain.whole {
            self.whole_idle = whole.idle_rtt(Via::Tunnel, 8, 0.05)?.median;
        }
        Ok(())
    }

    fn round(&mut self, round: u32, direction: usize) -> Result<(), MeasureError> {
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
        match sample_with_retry(ends, &load) {
            Ok(sample) => Ok(goodput(&sample)),
            Err(
                error @ (MeasureError::NoConnection { .. }
                | MeasureError::NoAddress { .. }
                | MeasureError::NoIperf3 { .. }
                | MeasureError::LoadFailed { .. }),
            ) => {
                self.failed.push((hop, via, direction));
                self.not_measured.push(NotMeasured {
                    what,
                    because: error.to_string(),
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn describe(&self, hop: Option<usize>, via: Via, direction: Direction) -> String {
        let way = match direction {
            Direction::Upload => "upload",
            Direction::Download => "download",
        };
        match hop.and_then(|index| self.chain.hops.get(index)) {
            None => format!("the whole chain, {way}"),
            Some(hop) => {
                let (from, to) = hop.names();
                let via = match via {
                    Via::Bare => "outside the tunnel",
                    Via::Tunnel => "through the tunnel",
                };
                format!("{from} to {to} {via}, {way}")
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

    fn conclude(self) -> ChainMeasured {
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
            hops,
            whole,
            whole_idle_rtt: self.whole_idle,
            not_measured: self.not_measured,
        }
    }
}

fn hop_rates(direction: Direction, rounds: Vec<Round>, seed: u64) -> HopRates {
    let side = |pick: fn(&Round) -> Option<f64>| {
        let rates: Vec<f64> = rounds.iter().filter_map(pick).collect();
        median(&rates)
    };
    let ratios: Vec<f64> = rounds
        .iter()
        .filter_map(|round| Some(round.tunnel? / round.bare.filter(|bare| *bare > 0.0)?))
        .collect();
    HopRates {
        direction,
        bare: side(|round| round.bare),
        tunnel: side(|round| round.tunnel),
        ratio: bootstrap_median(&ratios, seed),
        rounds,
    }
}

fn whole_rates(
    direction: Direction,
    rounds: Vec<Option<f64>>,
    hops: &[&HopRates],
    seed: u64,
) -> WholeRates {
    let rates: Vec<f64> = rounds.iter().flatten().copied().collect();
    // Only when each hop has a bare figure is the least of them the worst.
    let known: Option<Vec<f64>> = hops.iter().map(|hop| hop.bare).collect();
    let worst_hop = known
        .and_then(|bare| (0..bare.len()).min_by(|one, other| bare[*one].total_cmp(&bare[*other])));
    let of_worst = worst_hop.and_then(|worst| {
        let ratios: Vec<f64> = rounds
            .iter()
            .zip(&hops[worst].rounds)
            .filter_map(|(whole, round)| Some((*whole)? / round.bare.filter(|bare| *bare > 0.0)?))
            .collect();
        bootstrap_median(&ratios, seed)
    });
    WholeRates {
        direction,
        rate: median(&rates),
        worst_hop,
        of_worst,
        rounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(figures: &[(f64, f64)]) -> Vec<Round> {
        figures
            .iter()
            .map(|(bare, tunnel)| Round {
                bare: Some(*bare),
                tunnel: Some(*tunnel),
            })
            .collect()
    }

    #[test]
    fn a_hops_ratio_is_the_median_within_the_rounds() {
        let hop = hop_rates(
            Direction::Upload,
            rounds(&[(100.0, 90.0), (200.0, 180.0), (50.0, 45.0)]),
            1,
        );
        assert_eq!((hop.bare, hop.tunnel), (Some(100.0), Some(90.0)));
        assert!((hop.ratio.unwrap().value - 0.9).abs() < 1e-9);
    }

    #[test]
    fn the_whole_is_compared_with_the_worst_bare_hop() {
        let wide = hop_rates(Direction::Upload, rounds(&[(900.0, 800.0); 3]), 1);
        let narrow = hop_rates(Direction::Upload, rounds(&[(100.0, 95.0); 3]), 1);
        let whole = whole_rates(Direction::Upload, vec![Some(60.0); 3], &[&wide, &narrow], 1);
        assert_eq!(whole.worst_hop, Some(1));
        assert!((whole.of_worst.unwrap().value - 0.6).abs() < 1e-9);
    }

    #[test]
    fn where_a_hop_has_no_bare_figure_nobody_knows_the_worst() {
        let known = hop_rates(Direction::Upload, rounds(&[(100.0, 95.0); 3]), 1);
        let mut without = known.clone();
        without.bare = None;
        let whole = whole_rates(
            Direction::Upload,
            vec![Some(60.0); 3],
            &[&known, &without],
            1,
        );
        assert_eq!((whole.worst_hop, whole.of_worst), (None, None));
        assert_eq!(whole.rate, Some(60.0));
    }

    #[test]
    fn a_bare_path_of_nothing_is_no_yardstick() {
        let hop = hop_rates(Direction::Upload, rounds(&[(0.0, 90.0); 3]), 1);
        assert_eq!(hop.ratio, None);
    }
}
