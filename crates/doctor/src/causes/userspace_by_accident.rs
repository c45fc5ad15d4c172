//! `userspace-by-accident`: a program carries the tunnel although the kernel could, and it is slow for it.
//!
//! Only where the processor holds the tunnel back; and not of wirespeed-device, which nobody starts by accident.

use wirespeed_facts::{Implementation, KernelWireGuard, Known, Tunnel};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::{cpu_saturated, names_host, one_core_bound, socket_overflow};
use crate::cores;
use crate::device::PROGRAM;
use crate::finding::{Check, Found, Outcome, command, line, rates_line};
use crate::view::{DIRECTIONS, ENDS, only};
use crate::{End, Evidence, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "userspace-by-accident";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, || say!("userspace-by-accident-title"), run)
};

/// A daemon that uses less of a core is not what the processor is busy with.
const BUSY_DAEMON: f64 = 0.5;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let directions: Vec<Direction> = DIRECTIONS
            .into_iter()
            .filter(|direction| held_back_by_daemon(evidence, end, *direction).is_some())
            .collect();
        if directions.is_empty() {
            continue;
        }
        match evidence.facts(end).map(|facts| &facts.kernel_wireguard) {
            Some(Known::Value(kernel)) => {
                outcome
                    .found
                    .extend(found(evidence, end, *kernel, &directions));
            }
            Some(Known::Unknown(why)) => outcome.not_known.push(say!(
                "userspace-by-accident-unknown",
                host = evidence.name(end),
                why = why
            )),
            None => {}
        }
    }
    outcome
}

/// The kernel would do with less processor time, and without the daemon's socket.
fn brings(evidence: &Evidence, own: &Finding, effect: &Finding) -> bool {
    [
        cpu_saturated::CODE,
        one_core_bound::CODE,
        socket_overflow::CODE,
    ]
    .contains(&effect.code.as_str())
        && names_host(evidence, own, &effect.host)
}

/// The daemon's name and pid, when the processor holds the tunnel back and the daemon is what it is busy with.
fn held_back_by_daemon(
    evidence: &Evidence,
    end: End,
    direction: Direction,
) -> Option<(String, f64)> {
    let tunnel = evidence.tunnel(end)?;
    let Implementation::Userspace {
        pid: Some(pid),
        program,
        ..
    } = &tunnel.implementation
    else {
        return None;
    };
    let chosen = tunnel.statistics.is_some() || program.as_deref() == Some(PROGRAM);
    if chosen || !cpu_saturated::limits(evidence, end, direction) {
        return None;
    }
    let own = format!("(pid {pid})");
    cores::busiest_processes(evidence, end, direction)
        .into_iter()
        .find(|(process, used)| process.ends_with(&own) && *used >= BUSY_DAEMON)
}

fn found(
    evidence: &Evidence,
    end: End,
    kernel: KernelWireGuard,
    directions: &[Direction],
) -> Option<Found> {
    let tunnel = evidence.tunnel(end)?;
    let place = evidence.interface_at(end);
    let certain = directions
        .iter()
        .any(|direction| evidence.below(*direction, cpu_saturated::HEALTHY_RATIO) == Some(true));
    let (first, name) = directions.iter().find_map(|direction| {
        Some((
            *direction,
            held_back_by_daemon(evidence, end, *direction)?.0,
        ))
    })?;
    let state = match kernel {
        KernelWireGuard::BuiltIn => "built-in",
        KernelWireGuard::Loaded => "loaded",
        KernelWireGuard::Installed => "installed",
        KernelWireGuard::Missing => return None,
    };
    let mut lines = vec![
        line(
            say!("userspace-by-accident-line-kind"),
            &place,
            "tun",
            name.clone(),
            "",
        ),
        line(
            say!("userspace-by-accident-line-kernel"),
            evidence.name(end),
            (),
            say!("userspace-by-accident-state", state = state),
            "",
        ),
    ];
    for direction in directions {
        if let Some((process, used)) = held_back_by_daemon(evidence, end, *direction) {
            lines.push(line(
                say!(
                    "userspace-by-accident-line-process",
                    process = process,
                    direction = direction.word()
                ),
                evidence.name(end),
                (),
                used,
                "cores",
            ));
        }
        lines.extend(rates_line(evidence, *direction));
    }
    Some(Found {
        severity: if certain {
            cpu_saturated::severity(evidence, directions, true)
        } else {
            Severity::Info
        },
        confidence: if certain { 0.75 } else { 0.5 },
        effect: evidence.worst_lost_share(directions),
        host: evidence.name(end).to_owned(),
        direction: only(directions),
        evidence: lines,
        because: say!(
            "userspace-by-accident-because",
            program = name,
            place = place,
            direction = first.word(),
            state = state
        ),
        remedies: vec![remedy(evidence, end, tunnel, kernel)],
        refused: Vec::new(),
    })
}

fn remedy(evidence: &Evidence, end: End, tunnel: &Tunnel, kernel: KernelWireGuard) -> Remedy {
    let interface = shell_word(&tunnel.name);
    let daemon = match &tunnel.implementation {
        Implementation::Userspace { program, .. } => program.as_deref(),
        Implementation::Kernel => None,
    };
    let load = (kernel == KernelWireGuard::Installed).then(|| "modprobe wireguard".to_owned());
    let commands = load
        .into_iter()
        .chain([
            format!(
                "(umask 077; wg showconf {interface} > /root/{interface}.saved)  # {}",
                say!("userspace-by-accident-keys")
            ),
            format!("wg-quick down {interface} && wg-quick up {interface}"),
            format!(
                "ip -d link show {interface}  # {}",
                say!("userspace-by-accident-kind-now")
            ),
        ])
        .map(|text| command(evidence, end, text))
        .collect();
    Remedy {
        title: say!("userspace-by-accident-remedy"),
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence: say!("userspace-by-accident-persistence"),
        risk: say!("userspace-by-accident-risk"),
        undo: command(
            evidence,
            end,
            format!(
                "wg-quick down {interface}  # {}",
                daemon.map_or_else(
                    || say!("userspace-by-accident-start-daemon"),
                    |daemon| say!("userspace-by-accident-start-named", daemon = daemon)
                )
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{DeviceStatistics, ProcessTime};
    use wirespeed_measure::Via;

    use super::*;
    use crate::testing::{
        at, core, each_sample, facts_of, healthy, not_checked, nothing, only_finding, set_ratio,
        tunnel_of,
    };

    fn slow(kernel: Known<KernelWireGuard>, busy: f64, daemon: f64, ratio: f64) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Download, ratio);
        facts_of(&mut evidence, End::Here).kernel_wireguard = kernel;
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            let delta = at(sample, End::Here);
            delta.cores = vec![core(busy); 4];
            delta.processes.insert(
                "100".to_owned(),
                ProcessTime {
                    program: "wireguard-go".to_owned(),
                    cpu: daemon * delta.seconds,
                },
            );
        });
        evidence
    }

    #[test]
    fn a_daemon_in_the_kernels_place_is_found_where_it_is_slow() {
        let finding = only_finding(
            &slow(Known::Value(KernelWireGuard::Installed), 0.97, 3.0, 0.4),
            CODE,
        );
        assert_eq!(
            (finding.severity, finding.host.as_str(), finding.direction),
            (Severity::Critical, "client", Some(Direction::Download))
        );
        assert!(finding.remedies[0].commands[0].starts_with("modprobe wireguard"));
        assert!(
            finding.remedies[0]
                .risk
                .contains("not from a session through this tunnel")
        );
        let loaded = slow(Known::Value(KernelWireGuard::Loaded), 0.97, 3.0, 0.8);
        let finding = only_finding(&loaded, CODE);
        assert_eq!(finding.severity, Severity::Warning);
        let remedy = &finding.remedies[0];
        // The keys are in it.
        assert!(
            remedy.commands[0].starts_with("(umask 077; wg showconf wg0 > /root/wg0.saved)  # "),
            "{}",
            remedy.commands[0]
        );
        assert!(
            remedy
                .undo
                .starts_with("wg-quick down wg0  # then start wireguard-go as"),
            "{}",
            remedy.undo
        );
    }

    #[test]
    fn where_the_kernel_cannot_or_need_not_it_is_no_matter() {
        only_finding(
            &slow(Known::Value(KernelWireGuard::Missing), 0.97, 3.0, 0.4),
            "cpu-saturated",
        );
        nothing(&slow(
            Known::Value(KernelWireGuard::Loaded),
            0.97,
            3.0,
            0.95,
        ));
        nothing(&slow(Known::Value(KernelWireGuard::Loaded), 0.5, 3.0, 0.85));
        only_finding(
            &slow(Known::Value(KernelWireGuard::Loaded), 0.97, 0.4, 0.4),
            "cpu-saturated",
        );
    }

    #[test]
    fn wirespeeds_own_device_is_a_choice() {
        let mut evidence = slow(Known::Value(KernelWireGuard::Loaded), 0.97, 3.0, 0.4);
        tunnel_of(&mut evidence, End::Here).statistics =
            Some(Known::Value(DeviceStatistics::default()));
        only_finding(&evidence, "cpu-saturated");
    }

    #[test]
    fn a_container_that_cannot_see_modules_is_said() {
        let unknown = slow(Known::because("no /lib/modules"), 0.97, 3.0, 0.4);
        assert!(not_checked(&unknown, CODE));
        only_finding(&unknown, "cpu-saturated");
    }
}
