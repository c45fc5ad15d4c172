//! `offload-off`: the kernel handles every packet by itself though it could handle many at once, and a processor is
//! the limit.
//!
//! Only where a processor is the limit for sure: else it costs nothing that anybody would notice. What counts is what a
//! tunnel uses: segmentation and GRO on the tunnel's own interface (the kernel's WireGuard takes a large packet of TCP
//! as one and cuts it after its way through the stack), and the same on its way out for daemons that send and receive
//! trains of datagrams. A virtual link (veth, bridge) has no card that could do the work, and passes packets on as it got
//! them; there it is no finding.

use serde_json::json;
use wirespeed_facts::{Implementation, Link};
use wirespeed_measure::Direction;
use wirespeed_settings::Setting;
use wirespeed_words::say;

use super::{cpu_saturated, names_host, one_core_bound};
use crate::cards::outer_links;
use crate::finding::{Check, Found, Outcome, line, rates_lines, remedy_of};
use crate::view::{DIRECTIONS, ENDS, on, only};
use crate::{Change, End, Evidence, Goal, Remedy, Severity};

pub(super) const CODE: &str = "offload-off";

pub(super) const CHECK: Check = Check {
    brings: |evidence, own, effect| {
        [cpu_saturated::CODE, one_core_bound::CODE].contains(&effect.code.as_str())
            && names_host(evidence, own, &effect.host)
    },
    ..Check::new(CODE, || say!("offload-off-title"), run)
};

/// One that is off.
struct Off<'a> {
    link: &'a Link,
    /// As the kernel calls it.
    feature: &'static str,
    /// For people.
    short: &'static str,
}

/// Features by the kernel's name and by the one people know. Whether a card has one at all the kernel does not tell
/// apart from off, so only what the kernel itself can always do counts.
const ALWAYS_POSSIBLE: [(&str, &str); 2] = [("tx-generic-segmentation", "gso"), ("rx-gro", "gro")];
/// On the kernel's WireGuard this is the kernel's own, too.
const OF_THE_KERNELS_TUNNEL: [(&str, &str); 1] = [("tx-tcp-segmentation", "tso")];

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let limited: Vec<Direction> = DIRECTIONS
            .into_iter()
            .filter(|direction| limits(evidence, end, *direction))
            .collect();
        if limited.is_empty() {
            continue;
        }
        let tunnel = evidence.tunnel(end).map(|tunnel| tunnel.name.as_str());
        if let Some(link) = tunnel.and_then(|name| evidence.facts(end)?.link(name))
            && link.offloads.value().is_none()
        {
            outcome.not_known.push(say!(
                "offload-off-unknown",
                place = evidence.interface_at(end)
            ));
        }
        outcome
            .found
            .extend(found(evidence, end, &limited, &off(evidence, end)));
    }
    outcome
}

/// Is a processor of this end the limit in this direction, for sure?
fn limits(evidence: &Evidence, end: End, direction: Direction) -> bool {
    evidence.below(direction, cpu_saturated::HEALTHY_RATIO) == Some(true)
        && (cpu_saturated::at(evidence, end, direction)
            || (one_core_bound::fits(evidence, end, direction)
                && cpu_saturated::held_back(evidence, direction)))
}

fn off(evidence: &Evidence, end: End) -> Vec<Off<'_>> {
    let Some((facts, tunnel)) = evidence.facts(end).zip(evidence.tunnel(end)) else {
        return Vec::new();
    };
    let kernels = matches!(tunnel.implementation, Implementation::Kernel);
    let outer = outer_links(evidence, end)
        .into_iter()
        .filter(|link| link.name != tunnel.name)
        // The kernel's WireGuard sends and receives its own packets one by one.
        .filter(|_| !kernels);
    let mut off = Vec::new();
    for link in facts.link(&tunnel.name).into_iter().chain(outer) {
        let own = link.name == tunnel.name;
        let Some(features) = link.offloads.value().filter(|_| own || link.kind.is_none()) else {
            continue;
        };
        let more: &[(&str, &str)] = if own && kernels {
            &OF_THE_KERNELS_TUNNEL
        } else {
            &[]
        };
        for (feature, short) in ALWAYS_POSSIBLE.iter().chain(more) {
            if features.get(*feature) == Some(&false) {
                off.push(Off {
                    link,
                    feature,
                    short,
                });
            }
        }
    }
    off
}

fn found(evidence: &Evidence, end: End, limited: &[Direction], off: &[Off<'_>]) -> Option<Found> {
    off.first()?;
    let host = evidence.name(end);
    let mut lines: Vec<_> = off
        .iter()
        .map(|one| line(one.feature, on(&one.link.name, host), (), "off", ""))
        .collect();
    lines.extend(rates_lines(evidence, limited));
    let crippled = |direction: &Direction| evidence.crippled(*direction);
    let severity = if limited.iter().any(crippled) {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let mut names: Vec<String> = off
        .iter()
        .map(|one| {
            say!(
                "offload-off-name",
                offload = one.short.to_uppercase(),
                link = &one.link.name
            )
        })
        .collect();
    names.dedup();
    Some(Found {
        severity,
        confidence: 0.75,
        effect: evidence.worst_lost_share(limited),
        host: host.to_owned(),
        direction: only(limited),
        evidence: lines,
        because: say!(
            "offload-off-because",
            host = host,
            offloads = names.join(", "),
            count = names.len()
        ),
        remedies: vec![turn_on(evidence, end, off)],
        refused: Vec::new(),
    })
}

fn turn_on(evidence: &Evidence, end: End, off: &[Off<'_>]) -> Remedy {
    let changes = off
        .iter()
        .map(|one| {
            let setting = Setting::LinkOffload {
                interface: one.link.name.clone(),
                feature: one.feature.to_owned(),
            };
            let value = json!(true);
            (
                Change {
                    end,
                    setting,
                    value,
                },
                json!(false),
            )
        })
        .collect();
    remedy_of(
        evidence,
        say!("offload-off-remedy"),
        changes,
        Goal::Goodput,
        say!("offload-off-risk"),
    )
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Implementation, Known, Link};
    use wirespeed_measure::{Direction, Via};
    use wirespeed_words::{Language, within};

    use super::CODE;
    use crate::testing::{
        add_card, at, codes, core, each_sample, facts_of, healthy, kernels_core, nothing,
        only_finding, set_ratio, tunnel_of,
    };
    use crate::{End, Evidence, Severity, judge};

    fn with(interface: &str, kind: Option<&str>, feature: &str, busy: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Here).cores = vec![core(busy); 4];
        });
        for end in [End::Here, End::Far] {
            facts_of(&mut evidence, end).host.kernel = "6.12.80".to_owned();
        }
        let facts = facts_of(&mut evidence, End::Here);
        add_card(
            facts,
            Link {
                kind: kind.map(str::to_owned),
                ..Link::default()
            },
        );
        for link in &mut facts.links {
            let off = link.name == interface;
            link.offloads = Known::Value(
                ["tx-generic-segmentation", "rx-gro", "tx-tcp-segmentation"]
                    .map(|name| (name.to_owned(), !(off && name == feature)))
                    .into(),
            );
        }
        evidence
    }

    fn severity(evidence: &Evidence) -> Option<Severity> {
        judge(evidence)
            .findings
            .iter()
            .find(|finding| finding.code == CODE)
            .map(|finding| finding.severity)
    }

    #[test]
    fn a_processor_must_be_the_limit() {
        let warning = with("wg0", None, "rx-gro", 0.95);
        let finding = only_finding(&warning, CODE);
        assert_eq!(finding.remedies[0].changes[0].value, true);
        assert_eq!(severity(&warning), Some(Severity::Warning));
        assert!(finding.because.contains("and GRO of wg0 is off: "));
        assert_eq!(severity(&with("wg0", None, "rx-gro", 0.7)), None);
        let mut enough = with("wg0", None, "rx-gro", 0.95);
        set_ratio(&mut enough, Direction::Upload, 0.92);
        nothing(&enough);
    }

    #[test]
    fn several_are_named_as_several() {
        let mut both = with("wg0", None, "rx-gro", 0.95);
        for link in &mut facts_of(&mut both, End::Here).links {
            if let Known::Value(features) = &mut link.offloads {
                features.insert("tx-generic-segmentation".to_owned(), link.name != "wg0");
            }
        }
        let because = || only_finding(&both, CODE).because;
        assert!(because().contains("and GSO of wg0, GRO of wg0 are off: "));
        let french = within(Language::French, because);
        assert!(french.contains("et GSO de wg0, GRO de wg0 sont désactivés\u{202f}: "));
    }

    #[test]
    fn a_card_counts_and_a_virtual_link_does_not() {
        let card = with("eth0", None, "rx-gro", 0.95);
        assert_eq!(codes(&judge(&card)), [CODE]);
        let virtual_link = with("eth0", Some("veth"), "rx-gro", 0.95);
        assert_eq!(codes(&judge(&virtual_link)), ["cpu-saturated"]);
    }

    #[test]
    fn what_a_daemon_or_a_card_may_not_have_is_not_asked_for() {
        assert_eq!(
            severity(&with("wg0", None, "tx-tcp-segmentation", 0.95)),
            None
        );
        let mut kernels = with("wg0", None, "tx-tcp-segmentation", 0.95);
        tunnel_of(&mut kernels, End::Here).implementation = Implementation::Kernel;
        each_sample(&mut kernels, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Here).cores = vec![kernels_core(0.95); 4];
        });
        assert_eq!(severity(&kernels), Some(Severity::Warning));
        // The kernel's tunnel sends its packets one by one.
        let mut kernels = with("eth0", None, "rx-gro", 0.95);
        tunnel_of(&mut kernels, End::Here).implementation = Implementation::Kernel;
        assert_eq!(severity(&kernels), None);
    }
}
