use super::*;

fn map<T: Clone>(rows: &[(&str, T)]) -> BTreeMap<String, T> {
    rows.iter()
        .map(|(name, row)| ((*name).to_owned(), row.clone()))
        .collect()
}

#[test]
fn only_what_moved_is_shown() {
    let earlier = Counters {
        at: 10.0,
        protocols: map(&[("Ip.FragFails", 5), ("Ip.InReceives", 7)]),
        peers: map(&[(
            "key",
            PeerCounters {
                rx_bytes: 1,
                tx_bytes: 1,
            },
        )]),
        ..Counters::default()
    };
    let mut later = earlier.clone();
    later.at = 12.5;
    later.protocols.insert("Ip.FragFails".to_owned(), 8);
    later.protocols.insert("IcmpMsg.InType3".to_owned(), 2);
    let delta = later.delta(&earlier);
    assert!((delta.seconds - 2.5).abs() < 1e-9);
    assert_eq!(
        delta.protocols,
        map(&[("Ip.FragFails", 3), ("IcmpMsg.InType3", 2)])
    );
    assert!(delta.peers.is_empty() && delta.unreliable.is_empty());
}

#[test]
fn drops_of_a_socket_wrap_at_32_bits_and_a_reset_is_no_wrap() {
    let with = |drops| Counters {
        socket_drops: map(&[("7", drops)]),
        ..Counters::default()
    };
    assert_eq!(
        with(4).delta(&with(u64::from(u32::MAX))).socket_drops,
        map(&[("7", 5)])
    );
    let reset = with(0).delta(&with(1000));
    assert!(reset.socket_drops.is_empty());
    assert_eq!(reset.unreliable, ["socket_drops.7"]);
}

#[test]
fn what_vanished_or_went_back_is_named_and_absent() {
    let link = |rx_bytes| LinkCounters {
        rx_bytes,
        ..LinkCounters::default()
    };
    let earlier = Counters {
        links: map(&[("wg0", link(9)), ("gone", link(1))]),
        softnet: vec![Softnet::default()],
        cores: vec![CoreTime {
            user: 2.0,
            ..CoreTime::default()
        }],
        ..Counters::default()
    };
    let later = Counters {
        links: map(&[("wg0", link(3)), ("new", link(1))]),
        cores: vec![CoreTime {
            user: 1.0,
            idle: 1.0,
            ..CoreTime::default()
        }],
        ..Counters::default()
    };
    let delta = later.delta(&earlier);
    assert!(delta.links.is_empty() && delta.softnet.is_empty());
    let mut named = delta.unreliable;
    named.sort();
    assert_eq!(
        named,
        [
            "cores.0.user",
            "links.gone",
            "links.new",
            "links.wg0",
            "softnet"
        ]
    );
    assert_eq!(
        delta.cores,
        [CoreTime {
            idle: 1.0,
            ..CoreTime::default()
        }]
    );
}

#[test]
fn the_ten_busiest_processes_stay() {
    let times = |cpu: &dyn Fn(u32) -> f64| Counters {
        processes: (0..20)
            .map(|pid| {
                let program = format!("p{pid}");
                (
                    pid.to_string(),
                    ProcessTime {
                        program,
                        cpu: cpu(pid),
                    },
                )
            })
            .collect(),
        ..Counters::default()
    };
    let delta = times(&|pid| f64::from(pid) * 2.0).delta(&times(&f64::from));
    assert_eq!(delta.processes.len(), 10);
    assert!((delta.processes["19"].cpu - 19.0).abs() < 1e-9);
    assert!(!delta.processes.contains_key("9"));
}

#[test]
fn a_started_process_counts_in_full_and_an_ended_one_not() {
    let time = |cpu| ProcessTime {
        program: "p".to_owned(),
        cpu,
    };
    let earlier = Counters {
        processes: map(&[("1", time(5.0))]),
        ..Counters::default()
    };
    let later = Counters {
        processes: map(&[("2", time(3.0))]),
        ..Counters::default()
    };
    let delta = later.delta(&earlier);
    assert_eq!(delta.processes, map(&[("2", time(3.0))]));
    assert!(delta.unreliable.is_empty());
}

#[test]
fn the_backlog_of_a_queue_is_the_later_one() {
    let with = |drops, backlog_bytes| Counters {
        qdiscs: map(&[(
            "eth0",
            QdiscCounters {
                drops,
                overlimits: 0,
                backlog_bytes,
            },
        )]),
        ..Counters::default()
    };
    let delta = with(3, 500).delta(&with(1, 900));
    assert_eq!(
        delta.qdiscs["eth0"],
        QdiscCounters {
            drops: 2,
            overlimits: 0,
            backlog_bytes: 500
        }
    );
    assert!(with(1, 500).delta(&with(1, 900)).qdiscs.is_empty());
}

#[test]
fn a_driver_that_was_reset_tells_nothing() {
    let with = |losses: &[(&str, u64)]| Counters {
        drivers: map(&[("eth0", map(losses))]),
        ..Counters::default()
    };
    let delta = with(&[("rx_missed", 9), ("rx_fifo", 1)]).delta(&with(&[("rx_missed", 4)]));
    assert_eq!(
        delta.drivers,
        map(&[("eth0", map(&[("rx_missed", 5), ("rx_fifo", 1)]))])
    );
    for earlier in [&[("rx_missed", 10)][..], &[("rx_missed", 1), ("gone", 1)]] {
        let delta = with(&[("rx_missed", 9)]).delta(&with(earlier));
        assert!(delta.drivers.is_empty());
        assert_eq!(delta.unreliable, ["drivers.eth0"]);
    }
    let silent = with(&[("rx_missed", 9)]).delta(&Counters::default());
    assert_eq!(silent.unreliable, ["drivers.eth0"]);
}

#[test]
fn interrupts_count_per_core_and_a_core_that_came_makes_them_unreliable() {
    let with = |counts: &[u64]| Counters {
        interrupts: map(&[("38", counts.to_vec())]),
        softirqs: map(&[("NET_RX", counts.to_vec())]),
        ..Counters::default()
    };
    let delta = with(&[5, 4]).delta(&with(&[5, u64::from(u32::MAX)]));
    assert_eq!(delta.interrupts, map(&[("38", vec![0, 5])]));
    assert_eq!(delta.softirqs, map(&[("NET_RX", vec![0, 5])]));
    assert!(with(&[5]).delta(&with(&[5])).interrupts.is_empty());
    let appeared = with(&[5, 4]).delta(&Counters::default());
    assert_eq!(appeared.interrupts, map(&[("38", vec![5, 4])]));
    assert_eq!(appeared.unreliable, ["softirqs.NET_RX"]);
    let more = with(&[5, 4]).delta(&with(&[5]));
    assert_eq!(more.unreliable, ["interrupts.38", "softirqs.NET_RX"]);
}

#[test]
fn heat_is_counted_and_the_table_is_the_later_one() {
    let with = |core_events, entries| Counters {
        throttling: Some(Throttling {
            core_events,
            package_events: 0,
        }),
        conntrack: Some(crate::ConntrackTable { entries, room: 100 }),
        ..Counters::default()
    };
    let delta = with(5, 90).delta(&with(2, 95));
    assert_eq!(delta.throttling.map(|events| events.core_events), Some(3));
    assert_eq!(delta.conntrack.and_then(|table| table.fill()), Some(0.9));
    let back = with(2, 90).delta(&with(5, 95));
    assert_eq!(
        (back.throttling, back.unreliable),
        (None, vec!["throttling".to_owned()])
    );
}
