//! `one-core-bound`: one core is full while the others have room.

use wirespeed_facts::Implementation;
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::cpu_saturated::{
    HEALTHY_RATIO, daemons, held_back, machine_name, machines, severity, unknown,
};
use super::napi_convergence::busy_peers;
use super::starves;
use crate::cards::{self, core_numbers};
use crate::cores::{self, Cores};
use crate::device;
use crate::finding::{Check, Found, Outcome, by_hand, command, line, percent, rates_lines};
use crate::view::{DIRECTIONS, ENDS, only, receiver};
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

/// One core full, the rest not; whatever the tunnel reaches.
pub(super) fn fits(evidence: &Evidence, end: End, direction: Direction) -> bool {
    let Some(cores) = cores::of(evidence, end, direction) else {
        return false;
    };
    let room = if confined(evidence, end).is_empty() {
        ROOM
    } else {
        ROOM_WHEN_CONFINED
    };
    cores.busiest >= FULL && cores.others.is_some_and(|others| others <= room)
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
        remedies: remedies(evidence, end, *first, &confined),
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
    direction: Direction,
    confined: &[Confined],
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let pinned: Vec<(&Confined, u32)> = confined
        .iter()
        .filter_map(|daemon| Some((daemon, daemon.pid?)))
        .collect();
    if !pinned.is_empty() {
        let all = |daemon: &Confined| {
            evidence
                .facts(daemon.end)
                .map_or(0, |facts| facts.cpu.online.saturating_sub(1))
        };
        remedies.push(Remedy {
            title: say!("one-core-bound-remedy-every-core"),
            changes: Vec::new(),
            commands: pinned
                .iter()
                .map(|(daemon, pid)| {
                    command(
                        evidence,
                        daemon.end,
                        format!("taskset -a -cp 0-{} {pid}", all(daemon)),
                    )
                })
                .collect(),
            goal: Goal::Goodput,
            persistence: say!("one-core-bound-persistence-every-core"),
            risk: say!("one-core-bound-risk-every-core"),
            undo: pinned
                .iter()
                .map(|(daemon, pid)| {
                    command(
                        evidence,
                        daemon.end,
                        format!("taskset -a -cp {} {pid}", daemon.cpus),
                    )
                })
                .collect::<Vec<_>>()
                .join("\n"),
        });
    }
    if let Some(tunnel) = evidence.tunnel(end).filter(|_| !evidence.is_userspace(end)) {
        let mask = evidence.facts(end).map_or_else(
            || "1".to_owned(),
            |facts| cores::mask(&core_numbers(facts, facts.cpu.online.min(1 << 13))),
        );
        let file = format!(
            "/sys/class/net/{}/queues/rx-0/rps_cpus",
            shell_word(&tunnel.name)
        );
        let before = rps_cores(evidence, end).map_or_else(|| "0".to_owned(), cores::mask);
        remedies.push(Remedy {
            title: say!("one-core-bound-remedy-steering"),
            changes: Vec::new(),
            commands: vec![command(evidence, end, format!("echo {mask} > {file}"))],
            goal: Goal::Goodput,
            persistence: say!("one-core-bound-persistence-steering"),
            risk: say!("one-core-bound-risk-steering"),
            undo: command(evidence, end, format!("echo {before} > {file}")),
        });
        remedies.extend(hashed_ports(evidence, end, direction));
    }
    if confined.is_empty() {
        remedies.extend(
            daemons(evidence, end)
                .into_iter()
                .filter_map(|end| device::more_workers(evidence, end, direction)),
        );
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

/// Cores that receive packet steering on the tunnel's first queue may use now.
fn rps_cores(evidence: &Evidence, end: End) -> Option<&[u32]> {
    let tunnel = evidence.tunnel(end)?;
    let detail = evidence.facts(end)?.link(&tunnel.name)?.detail.value()?;
    let queue = detail.receive_queues.value()?.first()?;
    Some(&queue.rps_cores)
}

/// Peers spread over the queues of the card they are received by. One peer is one flow, whatever is hashed of it.
fn hashed_ports(evidence: &Evidence, end: End, direction: Direction) -> Option<Remedy> {
    if receiver(direction) != end || busy_peers(evidence, end, direction) < 2 {
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
mod tests {
    use wirespeed_facts::{
        CoreTime, Implementation, Known, Link, LinkDetail, ReceiveQueue, Spreading,
    };
    use wirespeed_measure::{Direction, Via};

    use super::{CODE, count};
    use crate::testing::{
        at, core, each_sample, facts_of, healthy, nothing, only_finding, set_ratio, tunnel_of,
    };
    use crate::{End, Evidence};

    fn with_cores(cores: &[CoreTime], ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Download, ratio);
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            at(sample, End::Here).cores = cores.to_vec();
        });
        evidence
    }

    #[test]
    fn one_full_core_among_idle_ones_is_found() {
        let cores = |full: f64, rest: f64| [core(rest), core(full), core(rest), core(rest)];
        nothing(&with_cores(&cores(0.94, 0.3), 0.85));
        nothing(&with_cores(&cores(0.99, 0.71), 0.85));
        nothing(&with_cores(&cores(0.99, 0.3), 0.90));
        let finding = only_finding(&with_cores(&cores(0.96, 0.7), 0.85), CODE);
        assert_eq!(
            (finding.host.as_str(), finding.direction),
            ("client", Some(Direction::Download))
        );
        assert!(
            finding
                .evidence
                .iter()
                .filter(|line| line.r#where.contains("core"))
                .count()
                == 4
        );
    }

    #[test]
    fn a_machine_with_one_core_is_saturated_instead() {
        only_finding(&with_cores(&[core(0.99)], 0.85), "cpu-saturated");
    }

    #[test]
    fn a_confined_daemon_is_named_and_freed() {
        let mut evidence = with_cores(&[core(0.99), core(0.84)], 0.6);
        for end in [End::Here, End::Far] {
            tunnel_of(&mut evidence, end).implementation = Implementation::Userspace {
                pid: Some(100),
                program: Some("wireguard-go".to_owned()),
                cpus_allowed: Some("0".to_owned()),
            };
        }
        let finding = only_finding(&evidence, CODE);
        assert!(finding.because.contains("may only use core 0"));
        assert!(finding.remedies[0].commands[0].starts_with("taskset -a -cp 0-3 100"));
    }

    #[test]
    fn many_cores_are_named_in_words_of_a_mask() {
        let mut evidence = with_cores(&[core(0.99), core(0.3)], 0.6);
        for end in [End::Here, End::Far] {
            tunnel_of(&mut evidence, end).implementation = Implementation::Kernel;
        }
        facts_of(&mut evidence, End::Here).cpu.online = 48;
        let finding = only_finding(&evidence, CODE);
        assert!(finding.remedies[0].commands[0].starts_with("echo ffff,ffffffff > "));
    }

    /// The kernel's tunnel here receives from the far end and from another peer, by eth0.
    fn two_peers() -> Evidence {
        let mut evidence = with_cores(&[core(0.3), core(0.99), core(0.3), core(0.3)], 0.85);
        let tunnel = tunnel_of(&mut evidence, End::Here);
        tunnel.implementation = Implementation::Kernel;
        let facts = facts_of(&mut evidence, End::Here);
        facts.links.push(Link {
            index: 3,
            name: "eth0".to_owned(),
            up: true,
            mtu: 1500,
            detail: Known::Value(LinkDetail::default()),
            ..Link::default()
        });
        facts.outer_links = vec!["eth0".to_owned()];
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            for key in ["far-key", "another-key"] {
                let peer = at(sample, End::Here).peers.entry(key.to_owned());
                peer.or_default().rx_bytes = 1_000_000;
            }
        });
        evidence
    }

    fn commands_of(evidence: &Evidence) -> Vec<(String, String)> {
        only_finding(evidence, CODE)
            .remedies
            .into_iter()
            .map(|remedy| (remedy.commands.join("; "), remedy.undo))
            .filter(|(commands, _)| !commands.is_empty())
            .collect()
    }

    #[test]
    fn several_peers_are_spread_over_the_cards_queues_and_one_is_not() {
        let mut evidence = two_peers();
        let commands = commands_of(&evidence);
        assert_eq!(commands.len(), 2);
        assert!(commands[0].0.starts_with("echo f > ") && commands[0].1.starts_with("echo 0 > "));
        let hash = "ethtool -N eth0 rx-flow-hash udp4";
        assert_eq!(commands[1].0, format!("{hash} sdfn  # on client"));
        assert_eq!(commands[1].1, format!("{hash} sd  # on client"));
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            at(sample, End::Here).peers.remove("another-key");
        });
        assert_eq!(commands_of(&evidence).len(), 1);
    }

    #[test]
    fn what_was_there_before_comes_back() {
        let mut evidence = two_peers();
        let facts = facts_of(&mut evidence, End::Here);
        let steered = ReceiveQueue {
            rps_cores: vec![0, 1],
            rps_flows: 0,
        };
        facts.links[0].detail = Known::Value(LinkDetail {
            receive_queues: Known::Value(vec![steered]),
            ..LinkDetail::default()
        });
        let hashed = |udp4: &str, queues: usize| {
            Known::Value(LinkDetail {
                spreading: Known::Value(Spreading {
                    queues,
                    udp4: Known::Value(udp4.to_owned()),
                    ..Spreading::default()
                }),
                ..LinkDetail::default()
            })
        };
        let mut with = |udp4: &str, queues: usize| {
            facts_of(&mut evidence, End::Here).links[1].detail = hashed(udp4, queues);
            commands_of(&evidence)
        };
        let commands = with("s", 4);
        assert!(commands[0].1.starts_with("echo 3 > "));
        assert!(commands[1].1.contains("udp4 s  #"));
        assert_eq!(with("sdfn", 4).len(), 1);
        assert_eq!(with("sd", 1).len(), 1);
    }

    #[test]
    fn counts_the_cores_of_a_list() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8"), Some(5));
        assert_eq!(count("3-1"), None);
        assert_eq!(count("x"), None);
    }
}
