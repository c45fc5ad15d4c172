//! `one-core-bound`: one core is full while the others have room.

use wirespeed_facts::Implementation;
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;

use super::cpu_saturated::{
    HEALTHY_RATIO, daemons, held_back, machine_name, machines, severity, unknown,
};
use super::starves;
use crate::cards::core_numbers;
use crate::cores::{self, Cores};
use crate::device;
use crate::finding::{Check, Found, Outcome, by_hand, command, line, percent, rates_lines};
use crate::view::{DIRECTIONS, ENDS, only, word};
use crate::{End, Evidence, Goal, Remedy};

pub(super) const CODE: &str = "one-core-bound";

pub(super) const CHECK: Check = Check {
    brings: starves,
    slows: in_direction,
    ..Check::new(CODE, "One core is full while the others have room", run)
};

/// A core this busy is full.
const FULL: f64 = 0.95;
/// The others have room up to this mean.
const ROOM: f64 = 0.7;
/// The same where the daemon is confined to some of the cores: then room on the others is of no use to it, and
/// whatever else runs there may use more.
const ROOM_WHEN_CONFINED: f64 = 0.9;

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
                    program: program.clone().unwrap_or_else(|| "the daemon".to_owned()),
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
            format!("cores {} may use (Cpus_allowed_list)", daemon.program),
            evidence.interface_at(daemon.end),
            (),
            daemon.cpus.clone(),
            "",
        ));
    }
    for (process, used) in cores::busiest_processes(evidence, end, *first) {
        lines.push(line(
            format!("processor time of {process}, {}", word(*first)),
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
    let why = confined.first().map_or(String::new(), |daemon| {
        format!("; {} may only use core {}", daemon.program, daemon.cpus)
    });
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.85 } else { 0.6 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because: format!(
            "One core is {} busy while the others are at {} and the tunnel is slower than the road{why}.",
            percent(cores.busiest),
            percent(cores.others.unwrap_or_default())
        ),
        remedies: remedies(evidence, end, *first, &confined),
        refused: Vec::new(),
    })
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
            title: "Let the tunnel's daemon use every core".to_owned(),
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
            persistence:
                "remove taskset from the start of the daemon, or CPUAffinity= from its unit"
                    .to_owned(),
            risk: "somebody may have confined it on purpose".to_owned(),
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
        remedies.push(Remedy {
            title: "Spread the tunnel's packets over the cores (RPS on the tunnel interface), then the card's queues (RSS over UDP ports)".to_owned(),
            changes: Vec::new(),
            commands: vec![
                command(evidence, end, format!("echo {mask} > /sys/class/net/{}/queues/rx-0/rps_cpus", shell_word(&tunnel.name))),
                command(evidence, end, "ethtool -N CARD rx-flow-hash udp4 sdfn"),
            ],
            goal: Goal::Goodput,
            persistence: "the same line as PostUp in the wg-quick file".to_owned(),
            risk: "costs throughput where packets are small and cores few: measure before and after".to_owned(),
            undo: command(evidence, end, format!("echo 0 > /sys/class/net/{}/queues/rx-0/rps_cpus", shell_word(&tunnel.name))),
        });
    }
    if confined.is_empty() {
        remedies.extend(
            daemons(evidence, end)
                .into_iter()
                .filter_map(|end| device::more_workers(evidence, end, direction)),
        );
    }
    let several = "Several tunnels between the same sites, with the traffic spread over them";
    remedies.push(by_hand(
        if evidence.is_userspace(end) {
            several.to_owned()
        } else {
            format!(
                "{several}; or a data plane that uses every core: {} --workers N --spread, measured against the kernel's",
                device::PROGRAM
            )
        },
        "a change of the set-up at both ends",
    ));
    remedies.extend(
        daemons(evidence, end)
            .into_iter()
            .filter_map(|end| device::in_its_place(evidence, end)),
    );
    remedies
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{CoreTime, Implementation};
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

    #[test]
    fn counts_the_cores_of_a_list() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8"), Some(5));
        assert_eq!(count("3-1"), None);
        assert_eq!(count("x"), None);
    }
}
