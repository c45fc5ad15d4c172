//! `offload-broken`: what the kernel or the card cuts up on the way out does not arrive.
//!
//! Known from the same datagrams sent one by one and in trains (`UDP_SEGMENT`), outside the tunnel: the single ones
//! arrive, those of the trains do not, or with other content. Asked where a direction is slow and nothing explains it, or
//! where the sender's kernel or driver is known for it. The kernel's own WireGuard sends no trains.

use serde_json::json;
use wirespeed_facts::Implementation;
use wirespeed_measure::{Direction, SegmentationProbe};
use wirespeed_settings::Setting;
use wirespeed_words::say;

use crate::cards::outer_links;
use crate::finding::{Check, Found, Outcome, line, percent, rates_line, remedy_of};
use crate::probe::Probe;
use crate::versions::{Concerns, Has, driver_faults, kernel_faults};
use crate::view::{DIRECTIONS, on, receiver, sender, way};
use crate::{Change, End, Evidence, EvidenceLine, FarKind, Goal, Remedy, Severity};

pub(super) const CODE: &str = "offload-broken";

pub(super) const CHECK: Check = Check {
    slows: |evidence, direction| {
        sends_trains(evidence, sender(direction)) && broken(evidence, direction).is_some()
    },
    wants,
    ..Check::new(CODE, || say!("offload-broken-title"), run)
};

/// A direction below this share of bare for sure is worth the probe.
const SLOW: f64 = 0.8;
/// At least this share of the single datagrams must arrive, so that the road is not what loses them.
const PLAIN_ARRIVE: f64 = 0.95;
/// Broken: at most this share of those in trains arrives whole …
const TRAINS_LOST: f64 = 0.5;
/// … or this share arrives with other content.
const MANGLED: f64 = 0.05;
/// Fewer datagrams prove nothing.
const FEWEST: u64 = 50;
const FEATURE: &str = "tx-udp-segmentation";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        if let Some(probe) = broken(evidence, direction) {
            outcome.found.push(found(evidence, probe));
        } else if suspected(evidence, direction) && probe(evidence, direction).is_none() {
            outcome.not_known.push(say!(
                "offload-broken-unknown-trains",
                direction = direction.word(),
                host = evidence.name(sender(direction))
            ));
        } else if by_kernel(evidence, sender(direction))
            && slow(evidence, direction)
            && !super::explained(evidence, direction)
        {
            outcome.not_known.push(say!(
                "offload-broken-unknown-kernel",
                direction = direction.word()
            ));
        }
    }
    outcome
}

fn probe(evidence: &Evidence, direction: Direction) -> Option<&SegmentationProbe> {
    evidence
        .segmentation
        .iter()
        .find(|probe| probe.direction == direction)
}

fn wants(evidence: &Evidence, direction: Direction) -> Option<Probe> {
    (suspected(evidence, direction) && probe(evidence, direction).is_none())
        .then_some(Probe::Segmentation { direction })
}

fn suspected(evidence: &Evidence, direction: Direction) -> bool {
    if evidence.far_kind != FarKind::Wirespeed {
        return false;
    }
    let end = sender(direction);
    sends_trains(evidence, end)
        && ((slow(evidence, direction) && !super::explained(evidence, direction))
            || !known(evidence, end).is_empty())
}

fn slow(evidence: &Evidence, direction: Direction) -> bool {
    evidence.stalled(direction) || evidence.below(direction, SLOW) == Some(true)
}

/// May trains be what is lost in this direction, as far as nobody has tried?
pub(super) fn untried(evidence: &Evidence, direction: Direction) -> bool {
    evidence.far_kind == FarKind::Wirespeed
        && sends_trains(evidence, sender(direction))
        && probe(evidence, direction).is_none()
}

/// Only a daemon can send trains; the kernel's WireGuard cuts before it encrypts.
fn sends_trains(evidence: &Evidence, end: End) -> bool {
    evidence
        .tunnel(end)
        .is_some_and(|tunnel| matches!(tunnel.implementation, Implementation::Userspace { .. }))
}

fn by_kernel(evidence: &Evidence, end: End) -> bool {
    evidence
        .tunnel(end)
        .is_some_and(|tunnel| tunnel.implementation == Implementation::Kernel)
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

fn broken(evidence: &Evidence, direction: Direction) -> Option<&SegmentationProbe> {
    probe(evidence, direction).filter(|probe| {
        probe.plain_sent >= FEWEST
            && probe.trains_sent >= FEWEST
            && probe.refused.is_none()
            && share(probe.plain_received, probe.plain_sent) >= PLAIN_ARRIVE
            && (share(probe.trains_received, probe.trains_sent) <= TRAINS_LOST
                || share(probe.trains_mangled, probe.trains_sent) >= MANGLED)
    })
}

/// Do trains arrive in this direction as single datagrams do, or does the kernel refuse to send any? `None` where nobody has
/// tried, or the try told nothing.
pub(super) fn whole(evidence: &Evidence, direction: Direction) -> Option<bool> {
    let probe = probe(evidence, direction)?;
    let told = probe.plain_sent >= FEWEST
        && probe.trains_sent >= FEWEST
        && share(probe.plain_received, probe.plain_sent) >= PLAIN_ARRIVE;
    (told || probe.refused.is_some()).then(|| broken(evidence, direction).is_none())
}

/// What is known against this end's kernel and the drivers on the way out.
fn known(evidence: &Evidence, end: End) -> Vec<String> {
    let Some(facts) = evidence.facts(end) else {
        return Vec::new();
    };
    let kernels = kernel_faults()
        .iter()
        .filter(|fault| fault.concerns == Concerns::UdpSegmentation)
        .filter(|fault| fault.of(&facts.host) != Has::No)
        .map(|fault| {
            say!(
                "offload-broken-known-kernel",
                kernel = &facts.host.kernel,
                harm = fault.harm(),
                sources = fault.sources.join(", ")
            )
        });
    let drivers = outer_links(evidence, end).into_iter().flat_map(|link| {
        let driver = link.driver.value().map_or("", String::as_str);
        driver_faults()
            .iter()
            .filter(|fault| fault.feature == FEATURE)
            .filter(|fault| fault.of(&facts.host, driver) != Has::No)
            .map(move |fault| {
                say!(
                    "offload-broken-known-driver",
                    driver = driver,
                    link = &link.name,
                    harm = fault.harm(),
                    sources = fault.sources.join(", ")
                )
            })
    });
    kernels.chain(drivers).collect()
}

fn found(evidence: &Evidence, probe: &SegmentationProbe) -> Found {
    let direction = probe.direction;
    let end = sender(direction);
    let (from, to) = (evidence.name(end), evidence.name(receiver(direction)));
    let place = way(from, to);
    let counted = |what: String, sent: u64, arrived: u64| -> EvidenceLine {
        line(what, &place, sent, arrived, "packets")
    };
    let mut lines = vec![
        counted(
            say!("offload-broken-line-plain", direction = direction.word()),
            probe.plain_sent,
            probe.plain_received,
        ),
        counted(
            say!("offload-broken-line-trains", direction = direction.word()),
            probe.trains_sent,
            probe.trains_received,
        ),
    ];
    if probe.trains_mangled > 0 {
        lines.push(counted(
            say!("offload-broken-line-mangled", direction = direction.word()),
            probe.trains_sent,
            probe.trains_mangled,
        ));
    }
    for text in known(evidence, end) {
        lines.push(line(say!("offload-broken-line-known"), from, (), text, ""));
    }
    for link in outer_links(evidence, end) {
        if let Some(is_on) = link.offloads.value().and_then(|all| all.get(FEATURE)) {
            lines.push(line(FEATURE, on(&link.name, from), (), *is_on, ""));
        }
    }
    lines.extend(rates_line(evidence, direction));
    let uses = sends_trains(evidence, end);
    Found {
        severity: match (uses, evidence.crippled(direction)) {
            (true, true) => Severity::Critical,
            (true, false) => Severity::Warning,
            (false, _) => Severity::Info,
        },
        confidence: 0.95,
        effect: evidence.lost_share(direction),
        host: from.to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: say!(
            "offload-broken-because",
            from = from,
            to = to,
            plain = percent(share(probe.plain_received, probe.plain_sent)),
            trains = percent(share(probe.trains_received, probe.trains_sent))
        ),
        remedies: off(evidence, end).into_iter().collect(),
        refused: Vec::new(),
    }
}

/// That one feature off, on the links out where it is on: the kernel cuts then, before the card sees it.
fn off(evidence: &Evidence, end: End) -> Option<Remedy> {
    let changes: Vec<_> = outer_links(evidence, end)
        .into_iter()
        .filter(|link| {
            let features = link.offloads.value();
            features.and_then(|all| all.get(FEATURE)) == Some(&true)
        })
        .map(|link| {
            let setting = Setting::LinkOffload {
                interface: link.name.clone(),
                feature: FEATURE.to_owned(),
            };
            let value = json!(false);
            (
                Change {
                    end,
                    setting,
                    value,
                },
                json!(true),
            )
        })
        .collect();
    (!changes.is_empty()).then(|| {
        remedy_of(
            evidence,
            say!("offload-broken-remedy"),
            changes,
            Goal::Goodput,
            say!("offload-broken-risk"),
        )
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Implementation, Known, Link};
    use wirespeed_measure::{Direction, SegmentationProbe};

    use super::{CODE, wants};
    use crate::probe::Probe;
    use crate::testing::{
        add_card, facts_of, forget_far, healthy, not_checked, nothing, only_finding, set_ratio,
        tunnel_of,
    };
    use crate::{End, Evidence, Severity};

    fn probe(plain: u64, trains: u64, mangled: u64) -> SegmentationProbe {
        SegmentationProbe {
            direction: Direction::Upload,
            plain_sent: 400,
            plain_received: plain,
            trains_sent: 400,
            trains_received: trains,
            trains_mangled: mangled,
            refused: None,
        }
    }

    fn slow(probe: SegmentationProbe) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.1);
        let facts = facts_of(&mut evidence, End::Here);
        add_card(
            facts,
            Link {
                offloads: Known::Value([("tx-udp-segmentation".to_owned(), true)].into()),
                ..Link::default()
            },
        );
        evidence.segmentation.push(probe);
        evidence
    }

    #[test]
    fn half_of_the_trains_must_be_lost_and_the_single_ones_arrive() {
        only_finding(&slow(probe(400, 201, 0)), "unexplained");
        only_finding(&slow(probe(379, 0, 0)), "unexplained");
        let finding = only_finding(&slow(probe(380, 200, 0)), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Critical, "client", Some(Direction::Upload))
        );
        assert_eq!(finding.remedies[0].changes[0].value, false);
    }

    #[test]
    fn one_in_twenty_with_other_content_is_enough() {
        only_finding(&slow(probe(400, 380, 19)), "unexplained");
        only_finding(&slow(probe(400, 380, 20)), CODE);
    }

    #[test]
    fn a_kernel_that_refuses_trains_breaks_none() {
        let mut refused = probe(400, 0, 0);
        refused.refused = Some("EIO".to_owned());
        only_finding(&slow(refused), "unexplained");
    }

    #[test]
    fn it_is_asked_where_a_direction_is_slow_or_the_kernel_is_known_for_it() {
        let mut evidence = healthy();
        assert_eq!(wants(&evidence, Direction::Upload), None);
        set_ratio(&mut evidence, Direction::Upload, 0.5);
        let asked = Some(Probe::Segmentation {
            direction: Direction::Upload,
        });
        assert_eq!(wants(&evidence, Direction::Upload), asked);
        assert!(not_checked(&evidence, CODE));
        tunnel_of(&mut evidence, End::Here).implementation = Implementation::Kernel;
        assert_eq!(wants(&evidence, Direction::Upload), None);
        // Nothing tries what else the cards may do to its packets, and that is said where they may be to blame.
        assert!(not_checked(&evidence, CODE));
        set_ratio(&mut evidence, Direction::Upload, 0.9);
        assert!(!not_checked(&evidence, CODE));
        let mut known = healthy();
        facts_of(&mut known, End::Here).host.kernel = "7.1.3".to_owned();
        assert_eq!(wants(&known, Direction::Upload), asked);
        facts_of(&mut known, End::Here).host.kernel = "7.1.5".to_owned();
        assert_eq!(wants(&known, Direction::Upload), None);
        forget_far(&mut evidence);
        assert_eq!(wants(&evidence, Direction::Upload), None);
        nothing(&healthy());
    }
}
