//! `cloud-limit`: the provider holds back or drops packets because the instance's allowance is used up.
//!
//! Known from what Amazon's card counts (`ethtool -S`, `…_allowance_exceeded`; `drivers/net/ethernet/amazon/ena/ena_ethtool.c`):
//! packets that were queued or dropped outside of the machine. Other providers' cards count nothing of the kind.

use std::collections::BTreeSet;
use wirespeed_words::say;

use wirespeed_facts::CountersDelta;
use wirespeed_measure::Direction;

use super::same_direction;
use crate::cards::sum;
use crate::finding::{Check, Found, Outcome, by_hand, line, percent, rates_lines};
use crate::losses::{self, Period};
use crate::view::{ENDS, on, only, or_watched, receiver, sender};
use crate::{End, Evidence, EvidenceLine, Finding, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "cloud-limit";

pub(super) const CHECK: Check = Check {
    brings,
    slows,
    ..Check::new(CODE, || say!("cloud-limit-title"), run)
};

/// One packet in this many may meet a full allowance: bursts of a millisecond do.
const TOLERATED_ONE_IN: u64 = 1000;
/// From one packet in this many on the limit may be what slows the tunnel, and not what the bursts on a lossy road meet.
const SLOWS_ONE_IN: u64 = 100;
/// Above this share of bare the tunnel gets what the instance gives.
const HEALTHY_RATIO: f64 = 0.9;

/// What is limited: bandwidth in and out, packets per second, tracked connections, by the beginning of the statistic's name.
/// That of link-local services (names, time, metadata) does not concern the tunnel.
const ALLOWANCES: [&str; 4] = ["bw_in", "bw_out", "pps", "conntrack"];
const SUFFIX: &str = "_allowance_exceeded";

fn run(evidence: &Evidence) -> Outcome {
    Outcome {
        found: ENDS
            .into_iter()
            .filter_map(|end| found(evidence, end))
            .collect(),
        ..Outcome::default()
    }
}

/// Is an allowance of either end used up so often while this direction is loaded that the tunnel is slower for it?
fn slows(evidence: &Evidence, direction: Direction) -> bool {
    let often = |one: &Exceeded| one.count.saturating_mul(SLOWS_ONE_IN) >= one.of;
    evidence.below(direction, HEALTHY_RATIO) == Some(true)
        && ENDS.into_iter().any(|end| {
            losses::periods(evidence, end).iter().any(|period| {
                period.direction == Some(direction) && exceeded(end, period).iter().any(often)
            })
        })
}

/// What the provider's limit does to the road: packets wait, are lost, and the rate has a ceiling.
fn brings(_: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    [
        "bufferbloat",
        "collapse-above-rate",
        "congestion-control",
        "path-loss",
        "path-slow",
    ]
    .contains(&effect.code.as_str())
        && (same_direction(cause, effect) || effect.direction.is_none())
}

/// An allowance that was used up: its statistic, how often, and how many packets the card carried.
struct Exceeded {
    interface: String,
    allowance: &'static str,
    count: u64,
    of: u64,
}

fn statistic(allowance: &str) -> String {
    format!("{allowance}{SUFFIX}")
}

fn exceeded(end: End, period: &Period<'_>) -> Vec<Exceeded> {
    let interfaces: BTreeSet<&String> = period
        .readings
        .iter()
        .flat_map(|reading| reading.drivers.keys())
        .collect();
    let mut exceeded = Vec::new();
    for interface in interfaces {
        for allowance in ALLOWANCES {
            // What comes in is of no concern to who sends, nor the other way round.
            let concerned = period.direction.is_none_or(|direction| match allowance {
                "bw_in" => receiver(direction) == end,
                "bw_out" => sender(direction) == end,
                _ => true,
            });
            let statistic = statistic(allowance);
            let count = |reading: &CountersDelta| {
                reading
                    .drivers
                    .get(interface)
                    .and_then(|statistics| statistics.get(&statistic).copied())
                    .unwrap_or_default()
            };
            let carried = |reading: &CountersDelta| {
                sum(reading
                    .links
                    .get(interface)
                    .map(|link| link.rx_packets.saturating_add(link.tx_packets)))
            };
            if let Some(losses) = concerned
                .then(|| losses::more_than_one_in(TOLERATED_ONE_IN, period, count, carried))
                .flatten()
            {
                exceeded.push(Exceeded {
                    interface: interface.clone(),
                    allowance,
                    count: losses.lost,
                    of: losses.of,
                });
            }
        }
    }
    exceeded
}

fn found(evidence: &Evidence, end: End) -> Option<Found> {
    let periods = losses::periods(evidence, end);
    let hits: Vec<(&Period<'_>, Vec<Exceeded>)> = periods
        .iter()
        .map(|period| (period, exceeded(end, period)))
        .filter(|(_, exceeded)| !exceeded.is_empty())
        .collect();
    let worst = hits
        .iter()
        .flat_map(|(_, exceeded)| exceeded)
        .max_by_key(|exceeded| exceeded.count)?;
    let directions: Vec<Direction> = hits
        .iter()
        .filter_map(|(period, _)| period.direction)
        .collect();
    let mut lines: Vec<EvidenceLine> = hits
        .iter()
        .flat_map(|(period, exceeded)| {
            let when = or_watched(period.direction);
            exceeded.iter().map(move |one| {
                line(
                    say!(
                        "cloud-limit-line-exceeded",
                        statistic = statistic(one.allowance),
                        when = &when
                    ),
                    on(&one.interface, evidence.name(end)),
                    one.of,
                    one.count,
                    "packets",
                )
            })
        })
        .collect();
    let product = evidence
        .facts(end)
        .and_then(|facts| facts.hardware.product.value());
    if let Some(product) = product {
        lines.push(line(
            say!("cloud-limit-line-machine"),
            evidence.name(end),
            (),
            product.clone(),
            "",
        ));
    }
    lines.extend(rates_lines(evidence, &directions));
    let slower = directions
        .iter()
        .any(|direction| evidence.below(*direction, HEALTHY_RATIO) == Some(true));
    let packets = worst.allowance == "pps";
    let tracked = worst.allowance == "conntrack";
    Some(Found {
        severity: if slower || tracked {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: 0.9,
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "cloud-limit-because",
            count = worst.count,
            interface = &worst.interface,
            share = percent(worst.count as f64 / worst.of.max(1) as f64),
            allowance = worst.allowance
        ),
        remedies: packets
            .then(fewer_packets)
            .into_iter()
            .chain(tracked.then(untracked))
            .chain([larger_instance()])
            .collect(),
        refused: vec![Refusal {
            remedy: say!("cloud-limit-refused", host = evidence.name(end)),
            why: say!("cloud-limit-refused-why"),
        }],
    })
}

fn fewer_packets() -> Remedy {
    by_hand(
        say!("cloud-limit-remedy-packets"),
        say!("cloud-limit-risk-packets"),
    )
}

fn untracked() -> Remedy {
    by_hand(
        say!("cloud-limit-remedy-untracked"),
        say!("cloud-limit-risk-untracked"),
    )
}

fn larger_instance() -> Remedy {
    by_hand(
        say!("cloud-limit-remedy-instance"),
        say!("cloud-limit-risk-instance"),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wirespeed_facts::LinkCounters;
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::causes::congestion_suspected;
    use crate::testing::{
        at, each_sample, healthy, nothing, only_finding, rtt, sequence, set_ratio,
    };
    use crate::{End, Evidence, Severity, judge};

    fn exceeding(end: End, statistic: &str, each: u64) -> Evidence {
        let mut evidence = healthy();
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, end);
            delta.links.insert(
                "ens5".to_owned(),
                LinkCounters {
                    rx_packets: 15_000,
                    tx_packets: 5_000,
                    ..LinkCounters::default()
                },
            );
            delta.drivers.insert(
                "ens5".to_owned(),
                BTreeMap::from([(statistic.to_owned(), each)]),
            );
        });
        evidence
    }

    #[test]
    fn one_packet_in_a_thousand_is_a_burst() {
        nothing(&exceeding(End::Far, "bw_in_allowance_exceeded", 20));
        let finding = only_finding(&exceeding(End::Far, "bw_in_allowance_exceeded", 21), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Info, "server", Some(Direction::Upload))
        );
        assert!(finding.because.contains("105 packets of ens5"));
    }

    #[test]
    fn it_is_a_warning_where_the_tunnel_is_slower_than_bare() {
        let mut evidence = exceeding(End::Far, "pps_allowance_exceeded", 500);
        set_ratio(&mut evidence, Direction::Upload, 0.7);
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.remedies[0].title.starts_with("Fewer and larger"));
        assert!(finding.refused[0].why.contains("outside of this machine"));
    }

    #[test]
    fn bursts_that_a_lossy_road_makes_explain_nothing() {
        let lossy = |each: u64, ratio: f64| {
            let mut evidence = exceeding(End::Far, "bw_in_allowance_exceeded", each);
            set_ratio(&mut evidence, Direction::Upload, ratio);
            evidence.sequences[0] = sequence(Direction::Upload, 3000, 90);
            each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
                sample.retransmits = Some(100);
                sample.loaded_rtt = Some(rtt(0.013));
            });
            evidence
        };
        let few = lossy(24, 0.98);
        assert!(congestion_suspected(&few, Direction::Upload));
        let findings = judge(&few).findings;
        let loss = findings.iter().find(|one| one.code == "path-loss").unwrap();
        assert_eq!(loss.consequence_of, None);
        let many = lossy(300, 0.7);
        assert!(!congestion_suspected(&many, Direction::Upload));
        assert_eq!(only_finding(&many, CODE).severity, Severity::Warning);
    }

    #[test]
    fn for_tracked_connections_the_security_groups_come_first() {
        let finding = only_finding(
            &exceeding(End::Far, "conntrack_allowance_exceeded", 500),
            CODE,
        );
        assert_eq!(finding.remedies.len(), 2);
        assert!(finding.remedies[0].title.starts_with("Security group"));
    }

    #[test]
    fn what_comes_in_does_not_concern_who_sends() {
        nothing(&exceeding(End::Here, "bw_in_allowance_exceeded", 500));
        nothing(&exceeding(End::Far, "bw_out_allowance_exceeded", 500));
        nothing(&exceeding(End::Far, "linklocal_allowance_exceeded", 500));
        only_finding(
            &exceeding(End::Here, "bw_out_allowance_exceeded", 500),
            CODE,
        );
    }
}
