//! `socket-overflow`: a userspace tunnel's UDP socket drops packets because its buffer is full.
//!
//! Known from `SK_MEMINFO` drops of that very socket during the tunnel's loads. The kernel's WireGuard takes the packet
//! in its encap handler before any socket queue, so there it is refused, never found.

use serde_json::json;
use wirespeed_facts::{CountersDelta, Implementation, Tunnel, UdpSocket};
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::{Setting, shell_word};
use wirespeed_words::say;

use crate::device;
use crate::finding::{Check, Found, Outcome, command, line, rates_line};
use crate::view::{DIRECTIONS, ENDS, moved, only};
use crate::{Change, End, Evidence, Goal, Refusal, Remedy, Severity, losses, watched};

pub(super) const CODE: &str = "socket-overflow";

pub(super) const CHECK: Check = Check {
    slows: in_direction,
    ..Check::new(CODE, || say!("socket-overflow-title"), run)
};

/// Fewer drops than this over all samples of a direction are the start of a connection, not a fault.
const TOLERATED_DROPS: u64 = 20;
/// One lost packet in this many costs TCP nothing one could measure.
const TOLERATED_ONE_IN: u64 = 5000;
/// What Linux gives a socket that asks for nothing (`net.core.rmem_default`), bytes.
const STOCK: u32 = 212_992;
/// A buffer to propose, bytes as `getsockopt` reports it.
const ENOUGH: u64 = 4 << 20;
/// As much as this is enough already, bytes as `getsockopt` reports it: it holds 100 ms at more than 1 Gbit/s. It is twice
/// the 7 MiB that wireguard-go has forced since 2023 (`socketBufferSize` in its `conn/controlfns.go`, set with
/// `SO_RCVBUFFORCE`), which no default changes.
const ROOMY: u32 = 14 << 20;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some(tunnel) = evidence.tunnel(end) else {
            outcome.not_known.push(say!(
                "socket-overflow-unknown-tunnel",
                host = evidence.name(end)
            ));
            continue;
        };
        if tunnel.implementation == Implementation::Kernel {
            outcome.refused.push(refused(evidence, end));
            continue;
        }
        if let wirespeed_facts::Known::Unknown(because) = &tunnel.sockets {
            outcome.not_known.push(say!(
                "socket-overflow-unknown-sockets",
                interface = evidence.interface_at(end),
                because = because
            ));
            continue;
        }
        if !evidence.loaded() {
            let found = while_watched(evidence, end, tunnel);
            if found.is_none() {
                outcome.not_known.push(say!(
                    "socket-overflow-unknown-load",
                    host = evidence.name(end),
                    why = watched::no_load(evidence, &say!("socket-overflow-unknown-how"))
                ));
            }
            outcome.found.extend(found);
            continue;
        }
        let hits: Vec<(Direction, Drops)> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| Some((direction, overflow(evidence, end, direction)?)))
            .collect();
        outcome.found.extend(found(evidence, end, tunnel, &hits));
    }
    outcome
}

/// Does a socket of either end overflow while this direction is loaded?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter()
        .any(|end| overflow(evidence, end, direction).is_some())
}

/// Does a socket overflow that is so small that it would with any processor? Then a busy one is not to blame.
pub(super) fn too_small(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter().any(|end| {
        overflow(evidence, end, direction).is_some()
            && evidence
                .tunnel(end)
                .and_then(|tunnel| tunnel.sockets.value())
                .is_some_and(|sockets| sockets.iter().any(|socket| socket.receive_buffer < STOCK))
    })
}

struct Drops {
    dropped: u64,
    received: u64,
}

/// Drops of the tunnel's sockets at an end over the tunnel's samples of a direction, where they are too many.
fn overflow(evidence: &Evidence, end: End, direction: Direction) -> Option<Drops> {
    if !evidence.is_userspace(end) {
        return None;
    }
    let tunnel = evidence.tunnel(end)?;
    let sockets = tunnel.sockets.value()?;
    let mut drops = Drops {
        dropped: 0,
        received: 0,
    };
    let mut hit = 0;
    for delta in evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| moved(sample, end))
    {
        let dropped = sockets
            .iter()
            .filter_map(|socket| delta.socket_drops.get(&socket.inode.to_string()))
            .fold(0_u64, |sum, one| sum.saturating_add(*one));
        hit += u32::from(dropped > 0);
        drops.dropped = drops.dropped.saturating_add(dropped);
        drops.received = drops.received.saturating_add(
            delta
                .links
                .get(&tunnel.name)
                .map_or(0, |link| link.rx_packets),
        );
    }
    let tolerated = TOLERATED_DROPS.max(drops.received / TOLERATED_ONE_IN);
    // One sample alone may be somebody else's burst.
    (hit >= 2 && drops.dropped > tolerated).then_some(drops)
}

/// Drops while nothing but the user's own traffic flowed are as certain as those under a load.
fn while_watched(evidence: &Evidence, end: End, tunnel: &Tunnel) -> Option<Found> {
    let sockets = tunnel.sockets.value()?;
    let dropped = |delta: &CountersDelta| {
        sockets
            .iter()
            .filter_map(|socket| delta.socket_drops.get(&socket.inode.to_string()))
            .fold(0_u64, |sum, one| sum.saturating_add(*one))
    };
    let received = |delta: &CountersDelta| {
        let link = delta.links.get(&tunnel.name);
        link.map_or(0, |link| link.rx_packets)
    };
    let losses = losses::periods(evidence, end)
        .iter()
        .filter(|_| evidence.is_userspace(end))
        .find_map(|period| losses::too_many(period, dropped, received))?;
    Some(Found {
        severity: Severity::Warning,
        confidence: 0.8,
        effect: 0.5,
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: vec![line(
            say!("socket-overflow-line-watched"),
            evidence.interface_at(end),
            losses.of,
            losses.lost,
            "packets",
        )],
        because: say!(
            "socket-overflow-because-watched",
            interface = evidence.interface_at(end),
            dropped = losses.lost
        ),
        remedies: Vec::new(),
        refused: Vec::new(),
    })
}

fn found(
    evidence: &Evidence,
    end: End,
    tunnel: &Tunnel,
    hits: &[(Direction, Drops)],
) -> Option<Found> {
    let (_, first) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, _)| *direction).collect();
    let smallest = tunnel
        .sockets
        .value()?
        .iter()
        .min_by_key(|socket| socket.receive_buffer)?;
    let mut lines: Vec<_> = hits
        .iter()
        .map(|(direction, drops)| {
            line(
                say!("socket-overflow-line-drops", direction = direction.word()),
                evidence.interface_at(end),
                drops.received,
                drops.dropped,
                "packets",
            )
        })
        .collect();
    lines.push(line(
        buffer_of(smallest),
        evidence.interface_at(end),
        (),
        smallest.receive_buffer,
        "bytes",
    ));
    for direction in &directions {
        let errors = evidence.counted(*direction, end, "Udp.RcvbufErrors");
        if errors > 0 {
            lines.push(line(
                say!("socket-overflow-line-errors", direction = direction.word()),
                evidence.name(end),
                0,
                errors,
                "packets",
            ));
        }
        lines.extend(device::drop_lines(evidence, end, *direction));
        lines.extend(rates_line(evidence, *direction));
    }
    let sizes_its_own = device::statistics(evidence, end).is_some();
    let roomy = smallest.receive_buffer >= ROOMY;
    Some(Found {
        severity: if directions
            .iter()
            .any(|direction| evidence.below(*direction, 0.5) == Some(true))
        {
            Severity::Critical
        } else {
            Severity::Warning
        },
        confidence: 0.9,
        effect: evidence.worst_lost_share(&directions),
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: because(smallest, first),
        remedies: [
            (!roomy).then(|| for_this_socket(end, tunnel, smallest)),
            (!roomy && !sizes_its_own).then(|| for_every_socket(evidence, end, tunnel, smallest)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        refused: [
            roomy.then(|| larger_than_roomy(smallest)),
            sizes_its_own.then(|| larger_defaults(evidence, end)),
        ]
        .into_iter()
        .flatten()
        .collect(),
    })
}

fn holder(socket: &UdpSocket) -> Option<&str> {
    socket.holder.as_ref().map(|holder| holder.program.as_str())
}

fn buffer_of(socket: &UdpSocket) -> String {
    let local = socket.local.to_string();
    match holder(socket) {
        Some(program) => say!(
            "socket-overflow-line-buffer",
            program = program,
            local = local
        ),
        None => say!("socket-overflow-line-buffer-daemon", local = local),
    }
}

fn because(socket: &UdpSocket, drops: &Drops) -> String {
    let of = drops.received.saturating_add(drops.dropped);
    match holder(socket) {
        Some(program) => say!(
            "socket-overflow-because",
            program = program,
            dropped = drops.dropped,
            packets = of,
            buffer = socket.receive_buffer
        ),
        None => say!(
            "socket-overflow-because-daemon",
            dropped = drops.dropped,
            packets = of,
            buffer = socket.receive_buffer
        ),
    }
}

fn larger_than_roomy(socket: &UdpSocket) -> Refusal {
    Refusal {
        remedy: say!("socket-overflow-refused-roomy"),
        why: say!(
            "socket-overflow-refused-why-roomy",
            mebibytes = socket.receive_buffer >> 20
        ),
    }
}

fn larger_defaults(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: say!(
            "socket-overflow-refused-defaults",
            host = evidence.name(end)
        ),
        why: say!(
            "socket-overflow-refused-why-defaults",
            program = device::PROGRAM
        ),
    }
}

/// Bytes to propose for a socket.
fn enough(socket: &UdpSocket) -> u64 {
    ENOUGH
        .max(u64::from(socket.receive_buffer).saturating_mul(4))
        .min(u64::from(u32::MAX / 2))
}

fn for_this_socket(end: End, tunnel: &Tunnel, socket: &UdpSocket) -> Remedy {
    let bytes = enough(socket);
    let setting = Setting::SocketReceiveBuffer {
        interface: tunnel.name.clone(),
    };
    Remedy {
        title: say!(
            "socket-overflow-remedy-this-socket",
            mebibytes = bytes >> 20
        ),
        changes: vec![Change {
            end,
            setting,
            value: json!(bytes),
        }],
        // No shell command reaches a running daemon's socket.
        commands: Vec::new(),
        goal: Goal::Goodput,
        persistence: say!("socket-overflow-persistence-this-socket"),
        risk: say!("socket-overflow-risk-this-socket"),
        undo: say!(
            "socket-overflow-undo-this-socket",
            interface = &tunnel.name,
            buffer = socket.receive_buffer
        ),
    }
}

fn for_every_socket(evidence: &Evidence, end: End, tunnel: &Tunnel, socket: &UdpSocket) -> Remedy {
    let bytes = enough(socket);
    let sysctls = ["net.core.rmem_max", "net.core.rmem_default"];
    let shell = |name: &str, value: &str| {
        let name = name.to_owned();
        Setting::Sysctl { name }.shell(&json!(value))
    };
    let before = |name: &str| evidence.facts(end)?.sysctls.get(name)?.value();
    let set = |name: &str| {
        // A network namespace does not show it.
        let note = format!("sysctl {name}  # {}", say!("socket-overflow-note"));
        let note = before(name).is_none().then_some(note);
        note.into_iter().chain(shell(name, &bytes.to_string()))
    };
    let put_back = |name: &str| match before(name) {
        Some(value) => shell(name, value.trim()),
        None => vec![format!(
            "sysctl -w {name}=…  # {}",
            say!("socket-overflow-noted")
        )],
    };
    let restart = command(
        evidence,
        end,
        format!(
            "wg-quick down {0} && wg-quick up {0}",
            shell_word(&tunnel.name)
        ),
    );
    Remedy {
        title: say!("socket-overflow-remedy-every-socket"),
        changes: Vec::new(),
        // A socket below `ROOMY` has the default, or asked for more than the maximum lets it have.
        commands: sysctls
            .into_iter()
            .flat_map(set)
            .map(|text| command(evidence, end, text))
            .chain([restart.clone()])
            .collect(),
        goal: Goal::Goodput,
        persistence: say!(
            "socket-overflow-persistence-every-socket",
            bytes = bytes.to_string()
        ),
        risk: say!("socket-overflow-risk-every-socket"),
        // It takes its size when it is opened, the smaller one as well.
        undo: sysctls
            .into_iter()
            .flat_map(put_back)
            .map(|text| command(evidence, end, text))
            .chain([restart])
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn refused(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: say!("socket-overflow-refused", host = evidence.name(end)),
        why: say!("socket-overflow-refused-why"),
    }
}

#[cfg(test)]
mod tests;
