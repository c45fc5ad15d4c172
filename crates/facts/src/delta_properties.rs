//! What holds for the delta of any two readings.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{
    CoreTime, Counters, CountersDelta, DeviceCounters, LinkCounters, PeerCounters, ProcessTime,
    QdiscCounters, Softnet, Throttling,
};

fn names<T: std::fmt::Debug>(
    row: impl Strategy<Value = T>,
) -> impl Strategy<Value = BTreeMap<String, T>> {
    proptest::collection::btree_map("[a-c]", row, 0..4)
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from), 0..100_u64]
}

prop_compose! {
    fn any_link()(counts in proptest::array::uniform14(any_count())) -> LinkCounters {
        let [rx_bytes, tx_bytes, rx_packets, tx_packets, rx_dropped, tx_dropped, rx_errors, tx_errors,
            rx_frame_errors, rx_missed_errors, rx_fifo_errors, rx_over_errors, rx_crc_errors, rx_nohandler] = counts;
        LinkCounters { rx_bytes, tx_bytes, rx_packets, tx_packets, rx_dropped, tx_dropped, rx_errors, tx_errors,
            rx_frame_errors, rx_missed_errors, rx_fifo_errors, rx_over_errors, rx_crc_errors, rx_nohandler }
    }
}

prop_compose! {
    fn any_core()(times in proptest::array::uniform6(proptest::num::f64::ANY)) -> CoreTime {
        let [user, system, irq, softirq, steal, idle] = times;
        CoreTime { user, system, irq, softirq, steal, idle }
    }
}

prop_compose! {
    fn any_counters()(
        at in proptest::num::f64::ANY,
        cores in proptest::collection::vec(any_core(), 0..3),
        protocols in names(any_count()),
        softnet in proptest::collection::vec((any_count(), any_count(), any_count()), 0..3),
        links in names(any_link()),
        peers in names((any_count(), any_count())),
        socket_drops in names(any_count()),
        qdiscs in names((any_count(), any_count(), any_count())),
        processes in names(proptest::num::f64::ANY),
        devices in names(names(any_count())),
        drivers in names(names(any_count())),
        interrupts in names(proptest::collection::vec(any_count(), 0..3)),
        softirqs in names(proptest::collection::vec(any_count(), 0..3)),
        throttling in proptest::option::of((any_count(), any_count())),
    ) -> Counters {
        Counters {
            at, cores, protocols, links, socket_drops, drivers, interrupts, softirqs,
            throttling: throttling.map(|(core_events, package_events)| Throttling { core_events, package_events }),
            softnet: softnet.into_iter()
                .map(|(processed, dropped, time_squeeze)| Softnet { processed, dropped, time_squeeze }).collect(),
            peers: peers.into_iter()
                .map(|(name, (rx_bytes, tx_bytes))| (name, PeerCounters { rx_bytes, tx_bytes })).collect(),
            qdiscs: qdiscs.into_iter()
                .map(|(name, (drops, overlimits, backlog_bytes))|
                    (name, QdiscCounters { drops, overlimits, backlog_bytes })).collect(),
            processes: processes.into_iter()
                .map(|(pid, cpu)| (pid, ProcessTime { program: "p".to_owned(), cpu })).collect(),
            devices: devices.into_iter()
                .map(|(name, drops)| (name, DeviceCounters { drops, ..DeviceCounters::default() })).collect(),
            ..Counters::default()
        }
    }
}

proptest! {
    #[test]
    fn time_never_runs_backwards(later in any_counters(), earlier in any_counters()) {
        let delta = later.delta(&earlier);
        prop_assert!(delta.seconds >= 0.0);
        for core in &delta.cores {
            for time in [core.user, core.system, core.irq, core.softirq, core.steal, core.idle] {
                prop_assert!(time >= 0.0);
            }
        }
        prop_assert!(delta.processes.values().all(|time| time.cpu > 0.0));
        for name in &delta.unreliable {
            if let Some(link) = name.strip_prefix("links.") {
                prop_assert!(!delta.links.contains_key(link));
            }
        }
    }

    #[test]
    fn nothing_moves_in_no_time(
        mut counters in any_counters(),
        cores in proptest::collection::vec(proptest::array::uniform6(0.0..1e9), 0..3),
    ) {
        counters.at = 5.0;
        counters.cores = cores.into_iter()
            .map(|[user, system, irq, softirq, steal, idle]| CoreTime { user, system, irq, softirq, steal, idle })
            .collect();
        let delta = counters.delta(&counters);
        let nothing = CountersDelta {
            cores: vec![CoreTime::default(); counters.cores.len()],
            softnet: vec![Softnet::default(); counters.softnet.len()],
            throttling: counters.throttling.map(|_| Throttling::default()),
            ..CountersDelta::default()
        };
        prop_assert_eq!(delta, nothing);
    }
}
