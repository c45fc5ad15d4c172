//! What the doctor says of the kernel's own tunnels, and of roads that only a full kernel can make: netem's loss and
//! reordering, fq, cake and `fq_codel`, several peers of one hub, NUMA nodes.
//!
//! Each case builds its trouble for real in an emulated Debian kernel (`make test-kernel`; `tests/kernel/doctor.sh`,
//! `hub.sh` and `numa.sh` run these). That machine is some fifty times slower than the one that emulates it, so nothing here is about
//! speed; what is true of a slow machine – it runs out of processor on a road that is faster – is expected where it is.

use std::fs;
use std::process::Command;

use machine::{Beside, Lab, Sysctl, doctor, ip, is_there, skip, skipped, tc, turn};
use star::{HUB, Star, peer};

#[path = "kernel_doctor/hub.rs"]
mod hub;
#[path = "kernel_doctor/machine.rs"]
mod machine;
#[path = "kernel_doctor/star.rs"]
mod star;

/// A road that even this machine fills, with a queue of so many milliseconds.
fn road(queue: u32) -> String {
    format!(
        r#"
name = "kernel-road"
description = "A slow road"
topology = "client-server"
finding = "healthy"

[road.both]
rate = "10mbit"
delay = "10ms"
queue = "{queue}ms"
"#
    )
}

#[test]
fn healthy() {
    if skipped("healthy") {
        return;
    }
    let _turn = turn();
    let report = Lab::up("kok", &road(20)).doctor();
    report.finds_nothing(
        "a good road",
        &["bufferbloat", "congestion-control", "cpu-saturated"],
    );
    let tunnel = &report.facts()["tunnels"][0];
    assert_eq!(tunnel["implementation"]["kind"], "kernel", "{tunnel:#}");
}

/// The machine, not its tunnel, is the limit where the road is faster than it: true, and to be said.
#[test]
fn a_road_faster_than_the_machine() {
    if skipped("a road faster than the machine") {
        return;
    }
    let _turn = turn();
    let report = Lab::up("kfast", "cpu-saturated").doctor();
    report.finds("a road without a limit", &["cpu-saturated"]);
}

#[test]
fn socket_buffers_are_silent() {
    if skipped("tiny socket buffers") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("ksmall", &road(20));
    {
        // For the tunnels' sockets only: netlink needs more.
        let _tiny =
            ["net.core.rmem_max", "net.core.rmem_default"].map(|name| Sysctl::set(name, "4608"));
        for (host, end) in [("client", 0), ("server", 1)] {
            for state in ["down", "up"] {
                ip(
                    &lab.namespace(host),
                    &format!("link set wgksmall{end} {state}"),
                );
            }
        }
    }
    let report = lab.doctor();
    report.finds_nothing("socket buffers of 4,608 bytes", &["socket-overflow"]);
    let refused = report.refused();
    assert!(
        refused.contains("net.core.rmem_max") && refused.contains("encap handler"),
        "{refused}"
    );
}

#[test]
fn bufferbloat() {
    if skipped("a queue of half a second") {
        return;
    }
    let _turn = turn();
    let report = Lab::up("kbloat", &road(500)).doctor();
    report.finds("a queue of half a second", &["bufferbloat"]);
}

/// The same road with a queue that keeps itself short.
#[test]
fn no_bufferbloat_behind_cake() {
    if skipped("cake on the road") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("kcake", &road(20));
    lab.bottleneck("cake bandwidth 10mbit");
    lab.doctor()
        .finds_nothing("cake on the road", &["bufferbloat"]);
    for cable in ["client", "server"] {
        lab.carried("road", cable, "cake");
    }
}

#[test]
fn no_bufferbloat_behind_fq_codel() {
    if skipped("fq_codel on the road") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("kfq", &road(20));
    lab.bottleneck("handle 7: tbf rate 10mbit burst 5k limit 625000");
    for cable in ["client", "server"] {
        tc(
            &lab.namespace("road"),
            &format!("qdisc add dev {cable} parent 7:1 fq_codel"),
        );
    }
    lab.doctor()
        .finds_nothing("fq_codel on the road", &["bufferbloat"]);
    for cable in ["client", "server"] {
        lab.carried("road", cable, "fq_codel");
    }
}

/// What paces a host's own connections is no matter for the datagrams that they are wrapped in.
#[test]
fn fq_on_the_card_is_silent() {
    if skipped("fq on the card") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("kpace", &road(20));
    for host in ["client", "server"] {
        tc(&lab.namespace(host), "qdisc replace dev road root fq");
    }
    lab.doctor().finds_nothing(
        "fq on the card",
        &["bufferbloat", "congestion-control", "path-reorder"],
    );
    for host in ["client", "server"] {
        lab.carried(host, "road", "fq");
    }
}

/// Where the kernel has cake, the shaper is cake; kept because it helps, and gone after undo.
#[test]
fn bufferbloat_is_mended_with_cake() {
    if skipped("tune on a queue of half a second") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("ktune", &road(500));
    let qdisc = || {
        tc(
            &lab.namespace("client"),
            &format!("qdisc show dev {}", lab.interface()),
        )
    };
    assert!(qdisc().contains("noqueue"), "{}", qdisc());
    let report = lab.tune(&[
        &lab.interface(),
        "--only",
        "bufferbloat",
        "--quick",
        "--yes",
    ]);
    assert!(qdisc().contains("cake"), "{}\n{report:#}", qdisc());
    lab.tune(&["undo"]);
    assert!(!qdisc().contains("cake"), "{}", qdisc());
}

#[test]
fn path_loss() {
    if skipped("a lossy road") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("kloss", &road(20));
    // So short that TCP fills the road all the same: datagrams are only counted where they are no load.
    lab.netem("delay 1ms loss 1%");
    // That loss is also what a loss-based congestion control takes for congestion.
    let also = ["congestion-control"];
    lab.doctor_in_full()
        .finds_among("netem loss 1 %", &["path-loss"], &also);
}

#[test]
fn path_reorder() {
    if skipped("a road that changes the order") {
        return;
    }
    let _turn = turn();
    let lab = Lab::up("korder", &road(20));
    // Every tenth packet or so overtakes those that are held for 10 ms.
    lab.netem("delay 10ms reorder 10%");
    lab.doctor_in_full()
        .finds("netem reorder 10 %", &["path-reorder"]);
}

/// Two nodes, and a card on the second: `tests/kernel/numa.sh` makes such a machine.
#[test]
fn numa() {
    let case = "two NUMA nodes";
    if skipped(case) {
        return;
    }
    let _turn = turn();
    let on_second = |card: &&&str| {
        fs::read_to_string(format!("/sys/class/net/{card}/device/../numa_node"))
            .is_ok_and(|node| node.trim() == "1")
    };
    let (Some(near), Some(far)) = (
        ["eth0", "eth1"].iter().find(on_second),
        ["eth0", "eth1"].iter().find(|card| !on_second(card)),
    ) else {
        return skip(case, "this emulated machine has no card on a second node");
    };
    let _star = Star::of_cards(near, far);

    // A road without a limit is faster than this machine, of which one connection uses a part.
    let true_too = ["cpu-saturated", "one-core-bound", "unexplained"];
    for (core, expected) in [(0, &["numa-remote"][..]), (3, &[][..])] {
        interrupts_to(core);
        let report = doctor(HUB.0, HUB.1, &peer(1), &[]);
        let hardware = &report.facts()["hardware"];
        let nodes = &hardware["numa_nodes"]["value"];
        assert_eq!(nodes.as_array().map(Vec::len), Some(2), "{nodes}");
        assert_eq!(hardware["irqbalance"]["value"], false);
        let card = report.link("road1");
        assert_eq!(card["numa_node"]["value"], 1, "{card:#}");
        let interrupts = card["interrupts"]["value"].as_array();
        assert!(interrupts.is_some_and(|own| !own.is_empty()), "{card:#}");
        let case = format!("a card on node 1, its interrupts on core {core}");
        report.finds_among(&case, expected, &true_too);
        report.could_find(&case, &["numa-remote"]);
    }
}

#[test]
fn numa_and_irqbalance() {
    let case = "irqbalance";
    if skipped(case) {
        return;
    }
    let _turn = turn();
    if !is_there("irqbalance") {
        return skip(
            case,
            "irqbalance is not installed on the machine that built this one",
        );
    }
    let _runs = Beside::start(Command::new("irqbalance").arg("--foreground"));
    let report = Lab::up("kirq", &road(20)).doctor();
    assert_eq!(report.facts()["hardware"]["irqbalance"]["value"], true);
    // Cables have no interrupts that it could move: it is seen, and nothing is laid to it.
    report.finds_nothing(case, &[]);
}

/// All interrupts of the cards go to one core.
fn interrupts_to(core: usize) {
    let table = fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    for line in table.lines().filter(|line| line.contains("virtio")) {
        let number = line.trim().split(':').next().unwrap_or_default();
        // Those of other devices may be bound.
        let _ = fs::write(
            format!("/proc/irq/{number}/smp_affinity_list"),
            core.to_string(),
        );
    }
}
