use wirespeed_facts::{Interrupt, Known, Link, LinkDetail};
use wirespeed_measure::{Direction, Via};

use super::CODE;
use crate::testing::{
    add_card, at, codes, core, each_sample, facts_of, healthy, kernels_core, not_checked, nothing,
    only_finding, set_ratio,
};
use crate::{End, Evidence, Severity, judge};

/// A client with a card of two queues.
fn with_card() -> Evidence {
    let mut evidence = healthy();
    let interrupt = |number| Interrupt {
        number,
        name: format!("eth0-TxRx-{number}"),
        allowed: vec![0, 1, 2, 3],
        ..Interrupt::default()
    };
    let facts = facts_of(&mut evidence, End::Here);
    add_card(
        facts,
        Link {
            detail: Known::Value(LinkDetail {
                interrupts: Known::Value(vec![interrupt(41), interrupt(42)]),
                ..LinkDetail::default()
            }),
            ..Link::default()
        },
    );
    facts.hardware.irqbalance = Known::Value(true);
    evidence
}

fn crowded(second: [u64; 4], busy: f64) -> Evidence {
    let mut evidence = with_card();
    set_ratio(&mut evidence, Direction::Download, 0.6);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        let delta = at(sample, End::Here);
        delta.cores = vec![core(0.3), kernels_core(busy), core(0.3), core(0.3)];
        delta.interrupts = [
            ("41".to_owned(), vec![0, 5000, 0, 0]),
            ("42".to_owned(), second.to_vec()),
        ]
        .into();
    });
    evidence
}

#[test]
fn two_queues_on_one_full_core_are_spread() {
    let diagnosis = judge(&crowded([0, 4000, 0, 0], 0.97));
    assert_eq!(codes(&diagnosis), [CODE]);
    assert_eq!(diagnosis.findings[1].code, "one-core-bound");
    let finding = &diagnosis.findings[0];
    assert!(finding.because.contains("2 queues, go to core 1"));
    let remedy = &finding.remedies[0];
    assert_eq!(remedy.changes.len(), 2);
    assert_eq!(
        remedy.commands[1],
        "echo 1 > /proc/irq/42/smp_affinity_list  # on client"
    );
    assert!(remedy.undo.contains("echo 0-3 > /proc/irq/41"));
    assert!(remedy.persistence.contains("--banirq=41 --banirq=42"));
}

#[test]
fn one_queue_or_two_cores_or_a_core_with_room_are_no_crowd() {
    only_finding(&crowded([0, 0, 0, 0], 0.97), "one-core-bound");
    only_finding(&crowded([4000, 0, 0, 0], 0.97), "one-core-bound");
    only_finding(&crowded([0, 4000, 0, 0], 0.8), "unexplained");
}

#[test]
fn interrupts_that_nobody_knows_of_are_said_where_a_core_is_busy() {
    let unreadable = |mut evidence: Evidence| {
        let link = facts_of(&mut evidence, End::Here).links.last_mut().unwrap();
        link.detail = Known::Value(LinkDetail {
            interrupts: Known::because("not readable"),
            ..LinkDetail::default()
        });
        evidence
    };
    let uncounted = |mut evidence: Evidence| {
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            at(sample, End::Here).interrupts.clear();
        });
        evidence
    };
    let busy = crowded([0, 4000, 0, 0], 0.97);
    assert!(!not_checked(&busy, CODE));
    assert!(not_checked(&unreadable(busy.clone()), CODE));
    assert!(not_checked(&uncounted(busy.clone()), CODE));
    let idle = crowded([0, 4000, 0, 0], 0.79);
    assert!(!not_checked(&unreadable(idle), CODE));
    let mut fast = busy;
    set_ratio(&mut fast, Direction::Download, 0.96);
    assert!(!not_checked(&unreadable(fast), CODE));
}

/// Gives the card interrupts with these names, each of which comes equally often on core 1.
fn with_interrupts(names: &[&str]) -> Evidence {
    let mut evidence = crowded([0, 4000, 0, 0], 0.97);
    let numbers = 41..41 + u32::try_from(names.len()).unwrap();
    let interrupts = numbers
        .clone()
        .zip(names)
        .map(|(number, name)| Interrupt {
            number,
            name: (*name).to_owned(),
            allowed: vec![0, 1, 2, 3],
            ..Interrupt::default()
        })
        .collect();
    let link = facts_of(&mut evidence, End::Here).links.last_mut().unwrap();
    link.detail = Known::Value(LinkDetail {
        interrupts: Known::Value(interrupts),
        ..LinkDetail::default()
    });
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        at(sample, End::Here).interrupts = numbers
            .clone()
            .map(|number| (number.to_string(), vec![0, 4000, 0, 0]))
            .collect();
    });
    evidence
}

#[test]
fn the_two_interrupts_of_one_queue_are_no_crowd() {
    for names in [
        ["virtio0-input.0", "virtio0-output.0"],
        ["eth0-rx-0", "eth0-tx-0"],
        ["virtio0-input.0", "virtio0-output.1"],
    ] {
        only_finding(&with_interrupts(&names), "one-core-bound");
    }
    for names in [
        ["mlx5_comp3@pci:0000:01:00.0", "mlx5_comp4@pci:0000:01:00.0"],
        ["eth0-0", "eth0-1"],
        ["virtio0-input.0", "virtio0-input.1"],
    ] {
        only_finding(&with_interrupts(&names), CODE);
    }
}

#[test]
fn the_interrupts_of_a_queue_move_together() {
    let names = [
        "virtio0-input.0",
        "virtio0-output.0",
        "virtio0-input.1",
        "virtio0-output.1",
    ];
    let finding = only_finding(&with_interrupts(&names), CODE);
    assert!(finding.because.contains("from 2 queues"));
    let cores: Vec<_> = finding.remedies[0]
        .changes
        .iter()
        .map(|change| change.value.as_str().unwrap_or_default())
        .collect();
    assert_eq!(cores, ["0", "0", "1", "1"]);
}

/// Samples in turn on two cores, with these rates.
fn wandering(rates: [f64; 2], cores: [usize; 5]) -> Evidence {
    let mut evidence = with_card();
    let mut turn = cores.iter();
    for sample in &mut evidence.comparisons[1].samples {
        if sample.load.via == Via::Tunnel {
            let on = *turn.next().unwrap();
            sample.rate = rates[on];
            let mut counts = vec![0; 4];
            counts[on] = 5000;
            let delta = at(sample, End::Here);
            delta.interrupts = [("41".to_owned(), counts)].into();
            delta.cores = vec![core(0.3); 4];
            delta.cores[on] = core(0.9);
        }
    }
    evidence
}

#[test]
fn a_rate_that_follows_the_interrupts_is_found() {
    nothing(&wandering([80e6, 96e6], [0, 1, 0, 1, 0]));
    nothing(&wandering([50e6, 96e6], [0, 1, 1, 1, 1]));
    let finding = only_finding(&wandering([50e6, 96e6], [0, 1, 0, 1, 0]), CODE);
    assert_eq!(finding.severity, Severity::Info);
    assert!(
        finding
            .because
            .contains("core 0 than in any with them on core 1")
    );
    assert_eq!(finding.remedies[0].changes[0].value, "1");
    let mut still = wandering([50e6, 96e6], [0, 1, 0, 1, 0]);
    facts_of(&mut still, End::Here).hardware.irqbalance = Known::Value(false);
    nothing(&still);
    assert!(!not_checked(&still, CODE));
    facts_of(&mut still, End::Here).hardware.irqbalance = Known::because("no processes seen");
    nothing(&still);
    assert!(not_checked(&still, CODE));
}

#[test]
fn three_samples_on_each_side_make_a_warning() {
    let mut evidence = wandering([50e6, 96e6], [0, 1, 0, 1, 0]);
    let again = evidence.comparisons[1]
        .samples
        .iter()
        .rfind(|sample| sample.rate > 90e6 && sample.load.via == Via::Tunnel)
        .unwrap()
        .clone();
    evidence.comparisons[1].samples.push(again);
    assert_eq!(only_finding(&evidence, CODE).severity, Severity::Warning);
}

#[test]
fn a_core_with_time_to_spare_or_a_road_that_changes_made_no_difference() {
    let mut evidence = wandering([50e6, 96e6], [0, 1, 0, 1, 0]);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        at(sample, End::Here).cores = vec![core(0.5); 4];
    });
    nothing(&evidence);
    // The bare loads' interrupts are on the same core as those of the tunnel's load after them.
    let with_bare = |slow: f64| {
        let mut evidence = wandering([50e6, 96e6], [0, 0, 0, 1, 1]);
        let mut turn = [0, 0, 0, 1, 1].into_iter();
        for sample in &mut evidence.comparisons[1].samples {
            if sample.load.via == Via::Bare {
                let on = turn.next().unwrap();
                sample.rate = [slow, 100e6][on];
                let mut counts = vec![0; 4];
                counts[on] = 5000;
                at(sample, End::Here).interrupts = [("41".to_owned(), counts)].into();
            }
        }
        evidence
    };
    nothing(&with_bare(55e6));
    only_finding(&with_bare(95e6), CODE);
}
