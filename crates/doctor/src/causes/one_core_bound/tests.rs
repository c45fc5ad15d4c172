use wirespeed_facts::{
    CoreTime, Implementation, Known, Link, LinkDetail, NumaNode, ProcessTime, ReceiveQueue,
    Spreading,
};
use wirespeed_measure::{Direction, Via};

use super::{CODE, count};
use crate::testing::{
    add_card, at, carry_by, core, daemon, each_sample, facts_of, healthy, kernels_core, nothing,
    only_finding, set_ratio, tunnel_of,
};
use crate::{End, Evidence, judge};

fn with_cores(cores: &[CoreTime], ratio: f64) -> Evidence {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Download, ratio);
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        at(sample, End::Here).cores = cores.to_vec();
    });
    evidence
}

#[test]
fn one_full_core_among_idle_ones_is_found() {
    let cores = |full: f64, rest: f64| [core(rest), kernels_core(full), core(rest), core(rest)];
    nothing(&with_cores(&cores(0.94, 0.3), 0.85));
    nothing(&with_cores(&cores(0.99, 0.71), 0.85));
    nothing(&with_cores(&cores(0.99, 0.3), 0.90));
    let finding = only_finding(&with_cores(&cores(0.96, 0.7), 0.85), CODE);
    assert_eq!(
        (finding.host.as_str(), finding.direction),
        ("client", Some(Direction::Download))
    );
    assert!(
        finding
            .evidence
            .iter()
            .filter(|line| line.r#where.contains("core"))
            .count()
            == 4
    );
}

#[test]
fn a_machine_with_one_core_is_saturated_instead() {
    only_finding(&with_cores(&[core(0.99)], 0.85), "cpu-saturated");
}

/// One process that has nothing to do with the tunnel fills a core; the rest of it is the tunnel's.
#[test]
fn a_core_that_somebody_else_fills_is_not_the_tunnels() {
    let with = |kernel: bool, cores: &[CoreTime], of_daemon: Option<f64>, stranger: f64| {
        let mut evidence = with_cores(cores, 0.75);
        let userspace = daemon(7, None);
        carry_by(
            &mut evidence,
            if kernel {
                &Implementation::Kernel
            } else {
                &userspace
            },
        );
        each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
            let delta = at(sample, End::Here);
            let process = |program: &str, cores: f64| ProcessTime {
                program: program.to_owned(),
                cpu: cores * delta.seconds,
            };
            let strange = process("ffmpeg", stranger);
            let own = of_daemon.map(|cores| process("wireguard-go", cores));
            delta.processes.clear();
            delta.processes.insert("9".to_owned(), strange);
            delta.processes.extend(own.map(|own| ("7".to_owned(), own)));
        });
        let codes = judge(&evidence).findings.into_iter().map(|one| one.code);
        codes.collect::<Vec<String>>().contains(&CODE.to_owned())
    };
    let rest = core(0.1);
    let full = [rest, core(0.99), rest, rest];
    let kernels = [rest, kernels_core(0.99), rest, rest];
    assert!(!with(true, &full, None, 1.0));
    assert!(with(true, &kernels, None, 0.1));
    // Its own thread, or its thread and the load beside it.
    assert!(!with(false, &full, Some(0.3), 0.95));
    assert!(!with(false, &full, Some(0.6), 0.95));
    assert!(with(false, &full, Some(0.6), 0.2));
    assert!(with(false, &full, Some(0.9), 0.95));
    // Packets that one core receives for a daemon that has time.
    assert!(with(false, &kernels, Some(0.3), 0.1));
}

#[test]
fn a_confined_daemon_is_named_and_freed() {
    let mut evidence = with_cores(&[core(0.99), core(0.84)], 0.6);
    carry_by(&mut evidence, &daemon(100, Some("0")));
    let finding = only_finding(&evidence, CODE);
    assert!(finding.because.contains("may only use core 0"));
    assert!(finding.remedies[0].commands[0].starts_with("taskset -a -cp 0-3 100"));
    // Without its second threads a machine's cores may be the even ones.
    let node = NumaNode {
        node: 0,
        cores: vec![0, 2, 4, 6],
    };
    facts_of(&mut evidence, End::Here).hardware.numa_nodes = Known::Value(vec![node]);
    let remedy = &only_finding(&evidence, CODE).remedies[0];
    assert!(remedy.commands[0].starts_with("taskset -a -cp 0,2,4,6 100"));
    assert!(remedy.undo.starts_with("taskset -a -cp 0 100"));
}

/// The kernel carries both tunnels, and one core of four is full, here, in this direction.
fn in_the_kernel(direction: Direction) -> Evidence {
    let mut evidence = healthy();
    carry_by(&mut evidence, &Implementation::Kernel);
    set_ratio(&mut evidence, direction, 0.6);
    each_sample(&mut evidence, direction, Via::Tunnel, |sample| {
        at(sample, End::Here).cores = vec![core(0.3), kernels_core(0.99), core(0.3), core(0.3)];
    });
    evidence
}

#[test]
fn the_tunnel_that_receives_is_steered() {
    let wg0 = "echo f > /sys/class/net/wg0/queues/rx-0/rps_cpus  # on client";
    let wg1 = "echo f > /sys/class/net/wg1/queues/rx-0/rps_cpus  # on server";
    let commands = |evidence: &Evidence| -> Vec<String> {
        let commands = commands_of(evidence).into_iter();
        commands.map(|(commands, _)| commands).collect()
    };
    // What a sender receives through the tunnel are acknowledgements.
    assert_eq!(commands(&in_the_kernel(Direction::Upload)), [""; 0]);
    assert_eq!(commands(&in_the_kernel(Direction::Download)), [wg0]);
    // The cores of one kernel are both ends'.
    let one_kernel = |mut evidence: Evidence| {
        let boot_id = Known::Value("boot-of-client".to_owned());
        facts_of(&mut evidence, End::Far).host.boot_id = boot_id;
        evidence
    };
    let upload = one_kernel(in_the_kernel(Direction::Upload));
    assert_eq!(commands(&upload), [wg1]);
    let download = one_kernel(in_the_kernel(Direction::Download));
    assert_eq!(commands(&download), [wg0]);
}

#[test]
fn many_cores_are_named_in_words_of_a_mask() {
    let mut evidence = with_cores(&[kernels_core(0.99), core(0.3)], 0.6);
    carry_by(&mut evidence, &Implementation::Kernel);
    facts_of(&mut evidence, End::Here).cpu.online = 48;
    let finding = only_finding(&evidence, CODE);
    assert!(finding.remedies[0].commands[0].starts_with("echo ffff,ffffffff > "));
}

/// The kernel's tunnel here receives from the far end and from another peer, by eth0.
fn two_peers() -> Evidence {
    let mut evidence = with_cores(&[core(0.3), kernels_core(0.99), core(0.3), core(0.3)], 0.85);
    let tunnel = tunnel_of(&mut evidence, End::Here);
    tunnel.implementation = Implementation::Kernel;
    let facts = facts_of(&mut evidence, End::Here);
    add_card(
        facts,
        Link {
            detail: Known::Value(LinkDetail::default()),
            ..Link::default()
        },
    );
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        for key in ["far-key", "another-key"] {
            let peer = at(sample, End::Here).peers.entry(key.to_owned());
            peer.or_default().rx_bytes = 1_000_000;
        }
    });
    evidence
}

fn commands_of(evidence: &Evidence) -> Vec<(String, String)> {
    only_finding(evidence, CODE)
        .remedies
        .into_iter()
        .map(|remedy| (remedy.commands.join("; "), remedy.undo))
        .filter(|(commands, _)| !commands.is_empty())
        .collect()
}

#[test]
fn several_peers_are_spread_over_the_cards_queues_and_one_is_not() {
    let mut evidence = two_peers();
    let commands = commands_of(&evidence);
    assert_eq!(commands.len(), 2);
    assert!(commands[0].0.starts_with("echo f > ") && commands[0].1.starts_with("echo 0 > "));
    let hash = "ethtool -N eth0 rx-flow-hash udp4";
    assert_eq!(commands[1].0, format!("{hash} sdfn  # on client"));
    assert_eq!(commands[1].1, format!("{hash} sd  # on client"));
    each_sample(&mut evidence, Direction::Download, Via::Tunnel, |sample| {
        at(sample, End::Here).peers.remove("another-key");
    });
    assert_eq!(commands_of(&evidence).len(), 1);
}

#[test]
fn what_was_there_before_comes_back() {
    let mut evidence = two_peers();
    let facts = facts_of(&mut evidence, End::Here);
    let steered = ReceiveQueue {
        rps_cores: vec![0, 1],
        rps_flows: 0,
    };
    facts.links[0].detail = Known::Value(LinkDetail {
        receive_queues: Known::Value(vec![steered]),
        ..LinkDetail::default()
    });
    let hashed = |udp4: &str, queues: usize| {
        Known::Value(LinkDetail {
            spreading: Known::Value(Spreading {
                queues,
                udp4: Known::Value(udp4.to_owned()),
                ..Spreading::default()
            }),
            ..LinkDetail::default()
        })
    };
    let mut with = |udp4: &str, queues: usize| {
        facts_of(&mut evidence, End::Here).links[1].detail = hashed(udp4, queues);
        commands_of(&evidence)
    };
    let commands = with("s", 4);
    assert!(commands[0].1.starts_with("echo 3 > "));
    assert!(commands[1].1.contains("udp4 s  #"));
    assert_eq!(with("sdfn", 4).len(), 1);
    assert_eq!(with("sd", 1).len(), 1);
}

#[test]
fn counts_the_cores_of_a_list() {
    assert_eq!(count("0"), Some(1));
    assert_eq!(count("0-3,8"), Some(5));
    assert_eq!(count("3-1"), None);
    assert_eq!(count("x"), None);
}
