//! `mtu-exceeds-path`: the tunnel's packets are larger than the path carries.
//!
//! Known from the don't-fragment probe outside the tunnel and the size sweep inside it, per direction; the
//! fragmentation counters during the loads confirm it, and full packets that arrive whole refute what only echo requests say.

use wirespeed_measure::Direction;
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome};
use crate::mtu::{self, Excess, IPV6_MINIMUM};
use crate::view::{DIRECTIONS, only, sender};
use crate::{Evidence, Remedy, Severity};

pub(super) const CODE: &str = "mtu-exceeds-path";

pub(super) const CHECK: Check = Check {
    slows: mtu::slows,
    ..Check::new(CODE, || say!("mtu-exceeds-path-title"), run)
};

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome {
        not_known: unknown(evidence),
        ..Outcome::default()
    };
    let excesses: Vec<Excess> = DIRECTIONS
        .into_iter()
        .filter_map(|direction| mtu::excess(evidence, direction))
        .collect();
    // Directions with a black hole are told apart: only those are a consequence of it.
    for silent in [true, false] {
        for group in by_doubt(&excesses, |excess| excess.silent == silent) {
            outcome.found.extend(found(evidence, &group));
        }
    }
    outcome
}

/// The directions in which it is for sure so, and those in which it is no more than a suspicion.
pub(super) fn by_doubt<'a>(
    excesses: &'a [Excess<'a>],
    wanted: impl Fn(&Excess) -> bool,
) -> [Vec<&'a Excess<'a>>; 2] {
    excesses
        .iter()
        .filter(|excess| wanted(excess))
        .partition(|excess| !excess.doubtful)
        .into()
}

/// Why a direction could not be judged, one line each.
pub(super) fn unknown(evidence: &Evidence) -> Vec<String> {
    if evidence.passive.is_some() {
        return vec![say!("mtu-exceeds-path-unknown-watched")];
    }
    DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            let end = sender(direction);
            if evidence.tunnel(end).is_none() {
                Some(say!(
                    "mtu-exceeds-path-unknown-sender",
                    direction = direction.word(),
                    host = evidence.name(end)
                ))
            } else if let Some((believed, arrived)) = mtu::filtered(evidence, direction) {
                Some(say!(
                    "mtu-exceeds-path-unknown-filtered",
                    direction = direction.word(),
                    believed = believed,
                    arrived = arrived
                ))
            } else if mtu::probe(evidence, direction).is_none()
                && mtu::excess(evidence, direction).is_none()
            {
                Some(say!(
                    "mtu-exceeds-path-unknown-path",
                    direction = direction.word()
                ))
            } else {
                None
            }
        })
        .collect()
}

fn found(evidence: &Evidence, group: &[&Excess]) -> Option<Found> {
    let first = group.first()?;
    let directions: Vec<Direction> = group.iter().map(|excess| excess.direction).collect();
    let because = match first.path_mtu {
        _ if first.doubtful => in_doubt(first),
        Some(path) => say!(
            "mtu-exceeds-path-because",
            mtu = first.tunnel_mtu,
            outer = first.outer,
            path = path
        ),
        None => lost_inside(first),
    };
    Some(Found {
        severity: severity(evidence, group),
        confidence: confidence(evidence, group, 0.7),
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(sender(first.direction)).to_owned(),
        direction: only(&directions),
        evidence: group
            .iter()
            .flat_map(|excess| excess.lines(evidence))
            .collect(),
        because,
        remedies: remedies(evidence, first.doubtful),
        refused: Vec::new(),
    })
}

/// Critical where it cripples the tunnel, else a warning; worth knowing where nothing but echo requests speaks for it.
pub(super) fn severity(evidence: &Evidence, group: &[&Excess]) -> Severity {
    let crippled = |excess: &&Excess| evidence.crippled(excess.direction);
    if group.iter().all(|excess| excess.doubtful) {
        Severity::Info
    } else if group.iter().any(crippled) {
        Severity::Critical
    } else {
        Severity::Warning
    }
}

/// How sure it is; `unconfirmed` where probes alone say so.
pub(super) fn confidence(evidence: &Evidence, group: &[&Excess], unconfirmed: f64) -> f64 {
    if group.iter().all(|excess| excess.doubtful) {
        0.4
    } else if group.iter().any(|excess| excess.confirmed(evidence)) {
        0.95
    } else {
        unconfirmed
    }
}

/// Why a suspicion is no more than that.
pub(super) fn in_doubt(excess: &Excess) -> String {
    match excess.fitting {
        Some(fitting) => say!(
            "mtu-exceeds-path-because-doubtful",
            mtu = excess.tunnel_mtu,
            fitting = fitting
        ),
        None => lost_inside(excess),
    }
}

fn lost_inside(excess: &Excess) -> String {
    say!(
        "mtu-exceeds-path-because-inside",
        mtu = excess.tunnel_mtu,
        outer = excess.outer
    )
}

/// The MTU both directions carry, at both ends; on a suspicion to be tried by hand only.
pub(super) fn remedies(evidence: &Evidence, doubtful: bool) -> Vec<Remedy> {
    let Some(mtu) = mtu::fitting_both(evidence, doubtful) else {
        return Vec::new();
    };
    let risk = if mtu < IPV6_MINIMUM {
        say!(
            "mtu-exceeds-path-risk-ipv6",
            mtu = mtu,
            least = IPV6_MINIMUM
        )
    } else {
        say!("mtu-exceeds-path-risk")
    };
    let mut remedy = mtu::set_mtu(
        evidence,
        mtu,
        say!("mtu-exceeds-path-remedy", mtu = mtu),
        |now, then| now > then,
        risk,
    );
    if doubtful {
        remedy.changes.clear();
    }
    vec![remedy]
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{EndpointRoute, Implementation, Known};
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        each_sample, facts_of, forget_far, healthy, not_checked, nothing, only_finding, path_mtu,
        set_ratio, tunnel_of, watched,
    };
    use crate::{End, Severity};

    #[test]
    fn a_path_one_byte_too_small_is_found_and_an_exact_one_is_not() {
        let mut evidence = healthy();
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1480);
        nothing(&evidence);
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1479);
        let finding = only_finding(&evidence, CODE);
        assert_eq!(
            (finding.severity, finding.direction, finding.host.as_str()),
            (Severity::Warning, Some(Direction::Upload), "client")
        );
        let remedy = &finding.remedies[0];
        assert_eq!(remedy.changes.len(), 2, "both ends");
        assert!(remedy.changes.iter().all(|change| change.value == 1419));
        assert!(remedy.undo.contains("1420"));
    }

    #[test]
    fn an_ipv6_endpoint_takes_twenty_bytes_more() {
        let mut evidence = healthy();
        for end in [End::Here, End::Far] {
            if let wirespeed_facts::Known::Value(peers) = &mut tunnel_of(&mut evidence, end).peers {
                peers[0].endpoint = Some("[2001:db8::1]:51820".parse().unwrap());
            }
        }
        nothing(&evidence);
        evidence.path_mtu[1] = path_mtu(Direction::Download, 1480);
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.remedies[0].changes[0].value, 1400);
    }

    #[test]
    fn it_is_critical_when_the_tunnel_is_crippled() {
        let mut evidence = healthy();
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        set_ratio(&mut evidence, Direction::Upload, 0.2);
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
        set_ratio(&mut evidence, Direction::Upload, 0.96);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.stalled = true;
        });
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
    }

    #[test]
    fn both_directions_are_one_finding() {
        let mut evidence = healthy();
        evidence.path_mtu = vec![
            path_mtu(Direction::Upload, 1400),
            path_mtu(Direction::Download, 1350),
        ];
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.direction, None);
        assert!(
            finding.remedies[0]
                .changes
                .iter()
                .all(|change| change.value == 1290)
        );
    }

    #[test]
    fn sizes_lost_inside_the_tunnel_are_enough() {
        let mut evidence = healthy();
        evidence.path_mtu.clear();
        evidence.tunnel_sweep[0].largest_passed = Some(1340);
        evidence.tunnel_sweep[0].smallest_failed = Some(1341);
        // The loads' full packets arrived.
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
        set_ratio(&mut evidence, Direction::Upload, 0.3);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.windows = None;
        });
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.remedies[0].changes[0].value, 1340);
    }

    #[test]
    fn below_1280_it_says_that_ipv6_breaks() {
        let mut evidence = healthy();
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1300);
        assert!(
            only_finding(&evidence, CODE).remedies[0]
                .risk
                .contains("IPv6")
        );
    }

    #[test]
    fn without_a_probe_the_senders_own_route_tells() {
        let mut evidence = watched();
        let way = |mtu: u32| EndpointRoute {
            to: "192.0.2.1".parse().unwrap(),
            inside: false,
            interface: Known::Value("eth0".to_owned()),
            gateway: None,
            source: None,
            mtu: Some(mtu),
            congestion_control: None,
        };
        facts_of(&mut evidence, End::Here).routes = vec![way(1480)];
        nothing(&evidence);
        facts_of(&mut evidence, End::Here).routes = vec![way(1479)];
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.direction, Some(Direction::Upload));
        // What a probe saw arrive counts for more.
        evidence.path_mtu = vec![path_mtu(Direction::Upload, 1500)];
        nothing(&evidence);
    }

    #[test]
    fn without_a_probe_it_says_so() {
        let mut evidence = healthy();
        assert!(!not_checked(&evidence, CODE));
        evidence.path_mtu.clear();
        assert!(not_checked(&evidence, CODE));
        let mut evidence = healthy();
        forget_far(&mut evidence);
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
    }

    #[test]
    fn the_kernels_tunnel_is_judged_alike() {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Here).implementation = Implementation::Kernel;
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        only_finding(&evidence, CODE);
    }
}
