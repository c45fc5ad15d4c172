//! What somebody is told whose tunnel could not be measured at all: that its ends never met, and how to name the other end.

use std::net::SocketAddr;

use wirespeed_doctor::{End, FarKind};
use wirespeed_facts::Peer;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use crate::look::Look;
use crate::record::DoctorRecord;

/// The paragraphs, each after an empty line; nothing where something was measured. Findings silence none of it: they may be of
/// the machine alone.
pub(crate) fn first_words(record: &DoctorRecord, look: &Look) -> String {
    let measured = &record.measurements;
    if !measured.comparisons.is_empty() || measured.passive.is_some() {
        return String::new();
    }
    let peers = peers(record);
    let mut out = String::new();
    let mut add = |text: String| {
        out.push('\n');
        out.push_str(&look.paragraph(0, &text));
    };
    // The facts are of the beginning. The first echo request may have made the handshake since.
    let answered = measured
        .idle_rtt_tunnel
        .value()
        .is_some_and(|rtt| rtt.received > 0);
    let met = answered || peers.iter().any(|peer| peer.handshake_age.is_some());
    if !peers.is_empty() && !met {
        add(match peers.as_slice() {
            [peer] if peer.endpoint.is_some() => say!(
                "report-never-met-at",
                endpoint = peer
                    .endpoint
                    .map_or_else(String::new, |one| one.to_string())
            ),
            _ => say!("report-never-met"),
        });
    }
    if record.far_kind == FarKind::Nothing {
        let host = match peers.as_slice() {
            [peer] => peer.endpoint.map(|one| host(&one)),
            _ => None,
        };
        let far = |way: &str| match &host {
            Some(host) => shell_word(&format!("{way}{host}")).into_owned(),
            // What somebody puts a name in the place of is not quoted.
            None => format!("{way}{}", say!("report-its-host")),
        };
        let interface = shell_word(&record.interface);
        out.push('\n');
        for (words, far) in [
            (say!("report-name-the-far-end"), far("ssh://root@")),
            (say!("report-name-a-server"), far("iperf3://")),
        ] {
            let command = format!("wirespeed doctor {interface} --far {far}");
            out.push_str(&look.paragraph(0, &words));
            out.push_str(&look.commands(2, &[command]));
        }
    }
    out
}

/// Those that the tunnel was to be measured to.
fn peers(record: &DoctorRecord) -> Vec<&Peer> {
    let here = record
        .machines
        .iter()
        .find(|machine| machine.end == End::Here);
    let tunnel = here.and_then(|machine| {
        let mut tunnels = machine.facts.tunnels.iter();
        tunnels.find(|tunnel| tunnel.name == record.interface)
    });
    let own = |peer: &&Peer| {
        record
            .peer
            .as_ref()
            .is_none_or(|key| *key == peer.public_key)
    };
    tunnel
        .and_then(|tunnel| tunnel.peers.value())
        .map(|peers| peers.iter().filter(own).collect())
        .unwrap_or_default()
}

/// The address as `--far` takes it.
fn host(endpoint: &SocketAddr) -> String {
    match endpoint {
        SocketAddr::V4(endpoint) => endpoint.ip().to_string(),
        // A link-local address is one of a certain link.
        SocketAddr::V6(endpoint) => match endpoint.scope_id() {
            0 => format!("[{}]", endpoint.ip()),
            link => format!("[{}%{link}]", endpoint.ip()),
        },
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_doctor::{Evidence, Verdict, judge};
    use wirespeed_facts::Known;
    use wirespeed_words::{Language, within};

    use super::*;

    /// A tunnel that nobody answered on, and of which only this end was looked at.
    fn alone() -> DoctorRecord {
        let recorded = include_str!("../tests/recorded/doctor-healthy.json");
        let mut record: DoctorRecord = serde_json::from_str(recorded).unwrap();
        record.verdict = Verdict::Unmeasured;
        record.far_kind = FarKind::Nothing;
        record.measurements.comparisons.clear();
        record.machines.truncate(1);
        answer(&mut record, 0);
        for peer in all_peers(&mut record) {
            peer.handshake_age = None;
            peer.endpoint = Some("192.0.2.2:51820".parse().unwrap());
        }
        record
    }

    fn all_peers(record: &mut DoctorRecord) -> impl Iterator<Item = &mut Peer> {
        let tunnels = record.machines[0].facts.tunnels.iter_mut();
        tunnels
            .filter_map(|tunnel| match &mut tunnel.peers {
                Known::Value(peers) => Some(peers),
                Known::Unknown(_) => None,
            })
            .flatten()
    }

    /// So many replies came through the tunnel.
    fn answer(record: &mut DoctorRecord, replies: u32) {
        let Known::Value(rtt) = &mut record.measurements.idle_rtt_tunnel else {
            panic!("the recording has echo requests through the tunnel");
        };
        rtt.received = replies;
    }

    fn said(record: &DoctorRecord) -> String {
        first_words(record, &Look::new(500, false, false))
    }

    #[test]
    fn ends_that_never_met_are_told_where_to_look_and_how_to_go_on() {
        let mut record = alone();
        let text = said(&record);
        assert!(text.contains("does UDP reach 192.0.2.2:51820"), "{text}");
        let command = format!(
            "\n  wirespeed doctor {} --far ssh://root@192.0.2.2\n",
            record.interface
        );
        assert!(text.contains(&command), "{text}");
        let french = within(Language::French, || said(&record));
        assert!(french.contains("jamais"), "{french}");

        record.far_kind = FarKind::Wirespeed;
        assert!(!said(&record).contains("--far"));
        for peer in all_peers(&mut record) {
            peer.handshake_age = Some(3.0);
        }
        assert_eq!(said(&record), "");
    }

    #[test]
    fn a_handshake_made_by_the_first_echo_request_is_one() {
        let mut record = alone();
        answer(&mut record, 1);
        let text = said(&record);
        assert!(!text.contains("shaken hands"), "{text}");
        assert!(text.contains("--far ssh://root@192.0.2.2\n"), "{text}");
    }

    #[test]
    fn a_finding_of_the_machine_alone_leaves_them() {
        let slow = include_str!("../../doctor/tests/cases/socket-overflow.json");
        let evidence: Evidence = serde_json::from_str(slow).unwrap();
        let mut record = alone();
        let words = said(&record);
        record.verdict = Verdict::Findings;
        record.findings = judge(&evidence).findings;
        assert!(!record.findings.is_empty());
        assert_eq!(said(&record), words);
        let all = crate::doctor(&record, "", &Look::new(500, false, false));
        assert!(all.contains(&words), "{all}");
    }

    #[test]
    fn an_address_of_version_six_is_written_as_far_takes_it() {
        let named = |endpoint: &str| host(&endpoint.parse().unwrap());
        assert_eq!(named("[2001:db8::2]:51820"), "[2001:db8::2]");
        assert_eq!(named("[fe80::2%3]:51820"), "[fe80::2%3]");
    }

    #[test]
    fn a_command_is_one_line_of_words_for_a_shell() {
        let mut record = alone();
        let address = "2001:db8:1234:5678:9abc:def0:1234:5678";
        for peer in all_peers(&mut record) {
            peer.endpoint = Some(format!("[{address}]:51820").parse().unwrap());
        }
        let text = first_words(&record, &Look::new(60, false, false));
        for way in ["ssh://root@", "iperf3://"] {
            let command = format!(
                "\n  wirespeed doctor {} --far '{way}[{address}]'\n",
                record.interface
            );
            assert!(text.contains(&command), "{text}");
        }
        // With no address to go by, a word stands for it, and stands bare in each language.
        for peer in all_peers(&mut record) {
            peer.endpoint = None;
        }
        let french = within(Language::French, || said(&record));
        assert!(french.contains("--far ssh://root@HÔTE\n"), "{french}");
    }

    #[test]
    fn what_was_measured_needs_no_first_words() {
        let recorded = include_str!("../tests/recorded/doctor-healthy.json");
        assert_eq!(said(&serde_json::from_str(recorded).unwrap()), "");
    }
}
