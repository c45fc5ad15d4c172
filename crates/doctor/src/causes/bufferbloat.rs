//! `bufferbloat`: echo requests wait behind the load's own queue.
//!
//! Known from the RTT while loaded against the idle one: over the short loads of the comparison, or over one longer load
//! of several streams (a soak), because a sender that watches the delay fills a deep queue only slowly. Where a search over
//! capped rates was made as well, it tells which rate keeps the queue short.

use wirespeed_facts::{Known, TcpProgress};
use wirespeed_measure::statistics::percentile;
use wirespeed_measure::{Direction, RttSummary, Sample, Via};
use wirespeed_words::say;

use super::cpu_saturated;
use crate::cores;
use crate::finding::{self, Cap, Check, Found, Outcome, line, milliseconds, percent, rates_line};
use crate::view::{DIRECTIONS, FEWEST_SAMPLES, median, sender};
use crate::{End, Evidence, Goal, Refusal, Remedy, Severity, watched};

mod searched;

use searched::{Caps, Searched, searched};

pub(super) const CODE: &str = "bufferbloat";

pub(super) const CHECK: Check = Check {
    slows: in_direction,
    ..Check::new(CODE, || say!("bufferbloat-title"), run)
};

/// Less added delay than this is nobody's trouble, seconds.
const TOLERATED: f64 = 0.060;
/// On long paths: this many times the idle RTT.
const TOLERATED_TIMES_IDLE: f64 = 1.5;
/// From here on a queue is filling, seconds …
const FILLING: f64 = 0.005;
/// … or this share of the idle RTT.
const FILLING_SHARE_OF_IDLE: f64 = 0.25;
/// Share of the measured rate a shaper is set to, so that the queue builds where it is short.
const SHAPED_SHARE: f64 = 0.95;
/// Less sure by so much where no cap of a search made the queue shorter: then not the tunnel's rate alone fills it.
const NOT_OUR_RATE: f64 = 0.2;
/// A core this busy leaves packets waiting for it, whatever the road does. It is counted a little before and after the load.
const FULL: f64 = 0.85;
/// Replies a sample needs before its median RTT says anything.
const FEWEST_REPLIES: u32 = 3;

fn run(evidence: &Evidence) -> Outcome {
    if !evidence.loaded() {
        return Outcome {
            found: DIRECTIONS
                .into_iter()
                .filter_map(|direction| swollen(evidence, direction))
                .collect(),
            not_known: vec![watched::no_load(
                evidence,
                &say!("bufferbloat-unknown-load"),
            )],
            ..Outcome::default()
        };
    }
    if let Known::Unknown(because) = &evidence.idle_rtt_tunnel {
        return Outcome::unknown(say!("bufferbloat-unknown-idle", because = because));
    }
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        let samples = evidence.samples(direction, Via::Tunnel);
        if !samples.is_empty() && !evidence.stalled(direction) && loaded(&samples).is_none() {
            let too_few = say!("bufferbloat-unknown-replies", direction = direction.word());
            outcome.not_known.push(too_few);
        }
        let Some(bloat) = swell(evidence, direction) else {
            continue;
        };
        match full_core(evidence, &bloat) {
            // A queue of the road, or want of a core: nobody can tell.
            Some((end, busy)) => outcome.not_known.push(say!(
                "bufferbloat-unknown-core",
                direction = direction.word(),
                host = cpu_saturated::machine_name(evidence, end),
                busy = percent(busy)
            )),
            None => outcome.found.push(found(evidence, &bloat)),
        }
    }
    outcome
}

/// A connection of the tunnel that was watched while it sent, with an RTT far above the smallest it saw: worth knowing,
/// for nobody knows what else the road carried.
fn swollen(evidence: &Evidence, direction: Direction) -> Option<Found> {
    let end = sender(direction);
    let swell = |connection: &TcpProgress| {
        let info = &connection.now.info;
        Some((info.min_rtt?, info.rtt))
    };
    let (connection, (least, now)) = watched::sending(evidence, direction)
        .filter_map(|connection| Some((connection, swell(connection)?)))
        .filter(|(_, (least, now))| too_much(*least, *now))
        .max_by(|(_, one), (_, other)| (one.1 - one.0).total_cmp(&(other.1 - other.0)))?;
    let remote = connection.now.remote;
    Some(Found {
        severity: Severity::Info,
        confidence: 0.5,
        effect: (1.0 - least / now.max(f64::EPSILON)).clamp(0.0, 1.0),
        host: evidence.name(end).to_owned(),
        direction: Some(direction),
        evidence: vec![
            line(
                say!(
                    "bufferbloat-line-connection",
                    remote = remote.to_string(),
                    direction = direction.word()
                ),
                evidence.interface_at(end),
                least,
                now,
                "s",
            ),
            line(
                say!("bufferbloat-line-goodput"),
                evidence.interface_at(end),
                (),
                watched::rate_of(connection),
                "bit/s",
            ),
        ],
        because: say!(
            "bufferbloat-because-connection",
            remote = remote.to_string(),
            now = milliseconds(now),
            least = milliseconds(least)
        ),
        remedies: Vec::new(),
        refused: Vec::new(),
    })
}

/// RTT grows under load by more than anybody should bear.
struct Bloat {
    direction: Direction,
    idle: f64,
    loaded: f64,
    /// Seen over the longer load only.
    soaked: bool,
}

/// Does the RTT through the tunnel swell while this direction is loaded, and not perhaps for want of a core?
pub(crate) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    swell(evidence, direction).is_some_and(|bloat| full_core(evidence, &bloat).is_none())
}

/// Does one longer load by itself show it? A single run makes no finding, but is worth a second look outside the tunnel.
pub(crate) fn soaked(evidence: &Evidence, direction: Direction, via: Via) -> bool {
    let idle = idle(evidence, via);
    let loaded = soak_rtt(evidence, direction, via);
    idle.zip(loaded)
        .is_some_and(|(idle, loaded)| too_much(idle, loaded))
}

/// Does the road itself, outside the tunnel, show the same?
pub(super) fn on_the_road(evidence: &Evidence, direction: Direction) -> bool {
    !swollen_loads_outside(evidence, direction).is_empty()
}

/// The loads outside the tunnel that show it: the longer one, and those of the comparison.
fn swollen_loads_outside(evidence: &Evidence, direction: Direction) -> Vec<Vec<&Sample>> {
    let samples = evidence.samples(direction, Via::Bare);
    let short = idle(evidence, Via::Bare)
        .zip(loaded(&samples))
        .is_some_and(|(idle, loaded)| too_much(idle, loaded));
    let long = evidence
        .soak(direction, Via::Bare)
        .filter(|_| soaked(evidence, direction, Via::Bare));
    short
        .then_some(samples)
        .into_iter()
        .chain(long.map(|soak| vec![soak]))
        .collect()
}

/// The machine with a full core, and how full, where packets may wait for that instead of in a queue of the road: a core was
/// full in the tunnel's loads, and full of the kernel's work in all those outside that swell too. A program's work says
/// nothing of these: packets go before it.
fn full_core(evidence: &Evidence, bloat: &Bloat) -> Option<(End, f64)> {
    let fullest = |samples: &[&Sample], busy: fn(&Sample, End) -> Option<f64>| {
        cpu_saturated::busiest_machine(evidence, |end| {
            median(samples.iter().filter_map(|sample| busy(sample, end)))
        })
        .filter(|(_, busy)| *busy >= FULL)
    };
    let inside = if bloat.soaked {
        vec![evidence.soak(bloat.direction, Via::Tunnel)?]
    } else {
        evidence.samples(bloat.direction, Via::Tunnel)
    };
    fullest(&inside, cores::busiest_in)?;
    let outside: Option<Vec<(End, f64)>> = swollen_loads_outside(evidence, bloat.direction)
        .iter()
        .map(|samples| fullest(samples, cores::busiest_of_the_kernel_in))
        .collect();
    outside?.into_iter().next()
}

/// RTT through the tunnel that grows by too much, whatever it is that packets wait for.
fn swell(evidence: &Evidence, direction: Direction) -> Option<Bloat> {
    let idle = idle(evidence, Via::Tunnel)?;
    if let Some(loaded) =
        loaded(&evidence.samples(direction, Via::Tunnel)).filter(|loaded| too_much(idle, *loaded))
    {
        return Some(Bloat {
            direction,
            idle,
            loaded,
            soaked: false,
        });
    }
    // One longer load may be somebody else's burst; two, inside and outside, are not.
    let loaded = soak_rtt(evidence, direction, Via::Tunnel)
        .filter(|loaded| too_much(idle, *loaded) && on_the_road(evidence, direction))?;
    Some(Bloat {
        direction,
        idle,
        loaded,
        soaked: true,
    })
}

fn too_much(idle: f64, loaded: f64) -> bool {
    loaded - idle >= TOLERATED.max(TOLERATED_TIMES_IDLE * idle)
}

/// Median idle RTT one way or the other.
fn idle(evidence: &Evidence, via: Via) -> Option<f64> {
    let idle = match via {
        Via::Bare => &evidence.idle_rtt_bare,
        Via::Tunnel => &evidence.idle_rtt_tunnel,
    };
    idle.value()?.median
}

/// What the RTT through the tunnel reaches while idle: its 95th percentile.
fn idle_high(evidence: &Evidence) -> Option<f64> {
    evidence.idle_rtt_tunnel.value()?.p95
}

/// Median RTT during the longer load.
fn soak_rtt(evidence: &Evidence, direction: Direction, via: Via) -> Option<f64> {
    let soak = evidence.soak(direction, via)?;
    soak.loaded_rtt
        .as_ref()
        .filter(|rtt| rtt.received >= FEWEST_REPLIES)?
        .median
}

/// Does the RTT through the tunnel grow enough to show that a queue fills up, deep or not? False where it is not known.
///
/// Its 95th percentile tells: on a long path a queue is full for a few round trips of a short load only, which lose
/// packets all the same.
pub(super) fn queue_fills(evidence: &Evidence, direction: Direction) -> bool {
    let loaded = over_samples(&evidence.samples(direction, Via::Tunnel), |rtt| rtt.p95);
    idle(evidence, Via::Tunnel)
        .zip(loaded)
        .is_some_and(|(idle, loaded)| fills(idle, loaded))
}

fn fills(idle: f64, loaded: f64) -> bool {
    loaded - idle >= FILLING.max(FILLING_SHARE_OF_IDLE * idle)
}

/// Median over the samples of their median loaded RTT.
fn loaded(samples: &[&Sample]) -> Option<f64> {
    over_samples(samples, |rtt| rtt.median)
}

/// Median over the samples of a figure of their loaded RTT.
fn over_samples(samples: &[&Sample], figure: fn(&RttSummary) -> Option<f64>) -> Option<f64> {
    let medians: Vec<f64> = samples
        .iter()
        .filter_map(|sample| {
            sample
                .loaded_rtt
                .as_ref()
                .filter(|rtt| rtt.received >= FEWEST_REPLIES)
                .and_then(figure)
        })
        .collect();
    if medians.len() < FEWEST_SAMPLES {
        return None;
    }
    median(medians)
}

fn found(evidence: &Evidence, bloat: &Bloat) -> Found {
    let direction = bloat.direction;
    let way = direction.word();
    let on_the_road = on_the_road(evidence, direction);
    let mut lines = vec![line(
        if bloat.soaked {
            say!("bufferbloat-line-tunnel-soak", direction = &way)
        } else {
            say!("bufferbloat-line-tunnel", direction = &way)
        },
        evidence.interface_at(End::Here),
        bloat.idle,
        bloat.loaded,
        "s",
    )];
    let outside = [
        (
            say!("bufferbloat-line-bare-soak", direction = &way),
            soak_rtt(evidence, direction, Via::Bare).filter(|_| bloat.soaked),
        ),
        (
            say!("bufferbloat-line-bare", direction = &way),
            loaded(&evidence.samples(direction, Via::Bare)),
        ),
    ];
    for (what, outside) in outside {
        if let Some(outside) = outside {
            lines.push(line(
                what,
                evidence.name(End::Here),
                idle(evidence, Via::Bare),
                outside,
                "s",
            ));
        }
    }
    let (caps, of_the_search) = match searched(evidence, bloat) {
        Some(Searched { caps, lines }) => (caps, lines),
        None => (Caps::Open, Vec::new()),
    };
    lines.extend(of_the_search);
    lines.extend(rates_line(evidence, direction));
    let sure = if on_the_road { 0.9 } else { 0.7 };
    let because = because(evidence, bloat, on_the_road);
    let (confidence, because) = match &caps {
        Caps::Long(lowest) => (
            sure - NOT_OUR_RATE,
            format!("{because} {}", lowest.because()),
        ),
        Caps::Short(_) | Caps::Open => (sure, because),
    };
    let (remedies, refused) = shaper(evidence, bloat, on_the_road, &caps);
    Found {
        severity: Severity::Warning,
        confidence,
        effect: (1.0 - bloat.idle / bloat.loaded.max(f64::EPSILON)).clamp(0.0, 1.0),
        host: evidence.name(sender(direction)).to_owned(),
        direction: Some(direction),
        evidence: lines,
        because,
        remedies,
        refused,
    }
}

fn because(evidence: &Evidence, bloat: &Bloat, on_the_road: bool) -> String {
    let sender = evidence.name(sender(bloat.direction));
    let (idle, loaded) = (milliseconds(bloat.idle), milliseconds(bloat.loaded));
    if on_the_road {
        say!(
            "bufferbloat-because-road",
            sender = sender,
            idle = idle,
            loaded = loaded
        )
    } else {
        say!(
            "bufferbloat-because-tunnel",
            sender = sender,
            idle = idle,
            loaded = loaded
        )
    }
}

/// A limit at the sender, where the queue can be kept short: the rate that a search found for it, else a little under what
/// the tunnel carried.
fn shaper(
    evidence: &Evidence,
    bloat: &Bloat,
    on_the_road: bool,
    caps: &Caps<'_>,
) -> (Vec<Remedy>, Vec<Refusal>) {
    let direction = bloat.direction;
    let (payload, share, remark) = match caps {
        Caps::Long(lowest) => return (Vec::new(), vec![lowest.refused(evidence, bloat)]),
        Caps::Short(highest) => (highest.cap, 1.0, say!("bufferbloat-remedy-remark")),
        Caps::Open => match carried(evidence, direction) {
            Some(payload) => (payload, SHAPED_SHARE, String::new()),
            None => return (Vec::new(), Vec::new()),
        },
    };
    let cap = Cap {
        payload,
        share,
        remark: &remark,
        goal: Goal::LoadedRtt,
        risk: if on_the_road {
            say!("bufferbloat-risk-road")
        } else {
            say!("bufferbloat-risk")
        },
    };
    finding::shaper(evidence, direction, cap)
}

/// What the road carried when nothing disturbed it: the upper quartile of the samples, since a dip tells of the moment
/// and not of the road, while a single peak may be a queue that drained.
fn carried(evidence: &Evidence, direction: Direction) -> Option<f64> {
    let rates: Vec<f64> = evidence
        .samples(direction, Via::Tunnel)
        .iter()
        .map(|sample| sample.rate)
        .collect();
    percentile(&rates, 0.75)
}

#[cfg(test)]
mod tests;
