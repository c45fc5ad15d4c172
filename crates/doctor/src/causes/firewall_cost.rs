//! `firewall-cost`: a packet of the tunnel is compared with so many rules that the processor feels it.
//!
//! Said only where the processor has no time to spare, and reckoned from what was counted: rules on the way of the tunnel's
//! packets, packets, and the time the cores were busy. How the tunnel does beside bare says nothing of it: packets of the
//! bare path pass rules as well.

use std::collections::BTreeMap;

use wirespeed_facts::{CoreTime, CountersDelta, Known, TunnelFilter};
use wirespeed_measure::{Direction, Via};
use wirespeed_words::say;

use super::{cpu_saturated, names_host, one_core_bound, starves};
use crate::finding::{Check, Found, Outcome, command, line, percent, rates_line};
use crate::view::{DIRECTIONS, ENDS, median, moved, only};
use crate::{End, Evidence, Finding, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "firewall-cost";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, || say!("firewall-cost-title"), run)
};

/// What comparing a packet with one rule takes, seconds. Measured with nftables' own rules and those of iptables-nft alike,
/// 50 to 800 of them: 14 to 18 ns on a virtual EPYC of 2022. Less is reckoned, for faster cores.
const SECONDS_PER_RULE: f64 = 10e-9;
/// Share of the busy time from which rules are worth a word. In an experiment with wireguard-go 100 rules at each end took
/// 4 % of the goodput, 200 took 11 %, 400 took 31 %; with wirespeed-device 200, 400 and 800 took 11 %, 22 % and 36 %.
const WORTH_A_WORD: f64 = 0.05;
/// Share from which they are a warning.
const WORTH_A_WARNING: f64 = 0.1;
/// Share from which they explain a processor without time to spare.
const EXPLAINS: f64 = 0.2;
/// With fewer rules on one way than this, what the reckoning says is something else.
const FEWEST_RULES: usize = 50;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let hits: Vec<Hit> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| hit(evidence, end, direction))
            .collect();
        outcome.found.extend(found(evidence, end, &hits));
        let full = || {
            DIRECTIONS
                .into_iter()
                .any(|direction| cpu_saturated::full(evidence, end, direction))
        };
        let host = evidence.name(end);
        let unseen = match evidence.facts(end).map(|facts| &facts.firewall) {
            Some(Known::Unknown(why)) => {
                Some(say!("firewall-cost-unknown", host = host, because = why))
            }
            Some(Known::Value(firewall)) if firewall.legacy => {
                Some(say!("firewall-cost-unknown-legacy", host = host))
            }
            _ => None,
        };
        outcome.not_known.extend(unseen.filter(|_| full()));
    }
    outcome
}

/// Where rules take a large part of the processor, it is full for them; and what a full processor brings about follows.
fn brings(evidence: &Evidence, own: &Finding, effect: &Finding) -> bool {
    let share = |direction: Direction| -> f64 {
        ENDS.into_iter()
            .filter(|end| evidence.one_kernel() || evidence.name(*end) == own.host)
            .filter_map(|end| hit(evidence, end, direction))
            .map(|hit| hit.share)
            .sum()
    };
    let busy = [cpu_saturated::CODE, one_core_bound::CODE].contains(&effect.code.as_str());
    let mut directions = DIRECTIONS
        .into_iter()
        .filter(|direction| effect.direction.is_none_or(|one| one == *direction));
    (busy
        && names_host(evidence, own, &effect.host)
        && directions.all(|direction| share(direction) >= EXPLAINS))
        || starves(evidence, own, effect)
}

struct Hit {
    direction: Direction,
    /// Of the busy time of the machine, 0 to 1.
    share: f64,
}

fn hit(evidence: &Evidence, end: End, direction: Direction) -> Option<Hit> {
    let filter = filter(evidence, end)?;
    let most = [
        &filter.outer_in,
        &filter.outer_out,
        &filter.inner_in,
        &filter.inner_out,
    ]
    .map(rules);
    if most.into_iter().all(|rules| rules < FEWEST_RULES)
        || !cpu_saturated::full(evidence, end, direction)
    {
        return None;
    }
    let share = median(
        evidence
            .samples(direction, Via::Tunnel)
            .into_iter()
            .filter_map(|sample| passed(evidence, end, moved(sample, end)?))
            .map(|passed| share(filter, &passed)),
    )?;
    (share >= WORTH_A_WORD).then_some(Hit { direction, share })
}

/// What the firewall of an end means for the tunnel.
pub(super) fn filter(evidence: &Evidence, end: End) -> Option<&TunnelFilter> {
    let tunnel = evidence.tunnel(end)?;
    let firewall = evidence.facts(end)?.firewall.value()?;
    firewall.tunnels.get(&tunnel.name)
}

/// Rules on one way, all hooks together; a packet is either forwarded or this machine's own.
fn rules(way: &BTreeMap<String, usize>) -> usize {
    let either = ["forward", "input", "output"];
    let of = |hook: &str| way.get(hook).copied().unwrap_or_default();
    way.iter()
        .filter(|(hook, _)| !either.contains(&hook.as_str()))
        .map(|(_, count)| *count)
        .chain(either.map(of).into_iter().max())
        .fold(0, usize::saturating_add)
}

/// Packets of the tunnel that passed the hooks of an end, as its firewall saw them.
pub(super) struct Passed {
    /// Sealed ones that came in.
    pub(super) outer_in: u64,
    /// Sealed ones that left.
    pub(super) outer_out: u64,
    /// Those that came out of the tunnel.
    pub(super) inner_in: u64,
    /// Those that went into it.
    pub(super) inner_out: u64,
    /// Seconds the cores were busy meanwhile, without what other processes took.
    pub(super) busy: f64,
}

/// What passed an end while a load ran; `None` when the cores did nothing or the tunnel's link is unknown.
pub(super) fn passed(evidence: &Evidence, end: End, delta: &CountersDelta) -> Option<Passed> {
    let busy: f64 = delta
        .cores
        .iter()
        .map(|core: &CoreTime| core.user + core.system + core.irq + core.softirq)
        .sum();
    let busy = busy - cpu_saturated::of_others(evidence, end, delta).sum::<f64>();
    let link = delta.links.get(&evidence.tunnel(end)?.name)?;
    let ip = |name: &str| {
        ["Ip", "Ip6"]
            .iter()
            .filter_map(|family| delta.protocols.get(&format!("{family}.{name}")))
            .fold(0_u64, |sum, one| sum.saturating_add(*one))
    };
    // IP counts packets as rules see them: after they were coalesced, before they are cut. The kernel's tunnel sends and
    // receives one outer packet for each inner one, and its link counts them like that: of the inner ones at most those
    // passed the hooks that IP counted beyond the outer ones.
    let outer_and_inner = |counted: u64, forwarded: u64, by_link: u64| {
        if evidence.is_userspace(end) {
            (counted.saturating_sub(by_link), by_link)
        } else {
            let all = counted.saturating_add(forwarded);
            (by_link, by_link.min(all.saturating_sub(by_link)))
        }
    };
    let forwarded = ip("ForwDatagrams").saturating_add(ip("OutForwDatagrams"));
    let (outer_in, inner_in) = outer_and_inner(ip("InReceives"), 0, link.rx_packets);
    let (outer_out, inner_out) = outer_and_inner(ip("OutRequests"), forwarded, link.tx_packets);
    (busy > 0.0).then_some(Passed {
        outer_in,
        outer_out,
        inner_in,
        inner_out,
        busy,
    })
}

/// Share of the busy time that comparing packets with rules took.
fn share(filter: &TunnelFilter, passed: &Passed) -> f64 {
    let compared: f64 = [
        (&filter.outer_in, passed.outer_in),
        (&filter.outer_out, passed.outer_out),
        (&filter.inner_in, passed.inner_in),
        (&filter.inner_out, passed.inner_out),
    ]
    .into_iter()
    .map(|(way, packets)| rules(way) as f64 * packets as f64)
    .sum();
    (compared * SECONDS_PER_RULE / passed.busy).clamp(0.0, 1.0)
}

/// Says what the rules of a hook are compared with.
type RulesOf = fn(&str) -> String;

fn found(evidence: &Evidence, end: End, hits: &[Hit]) -> Option<Found> {
    let worst = hits
        .iter()
        .max_by(|one, other| one.share.total_cmp(&other.share))?;
    let filter = filter(evidence, end)?;
    let directions: Vec<Direction> = hits.iter().map(|hit| hit.direction).collect();
    let place = evidence.interface_at(end);
    let ways: [(RulesOf, &BTreeMap<String, usize>); 4] = [
        (
            |hook| say!("firewall-cost-line-outer-in", hook = hook),
            &filter.outer_in,
        ),
        (
            |hook| say!("firewall-cost-line-outer-out", hook = hook),
            &filter.outer_out,
        ),
        (
            |hook| say!("firewall-cost-line-inner-in", hook = hook),
            &filter.inner_in,
        ),
        (
            |hook| say!("firewall-cost-line-inner-out", hook = hook),
            &filter.inner_out,
        ),
    ];
    let mut lines = Vec::new();
    for (what, way) in ways {
        for (hook, count) in way.iter().filter(|(_, count)| **count > 0) {
            lines.push(line(what(hook), &place, (), *count as u64, "rules"));
        }
    }
    for hit in hits {
        lines.push(line(
            say!("firewall-cost-line-share", direction = hit.direction.word()),
            &place,
            (),
            hit.share,
            "share",
        ));
        lines.extend(rates_line(evidence, hit.direction));
    }
    let most = ways
        .iter()
        .map(|(_, way)| rules(way))
        .max()
        .unwrap_or_default();
    Some(Found {
        severity: if worst.share >= EXPLAINS && directions.iter().any(|one| evidence.crippled(*one))
        {
            Severity::Critical
        } else if worst.share >= WORTH_A_WARNING {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: if worst.share >= EXPLAINS { 0.8 } else { 0.6 },
        effect: worst.share,
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "firewall-cost-because",
            rules = most,
            host = evidence.name(end),
            share = percent(worst.share)
        ),
        remedies: remedies(evidence, end, filter),
        refused: vec![Refusal {
            remedy: say!("firewall-cost-refused", host = evidence.name(end)),
            why: say!("firewall-cost-refused-why"),
        }],
    })
}

fn remedies(evidence: &Evidence, end: End, filter: &TunnelFilter) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let outer = rules(&filter.outer_in) + rules(&filter.outer_out);
    let inner = rules(&filter.inner_in) + rules(&filter.inner_out);
    let port = evidence.tunnel(end).and_then(|tunnel| tunnel.listen_port);
    if let (true, Some(port)) = (outer >= FEWEST_RULES, port) {
        remedies.push(Remedy {
            title: say!("firewall-cost-remedy-port"),
            changes: Vec::new(),
            commands: vec![
                command(evidence, end, "nft --handle list ruleset  # FAMILY, TABLE and CHAIN of the hooks above"),
                command(evidence, end, format!("nft insert rule FAMILY TABLE INPUT_CHAIN udp dport {port} accept")),
                command(evidence, end, format!("nft insert rule FAMILY TABLE OUTPUT_CHAIN udp sport {port} accept")),
            ],
            goal: Goal::Goodput,
            persistence: say!("firewall-cost-persistence-port"),
            risk: say!("firewall-cost-risk-port"),
            undo: command(evidence, end, "nft delete rule FAMILY TABLE CHAIN handle HANDLE  # from nft --handle list ruleset"),
        });
    }
    remedies.push(Remedy {
        title: if inner > outer {
            say!("firewall-cost-remedy-set-inner")
        } else {
            say!("firewall-cost-remedy-set")
        },
        changes: Vec::new(),
        commands: Vec::new(),
        goal: Goal::Goodput,
        persistence: say!("firewall-cost-persistence-set"),
        risk: say!("firewall-cost-risk-set"),
        undo: say!("firewall-cost-undo-set"),
    });
    remedies
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Firewall, Implementation, ProcessTime};

    use super::*;
    use crate::judge;
    use crate::testing::{
        at, codes, core, each_sample, facts_of, healthy, not_checked, nothing, only_finding,
        set_ratio, tunnel_of,
    };

    /// Four full cores for two seconds, and 50,000 packets in: one rule for all takes 0.5 ms of 8 s.
    fn with_rules(outer_in: usize, busy: f64, ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, ratio);
        facts_of(&mut evidence, End::Far).firewall = Known::Value(Firewall {
            tunnels: [(
                "wg1".to_owned(),
                TunnelFilter {
                    outer_in: [("input".to_owned(), outer_in)].into(),
                    ..TunnelFilter::default()
                },
            )]
            .into(),
            ..Firewall::default()
        });
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            delta.cores = vec![core(busy); 4];
            delta.links.get_mut("wg1").unwrap().rx_packets = 50_000;
            delta.protocols.insert("Ip.InReceives".to_owned(), 100_000);
        });
        evidence
    }

    fn finding(evidence: &Evidence) -> Option<Finding> {
        judge(evidence)
            .findings
            .into_iter()
            .find(|finding| finding.code == CODE)
    }

    #[test]
    fn rules_are_found_by_their_part_of_the_busy_time() {
        // 4 s busy in all; n rules × 50,000 packets × 10 ns.
        assert_eq!(finding(&with_rules(390, 1.0, 0.5)), None);
        let info = finding(&with_rules(410, 1.0, 0.5)).unwrap();
        assert_eq!(
            (info.severity, info.host.as_str()),
            (Severity::Info, "server")
        );
        let warning = finding(&with_rules(810, 1.0, 0.5)).unwrap();
        assert_eq!(warning.severity, Severity::Warning);
        assert!(warning.refused[0].remedy.contains("switching the firewall"));
        let insert = "rule FAMILY TABLE INPUT_CHAIN udp dport 51820 accept";
        assert!(warning.remedies[0].commands[1].contains(insert));
    }

    #[test]
    fn a_large_part_explains_the_full_processor() {
        let evidence = with_rules(1500, 1.0, 0.5);
        assert_eq!(codes(&judge(&evidence)), ["cpu-saturated", CODE]);
        let severity = |ratio| only_finding(&with_rules(1700, 1.0, ratio), CODE).severity;
        assert_eq!(severity(0.5), Severity::Warning);
        assert_eq!(severity(0.4), Severity::Critical);
    }

    #[test]
    fn rules_cost_nothing_while_there_is_time_to_spare() {
        nothing(&with_rules(5000, 0.5, 0.85));
    }

    #[test]
    fn the_time_of_other_work_does_not_hide_them() {
        let mut evidence = with_rules(210, 1.0, 0.5);
        assert_eq!(finding(&evidence), None);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).processes.insert(
                "7".to_owned(),
                ProcessTime {
                    program: "rustc".to_owned(),
                    cpu: 2.0,
                },
            );
        });
        assert_eq!(finding(&evidence).unwrap().severity, Severity::Info);
    }

    #[test]
    fn the_time_of_a_daemon_whose_process_is_not_known_is_not_other_work() {
        let mut evidence = with_rules(210, 1.0, 0.5);
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Userspace {
            pid: None,
            program: None,
            cpus_allowed: None,
        };
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let processes = &mut at(sample, End::Far).processes;
            processes.get_mut("100").unwrap().cpu = 2.0;
        });
        assert_eq!(finding(&evidence), None);
    }

    #[test]
    fn rules_that_slow_the_bare_path_as_well_are_found_all_the_same() {
        only_finding(&with_rules(1000, 1.0, 0.95), CODE);
    }

    #[test]
    fn a_firewall_that_could_not_be_read_is_said_where_it_might_matter() {
        let mut evidence = with_rules(1700, 1.0, 0.5);
        facts_of(&mut evidence, End::Far).firewall = Known::because("nft did not end within 5s");
        assert!(not_checked(&evidence, CODE));
        let mut evidence = with_rules(10, 1.0, 0.5);
        assert!(!not_checked(&evidence, CODE));
        if let Known::Value(firewall) = &mut facts_of(&mut evidence, End::Far).firewall {
            firewall.legacy = true;
        }
        assert!(not_checked(&evidence, CODE));
        assert!(!not_checked(&healthy(), CODE));
    }

    #[test]
    fn a_packet_is_forwarded_or_ours() {
        let way = |hooks: &[(&str, usize)]| {
            rules(
                &hooks
                    .iter()
                    .map(|(hook, count)| ((*hook).to_owned(), *count))
                    .collect(),
            )
        };
        assert_eq!(way(&[("prerouting", 3), ("input", 5), ("forward", 9)]), 12);
        assert_eq!(way(&[("output", 5), ("postrouting", 1)]), 6);
        assert_eq!(way(&[]), 0);
    }

    #[test]
    fn another_tunnels_rules_are_not_ours() {
        let mut evidence = with_rules(1700, 1.0, 0.5);
        if let Known::Value(firewall) = &mut facts_of(&mut evidence, End::Far).firewall {
            let filter = firewall.tunnels.remove("wg1").unwrap();
            firewall.tunnels.insert("wg9".to_owned(), filter);
        }
        assert_eq!(finding(&evidence), None);
    }
}
