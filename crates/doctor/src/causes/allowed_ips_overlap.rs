//! `allowed-ips-overlap`: one peer silently gets nothing, because another holds its addresses.
//!
//! WireGuard gives a prefix to one peer only: the last to claim it takes it from the other, which is left with nothing
//! and says nothing. Known from the configuration alone, so it works when no packet passes.

use std::net::IpAddr;

use wirespeed_facts::{Known, Peer, Tunnel};
use wirespeed_settings::shell_word;

use crate::device;
use crate::finding::{Check, Found, Outcome, command, line};
use crate::view::ENDS;
use crate::{End, Evidence, EvidenceLine, Goal, Remedy, Severity};

pub(super) const CODE: &str = "allowed-ips-overlap";

pub(super) const CHECK: Check = Check::new(CODE, "A peer's addresses belong to another peer", run);

/// What wirespeed-device calls a packet from outside its peer's allowed IPs.
const SOURCE_NOT_ALLOWED: &str = "source-not-allowed";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some(tunnel) = evidence.tunnel(end) else {
            outcome
                .not_known
                .push(format!("the peers on {} are not known", evidence.name(end)));
            continue;
        };
        match &tunnel.peers {
            Known::Unknown(because) => outcome.not_known.push(format!(
                "the peers of {} are not known: {because}",
                evidence.interface_at(end)
            )),
            Known::Value(peers) => {
                outcome.found.extend(
                    peers
                        .iter()
                        .filter_map(|peer| robbed(evidence, end, tunnel, peers, peer)),
                );
            }
        }
    }
    outcome
}

/// A peer without any prefix, or whose own tunnel address another peer holds.
fn robbed(
    evidence: &Evidence,
    end: End,
    tunnel: &Tunnel,
    peers: &[Peer],
    peer: &Peer,
) -> Option<Found> {
    let is_the_other_end = evidence
        .peer_at(end)
        .is_some_and(|other| other.public_key == peer.public_key);
    let address = if is_the_other_end {
        inner_address(evidence, other(end))
    } else {
        None
    };
    let holder = address.and_then(|address| holder(peers, address));
    let misplaced = holder.is_some_and(|holder| holder.public_key != peer.public_key);
    if !(peer.allowed_ips.is_empty() || misplaced) {
        return None;
    }
    let place = evidence.interface_at(end);
    let mut lines = vec![line(
        format!("allowed IPs of peer {}", short(peer)),
        &place,
        (),
        if peer.allowed_ips.is_empty() {
            "none".to_owned()
        } else {
            peer.allowed_ips.join(", ")
        },
        "",
    )];
    if let (Some(address), Some(holder)) = (address, holder.filter(|_| misplaced)) {
        lines.push(line(
            format!(
                "peer that holds {address}, the address of {}",
                evidence.name(other(end))
            ),
            &place,
            short(peer),
            short(holder),
            "",
        ));
    }
    lines.extend(
        peers
            .iter()
            .filter(|other| other.public_key != peer.public_key && !other.allowed_ips.is_empty())
            .take(5)
            .map(|other| {
                line(
                    format!("allowed IPs of peer {}", short(other)),
                    &place,
                    (),
                    other.allowed_ips.join(", "),
                    "",
                )
            }),
    );
    lines.extend(frame_errors(evidence, end, tunnel));
    lines.extend(not_allowed(evidence, end));
    let nothing_passes = evidence
        .idle_rtt_tunnel
        .value()
        .is_some_and(|rtt| rtt.received == 0 && rtt.sent > 0);
    let cuts_us_off = is_the_other_end || (nothing_passes && !knows_the_other_end(evidence, end));
    let gets = match holder.filter(|_| misplaced) {
        Some(holder) => format!("packets for it go to peer {}", short(holder)),
        None => "nothing can be sent to it, and what it sends is dropped".to_owned(),
    };
    Some(Found {
        severity: if cuts_us_off {
            Severity::Critical
        } else {
            Severity::Warning
        },
        confidence: if is_the_other_end || nothing_passes {
            0.95
        } else {
            0.8
        },
        effect: if cuts_us_off { 1.0 } else { 0.3 },
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: lines,
        because: format!(
            "A prefix belongs to one peer only, and peer {} on {place} was left without its own: {gets}.",
            short(peer)
        ),
        remedies: vec![own_prefix(evidence, end, tunnel, peer, address)],
        refused: Vec::new(),
    })
}

fn other(end: End) -> End {
    match end {
        End::Here => End::Far,
        End::Far => End::Here,
    }
}

fn knows_the_other_end(evidence: &Evidence, end: End) -> bool {
    evidence
        .tunnel(other(end))
        .is_some_and(|tunnel| tunnel.public_key.is_some())
}

/// The first address of the tunnel's interface at an end.
fn inner_address(evidence: &Evidence, end: End) -> Option<IpAddr> {
    let name = &evidence.tunnel(end)?.name;
    let link = evidence
        .facts(end)?
        .links
        .iter()
        .find(|link| &link.name == name)?;
    link.addresses
        .iter()
        .filter_map(|address| prefix(address))
        .map(|(address, _)| address)
        .find(|address| !is_link_local(*address))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Whose longest prefix covers the address?
fn holder(peers: &[Peer], address: IpAddr) -> Option<&Peer> {
    peers
        .iter()
        .filter_map(|peer| {
            let longest = peer
                .allowed_ips
                .iter()
                .filter_map(|text| prefix(text))
                .filter(|prefix| covers(*prefix, address))
                .map(|(_, length)| length)
                .max()?;
            Some((longest, peer))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, peer)| peer)
}

/// `10.0.0.2/32`; a bare address is a host.
fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text
        .split_once('/')
        .map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Some(longest), |length| length.parse().ok())?;
    (length <= longest).then_some((address, length))
}

fn covers((network, length): (IpAddr, u8), address: IpAddr) -> bool {
    let same = |a: u128, b: u128, width: u32| {
        let host_bits = width - u32::from(length);
        host_bits == 128 || a >> host_bits == b >> host_bits
    };
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => same(
            u128::from(network.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            same(network.to_bits(), address.to_bits(), 128)
        }
        _ => false,
    }
}

/// WireGuard counts packets from outside a peer's allowed IPs as frame errors.
fn frame_errors(evidence: &Evidence, end: End, tunnel: &Tunnel) -> Option<EvidenceLine> {
    let delta = match end {
        End::Here => evidence.probing_here.as_ref(),
        End::Far => evidence.probing_far.as_ref(),
    }?;
    let errors = delta.links.get(&tunnel.name)?.rx_frame_errors;
    (errors > 0).then(|| {
        line(
            "rx_frame_errors while probing: packets from outside the allowed IPs",
            evidence.interface_at(end),
            0,
            errors,
            "packets",
        )
    })
}

/// A userspace daemon has no frame errors to count in; ours says it in its statistics.
fn not_allowed(evidence: &Evidence, end: End) -> Option<EvidenceLine> {
    let dropped = device::dropped_while_probing(evidence, end, SOURCE_NOT_ALLOWED);
    (dropped > 0).then(|| {
        line(
            format!(
                "dropped by {} while probing: packets from outside the allowed IPs",
                device::PROGRAM
            ),
            evidence.interface_at(end),
            0,
            dropped,
            "packets",
        )
    })
}

fn own_prefix(
    evidence: &Evidence,
    end: End,
    tunnel: &Tunnel,
    peer: &Peer,
    address: Option<IpAddr>,
) -> Remedy {
    let wanted = match address {
        Some(address) => format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 }),
        None => "ITS-ADDRESS/32".to_owned(),
    };
    let allowed: Vec<&str> = peer
        .allowed_ips
        .iter()
        .map(String::as_str)
        .chain([wanted.as_str()])
        .collect();
    let set = |list: &str| {
        command(
            evidence,
            end,
            format!(
                "wg set {} peer {} allowed-ips {}",
                shell_word(&tunnel.name),
                shell_word(&peer.public_key),
                shell_word(list)
            ),
        )
    };
    Remedy {
        title: format!(
            "Give peer {} its own prefix, and every other peer its own",
            short(peer)
        ),
        changes: Vec::new(),
        commands: vec![set(&allowed.join(","))],
        goal: Goal::Goodput,
        persistence: "`AllowedIPs =` under each [Peer] in the wg-quick file, no prefix twice"
            .to_owned(),
        risk: "takes the prefix from the peer that holds it now".to_owned(),
        undo: set(&peer.allowed_ips.join(",")),
    }
}

/// The first characters of a key, as `wg` users know them.
fn short(peer: &Peer) -> String {
    let start: String = peer.public_key.chars().take(8).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::{CODE, covers, prefix};
    use wirespeed_facts::{DeviceCounters, Known, LinkCounters, Peer};

    use crate::testing::{healthy, not_checked, nothing, only_finding, rtt, tunnel_of};
    use crate::{End, Evidence, Severity, Verdict, judge};

    fn peers(evidence: &mut Evidence, end: End) -> &mut Vec<Peer> {
        match &mut tunnel_of(evidence, end).peers {
            Known::Value(peers) => peers,
            Known::Unknown(because) => panic!("{because}"),
        }
    }

    fn another(allowed: &[&str]) -> Peer {
        Peer {
            public_key: "another-key".to_owned(),
            endpoint: None,
            allowed_ips: allowed.iter().map(|&text| text.to_owned()).collect(),
            handshake_age: None,
            keepalive: 0,
            rx_bytes: 0,
            tx_bytes: 0,
        }
    }

    #[test]
    fn prefixes_inside_each_other_are_no_fault() {
        let mut evidence = healthy();
        peers(&mut evidence, End::Far).push(another(&["10.9.0.0/24"]));
        nothing(&evidence);
    }

    #[test]
    fn a_peer_robbed_of_its_prefix_is_critical_when_it_is_us_and_no_load_could_run() {
        let mut evidence = healthy();
        peers(&mut evidence, End::Far)[0].allowed_ips.clear();
        peers(&mut evidence, End::Far).push(another(&["10.9.0.1/32"]));
        evidence.comparisons.clear();
        let mut silence = rtt(0.0);
        (silence.received, silence.median) = (0, None);
        evidence.idle_rtt_tunnel = Known::Value(silence);
        evidence.probing_far.as_mut().unwrap().links.insert(
            "wg1".to_owned(),
            LinkCounters {
                rx_frame_errors: 7,
                ..LinkCounters::default()
            },
        );
        let counters = DeviceCounters {
            drops: [("source-not-allowed".to_owned(), 9)].into(),
            ..DeviceCounters::default()
        };
        evidence
            .probing_far
            .as_mut()
            .unwrap()
            .devices
            .insert("wg1".to_owned(), counters);
        let finding = only_finding(&evidence, CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Critical, "server")
        );
        assert!(
            finding
                .evidence
                .iter()
                .any(|line| line.after == "another-…")
        );
        assert!(finding.evidence.iter().any(|line| line.after == 7));
        assert!(finding.evidence.iter().any(|line| line.after == 9));
        assert!(finding.remedies[0].commands[0].contains("allowed-ips 10.9.0.1/32"));
    }

    #[test]
    fn a_robbed_bystander_is_a_warning() {
        let mut evidence = healthy();
        peers(&mut evidence, End::Far).push(another(&[]));
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
    }

    #[test]
    fn an_address_held_by_another_is_found_though_some_prefix_is_left() {
        let mut evidence = healthy();
        peers(&mut evidence, End::Here)[0].allowed_ips = vec!["192.168.7.0/24".to_owned()];
        peers(&mut evidence, End::Here).push(another(&["10.9.0.0/24"]));
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
    }

    #[test]
    fn unknown_peers_are_said_to_be_unknown() {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Far).peers = Known::because("no permission");
        assert!(not_checked(&evidence, CODE));
        evidence.comparisons.clear();
        assert_eq!(judge(&evidence).verdict, Verdict::Unmeasured);
    }

    #[test]
    fn a_prefix_covers_its_addresses() {
        let covered = |network: &str, address: &str| {
            covers(prefix(network).unwrap(), address.parse().unwrap())
        };
        assert!(covered("10.0.0.0/24", "10.0.0.7"));
        assert!(!covered("10.0.0.0/24", "10.0.1.7"));
        assert!(covered("0.0.0.0/0", "192.0.2.1"));
        assert!(covered("::/0", "2001:db8::1"));
        assert!(!covered("::/0", "192.0.2.1"));
        assert!(covered("fd00::2/128", "fd00::2"));
        assert!(prefix("10.0.0.1/33").is_none());
    }
}
