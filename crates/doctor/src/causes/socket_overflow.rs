//! `socket-overflow`: a userspace tunnel's UDP socket drops packets because its buffer is full.
//!
//! Known from `SK_MEMINFO` drops of that very socket during the tunnel's loads. The kernel's WireGuard takes the packet
//! in its encap handler before any socket queue, so there it is refused, never found.

use serde_json::json;
use wirespeed_facts::{CountersDelta, Implementation, Tunnel, UdpSocket};
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::{Setting, shell_word};

use crate::device;
use crate::finding::{Check, Found, Outcome, command, line, rates_line};
use crate::view::{DIRECTIONS, ENDS, moved, only, word};
use crate::{Change, End, Evidence, Goal, Refusal, Remedy, Severity, losses, watched};

pub(super) const CODE: &str = "socket-overflow";

pub(super) const CHECK: Check = Check {
    slows: in_direction,
    ..Check::new(CODE, "The tunnel's UDP socket overflows", run)
};

/// Fewer drops than this over all samples of a direction are the start of a connection, not a fault.
const TOLERATED_DROPS: u64 = 20;
/// One lost packet in this many costs TCP nothing one could measure.
const TOLERATED_ONE_IN: u64 = 5000;
/// What Linux gives a socket that asks for nothing (`net.core.rmem_default`), bytes.
const STOCK: u32 = 212_992;
/// A buffer to propose, bytes as `getsockopt` reports it.
const ENOUGH: u64 = 4 << 20;
/// More than this is no remedy: it holds 100 ms at more than 1 Gbit/s.
const ROOMY: u32 = 16 << 20;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some(tunnel) = evidence.tunnel(end) else {
            outcome.not_known.push(format!(
                "the tunnel's socket on {} is not known",
                evidence.name(end)
            ));
            continue;
        };
        if tunnel.implementation == Implementation::Kernel {
            outcome.refused.push(refused(evidence, end));
            continue;
        }
        if let wirespeed_facts::Known::Unknown(because) = &tunnel.sockets {
            outcome.not_known.push(format!(
                "the sockets of {} are not known: {because}",
                evidence.interface_at(end)
            ));
            continue;
        }
        if !evidence.loaded() {
            let found = while_watched(evidence, end, tunnel);
            if found.is_none() {
                outcome.not_known.push(format!(
                    "{}: {}",
                    evidence.name(end),
                    watched::no_load(evidence, "how the socket stands it")
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
            "packets received by the tunnel, and dropped by its UDP socket (SK_MEMINFO), while watched",
            evidence.interface_at(end),
            losses.of,
            losses.lost,
            "packets",
        )],
        because: format!(
            "The UDP socket of {} dropped {} packets while it was watched: it holds too few, or its daemon has too little processor time.",
            evidence.interface_at(end),
            losses.lost
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
    let holder = smallest
        .holder
        .as_ref()
        .map_or("the daemon", |holder| holder.program.as_str());
    let mut lines: Vec<_> = hits
        .iter()
        .map(|(direction, drops)| {
            line(
                format!(
                    "SK_MEMINFO drops of the tunnel's socket, {}, against packets received",
                    word(*direction)
                ),
                evidence.interface_at(end),
                drops.received,
                drops.dropped,
                "packets",
            )
        })
        .collect();
    lines.push(line(
        format!("receive buffer of {holder}'s socket ({})", smallest.local),
        evidence.interface_at(end),
        (),
        smallest.receive_buffer,
        "bytes",
    ));
    for direction in &directions {
        let errors = evidence.counted(*direction, end, "Udp.RcvbufErrors");
        if errors > 0 {
            lines.push(line(
                format!("Udp RcvbufErrors, {}", word(*direction)),
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
        because: format!(
            "{holder}'s socket dropped {} of {} packets because its buffer of {} bytes was full.",
            first.dropped,
            first.received.saturating_add(first.dropped),
            smallest.receive_buffer
        ),
        remedies: [
            (!roomy).then(|| for_this_socket(evidence, end, tunnel, smallest)),
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

fn larger_than_roomy(socket: &UdpSocket) -> Refusal {
    Refusal {
        remedy: "an even larger receive buffer for this socket".to_owned(),
        why: format!(
            "it holds {} MiB already: what fills that waits for the processor, not for room, and would only wait longer",
            socket.receive_buffer >> 20
        ),
    }
}

fn larger_defaults(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: format!(
            "larger defaults (net.core.rmem_max, rmem_default) on {}",
            evidence.name(end)
        ),
        why: format!(
            "{} sizes its sockets itself and may exceed the limit (SO_RCVBUFFORCE), so no default counts",
            device::PROGRAM
        ),
    }
}

/// Bytes to propose for a socket.
fn enough(socket: &UdpSocket) -> u64 {
    ENOUGH
        .max(u64::from(socket.receive_buffer).saturating_mul(4))
        .min(u64::from(u32::MAX / 2))
}

fn for_this_socket(evidence: &Evidence, end: End, tunnel: &Tunnel, socket: &UdpSocket) -> Remedy {
    let bytes = enough(socket);
    let setting = Setting::SocketReceiveBuffer {
        interface: tunnel.name.clone(),
    };
    Remedy {
        title: format!("A receive buffer of {} MiB for this socket, in the running daemon", bytes >> 20),
        changes: vec![Change { end, setting, value: json!(bytes) }],
        commands: vec![command(evidence, end, format!("wirespeed tune {}  # no shell command reaches a running daemon's socket", shell_word(&tunnel.name)))],
        goal: Goal::Goodput,
        persistence: "lasts as long as the daemon; for good: larger defaults for every socket, or a daemon that sets its own buffers".to_owned(),
        risk: "up to as much memory while packets wait; a longer queue before loss".to_owned(),
        undo: format!("the buffer back to {} bytes (`wirespeed tune undo`), or restart the daemon", socket.receive_buffer),
    }
}

fn for_every_socket(evidence: &Evidence, end: End, tunnel: &Tunnel, socket: &UdpSocket) -> Remedy {
    let bytes = enough(socket);
    let sysctls = ["net.core.rmem_max", "net.core.rmem_default"].map(|name| Setting::Sysctl {
        name: name.to_owned(),
    });
    let before = |sysctl: &Setting| match sysctl {
        Setting::Sysctl { name } => evidence
            .facts(end)
            .and_then(|facts| facts.sysctls.get(name)?.value()),
        _ => None,
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
        title: "A larger default buffer for every socket of the machine, then restart the daemon"
            .to_owned(),
        changes: Vec::new(),
        // The daemon asks for no size of its own, so the default counts.
        commands: sysctls
            .iter()
            .flat_map(|sysctl| sysctl.shell(&json!(bytes.to_string())))
            .map(|text| command(evidence, end, text))
            .chain([restart])
            .collect(),
        goal: Goal::Goodput,
        persistence: format!(
            "`net.core.rmem_max = {bytes}` and `net.core.rmem_default = {bytes}` in /etc/sysctl.d/90-wirespeed.conf"
        ),
        risk: "every socket of the machine; the restart interrupts the tunnel".to_owned(),
        undo: sysctls
            .iter()
            .filter_map(|sysctl| Some(sysctl.shell(&json!(before(sysctl)?.trim()))))
            .flatten()
            .map(|text| command(evidence, end, text))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn refused(evidence: &Evidence, end: End) -> Refusal {
    Refusal {
        remedy: format!("larger socket buffers (net.core.rmem_max, rmem_default) on {}", evidence.name(end)),
        why: "socket buffers do nothing here: the kernel's encap handler takes the packet before the socket queue (drivers/net/wireguard/socket.c)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{DeviceStatistics, Implementation, Known};
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        at, codes, core, each_sample, healthy, not_checked, nothing, only_finding, set_ratio,
        tunnel_of, watched, watched_here,
    };
    use crate::{End, Evidence, Severity, judge};

    fn dropping(each: u64) -> Evidence {
        let mut evidence = healthy();
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .socket_drops
                .insert("77".to_owned(), each);
        });
        evidence
    }

    #[test]
    fn twenty_drops_are_tolerated_and_more_are_not() {
        nothing(&dropping(4));
        let finding = only_finding(&dropping(5), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Warning, "server", Some(Direction::Upload))
        );
        assert_eq!(finding.remedies[0].changes[0].value, 4 << 20);
        assert!(finding.evidence.iter().any(|line| line.after == 212_992));
    }

    #[test]
    fn few_drops_among_many_packets_are_tolerated() {
        let mut evidence = dropping(30);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .links
                .get_mut("wg1")
                .unwrap()
                .rx_packets = 200_000;
        });
        nothing(&evidence);
    }

    #[test]
    fn a_device_that_sizes_its_own_sockets_gains_nothing_by_the_sysctls() {
        let mut evidence = dropping(500);
        tunnel_of(&mut evidence, End::Far).statistics =
            Some(Known::Value(DeviceStatistics::default()));
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.remedies.len(), 1);
        assert!(finding.refused[0].why.contains("SO_RCVBUFFORCE"));
    }

    #[test]
    fn a_large_socket_gets_no_larger_one() {
        let mut evidence = dropping(500);
        if let Known::Value(sockets) = &mut tunnel_of(&mut evidence, End::Far).sockets {
            sockets[0].receive_buffer = 64 << 20;
        }
        let finding = only_finding(&evidence, CODE);
        assert!(finding.remedies.is_empty());
        assert!(finding.refused[0].why.contains("64 MiB"));
    }

    #[test]
    fn drops_while_watched_are_found_and_one_burst_is_not() {
        let dropping = |slices: usize, each: u64| {
            let mut evidence = watched();
            for slice in watched_here(&mut evidence).slices.iter_mut().take(slices) {
                slice.socket_drops.insert("77".to_owned(), each);
            }
            evidence
        };
        nothing(&dropping(0, 0));
        assert!(not_checked(&dropping(0, 0), CODE));
        nothing(&dropping(1, 500));
        nothing(&dropping(2, 10));
        let finding = only_finding(&dropping(2, 11), CODE);
        assert_eq!(
            (finding.severity, finding.direction),
            (Severity::Warning, None)
        );
    }

    #[test]
    fn another_socket_is_not_the_tunnels() {
        let mut evidence = healthy();
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .socket_drops
                .insert("78".to_owned(), 500);
        });
        nothing(&evidence);
    }

    #[test]
    fn one_sample_alone_makes_no_finding() {
        let mut evidence = healthy();
        let sample = evidence.comparisons[0]
            .samples
            .iter_mut()
            .find(|sample| sample.load.via == Via::Tunnel)
            .unwrap();
        at(sample, End::Far)
            .socket_drops
            .insert("77".to_owned(), 500);
        nothing(&evidence);
    }

    #[test]
    fn it_is_critical_below_half_of_bare() {
        let mut evidence = dropping(500);
        set_ratio(&mut evidence, Direction::Upload, 0.3);
        assert_eq!(only_finding(&evidence, CODE).severity, Severity::Critical);
    }

    #[test]
    fn the_kernels_tunnel_is_refused_and_never_found() {
        let mut evidence = dropping(500);
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let diagnosis = judge(&evidence);
        assert_eq!(diagnosis.findings, []);
        assert_eq!(diagnosis.refused.len(), 1);
        assert!(diagnosis.refused[0].why.contains("encap handler"));
    }

    #[test]
    fn a_starved_daemon_explains_it() {
        let mut evidence = dropping(500);
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        let diagnosis = judge(&evidence);
        assert_eq!(codes(&diagnosis), ["cpu-saturated"]);
        assert_eq!(
            diagnosis.findings[1].consequence_of.as_deref(),
            Some("cpu-saturated")
        );
        // Out of processor at the other machine explains nothing here.
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.3); 4];
            at(sample, End::Here).cores = vec![core(0.99); 4];
        });
        assert_eq!(
            judge(&evidence)
                .findings
                .iter()
                .filter(|finding| finding.consequence_of.is_none())
                .count(),
            2
        );
    }

    #[test]
    fn a_buffer_too_small_for_anybody_is_not_the_processors_fault() {
        let mut evidence = dropping(500);
        set_ratio(&mut evidence, Direction::Upload, 0.2);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        if let Known::Value(sockets) = &mut tunnel_of(&mut evidence, End::Far).sockets {
            sockets[0].receive_buffer = 12_288;
        }
        only_finding(&evidence, CODE);
    }

    #[test]
    fn unknown_sockets_are_said_to_be_unknown() {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Here).sockets = Known::because("sock_diag was refused");
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
    }
}
