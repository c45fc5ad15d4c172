//! What keeps the processor's frequency down: its governor, or a cap.

use serde_json::json;
use wirespeed_facts::Facts;
use wirespeed_measure::Direction;
use wirespeed_settings::Setting;
use wirespeed_words::say;

use super::super::cpu_saturated::{HEALTHY_RATIO, machine_name};
use crate::cores;
use crate::finding::{Found, command, line, rates_lines, remedy_of};
use crate::view::{DIRECTIONS, only};
use crate::{Change, End, Evidence, EvidenceLine, Goal, Remedy, Severity};

/// A highest frequency set below this share of the processor's own was set on purpose.
const CAPPED: f64 = 0.9;
/// Governors that keep the frequency down under drivers that leave it to them.
const SLOW_GOVERNORS: [&str; 3] = [POWERSAVE, "conservative", "userspace"];
const POWERSAVE: &str = "powersave";
/// Drivers that choose the frequency themselves, or let the processor do so: their `powersave` is the normal one. `amd-pstate`
/// is that of its guided mode, too.
const OWN_CHOICE: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd-pstate"];
const FAST: &str = "performance";

/// A governor, or a highest frequency, that keeps a processor slow whose cores are full.
pub(super) fn kept_down(evidence: &Evidence, end: End) -> Option<Found> {
    let facts = evidence.facts(end)?;
    let directions: Vec<Direction> = DIRECTIONS
        .into_iter()
        .filter(|direction| {
            evidence.below(*direction, HEALTHY_RATIO) == Some(true)
                && cores::of(evidence, end, *direction)
                    .is_some_and(|cores| cores.busiest >= 0.95 || cores.mean >= 0.9)
        })
        .collect();
    if directions.is_empty() {
        return None;
    }
    let governor = facts
        .cpu
        .governor
        .value()
        .map(|name| name.trim())
        .filter(|name| SLOW_GOVERNORS.contains(name))
        .filter(|name| *name != POWERSAVE || is_slow_powersave(facts));
    let capped = capped(facts);
    if governor.is_none() && capped.is_none() {
        return None;
    }
    let mut lines = Vec::new();
    if let Some(governor) = facts.cpu.governor.value() {
        lines.push(line(
            "scaling_governor",
            evidence.name(end),
            (),
            governor.trim().to_owned(),
            "",
        ));
    }
    lines.extend(frequency_line(evidence, end));
    lines.extend(rates_lines(evidence, &directions));
    let because = match (governor, capped) {
        (_, Some((allowed, maximum))) => say!(
            "cpu-throttled-because-capped",
            allowed = allowed as f64 / 1e9,
            maximum = maximum as f64 / 1e9
        ),
        (governor, None) => say!(
            "cpu-throttled-because-governor",
            governor = governor.unwrap_or_default()
        ),
    };
    Some(Found {
        severity: Severity::Info,
        confidence: if capped.is_some() { 0.6 } else { 0.4 },
        effect: evidence.worst_lost_share(&directions),
        host: machine_name(evidence, end),
        direction: only(&directions),
        evidence: lines,
        because,
        remedies: governor
            .map(|governor| faster_governor(evidence, end, governor))
            .into_iter()
            .chain(capped.map(|(_, maximum)| uncapped(evidence, end, maximum)))
            .collect(),
        refused: Vec::new(),
    })
}

/// Is `powersave` the lowest frequency here? Not known counts as no.
fn is_slow_powersave(facts: &Facts) -> bool {
    let driver = facts.cpu.frequency_driver.value();
    driver.is_some_and(|driver| {
        driver
            .split(',')
            .all(|name| !OWN_CHOICE.contains(&name.trim()))
    })
}

/// The highest frequency allowed and the processor's own, where somebody set it lower.
fn capped(facts: &Facts) -> Option<(u64, u64)> {
    let frequencies = facts.hardware.frequencies.value()?;
    let (allowed, maximum) = (frequencies.allowed?, frequencies.maximum?);
    ((allowed as f64) < maximum as f64 * CAPPED).then_some((allowed, maximum))
}

pub(super) fn frequency_line(evidence: &Evidence, end: End) -> Option<EvidenceLine> {
    let frequencies = evidence.facts(end)?.hardware.frequencies.value()?;
    Some(line(
        say!("cpu-throttled-line-frequency"),
        evidence.name(end),
        frequencies.maximum?,
        frequencies.allowed?,
        "Hz",
    ))
}

fn faster_governor(evidence: &Evidence, end: End, now: &str) -> Remedy {
    let change = Change {
        end,
        setting: Setting::Governor,
        value: json!(FAST),
    };
    remedy_of(
        evidence,
        say!("cpu-throttled-remedy-governor", governor = FAST, now = now),
        vec![(change, json!(now))],
        Goal::Goodput,
        say!("cpu-throttled-risk-frequency"),
    )
}

fn uncapped(evidence: &Evidence, end: End, maximum: u64) -> Remedy {
    let files = "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq";
    Remedy {
        title: say!("cpu-throttled-remedy-uncapped"),
        changes: Vec::new(),
        commands: vec![command(
            evidence,
            end,
            format!("echo {} | tee {files}", maximum / 1000),
        )],
        goal: Goal::Goodput,
        persistence: say!("cpu-throttled-persistence-uncapped"),
        risk: say!("cpu-throttled-risk-frequency"),
        undo: command(
            evidence,
            end,
            format!(
                "echo {} | tee {files}",
                evidence
                    .facts(end)
                    .and_then(capped)
                    .map_or(maximum, |(allowed, _)| allowed)
                    / 1000
            ),
        ),
    }
}
