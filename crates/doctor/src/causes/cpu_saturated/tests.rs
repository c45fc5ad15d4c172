use wirespeed_facts::{CoreTime, Implementation, Known, ProcessTime};
use wirespeed_measure::{Direction, Via};

use super::CODE;
use crate::testing::{
    at, carry_by, core, daemon, each_sample, facts_of, forget_far, healthy, not_checked, nothing,
    only_finding, sample, set_ratio,
};
use crate::{End, Evidence, Severity, judge};

fn busy(share: f64, ratio: f64) -> Evidence {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, ratio);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![core(share); 4];
    });
    evidence
}

#[test]
fn nine_tenths_busy_and_slower_than_bare_is_found() {
    nothing(&busy(0.89, 0.85));
    nothing(&busy(0.99, 0.90));
    let finding = only_finding(&busy(0.91, 0.85), CODE);
    assert_eq!(
        (finding.host.as_str(), finding.direction),
        ("server", Some(Direction::Upload))
    );
    assert!(finding.because.contains("wireguard-go"));
}

#[test]
fn a_daemon_that_hardly_works_is_not_short_of_a_processor_that_others_fill() {
    let with = |daemons: f64| {
        let mut evidence = busy(0.99, 0.5);
        carry_by(&mut evidence, &daemon(7, None));
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let moved = at(sample, End::Far);
            let used = |program: &str, cores: f64| ProcessTime {
                program: program.to_owned(),
                cpu: cores * moved.seconds,
            };
            moved.processes = [
                ("7", used("wireguard-go", daemons)),
                ("8", used("rustc", 3.5)),
            ]
            .map(|(pid, used)| (pid.to_owned(), used))
            .into();
        });
        judge(&evidence)
            .findings
            .iter()
            .any(|finding| finding.code == CODE)
    };
    assert!(!with(0.1));
    assert!(with(0.2));
}

#[test]
fn what_programs_fill_is_not_what_the_kernels_wireguard_is_short_of() {
    let with = |system: f64| {
        let mut evidence = busy(0.99, 0.75);
        carry_by(&mut evidence, &Implementation::Kernel);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![
                CoreTime {
                    user: 0.95 - system,
                    system,
                    softirq: 0.03,
                    idle: 0.02,
                    ..CoreTime::default()
                };
                4
            ];
        });
        judge(&evidence)
            .findings
            .iter()
            .any(|finding| finding.code == CODE)
    };
    assert!(!with(0.02));
    assert!(with(0.2));
}

#[test]
fn without_a_bare_side_it_takes_nothing_that_is_certain_under_it() {
    let mut evidence = busy(0.99, 0.6);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .socket_drops
            .insert("77".to_owned(), 500);
    });
    let severity = |evidence: &Evidence| {
        let findings = judge(evidence).findings;
        let drops = findings.iter().find(|one| one.code == "socket-overflow");
        drops.map(|one| (one.severity, one.consequence_of.clone()))
    };
    let under = Some(CODE.to_owned());
    assert_eq!(severity(&evidence), Some((Severity::Warning, under)));
    for comparison in &mut evidence.comparisons {
        (comparison.bare, comparison.ratio) = (None, None);
        (comparison.ratio_low, comparison.ratio_high) = (None, None);
    }
    assert_eq!(severity(&evidence), Some((Severity::Warning, None)));
}

#[test]
fn many_connections_fill_the_gaps_that_one_leaves() {
    let mut evidence = busy(0.86, 0.5);
    let with_soak = |evidence: &mut Evidence, share: f64| {
        let mut soak = sample(Via::Tunnel, Direction::Upload, 90e6);
        at(&mut soak, End::Far).cores = vec![core(share); 4];
        evidence.soaks = vec![soak];
    };
    with_soak(&mut evidence, 0.92);
    assert!(
        judge(&evidence)
            .findings
            .iter()
            .all(|finding| finding.code != CODE)
    );
    with_soak(&mut evidence, 0.94);
    only_finding(&evidence, CODE);
    let mut idle = busy(0.79, 0.5);
    with_soak(&mut idle, 0.99);
    assert!(
        judge(&idle)
            .findings
            .iter()
            .all(|finding| finding.code != CODE)
    );
}

#[test]
fn two_namespaces_of_one_kernel_are_one_machine() {
    let mut evidence = busy(0.99, 0.6);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Here).cores = vec![core(0.99); 4];
    });
    facts_of(&mut evidence, End::Far).host.boot_id = Known::Value("boot-of-client".to_owned());
    assert!(only_finding(&evidence, CODE).host.contains("one machine"));
}

#[test]
fn most_of_it_is_more_than_half() {
    let because = |cpu: f64| {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.5);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Here);
            delta.cores = vec![core(0.95); 4];
            delta.processes.get_mut("100").unwrap().cpu = cpu;
        });
        only_finding(&evidence, CODE).because
    };
    // Of two seconds each.
    assert!(because(1.0).contains("wireguard-go (pid 100) with 0.5 of 4 cores"));
    assert!(because(4.0).contains("most of it wireguard-go"));
}

#[test]
fn the_load_generator_is_named_as_such() {
    let mut evidence = busy(0.99, 0.6);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).processes.insert(
            "200".to_owned(),
            ProcessTime {
                program: "iperf3".to_owned(),
                cpu: 2.0,
            },
        );
    });
    assert!(
        only_finding(&evidence, CODE)
            .because
            .contains("load generator")
    );
}

#[test]
fn a_far_end_that_cannot_be_read_is_said_to_be_unknown() {
    let mut evidence = busy(0.99, 0.85);
    forget_far(&mut evidence);
    nothing(&evidence);
    assert!(not_checked(&evidence, CODE));
}
