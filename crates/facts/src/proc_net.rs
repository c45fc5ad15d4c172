//! Protocol counters of the calling thread's network namespace, from `/proc/thread-self/net`
//! (`/proc/net` is the main thread's).

use std::collections::BTreeMap;

use crate::{conntrack, files, sysctls};

/// Rows of `snmp` that are settings or gauges, not counters.
const NOT_COUNTERS: [&str; 7] = [
    "Ip.Forwarding",
    "Ip.DefaultTTL",
    "Tcp.RtoAlgorithm",
    "Tcp.RtoMin",
    "Tcp.RtoMax",
    "Tcp.MaxConn",
    "Tcp.CurrEstab",
];

/// Prefixes of `snmp6` to their group.
const GROUPS_OF_SNMP6: [&str; 4] = ["UdpLite6", "Icmp6", "Udp6", "Ip6"];

/// Counters of `snmp`, `netstat` and `snmp6`, as `Ip.FragCreates`, `TcpExt.TCPTimeouts`, `Ip6.FragFails`;
/// conntrack's, when it is in use, as `Conntrack.insert_failed`.
pub(crate) fn protocols() -> BTreeMap<String, u64> {
    let read =
        |name: &str| files::text(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let mut counters = BTreeMap::new();
    add_pairs_of_lines(&read("snmp"), &mut counters);
    add_pairs_of_lines(&read("netstat"), &mut counters);
    add_snmp6(&read("snmp6"), &mut counters);
    match files::text("/proc/thread-self/net/stat/nf_conntrack") {
        Ok(text) => add_conntrack(&text, &mut counters),
        // The file is first because it never loads a module.
        Err(_) if sysctls::conntrack_table().is_some() => {
            // Without the right to ask they stay away, as any section that cannot be read.
            let _ = conntrack::add_statistics(&mut counters);
        }
        Err(_) => {}
    }
    counters
}

/// A line of names and a line of values, both after `Ip:`.
pub(crate) fn add_pairs_of_lines(text: &str, counters: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((same, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if group != same {
            continue;
        }
        let rows = names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace());
        for (name, value) in rows {
            let name = format!("{group}.{name}");
            if let Ok(value) = value.parse()
                && !NOT_COUNTERS.contains(&name.as_str())
            {
                counters.insert(name, value);
            }
        }
    }
}

/// A name and a value per line: `Ip6FragFails 0`.
pub(crate) fn add_snmp6(text: &str, counters: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(name), Some(Ok(value))) = (fields.next(), fields.next().map(str::parse)) else {
            continue;
        };
        let group = GROUPS_OF_SNMP6
            .iter()
            .find_map(|group| Some((group, name.strip_prefix(group)?)));
        if let Some((group, name)) = group {
            counters.insert(format!("{group}.{name}"), value);
        }
    }
}

/// A line of names, then one line of hexadecimal values per core; the first column is a gauge.
pub(crate) fn add_conntrack(text: &str, counters: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    let Some(names) = lines.next() else {
        return;
    };
    for line in lines {
        let rows = names
            .split_ascii_whitespace()
            .zip(line.split_ascii_whitespace())
            .skip(1);
        for (name, value) in rows {
            if let Ok(value) = u64::from_str_radix(value, 16) {
                let sum: &mut u64 = counters.entry(format!("Conntrack.{name}")).or_default();
                *sum = sum.saturating_add(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_from_the_line_above() {
        let mut counters = BTreeMap::new();
        add_pairs_of_lines(
            "Ip: Forwarding InReceives FragFails\nIp: 1 20 3\nTcp: MaxConn ActiveOpens\nTcp: -1 7\n",
            &mut counters,
        );
        add_snmp6(
            "Ip6FragFails   \t4\nUdp6RcvbufErrors 5\nOther 6\n",
            &mut counters,
        );
        add_conntrack(
            "entries  found drop\n0000000f 00000001 00000002\n0000000f 00000000 00000010\n",
            &mut counters,
        );
        let expected: BTreeMap<String, u64> = [
            ("Ip.InReceives", 20),
            ("Ip.FragFails", 3),
            ("Tcp.ActiveOpens", 7),
            ("Ip6.FragFails", 4),
            ("Udp6.RcvbufErrors", 5),
            ("Conntrack.found", 1),
            ("Conntrack.drop", 18),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        assert_eq!(counters, expected);
    }

    #[test]
    fn this_machine_counts() {
        let counters = protocols();
        for name in ["Ip.FragCreates", "Udp.RcvbufErrors", "TcpExt.TCPTimeouts"] {
            assert!(counters.contains_key(name), "{name} is missing");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[A-Za-z0-9: \n-]{0,200}") {
            let mut counters = BTreeMap::new();
            add_pairs_of_lines(&text, &mut counters);
            add_snmp6(&text, &mut counters);
            add_conntrack(&text, &mut counters);
        }
    }
}
