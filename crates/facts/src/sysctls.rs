//! The sysctls the causes speak of.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use crate::{ConntrackTable, Known, files};

/// Names as in `sysctl(8)`.
const NAMES: [&str; 56] = [
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.netdev_tstamp_prequeue",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.route.min_pmtu",
    "net.ipv4.route.mtu_expires",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_min_snd_mss",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probe_floor",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.route.mtu_expires",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_be_liberal",
    "net.netfilter.nf_conntrack_tcp_ignore_invalid_rst",
    "net.netfilter.nf_conntrack_tcp_loose",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_udp_timeout",
    "net.netfilter.nf_conntrack_udp_timeout_stream",
    "net.netfilter.nf_flowtable_udp_timeout",
];

/// Name to text of the file; tabs between several numbers become spaces, as `sysctl -n` users know them.
pub(crate) fn all() -> BTreeMap<String, Known<String>> {
    NAMES
        .iter()
        .map(|name| ((*name).to_owned(), read(name)))
        .collect()
}

/// How full the connection tracking table is; `None` where the kernel has none.
pub(crate) fn conntrack_table() -> Option<ConntrackTable> {
    let number = |name: &str| -> Option<u64> {
        let path = PathBuf::from("/proc/sys/net/netfilter").join(name);
        files::line(path).ok()?.parse().ok()
    };
    Some(ConntrackTable {
        entries: number("nf_conntrack_count")?,
        room: number("nf_conntrack_max")?,
    })
}

fn read(name: &str) -> Known<String> {
    // `/proc/sys/net` shows the network namespace of the calling thread.
    let path = PathBuf::from("/proc/sys").join(name.replace('.', "/"));
    match files::text(&path) {
        Ok(text) => Known::Value(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Known::because(format!(
            "{name} is not shown here: {}",
            if is_host_wide(name) {
                "it belongs to the whole host and the kernel hides it in other network namespaces, or lacks it"
            } else {
                "this kernel lacks it, or its module is not loaded"
            }
        )),
        Err(error) => Known::because(format!("could not read {}: {error}", path.display())),
    }
}

/// Only the host's first network namespace has these (newer kernels show `rmem_*` and `wmem_*` to the others,
/// read-only).
fn is_host_wide(name: &str) -> bool {
    let own = ["net.core.somaxconn"];
    let memory = ["net.ipv4.tcp_mem", "net.ipv4.udp_mem"];
    memory.contains(&name) || (name.starts_with("net.core.") && !own.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_numbers_are_one_line() {
        let all = all();
        let Known::Value(text) = &all["net.ipv4.tcp_rmem"] else {
            panic!("{all:?}");
        };
        assert_eq!(text.split(' ').count(), 3);
    }

    #[test]
    fn a_missing_one_says_why() {
        assert!(
            matches!(read("net.core.no_such_thing"), Known::Unknown(reason) if reason.contains("no_such_thing"))
        );
    }

    #[test]
    fn a_host_wide_one_is_told_from_a_missing_one() {
        assert!(is_host_wide("net.core.netdev_budget") && is_host_wide("net.ipv4.udp_mem"));
        assert!(!is_host_wide("net.core.somaxconn") && !is_host_wide("net.ipv4.tcp_rmem"));
    }

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(NAMES.is_sorted_by(|a, b| a < b));
    }
}
