//! `mtu-below-path`: the tunnel's packets are smaller than the path would carry.
//!
//! The base is path MTU − 80 on IPv4 too: 1420 on a path of 1500 is everybody's default and leaves room for an IPv6
//! endpoint, so it is no fault. On a road limited by bandwidth 1280 instead of that costs under 1 %; where an end runs
//! out of processor or packets it is up to 10 %.

use crate::finding::{Check, Found, Outcome, line, percent, rates_line};
use crate::mtu;
use crate::view::{DIRECTIONS, ENDS, only, receiver, sender};
use crate::{End, Evidence, Remedy, Severity};
use wirespeed_measure::{Direction, PathMtu};
use wirespeed_words::say;

pub(super) const CODE: &str = "mtu-below-path";

pub(super) const CHECK: Check = Check::new(CODE, || say!("mtu-below-path-title"), run);

/// What a tunnel needs on top of its MTU when the endpoint may be IPv6.
const ROOM: u32 = 80;
/// Less than this is not worth a word, bytes.
const TOLERATED: u32 = 20;
/// An end this busy during the tunnel's loads is limited by work per packet.
const BUSY: f64 = 0.9;
/// IPv4 and TCP headers, bytes of each packet that are no payload.
const HEADERS: u32 = 40;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome {
        not_known: super::mtu_exceeds_path::unknown(evidence),
        ..Outcome::default()
    };
    let wasteful: Vec<(Direction, u32, u32)> = DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            let passed = mtu::probe(evidence, direction)?.largest_passed?;
            let now = evidence.tunnel(sender(direction))?.mtu;
            let could = passed.saturating_sub(ROOM);
            (could > now.saturating_add(TOLERATED)).then_some((direction, now, passed))
        })
        .collect();
    // One direction that needs the small MTU justifies it for both ends.
    let justified = DIRECTIONS.into_iter().any(|direction| {
        mtu::excess(evidence, direction).is_some()
            || wasteful
                .first()
                .is_some_and(|(_, now, _)| fits_only(evidence, direction, *now))
    });
    if !justified && confirmed(evidence) {
        outcome.found.extend(found(evidence, &wasteful));
    }
    outcome
}

/// Were both directions tried? A size must pass both ways, for it is set at both ends.
fn confirmed(evidence: &Evidence) -> bool {
    let there_and_back = |probe: &PathMtu| probe.method == "icmp-echo-and-reply";
    evidence.path_mtu.iter().any(there_and_back)
        || DIRECTIONS
            .into_iter()
            .filter_map(|direction| mtu::probe(evidence, direction)?.largest_passed)
            .count()
            == DIRECTIONS.len()
}

/// This direction was probed and carries nothing worth raising `now` to.
fn fits_only(evidence: &Evidence, direction: Direction, now: u32) -> bool {
    mtu::probe(evidence, direction)
        .and_then(|probe| probe.largest_passed)
        .is_some_and(|passed| passed.saturating_sub(ROOM) <= now.saturating_add(TOLERATED))
}

fn found(evidence: &Evidence, wasteful: &[(Direction, u32, u32)]) -> Option<Found> {
    let &(first, now, passed) = wasteful.first()?;
    let directions: Vec<Direction> = wasteful.iter().map(|(direction, ..)| *direction).collect();
    let could = DIRECTIONS
        .into_iter()
        .filter_map(|direction| mtu::probe(evidence, direction)?.largest_passed)
        .min()
        .unwrap_or(passed)
        .saturating_sub(ROOM);
    let limited: Vec<(Direction, End, f64)> = directions
        .iter()
        .filter_map(|direction| limited_end(evidence, *direction))
        .collect();
    let mut lines = Vec::new();
    for (direction, now, passed) in wasteful {
        lines.push(line(
            say!(
                "mtu-below-path-line-mtu",
                room = ROOM,
                direction = direction.word()
            ),
            evidence.interface_at(sender(*direction)),
            *now,
            passed.saturating_sub(ROOM),
            "bytes",
        ));
        lines.extend(rates_line(evidence, *direction));
    }
    for (direction, end, busy) in &limited {
        lines.push(line(
            say!("mtu-below-path-line-busiest", direction = direction.word()),
            evidence.name(*end),
            (),
            *busy,
            "share",
        ));
    }
    let more = f64::from(could) / f64::from(now.max(1)) - 1.0;
    let worth = payload(evidence, could) / payload(evidence, now) - 1.0;
    Some(Found {
        severity: if limited.is_empty() {
            Severity::Info
        } else {
            Severity::Warning
        },
        confidence: if limited.is_empty() { 0.9 } else { 0.7 },
        effect: more.clamp(0.0, 0.1),
        host: evidence.name(sender(first)).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: if limited.is_empty() {
            say!(
                "mtu-below-path-because",
                path = passed,
                could = could,
                now = now,
                worth = worth * 100.0
            )
        } else {
            say!(
                "mtu-below-path-because-busy",
                path = passed,
                could = could,
                now = now,
                more = percent(more)
            )
        },
        remedies: vec![raise(evidence, could)],
        refused: Vec::new(),
    })
}

/// Share of a full packet on the road that is payload.
fn payload(evidence: &Evidence, mtu: u32) -> f64 {
    f64::from(mtu.saturating_sub(HEADERS).max(1))
        / f64::from(mtu.saturating_add(mtu::overhead(evidence)))
}

fn raise(evidence: &Evidence, could: u32) -> Remedy {
    let mut remedy = mtu::set_mtu(
        evidence,
        could,
        say!("mtu-below-path-remedy", mtu = could),
        |now, then| now < then,
        say!("mtu-below-path-risk"),
    );
    let others = ENDS
        .into_iter()
        .filter_map(|end| Some((end, other_peers(evidence, end)?)))
        .max_by_key(|(_, others)| *others);
    if let Some((end, others)) = others {
        // No measurement of this one peer tells whether the others' full packets still arrive.
        remedy.changes.clear();
        remedy.risk = say!(
            "mtu-below-path-risk-others",
            others = others,
            place = evidence.interface_at(end)
        );
    }
    remedy
}

/// How many other peers share an end's interface; `None` where there are none.
fn other_peers(evidence: &Evidence, end: End) -> Option<usize> {
    let peers = evidence.tunnel(end)?.peers.value()?;
    peers.len().checked_sub(1).filter(|others| *others > 0)
}

/// An end that limits the tunnel by work per packet in this direction.
fn limited_end(evidence: &Evidence, direction: Direction) -> Option<(Direction, End, f64)> {
    if evidence.below(direction, 0.9) != Some(true) {
        return None;
    }
    [sender(direction), receiver(direction)]
        .into_iter()
        .find_map(|end| {
            let busy = crate::cores::of(evidence, end, direction)?.busiest;
            (busy >= BUSY).then_some((direction, end, busy))
        })
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Known, Peer};
    use wirespeed_measure::{Direction, Via};
    use wirespeed_words::{Language, within};

    use super::CODE;
    use crate::testing::{
        at, core, each_sample, healthy, not_checked, nothing, only_finding, path_mtu, set_ratio,
        tunnel_of,
    };
    use crate::{End, Evidence, Severity, judge};

    fn with_mtu(mtu: u32) -> Evidence {
        let mut evidence = healthy();
        for end in [End::Here, End::Far] {
            tunnel_of(&mut evidence, end).mtu = mtu;
        }
        evidence
    }

    #[test]
    fn twenty_bytes_are_tolerated_and_more_are_worth_a_word() {
        nothing(&with_mtu(1400));
        let finding = only_finding(&with_mtu(1399), CODE);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.remedies[0].changes.len(), 2);
        assert!(
            finding.remedies[0]
                .changes
                .iter()
                .all(|change| change.value == 1420)
        );
    }

    #[test]
    fn it_costs_something_where_an_end_is_out_of_processor() {
        let mut evidence = with_mtu(1280);
        for direction in [Direction::Upload, Direction::Download] {
            each_sample(&mut evidence, direction, Via::Tunnel, |sample| {
                at(sample, End::Far).cores = vec![core(0.96); 4];
            });
            set_ratio(&mut evidence, direction, 0.7);
        }
        let diagnosis = judge(&evidence);
        let finding = diagnosis
            .findings
            .iter()
            .find(|finding| finding.code == CODE)
            .unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.because.contains("11 % more packets"));
    }

    #[test]
    fn what_it_is_worth_on_a_road_limited_by_bandwidth_is_reckoned() {
        let worth = |mtu| only_finding(&with_mtu(mtu), CODE).because;
        assert!(worth(1280).ends_with("worth 0.8 %."), "{}", worth(1280));
        assert!(worth(1380).ends_with("worth 0.2 %."), "{}", worth(1380));
        let french = within(Language::French, || worth(1380));
        assert!(french.ends_with("on y gagne 0,2\u{202f}%."), "{french}");
    }

    #[test]
    fn one_direction_alone_confirms_nothing() {
        let mut evidence = with_mtu(1280);
        evidence.path_mtu.truncate(1);
        assert_eq!(judge(&evidence).findings, []);
        assert!(not_checked(&evidence, CODE));
        // Where nobody watched it arrive, it came back as well.
        evidence.path_mtu[0].method = "icmp-echo-and-reply".to_owned();
        only_finding(&evidence, CODE);
    }

    #[test]
    fn the_other_peers_of_a_hub_have_roads_of_their_own() {
        let mut evidence = with_mtu(1280);
        let Known::Value(peers) = &mut tunnel_of(&mut evidence, End::Far).peers else {
            unreachable!()
        };
        let other = |number: u8| Peer {
            public_key: format!("other-{number}"),
            allowed_ips: vec![format!("10.9.0.{number}/32")],
            ..peers[0].clone()
        };
        let others: Vec<Peer> = (3..6).map(other).collect();
        peers.extend(others);
        let finding = only_finding(&evidence, CODE);
        let remedy = &finding.remedies[0];
        assert!(remedy.changes.is_empty(), "nothing is tried on all of them");
        assert_eq!(remedy.commands.len(), 2);
        assert!(remedy.risk.starts_with("3 other peers use wg1 on server"));
        if let Known::Value(peers) = &mut tunnel_of(&mut evidence, End::Far).peers {
            peers.truncate(2);
        }
        let risk = || only_finding(&evidence, CODE).remedies[0].risk.clone();
        assert!(risk().starts_with("1 other peer uses wg1 on server, "));
        let french = within(Language::French, risk);
        assert!(french.starts_with("1 autre pair utilise wg1 sur server, "));
    }

    #[test]
    fn a_direction_that_needs_it_justifies_it() {
        let mut evidence = with_mtu(1280);
        evidence.path_mtu[1] = path_mtu(Direction::Download, 1360);
        nothing(&evidence);
    }
}
