use wirespeed_facts::{
    CoreTime, DeviceCounters, DeviceFlow, DeviceOffload, DeviceStatistics, DeviceWorker,
    Implementation, KernelWireGuard, Known, WorkerCounters,
};
use wirespeed_measure::{Direction, Via};

use super::in_its_place;
use crate::testing::{
    at, core, each_sample, facts_of, healthy, kernels_core, nothing, only_finding, set_ratio,
    tunnel_of,
};
use crate::{End, Evidence, Finding, Remedy, judge};

/// The far end's cores while the tunnel is loaded from here.
fn busy(cores: &[CoreTime]) -> Evidence {
    let mut evidence = healthy();
    set_ratio(&mut evidence, Direction::Upload, 0.6);
    each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
        at(sample, End::Far).cores = cores.to_vec();
    });
    the_kernel_has(&mut evidence, Known::Value(KernelWireGuard::Missing));
    evidence
}

/// The kernel's own WireGuard at the far end.
fn the_kernel_has(evidence: &mut Evidence, wireguard: Known<KernelWireGuard>) {
    facts_of(evidence, End::Far).kernel_wireguard = wireguard;
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
fn wg_quick_is_not_asked_for_a_daemon_where_it_would_take_the_kernel() {
    let mut evidence = busy(&[core(0.99); 4]);
    the_kernel_has(&mut evidence, Known::Value(KernelWireGuard::Installed));
    assert!(in_its_place(&evidence, End::Far).is_none());
    the_kernel_has(&mut evidence, Known::because("no modules here"));
    let by_hand = in_its_place(&evidence, End::Far).unwrap();
    assert!(by_hand.commands.is_empty() && by_hand.undo.is_empty());
    assert!(by_hand.risk.contains("prefers the kernel's"));
}

/// The far end's one full core, and wirespeed-device there with a worker that fills it.
fn full_worker() -> Evidence {
    let mut evidence = busy(&[kernels_core(0.99), core(0.2), core(0.2), core(0.2)]);
    ours(&mut evidence, 0.97);
    evidence
}

fn ours_says(evidence: &mut Evidence) -> &mut DeviceStatistics {
    match &mut tunnel_of(evidence, End::Far).statistics {
        Some(Known::Value(statistics)) => statistics,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_worker_gets_company_as_long_as_there_are_cores() {
    let mut evidence = full_worker();
    let finding = only_finding(&evidence, "one-core-bound");
    assert_eq!(
        titled(&finding, "worker").unwrap().commands[1],
        "WIRESPEED_WORKERS=4 WIRESPEED_SPREAD=1 WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device wg-quick up wg1  # on server"
    );
    ours(&mut evidence, 0.5);
    let finding = only_finding(&evidence, "one-core-bound");
    assert!(titled(&finding, "worker").is_none());
}

/// A device of another container is in no table of processes that is seen from here.
#[test]
fn a_full_worker_is_the_tunnels_work_whatever_the_processes_say() {
    let mut evidence = busy(&[core(0.99), core(0.2), core(0.2), core(0.2)]);
    ours(&mut evidence, 0.97);
    only_finding(&evidence, "one-core-bound");
    ours(&mut evidence, 0.5);
    let findings = judge(&evidence).findings;
    assert!(findings.iter().all(|one| one.code != "one-core-bound"));
}

#[test]
fn a_device_gets_back_what_it_was_started_with() {
    let mut evidence = full_worker();
    let up = "WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device wg-quick up wg1  # on server";
    let undo = |evidence: &Evidence| {
        let finding = only_finding(evidence, "one-core-bound");
        titled(&finding, "worker").unwrap().undo.clone()
    };
    ours_says(&mut evidence).worker_count = Some(2);
    let back = format!("wg-quick down wg1  # on server\nWIRESPEED_WORKERS=2 {up}");
    assert_eq!(undo(&evidence), back);
    let says = ours_says(&mut evidence);
    says.spread = true;
    says.engine = "pipeline".to_owned();
    says.workers[0].core = Some(1);
    says.offloads[0].state = "disabled".to_owned();
    let others = "WIRESPEED_ENGINE=pipeline WIRESPEED_PIN=1 WIRESPEED_NO_OFFLOAD=udp-gro";
    let had = format!("\nWIRESPEED_WORKERS=2 WIRESPEED_SPREAD=1 {others} {up}");
    assert!(undo(&evidence).ends_with(&had), "{}", undo(&evidence));
    let finding = only_finding(&evidence, "one-core-bound");
    let wanted = format!("WIRESPEED_WORKERS=4 WIRESPEED_SPREAD=1 {others} {up}");
    assert_eq!(titled(&finding, "worker").unwrap().commands[1], wanted);
}

#[test]
fn where_the_kernel_could_carry_the_tunnel_the_devices_own_unit_gets_the_workers() {
    for kernel in [
        Known::Value(KernelWireGuard::Loaded),
        Known::because("no modules here"),
    ] {
        let mut evidence = full_worker();
        the_kernel_has(&mut evidence, kernel);
        let finding = only_finding(&evidence, "one-core-bound");
        let remedy = titled(&finding, "worker").unwrap();
        let folder = "/run/systemd/system/wirespeed-device@wg1.service.d";
        let again =
            "systemctl daemon-reload && systemctl try-restart wirespeed-device@wg1  # on server";
        assert_eq!(
            remedy.commands,
            [
                format!("mkdir -p {folder}  # on server"),
                format!(
                    r"printf '[Service]\nEnvironment=WIRESPEED_WORKERS=4 WIRESPEED_SPREAD=1\n' > {folder}/wirespeed-workers.conf  # on server"
                ),
                again.to_owned(),
            ]
        );
        assert_eq!(
            remedy.undo,
            format!("rm {folder}/wirespeed-workers.conf  # on server\n{again}")
        );
        assert!(remedy.persistence.contains("edit wirespeed-device@wg1`"));
    }
}
