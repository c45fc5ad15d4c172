//! `allowed-ips-overlap`: one peer silently gets nothing, because another holds its addresses.
//!
//! WireGuard gives a prefix to one peer only: the last to claim it takes it from the other, which is left with nothing
//! and says nothing. Known from the configuration alone, so it works when no packet passes.

use std::net::IpAddr;
use wirespeed_words::say;

use wirespeed_facts::{Known, Peer, Tunnel};
use wirespeed_measure::Via;
use wirespeed_settings::shell_word;

use crate::finding::{Check, Found, Outcome, command, line};
use crate::view::ENDS;
use crate::{End, Evidence, EvidenceLine, Goal, Remedy, Severity};
use crate::{device, watched};

pub(super) const CODE: &str = "allowed-ips-overlap";

pub(super) const CHECK: Check = Check::new(CODE, || say!("allowed-ips-overlap-title"), run);

/// Peers that are told one by one.
const MOST_TOLD: usize = 8;
/// Addresses of an interface that are looked at.
const MOST_ADDRESSES: usize = 64;
/// What handshakes (240 bytes every 5 s at most) and keepalives (32 bytes every second at most) add up to, bytes per second.
const MOST_SIGNALS_PER_SECOND: f64 = 80.0;
/// What wirespeed-device calls a packet from outside its peer's allowed IPs.
const SOURCE_NOT_ALLOWED: &str = "source-not-allowed";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some(tunnel) = evidence.tunnel(end) else {
            outcome.not_known.push(say!(
                "allowed-ips-overlap-unknown-peers",
                host = evidence.name(end)
            ));
            continue;
        };
        match &tunnel.peers {
            Known::Unknown(because) => outcome.not_known.push(say!(
                "allowed-ips-overlap-unknown-peers-because",
                place = evidence.interface_at(end),
                because = because
            )),
            Known::Value(peers) => {
                if peers.len() > 1 && evidence.tunnel(other(end)).is_none() {
                    outcome.not_known.push(say!(
                        "allowed-ips-overlap-unknown-address",
                        host = evidence.name(other(end))
                    ));
                }
                robbed(&mut outcome, evidence, end, tunnel, peers);
                let without = without_any(evidence, end, tunnel, peers);
                // Where it is not known which peer the other end is, it may be one of these.
                let unknown = evidence.peer_at(end).is_none();
                outcome.list(unknown).extend(without);
            }
        }
    }
    outcome
}

/// The other end without any prefix, or whose tunnel address another peer holds; and does nothing reach it any more? With
/// an address left to it our loads take that one, as fast as ever.
fn robbed(outcome: &mut Outcome, evidence: &Evidence, end: End, tunnel: &Tunnel, peers: &[Peer]) {
    let Some(peer) = evidence.peer_at(end) else {
        return;
    };
    let addresses = inner_addresses(evidence, other(end));
    let taken = taken(peers, peer, &addresses);
    if !(peer.allowed_ips.is_empty() || taken.is_some()) {
        return;
    }
    let place = evidence.interface_at(end);
    let passing = passing(evidence, end, peer);
    // With other prefixes of its own and no one after this very address, it may be meant to have just those: two sites
    // that are joined by the networks behind them need no addresses inside the tunnel.
    let aside = taken.filter(|taken| !peer.allowed_ips.is_empty() && !taken.alone);
    if let (Some(taken), Passing::NotTried) = (&aside, passing) {
        outcome.not_known.push(say!(
            "allowed-ips-overlap-unknown-meant",
            peer = short(peer),
            place = &place,
            address = taken.address.to_string(),
            holder = short(taken.holder)
        ));
        return;
    }
    let mut lines = vec![allowed_ips(&place, peer)];
    if let Some(taken) = taken {
        lines.push(line(
            say!(
                "allowed-ips-overlap-line-holder",
                address = taken.address.to_string(),
                host = evidence.name(other(end))
            ),
            &place,
            short(peer),
            short(taken.holder),
            "",
        ));
    }
    lines.extend(others(&place, peers, peer));
    lines.extend(frame_errors(evidence, end, tunnel));
    lines.extend(not_allowed(evidence, end));
    // With an address left to it, something passes.
    let left = addresses.iter().any(|address| holds(peers, peer, *address));
    let cut_off = !left && passing != Passing::Something;
    let (severity, confidence, effect) = match (cut_off, &aside) {
        (true, None) => (Severity::Critical, 0.95, 1.0),
        // What else is in the way would look the same.
        (true, Some(_)) => (Severity::Critical, 0.8, 1.0),
        (false, None) => (Severity::Warning, 0.8, 0.3),
        (false, Some(_)) => (Severity::Info, 0.8, 0.0),
    };
    let because = match (taken, &aside) {
        (_, Some(taken)) if !cut_off => say!(
            "allowed-ips-overlap-because-aside",
            address = taken.address.to_string(),
            host = evidence.name(other(end)),
            place = &place,
            holder = short(taken.holder),
            peer = short(peer)
        ),
        (Some(taken), _) => say!(
            "allowed-ips-overlap-because-taken",
            peer = short(peer),
            place = &place,
            holder = short(taken.holder)
        ),
        (None, _) => without_its_own(&place, peer),
    };
    let wanted = taken.map(|taken| taken.address);
    outcome.list(cut_off).push(Found {
        severity,
        confidence,
        effect,
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: lines,
        because,
        remedies: vec![own_prefix(
            evidence,
            end,
            tunnel,
            peers,
            &[peer],
            wanted.or(addresses.first().copied()),
        )],
        refused: Vec::new(),
    });
}

/// What came through the tunnel between the two ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    Something,
    /// Something was sent, and nothing came.
    Nothing,
    NotTried,
}

fn passing(evidence: &Evidence, end: End, peer: &Peer) -> Passing {
    let echoes = evidence.idle_rtt_tunnel.value();
    let mut loads = evidence
        .comparisons
        .iter()
        .flat_map(|comparison| &comparison.samples)
        .chain(&evidence.soaks)
        .filter(|sample| sample.load.via == Via::Tunnel)
        .peekable();
    let tried = loads.peek().is_some() || echoes.is_some_and(|echoes| echoes.sent > 0);
    let passes = echoes.is_some_and(|echoes| echoes.received > 0)
        || loads.any(|sample| sample.bytes > 0 && !sample.stalled)
        || conversed(evidence, end, peer);
    match (passes, tried) {
        (true, _) => Passing::Something,
        (false, true) => Passing::Nothing,
        (false, false) => Passing::NotTried,
    }
}

/// More than handshakes and keepalives went both ways between an end and its peer while it was watched. One way tells
/// nothing: a daemon may count what it then drops for its sender's address.
fn conversed(evidence: &Evidence, end: End, peer: &Peer) -> bool {
    watched::at(evidence, end).is_some_and(|watched| {
        let most = MOST_SIGNALS_PER_SECOND * (watched.seconds + 1.0);
        let moved = watched.counters.peers.get(&peer.public_key);
        moved.is_some_and(|moved| moved.rx_bytes.min(moved.tx_bytes) as f64 > most)
    })
}

/// An address of the other end that another peer holds.
#[derive(Clone, Copy)]
struct Taken<'a> {
    address: IpAddr,
    holder: &'a Peer,
    /// It holds that very address, no network around it.
    alone: bool,
}

/// The address of the other end that another peer holds, that very one before any by a network around it. An end may have further addresses that its
/// peer need not hold (a router's own, another network's): while it holds one, another of that kind was taken from it only
/// where none of the same family is left and somebody holds that very address.
fn taken<'a>(peers: &'a [Peer], peer: &Peer, addresses: &[IpAddr]) -> Option<Taken<'a>> {
    let held: Vec<IpAddr> = addresses
        .iter()
        .copied()
        .filter(|address| holds(peers, peer, *address))
        .collect();
    let taken = addresses.iter().filter_map(|address| {
        let (length, holder) = holder(peers, *address)?;
        let alone = length == host(*address).1;
        let by_itself = alone && held.iter().all(|held| held.is_ipv4() != address.is_ipv4());
        (holder.public_key != peer.public_key && (held.is_empty() || by_itself)).then_some(Taken {
            address: *address,
            holder,
            alone,
        })
    });
    taken.min_by_key(|taken| !taken.alone)
}

/// All other peers without any prefix. They may be accounts that somebody switched off.
fn without_any(evidence: &Evidence, end: End, tunnel: &Tunnel, peers: &[Peer]) -> Option<Found> {
    let other_end = evidence.peer_at(end).map(|peer| &peer.public_key);
    let without: Vec<&Peer> = peers
        .iter()
        .filter(|peer| peer.allowed_ips.is_empty() && Some(&peer.public_key) != other_end)
        .collect();
    let first = without.first()?;
    let place = evidence.interface_at(end);
    let told = &without[..without.len().min(MOST_TOLD)];
    let mut lines: Vec<EvidenceLine> = told.iter().map(|peer| allowed_ips(&place, peer)).collect();
    lines.extend(others(&place, peers, first));
    lines.extend(frame_errors(evidence, end, tunnel));
    lines.extend(not_allowed(evidence, end));
    let nothing_passes = evidence
        .idle_rtt_tunnel
        .value()
        .is_some_and(|rtt| rtt.received == 0 && rtt.sent > 0);
    let mut names: Vec<String> = told.iter().map(|peer| short(peer)).collect();
    if told.len() < without.len() {
        names.push("…".to_owned());
    }
    Some(Found {
        severity: Severity::Warning,
        // That something else is silent makes them no more likely to be missed.
        confidence: if nothing_passes { 0.6 } else { 0.8 },
        effect: 0.3,
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: lines,
        because: if without.len() == 1 {
            without_its_own(&place, first)
        } else {
            say!(
                "allowed-ips-overlap-because-several",
                count = without.len(),
                place = &place,
                peers = names.join(", ")
            )
        },
        remedies: vec![own_prefix(evidence, end, tunnel, peers, told, None)],
        refused: Vec::new(),
    })
}

fn without_its_own(place: &str, peer: &Peer) -> String {
    say!(
        "allowed-ips-overlap-because-one",
        peer = short(peer),
        place = place
    )
}

fn allowed_ips(place: &str, peer: &Peer) -> EvidenceLine {
    line(
        say!("allowed-ips-overlap-line-prefixes", peer = short(peer)),
        place,
        (),
        if peer.allowed_ips.is_empty() {
            say!("allowed-ips-overlap-none")
        } else {
            peer.allowed_ips.join(", ")
        },
        "",
    )
}

/// Some of the peers that have what this one may lack.
fn others<'a>(
    place: &'a str,
    peers: &'a [Peer],
    peer: &'a Peer,
) -> impl Iterator<Item = EvidenceLine> + 'a {
    peers
        .iter()
        .filter(|other| other.public_key != peer.public_key && !other.allowed_ips.is_empty())
        .take(5)
        .map(|other| allowed_ips(place, other))
}

fn other(end: End) -> End {
    match end {
        End::Here => End::Far,
        End::Far => End::Here,
    }
}

/// The addresses of the tunnel's interface at an end.
fn inner_addresses(evidence: &Evidence, end: End) -> Vec<IpAddr> {
    let link = evidence
        .tunnel(end)
        .and_then(|tunnel| evidence.facts(end)?.link(&tunnel.name));
    link.into_iter()
        .flat_map(|link| &link.addresses)
        .filter_map(|address| prefix(address))
        .map(|(address, _)| address)
        .filter(|address| !is_link_local(*address))
        .take(MOST_ADDRESSES)
        .collect()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Whose longest prefix covers the address, and how long is it?
fn holder(peers: &[Peer], address: IpAddr) -> Option<(u8, &Peer)> {
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
}

fn holds(peers: &[Peer], peer: &Peer, address: IpAddr) -> bool {
    holder(peers, address).is_some_and(|(_, holder)| holder.public_key == peer.public_key)
}

/// The prefix of an address alone.
fn host(address: IpAddr) -> (IpAddr, u8) {
    (address, if address.is_ipv4() { 32 } else { 128 })
}

/// `10.0.0.2/32`; a bare address is a host.
fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text
        .split_once('/')
        .map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let (_, longest) = host(address);
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
            say!("allowed-ips-overlap-line-frame-errors"),
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
            say!(
                "allowed-ips-overlap-line-dropped",
                program = device::PROGRAM
            ),
            evidence.interface_at(end),
            0,
            dropped,
            "packets",
        )
    })
}

/// Gives each of these peers its own: the address, or what a person has to fill in.
fn own_prefix(
    evidence: &Evidence,
    end: End,
    tunnel: &Tunnel,
    peers: &[Peer],
    to: &[&Peer],
    address: Option<IpAddr>,
) -> Remedy {
    let wanted = match address.map(host) {
        Some((address, length)) => format!("{address}/{length}"),
        None => "ITS-ADDRESS/32".to_owned(),
    };
    let with_wanted = |peer: &Peer| {
        let mut list = peer.allowed_ips.clone();
        list.push(wanted.clone());
        list
    };
    let set = |peer: &Peer, list: &[String]| {
        command(
            evidence,
            end,
            format!(
                "wg set {} peer {} allowed-ips {}",
                shell_word(&tunnel.name),
                shell_word(&peer.public_key),
                shell_word(&list.join(","))
            ),
        )
    };
    // Whoever holds just this prefix now loses it by the command, and must get it back.
    let loses_it = |peer: &&Peer| {
        address.is_some_and(|address| {
            let mut held = peer.allowed_ips.iter().filter_map(|text| prefix(text));
            held.any(|held| held == host(address))
        })
    };
    let undo: Vec<String> = to
        .iter()
        .copied()
        .chain(peers.iter().filter(loses_it))
        .map(|peer| set(peer, &peer.allowed_ips))
        .collect();
    Remedy {
        title: match to {
            [peer] => say!("allowed-ips-overlap-remedy-one", peer = short(peer)),
            _ => say!("allowed-ips-overlap-remedy-several"),
        },
        changes: Vec::new(),
        commands: to
            .iter()
            .map(|peer| set(peer, &with_wanted(peer)))
            .collect(),
        goal: Goal::Goodput,
        persistence: say!("allowed-ips-overlap-persistence"),
        risk: say!("allowed-ips-overlap-risk"),
        undo: undo.join("\n"),
    }
}

/// The first characters of a key, as `wg` users know them.
fn short(peer: &Peer) -> String {
    let start: String = peer.public_key.chars().take(8).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests;
