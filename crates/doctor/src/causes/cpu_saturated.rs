//! `cpu-saturated`: an end has no processor left while the tunnel is loaded, and the tunnel is slower than bare.

use super::starves;
use crate::cores::{self, Cores};
use crate::device;
use crate::finding::{Check, Found, Outcome, by_hand, line, percent, rates_lines};
use crate::view::{DIRECTIONS, ENDS, median, moved, only};
use crate::{End, Evidence, Remedy, Severity, watched};
use wirespeed_facts::{CountersDelta, Implementation};
use wirespeed_measure::{Direction, Via};
use wirespeed_words::say;

pub(super) const CODE: &str = "cpu-saturated";

pub(super) const CHECK: Check = Check {
    brings: starves,
    slows: in_direction,
    ..Check::new(CODE, || say!("cpu-saturated-title"), run)
};

/// Mean over all cores from which a machine counts as saturated.
const SATURATED: f64 = 0.9;
/// One connection leaves gaps while it waits for its own replies: with this share and …
const NEARLY_SATURATED: f64 = 0.8;
/// … this one while many connections fill the gaps, a machine is saturated too.
const SATURATED_BY_MANY: f64 = 0.93;
/// Cores that a daemon gets in any case where it wants more, with six others to each core.
pub(super) const FAIR_SHARE: f64 = 0.15;
/// Share of softirqs, mean over the cores, from which the kernel's work for packets may be what fills them. For the kernel's
/// WireGuard, which encrypts in threads of its own, all that the kernel used counts.
const KERNELS_WORK: f64 = 0.2;
/// A tunnel that carries this share of bare for sure is not held back.
pub(super) const HEALTHY_RATIO: f64 = 0.9;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome {
        not_known: unknown(evidence),
        ..Outcome::default()
    };
    for end in machines(evidence) {
        let hits: Vec<(Direction, Cores)> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| Some((direction, saturated(evidence, end, direction)?)))
            .collect();
        outcome.found.extend(found(evidence, end, &hits));
    }
    outcome
}

/// Is some end out of processor in this direction?
pub(super) fn in_direction(evidence: &Evidence, direction: Direction) -> bool {
    ENDS.into_iter()
        .any(|end| saturated(evidence, end, direction).is_some())
}

/// Is the processor of this end what holds the tunnel back: all of it, or one core?
pub(super) fn limits(evidence: &Evidence, end: End, direction: Direction) -> bool {
    saturated(evidence, end, direction).is_some()
        || (super::one_core_bound::fits(evidence, end, direction) && held_back(evidence, direction))
}

/// Has this end no time to spare while the tunnel is loaded, in all or on one core; however fast the tunnel is beside
/// bare, which whatever takes the time may slow as well?
pub(super) fn full(evidence: &Evidence, end: End, direction: Direction) -> bool {
    cores::of(evidence, end, direction).is_some_and(|cores| cores.mean >= SATURATED)
        || super::one_core_bound::fits(evidence, end, direction)
}

/// The ends to look at: one when both are the same kernel.
pub(super) fn machines(evidence: &Evidence) -> Vec<End> {
    if evidence.one_kernel() {
        vec![End::Here]
    } else {
        ENDS.to_vec()
    }
}

/// The machine that `busy` is largest for, and how large; `None` where it is known for none.
pub(super) fn busiest_machine(
    evidence: &Evidence,
    busy: impl Fn(End) -> Option<f64>,
) -> Option<(End, f64)> {
    machines(evidence)
        .into_iter()
        .filter_map(|end| Some((end, busy(end)?)))
        .max_by(|one, other| one.1.total_cmp(&other.1))
}

/// The ends whose daemons run on this machine.
pub(super) fn daemons(evidence: &Evidence, end: End) -> Vec<End> {
    if evidence.one_kernel() {
        ENDS.to_vec()
    } else {
        vec![end]
    }
}

/// Name of the machine; both names when they are one kernel.
pub(super) fn machine_name(evidence: &Evidence, end: End) -> String {
    if evidence.one_kernel() && evidence.here_name != evidence.far_name {
        say!(
            "cpu-saturated-one-machine",
            here = &evidence.here_name,
            far = &evidence.far_name
        )
    } else {
        evidence.name(end).to_owned()
    }
}

/// What keeps the two processor checks from knowing.
pub(super) fn unknown(evidence: &Evidence) -> Vec<String> {
    if !evidence.loaded() {
        let busiest = busiest_machine(evidence, |end| cores::watched(evidence, end));
        return vec![match busiest {
            Some((end, busy)) => say!(
                "cpu-saturated-unknown-watched",
                host = evidence.name(end),
                busy = percent(busy)
            ),
            None => watched::no_load(evidence, &say!("cpu-saturated-unknown-load")),
        }];
    }
    let says_nothing =
        |direction| evidence.stalled(direction) || evidence.comparison(direction).is_none();
    if DIRECTIONS.into_iter().all(says_nothing) {
        return vec![say!("cpu-saturated-unknown-stalled")];
    }
    machines(evidence)
        .into_iter()
        .filter(|end| {
            DIRECTIONS
                .into_iter()
                .all(|direction| cores::of(evidence, *end, direction).is_none())
        })
        .map(|end| say!("cpu-saturated-unknown-time", host = evidence.name(end)))
        .collect()
}

/// Slower than bare for sure, or bare unknown; and neither sizes, nor a socket too small for anybody, nor a road that polices UDP explain it.
pub(super) fn held_back(evidence: &Evidence, direction: Direction) -> bool {
    evidence.below(direction, HEALTHY_RATIO).unwrap_or(true)
        && !crate::mtu::slows(evidence, direction)
        && !super::socket_overflow::too_small(evidence, direction)
        && !super::udp_shaped::policed(evidence, direction)
}

/// Without a bare side nobody knows that the tunnel is held back at all: worth knowing, no warning.
pub(super) fn severity(evidence: &Evidence, directions: &[Direction], certain: bool) -> Severity {
    let crippled = |direction: &Direction| evidence.crippled(*direction);
    match certain {
        false => Severity::Info,
        true if directions.iter().any(crippled) => Severity::Critical,
        true => Severity::Warning,
    }
}

/// Is this end out of processor in this direction?
pub(super) fn at(evidence: &Evidence, end: End, direction: Direction) -> bool {
    saturated(evidence, end, direction).is_some()
}

fn saturated(evidence: &Evidence, end: End, direction: Direction) -> Option<Cores> {
    let cores = cores::of(evidence, end, direction)?;
    let filled = || {
        cores::with_many_streams(evidence, end, direction)
            .is_some_and(|mean| mean >= SATURATED_BY_MANY)
    };
    let busy = cores.mean >= SATURATED || (cores.mean >= NEARLY_SATURATED && filled());
    let hit = busy
        && (wants_more(evidence, end, direction, &cores) || kernels_work(&cores))
        && held_back(evidence, direction)
        && !super::one_core_bound::fits(evidence, end, direction);
    hit.then_some(cores)
}

fn kernels_work(cores: &Cores) -> bool {
    let sum: f64 = cores.softirq.iter().sum();
    sum >= KERNELS_WORK * cores.softirq.len() as f64
}

/// Does a tunnel on this machine, by its daemon or in the kernel, use as much processor time as one that is short of it would
/// get? Otherwise others fill the processor, and the tunnel waits for something else. What is not known counts as yes.
fn wants_more(evidence: &Evidence, end: End, direction: Direction, cores: &Cores) -> bool {
    daemons(evidence, end).into_iter().any(|end| {
        match evidence.tunnel(end).map(|tunnel| &tunnel.implementation) {
            Some(Implementation::Kernel) => cores.kernel >= KERNELS_WORK,
            _ => used_by_daemon(evidence, end, direction).is_none_or(|cores| cores >= FAIR_SHARE),
        }
    })
}

/// Cores that the daemon of an end used during the loads, at most; `None` where that is not known or there is no daemon.
pub(super) fn used_by_daemon(evidence: &Evidence, end: End, direction: Direction) -> Option<f64> {
    let Implementation::Userspace { pid: Some(pid), .. } = evidence.tunnel(end)?.implementation
    else {
        return None;
    };
    let used = |delta: &CountersDelta| {
        let all = &delta.processes;
        let least = all.values().map(|process| process.cpu).reduce(f64::min)?;
        // Only the busiest are listed: one that is not among them used no more than the last of them.
        let own = all.get(&pid.to_string()).map_or(least, |own| own.cpu);
        (delta.seconds > 0.0).then_some(own / delta.seconds)
    };
    median(
        evidence
            .samples(direction, Via::Tunnel)
            .into_iter()
            .filter_map(|sample| used(moved(sample, end)?)),
    )
}

/// Seconds that each process took which has nothing to do with the tunnel, among the busiest ones. None where a daemon's
/// process is not known, for then it may be any of them.
pub(super) fn of_others(
    evidence: &Evidence,
    end: End,
    delta: &CountersDelta,
) -> impl Iterator<Item = f64> {
    const OURS: [&str; 5] = ["iperf3", "wirespeed", "ksoftirqd", "kworker", "napi"];
    let pids = daemons(evidence, end).into_iter().filter_map(|end| {
        match &evidence.tunnel(end)?.implementation {
            Implementation::Userspace { pid, .. } => Some(pid.map(|pid| pid.to_string())),
            Implementation::Kernel => None,
        }
    });
    let daemons: Option<Vec<String>> = pids.collect();
    delta.processes.iter().filter_map(move |(pid, process)| {
        let ours = OURS.iter().any(|ours| process.program.starts_with(ours));
        let strange = !ours && !daemons.as_ref()?.contains(pid);
        strange.then_some(process.cpu)
    })
}

fn found(evidence: &Evidence, end: End, hits: &[(Direction, Cores)]) -> Option<Found> {
    let (first, cores) = hits.first()?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, _)| *direction).collect();
    let processes = cores::busiest_processes(evidence, end, *first);
    let mut lines: Vec<_> = hits
        .iter()
        .flat_map(|(direction, cores)| cores.lines(evidence, end, *direction))
        .collect();
    for (direction, cores) in hits {
        if let Some(mean) = cores::with_many_streams(evidence, end, *direction) {
            lines.push(line(
                say!("cpu-saturated-line-many", direction = direction.word()),
                evidence.name(end),
                cores.mean,
                mean,
                "share",
            ));
        }
    }
    for (process, used) in &processes {
        lines.push(line(
            say!(
                "cpu-saturated-line-process",
                process = process,
                direction = first.word()
            ),
            evidence.name(end),
            (),
            *used,
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
    let count = cores.each.len();
    let busy = percent(
        cores::with_many_streams(evidence, end, *first)
            .unwrap_or_default()
            .max(cores.mean),
    );
    let because = match processes.first() {
        Some((process, used)) if *used > cores.mean * count as f64 / 2.0 => say!(
            "cpu-saturated-because-mostly",
            busy = busy,
            process = process
        ),
        Some((process, used)) => say!(
            "cpu-saturated-because-busiest",
            busy = busy,
            process = process,
            used = *used,
            cores = count
        ),
        None => say!("cpu-saturated-because", busy = busy),
    };
    Some(Found {
        severity: severity(evidence, &directions, certain),
        confidence: if certain { 0.85 } else { 0.6 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because,
        remedies: [less_work(evidence, end)]
            .into_iter()
            .chain(
                daemons(evidence, end)
                    .into_iter()
                    .filter_map(|end| device::in_its_place(evidence, end)),
            )
            .collect(),
        refused: Vec::new(),
    })
}

fn less_work(evidence: &Evidence, end: End) -> Remedy {
    if evidence.is_userspace(end) {
        by_hand(
            say!("cpu-saturated-remedy-userspace"),
            say!("cpu-saturated-risk-userspace"),
        )
    } else {
        by_hand(say!("cpu-saturated-remedy"), "")
    }
}

#[cfg(test)]
mod tests;
