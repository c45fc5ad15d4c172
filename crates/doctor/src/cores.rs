//! How busy the cores of an end were while the tunnel was loaded.

use std::collections::BTreeMap;

use wirespeed_facts::CoreTime;
use wirespeed_measure::{Direction, Sample, Via};
use wirespeed_words::say;

use crate::finding::line;
use crate::view::{FEWEST_SAMPLES, median, moved};
use crate::{End, Evidence, EvidenceLine};

/// No kernel is built for more (`NR_CPUS`).
const MOST_CORES: u32 = 8192;
/// The kernel's part of what a full core does from which it is full of packets, or of the kernel's WireGuard.
pub(crate) const KERNELS_PART: f64 = 0.5;
/// Seconds around a load that may count as its edges.
const EDGES_AT_MOST: f64 = 0.1;

/// Medians over the tunnel's samples of one direction; shares of one core, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cores {
    /// Mean over all cores.
    pub(crate) mean: f64,
    /// The busiest core of each sample.
    pub(crate) busiest: f64,
    /// What part of the work of each sample's busiest core was the kernel's (system, interrupts, softirqs).
    pub(crate) kernels_part: f64,
    /// Mean over the other cores of each sample; `None` on a machine with one core.
    pub(crate) others: Option<f64>,
    /// Each core by itself.
    pub(crate) each: Vec<f64>,
    /// Softirq share of each core.
    pub(crate) softirq: Vec<f64>,
    /// What the kernel itself used (system, interrupts, softirqs), mean over the cores.
    pub(crate) kernel: f64,
    /// Taken by the hypervisor, mean over the cores.
    pub(crate) steal: f64,
}

/// Reads the cores of an end; `None` when fewer than [`FEWEST_SAMPLES`] samples tell.
pub(crate) fn of(evidence: &Evidence, end: End, direction: Direction) -> Option<Cores> {
    let samples: Vec<Vec<CoreTime>> = evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| during(sample, end))
        .collect();
    if samples.len() < FEWEST_SAMPLES {
        return None;
    }
    let count = samples.iter().map(Vec::len).min()?;
    let each = (0..count)
        .filter_map(|core| median(samples.iter().map(|cores| cores[core].busy_share())))
        .collect();
    let softirq = (0..count)
        .filter_map(|core| median(samples.iter().map(|cores| softirq_share(&cores[core]))))
        .collect();
    Some(Cores {
        mean: median(
            samples
                .iter()
                .map(|cores| mean(cores.iter().map(CoreTime::busy_share))),
        )?,
        busiest: median(samples.iter().map(|cores| busiest(cores).1))?,
        kernels_part: median(
            samples
                .iter()
                .filter_map(|cores| cores.get(busiest(cores).0))
                .map(kernels_part),
        )?,
        others: if count > 1 {
            median(samples.iter().map(|cores| mean_without_busiest(cores)))
        } else {
            None
        },
        each,
        softirq,
        kernel: median(
            samples
                .iter()
                .map(|cores| mean(cores.iter().map(kernel_share))),
        )?,
        steal: median(
            samples
                .iter()
                .map(|cores| mean(cores.iter().map(steal_share))),
        )?,
    })
}

/// Mean over all cores while an end was watched without a load.
pub(crate) fn watched(evidence: &Evidence, end: End) -> Option<f64> {
    let cores = &crate::watched::at(evidence, end)?.counters.cores;
    (!cores.is_empty()).then(|| mean(cores.iter().map(CoreTime::busy_share)))
}

/// Mean over all cores during the longer load of many streams; `None` when there was none.
pub(crate) fn with_many_streams(
    evidence: &Evidence,
    end: End,
    direction: Direction,
) -> Option<f64> {
    during(evidence.soak(direction, Via::Tunnel)?, end)
        .map(|cores| mean(cores.iter().map(CoreTime::busy_share)))
}

/// The busiest core of an end while a load ran.
pub(crate) fn busiest_in(sample: &Sample, end: End) -> Option<f64> {
    during(sample, end).map(|cores| busiest(&cores).1)
}

/// The busiest of an end's cores that mostly did the kernel's work while a load ran; `None` where no core did.
pub(crate) fn busiest_of_the_kernel_in(sample: &Sample, end: End) -> Option<f64> {
    during(sample, end)?
        .iter()
        .filter(|core| kernels_part(core) >= KERNELS_PART)
        .map(CoreTime::busy_share)
        .max_by(f64::total_cmp)
}

/// The cores of an end while the load ran. The counters are read a little before and after it, when nothing is sent: on a
/// load of a second that is one part in twenty, and idle.
fn during(sample: &Sample, end: End) -> Option<Vec<CoreTime>> {
    let moved = moved(sample, end).filter(|moved| !moved.cores.is_empty())?;
    let edges = (moved.seconds - sample.load.warm_up - sample.ran).clamp(0.0, EDGES_AT_MOST);
    let without_edges = |core: &CoreTime| CoreTime {
        idle: (core.idle - edges).max(0.0),
        ..*core
    };
    Some(moved.cores.iter().map(without_edges).collect())
}

impl Cores {
    /// Per core as lines of evidence.
    pub(crate) fn lines(
        &self,
        evidence: &Evidence,
        end: End,
        direction: Direction,
    ) -> Vec<EvidenceLine> {
        let mut lines: Vec<EvidenceLine> = self
            .each
            .iter()
            .zip(&self.softirq)
            .enumerate()
            .map(|(core, (busy, softirq))| {
                line(
                    say!("doctor-line-core", direction = direction.word()),
                    say!(
                        "doctor-core-of",
                        host = evidence.name(end),
                        core = core.to_string()
                    ),
                    *softirq,
                    *busy,
                    "share",
                )
            })
            .collect();
        if self.steal >= 0.02 {
            lines.push(line(
                say!("doctor-line-steal"),
                evidence.name(end),
                (),
                self.steal,
                "share",
            ));
        }
        lines
    }
}

/// The processes that used most time while the tunnel was loaded: program and cores used, busiest first.
pub(crate) fn busiest_processes(
    evidence: &Evidence,
    end: End,
    direction: Direction,
) -> Vec<(String, f64)> {
    let mut used: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut seconds = 0.0;
    for delta in evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(|sample| moved(sample, end))
    {
        seconds += delta.seconds;
        for (pid, process) in &delta.processes {
            *used.entry((pid, &process.program)).or_default() += process.cpu;
        }
    }
    if seconds <= 0.0 {
        return Vec::new();
    }
    let mut busiest: Vec<(String, f64)> = used
        .into_iter()
        .map(|((pid, program), cpu)| (describe(program, pid), cpu / seconds))
        .filter(|(_, cores)| *cores >= 0.05)
        .collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    busiest.truncate(3);
    busiest
}

/// Cores as the kernel reads a mask of them (`rps_cpus`): hexadecimal words of 32 bits, the highest first.
pub(crate) fn mask(cores: &[u32]) -> String {
    let mut words: Vec<u32> = Vec::new();
    for core in cores.iter().filter(|core| **core < MOST_CORES) {
        let word = (core / 32) as usize;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (core % 32);
    }
    let mut words = words.into_iter().rev();
    let highest = format!("{:x}", words.next().unwrap_or_default());
    words.fold(highest, |mask, word| format!("{mask},{word:08x}"))
}

/// What is part of the measurement is named as such, not mistaken for the tunnel.
fn describe(program: &str, pid: &str) -> String {
    match program {
        "iperf3" => say!("doctor-process-load", program = program, pid = pid),
        "wirespeed" => say!("doctor-process-own", program = program, pid = pid),
        _ => say!("doctor-process", program = program, pid = pid),
    }
}

fn softirq_share(core: &CoreTime) -> f64 {
    share(core, core.softirq)
}

fn kernel_share(core: &CoreTime) -> f64 {
    share(core, core.system + core.irq + core.softirq)
}

/// The kernel's part of what a core did, whatever was taken from it.
fn kernels_part(core: &CoreTime) -> f64 {
    share(
        &CoreTime {
            steal: 0.0,
            idle: 0.0,
            ..*core
        },
        core.system + core.irq + core.softirq,
    )
}

fn steal_share(core: &CoreTime) -> f64 {
    share(core, core.steal)
}

fn share(core: &CoreTime, part: f64) -> f64 {
    let all = core.user + core.system + core.irq + core.softirq + core.steal + core.idle;
    if all > 0.0 { part / all } else { 0.0 }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

fn busiest(cores: &[CoreTime]) -> (usize, f64) {
    cores
        .iter()
        .map(CoreTime::busy_share)
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((0, 0.0))
}

fn mean_without_busiest(cores: &[CoreTime]) -> f64 {
    let (skip, _) = busiest(cores);
    mean(
        cores
            .iter()
            .enumerate()
            .filter(|(core, _)| *core != skip)
            .map(|(_, core)| core.busy_share()),
    )
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_mask_has_words_of_32_bits() {
        let first = |count: u32| (0..count).collect::<Vec<u32>>();
        assert_eq!(mask(&first(4)), "f");
        assert_eq!(mask(&first(32)), "ffffffff");
        assert_eq!(mask(&first(48)), "ffff,ffffffff");
        assert_eq!(mask(&[64, 1]), "1,00000000,00000002");
        assert_eq!(mask(&[]), "0");
        assert_eq!(mask(&[u32::MAX]), "0");
    }
}
