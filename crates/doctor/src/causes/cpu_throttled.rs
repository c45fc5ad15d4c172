//! `cpu-throttled`: the processor, or the daemon's share of it, is slower than it could be while the tunnel is loaded.
//!
//! Known from what takes the time away: the hypervisor (steal in `/proc/stat`), the control group of the daemon
//! (`cpu.stat`), heat (`thermal_throttle`), or a governor that keeps the frequency down on a machine whose cores are full.

mod frequency;

use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::cpu_saturated::{HEALTHY_RATIO, machine_name, machines};
use super::{cpu_saturated, names_host, one_core_bound, same_direction, socket_overflow, starves};
use crate::cards::sum;
use crate::cores;
use crate::finding::{Check, Found, Outcome, by_hand, command, line, percent, rates_lines};
use crate::losses::{self, Period};
use crate::view::{ENDS, on, only, or_watched};
use crate::{End, Evidence, EvidenceLine, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "cpu-throttled";

pub(super) const CHECK: Check = Check {
    brings,
    slows: in_direction,
    ..Check::new(CODE, || say!("cpu-throttled-title"), run)
};

/// Share of the machine's time that the hypervisor took, from which it explains a slower tunnel.
const STOLEN: f64 = 0.1;
/// Share of its periods in which the daemon's group had used up its allowance.
const USED_UP: f64 = 0.1;
/// Heat and the hypervisor cost speed only where a core has nothing to spare, …
const BUSY: f64 = 0.8;
/// … the latter also where all of them together have this little.
const SHORT: f64 = 0.5;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        outcome.found.extend(of_group(evidence, end));
    }
    for end in machines(evidence) {
        outcome.found.extend(stolen(evidence, end));
        outcome.found.extend(hot(evidence, end));
        outcome.found.extend(frequency::kept_down(evidence, end));
    }
    outcome
}

/// Is the processor of either end taken away while this direction is loaded, so that the tunnel is slower for it?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    slower(evidence, direction) == Some(true)
        && ENDS.into_iter().any(|end| {
            stolen_share(evidence, end, direction).is_some()
                || losses::periods(evidence, end).iter().any(|period| {
                    period.direction == Some(direction) && quota_of(evidence, end, period).is_some()
                })
        })
}

/// Time that was taken away counts as busy, and what waits for its turn is lost or late. A daemon that has used up its
/// allowance in most periods does not want the cores that others keep busy.
fn brings(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    let concerned = [cpu_saturated::CODE, one_core_bound::CODE].contains(&effect.code.as_str())
        && (same_direction(cause, effect) || effect.direction.is_none())
        && names_host(evidence, cause, &effect.host);
    let by_steal = cause
        .evidence
        .iter()
        .any(|line| crate::view::DIRECTIONS.map(steal).contains(&line.what))
        && busy_only_by_steal(evidence, effect);
    let certain = cause.severity >= Severity::Warning;
    let by_quota = || {
        cause
            .evidence
            .iter()
            .filter(|line| {
                [None, Some(Direction::Upload), Some(Direction::Download)]
                    .map(periods)
                    .contains(&line.what)
            })
            .any(|line| {
                let number = |value: &wirespeed_settings::Value| value.as_f64().unwrap_or_default();
                number(&line.after) >= MOST_PERIODS * number(&line.before).max(1.0)
            })
    };
    certain && ((concerned && (by_steal || by_quota())) || starves(evidence, cause, effect))
}

/// Share of the periods from which it is the allowance alone that holds the daemon back.
const MOST_PERIODS: f64 = 0.5;

/// What the lines of evidence are called that tell of time taken by the hypervisor …
fn steal(direction: Direction) -> String {
    say!("cpu-throttled-line-steal", direction = direction.word())
}

/// … and by the group's allowance.
fn periods(direction: Option<Direction>) -> String {
    say!("cpu-throttled-line-periods", when = or_watched(direction))
}

/// Without what the hypervisor took, would the cores have had room?
fn busy_only_by_steal(evidence: &Evidence, effect: &Finding) -> bool {
    crate::view::DIRECTIONS
        .into_iter()
        .filter(|direction| {
            effect
                .direction
                .is_none_or(|concerned| concerned == *direction)
        })
        .flat_map(|direction| {
            ENDS.into_iter()
                .filter(|end| machine_name(evidence, *end) == effect.host)
                .filter_map(move |end| cores::of(evidence, end, direction))
        })
        .all(|cores| cores.mean - cores.steal < BUSY)
}

/// Slower than bare for sure: `Some(true)`. As fast, or slow for its sizes or a socket too small for any processor: `None`.
/// Without a bare side: `Some(false)`, worth knowing.
fn slower(evidence: &Evidence, direction: Direction) -> Option<bool> {
    match evidence.below(direction, HEALTHY_RATIO) {
        Some(true) => (!crate::mtu::slows(evidence, direction)
            && !socket_overflow::too_small(evidence, direction))
        .then_some(true),
        Some(false) => None,
        None => Some(false),
    }
}

fn severity(evidence: &Evidence, directions: &[Direction], certain: bool) -> Severity {
    if certain {
        losses::severity(evidence, directions)
    } else {
        Severity::Info
    }
}

fn stolen_share(evidence: &Evidence, end: End, direction: Direction) -> Option<f64> {
    cores::of(evidence, end, direction)
        .filter(|cores| cores.mean >= SHORT || cores.busiest >= BUSY)
        .map(|cores| cores.steal)
        .filter(|steal| *steal >= STOLEN && steal.is_finite())
}

fn stolen(evidence: &Evidence, end: End) -> Option<Found> {
    let hits: Vec<(Direction, f64, bool)> = crate::view::DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            let share = stolen_share(evidence, end, direction)?;
            Some((direction, share, slower(evidence, direction)?))
        })
        .collect();
    let (_, share, _) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, ..)| *direction).collect();
    let certain = hits.iter().any(|(.., certain)| *certain);
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .map(|(direction, share, _)| {
            line(steal(*direction), evidence.name(end), (), *share, "share")
        })
        .collect();
    let hypervisor = evidence
        .facts(end)
        .and_then(|facts| facts.hardware.hypervisor.value())
        .and_then(Option::as_ref);
    if let Some(hypervisor) = hypervisor {
        lines.push(line(
            say!("cpu-throttled-line-hypervisor"),
            evidence.name(end),
            (),
            hypervisor.clone(),
            "",
        ));
    }
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.85 } else { 0.6 },
        effect: *share,
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: say!("cpu-throttled-because-steal", share = percent(*share)),
        remedies: vec![by_hand(
            say!("cpu-throttled-remedy-steal"),
            say!("cpu-throttled-risk-steal"),
        )],
        refused: Vec::new(),
    })
}

/// What the group of an end's daemon used up in a period.
struct UsedUp {
    group: String,
    cores: f64,
    periods: u64,
    throttled: u64,
    seconds: f64,
}

fn quota_of(evidence: &Evidence, end: End, period: &Period<'_>) -> Option<UsedUp> {
    let tunnel = evidence.tunnel(end)?;
    let mut used_up = UsedUp {
        group: String::new(),
        cores: 0.0,
        periods: 0,
        throttled: 0,
        seconds: 0.0,
    };
    let mut hit = 0;
    for quota in period
        .readings
        .iter()
        .filter_map(|reading| reading.quotas.get(&tunnel.name))
    {
        hit += u32::from(quota.throttled > 0);
        used_up.group.clone_from(&quota.group);
        used_up.cores = quota.cores;
        used_up.periods = used_up.periods.saturating_add(quota.periods);
        // Where groups above have an allowance as well, theirs are counted on top.
        let throttled = quota.throttled.min(quota.periods);
        used_up.throttled = used_up.throttled.saturating_add(throttled);
        used_up.seconds += quota.seconds;
    }
    let share = used_up.throttled as f64 / used_up.periods.max(1) as f64;
    (hit >= 2 && share >= USED_UP).then_some(used_up)
}

fn of_group(evidence: &Evidence, end: End) -> Option<Found> {
    let hits: Vec<(Option<Direction>, UsedUp, bool)> = losses::periods(evidence, end)
        .iter()
        .filter_map(|period| {
            let certain = match period.direction {
                Some(direction) => slower(evidence, direction)?,
                None => false,
            };
            Some((period.direction, quota_of(evidence, end, period)?, certain))
        })
        .collect();
    let (_, first, _) = hits.first()?;
    let directions: Vec<Direction> = hits
        .iter()
        .filter_map(|(direction, ..)| *direction)
        .collect();
    let certain = hits.iter().any(|(.., certain)| *certain);
    let mut lines = Vec::new();
    for (direction, used_up, _) in &hits {
        lines.push(line(
            periods(*direction),
            on(&used_up.group, evidence.name(end)),
            used_up.periods,
            used_up.throttled,
            "",
        ));
        lines.push(line(
            say!("cpu-throttled-line-waited", when = or_watched(*direction)),
            on(&used_up.group, evidence.name(end)),
            (),
            used_up.seconds,
            "s",
        ));
    }
    lines.push(line(
        say!("cpu-throttled-line-allowance"),
        on(&first.group, evidence.name(end)),
        (),
        first.cores,
        "cores",
    ));
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.9 } else { 0.6 },
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "cpu-throttled-because-group",
            cores = first.cores,
            group = &first.group,
            throttled = first.throttled,
            periods = first.periods
        ),
        remedies: vec![larger_allowance(evidence, end, first)],
        refused: Vec::new(),
    })
}

fn larger_allowance(evidence: &Evidence, end: End, used_up: &UsedUp) -> Remedy {
    let unit = used_up.group.rsplit('/').next().filter(|name| {
        name.rsplit_once('.')
            .is_some_and(|(_, kind)| ["service", "slice"].contains(&kind))
    });
    let (commands, undo, persistence) = match unit {
        Some(unit) => {
            let unit = shell_word(unit);
            (
                vec![command(
                    evidence,
                    end,
                    format!("systemctl set-property --runtime {unit} CPUQuota="),
                )],
                command(
                    evidence,
                    end,
                    format!(
                        "systemctl set-property --runtime {unit} CPUQuota={:.0}%",
                        used_up.cores * 100.0
                    ),
                ),
                say!("cpu-throttled-persistence-unit", unit = unit),
            )
        }
        None => (
            Vec::new(),
            String::new(),
            say!("cpu-throttled-persistence-container"),
        ),
    };
    Remedy {
        title: say!("cpu-throttled-remedy-group"),
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence,
        risk: say!("cpu-throttled-risk-group"),
        undo,
    }
}

fn hot(evidence: &Evidence, end: End) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<(Direction, u64, bool)> = periods
        .iter()
        .filter_map(|period| {
            let direction = period.direction?;
            let events = |reading: &wirespeed_facts::CountersDelta| {
                reading.throttling.map_or(0, |events| {
                    events.core_events.saturating_add(events.package_events)
                })
            };
            let hit = period
                .readings
                .iter()
                .filter(|reading| events(reading) > 0)
                .count();
            let busiest = cores::of(evidence, end, direction)?.busiest;
            let certain = slower(evidence, direction)?;
            (hit >= 2 && hit * 2 >= period.readings.len() && busiest >= BUSY).then(|| {
                (
                    direction,
                    sum(period.readings.iter().map(|reading| events(reading))),
                    certain,
                )
            })
        })
        .collect();
    let (_, events, _) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, ..)| *direction).collect();
    let certain = hits.iter().any(|(.., certain)| *certain);
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .map(|(direction, events, _)| {
            line(
                say!("cpu-throttled-line-heat", direction = direction.word()),
                evidence.name(end),
                (),
                *events,
                "",
            )
        })
        .collect();
    lines.extend(frequency::frequency_line(evidence, end));
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.7 } else { 0.5 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: say!("cpu-throttled-because-heat", events = *events),
        remedies: vec![by_hand(
            say!("cpu-throttled-remedy-heat"),
            say!("cpu-throttled-risk-heat"),
        )],
        refused: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
