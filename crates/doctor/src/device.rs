//! What wirespeed-device tells of itself at an end, as evidence.

mod remedies;

use std::collections::BTreeMap;

use wirespeed_facts::{CountersDelta, DeviceCounters, DeviceFlow, DeviceStatistics};
use wirespeed_measure::{Direction, Via};
use wirespeed_words::say;

use crate::finding::line;
use crate::view::{moved, receiver, sender};
use crate::{End, Evidence, EvidenceLine};

pub(crate) use remedies::{in_its_place, more_workers};

/// The program, and the name of its interface for statistics in evidence.
pub(crate) const PROGRAM: &str = "wirespeed-device";

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

#[cfg(test)]
mod tests;
