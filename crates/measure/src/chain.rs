//! A chain of machines: each hop by itself, outside its tunnel and through it, and all of them together, in turn.
//!
//! In a hub or a site-to-site connection the two ends often can't reach each other outside. Then the guide's yardstick
//! ("WireGuard Performance Tuning", section Testing) is the worst hop outside its tunnel, and over two or three hops the
//! whole should carry half of it; each hop by itself should carry nine tenths of its own bare path.

mod neighbours;
mod taking;

use serde::{Deserialize, Serialize};
use wirespeed_reach::Machine;
use wirespeed_words::say;

use crate::statistics::{bootstrap_median, median};
use crate::{Direction, Ends, Estimate, MeasureError, NotMeasured, Progress, Stop};

use neighbours::whole_of;
use taking::Taking;

/// Neighbours in a chain.
#[derive(Debug, Clone)]
pub struct Hop {
    /// The two machines, and the tunnel between them where there is one.
    pub ends: Ends,
    /// Does a tunnel join them? Otherwise they share a network, and only that is measured.
    pub tunnel: bool,
    /// Interfaces of other tunnels that join the same two, and are not measured: the one taken carried most.
    pub others: Vec<String>,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Round {
    /// Outside the tunnel.
    pub bare: Option<f64>,
    /// Through it.
    pub tunnel: Option<f64>,
}

/// One hop as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainMeasured {
    /// Seconds since the Unix epoch; `None` where an earlier release recorded it.
    #[serde(default)]
    pub started_at: Option<f64>,
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
    /// When there are fewer than two machines, one of them does not answer, two neighbours share neither a tunnel nor a
    /// network, or the first two share several tunnels and none is named.
    pub fn discover(
        machines: &[Machine],
        interface: Option<&str>,
        stop: &Stop,
    ) -> Result<Self, MeasureError> {
        let mut hops = Vec::new();
        for (index, pair) in machines.windows(2).enumerate() {
            let first = index == 0;
            let named = interface.filter(|_| first);
            hops.push(Hop::between(&pair[0], &pair[1], named, first, stop)?);
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
        progress.step(&say!("doctor-step-done"), 1.0, 0.0);
        Ok(taking.conclude())
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
