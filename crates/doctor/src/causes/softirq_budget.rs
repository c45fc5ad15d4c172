//! `softirq-budget`: the kernel stops taking packets from the queues before they are empty, and loses some meanwhile,
//! though the core has time.
//!
//! Known from `/proc/net/softnet_stat`, column 3 (`net_rx_action` ran out of `netdev_budget` or `netdev_budget_usecs`),
//! rising together with losses in a ring or backlog. Alone it is harmless: the rest is polled in the next round. With a
//! budget of one poll a pair of veth ran out of it 6,600 to 9,900 times a second on each core and lost nothing (measured).

use serde_json::json;
use wirespeed_measure::Direction;
use wirespeed_settings::Setting;
use wirespeed_words::say;

use super::{backlog_overflow, names_host, ring_overflow, same_direction};
use crate::cards::sum;
use crate::cores;
use crate::finding::{Check, Found, Outcome, command, line, rates_lines, remedy_of};
use crate::losses::{self, Losses, Period, sysctl};
use crate::view::{ENDS, only};
use crate::{Change, End, Evidence, Finding, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "softirq-budget";

pub(super) const CHECK: Check = Check {
    brings,
    follows_from,
    ..Check::new(CODE, || say!("softirq-budget-title"), run)
};

const BUDGET: &str = "net.core.netdev_budget";
const TIME: &str = "net.core.netdev_budget_usecs";
/// What Linux gives, packets (`net/core/hotdata.c`).
const STOCK_BUDGET: u64 = 300;
/// The least Linux gives, microseconds: two ticks of its clock, 2,000 at 1,000 Hz and 8,000 at 250 Hz.
const STOCK_TIME: u64 = 2000;
/// More would keep programs from a core for too long.
const MOST_BUDGET: u64 = 4800;
const MOST_TIME: u64 = 50_000;
/// Fewer rounds cut short than this are chance.
const FEWEST: u64 = 20;
/// Share of the rounds that were cut short from which the budget is what ends them.
const SHARE: f64 = 0.05;
/// A core busier than this has no time left, whatever the budget.
const ROOM: f64 = 0.9;

fn run(evidence: &Evidence) -> Outcome {
    Outcome {
        found: ENDS
            .into_iter()
            .filter_map(|end| found(evidence, end))
            .collect(),
        ..Outcome::default()
    }
}

/// A period in which rounds were cut short and packets were lost.
struct Hit {
    direction: Direction,
    cut_short: u64,
    rounds: u64,
    losses: Losses,
    busiest: f64,
}

fn hit(evidence: &Evidence, end: End, period: &Period<'_>) -> Option<Hit> {
    let direction = period.direction?;
    let cut_short = sum(period
        .readings
        .iter()
        .flat_map(|reading| &reading.softnet)
        .map(|core| core.time_squeeze));
    let rounds = sum(period
        .readings
        .iter()
        .filter_map(|reading| reading.softirqs.get("NET_RX"))
        .flatten()
        .copied());
    let often = rounds > 0 && cut_short as f64 >= SHARE * rounds as f64;
    let losses = ring_overflow::lost(evidence, end, period)
        .or_else(|| backlog_overflow::lost(evidence, end, period))?;
    let busiest = cores::of(evidence, end, direction)?.busiest;
    (cut_short >= FEWEST && often && busiest < ROOM).then_some(Hit {
        direction,
        cut_short,
        rounds,
        losses,
        busiest,
    })
}

/// Is the budget known to be smaller than any kernel's own? Then it is the cause of what is lost.
fn is_small(evidence: &Evidence, end: End) -> bool {
    let below = |name, stock| {
        evidence
            .facts(end)
            .and_then(|facts| sysctl(facts, name))
            .is_some_and(|now| now < stock)
    };
    below(BUDGET, STOCK_BUDGET) || below(TIME, STOCK_TIME)
}

fn loses(code: &str) -> bool {
    [ring_overflow::CODE, backlog_overflow::CODE].contains(&code)
}

fn brings(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    cause.severity >= Severity::Warning
        && loses(&effect.code)
        && (same_direction(cause, effect) || effect.direction.is_none())
        && names_host(evidence, cause, &effect.host)
}

/// With the kernel's own budget it is the load that is too much for the ring or the backlog at once.
fn follows_from(evidence: &Evidence, cause: &Finding, own: &Finding) -> bool {
    own.severity < Severity::Warning
        && loses(&cause.code)
        && (same_direction(cause, own) || own.direction.is_none())
        && names_host(evidence, cause, &own.host)
}

fn found(evidence: &Evidence, end: End) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<Hit> = periods
        .iter()
        .filter_map(|period| hit(evidence, end, period))
        .collect();
    let first = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|hit| hit.direction).collect();
    let small = is_small(evidence, end);
    let facts = evidence.facts(end)?;
    let mut lines = Vec::new();
    for hit in &hits {
        let when = hit.direction.word();
        lines.push(line(
            say!("softirq-budget-line-rounds", direction = &when),
            evidence.name(end),
            hit.rounds,
            hit.cut_short,
            "",
        ));
        lines.push(line(
            say!("softirq-budget-line-lost", direction = &when),
            evidence.name(end),
            hit.losses.of,
            hit.losses.lost,
            "packets",
        ));
        lines.push(line(
            say!("softirq-budget-line-busiest", direction = &when),
            evidence.name(end),
            (),
            hit.busiest,
            "share",
        ));
    }
    for (name, unit) in [(BUDGET, "packets"), (TIME, "microseconds")] {
        if let Some(now) = sysctl(facts, name) {
            lines.push(line(name, evidence.name(end), (), now, unit));
        }
    }
    lines.extend(rates_lines(evidence, &directions));
    Some(Found {
        severity: if small {
            losses::severity(evidence, &directions)
        } else {
            Severity::Info
        },
        confidence: if small { 0.75 } else { 0.5 },
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "softirq-budget-because",
            cut = first.cut_short,
            rounds = first.rounds,
            lost = first.losses.lost
        ),
        remedies: larger(evidence, end).into_iter().collect(),
        refused: refused(),
    })
}

fn larger(evidence: &Evidence, end: End) -> Option<Remedy> {
    let facts = evidence.facts(end)?;
    let (Some(budget_now), Some(time_now)) = (sysctl(facts, BUDGET), sysctl(facts, TIME)) else {
        return Some(twice_what_is_hidden(evidence, end));
    };
    let next = |now: u64, stock: u64, most: u64| now.saturating_mul(2).max(stock).min(most);
    let budget = next(budget_now, STOCK_BUDGET, MOST_BUDGET);
    let time = next(time_now, STOCK_TIME, MOST_TIME);
    if budget <= budget_now && time <= time_now {
        return None;
    }
    let change = |name: &str, value: u64, now: u64| {
        let setting = Setting::Sysctl {
            name: name.to_owned(),
        };
        let change = Change {
            end,
            setting,
            value: json!(value.max(now).to_string()),
        };
        (change, json!(now.to_string()))
    };
    let milliseconds = time as f64 / 1e3;
    let title = say!(
        "softirq-budget-remedy",
        packets = budget,
        milliseconds = milliseconds
    );
    let risk = say!("softirq-budget-risk", milliseconds = milliseconds);
    let persistence = say!(
        "softirq-budget-persistence",
        packets = format!("{BUDGET} = {budget}"),
        time = format!("{TIME} = {time}")
    );
    let mut remedy = remedy_of(
        evidence,
        title,
        vec![
            change(BUDGET, budget, budget_now),
            change(TIME, time, time_now),
        ],
        Goal::Goodput,
        risk,
    );
    remedy.persistence = persistence;
    Some(remedy)
}

/// A network namespace does not show them, and the kernel's own time depends on its clock: only the host knows what twice is.
fn twice_what_is_hidden(evidence: &Evidence, end: End) -> Remedy {
    let scaled = |by: &str| {
        [BUDGET, TIME].map(|name| {
            let text = format!(
                "sysctl -w {name}=$(( $(sysctl -n {name}) {by} ))  # {}",
                say!("softirq-budget-namespace")
            );
            command(evidence, end, text)
        })
    };
    Remedy {
        title: say!("softirq-budget-remedy-hidden"),
        changes: Vec::new(),
        commands: scaled("* 2").to_vec(),
        goal: Goal::Goodput,
        persistence: say!(
            "softirq-budget-persistence-hidden",
            command = format!("sysctl {BUDGET} {TIME}")
        ),
        risk: say!("softirq-budget-risk-hidden", time = TIME),
        undo: scaled("/ 2").join("\n"),
    }
}

fn refused() -> Vec<Refusal> {
    vec![
        Refusal {
            remedy: say!("softirq-budget-refused-weight"),
            why: say!("softirq-budget-refused-why-weight"),
        },
        Refusal {
            remedy: "net.core.netdev_tstamp_prequeue=0".to_owned(),
            why: say!("softirq-budget-refused-why-time-stamps"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Known, Softnet};
    use wirespeed_measure::{Direction, Via};

    use super::{BUDGET, CODE, TIME};
    use crate::testing::{
        at, codes, core, each_sample, facts_of, healthy, nothing, only_finding, set_ratio,
    };
    use crate::{End, Evidence, Severity, judge};

    fn squeezed(cut_short: u64, dropped: u64) -> Evidence {
        let mut evidence = healthy();
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            delta.softnet = vec![Softnet {
                processed: 10_000,
                dropped,
                time_squeeze: cut_short,
            }];
            delta.softirqs.insert("NET_RX".to_owned(), vec![1000]);
            delta.links.get_mut("wg1").unwrap().rx_dropped = dropped;
        });
        evidence
    }

    fn with_budget(mut evidence: Evidence, packets: &str, microseconds: &str) -> Evidence {
        let sysctls = &mut facts_of(&mut evidence, End::Far).sysctls;
        sysctls.insert(BUDGET.to_owned(), Known::Value(packets.to_owned()));
        sysctls.insert(TIME.to_owned(), Known::Value(microseconds.to_owned()));
        evidence
    }

    #[test]
    fn alone_it_is_harmless() {
        nothing(&squeezed(999, 0));
        nothing(&with_budget(squeezed(999, 0), "1", "100"));
    }

    #[test]
    fn a_small_budget_is_the_cause_of_what_is_lost() {
        let evidence = with_budget(squeezed(500, 100), "30", "2000");
        let diagnosis = judge(&evidence);
        assert_eq!(codes(&diagnosis), [CODE]);
        assert_eq!(diagnosis.findings[0].severity, Severity::Warning);
        assert_eq!(diagnosis.findings[1].consequence_of.as_deref(), Some(CODE));
        let remedy = &diagnosis.findings[0].remedies[0];
        assert_eq!(remedy.changes[0].value, "300");
        assert_eq!(remedy.changes[1].value, "4000");
        assert!(remedy.undo.contains("netdev_budget='30'"));
    }

    #[test]
    fn where_the_budget_is_hidden_what_is_there_is_doubled() {
        let diagnosis = judge(&squeezed(500, 100));
        let own = diagnosis.findings.iter().find(|one| one.code == CODE);
        let remedy = &own.unwrap().remedies[0];
        assert!(remedy.changes.is_empty());
        assert!(remedy.commands[1].starts_with(
            "sysctl -w net.core.netdev_budget_usecs=$(( $(sysctl -n net.core.netdev_budget_usecs) * 2 ))"
        ));
        assert!(remedy.undo.contains("netdev_budget_usecs) / 2 ))"));
        let said = [&remedy.title, &remedy.persistence, &remedy.risk]
            .map(String::as_str)
            .join(" ");
        assert!(!said.contains("600") && !said.contains("4000"), "{said}");
    }

    #[test]
    fn with_the_kernels_own_budget_it_is_the_load() {
        let diagnosis = judge(&with_budget(squeezed(500, 100), "300", "8000"));
        assert_eq!(codes(&diagnosis), ["backlog-overflow"]);
        let own = &diagnosis.findings[1];
        assert_eq!(
            (
                own.code.as_str(),
                own.severity,
                own.consequence_of.as_deref()
            ),
            (CODE, Severity::Info, Some("backlog-overflow"))
        );
    }

    #[test]
    fn seldom_or_on_a_full_core_it_is_not_the_budget() {
        let seldom = judge(&with_budget(squeezed(49, 100), "30", "2000"));
        assert_eq!(codes(&seldom), ["backlog-overflow"]);
        assert_eq!(seldom.findings.len(), 1);
        let mut full = with_budget(squeezed(500, 100), "30", "2000");
        set_ratio(&mut full, Direction::Upload, 0.6);
        each_sample(&mut full, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.95); 4];
        });
        assert!(judge(&full).findings.iter().all(|one| one.code != CODE));
    }

    #[test]
    fn a_large_budget_gets_no_larger_one() {
        let diagnosis = judge(&with_budget(squeezed(500, 100), "9600", "60000"));
        let own = diagnosis.findings.iter().find(|one| one.code == CODE);
        assert!(own.is_some_and(|own| own.remedies.is_empty() && own.refused.len() == 2));
        only_finding(
            &with_budget(squeezed(10, 100), "30", "2000"),
            "backlog-overflow",
        );
    }
}
