//! `old-kernel`: the kernel is known to harm a tunnel like this one.
//!
//! Known from the release alone, by the table `data/kernels.toml`; so it is said only where the tunnel is of the kind that the
//! fault is about, and, for faults that only cost speed, where it is slow.

use wirespeed_facts::{Facts, Implementation, Link};

use super::{names_host, napi_threaded_stall};
use crate::finding::{Check, Found, Outcome, line, rates_line};
use crate::versions::{Concerns, Has, KernelFault, kernel_faults};
use crate::view::{DIRECTIONS, ENDS};
use crate::{End, Evidence, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "old-kernel";

pub(super) const CHECK: Check = Check {
    follows_from,
    ..Check::new(CODE, "The kernel is known to harm such a tunnel", run)
};

/// A tunnel below this share of bare for sure is slow.
const SLOW: f64 = 0.8;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        // Both ends of one kernel are one machine; but each has its own kind of tunnel.
        for fault in kernel_faults() {
            outcome.found.extend(found(evidence, end, fault));
        }
    }
    outcome
}

/// A check that found the fault at work says it better.
fn follows_from(evidence: &Evidence, cause: &Finding, own: &Finding) -> bool {
    [napi_threaded_stall::CODE, "offload-broken"].contains(&cause.code.as_str())
        && names_host(evidence, cause, &own.host)
}

fn found(evidence: &Evidence, end: End, fault: &KernelFault) -> Option<Found> {
    let facts = evidence.facts(end)?;
    let has = fault.of(&facts.host);
    if has == Has::No || !concerned(evidence, end, facts, fault.concerns) {
        return None;
    }
    let slow = DIRECTIONS.into_iter().find(|direction| {
        evidence.stalled(*direction) || evidence.below(*direction, SLOW) == Some(true)
    });
    // A peer that stops for good is a danger even while all is well; what only costs speed is not, where speed is fine.
    let danger = fault.concerns == Concerns::ThreadedKernel;
    if slow.is_none() && !danger {
        return None;
    }
    let host = &facts.host;
    let mut lines = vec![line(
        "kernel (`uname -r`), and the releases that have the fault",
        evidence.name(end),
        fault.ranges(),
        host.kernel.clone(),
        "",
    )];
    if let Some(signature) = &host.kernel_signature {
        lines.push(line(
            "/proc/version_signature",
            evidence.name(end),
            (),
            signature.clone(),
            "",
        ));
    } else if has == Has::Perhaps {
        lines.push(line(
            "`uname -v`",
            evidence.name(end),
            (),
            host.kernel_build.clone(),
            "",
        ));
    }
    lines.extend(condition(evidence, end, facts, fault.concerns));
    lines.extend(slow.and_then(|direction| rates_line(evidence, direction)));
    lines.push(line("source", "public", (), fault.sources.join("; "), ""));
    let (certainly, severity, confidence) = match has {
        Has::Yes => ("is", Severity::Warning, 0.7),
        _ => ("may be", Severity::Info, 0.4),
    };
    Some(Found {
        severity,
        confidence,
        effect: slow.map_or(0.3, |direction| evidence.lost_share(direction)),
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: lines,
        because: format!(
            "The kernel of {} ({}) {certainly} one with a known fault ({}): {}.",
            evidence.name(end),
            host.kernel,
            fault.id,
            fault.harm
        ),
        remedies: vec![Remedy {
            title: format!("Another kernel: {}", fault.remedy),
            changes: Vec::new(),
            commands: Vec::new(),
            goal: Goal::Goodput,
            persistence: "a kernel stays until the next update".to_owned(),
            risk: "a reboot".to_owned(),
            undo: "boot the old one from the boot menu".to_owned(),
        }],
        refused: Vec::new(),
    })
}

/// Is the tunnel at this end of the kind a fault is about?
fn concerned(evidence: &Evidence, end: End, facts: &Facts, concerns: Concerns) -> bool {
    match concerns {
        Concerns::ThreadedKernel => threaded(evidence, end) == Some(true),
        Concerns::TunOffload => offloading_tun(evidence, end).is_some(),
        Concerns::UdpSegmentation => {
            offloading_tun(evidence, end).is_some() && segmenting_link(facts).is_some()
        }
    }
}

/// What makes the tunnel be of that kind, as evidence.
fn condition(
    evidence: &Evidence,
    end: End,
    facts: &Facts,
    concerns: Concerns,
) -> Vec<crate::EvidenceLine> {
    let feature = |link: &Link, name: &str| {
        line(
            format!("`ethtool -k {}`: {name}", link.name),
            evidence.name(end),
            (),
            "on",
            "",
        )
    };
    let tun = || offloading_tun(evidence, end).map(|link| feature(link, TCP_SEGMENTATION));
    match concerns {
        Concerns::ThreadedKernel => vec![line(
            "/sys/class/net/NAME/threaded",
            evidence.interface_at(end),
            (),
            1,
            "",
        )],
        Concerns::TunOffload => tun().into_iter().collect(),
        Concerns::UdpSegmentation => tun()
            .into_iter()
            .chain(segmenting_link(facts).map(|link| feature(link, UDP_SEGMENTATION)))
            .collect(),
    }
}

const TCP_SEGMENTATION: &str = "tx-tcp-segmentation";
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// `threaded` of the kernel's tunnel at an end; `None` for a userspace one, or when it is not known.
pub(super) fn threaded(evidence: &Evidence, end: End) -> Option<bool> {
    let tunnel = evidence
        .tunnel(end)
        .filter(|tunnel| tunnel.implementation == Implementation::Kernel)?;
    let link = evidence.facts(end)?.link(&tunnel.name)?;
    link.detail.value()?.threaded.value().copied()
}

/// The TUN interface of a daemon that takes and gives trains of segments: the kernel shows the feature on once the daemon
/// has asked for it (`TUNSETOFFLOAD`).
pub(super) fn offloading_tun(evidence: &Evidence, end: End) -> Option<&Link> {
    let tunnel = evidence
        .tunnel(end)
        .filter(|tunnel| tunnel.implementation != Implementation::Kernel)?;
    let link = evidence.facts(end)?.link(&tunnel.name)?;
    is_on(link, TCP_SEGMENTATION).then_some(link)
}

/// The first link of the outer packets' way that takes trains of UDP datagrams.
fn segmenting_link(facts: &Facts) -> Option<&Link> {
    facts
        .outer_links
        .iter()
        .filter_map(|name| facts.link(name))
        .find(|link| is_on(link, UDP_SEGMENTATION))
}

pub(super) fn is_on(link: &Link, feature: &str) -> bool {
    link.offloads
        .value()
        .is_some_and(|features| features.get(feature) == Some(&true))
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Implementation, Known, LinkDetail};
    use wirespeed_measure::Direction;

    use super::*;
    use crate::testing::{facts_of, healthy, nothing, only_finding, set_ratio, tunnel_of};

    fn kernel(release: &str, threaded: bool) -> Evidence {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let facts = facts_of(&mut evidence, End::Far);
        facts.host.kernel = release.to_owned();
        facts.links[0].kind = Some("wireguard".to_owned());
        facts.links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(threaded),
            ..LinkDetail::default()
        });
        evidence
    }

    fn daemon(release: &str, offload: bool, ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, ratio);
        let facts = facts_of(&mut evidence, End::Far);
        facts.host.kernel = release.to_owned();
        facts.links[0].offloads = Known::Value([(TCP_SEGMENTATION.to_owned(), offload)].into());
        evidence
    }

    #[test]
    fn a_kernel_that_may_stall_a_peer_is_named_while_all_is_well() {
        let finding = only_finding(&kernel("6.1.163", true), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Warning, "server")
        );
        assert!(finding.because.contains("threaded-napi-stall"));
        nothing(&kernel("6.1.164", true));
        nothing(&kernel("6.1.163", false));
        nothing(&kernel("6.18.3", true));
    }

    #[test]
    fn a_kernel_that_hides_its_release_is_only_mentioned() {
        let finding = only_finding(&kernel("6.1.0-38-amd64", true), CODE);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.because.contains("may be"));
    }

    #[test]
    fn what_only_costs_speed_is_named_where_speed_is_missing() {
        nothing(&daemon("6.6.44", true, 0.9));
        nothing(&daemon("6.6.44", true, 0.8));
        let finding = only_finding(&daemon("6.6.44", true, 0.7), CODE);
        assert!(finding.because.contains("tun-gso-einval"));
        only_finding(&daemon("6.6.44", false, 0.7), "unexplained");
        only_finding(&daemon("6.6.46", true, 0.7), "unexplained");
    }

    #[test]
    fn trains_of_datagrams_take_a_link_that_takes_them() {
        let mut evidence = daemon("7.1.4", true, 0.5);
        only_finding(&evidence, "unexplained");
        let facts = facts_of(&mut evidence, End::Far);
        facts.links.push(Link {
            name: "eth0".to_owned(),
            offloads: Known::Value([(UDP_SEGMENTATION.to_owned(), true)].into()),
            ..Link::default()
        });
        facts.outer_links = vec!["eth0".to_owned()];
        let finding = only_finding(&evidence, CODE);
        assert!(finding.because.contains("udp-gso-headers"));
        assert!(
            finding
                .evidence
                .iter()
                .any(|line| line.what.contains("eth0"))
        );
    }
}
