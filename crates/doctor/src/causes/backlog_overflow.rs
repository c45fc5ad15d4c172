//! `backlog-overflow`: packets found the receive backlog of their core full.
//!
//! Known from `/proc/net/softnet_stat`, column 2, which is the whole kernel's, together with `rx_dropped` of a link on the
//! tunnel's way: `enqueue_to_backlog` counts both for the same packet (`net/core/dev.c`). Only links whose packets go
//! through the backlog can have it: veth, loopback, and whatever RPS hands to another core.
//!
//! The link may be in another namespace of the same kernel: a container's packets pass the host's. Then the core's count
//! tells alone, and it has to follow the segments that were sent again, load by load.

use serde_json::json;
use wirespeed_facts::CountersDelta;
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::{Setting, shell_word};
use wirespeed_words::say;

use super::cpu_saturated::{machine_name, machines};
use super::{names_host, same_direction};
use crate::cards::{core_numbers, outer_links, sum};
use crate::cores::mask;
use crate::finding::{Check, Found, Outcome, command, line, rates_lines, remedy_of};
use crate::losses::{self, Losses, Period, on_the_way, sysctl};
use crate::view::{DIRECTIONS, ENDS, moved, on, only, or_watched};
use crate::{Change, End, Evidence, EvidenceLine, Finding, Goal, Refusal, Remedy};

pub(super) const CODE: &str = "backlog-overflow";

pub(super) const CHECK: Check = Check {
    brings: loses_packets,
    follows_from: starved,
    slows: in_direction,
    ..Check::new(CODE, || say!("backlog-overflow-title"), run)
};

const SYSCTL: &str = "net.core.netdev_max_backlog";
/// What Linux gives (`net/core/hotdata.c`), packets per core.
const STOCK: u64 = 1000;
/// More is no remedy: at 1 Gbit/s this holds more than half a second.
const MOST: u64 = 1 << 16;

/// Queues whose steering is changed at once.
const MOST_QUEUES: usize = 32;

/// Loads whose drops and segments sent again must agree, at least.
const FEWEST_ALIKE: usize = 3;
/// Share of the loads in which they do.
const MOSTLY: f64 = 0.8;
/// Segments sent again for each packet dropped: a lost acknowledgement costs none, a lost segment may take two attempts.
const ALIKE: std::ops::RangeInclusive<f64> = 0.5..=3.0;

fn run(evidence: &Evidence) -> Outcome {
    let mut found: Vec<Found> = ENDS
        .into_iter()
        .filter_map(|end| found(evidence, end))
        .collect();
    if found.is_empty() {
        found.extend(
            machines(evidence)
                .into_iter()
                .filter_map(|end| found_elsewhere(evidence, end)),
        );
    }
    Outcome {
        found,
        ..Outcome::default()
    }
}

/// Does a backlog of either end overflow while this direction is loaded?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter().any(|end| {
        losses::periods(evidence, end).iter().any(|period| {
            period.direction == Some(direction) && lost(evidence, end, period).is_some()
        }) || elsewhere(evidence, end, direction).is_some()
    })
}

/// Drops of the cores that none of this namespace's links tells of, and the segments sent again meanwhile.
struct Elsewhere {
    direction: Direction,
    dropped: u64,
    again: u64,
    loads: usize,
}

fn elsewhere(evidence: &Evidence, end: End, direction: Direction) -> Option<Elsewhere> {
    let mut sums = Elsewhere {
        direction,
        dropped: 0,
        again: 0,
        loads: 0,
    };
    let mut alike = 0;
    let mut packets: u64 = 0;
    for sample in evidence.samples(direction, Via::Tunnel) {
        let reading = moved(sample, end)?;
        let again = sample.retransmits_with_warm_up.or(sample.retransmits)?;
        let dropped = of_cores(reading);
        let tunnel = reading.links.get(&evidence.tunnel(end)?.name)?;
        packets = packets
            .saturating_add(tunnel.rx_packets)
            .saturating_add(tunnel.tx_packets);
        sums.loads += 1;
        sums.dropped = sums.dropped.saturating_add(dropped);
        sums.again = sums.again.saturating_add(again);
        alike += usize::from(dropped > 0 && ALIKE.contains(&(again as f64 / dropped as f64)));
    }
    let fits = alike >= FEWEST_ALIKE
        && alike as f64 >= MOSTLY * sums.loads as f64
        && losses::are_many(sums.dropped, packets);
    fits.then_some(sums)
}

fn found_elsewhere(evidence: &Evidence, end: End) -> Option<Found> {
    let hits: Vec<Elsewhere> = DIRECTIONS
        .into_iter()
        .filter_map(|direction| elsewhere(evidence, end, direction))
        .collect();
    let first = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|hit| hit.direction).collect();
    let now = evidence.facts(end).and_then(|facts| sysctl(facts, SYSCTL));
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .map(|hit| {
            line(
                say!(
                    "backlog-overflow-line-elsewhere",
                    direction = hit.direction.word()
                ),
                machine_name(evidence, end),
                hit.dropped,
                hit.again,
                "packets",
            )
        })
        .collect();
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: losses::severity(evidence, &directions),
        confidence: 0.65,
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "backlog-overflow-because-elsewhere",
            dropped = first.dropped,
            loads = first.loads
        ),
        remedies: longer(evidence, end, now).into_iter().collect(),
        refused: refused(evidence, end, now),
    })
}

/// Packets of the tunnel's links that a full backlog dropped in a period, where they are too many.
pub(super) fn lost(evidence: &Evidence, end: End, period: &Period<'_>) -> Option<Losses> {
    losses::too_many(
        period,
        |reading| of_links(evidence, end, reading).min(of_cores(reading)),
        |reading| {
            sum(on_the_way(evidence, end, reading)
                .into_iter()
                .filter_map(|name| reading.links.get(name))
                .map(|link| link.rx_packets))
        },
    )
}

fn of_cores(reading: &CountersDelta) -> u64 {
    sum(reading.softnet.iter().map(|core| core.dropped))
}

fn of_links(evidence: &Evidence, end: End, reading: &CountersDelta) -> u64 {
    sum(on_the_way(evidence, end, reading)
        .into_iter()
        .filter_map(|name| reading.links.get(name))
        .map(|link| link.rx_dropped))
}

/// A core without time to spare does not empty its backlog. One that is shorter than it has to be overflows on any core.
fn starved(evidence: &Evidence, cause: &Finding, own: &Finding) -> bool {
    let stock = |end| {
        evidence
            .facts(end)
            .and_then(|facts| sysctl(facts, SYSCTL))
            .is_none_or(|now| now >= STOCK)
    };
    ["cpu-saturated", "one-core-bound", "irq-placement"].contains(&cause.code.as_str())
        && (same_direction(cause, own) || own.direction.is_none())
        && names_host(evidence, cause, &own.host)
        && ENDS.into_iter().all(stock)
}

/// Lost packets are what TCP answers to, and what a probe across this machine misses.
pub(super) fn loses_packets(_: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    ["path-loss", "congestion-control", "collapse-above-rate"].contains(&effect.code.as_str())
        && (same_direction(cause, effect) || effect.direction.is_none())
}

fn found(evidence: &Evidence, end: End) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<(&Period<'_>, Losses)> = periods
        .iter()
        .filter_map(|period| Some((period, lost(evidence, end, period)?)))
        .collect();
    let (_, worst) = hits.iter().max_by_key(|(_, losses)| losses.lost)?;
    let directions: Vec<Direction> = hits
        .iter()
        .filter_map(|(period, _)| period.direction)
        .collect();
    let now = evidence.facts(end).and_then(|facts| sysctl(facts, SYSCTL));
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .flat_map(|(period, _)| lines(evidence, end, period))
        .collect();
    if let Some(now) = now {
        lines.push(line(SYSCTL, evidence.name(end), (), now, "packets"));
    }
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: losses::severity(evidence, &directions),
        confidence: 0.9,
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: match now {
            Some(now) => say!(
                "backlog-overflow-because-length",
                dropped = worst.lost,
                passed = worst.of,
                length = now
            ),
            None => say!(
                "backlog-overflow-because",
                dropped = worst.lost,
                passed = worst.of
            ),
        },
        remedies: longer(evidence, end, now)
            .into_iter()
            .chain(more_cores(evidence, end))
            .collect(),
        refused: refused(evidence, end, now),
    })
}

fn lines(evidence: &Evidence, end: End, period: &Period<'_>) -> Vec<EvidenceLine> {
    let when = or_watched(period.direction);
    let mut by_core: Vec<(u64, u64)> = Vec::new();
    for reading in &period.readings {
        by_core.resize(by_core.len().max(reading.softnet.len()), (0, 0));
        for ((processed, dropped), core) in by_core.iter_mut().zip(&reading.softnet) {
            *processed = processed.saturating_add(core.processed);
            *dropped = dropped.saturating_add(core.dropped);
        }
    }
    let mut lines: Vec<EvidenceLine> = by_core
        .iter()
        .enumerate()
        .filter(|(_, (_, dropped))| *dropped > 0)
        .take(8)
        .map(|(core, (processed, dropped))| {
            line(
                say!("backlog-overflow-line-core", when = &when),
                say!(
                    "backlog-overflow-line-where",
                    host = evidence.name(end),
                    core = core
                ),
                *processed,
                *dropped,
                "packets",
            )
        })
        .collect();
    let names: Vec<&str> = period
        .readings
        .iter()
        .flat_map(|reading| on_the_way(evidence, end, reading))
        .collect();
    let mut told: Vec<&str> = Vec::new();
    for name in names {
        if told.contains(&name) || told.len() >= 4 {
            continue;
        }
        told.push(name);
        let of = |count: fn(&wirespeed_facts::LinkCounters) -> u64| {
            sum(period
                .readings
                .iter()
                .filter_map(|reading| reading.links.get(name))
                .map(count))
        };
        let dropped = of(|link| link.rx_dropped);
        if dropped > 0 {
            lines.push(line(
                say!("backlog-overflow-line-link", when = &when),
                on(name, evidence.name(end)),
                of(|link| link.rx_packets),
                dropped,
                "packets",
            ));
        }
    }
    lines
}

/// The next length to try; `None` when it is long already.
fn next(now: Option<u64>) -> Option<u64> {
    let next = now.unwrap_or(STOCK).saturating_mul(2).max(STOCK);
    (next <= MOST).then_some(next)
}

fn longer(evidence: &Evidence, end: End, now: Option<u64>) -> Option<Remedy> {
    let next = next(now)?;
    let setting = Setting::Sysctl {
        name: SYSCTL.to_owned(),
    };
    let value = json!(next.to_string());
    let title = say!("backlog-overflow-remedy-longer", packets = next);
    let risk = say!(
        "backlog-overflow-risk-longer",
        packets = next,
        milliseconds = (next as f64 * 1500.0 * 8.0 / 1e9 * 1e3).round()
    );
    Some(match now {
        Some(now) => {
            let change = Change {
                end,
                setting,
                value,
            };
            remedy_of(
                evidence,
                title,
                vec![(change, json!(now.to_string()))],
                Goal::Goodput,
                risk,
            )
        }
        None => longer_than_is_known(evidence, end),
    })
}

/// A network namespace does not show how long it is, and the host's may be a long one already.
fn longer_than_is_known(evidence: &Evidence, end: End) -> Remedy {
    let set = |value: &str| command(evidence, end, format!("sysctl -w {SYSCTL}={value}"));
    Remedy {
        title: say!("backlog-overflow-remedy-twice"),
        changes: Vec::new(),
        commands: vec![
            command(
                evidence,
                end,
                format!("sysctl {SYSCTL}  # WHAT-IT-IS, packets per core"),
            ),
            set("TWICE-THAT"),
        ],
        goal: Goal::Goodput,
        persistence: say!("backlog-overflow-persistence-twice", sysctl = SYSCTL),
        risk: say!("backlog-overflow-risk-twice", most = MOST),
        undo: set("WHAT-IT-IS"),
    }
}

/// Where RPS hands the tunnel's packets on, it may hand them to more cores.
fn more_cores(evidence: &Evidence, end: End) -> Option<Remedy> {
    let facts = evidence.facts(end)?;
    let tunnel = evidence
        .tunnel(end)
        .and_then(|tunnel| facts.link(&tunnel.name));
    let all = core_numbers(facts, facts.cpu.online.min(1 << 13));
    let (name, queues) = outer_links(evidence, end)
        .into_iter()
        .chain(tunnel)
        .find_map(|link| {
            let queues: Vec<(usize, &[u32])> = link
                .detail
                .value()?
                .receive_queues
                .value()?
                .iter()
                .map(|queue| queue.rps_cores.as_slice())
                .enumerate()
                .filter(|(_, cores)| !cores.is_empty() && cores.len() < all.len())
                .take(MOST_QUEUES)
                .collect();
            (!queues.is_empty()).then_some((link.name.as_str(), queues))
        })?;
    let steer = |queue: usize, cores: &[u32]| {
        let file = format!(
            "/sys/class/net/{}/queues/rx-{queue}/rps_cpus",
            shell_word(name)
        );
        command(evidence, end, format!("echo {} > {file}", mask(cores)))
    };
    let undo: Vec<String> = queues
        .iter()
        .map(|(queue, cores)| steer(*queue, cores))
        .collect();
    Some(Remedy {
        title: say!(
            "backlog-overflow-remedy-cores",
            interface = name,
            all = all.len(),
            now = queues.iter().map(|(_, cores)| cores.len()).max()?
        ),
        changes: Vec::new(),
        commands: queues
            .iter()
            .map(|(queue, _)| steer(*queue, &all))
            .collect(),
        goal: Goal::Goodput,
        persistence: say!("backlog-overflow-persistence-cores"),
        risk: say!("backlog-overflow-risk-cores"),
        undo: undo.join("\n"),
    })
}

fn refused(evidence: &Evidence, end: End, now: Option<u64>) -> Vec<Refusal> {
    let mut refused = vec![Refusal {
        remedy: say!(
            "backlog-overflow-refused-buffers",
            host = evidence.name(end)
        ),
        why: say!("backlog-overflow-refused-why-buffers"),
    }];
    if next(now).is_none() {
        refused.push(Refusal {
            remedy: say!("backlog-overflow-refused-longer", host = evidence.name(end)),
            why: say!(
                "backlog-overflow-refused-why-longer",
                packets = now.unwrap_or_default()
            ),
        });
    }
    refused
}

#[cfg(test)]
mod tests;
