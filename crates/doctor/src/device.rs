//! What wirespeed-device tells of itself at an end, as evidence; and how to put it in another daemon's place.

use std::collections::BTreeMap;

use wirespeed_facts::{
    CountersDelta, DeviceCounters, DeviceFlow, DeviceStatistics, Implementation,
};
use wirespeed_measure::{Direction, Via};
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use crate::finding::{command, line};
use crate::view::{moved, receiver, sender};
use crate::{End, Evidence, EvidenceLine, Goal, Remedy};

/// The program, and the name of its interface for statistics in evidence.
pub(crate) const PROGRAM: &str = "wirespeed-device";

/// The daemon that wg-quick starts unless told otherwise.
const WG_QUICKS_OWN: &str = "wireguard-go";

/// What wg-quick takes the name of its daemon from.
const CHOICE: &str = "WG_QUICK_USERSPACE_IMPLEMENTATION";

/// A worker that takes this share of a core has none left.
pub(crate) const WORKER_FULL: f64 = 0.9;

/// What the device at an end tells of itself, when it is wirespeed-device.
pub(crate) fn statistics(evidence: &Evidence, end: End) -> Option<&DeviceStatistics> {
    evidence.tunnel(end)?.statistics.as_ref()?.value()
}

/// What it counted in an interval.
fn counted<'a>(
    evidence: &Evidence,
    end: End,
    delta: Option<&'a CountersDelta>,
) -> Option<&'a DeviceCounters> {
    delta?.devices.get(&evidence.tunnel(end)?.name)
}

/// Packets that the device dropped for a reason while the probes ran.
pub(crate) fn dropped_while_probing(evidence: &Evidence, end: End, reason: &str) -> u64 {
    let delta = match end {
        End::Here => evidence.probing_here.as_ref(),
        End::Far => evidence.probing_far.as_ref(),
    };
    counted(evidence, end, delta)
        .and_then(|counters| counters.drops.get(reason).copied())
        .unwrap_or_default()
}

/// What the device dropped during the tunnel's loads of a direction, a line for each reason.
pub(crate) fn drop_lines(evidence: &Evidence, end: End, direction: Direction) -> Vec<EvidenceLine> {
    let mut drops: BTreeMap<&str, u64> = BTreeMap::new();
    for counters in during(evidence, end, direction).map(|(_, counters)| counters) {
        for (reason, count) in &counters.drops {
            let sum = drops.entry(reason).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    drops
        .into_iter()
        .map(|(reason, count)| {
            line(
                say!(
                    "device-line-dropped",
                    program = PROGRAM,
                    direction = direction.word(),
                    reason = reason
                ),
                evidence.interface_at(end),
                0,
                count,
                "packets",
            )
        })
        .collect()
}

/// The device's counters over the tunnel's samples of a direction, with the seconds of each.
fn during(
    evidence: &Evidence,
    end: End,
    direction: Direction,
) -> impl Iterator<Item = (f64, &DeviceCounters)> {
    evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(move |sample| {
            let delta = moved(sample, end)?;
            Some((delta.seconds, counted(evidence, end, Some(delta))?))
        })
}

/// The worker that used most processor time while a direction was loaded, and how many cores that is (at most 1).
pub(crate) fn busiest_worker(
    evidence: &Evidence,
    end: End,
    direction: Direction,
) -> Option<(String, f64)> {
    let mut seconds = 0.0;
    let mut used: BTreeMap<&str, f64> = BTreeMap::new();
    for (of_sample, counters) in during(evidence, end, direction) {
        seconds += of_sample;
        for (name, worker) in &counters.workers {
            if let Some(cpu) = worker.cpu {
                *used.entry(name).or_default() += cpu;
            }
        }
    }
    let (name, cpu) = used.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (seconds > 0.0).then(|| (name.to_owned(), (cpu / seconds).clamp(0.0, 1.0)))
}

/// How the device at an end works, for a finding about processor time: engine and workers, the busiest worker, how many
/// packets go with one call of the kernel, and the offloads it has to do without.
pub(crate) fn work_lines(evidence: &Evidence, end: End, direction: Direction) -> Vec<EvidenceLine> {
    let Some(statistics) = statistics(evidence, end) else {
        return Vec::new();
    };
    let place = evidence.interface_at(end);
    let workers = statistics
        .worker_count
        .map_or_else(|| "?".to_owned(), |count| count.to_string());
    let mut lines = vec![line(
        say!("device-line-engine", program = PROGRAM),
        &place,
        (),
        format!("{}, {workers}", statistics.engine),
        "",
    )];
    if let Some((worker, used)) = busiest_worker(evidence, end, direction) {
        lines.push(line(
            say!(
                "device-line-worker",
                worker = worker,
                direction = direction.word()
            ),
            &place,
            (),
            used,
            "cores",
        ));
    }
    lines.extend(batch_line(evidence, end, direction));
    for offload in &statistics.offloads {
        if let Some(without) = statistics.without(&offload.offload) {
            lines.push(line(
                say!(
                    "device-line-offload",
                    offload = &without.offload,
                    program = PROGRAM
                ),
                &place,
                (),
                match &without.reason {
                    Some(reason) => format!("{}: {reason}", without.state),
                    None => without.state.clone(),
                },
                "",
            ));
        }
    }
    lines
}

/// Inner packets per call of the kernel, in the direction of the load.
fn batch_line(evidence: &Evidence, end: End, direction: Direction) -> Option<EvidenceLine> {
    let mut sum = DeviceFlow::default();
    for (_, counters) in during(evidence, end, direction) {
        for worker in counters.workers.values() {
            let flow = if end == sender(direction) {
                worker.sent
            } else {
                worker.received
            };
            sum.packets = sum.packets.saturating_add(flow.packets);
            sum.system_calls = sum.system_calls.saturating_add(flow.system_calls);
        }
    }
    let (program, direction_word) = (PROGRAM, direction.word());
    let what = if end == receiver(direction) {
        say!(
            "device-line-received",
            program = program,
            direction = direction_word
        )
    } else {
        say!(
            "device-line-sent",
            program = program,
            direction = direction_word
        )
    };
    Some(line(
        what,
        evidence.interface_at(end),
        (),
        sum.batch()?,
        "packets",
    ))
}

/// The last resort where a daemon's own work is the limit: wirespeed-device in its place, started by wg-quick. None where
/// it is in place already, or where the kernel carries the tunnel (a daemon takes more processor time than that).
pub(crate) fn in_its_place(evidence: &Evidence, end: End) -> Option<Remedy> {
    let tunnel = evidence.tunnel(end)?;
    let Implementation::Userspace { program, .. } = &tunnel.implementation else {
        return None;
    };
    let program = program.as_deref().unwrap_or(WG_QUICKS_OWN);
    if tunnel.statistics.is_some() || program == PROGRAM {
        return None;
    }
    let interface = shell_word(&tunnel.name);
    let down = command(evidence, end, format!("wg-quick down {interface}"));
    let up_with = |daemon: &str| {
        let choice = match daemon {
            WG_QUICKS_OWN => String::new(),
            other => format!("{CHOICE}={} ", shell_word(other)),
        };
        command(evidence, end, format!("{choice}wg-quick up {interface}"))
    };
    Some(Remedy {
        title: say!("device-remedy-replace", device = PROGRAM, program = program),
        changes: Vec::new(),
        commands: vec![down.clone(), up_with(PROGRAM)],
        goal: Goal::Goodput,
        persistence: kept(&format!("{CHOICE}={PROGRAM}"), &interface),
        risk: say!("device-risk-replace"),
        undo: [down, up_with(program)].join("\n"),
    })
}

/// Where a variable of wg-quick's daemon is kept.
fn kept(variables: &str, interface: &str) -> String {
    say!(
        "device-persistence",
        variables = variables,
        interface = interface
    )
}

/// A worker per core for wirespeed-device where one is at the end of its core. None where that is so already.
pub(crate) fn more_workers(evidence: &Evidence, end: End, direction: Direction) -> Option<Remedy> {
    let statistics = statistics(evidence, end)?;
    let cores = evidence.facts(end)?.cpu.online;
    let workers = usize::try_from(statistics.worker_count?).ok()?;
    let (_, used) = busiest_worker(evidence, end, direction)?;
    if used < WORKER_FULL || (workers >= cores && statistics.spread) {
        return None;
    }
    let interface = shell_word(&evidence.tunnel(end)?.name);
    let down = command(evidence, end, format!("wg-quick down {interface}"));
    let up = |choice: &str| {
        command(
            evidence,
            end,
            format!("{choice}{CHOICE}={PROGRAM} wg-quick up {interface}"),
        )
    };
    Some(Remedy {
        title: say!(
            "device-remedy-workers",
            program = PROGRAM,
            cores = cores.to_string()
        ),
        changes: Vec::new(),
        commands: vec![
            down.clone(),
            up(&format!("WIRESPEED_WORKERS={cores} WIRESPEED_SPREAD=1 ")),
        ],
        goal: Goal::Goodput,
        persistence: kept(
            &format!("WIRESPEED_WORKERS={cores} WIRESPEED_SPREAD=1"),
            &interface,
        ),
        risk: say!("device-risk-workers"),
        undo: [down, up("")].join("\n"),
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{
        CoreTime, DeviceCounters, DeviceFlow, DeviceOffload, DeviceStatistics, DeviceWorker,
        Implementation, Known, WorkerCounters,
    };
    use wirespeed_measure::{Direction, Via};

    use crate::testing::{
        at, core, each_sample, healthy, kernels_core, nothing, only_finding, set_ratio, tunnel_of,
    };
    use crate::{End, Evidence, Finding, Remedy};

    /// The far end's cores while the tunnel is loaded from here.
    fn busy(cores: &[CoreTime]) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = cores.to_vec();
        });
        evidence
    }

    /// The far end is carried by wirespeed-device, whose one worker uses this share of a core.
    fn ours(evidence: &mut Evidence, used: f64) {
        tunnel_of(evidence, End::Far).statistics = Some(Known::Value(DeviceStatistics {
            engine: "inline".to_owned(),
            worker_count: Some(1),
            workers: vec![DeviceWorker::default()],
            offloads: vec![
                DeviceOffload {
                    offload: "udp-gro".to_owned(),
                    state: "degraded".to_owned(),
                    reason: Some("EIO".to_owned()),
                    errors: 1,
                },
                DeviceOffload {
                    offload: "udp-gso".to_owned(),
                    state: "on".to_owned(),
                    ..DeviceOffload::default()
                },
            ],
            ..DeviceStatistics::default()
        }));
        each_sample(evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            let worker = WorkerCounters {
                cpu: Some(used * delta.seconds),
                received: DeviceFlow {
                    packets: 300,
                    bytes: 0,
                    system_calls: 10,
                },
                ..WorkerCounters::default()
            };
            let counters = DeviceCounters {
                workers: [("worker 0".to_owned(), worker)].into(),
                drops: [("replayed".to_owned(), 2)].into(),
            };
            delta.devices.insert("wg1".to_owned(), counters);
        });
    }

    fn titled<'a>(finding: &'a Finding, word: &str) -> Option<&'a Remedy> {
        let mut remedies = finding.remedies.iter();
        remedies.find(|remedy| remedy.title.contains(word))
    }

    #[test]
    fn another_daemon_that_is_at_its_limit_can_be_replaced_and_put_back() {
        for (cores, code) in [
            (vec![core(0.99); 4], "cpu-saturated"),
            (vec![kernels_core(0.99), core(0.2)], "one-core-bound"),
        ] {
            let mut evidence = busy(&cores);
            let finding = only_finding(&evidence, code);
            let last = finding.remedies.last().unwrap();
            assert_eq!(
                last.commands,
                [
                    "wg-quick down wg1  # on server",
                    "WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device wg-quick up wg1  # on server"
                ]
            );
            assert!(last.undo.ends_with("\nwg-quick up wg1  # on server"));
            if let Implementation::Userspace { program, .. } =
                &mut tunnel_of(&mut evidence, End::Far).implementation
            {
                *program = Some("boringtun-cli".to_owned());
            }
            let finding = only_finding(&evidence, code);
            assert!(
                finding
                    .remedies
                    .last()
                    .unwrap()
                    .undo
                    .contains("\nWG_QUICK_USERSPACE_IMPLEMENTATION=boringtun-cli wg-quick up wg1")
            );
        }
    }

    #[test]
    fn the_kernels_tunnel_and_our_own_are_not_replaced() {
        let mut evidence = busy(&[kernels_core(0.99); 4]);
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        assert!(titled(&only_finding(&evidence, "cpu-saturated"), "Last resort").is_none());
        let mut evidence = busy(&[core(0.99); 4]);
        ours(&mut evidence, 0.5);
        assert!(titled(&only_finding(&evidence, "cpu-saturated"), "Last resort").is_none());
    }

    #[test]
    fn what_the_device_tells_is_evidence_of_the_processors() {
        let mut evidence = busy(&[core(0.99); 4]);
        ours(&mut evidence, 0.5);
        let finding = only_finding(&evidence, "cpu-saturated");
        let after = |what: &str| {
            let mut lines = finding.evidence.iter();
            lines
                .find(|line| line.what.contains(what))
                .map(|line| line.after.clone())
        };
        assert_eq!(after("engine and workers"), Some("inline, 1".into()));
        assert_eq!(after("busiest worker (worker 0)"), Some(0.5.into()));
        assert_eq!(after("packets received per system call"), Some(30.0.into()));
        assert_eq!(after("offload udp-gro"), Some("degraded: EIO".into()));
        assert_eq!(after("offload udp-gso"), None);
        set_ratio(&mut evidence, Direction::Upload, 0.96);
        nothing(&evidence);
    }

    #[test]
    fn a_full_worker_gets_company_as_long_as_there_are_cores() {
        let mut evidence = busy(&[kernels_core(0.99), core(0.2), core(0.2), core(0.2)]);
        ours(&mut evidence, 0.97);
        let finding = only_finding(&evidence, "one-core-bound");
        assert_eq!(
            titled(&finding, "worker").unwrap().commands[1],
            "WIRESPEED_WORKERS=4 WIRESPEED_SPREAD=1 WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device wg-quick up wg1  # on server"
        );
        ours(&mut evidence, 0.5);
        let finding = only_finding(&evidence, "one-core-bound");
        assert!(titled(&finding, "worker").is_none());
    }
}
