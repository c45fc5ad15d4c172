//! `path-loss`: the road loses packets without any load on it.
//!
//! Known from numbered datagrams outside the tunnel, so few that they fill no queue. Datagrams lost in a row count as one
//! loss: a moment in which everything stood still is no lossy road. Where another congestion control is proved to bear
//! the loss, that is the finding a user can act on, and the loss stands beside it for information.

use wirespeed_measure::{Direction, Via};
use wirespeed_words::say;

use super::congestion_control;
use crate::finding::{Check, Found, Outcome, line, rates_line};
use crate::probe::{Datagrams, Probe};
use crate::road::{self, Unloaded};
use crate::view::{DIRECTIONS, median, receiver, sender, way};
use crate::{Evidence, FarKind, Refusal, Severity};

pub(super) const CODE: &str = "path-loss";

pub(super) const CHECK: Check = Check {
    wants,
    ..Check::new(CODE, || say!("path-loss-title"), run)
};

/// Fewer separate losses than this are chance.
const FEWEST_LOSSES: u64 = 3;
/// At least this share must be lost for sure: a loss-based sender reaches some 150 Mbit/s with it at 10 ms, and less
/// is found on sound lines.
const LOST_AT_LEAST: f64 = 0.000_2;
/// From this share on, calls and games suffer, whatever TCP does about it …
const HARMS_ANYBODY: f64 = 0.005;
/// … if it is this much for sure.
const HARMS_FOR_SURE: f64 = 0.002;
/// Longer than this nobody counts.
const COUNT_AT_MOST_SECONDS: f64 = 9.0;
/// Seconds of a second, longer count.
const COUNT_AGAIN_SECONDS: f64 = 5.0;
/// What a loss-based sender reaches at most, times the square root of the loss, in segments per RTT (Mathis et al. 1997).
const MATHIS: f64 = 1.22;
/// Today's algorithms reach more than that model's; so much at most.
const BEYOND_MATHIS: f64 = 2.0;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    if evidence.passive.is_some() {
        return Outcome::unknown(say!("path-loss-watched"));
    }
    if evidence.far_kind != FarKind::Wirespeed {
        return Outcome::unknown(say!("path-loss-no-wirespeed"));
    }
    for direction in DIRECTIONS {
        let Some(unloaded) = road::unloaded(evidence, direction) else {
            let none = say!("path-loss-not-counted", direction = direction.word());
            outcome.not_known.push(none);
            continue;
        };
        if proved(&unloaded) {
            outcome.found.push(found(evidence, direction, &unloaded));
        }
    }
    outcome
}

/// Enough losses, each by itself, to tell a lossy road from chance.
fn proved(unloaded: &Unloaded) -> bool {
    unloaded.losses >= FEWEST_LOSSES && unloaded.losses_at_least() >= LOST_AT_LEAST
}

/// Is loss on the road without load proved?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    road::unloaded(evidence, direction).is_some_and(|unloaded| proved(&unloaded))
}

fn wants(evidence: &Evidence, direction: Direction) -> Option<Probe> {
    let rate = road::road_rate(evidence, direction)?;
    let unloaded = road::unloaded(evidence, direction);
    // None: those counted before the loads were too many for so slow a road.
    let undecided = unloaded.is_none_or(|unloaded| {
        unloaded.losses > 0 && !proved(&unloaded) && unloaded.seconds < COUNT_AT_MOST_SECONDS
    });
    if undecided {
        return Some(Probe::Sequence(Datagrams::gentle_on(
            rate,
            direction,
            COUNT_AGAIN_SECONDS,
        )));
    }
    // Loads meet loss, small datagrams none: broken bits hit large packets more often.
    let only_large = unloaded.is_some_and(|unloaded| unloaded.losses == 0)
        && congestion_control::suspected(evidence, direction);
    only_large.then(|| {
        Probe::Sequence(Datagrams::at_rate(
            direction,
            // With the headers of 1,360 bytes, less than a tenth of the road.
            (rate * 0.08).min(20e6).round(),
            3.0,
        ))
    })
}

fn found(evidence: &Evidence, direction: Direction, unloaded: &Unloaded) -> Found {
    let (from, to) = (
        evidence.name(sender(direction)),
        evidence.name(receiver(direction)),
    );
    let softened = congestion_control::proved(evidence, direction);
    let mut lines = vec![
        line(
            say!("path-loss-line-datagrams", direction = direction.word()),
            way(from, to),
            unloaded.sent,
            unloaded.sent.saturating_sub(unloaded.lost),
            "packets",
        ),
        line(
            say!("path-loss-line-share", direction = direction.word()),
            way(from, to),
            unloaded.losses_at_least(),
            unloaded.lost_share(),
            "share",
        ),
    ];
    lines.extend(road::outer_loss(evidence, direction).map(|loss| loss.line(evidence, direction)));
    lines.extend(rates_line(evidence, direction));
    Found {
        severity: severity(evidence, direction, unloaded, softened),
        confidence: if unloaded.losses >= 10 { 0.95 } else { 0.8 },
        effect: share_lost_to_it(evidence, direction, unloaded).unwrap_or(0.3),
        host: from.to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: because(from, to, unloaded, softened),
        remedies: Vec::new(),
        refused: vec![Refusal {
            remedy: say!("path-loss-refused"),
            why: say!("path-loss-refused-why"),
        }],
    }
}

fn because(from: &str, to: &str, unloaded: &Unloaded, softened: bool) -> String {
    let Unloaded {
        sent, lost, losses, ..
    } = *unloaded;
    if softened {
        say!(
            "path-loss-because-softened",
            sent = sent,
            lost = lost,
            places = losses,
            from = from,
            to = to
        )
    } else {
        say!(
            "path-loss-because",
            sent = sent,
            lost = lost,
            places = losses,
            from = from,
            to = to
        )
    }
}

fn severity(
    evidence: &Evidence,
    direction: Direction,
    unloaded: &Unloaded,
    softened: bool,
) -> Severity {
    let harms_anybody =
        unloaded.lost_share() >= HARMS_ANYBODY && unloaded.losses_at_least() >= HARMS_FOR_SURE;
    let holds_tcp_back = share_lost_to_it(evidence, direction, unloaded).is_some();
    if (harms_anybody || holds_tcp_back) && !softened {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// Does a loss-based sender get no more through the tunnel than so much loss allows? Then half of it is taken for lost:
/// what the road would carry without the loss nobody knows.
fn share_lost_to_it(evidence: &Evidence, direction: Direction, unloaded: &Unloaded) -> Option<f64> {
    if !congestion_control::backs_off_from_loss(evidence, direction) {
        return None;
    }
    let carried = evidence.comparison(direction)?.tunnel;
    let rtt = median(
        evidence
            .samples(direction, Via::Tunnel)
            .iter()
            .filter_map(|sample| sample.loaded_rtt.as_ref()?.median),
    )
    .or_else(|| evidence.idle_rtt_tunnel.value()?.median)
    .filter(|rtt| *rtt > 0.0)?;
    let segment = f64::from(evidence.tunnel(sender(direction))?.mtu.clamp(576, 9000)) - 52.0;
    let allowed = segment * 8.0 / rtt * MATHIS / unloaded.lost_share().max(1e-9).sqrt();
    (carried <= BEYOND_MATHIS * allowed).then_some(0.5)
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::{Direction, Estimate, Via};

    use super::{CODE, wants};
    use crate::probe::{Datagrams, Probe};
    use crate::testing::{
        each_sample, forget_far, healthy, not_checked, nothing, only_finding, rtt, sample, sequence,
    };
    use crate::{CongestionTrial, Evidence, Severity, judge};

    fn losing(sent: u64, lost: u64) -> Evidence {
        let mut evidence = healthy();
        evidence.sequences[0] = sequence(Direction::Upload, sent, lost);
        evidence
    }

    #[test]
    fn three_separate_losses_in_three_thousand_are_found_and_two_are_counted_again() {
        nothing(&losing(3000, 2));
        assert_eq!(
            wants(&losing(3000, 2), Direction::Upload),
            Some(Probe::Sequence(Datagrams::gentle(Direction::Upload, 5.0)))
        );
        let finding = only_finding(&losing(3000, 3), CODE);
        assert_eq!(
            (finding.host.as_str(), finding.direction),
            ("client", Some(Direction::Upload))
        );
        assert_eq!(wants(&losing(3000, 3), Direction::Upload), None);
        // The same three in a long count are within what sound lines lose.
        nothing(&losing(8000, 3));
        only_finding(&losing(8000, 6), CODE);
    }

    #[test]
    fn many_lost_in_a_row_are_one_loss() {
        let mut evidence = losing(3000, 500);
        evidence.sequences[0].gaps = 2;
        nothing(&evidence);
    }

    #[test]
    fn half_a_percent_is_a_warning_and_less_is_for_information() {
        let bbr = |mut evidence: Evidence| {
            each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
                sample.congestion_control = Some("bbr".to_owned());
            });
            evidence
        };
        assert_eq!(
            only_finding(&bbr(losing(3000, 14)), CODE).severity,
            Severity::Info
        );
        assert_eq!(
            only_finding(&bbr(losing(3000, 15)), CODE).severity,
            Severity::Warning
        );
    }

    #[test]
    fn a_sender_that_gets_no_more_than_the_loss_allows_is_held_back() {
        // 0.2 %, 20 ms: 14.9 Mbit/s by the model.
        let mut evidence = losing(3000, 6);
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Info);
        evidence.comparisons[0].tunnel = 29e6;
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
        evidence.comparisons[0].tunnel = 31e6;
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Info);
    }

    #[test]
    fn where_another_congestion_control_bears_it_that_is_the_finding() {
        let mut evidence = losing(3000, 30);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.retransmits = Some(100);
            sample.loaded_rtt = Some(rtt(0.012));
        });
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
        evidence.congestion_trials.push(CongestionTrial {
            direction: Direction::Upload,
            current: "cubic".to_owned(),
            tried: "bbr".to_owned(),
            gain: Estimate {
                value: 1.0,
                low: 0.5,
                high: 2.0,
            },
            samples: vec![sample(Via::Tunnel, Direction::Upload, 50e6); 10],
        });
        let findings = judge(&evidence).findings;
        let codes: Vec<_> = findings
            .iter()
            .map(|finding| (finding.code.as_str(), finding.severity))
            .collect();
        assert_eq!(
            codes,
            [
                ("congestion-control", Severity::Warning),
                (CODE, Severity::Info)
            ]
        );
    }

    #[test]
    fn loss_of_large_packets_only_is_looked_for_where_the_loads_met_loss() {
        let mut evidence = healthy();
        assert_eq!(wants(&evidence, Direction::Upload), None);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.retransmits = Some(100);
            sample.loaded_rtt = Some(rtt(0.012));
        });
        assert_eq!(
            wants(&evidence, Direction::Upload),
            Some(Probe::Sequence(Datagrams::at_rate(
                Direction::Upload,
                8e6,
                3.0
            )))
        );
    }

    #[test]
    fn on_a_slow_road_fewer_datagrams_are_counted_again() {
        let mut evidence = healthy();
        evidence.comparisons[0].bare = Some(2e6);
        for via in [Via::Bare, Via::Tunnel] {
            each_sample(&mut evidence, Direction::Upload, via, |sample| {
                sample.rate = 2e6;
            });
        }
        let asked = wants(&evidence, Direction::Upload);
        let Some(Probe::Sequence(slower)) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!((slower.rate, slower.payload), (120e3, 64));
        // Theirs count.
        let mut counted = sequence(Direction::Upload, 1172, 20);
        counted.offered = slower.rate;
        evidence.sequences.push(counted);
        only_finding(&evidence, CODE);
    }

    #[test]
    fn without_a_count_it_is_not_known() {
        let mut evidence = healthy();
        evidence.sequences.pop();
        assert!(not_checked(&evidence, CODE));
        let mut evidence = healthy();
        forget_far(&mut evidence);
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
    }
}
