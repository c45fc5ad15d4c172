//! `path-reorder`: the road hands packets on in another order than they were sent in.
//!
//! Known from numbered datagrams outside the tunnel. Three places are what TCP bears by its oldest rule (RFC 5681: three
//! duplicate acknowledgements mean loss), so smaller extents are nobody's trouble. A road that spreads packets over
//! several lines shows it only to packets that follow each other closely: where the loads' own connections met
//! reordering, datagrams are counted once more at a rate.

use wirespeed_measure::{Direction, Sample, Via};
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome, line, percent, rate, rates_line};
use crate::probe::{Datagrams, Probe};
use crate::road;
use crate::view::{DIRECTIONS, median, receiver, sender, way};
use crate::{Evidence, FarKind, Refusal, Severity};

pub(super) const CODE: &str = "path-reorder";

pub(super) const CHECK: Check = Check {
    wants,
    ..Check::new(CODE, || say!("path-reorder-title"), run)
};

/// Fewer late datagrams than this are chance: a route that changed once.
const FEWEST_LATE: u64 = 20;
/// At least this share must come late for sure: a sender that moves from one core to another has one burst of it.
const LATE_AT_LEAST: f64 = 0.005;
/// TCP takes a packet for lost when three later ones have arrived (RFC 5681); Linux starts from the same.
const TOLERATED_EXTENT: u64 = 3;
/// From this share on the sender sends again for nothing often enough to matter.
const MATTERS: f64 = 0.02;
/// Loads in which something was sent again for nothing, from which on it is not the last segment of one of them, which may
/// be sent twice on any road.
const FEWEST_HARMED: usize = 2;
/// Share of the road's rate at which it is looked for again, and the most of it in bit/s.
const AT_SHARE: f64 = 0.5;
const AT_MOST: f64 = 50e6;
const SECONDS: f64 = 1.5;

/// What all counts of a direction say of the order, whatever their rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Order {
    received: u64,
    late: u64,
    extent: u64,
    rate: f64,
}

impl Order {
    fn share(&self) -> f64 {
        self.late as f64 / self.received.max(1) as f64
    }

    fn proved(&self) -> bool {
        self.late >= FEWEST_LATE
            && self.extent >= TOLERATED_EXTENT
            && road::at_least(self.late, self.received) >= LATE_AT_LEAST
    }
}

fn run(evidence: &Evidence) -> Outcome {
    if evidence.passive.is_some() {
        return Outcome::unknown(say!("path-reorder-watched"));
    }
    if evidence.far_kind != FarKind::Wirespeed {
        return Outcome::unknown(say!("path-reorder-no-wirespeed"));
    }
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        let mut orders = orders(evidence, direction).peekable();
        if orders.peek().is_none() {
            let none = say!("path-reorder-not-counted", direction = direction.word());
            outcome.not_known.push(none);
        }
        let worst = orders
            .filter(Order::proved)
            .max_by(|one, other| one.share().total_cmp(&other.share()));
        outcome
            .found
            .extend(worst.map(|order| found(evidence, direction, &order)));
    }
    outcome
}

/// One per count: a road may keep the order of a few packets and not that of many.
fn orders(evidence: &Evidence, direction: Direction) -> impl Iterator<Item = Order> {
    road::probes(evidence, direction)
        .filter(|probe| probe.received > 0)
        .map(|probe| Order {
            received: probe.received,
            late: probe.reordered,
            extent: probe.reorder_extent,
            rate: probe.offered,
        })
}

fn wants(evidence: &Evidence, direction: Direction) -> Option<Probe> {
    let counted_at_rate = road::probes(evidence, direction).any(|probe| probe.payload >= 1000);
    let known = orders(evidence, direction).any(|order| order.proved());
    let rate = (road::road_rate(evidence, direction)? * AT_SHARE)
        .min(AT_MOST)
        .round();
    (!known && !counted_at_rate && met(evidence, direction, Via::Bare))
        .then(|| Probe::Sequence(Datagrams::at_rate(direction, rate, SECONDS)))
}

/// Did most of the loads' own connections meet reordering one way?
fn met(evidence: &Evidence, direction: Direction, via: Via) -> bool {
    let samples = evidence.samples(direction, via);
    let met = samples
        .iter()
        .filter(|sample| {
            reordering(sample).is_some_and(|segments| segments > TOLERATED_EXTENT as f64)
        })
        .count();
    met >= 2 && met * 2 > samples.len()
}

fn reordering(sample: &Sample) -> Option<f64> {
    Some(f64::from(sample.windows.as_ref()?.reordering?))
}

fn found(evidence: &Evidence, direction: Direction, order: &Order) -> Found {
    let (from, to) = (
        evidence.name(sender(direction)),
        evidence.name(receiver(direction)),
    );
    let place = way(from, to);
    let mut lines = vec![
        line(
            say!(
                "path-reorder-line-datagrams",
                rate = rate(order.rate),
                direction = direction.word()
            ),
            &place,
            order.received,
            order.late,
            "packets",
        ),
        line(
            say!("path-reorder-line-extent", direction = direction.word()),
            &place,
            TOLERATED_EXTENT,
            order.extent,
            "packets",
        ),
    ];
    let tunnel = evidence.samples(direction, Via::Tunnel);
    if let Some(segments) = median(tunnel.iter().filter_map(|sample| reordering(sample))) {
        lines.push(line(
            say!("path-reorder-line-met", direction = direction.word()),
            from,
            TOLERATED_EXTENT,
            segments,
            "segments",
        ));
    }
    let needless = tunnel
        .iter()
        .filter_map(|sample| sample.windows.as_ref()?.duplicates_reported)
        .fold(0_u64, u64::saturating_add);
    let for_nothing = tunnel
        .iter()
        .filter_map(|sample| sample.windows.as_ref()?.duplicates_reported)
        .filter(|segments| *segments > 0)
        .count();
    let again = tunnel
        .iter()
        .filter_map(|sample| sample.retransmits)
        .fold(0_u64, u64::saturating_add);
    if again > 0 {
        lines.push(line(
            say!("path-reorder-line-again", direction = direction.word()),
            from,
            again,
            needless,
            "segments",
        ));
    }
    lines.extend(rates_line(evidence, direction));
    // Without loads nothing tells whether it does harm.
    let harmed =
        !evidence.loaded() || met(evidence, direction, Via::Tunnel) || for_nothing >= FEWEST_HARMED;
    let costs = order.share() >= MATTERS && harmed;
    Found {
        severity: if costs {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: 0.9,
        effect: order.share().min(0.5),
        host: from.to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: say!(
            "path-reorder-because",
            share = percent(order.share()),
            from = from,
            to = to,
            places = order.extent
        ),
        remedies: Vec::new(),
        refused: vec![Refusal {
            remedy: say!("path-reorder-refused"),
            why: say!("path-reorder-refused-why"),
        }],
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::{Direction, Via};

    use super::{CODE, wants};
    use crate::probe::{Datagrams, Probe};
    use crate::testing::{
        each_sample, forget_far, healthy, not_checked, nothing, only_finding, windows,
    };
    use crate::{Evidence, Severity};

    fn late(share: f64, extent: u64) -> Evidence {
        let mut evidence = healthy();
        evidence.sequences[1].reordered = (3000.0 * share) as u64;
        evidence.sequences[1].reorder_extent = extent;
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            sample.retransmits = Some(10);
            let mut seen = windows();
            seen.duplicates_reported = Some(5);
            sample.windows = Some(seen);
        });
        evidence
    }

    #[test]
    fn three_places_matter_and_two_do_not() {
        nothing(&late(0.1, 2));
        let finding = only_finding(&late(0.1, 3), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Download))
        );
    }

    #[test]
    fn a_few_late_ones_are_chance_and_one_in_fifty_a_warning() {
        nothing(&late(0.007, 20));
        assert_eq!(
            only_finding(&late(0.012, 20), CODE).severity,
            Severity::Info
        );
        assert_eq!(
            only_finding(&late(0.021, 20), CODE).severity,
            Severity::Warning
        );
    }

    #[test]
    fn it_is_a_warning_where_the_loads_met_it() {
        let with = |reordering: u32, for_nothing: u64| {
            let mut evidence = late(0.1, 20);
            each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
                let mut seen = windows();
                seen.reordering = Some(reordering);
                seen.duplicates_reported = Some(for_nothing);
                sample.windows = Some(seen);
            });
            evidence
        };
        let severity = |evidence: &Evidence| only_finding(evidence, CODE).severity;
        // A full queue has segments sent again, too.
        let mut evidence = with(3, 0);
        assert_eq!(severity(&evidence), Severity::Info);
        assert_eq!(severity(&with(4, 0)), Severity::Warning);
        assert_eq!(severity(&with(3, 1)), Severity::Warning);
        let mut tunnel = evidence.comparisons[1]
            .samples
            .iter_mut()
            .filter(|sample| sample.load.via == Via::Tunnel);
        tunnel
            .next()
            .unwrap()
            .windows
            .as_mut()
            .unwrap()
            .duplicates_reported = Some(1);
        assert_eq!(severity(&evidence), Severity::Info);
    }

    #[test]
    fn what_the_loads_met_is_looked_for_at_a_rate() {
        let mut evidence = healthy();
        assert_eq!(wants(&evidence, Direction::Upload), None);
        each_sample(&mut evidence, Direction::Upload, Via::Bare, |sample| {
            let mut seen = windows();
            seen.reordering = Some(12);
            sample.windows = Some(seen);
        });
        assert_eq!(
            wants(&evidence, Direction::Upload),
            Some(Probe::Sequence(Datagrams::at_rate(
                Direction::Upload,
                50e6,
                1.5
            )))
        );
        nothing(&evidence);
    }

    #[test]
    fn without_a_count_it_is_not_known() {
        let mut evidence = healthy();
        evidence.sequences.clear();
        assert!(not_checked(&evidence, CODE));
        let mut evidence = healthy();
        forget_far(&mut evidence);
        nothing(&evidence);
    }
}
