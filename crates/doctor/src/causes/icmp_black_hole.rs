//! `icmp-black-hole`: a size is lost and nobody says so.
//!
//! Path MTU discovery cannot work on such a road. It only matters when the tunnel's packets are of that size; a black
//! hole above what the tunnel sends is none of its trouble and no finding.

use serde_json::json;
use wirespeed_measure::Direction;
use wirespeed_settings::{Setting, Value};
use wirespeed_words::say;

use super::mtu_exceeds_path::{remedies, severity, unknown};
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
    let silent: Vec<Excess> = DIRECTIONS
        .into_iter()
        .filter_map(|direction| mtu::excess(evidence, direction))
        .filter(|excess| excess.silent)
        .collect();
    Outcome {
        found: found(evidence, &silent).into_iter().collect(),
        not_known: unknown(evidence),
        ..Outcome::default()
    }
}

fn found(evidence: &Evidence, silent: &[Excess]) -> Option<Found> {
    let first = silent.first()?;
    let directions: Vec<Direction> = silent.iter().map(|excess| excess.direction).collect();
    Some(Found {
        severity: severity(evidence, &directions),
        confidence: if silent.iter().any(|excess| excess.confirmed(evidence)) {
            0.95
        } else {
            0.75
        },
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(sender(first.direction)).to_owned(),
        direction: only(&directions),
        evidence: silent
            .iter()
            .flat_map(|excess| excess.lines(evidence))
            .collect(),
        because: match first.path_mtu {
            Some(mtu) => say!("icmp-black-hole-because", mtu = mtu, sent = first.outer),
            None => say!("icmp-black-hole-because-unknown", sent = first.outer),
        },
        remedies: remedies(evidence)
            .into_iter()
            .chain(mtu_probing(evidence, &directions))
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
    use wirespeed_measure::Direction;

    use super::CODE;
    use crate::testing::{facts_of, healthy, nothing, only_finding, path_mtu};
    use crate::{End, Evidence, judge};

    fn silent(mtu: u32) -> Evidence {
        let mut evidence = healthy();
        let mut probe = path_mtu(Direction::Upload, mtu);
        probe.reported = None;
        probe.silent_loss = true;
        evidence.path_mtu[0] = probe;
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
        nothing(&silent(1480));
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
        facts_of(&mut evidence, End::Here).sysctls.insert(
            "net.ipv4.tcp_mtu_probing".to_owned(),
            wirespeed_facts::Known::Value("1".to_owned()),
        );
        assert_eq!(only_finding(&evidence, CODE).remedies.len(), 1);
    }
}
