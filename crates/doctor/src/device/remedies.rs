//! How to put wirespeed-device in another daemon's place, and how to give it more workers.
//!
//! wg-quick takes a daemon only where the kernel has no WireGuard; elsewhere, or where that is not known, its commands
//! would start the kernel's tunnel in the daemon's place. There a unit of its own starts wirespeed-device.

use wirespeed_facts::{DeviceStatistics, Implementation, KernelWireGuard, Known};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use super::{PROGRAM, WORKER_FULL, busiest_worker, statistics};
use crate::finding::{by_hand, command};
use crate::{End, Evidence, Goal, Remedy};

/// The daemon that wg-quick starts unless told otherwise.
const WG_QUICKS_OWN: &str = "wireguard-go";

/// What wg-quick takes the name of its daemon from.
const CHOICE: &str = "WG_QUICK_USERSPACE_IMPLEMENTATION";

/// How wirespeed-device works unless told otherwise.
const USUAL_ENGINE: &str = "inline";

/// The last resort where a daemon's own work is the limit: wirespeed-device in its place. None where it is in place
/// already, or where the kernel carries the tunnel or could (a daemon takes more processor time than that).
pub(crate) fn in_its_place(evidence: &Evidence, end: End) -> Option<Remedy> {
    let tunnel = evidence.tunnel(end)?;
    let Implementation::Userspace { program, .. } = &tunnel.implementation else {
        return None;
    };
    let program = program.as_deref().unwrap_or(WG_QUICKS_OWN);
    if tunnel.statistics.is_some() || program == PROGRAM {
        return None;
    }
    let title = say!("device-remedy-replace", device = PROGRAM, program = program);
    let risk = say!("device-risk-replace");
    match evidence.facts(end)?.kernel_wireguard {
        Known::Value(KernelWireGuard::Missing) => {}
        Known::Value(_) => return None,
        Known::Unknown(_) => return Some(by_hand(title, risk)),
    }
    let interface = shell_word(&tunnel.name);
    let up_with = |daemon: &str| match daemon {
        WG_QUICKS_OWN => String::new(),
        other => format!("{CHOICE}={} ", shell_word(other)),
    };
    let (down, up) = wg_quick(evidence, end, &interface, &up_with(PROGRAM));
    Some(Remedy {
        title,
        changes: Vec::new(),
        undo: [
            &*down,
            &wg_quick(evidence, end, &interface, &up_with(program)).1,
        ]
        .join("\n"),
        commands: vec![down, up],
        goal: Goal::Goodput,
        persistence: kept(
            &format!("{CHOICE}={PROGRAM}"),
            &format!("wg-quick@{interface}"),
        ),
        risk,
    })
}

/// A worker per core for wirespeed-device where one is at the end of its core. None where that is so already.
pub(crate) fn more_workers(evidence: &Evidence, end: End, direction: Direction) -> Option<Remedy> {
    let statistics = statistics(evidence, end)?;
    let facts = evidence.facts(end)?;
    let cores = facts.cpu.online;
    let workers = usize::try_from(statistics.worker_count?).ok()?;
    let (_, used) = busiest_worker(evidence, end, direction)?;
    if used < WORKER_FULL || (workers >= cores && statistics.spread) {
        return None;
    }
    let interface = &evidence.tunnel(end)?.name;
    let wanted = format!("WIRESPEED_WORKERS={cores} WIRESPEED_SPREAD=1");
    let missing = facts.kernel_wireguard == Known::Value(KernelWireGuard::Missing);
    let (commands, undo, unit, risk) = if missing {
        let spread = if statistics.spread {
            " WIRESPEED_SPREAD=1"
        } else {
            ""
        };
        let had = format!("WIRESPEED_WORKERS={workers}{spread}");
        let interface = shell_word(interface);
        let up_with = |workers: &str| {
            let others = others(statistics);
            let choice = format!("{workers} {others}{CHOICE}={PROGRAM} ");
            wg_quick(evidence, end, &interface, &choice)
        };
        let ((down, up), (_, back)) = (up_with(&wanted), up_with(&had));
        let undo = [&*down, &back].join("\n");
        let unit = format!("wg-quick@{interface}");
        (vec![down, up], undo, unit, say!("device-risk-workers"))
    } else {
        let unit = format!("{PROGRAM}@{interface}");
        let (commands, undo) = until_restart(evidence, end, &unit, &wanted);
        let risk = say!(
            "device-risk-workers-unit",
            program = PROGRAM,
            unit = shell_word(&unit)
        );
        (commands, undo, shell_word(&unit).into_owned(), risk)
    };
    Some(Remedy {
        title: say!(
            "device-remedy-workers",
            program = PROGRAM,
            cores = cores.to_string()
        ),
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence: kept(&wanted, &unit),
        risk,
        undo,
    })
}

/// Taking the interface down, and up again with these variables.
fn wg_quick(evidence: &Evidence, end: End, interface: &str, variables: &str) -> (String, String) {
    (
        command(evidence, end, format!("wg-quick down {interface}")),
        command(evidence, end, format!("{variables}wg-quick up {interface}")),
    )
}

/// What else the device was told at its start, as far as it shows: without these a new start would change them too.
fn others(statistics: &DeviceStatistics) -> String {
    let engine = &statistics.engine;
    let engine = (!engine.is_empty() && engine != USUAL_ENGINE)
        .then(|| format!("WIRESPEED_ENGINE={} ", shell_word(engine)));
    let pinned = statistics.workers.iter().any(|one| one.core.is_some());
    let pin = pinned.then(|| "WIRESPEED_PIN=1 ".to_owned());
    let unwanted: Vec<&str> = statistics
        .offloads
        .iter()
        .filter(|offload| offload.state == "disabled")
        .map(|offload| offload.offload.as_str())
        .collect();
    let without = (!unwanted.is_empty())
        .then(|| format!("WIRESPEED_NO_OFFLOAD={} ", shell_word(&unwanted.join(","))));
    [engine, pin, without].into_iter().flatten().collect()
}

/// Variables for a unit until the machine starts anew, there and back. A unit that does not run stays as it is: to start it
/// would take the interface away from whatever else carries it.
fn until_restart(
    evidence: &Evidence,
    end: End,
    unit: &str,
    variables: &str,
) -> (Vec<String>, String) {
    let folder = format!("/run/systemd/system/{unit}.service.d");
    let file = format!("{folder}/wirespeed-workers.conf");
    let (unit, folder, file) = (shell_word(unit), shell_word(&folder), shell_word(&file));
    let again = format!("systemctl daemon-reload && systemctl try-restart {unit}");
    let said = |text: &str| command(evidence, end, text);
    let commands = vec![
        said(&format!("mkdir -p {folder}")),
        said(&format!(
            r"printf '[Service]\nEnvironment={variables}\n' > {file}"
        )),
        said(&again),
    ];
    let undo = [said(&format!("rm {file}")), said(&again)].join("\n");
    (commands, undo)
}

/// Where variables of a unit are kept.
fn kept(variables: &str, unit: &str) -> String {
    say!("device-persistence", variables = variables, unit = unit)
}
