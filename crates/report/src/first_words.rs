//! What somebody is told whose tunnel could not be measured at all: that its ends never met, and how to name the other end.

use wirespeed_doctor::{End, FarKind, Verdict};
use wirespeed_facts::Peer;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use crate::look::Look;
use crate::record::DoctorRecord;

/// The paragraphs, each after an empty line; nothing where something was measured.
pub(crate) fn first_words(record: &DoctorRecord, look: &Look) -> String {
    let measured = &record.measurements;
    if record.verdict != Verdict::Unmeasured
        || !measured.comparisons.is_empty()
        || measured.passive.is_some()
    {
        return String::new();
    }
    let peers = peers(record);
    let mut out = String::new();
    let mut add = |text: String| {
        out.push('\n');
        out.push_str(&look.paragraph(0, &text));
    };
    if !peers.is_empty() && peers.iter().all(|peer| peer.handshake_age.is_none()) {
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
        let host = host.unwrap_or_else(|| say!("report-its-host"));
        let interface = shell_word(&record.interface);
        out.push('\n');
        // Commands stand alone, to be copied whole.
        for (words, far) in [
            (
                say!("report-name-the-far-end"),
                format!("ssh://root@{host}"),
            ),
            (say!("report-name-a-server"), format!("iperf3://{host}")),
        ] {
            let command = format!("wirespeed doctor {interface} --far {far}");
            out.push_str(&look.paragraph(0, &words));
            out.push_str(&look.paragraph(2, &command));
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
fn host(endpoint: &std::net::SocketAddr) -> String {
    match endpoint.ip() {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
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
        for tunnel in &mut record.machines[0].facts.tunnels {
            if let wirespeed_facts::Known::Value(peers) = &mut tunnel.peers {
                for peer in peers {
                    peer.handshake_age = None;
                    peer.endpoint = Some("192.0.2.2:51820".parse().unwrap());
                }
            }
        }
        record
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
        for tunnel in &mut record.machines[0].facts.tunnels {
            if let wirespeed_facts::Known::Value(peers) = &mut tunnel.peers {
                peers[0].handshake_age = Some(3.0);
            }
        }
        assert_eq!(said(&record), "");
    }

    #[test]
    fn an_address_of_version_six_is_written_as_far_takes_it() {
        let endpoint = "[2001:db8::2]:51820".parse().unwrap();
        assert_eq!(host(&endpoint), "[2001:db8::2]");
    }

    #[test]
    fn what_was_measured_needs_no_first_words() {
        let recorded = include_str!("../tests/recorded/doctor-healthy.json");
        assert_eq!(said(&serde_json::from_str(recorded).unwrap()), "");
    }
}
