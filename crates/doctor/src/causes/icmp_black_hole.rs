//! `icmp-black-hole`: a size is lost and nobody says so.
//!
//! Path MTU discovery cannot work on such a road. It only matters when the tunnel's packets are of that size; a black
//! hole above what the tunnel sends is none of its trouble and no finding.

use serde_json::json;
use wirespeed_measure::Direction;
use wirespeed_settings::{Setting, Value};
use wirespeed_words::say;

use super::mtu_exceeds_path::{by_doubt, confidence, in_doubt, remedies, severity, unknown};
use super::{mtu_exceeds_path, same_direction};
use crate::finding::{Check, Found, Outcome, remedy_of};
use crate::mtu::{self, Excess};
use crate::view::{DIRECTIONS, only, sender};
use crate::{Change, Evidence, Goal, Remedy};

pub(super) const CODE: &str = "icmp-black-hole";

pub(super) const CHECK: Check = Check {
    brings: |_, own, effect| effect.code == mtu_exceeds_path::CODE && same_direction(own, effect),
    ..Check::new(CODE, || say!("icmp-black-hole-title"), run)
};

const MTU_PROBING: &str = "net.ipv4.tcp_mtu_probing";

fn run(evidence: &Evidence) -> Outcome {
    let excesses: Vec<Excess> = DIRECTIONS
        .into_iter()
        .filter_map(|direction| mtu::excess(evidence, direction))
        .collect();
    Outcome {
        found: by_doubt(&excesses, |excess| excess.silent)
            .iter()
            .filter_map(|group| found(evidence, group))
            .collect(),
        not_known: unknown(evidence),
        ..Outcome::default()
    }
}

fn found(evidence: &Evidence, silent: &[&Excess]) -> Option<Found> {
    let first = silent.first()?;
    let directions: Vec<Direction> = silent.iter().map(|excess| excess.direction).collect();
    Some(Found {
        severity: severity(evidence, silent),
        confidence: confidence(evidence, silent, 0.75),
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(sender(first.direction)).to_owned(),
        direction: only(&directions),
        evidence: silent
            .iter()
            .flat_map(|excess| excess.lines(evidence))
            .collect(),
        because: match first.path_mtu {
            _ if first.doubtful => in_doubt(first),
            Some(mtu) => say!("icmp-black-hole-because", mtu = mtu, sent = first.outer),
            None => say!("icmp-black-hole-because-unknown", sent = first.outer),
        },
        remedies: remedies(evidence, first.doubtful)
            .into_iter()
            .chain(mtu_probing(evidence, &directions).filter(|_| !first.doubtful))
            .collect(),
        refused: Vec::new(),
    })
}

/// Lets TCP on the senders find the size by itself; only where it is off now.
fn mtu_probing(evidence: &Evidence, directions: &[Direction]) -> Option<Remedy> {
    let changes: Vec<(Change, Value)> = directions
        .iter()
        .map(|direction| sender(*direction))
        .filter(|end| {
            let now = evidence
                .facts(*end)
                .and_then(|facts| facts.sysctls.get(MTU_PROBING)?.value());
            now.is_some_and(|now| now.trim() == "0")
        })
        .map(|end| {
            let setting = Setting::Sysctl {
                name: MTU_PROBING.to_owned(),
            };
            (
                Change {
                    end,
                    setting,
                    value: json!("1"),
                },
                json!("0"),
            )
        })
        .collect();
    (!changes.is_empty()).then(|| {
        remedy_of(
            evidence,
            say!("icmp-black-hole-remedy-probing"),
            changes,
            Goal::Goodput,
            say!("icmp-black-hole-risk-probing"),
        )
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        at, codes, each_sample, facts_of, forget_far, healthy, not_checked, nothing, only_finding,
        path_mtu, set_ratio,
    };
    use crate::{End, Evidence, Severity, judge};

    /// Echo requests of more than `mtu` bytes are lost on the way up.
    fn unanswered(mtu: u32) -> Evidence {
        let mut evidence = healthy();
        let mut probe = path_mtu(Direction::Upload, mtu);
        probe.reported = None;
        probe.silent_loss = true;
        evidence.path_mtu[0] = probe;
        evidence
    }

    /// The same, and it is no filter: nothing full gets through, whatever is asked.
    fn silent(mtu: u32) -> Evidence {
        let mut evidence = unanswered(mtu);
        lost_inside(&mut evidence, mtu - 80, mtu - 60);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.stalled = true;
            sample.bytes = 0;
        });
        evidence
    }

    /// Nothing of that size comes out of the tunnel, either.
    fn lost_inside(evidence: &mut Evidence, largest_passed: u32, smallest_failed: u32) {
        evidence.tunnel_sweep[0].largest_passed = Some(largest_passed);
        evidence.tunnel_sweep[0].smallest_failed = Some(smallest_failed);
    }

    fn unloaded(mut evidence: Evidence) -> Evidence {
        evidence.comparisons.clear();
        evidence
    }

    #[test]
    fn a_silent_loss_of_the_tunnels_size_is_found_and_explains_the_mtu() {
        let diagnosis = judge(&silent(1400));
        let codes: Vec<_> = diagnosis
            .findings
            .iter()
            .map(|finding| (finding.code.as_str(), finding.consequence_of.as_deref()))
            .collect();
        assert_eq!(codes, [(CODE, None), ("mtu-exceeds-path", Some(CODE))]);
        let remedies = &diagnosis.findings[0].remedies;
        assert_eq!(remedies[0].changes[0].value, 1340);
        assert_eq!(remedies[1].changes[0].value, "1");
    }

    #[test]
    fn a_silent_loss_above_what_the_tunnel_needs_is_none_of_its_trouble() {
        nothing(&unanswered(1480));
    }

    #[test]
    fn echo_requests_that_a_firewall_limits_are_no_black_hole() {
        let outside = unanswered(964);
        let mut both = unanswered(964);
        lost_inside(&mut both, 1000, 1200);
        let mut inside = healthy();
        lost_inside(&mut inside, 1000, 1200);
        // Slow for another reason: that is what has to be found.
        let mut slow = both.clone();
        set_ratio(&mut slow, Direction::Upload, 0.3);
        // Pieces of what else the machines do.
        let mut busy = both.clone();
        each_sample(&mut busy, Direction::Upload, Via::Tunnel, |sample| {
            let counters = &mut at(sample, End::Far).protocols;
            counters.insert("Ip.ReasmReqds".to_owned(), 40);
        });
        let cases = [
            (&outside, true),
            (&both, true),
            (&busy, true),
            (&inside, false),
        ];
        for (limited, unknown) in cases {
            nothing(limited);
            // A size that passed outside leaves nothing open.
            assert_eq!(not_checked(limited, CODE), unknown);
        }
        assert_eq!(codes(&judge(&slow)), ["unexplained"]);
    }

    #[test]
    fn what_a_load_cannot_prove_is_a_suspicion() {
        let suspected = |evidence: &Evidence| {
            let finding = only_finding(evidence, CODE);
            let tried = finding.remedies.iter().any(|one| !one.changes.is_empty());
            finding.severity == Severity::Info && finding.confidence < 0.5 && !tried
        };
        let no_load = unloaded(unanswered(964));
        // Nobody saw whether what arrived came in pieces.
        let mut nobody_far = unanswered(1400);
        forget_far(&mut nobody_far);
        for evidence in [&no_load, &nobody_far] {
            assert!(suspected(evidence));
        }
        // Slow, although full packets arrive: another cause has to be found, and the sizes stay a suspicion.
        set_ratio(&mut nobody_far, Direction::Upload, 0.3);
        let diagnosis = judge(&nobody_far);
        let warned: Vec<&str> = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Info)
            .map(|finding| finding.code.as_str())
            .collect();
        assert_eq!(warned, ["unexplained"]);
    }

    /// A tunnel stalls for many reasons; a limit of echo requests beside it is no proof of one.
    #[test]
    fn a_stall_confirms_only_what_the_sizes_inside_do_not_contradict() {
        let sure = |evidence: &Evidence| only_finding(evidence, CODE).confidence > 0.9;
        let hole = silent(1400);
        assert!(sure(&hole));
        let mut limited = silent(964);
        lost_inside(&mut limited, 1000, 1200);
        assert!(!sure(&limited));
        // A piece of somebody else's while nothing moved.
        each_sample(&mut limited, Direction::Upload, Via::Tunnel, |sample| {
            let counters = &mut at(sample, End::Far).protocols;
            counters.insert("Ip.ReasmReqds".to_owned(), 1);
        });
        assert!(!sure(&limited));
    }

    #[test]
    fn a_tunnel_that_does_not_fill_its_packets_up_agrees_as_well() {
        let mut evidence = unloaded(unanswered(1400));
        lost_inside(&mut evidence, 1340, 1360);
        assert!(only_finding(&evidence, CODE).confidence > 0.9);
    }

    #[test]
    fn two_probes_that_say_the_same_need_no_load() {
        let mut evidence = unloaded(unanswered(1400));
        lost_inside(&mut evidence, 1320, 1340);
        let finding = only_finding(&evidence, CODE);
        assert_eq!(
            (finding.severity, finding.confidence),
            (Severity::Warning, 0.95)
        );
        // A firewall that drops large echo requests has the same number outside and inside.
        lost_inside(&mut evidence, 1392, 1400);
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Info);
    }

    /// What goes well in a load may be small, retransmitted in pieces, or over before anything is known.
    #[test]
    fn only_full_packets_that_arrive_whole_prove_the_contrary() {
        type Change = fn(&mut wirespeed_measure::Sample);
        let small: Change = |sample| {
            let windows = sample.windows.as_mut().expect("made up with one");
            windows.segment = Some(1288);
        };
        let pieces: Change = |sample| {
            let counters = &mut at(sample, End::Far).protocols;
            counters.insert("Ip.ReasmReqds".to_owned(), 16_000);
        };
        for (change, surely) in [(small, false), (pieces, true)] {
            let mut evidence = unanswered(1400);
            each_sample(&mut evidence, Direction::Upload, Via::Tunnel, change);
            let finding = only_finding(&evidence, CODE);
            assert_eq!(finding.severity >= Severity::Warning, surely);
            lost_inside(&mut evidence, 1320, 1340);
            assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
        }
        let few: Change = |sample| sample.bytes = 20_000;
        let unwatched: Change = |sample| sample.here.protocols.clear();
        for change in [few, unwatched] {
            let mut evidence = unanswered(1400);
            each_sample(&mut evidence, Direction::Upload, Via::Tunnel, change);
            only_finding(&evidence, CODE);
        }
    }

    /// The limit of the other direction is a filter's.
    #[test]
    fn a_disproved_direction_sets_no_mtu() {
        let mut evidence = unanswered(964);
        evidence.path_mtu[1] = path_mtu(Direction::Download, 1400);
        let finding = only_finding(&evidence, "mtu-exceeds-path");
        assert_eq!(finding.direction, Some(Direction::Download));
        assert_eq!(finding.remedies[0].changes[0].value, 1340);
        let mut suspected = unloaded(unanswered(964));
        suspected.path_mtu[1] = path_mtu(Direction::Download, 1400);
        let diagnosis = judge(&suspected);
        assert_eq!(diagnosis.findings[0].remedies[0].changes[0].value, 1340);
    }

    #[test]
    fn a_direction_with_errors_coming_back_is_not_its_consequence() {
        let mut evidence = silent(1400);
        evidence.path_mtu[1] = path_mtu(Direction::Download, 1400);
        let diagnosis = judge(&evidence);
        let roots: Vec<_> = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.consequence_of.is_none())
            .map(|finding| (finding.code.as_str(), finding.direction))
            .collect();
        assert_eq!(
            roots,
            [
                (CODE, Some(Direction::Upload)),
                ("mtu-exceeds-path", Some(Direction::Download))
            ]
        );
    }

    #[test]
    fn mtu_probing_is_proposed_only_where_it_is_off() {
        let mut evidence = silent(1400);
        assert_eq!(only_finding(&evidence, CODE).remedies.len(), 2);
        facts_of(&mut evidence, End::Here).sysctls.insert(
            "net.ipv4.tcp_mtu_probing".to_owned(),
            wirespeed_facts::Known::Value("1".to_owned()),
        );
        assert_eq!(only_finding(&evidence, CODE).remedies.len(), 1);
    }
}
