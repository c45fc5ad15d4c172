use wirespeed_facts::{CoreTime, Frequencies, Known, Quota, Throttling};
use wirespeed_measure::{Direction, Via};
use wirespeed_words::{Language, within};

use super::CODE;
use crate::testing::{
    at, codes, core, each_sample, facts_of, healthy, nothing, only_finding, path_mtu, set_ratio,
    tunnel_of,
};
use crate::{End, Evidence, Severity, judge};

fn slow() -> Evidence {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.7);
    evidence
}

fn with_cores(mut evidence: Evidence, cores: CoreTime) -> Evidence {
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = vec![cores; 4];
    });
    evidence
}

fn stolen(steal: f64, busy: f64) -> CoreTime {
    CoreTime {
        user: busy,
        steal,
        idle: 1.0 - busy - steal,
        ..CoreTime::default()
    }
}

fn with_quota(mut evidence: Evidence, throttled: u64) -> Evidence {
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).quotas.insert(
            "wg1".to_owned(),
            Quota {
                group: "/system.slice/wg.service".to_owned(),
                cores: 0.25,
                periods: 20,
                throttled,
                seconds: 1.0,
            },
        );
    });
    evidence
}

#[test]
fn a_tenth_stolen_explains_a_slower_tunnel() {
    only_finding(&with_cores(slow(), stolen(0.09, 0.5)), "unexplained");
    only_finding(&with_cores(slow(), stolen(0.11, 0.38)), "unexplained");
    nothing(&with_cores(healthy(), stolen(0.3, 0.5)));
    let finding = only_finding(&with_cores(slow(), stolen(0.11, 0.4)), CODE);
    assert_eq!(
        (finding.severity, finding.host.as_str(), finding.direction),
        (Severity::Warning, "server", Some(Direction::Upload))
    );
    assert!(finding.because.contains("11 %"));
}

#[test]
fn cores_that_are_busy_by_steal_alone_are_its_consequence() {
    let diagnosis = judge(&with_cores(slow(), stolen(0.4, 0.55)));
    assert_eq!(codes(&diagnosis), [CODE]);
    assert_eq!(diagnosis.findings[1].code, "cpu-saturated");
    let both = judge(&with_cores(slow(), stolen(0.15, 0.84)));
    assert_eq!(codes(&both).len(), 2);
}

#[test]
fn a_tunnel_that_is_slow_for_its_sizes_or_its_socket_is_not_held_back() {
    for sick in [with_cores(slow(), stolen(0.3, 0.5)), with_quota(slow(), 15)] {
        only_finding(&sick, CODE);
        let mut evidence = sick.clone();
        evidence.path_mtu[0] = path_mtu(Direction::Upload, 1400);
        only_finding(&evidence, "mtu-exceeds-path");
        let mut evidence = sick;
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .socket_drops
                .insert("77".to_owned(), 500);
        });
        if let Known::Value(sockets) = &mut tunnel_of(&mut evidence, End::Far).sockets {
            sockets[0].receive_buffer = 65_536;
        }
        only_finding(&evidence, "socket-overflow");
    }
}

#[test]
fn groups_above_one_another_wait_in_no_more_than_all_periods() {
    let finding = only_finding(&with_quota(slow(), 24), CODE);
    assert!(finding.because.contains("in 100 of 100 periods"));
}

#[test]
fn an_allowance_that_is_used_up_is_found() {
    only_finding(&with_quota(slow(), 1), "unexplained");
    nothing(&with_quota(healthy(), 15));
    let finding = only_finding(&with_quota(slow(), 2), CODE);
    assert!(finding.because.contains("0.25 cores"));
    let remedy = &finding.remedies[0];
    assert_eq!(
        remedy.commands[0],
        "systemctl set-property --runtime wg.service CPUQuota=  # on server"
    );
    assert!(remedy.undo.contains("CPUQuota=25%"));
}

#[test]
fn cores_that_others_keep_busy_do_not_hold_back_a_daemon_without_allowance() {
    let codes_with = |throttled| {
        let mut evidence = with_quota(slow(), throttled);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        codes(&judge(&evidence)).len()
    };
    assert_eq!((codes_with(9), codes_with(10)), (2, 1));
}

#[test]
fn what_it_brings_about_is_the_same_in_any_language() {
    let by_quota = || {
        let mut evidence = with_quota(slow(), 15);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.99); 4];
        });
        codes(&judge(&evidence)).len()
    };
    let by_steal = || codes(&judge(&with_cores(slow(), stolen(0.4, 0.55)))).len();
    for language in Language::ALL {
        assert_eq!(within(language, by_quota), 1, "{language:?}");
        assert_eq!(within(language, by_steal), 1, "{language:?}");
    }
}

#[test]
fn a_daemon_that_waits_loses_what_its_socket_cannot_hold() {
    let mut evidence = with_quota(slow(), 15);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far)
            .socket_drops
            .insert("77".to_owned(), 500);
    });
    assert_eq!(codes(&judge(&evidence)), [CODE]);
}

#[test]
fn heat_counts_where_a_core_is_busy() {
    let hot = |busy: f64| {
        let mut evidence = with_cores(slow(), core(busy));
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).throttling = Some(Throttling {
                core_events: 3,
                package_events: 1,
            });
        });
        evidence
    };
    only_finding(&hot(0.79), "unexplained");
    assert!(only_finding(&hot(0.81), CODE).because.contains("20 times"));
}

#[test]
fn a_governor_is_worth_a_try_where_the_cores_are_full() {
    let governed = |busy: f64, governor: &str| {
        let mut evidence = with_cores(slow(), core(busy));
        let facts = facts_of(&mut evidence, End::Far);
        facts.cpu.governor = Known::Value(governor.to_owned());
        facts.cpu.frequency_driver = Known::Value("acpi-cpufreq".to_owned());
        judge(&evidence).findings
    };
    assert!(
        governed(0.5, "powersave")
            .iter()
            .all(|one| one.code != CODE)
    );
    assert!(
        governed(0.97, "schedutil")
            .iter()
            .all(|one| one.code != CODE)
    );
    let findings = governed(0.97, "powersave");
    let own = findings.iter().find(|one| one.code == CODE).unwrap();
    assert_eq!(own.severity, Severity::Info);
    assert_eq!(own.remedies[0].changes[0].value, "performance");
    assert!(own.remedies[0].undo.contains("echo powersave"));
}

#[test]
fn what_powersave_means_is_up_to_the_driver() {
    let slow_with = |driver: Known<String>| {
        let mut evidence = with_cores(slow(), core(0.97));
        let facts = facts_of(&mut evidence, End::Far);
        facts.cpu.governor = Known::Value("powersave".to_owned());
        facts.cpu.frequency_driver = driver;
        let findings = judge(&evidence).findings;
        findings.iter().any(|one| one.code == CODE)
    };
    for driver in [
        "intel_pstate",
        "amd-pstate-epp",
        "intel_pstate,acpi-cpufreq",
    ] {
        assert!(!slow_with(Known::Value(driver.to_owned())), "{driver}");
    }
    assert!(!slow_with(Known::because("no such file")));
    assert!(slow_with(Known::Value("intel_cpufreq".to_owned())));
}

#[test]
fn a_cap_of_the_frequency_is_named() {
    let mut evidence = with_cores(slow(), core(0.97));
    facts_of(&mut evidence, End::Far).hardware.frequencies = Known::Value(Frequencies {
        current: vec![1_200_000_000; 4],
        maximum: Some(3_600_000_000),
        allowed: Some(1_200_000_000),
    });
    let diagnosis = judge(&evidence);
    let own = diagnosis.findings.iter().find(|one| one.code == CODE);
    assert!(own.is_some_and(|own| own.because.contains("1.2 GHz of the 3.6 GHz")));
}
