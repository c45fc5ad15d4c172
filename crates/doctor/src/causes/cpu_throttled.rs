//! `cpu-throttled`: the processor, or the daemon's share of it, is slower than it could be while the tunnel is loaded.
//!
//! Known from what takes the time away: the hypervisor (steal in `/proc/stat`), the control group of the daemon
//! (`cpu.stat`), heat (`thermal_throttle`), or a governor that keeps the frequency down on a machine whose cores are full.

use serde_json::json;
use wirespeed_facts::Facts;
use wirespeed_measure::Direction;
use wirespeed_settings::{Setting, shell_word};

use super::cpu_saturated::{HEALTHY_RATIO, machine_name, machines};
use super::{cpu_saturated, names_host, one_core_bound, same_direction, starves};
use crate::cards::sum;
use crate::cores;
use crate::finding::{
    Check, Found, Outcome, by_hand, command, line, percent, rates_lines, remedy_of,
};
use crate::losses::{self, Period};
use crate::view::{ENDS, only, word};
use crate::{Change, End, Evidence, EvidenceLine, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "cpu-throttled";

pub(super) const CHECK: Check = Check {
    brings,
    slows: in_direction,
    ..Check::new(CODE, "The processor is held back", run)
};

/// Share of the machine's time that the hypervisor took, from which it explains a slower tunnel.
const STOLEN: f64 = 0.1;
/// Share of its periods in which the daemon's group had used up its allowance.
const USED_UP: f64 = 0.1;
/// Heat costs speed only where a core has nothing to spare.
const BUSY: f64 = 0.8;
/// A highest frequency set below this share of the processor's own was set on purpose.
const CAPPED: f64 = 0.9;
/// Governors that keep the frequency down under drivers that leave it to them.
const SLOW_GOVERNORS: [&str; 3] = ["powersave", "conservative", "userspace"];
const FAST: &str = "performance";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        outcome.found.extend(of_group(evidence, end));
    }
    for end in machines(evidence) {
        outcome.found.extend(stolen(evidence, end));
        outcome.found.extend(hot(evidence, end));
        outcome.found.extend(slow_governor(evidence, end));
    }
    outcome
}

/// Is the processor of either end taken away while this direction is loaded, so that the tunnel is slower for it?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    evidence.below(direction, HEALTHY_RATIO) == Some(true)
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
        .any(|line| line.what.starts_with(STEAL))
        && busy_only_by_steal(evidence, effect);
    let certain = cause.severity >= Severity::Warning;
    let by_quota = || {
        cause
            .evidence
            .iter()
            .filter(|line| line.what.starts_with(PERIODS))
            .any(|line| {
                let number = |value: &wirespeed_settings::Value| value.as_f64().unwrap_or_default();
                number(&line.after) >= MOST_PERIODS * number(&line.before).max(1.0)
            })
    };
    certain && ((concerned && (by_steal || by_quota())) || starves(evidence, cause, effect))
}

const PERIODS: &str = "periods, and those in which its allowance was used up";
/// Share of the periods from which it is the allowance alone that holds the daemon back.
const MOST_PERIODS: f64 = 0.5;
const STEAL: &str = "/proc/stat steal";

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

/// Slower than bare for sure: `Some(true)`. As fast: `None`. Without a bare side: `Some(false)`, worth knowing.
fn slower(evidence: &Evidence, direction: Direction) -> Option<bool> {
    match evidence.below(direction, HEALTHY_RATIO) {
        Some(true) => Some(true),
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
        .map(|cores| cores.steal)
        .filter(|steal| *steal >= STOLEN && steal.is_finite())
}

fn stolen(evidence: &Evidence, end: End) -> Option<Found> {
    let hits: Vec<(Direction, f64, bool)> = crate::view::DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            let steal = stolen_share(evidence, end, direction)?;
            Some((direction, steal, slower(evidence, direction)?))
        })
        .collect();
    let (_, steal, _) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, ..)| *direction).collect();
    let certain = hits.iter().any(|(.., certain)| *certain);
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .map(|(direction, steal, _)| {
            line(
                format!("{STEAL}, mean of all cores, {}", word(*direction)),
                evidence.name(end),
                (),
                *steal,
                "share",
            )
        })
        .collect();
    let hypervisor = evidence
        .facts(end)
        .and_then(|facts| facts.hardware.hypervisor.value())
        .and_then(Option::as_ref);
    if let Some(hypervisor) = hypervisor {
        lines.push(line(
            "hypervisor",
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
        effect: *steal,
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: format!(
            "The hypervisor gave {} of this machine's processor time to others while the tunnel was loaded.",
            percent(*steal)
        ),
        remedies: vec![by_hand(
            "An instance with more or with its own cores; on a host of one's own, fewer guests per core; where the instance lives on credits, one that does not",
            "cost",
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
        used_up.throttled = used_up.throttled.saturating_add(quota.throttled);
        used_up.seconds += quota.seconds;
    }
    let share = used_up.throttled as f64 / used_up.periods.max(1) as f64;
    (hit >= 2 && share >= USED_UP).then_some(used_up)
}

fn of_group(evidence: &Evidence, end: End) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<(Option<Direction>, UsedUp, bool)> = periods
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
        let when = direction.map_or("watched", word);
        lines.push(line(
            format!("{PERIODS} (cpu.stat nr_throttled), {when}"),
            format!("{} on {}", used_up.group, evidence.name(end)),
            used_up.periods,
            used_up.throttled,
            "",
        ));
        lines.push(line(
            format!("time its threads waited for the next period, {when}"),
            format!("{} on {}", used_up.group, evidence.name(end)),
            (),
            used_up.seconds,
            "s",
        ));
    }
    lines.push(line(
        "allowance (cpu.max)",
        format!("{} on {}", first.group, evidence.name(end)),
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
        because: format!(
            "The tunnel's daemon may use {:.2} cores ({}), and in {} of {} periods it had used them up and waited.",
            first.cores, first.group, first.throttled, first.periods
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
                format!("remove CPUQuota= from the unit: systemctl edit {unit}"),
            )
        }
        None => (
            Vec::new(),
            String::new(),
            "where the container or the group is made (docker --cpus, resources.limits.cpu of a pod, cpu.max)"
                .to_owned(),
        ),
    };
    Remedy {
        title: "A larger processor allowance for the tunnel's daemon, or none".to_owned(),
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence,
        risk: "somebody may have limited it on purpose: other work on the machine gets less"
            .to_owned(),
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
                format!(
                    "thermal_throttle core and package events, {}",
                    word(*direction)
                ),
                evidence.name(end),
                (),
                *events,
                "",
            )
        })
        .collect();
    lines.extend(frequency_line(evidence, end));
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.7 } else { 0.5 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: format!(
            "The processor slowed down for its heat {events} times while the tunnel was loaded and a core had nothing to spare."
        ),
        remedies: vec![by_hand(
            "Cooling: fans, dust, the room; or fewer cores in boost",
            "an outage while it is opened",
        )],
        refused: Vec::new(),
    })
}

fn slow_governor(evidence: &Evidence, end: End) -> Option<Found> {
    let facts = evidence.facts(end)?;
    let directions: Vec<Direction> = crate::view::DIRECTIONS
        .into_iter()
        .filter(|direction| {
            evidence.below(*direction, HEALTHY_RATIO) == Some(true)
                && cores::of(evidence, end, *direction)
                    .is_some_and(|cores| cores.busiest >= 0.95 || cores.mean >= 0.9)
        })
        .collect();
    if directions.is_empty() {
        return None;
    }
    let governor = facts
        .cpu
        .governor
        .value()
        .map(|name| name.trim())
        .filter(|name| SLOW_GOVERNORS.contains(name));
    let capped = capped(facts);
    if governor.is_none() && capped.is_none() {
        return None;
    }
    let mut lines = Vec::new();
    if let Some(governor) = facts.cpu.governor.value() {
        lines.push(line(
            "scaling_governor",
            evidence.name(end),
            (),
            governor.trim().to_owned(),
            "",
        ));
    }
    lines.extend(frequency_line(evidence, end));
    lines.extend(rates_lines(evidence, &directions));
    let because = match (governor, capped) {
        (_, Some((allowed, maximum))) => format!(
            "The cores are full, and may run at {:.1} GHz of the {:.1} GHz the processor has.",
            allowed as f64 / 1e9,
            maximum as f64 / 1e9
        ),
        (governor, None) => format!(
            "The cores are full, and the governor {} may keep their frequency down.",
            governor.unwrap_or_default()
        ),
    };
    Some(Found {
        severity: Severity::Info,
        confidence: if capped.is_some() { 0.6 } else { 0.4 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because,
        remedies: governor
            .map(|governor| faster_governor(evidence, end, governor))
            .into_iter()
            .chain(capped.map(|(_, maximum)| uncapped(evidence, end, maximum)))
            .collect(),
        refused: Vec::new(),
    })
}

/// The highest frequency allowed and the processor's own, where somebody set it lower.
fn capped(facts: &Facts) -> Option<(u64, u64)> {
    let frequencies = facts.hardware.frequencies.value()?;
    let (allowed, maximum) = (frequencies.allowed?, frequencies.maximum?);
    ((allowed as f64) < maximum as f64 * CAPPED).then_some((allowed, maximum))
}

fn frequency_line(evidence: &Evidence, end: End) -> Option<EvidenceLine> {
    let frequencies = evidence.facts(end)?.hardware.frequencies.value()?;
    Some(line(
        "highest frequency: the processor's own, and allowed (scaling_max_freq)",
        evidence.name(end),
        frequencies.maximum?,
        frequencies.allowed?,
        "Hz",
    ))
}

fn faster_governor(evidence: &Evidence, end: End, now: &str) -> Remedy {
    let change = Change {
        end,
        setting: Setting::Governor,
        value: json!(FAST),
    };
    remedy_of(
        evidence,
        format!("The governor {FAST} in place of {now}"),
        vec![(change, json!(now))],
        Goal::Goodput,
        "power and heat; with the drivers intel_pstate and amd-pstate powersave is no slow governor, so measure".to_owned(),
    )
}

fn uncapped(evidence: &Evidence, end: End, maximum: u64) -> Remedy {
    let files = "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq";
    Remedy {
        title: "Allow the processor its own highest frequency".to_owned(),
        changes: Vec::new(),
        commands: vec![command(
            evidence,
            end,
            format!("echo {} | tee {files}", maximum / 1000),
        )],
        goal: Goal::Goodput,
        persistence: "where it is set now: tuned, tlp, cpupower, the firmware".to_owned(),
        risk: "power and heat".to_owned(),
        undo: command(
            evidence,
            end,
            format!(
                "echo {} | tee {files}",
                evidence
                    .facts(end)
                    .and_then(capped)
                    .map_or(maximum, |(allowed, _)| allowed)
                    / 1000
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{CoreTime, Frequencies, Known, Quota, Throttling};
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        at, codes, core, each_sample, facts_of, healthy, nothing, only_finding, set_ratio,
    };
    use crate::{End, Evidence, Severity, judge};

    fn slow() -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.7);
        evidence
    }

    fn with_cores(mut evidence: Evidence, cores: CoreTime) -> Evidence {
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![cores; 4];
        });
        evidence
    }

    fn stolen(steal: f64, busy: f64) -> CoreTime {
        CoreTime {
            user: busy,
            steal,
            idle: 1.0 - busy - steal,
            ..CoreTime::default()
        }
    }

    fn with_quota(mut evidence: Evidence, throttled: u64) -> Evidence {
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).quotas.insert(
                "wg1".to_owned(),
                Quota {
                    group: "/system.slice/wg.service".to_owned(),
                    cores: 0.25,
                    periods: 20,
                    throttled,
                    seconds: 1.0,
                },
            );
        });
        evidence
    }

    #[test]
    fn a_tenth_stolen_explains_a_slower_tunnel() {
        only_finding(&with_cores(slow(), stolen(0.09, 0.3)), "unexplained");
        nothing(&with_cores(healthy(), stolen(0.3, 0.3)));
        let finding = only_finding(&with_cores(slow(), stolen(0.11, 0.3)), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Upload))
        );
        assert!(finding.because.contains("11 %"));
    }

    #[test]
    fn cores_that_are_busy_by_steal_alone_are_its_consequence() {
        let diagnosis = judge(&with_cores(slow(), stolen(0.4, 0.55)));
        assert_eq!(codes(&diagnosis), [CODE]);
        assert_eq!(diagnosis.findings[1].code, "cpu-saturated");
        let both = judge(&with_cores(slow(), stolen(0.15, 0.84)));
        assert_eq!(codes(&both).len(), 2);
    }

    #[test]
    fn an_allowance_that_is_used_up_is_found() {
        only_finding(&with_quota(slow(), 1), "unexplained");
        nothing(&with_quota(healthy(), 15));
        let finding = only_finding(&with_quota(slow(), 2), CODE);
        assert!(finding.because.contains("0.25 cores"));
        let remedy = &finding.remedies[0];
        assert_eq!(
            remedy.commands[0],
            "systemctl set-property --runtime wg.service CPUQuota=  # on server"
        );
        assert!(remedy.undo.contains("CPUQuota=25%"));
    }

    #[test]
    fn cores_that_others_keep_busy_do_not_hold_back_a_daemon_without_allowance() {
        let codes_with = |throttled| {
            let mut evidence = with_quota(slow(), throttled);
            each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
                at(sample, End::Far).cores = vec![core(0.99); 4];
            });
            codes(&judge(&evidence)).len()
        };
        assert_eq!((codes_with(9), codes_with(10)), (2, 1));
    }

    #[test]
    fn a_daemon_that_waits_loses_what_its_socket_cannot_hold() {
        let mut evidence = with_quota(slow(), 15);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .socket_drops
                .insert("77".to_owned(), 500);
        });
        assert_eq!(codes(&judge(&evidence)), [CODE]);
    }

    #[test]
    fn heat_counts_where_a_core_is_busy() {
        let hot = |busy: f64| {
            let mut evidence = with_cores(slow(), core(busy));
            each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
                at(sample, End::Far).throttling = Some(Throttling {
                    core_events: 3,
                    package_events: 1,
                });
            });
            evidence
        };
        only_finding(&hot(0.79), "unexplained");
        assert!(only_finding(&hot(0.81), CODE).because.contains("20 times"));
    }

    #[test]
    fn a_governor_is_worth_a_try_where_the_cores_are_full() {
        let governed = |busy: f64, governor: &str| {
            let mut evidence = with_cores(slow(), core(busy));
            let facts = facts_of(&mut evidence, End::Far);
            facts.cpu.governor = Known::Value(governor.to_owned());
            judge(&evidence).findings
        };
        assert!(
            governed(0.5, "powersave")
                .iter()
                .all(|one| one.code != CODE)
        );
        assert!(
            governed(0.97, "schedutil")
                .iter()
                .all(|one| one.code != CODE)
        );
        let findings = governed(0.97, "powersave");
        let own = findings.iter().find(|one| one.code == CODE).unwrap();
        assert_eq!(own.severity, Severity::Info);
        assert_eq!(own.remedies[0].changes[0].value, "performance");
        assert!(own.remedies[0].undo.contains("echo powersave"));
    }

    #[test]
    fn a_cap_of_the_frequency_is_named() {
        let mut evidence = with_cores(slow(), core(0.97));
        facts_of(&mut evidence, End::Far).hardware.frequencies = Known::Value(Frequencies {
            current: vec![1_200_000_000; 4],
            maximum: Some(3_600_000_000),
            allowed: Some(1_200_000_000),
        });
        let diagnosis = judge(&evidence);
        let own = diagnosis.findings.iter().find(|one| one.code == CODE);
        assert!(own.is_some_and(|own| own.because.contains("1.2 GHz of the 3.6 GHz")));
    }
}
