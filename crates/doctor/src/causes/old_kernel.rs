//! `old-kernel`: the kernel is known to harm a tunnel like this one.
//!
//! Known from the release alone, by the table `data/kernels.toml`; so it is said only where the tunnel is of the kind that the
//! fault is about, and, for faults that only cost speed, where it is slow in the direction that the fault harms, and nothing
//! that was measured explains that.

use wirespeed_facts::{Implementation, Known, Link};
use wirespeed_measure::Direction;
use wirespeed_words::say;

use super::{explained, names_host, napi_threaded_stall, offload_broken};
use crate::cards::{outer_links, why};
use crate::finding::{Check, Found, Outcome, line, rates_line};
use crate::versions::{Concerns, Has, KernelFault, kernel_faults};
use crate::view::{DIRECTIONS, ENDS, receiver, sender};
use crate::{End, Evidence, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "old-kernel";

pub(super) const CHECK: Check = Check {
    follows_from,
    ..Check::new(CODE, || say!("old-kernel-title"), run)
};

/// A tunnel below this share of bare for sure is slow.
const SLOW: f64 = 0.8;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        // Both ends of one kernel are one machine; but each has its own kind of tunnel.
        for fault in kernel_faults() {
            let list = outcome.list(!is_danger(fault));
            list.extend(found(evidence, end, fault));
        }
    }
    outcome
}

/// A peer that stops for good is a danger even while all is well, and no load of ours is slow for it: one that it stops
/// carries nothing, and `napi-threaded-stall` says so. What only costs speed is not, where speed is fine.
fn is_danger(fault: &KernelFault) -> bool {
    fault.concerns == Concerns::ThreadedKernel
}

/// A check that found the fault at work says it better.
fn follows_from(evidence: &Evidence, cause: &Finding, own: &Finding) -> bool {
    [napi_threaded_stall::CODE, offload_broken::CODE].contains(&cause.code.as_str())
        && names_host(evidence, cause, &own.host)
}

fn found(evidence: &Evidence, end: End, fault: &KernelFault) -> Option<Found> {
    let facts = evidence.facts(end)?;
    let has = fault.of(&facts.host);
    if has == Has::No || !concerned(evidence, end, fault.concerns) {
        return None;
    }
    let slow = DIRECTIONS.into_iter().find(|direction| {
        (evidence.stalled(*direction) || evidence.below(*direction, SLOW) == Some(true))
            && may_harm(evidence, end, fault.concerns, *direction)
    });
    let danger = is_danger(fault);
    if slow.is_none() && !danger {
        return None;
    }
    let host = &facts.host;
    let mut lines = vec![line(
        say!("old-kernel-line-kernel"),
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
    lines.extend(condition(evidence, end, fault.concerns));
    lines.extend(slow.and_then(|direction| rates_line(evidence, direction)));
    lines.push(line(
        say!("old-kernel-line-source"),
        say!("old-kernel-public"),
        (),
        fault.sources.join("; "),
        "",
    ));
    let (severity, confidence) = match has {
        Has::Yes => (Severity::Warning, 0.7),
        _ => (Severity::Info, 0.4),
    };
    Some(Found {
        severity,
        confidence,
        effect: slow.map_or(0.3, |direction| evidence.lost_share(direction)),
        host: evidence.name(end).to_owned(),
        direction: slow.filter(|_| !danger),
        evidence: lines,
        because: because(evidence.name(end), &host.kernel, has, fault),
        remedies: vec![Remedy {
            title: say!("old-kernel-remedy", which = fault.remedy()),
            changes: Vec::new(),
            commands: Vec::new(),
            goal: Goal::Goodput,
            persistence: say!("old-kernel-persistence"),
            risk: say!("old-kernel-risk"),
            undo: say!("old-kernel-undo"),
        }],
        refused: Vec::new(),
    })
}

fn because(host: &str, kernel: &str, has: Has, fault: &KernelFault) -> String {
    if has == Has::Yes {
        say!(
            "old-kernel-because",
            host = host,
            kernel = kernel,
            fault = &fault.id,
            harm = fault.harm()
        )
    } else {
        say!(
            "old-kernel-because-perhaps",
            host = host,
            kernel = kernel,
            fault = &fault.id,
            harm = fault.harm()
        )
    }
}

/// Is the tunnel at this end of the kind a fault is about?
fn concerned(evidence: &Evidence, end: End, concerns: Concerns) -> bool {
    match concerns {
        Concerns::ThreadedKernel => threaded(evidence, end) == Some(true),
        Concerns::TunOffload => offloading_tun(evidence, end).is_some(),
        Concerns::UdpSegmentation => {
            offloading_tun(evidence, end).is_some() && segmenting_link(evidence, end).is_some()
        }
    }
}

/// May a fault of this end's kernel be what makes this direction slow?
fn may_harm(evidence: &Evidence, end: End, concerns: Concerns, direction: Direction) -> bool {
    match concerns {
        Concerns::ThreadedKernel => true,
        // What the kernel refuses is what the daemon writes to its TUN interface.
        Concerns::TunOffload => receiver(direction) == end && !explained(evidence, direction),
        Concerns::UdpSegmentation if sender(direction) != end => false,
        Concerns::UdpSegmentation => match offload_broken::whole(evidence, direction) {
            Some(whole) => !whole,
            None => !explained(evidence, direction),
        },
    }
}

/// What makes the tunnel be of that kind, as evidence.
fn condition(evidence: &Evidence, end: End, concerns: Concerns) -> Vec<crate::EvidenceLine> {
    let feature = |link: &Link, name: &str| {
        line(
            say!("old-kernel-line-feature", link = &link.name, feature = name),
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
            .chain(segmenting_link(evidence, end).map(|link| feature(link, UDP_SEGMENTATION)))
            .collect(),
    }
}

const TCP_SEGMENTATION: &str = "tx-tcp-segmentation";
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// `threaded` of the kernel's tunnel at an end; `None` for a userspace one, or when it is not known.
pub(super) fn threaded(evidence: &Evidence, end: End) -> Option<bool> {
    threads(evidence, end)?.value().copied()
}

/// Why it is not known whether the kernel's tunnel at an end has threads; `None` for a userspace one, too.
pub(super) fn threaded_unknown(evidence: &Evidence, end: End) -> Option<String> {
    why(&threads(evidence, end)?)
}

fn threads(evidence: &Evidence, end: End) -> Option<Known<bool>> {
    let tunnel = evidence
        .tunnel(end)
        .filter(|tunnel| tunnel.implementation == Implementation::Kernel)?;
    Some(match &evidence.facts(end)?.link(&tunnel.name)?.detail {
        Known::Unknown(because) => Known::Unknown(because.clone()),
        Known::Value(detail) => detail.threaded.clone(),
    })
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
fn segmenting_link(evidence: &Evidence, end: End) -> Option<&Link> {
    outer_links(evidence, end)
        .into_iter()
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
    use wirespeed_measure::SegmentationProbe;

    use super::*;
    use crate::judge;
    use crate::testing::{
        add_card, facts_of, healthy, nothing, only_finding, path_mtu, set_ratio, tunnel_of,
    };

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

    fn daemon(release: &str, offload: bool, slow: Direction, ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, slow, ratio);
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
        let receives = |release, offload, ratio| daemon(release, offload, Direction::Upload, ratio);
        nothing(&receives("6.6.44", true, 0.9));
        nothing(&receives("6.6.44", true, 0.8));
        let finding = only_finding(&receives("6.6.44", true, 0.7), CODE);
        assert!(finding.because.contains("tun-gso-einval"));
        assert_eq!(finding.direction, Some(Direction::Upload));
        only_finding(&receives("6.6.44", false, 0.7), "unexplained");
        only_finding(&receives("6.6.46", true, 0.7), "unexplained");
    }

    #[test]
    fn the_direction_in_which_it_writes_nothing_to_its_tun_is_slow_for_something_else() {
        only_finding(
            &daemon("6.6.44", true, Direction::Download, 0.7),
            "unexplained",
        );
        let mut explained = daemon("6.6.44", true, Direction::Upload, 0.7);
        explained.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        only_finding(&explained, "mtu-exceeds-path");
    }

    /// The server's kernel mangles trains, its card takes them, and this direction is slow.
    fn trains(slow: Direction) -> Evidence {
        let mut evidence = daemon("7.1.4", true, slow, 0.5);
        let facts = facts_of(&mut evidence, End::Far);
        add_card(
            facts,
            Link {
                offloads: Known::Value([(UDP_SEGMENTATION.to_owned(), true)].into()),
                ..Link::default()
            },
        );
        evidence
    }

    fn arrived(trains: u64) -> SegmentationProbe {
        SegmentationProbe {
            direction: Direction::Download,
            plain_sent: 400,
            plain_received: 400,
            trains_sent: 400,
            trains_received: trains,
            trains_mangled: 0,
            refused: None,
        }
    }

    #[test]
    fn trains_of_datagrams_take_a_link_that_takes_them_and_harm_who_sends_them() {
        only_finding(
            &daemon("7.1.4", true, Direction::Download, 0.5),
            "unexplained",
        );
        let finding = only_finding(&trains(Direction::Download), CODE);
        assert!(finding.because.contains("udp-gso-headers"));
        assert_eq!(finding.direction, Some(Direction::Download));
        assert!(
            finding
                .evidence
                .iter()
                .any(|line| line.what.contains("eth0"))
        );
        only_finding(&trains(Direction::Upload), "unexplained");
    }

    #[test]
    fn trains_that_were_tried_and_arrive_are_no_fault() {
        let mut evidence = trains(Direction::Download);
        evidence.segmentation.push(arrived(400));
        only_finding(&evidence, "unexplained");
        evidence.segmentation[0] = SegmentationProbe {
            refused: Some("EIO".to_owned()),
            ..arrived(0)
        };
        only_finding(&evidence, "unexplained");
        // A try that lost the single ones as well tells nothing.
        evidence.segmentation[0] = SegmentationProbe {
            plain_received: 300,
            ..arrived(300)
        };
        only_finding(&evidence, CODE);
        evidence.segmentation[0] = arrived(0);
        only_finding(&evidence, "offload-broken");
        assert!(judge(&evidence).findings.iter().any(|one| {
            one.code == CODE && one.consequence_of.as_deref() == Some("offload-broken")
        }));
    }
}
