//! A chain of hops to a verdict: which hop is the worst, and is the whole what it can be?
//!
//! The rules are those of "WireGuard Performance Tuning", section Testing: a hop's tunnel should carry about nine tenths
//! of its own bare path; two or three WireGuard hops together at least half of the worst hop outside its tunnel.

use serde::{Deserialize, Serialize};
use wirespeed_measure::{
    ChainMeasured, Direction, Estimate, HopMeasured, HopRates, Round, WholeRates,
};
use wirespeed_words::say;

use crate::Verdict;
use crate::finding::{milliseconds, percent, rate};
use crate::judge::TOO_WIDE;
use crate::view::{FEWEST_PAIRS, way};

/// Share of its own bare path that a tunnel over one hop should carry.
const ONE_HOP: f64 = 0.9;
/// Share of the worst hop's bare path that two or three hops together should carry.
const SEVERAL_HOPS: f64 = 0.5;
/// The rule says nothing of more WireGuard hops than these.
const MOST_HOPS: usize = 3;

/// How a figure stands to its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// At the rule's share or above, the whole interval or at least its middle.
    Good,
    /// The whole interval lies below.
    Below,
    /// Not measured, too seldom, or not clearly enough to tell: the middle lies below and the interval does not end there,
    /// or it is too wide.
    Unknown,
}

/// One hop's or the whole chain's share in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// Who sends, seen from the first machine.
    pub direction: Direction,
    /// What it carries of the yardstick.
    pub ratio: Option<Estimate>,
    /// The least it should.
    pub should: Option<f64>,
    /// How that stands.
    pub standing: Standing,
}

/// The verdict on one hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopVerdict {
    /// The machine nearer to the start.
    pub from: String,
    /// The next one.
    pub to: String,
    /// The tunnel's interface at `from`; `None` = no tunnel joins these two, and there is nothing to judge.
    pub interface: Option<String>,
    /// One per direction; empty without a tunnel.
    pub shares: Vec<Share>,
}

/// The hop that holds the chain back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorstHop {
    /// Its place, from 0.
    pub hop: usize,
    /// In which direction.
    pub direction: Direction,
    /// Is it its tunnel (worth the doctor's look), or the road under it (which no tuning of WireGuard mends)?
    pub tunnel: bool,
    /// Why this one.
    pub because: String,
}

/// What a chain of hops comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopReport {
    /// `healthy` when every rule that applies holds, `findings` when one is broken, else `unmeasured`.
    pub verdict: Verdict,
    /// In order.
    pub hops: Vec<HopVerdict>,
    /// The whole against its worst hop, one per direction.
    pub whole: Vec<Share>,
    /// The hop to look at; `None` when nothing was measured.
    pub worst: Option<WorstHop>,
    /// What applies and what does not, in words.
    pub remarks: Vec<String>,
    /// The figures.
    pub measured: ChainMeasured,
}

/// What the figures of a chain say. Pure.
pub fn judge_hops(measured: ChainMeasured) -> HopReport {
    let hops: Vec<HopVerdict> = measured.hops.iter().map(hop_verdict).collect();
    let tunnels = hops.iter().filter(|hop| hop.interface.is_some()).count();
    let should = should_of(tunnels);
    let whole: Vec<Share> = measured
        .whole
        .iter()
        .map(|whole| {
            let rounds = rounds_with_worst(&measured, whole);
            share(whole.direction, whole.of_worst, should, rounds)
        })
        .collect();
    let worst = worst(&measured, &hops);
    let mut remarks = remarks(&measured, tunnels);
    let below = |share: &Share| share.standing == Standing::Below;
    if whole.iter().any(below) && !hops.iter().flat_map(|hop| &hop.shares).any(below) {
        remarks.push(say!("hops-remark-in-between"));
    }
    HopReport {
        verdict: verdict(&hops, &whole, should),
        remarks,
        hops,
        whole,
        worst,
        measured,
    }
}

/// What the whole should carry of the worst hop's bare path.
fn should_of(tunnels: usize) -> Option<f64> {
    match tunnels {
        1 => Some(ONE_HOP),
        2..=MOST_HOPS => Some(SEVERAL_HOPS),
        _ => None,
    }
}

fn hop_verdict(hop: &HopMeasured) -> HopVerdict {
    let shares = if hop.interface.is_some() {
        hop.rates
            .iter()
            .map(|rates| {
                let rounds = rates.rounds.iter();
                let compared = rounds.filter(|round| compares(round.tunnel, round)).count();
                share(rates.direction, rates.ratio, Some(ONE_HOP), compared)
            })
            .collect()
    } else {
        Vec::new()
    };
    HopVerdict {
        from: hop.from.clone(),
        to: hop.to.clone(),
        interface: hop.interface.clone(),
        shares,
    }
}

/// Does a round compare what was carried with the hop's road?
fn compares(carried: Option<f64>, hop: &Round) -> bool {
    carried.is_some() && hop.bare.is_some_and(|bare| bare > 0.0)
}

/// Rounds in which both the whole and its worst hop were measured.
fn rounds_with_worst(measured: &ChainMeasured, whole: &WholeRates) -> usize {
    let worst = whole
        .worst_hop
        .and_then(|worst| measured.hops.get(worst))
        .and_then(|hop| {
            let mut rates = hop.rates.iter();
            rates.find(|rates| rates.direction == whole.direction)
        });
    let rounds = worst.into_iter().flat_map(|rates| &rates.rounds);
    let both = whole.rounds.iter().zip(rounds);
    both.filter(|(carried, hop)| compares(**carried, hop))
        .count()
}

/// `rounds` is how many of them `ratio` rests on.
fn share(
    direction: Direction,
    ratio: Option<Estimate>,
    should: Option<f64>,
    rounds: usize,
) -> Share {
    let standing = match (ratio, should) {
        (Some(ratio), Some(should)) if rounds >= FEWEST_PAIRS => {
            let too_wide = ratio.low < should && ratio.high - ratio.low > TOO_WIDE;
            if ratio.high < should {
                Standing::Below
            } else if ratio.value < should || too_wide {
                Standing::Unknown
            } else {
                Standing::Good
            }
        }
        _ => Standing::Unknown,
    };
    Share {
        direction,
        ratio,
        should,
        standing,
    }
}

fn verdict(hops: &[HopVerdict], whole: &[Share], should: Option<f64>) -> Verdict {
    let of_hops = || hops.iter().flat_map(|hop| &hop.shares);
    // Over more hops than the rule speaks of, the hops alone decide.
    let of_whole = || whole.iter().filter(|_| should.is_some());
    let mut all = of_hops().chain(of_whole());
    if all.clone().any(|share| share.standing == Standing::Below) {
        Verdict::Findings
    } else if of_hops().next().is_some() && all.all(|share| share.standing == Standing::Good) {
        Verdict::Healthy
    } else {
        Verdict::Unmeasured
    }
}

/// The tunnel that loses most of its own road, where one loses too much for sure; else the narrowest road.
fn worst(measured: &ChainMeasured, verdicts: &[HopVerdict]) -> Option<WorstHop> {
    let name = |hop: usize| {
        let hop = &measured.hops[hop];
        way(&hop.from, &hop.to)
    };
    let lossy = verdicts
        .iter()
        .enumerate()
        .flat_map(|(index, hop)| hop.shares.iter().map(move |share| (index, share)))
        .filter(|(_, share)| share.standing == Standing::Below)
        .filter_map(|(index, share)| Some((index, share.direction, share.ratio?)))
        .min_by(|one, other| one.2.value.total_cmp(&other.2.value));
    if let Some((hop, direction, ratio)) = lossy {
        return Some(WorstHop {
            hop,
            direction,
            tunnel: true,
            because: say!(
                "hops-worst-tunnel",
                hop = name(hop),
                share = percent(ratio.value),
                direction = direction.word(),
                low = percent(ratio.low),
                high = percent(ratio.high),
                should = percent(ONE_HOP)
            ),
        });
    }
    let all_good = verdicts
        .iter()
        .flat_map(|hop| &hop.shares)
        .all(|share| share.standing == Standing::Good);
    let (hop, rates, carried) = measured
        .hops
        .iter()
        .enumerate()
        .flat_map(|(index, hop)| hop.rates.iter().map(move |rates| (index, rates)))
        .filter_map(|(index, rates)| Some((index, rates, least(rates)?)))
        .min_by(|one, other| one.2.total_cmp(&other.2))?;
    let (name, carried, direction) = (name(hop), rate(carried), rates.direction.word());
    let because = match (rates.bare, all_good) {
        (Some(_), true) => say!(
            "hops-worst-road",
            hop = name,
            rate = carried,
            direction = direction
        ),
        (Some(_), false) => say!(
            "hops-worst-road-perhaps",
            hop = name,
            rate = carried,
            direction = direction
        ),
        (None, _) => say!(
            "hops-worst-slowest",
            hop = name,
            rate = carried,
            direction = direction
        ),
    };
    Some(WorstHop {
        hop,
        direction: rates.direction,
        tunnel: false,
        because,
    })
}

/// The least that was seen of a hop: its road, or its tunnel where the road could not be measured.
fn least(rates: &HopRates) -> Option<f64> {
    rates.bare.or(rates.tunnel)
}

fn remarks(measured: &ChainMeasured, tunnels: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    match tunnels {
        0 => remarks.push(say!("hops-remark-no-tunnel")),
        1 => {}
        2..=MOST_HOPS => remarks.push(say!(
            "hops-remark-rule",
            hops = tunnels,
            share = percent(SEVERAL_HOPS)
        )),
        _ => remarks.push(say!(
            "hops-remark-no-rule",
            hops = tunnels,
            share = percent(SEVERAL_HOPS),
            most = MOST_HOPS
        )),
    }
    let sum: Option<f64> = measured.hops.iter().map(|hop| hop.idle_rtt).sum();
    if let (Some(whole), Some(sum)) = (measured.whole_idle_rtt, sum)
        && whole > 1.5 * sum + 0.005
        && measured.hops.len() > 1
    {
        remarks.push(say!(
            "hops-remark-another-way",
            whole = milliseconds(whole),
            hops = milliseconds(sum)
        ));
    }
    remarks.extend(measured.whole.iter().filter_map(unknown_whole));
    remarks
}

fn unknown_whole(whole: &WholeRates) -> Option<String> {
    (whole.rate.is_some() && whole.of_worst.is_none()).then(|| {
        say!(
            "hops-remark-no-yardstick",
            direction = whole.direction.word(),
            rate = rate(whole.rate.unwrap_or_default())
        )
    })
}

#[cfg(test)]
mod tests;
