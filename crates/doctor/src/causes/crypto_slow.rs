//! `crypto-slow`: a virtual machine is not told of the instructions its host has for encrypting.
//!
//! ChaCha20-Poly1305 runs two to four times as fast with AVX2 or AVX-512 as without; every server since about 2015 has AVX2.
//! A guest's processor of a generic model hides it. Judged by the flags alone: they decide which code runs, in the kernel
//! as in Go and in wirespeed-device, and a benchmark beside a load would measure the load.

use wirespeed_facts::{Facts, Known};
use wirespeed_measure::Direction;
use wirespeed_words::say;

use super::{cpu_saturated, names_host, one_core_bound};
use crate::finding::{Check, Found, Outcome, line, rates_lines};
use crate::view::{DIRECTIONS, only};
use crate::{End, Evidence, Finding, Goal, Remedy, Severity};

pub(super) const CODE: &str = "crypto-slow";

pub(super) const CHECK: Check = Check {
    brings,
    ..Check::new(CODE, || say!("crypto-slow-title"), run)
};

/// What the model of a processor is called that stands for no real one.
const GENERIC: [&str; 5] = [
    "QEMU Virtual CPU",
    "Common KVM processor",
    "Common 32-bit KVM processor",
    "QEMU TCG CPU",
    "Virtual CPU",
];

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in cpu_saturated::machines(evidence) {
        let directions: Vec<Direction> = DIRECTIONS
            .into_iter()
            .filter(|direction| cpu_saturated::limits(evidence, end, *direction))
            .collect();
        outcome.found.extend(found(evidence, end, &directions));
    }
    outcome
}

fn brings(evidence: &Evidence, own: &Finding, effect: &Finding) -> bool {
    own.severity >= effect.severity
        && [cpu_saturated::CODE, one_core_bound::CODE].contains(&effect.code.as_str())
        && names_host(evidence, own, &effect.host)
}

/// The instructions a processor of this kind should have for it, when it has none of them.
fn lacks(facts: &Facts) -> Option<&'static str> {
    let has = |name: &str| facts.cpu.flags.iter().any(|flag| flag == name);
    if facts.cpu.flags.is_empty() {
        return None;
    }
    let wanted = match facts.host.architecture.as_str() {
        "x86_64" => "avx2",
        "aarch64" => "asimd",
        _ => return None,
    };
    (!has(wanted)).then_some(wanted)
}

fn found(evidence: &Evidence, end: End, directions: &[Direction]) -> Option<Found> {
    let facts = evidence.facts(end)?;
    let wanted = lacks(facts)?;
    let Known::Value(Some(hypervisor)) = &facts.hardware.hypervisor else {
        return None;
    };
    if directions.is_empty() {
        return None;
    }
    let model = match facts.cpu.model.value() {
        Some(model) => model.clone(),
        None => say!("crypto-slow-unknown-model"),
    };
    let generic = GENERIC.iter().any(|name| model.contains(name));
    let certain = directions
        .iter()
        .any(|direction| evidence.below(*direction, cpu_saturated::HEALTHY_RATIO) == Some(true));
    let place = cpu_saturated::machine_name(evidence, end);
    let mut lines = vec![
        line(
            say!("crypto-slow-line-hypervisor"),
            &place,
            (),
            hypervisor.clone(),
            "",
        ),
        line(
            say!("crypto-slow-line-model"),
            &place,
            (),
            model.clone(),
            "",
        ),
        line(
            say!("crypto-slow-line-flag", flag = wanted),
            &place,
            say!("crypto-slow-present"),
            say!("crypto-slow-absent"),
            "",
        ),
    ];
    lines.extend(rates_lines(evidence, directions));
    Some(Found {
        // A model that is real may be of a host that is as old.
        severity: if certain && generic {
            cpu_saturated::severity(evidence, directions, true)
        } else {
            Severity::Info
        },
        confidence: if generic { 0.75 } else { 0.4 },
        effect: evidence.worst_lost_share(directions),
        host: place.clone(),
        direction: only(directions),
        evidence: lines,
        because: say!(
            "crypto-slow-because",
            place = place,
            hypervisor = hypervisor,
            model = model,
            flag = wanted
        ),
        remedies: vec![Remedy {
            title: say!("crypto-slow-remedy"),
            changes: Vec::new(),
            commands: Vec::new(),
            goal: Goal::Goodput,
            persistence: say!("crypto-slow-persistence"),
            risk: say!("crypto-slow-risk"),
            undo: say!("crypto-slow-undo"),
        }],
        refused: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::Via;

    use super::*;
    use crate::testing::{at, core, each_sample, facts_of, healthy, only_finding, set_ratio};

    fn guest(model: &str, flags: &[&str], hypervisor: Option<&str>) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        let facts = facts_of(&mut evidence, End::Far);
        facts.cpu.model = Known::Value(model.to_owned());
        facts.cpu.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        facts.hardware.hypervisor = Known::Value(hypervisor.map(str::to_owned));
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.97); 4];
        });
        evidence
    }

    #[test]
    fn a_generic_processor_of_a_busy_guest_is_found() {
        let evidence = guest(
            "QEMU Virtual CPU version 2.5+",
            &["sse2", "ssse3"],
            Some("kvm"),
        );
        let finding = only_finding(&evidence, CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Warning, "server")
        );
        assert!(finding.because.contains("avx2"));
    }

    #[test]
    fn a_model_that_is_real_may_be_the_hosts() {
        let evidence = guest("Intel Xeon E312xx (Sandy Bridge)", &["avx"], Some("kvm"));
        let diagnosis = crate::judge(&evidence);
        assert_eq!(
            crate::testing::codes(&diagnosis),
            ["cpu-saturated", CODE],
            "an old host is no mistake of the guest's"
        );
        assert_eq!(diagnosis.findings[1].severity, Severity::Info);
    }

    #[test]
    fn with_the_flag_or_without_a_hypervisor_or_time_to_spare_it_is_no_matter() {
        let code = "cpu-saturated";
        only_finding(&guest("QEMU Virtual CPU", &["avx2"], Some("kvm")), code);
        only_finding(&guest("QEMU Virtual CPU", &["sse2"], None), code);
        only_finding(&guest("QEMU Virtual CPU", &[], Some("kvm")), code);
        let mut other = guest("QEMU Virtual CPU", &["fp"], Some("kvm"));
        facts_of(&mut other, End::Far).host.architecture = "riscv64".to_owned();
        only_finding(&other, code);
        let mut idle = guest("QEMU Virtual CPU", &["sse2"], Some("kvm"));
        set_ratio(&mut idle, Direction::Upload, 0.95);
        crate::testing::nothing(&idle);
    }
}
