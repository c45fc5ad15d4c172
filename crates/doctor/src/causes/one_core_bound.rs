//! `one-core-bound`: one core is full while the others have room.

use wirespeed_facts::{CountersDelta, Implementation};
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::cpu_saturated::{
    FAIR_SHARE, HEALTHY_RATIO, daemons, held_back, machine_name, machines, of_others, severity,
    unknown, used_by_daemon,
};
use super::napi_convergence::busy_peers;
use super::starves;
use crate::cards::{self, core_numbers, list};
use crate::cores::{self, Cores};
use crate::device;
use crate::finding::{Check, Found, Outcome, by_hand, command, line, percent, rates_lines};
use crate::view::{DIRECTIONS, ENDS, median, moved, only, receiver};
use crate::{End, Evidence, Goal, Remedy};

pub(super) const CODE: &str = "one-core-bound";

pub(super) const CHECK: Check = Check {
    brings: starves,
    slows: in_direction,
    ..Check::new(CODE, || say!("one-core-bound-title"), run)
};

/// A core this busy is full.
const FULL: f64 = 0.95;
/// The others have room up to this mean.
const ROOM: f64 = 0.7;
/// The same where the daemon is confined to some of the cores: then room on the others is of no use to it, and
/// whatever else runs there may use more.
const ROOM_WHEN_CONFINED: f64 = 0.9;
/// Cores that a daemon uses at least where one of its threads fills one; half of it where it takes turns with the load's own
/// process and the kernel, and nobody else may be who fills the core.
const A_CORE: f64 = 0.8;
/// What cards hash of UDP unless told otherwise, in ethtool's letters: the addresses …
const ADDRESSES: &str = "sd";
/// … and with the ports.
const WITH_PORTS: &str = "sdfn";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome {
        not_known: unknown(evidence),
        ..Outcome::default()
    };
    for end in machines(evidence) {
        let hits: Vec<(Direction, Cores)> = DIRECTIONS
            .into_iter()
            .filter(|direction| fits(evidence, end, *direction) && held_back(evidence, *direction))
            .filter_map(|direction| Some((direction, cores::of(evidence, end, direction)?)))
            .collect();
        outcome.found.extend(found(evidence, end, &hits));
    }
    outcome
}

/// Is some end bound to one core in this direction?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter()
        .any(|end| fits(evidence, end, direction) && held_back(evidence, direction))
}

/// One core full of the tunnel's work, the rest not; whatever the tunnel reaches.
pub(super) fn fits(evidence: &Evidence, end: End, direction: Direction) -> bool {
    let Some(cores) = cores::of(evidence, end, direction) else {
        return false;
    };
    let room = if confined(evidence, end).is_empty() {
        ROOM
    } else {
        ROOM_WHEN_CONFINED
    };
    cores.busiest >= FULL
        && cores.others.is_some_and(|others| others <= room)
        && is_the_tunnels(evidence, end, direction, &cores)
}

/// Is it the tunnel, or the kernel's work for its packets, that fills the full core? Otherwise it is somebody else's, and the
/// tunnel has the others. What is not known counts as yes.
fn is_the_tunnels(evidence: &Evidence, end: End, direction: Direction, cores: &Cores) -> bool {
    let a_worker_is_full = |end| {
        device::busiest_worker(evidence, end, direction).is_some_and(|(_, used)| used >= A_CORE)
    };
    if cores.kernels_part >= cores::KERNELS_PART
        || daemons(evidence, end).into_iter().any(a_worker_is_full)
    {
        return true;
    }
    let mut used = 0.0;
    for end in daemons(evidence, end) {
        let implementation = evidence.tunnel(end).map(|tunnel| &tunnel.implementation);
        if !matches!(implementation, Some(Implementation::Kernel)) {
            match used_by_daemon(evidence, end, direction) {
                Some(cores) => used += cores,
                None => return true,
            }
        }
    }
    if !confined(evidence, end).is_empty() {
        // Whoever else runs on the cores that it is confined to.
        return used >= FAIR_SHARE;
    }
    used >= A_CORE || (used >= A_CORE / 2.0 && by_a_stranger(evidence, end, direction) < A_CORE)
}

/// Cores that the busiest process used which has nothing to do with the tunnel.
fn by_a_stranger(evidence: &Evidence, end: End, direction: Direction) -> f64 {
    let busiest =
        |delta: &CountersDelta| of_others(evidence, end, delta).fold(0.0, f64::max) / delta.seconds;
    let readings = evidence.samples(direction, Via::Tunnel).into_iter();
    let readings = readings.filter_map(|sample| moved(sample, end));
    median(readings.filter(|delta| delta.seconds > 0.0).map(busiest)).unwrap_or_default()
}

/// A tunnel daemon that may not use every core.
struct Confined {
    end: End,
    pid: Option<u32>,
    program: String,
    cpus: String,
}

/// The daemons of this machine (both ends' when they are one kernel) that may not use every core.
fn confined(evidence: &Evidence, end: End) -> Vec<Confined> {
    daemons(evidence, end)
        .into_iter()
        .filter_map(|end| {
            let online = evidence.facts(end)?.cpu.online;
            match &evidence.tunnel(end)?.implementation {
                Implementation::Userspace {
                    pid,
                    program,
                    cpus_allowed: Some(cpus),
                } if count(cpus)? < online => Some(Confined {
                    end,
                    pid: *pid,
                    program: program
                        .clone()
                        .unwrap_or_else(|| say!("one-core-bound-daemon")),
                    cpus: cpus.clone(),
                }),
                _ => None,
            }
        })
        .collect()
}

/// Cores in a list like `0-3,8`.
fn count(list: &str) -> Option<usize> {
    list.trim()
        .split(',')
        .map(|part| match part.split_once('-') {
            Some((low, high)) => {
                let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
                high.checked_sub(low)?.checked_add(1)
            }
            None => part.parse::<usize>().ok().map(|_| 1),
        })
        .try_fold(0_usize, |sum, part| sum.checked_add(part?))
}

fn found(evidence: &Evidence, end: End, hits: &[(Direction, Cores)]) -> Option<Found> {
    let (first, cores) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, _)| *direction).collect();
    let confined = confined(evidence, end);
    let mut lines: Vec<_> = hits
        .iter()
        .flat_map(|(direction, cores)| cores.lines(evidence, end, *direction))
        .collect();
    for daemon in &confined {
        lines.push(line(
            say!("one-core-bound-line-cores", program = &daemon.program),
            evidence.interface_at(daemon.end),
            (),
            daemon.cpus.clone(),
            "",
        ));
    }
    for (process, used) in cores::busiest_processes(evidence, end, *first) {
        lines.push(line(
            say!(
                "one-core-bound-line-process",
                process = process,
                direction = first.word()
            ),
            evidence.name(end),
            (),
            used,
            "cores",
        ));
    }
    for end in daemons(evidence, end) {
        lines.extend(device::work_lines(evidence, end, *first));
    }
    lines.extend(rates_lines(evidence, &directions));
    let certain = directions
        .iter()
        .any(|direction| evidence.below(*direction, HEALTHY_RATIO) == Some(true));
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.85 } else { 0.6 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: because(cores, confined.first()),
        remedies: remedies(evidence, end, &directions, &confined),
        refused: Vec::new(),
    })
}

fn because(cores: &Cores, confined: Option<&Confined>) -> String {
    let busy = percent(cores.busiest);
    let others = percent(cores.others.unwrap_or_default());
    match confined {
        Some(daemon) => say!(
            "one-core-bound-because-confined",
            busy = busy,
            others = others,
            program = &daemon.program,
            count = count(&daemon.cpus).unwrap_or(1),
            cpus = &daemon.cpus
        ),
        None => say!("one-core-bound-because", busy = busy, others = others),
    }
}

fn remedies(
    evidence: &Evidence,
    end: End,
    directions: &[Direction],
    confined: &[Confined],
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    remedies.extend(every_core(evidence, confined));
    let kernels: Vec<End> = daemons(evidence, end)
        .into_iter()
        .filter(|end| evidence.tunnel(*end).is_some() && !evidence.is_userspace(*end))
        .collect();
    remedies.extend(steering(evidence, &kernels, directions));
    for end in &kernels {
        let mut received = directions
            .iter()
            .filter(|direction| receiver(**direction) == *end);
        remedies.extend(received.find_map(|direction| hashed_ports(evidence, *end, *direction)));
    }
    if confined.is_empty() {
        let more = |end| {
            directions
                .iter()
                .find_map(|direction| device::more_workers(evidence, end, *direction))
        };
        remedies.extend(daemons(evidence, end).into_iter().filter_map(more));
    }
    remedies.push(by_hand(
        if evidence.is_userspace(end) {
            say!("one-core-bound-remedy-tunnels")
        } else {
            say!(
                "one-core-bound-remedy-tunnels-or-device",
                device = device::PROGRAM
            )
        },
        say!("one-core-bound-risk-tunnels"),
    ));
    remedies.extend(
        daemons(evidence, end)
            .into_iter()
            .filter_map(|end| device::in_its_place(evidence, end)),
    );
    remedies
}

/// The daemons that may not use every core, freed.
fn every_core(evidence: &Evidence, confined: &[Confined]) -> Option<Remedy> {
    let pinned: Vec<(&Confined, u32)> = confined
        .iter()
        .filter_map(|daemon| Some((daemon, daemon.pid?)))
        .collect();
    let to = |daemon: &Confined, pid: u32, cores: &str| {
        command(
            evidence,
            daemon.end,
            format!("taskset -a -cp {cores} {pid}"),
        )
    };
    let back: Vec<String> = pinned
        .iter()
        .map(|(daemon, pid)| to(daemon, *pid, &daemon.cpus))
        .collect();
    (!pinned.is_empty()).then(|| Remedy {
        title: say!("one-core-bound-remedy-every-core"),
        changes: Vec::new(),
        commands: pinned
            .iter()
            .map(|(daemon, pid)| to(daemon, *pid, &list(&all_cores(evidence, daemon.end))))
            .collect(),
        goal: Goal::Goodput,
        persistence: say!("one-core-bound-persistence-every-core"),
        risk: say!("one-core-bound-risk-every-core"),
        undo: back.join("\n"),
    })
}

/// The cores of an end by their numbers, which may have gaps.
fn all_cores(evidence: &Evidence, end: End) -> Vec<u32> {
    evidence.facts(end).map_or_else(Vec::new, |facts| {
        core_numbers(facts, facts.cpu.online.clamp(1, 1 << 13))
    })
}

/// Receive packet steering on the kernel's tunnels that receive the loads: what they have decrypted is handed to all cores.
/// Where both are one kernel's, either may be the one.
fn steering(evidence: &Evidence, kernels: &[End], directions: &[Direction]) -> Option<Remedy> {
    let (mut commands, mut undo) = (Vec::new(), Vec::new());
    let receives = |end: &End| {
        directions
            .iter()
            .any(|direction| receiver(*direction) == *end)
    };
    for end in kernels.iter().copied().filter(receives) {
        let file = format!(
            "/sys/class/net/{}/queues/rx-0/rps_cpus",
            shell_word(&evidence.tunnel(end)?.name)
        );
        let steer = |to: &mut Vec<String>, mask: &str| {
            to.push(command(evidence, end, format!("echo {mask} > {file}")));
        };
        steer(&mut commands, &cores::mask(&all_cores(evidence, end)));
        let before = rps_cores(evidence, end).map_or_else(|| "0".to_owned(), cores::mask);
        steer(&mut undo, &before);
    }
    (!commands.is_empty()).then(|| Remedy {
        title: say!("one-core-bound-remedy-steering"),
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence: say!("one-core-bound-persistence-steering"),
        risk: say!("one-core-bound-risk-steering"),
        undo: undo.join("\n"),
    })
}

/// Cores that receive packet steering on the tunnel's first queue may use now.
fn rps_cores(evidence: &Evidence, end: End) -> Option<&[u32]> {
    let tunnel = evidence.tunnel(end)?;
    let detail = evidence.facts(end)?.link(&tunnel.name)?.detail.value()?;
    let queue = detail.receive_queues.value()?.first()?;
    Some(&queue.rps_cores)
}

/// Peers spread over the queues of the card they are received by. One peer is one flow, whatever is hashed of it.
fn hashed_ports(evidence: &Evidence, end: End, direction: Direction) -> Option<Remedy> {
    if busy_peers(evidence, end, direction) < 2 {
        return None;
    }
    let endpoints = evidence.tunnel(end)?.peers.value()?;
    let has = |ipv4: bool| {
        let mut endpoints = endpoints.iter().filter_map(|peer| peer.endpoint);
        endpoints.any(|endpoint| endpoint.ip().to_canonical().is_ipv4() == ipv4)
    };
    let families = [(has(true), "udp4"), (has(false), "udp6")];
    let (mut commands, mut undo) = (Vec::new(), Vec::new());
    for card in cards::of(evidence, end) {
        let spreading = card.detail.spreading.value();
        if spreading.is_some_and(|spreading| spreading.queues == 1) {
            continue;
        }
        for (_, family) in families.iter().filter(|(used, _)| *used) {
            let before = spreading.and_then(|spreading| match *family {
                "udp4" => spreading.udp4.value(),
                _ => spreading.udp6.value(),
            });
            let before = before.map_or(ADDRESSES, String::as_str);
            if before == WITH_PORTS {
                continue;
            }
            let hash = |what: &str| {
                let (card, what) = (shell_word(card.name), shell_word(what));
                let text = format!("ethtool -N {card} rx-flow-hash {family} {what}");
                command(evidence, end, text)
            };
            commands.push(hash(WITH_PORTS));
            undo.push(hash(before));
        }
    }
    (!commands.is_empty()).then(|| Remedy {
        title: say!("one-core-bound-remedy-ports"),
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence: say!("one-core-bound-persistence-ports"),
        risk: say!("one-core-bound-risk-ports"),
        undo: undo.join("\n"),
    })
}

#[cfg(test)]
mod tests;
