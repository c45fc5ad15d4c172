//! What a card's driver counts under names of its own, by `ethtool -S`.
//!
//! The kernel tells these values only by an ioctl, and ethtool has no JSON form for them: this is the one place where
//! a program's plain output is read. It is read strictly: a line that is not understood refuses the whole.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use crate::child;

const TIME_LIMIT: Duration = Duration::from_secs(1);
/// A driver with 1,000 queues of ten statistics takes about 400 kB.
const SIZE_LIMIT: usize = 4 << 20;
/// Most statistics that are kept of one card.
const MOST: usize = 128;

/// What a driver's statistic tells of lost packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverLoss {
    /// Packets lost on receive for want of a free buffer.
    NoBuffer,
    /// How often the receive ring was found empty of buffers: the packet may still have had room in the card's own memory.
    RanEmpty,
    /// Another loss: on the way out, in a part of the card, or by a provider's limit.
    Other,
}

/// Parts of the names by which drivers count losses, and what they tell on receive; the first that fits counts.
/// `rx_missed_errors` (Intel), `rx_no_dma_resources` (ixgbe), `rx_out_of_buffer` and `rx_discards_phy` (mlx5), `rx_overruns` and
/// `empty_rx_ring` (ena), `rx_drops_no_frags` (be2net), `rx_discards` (bnx2x, bnxt), `port_rx_nodesc_drops` (sfc).
const PARTS: [(&str, DriverLoss); 26] = [
    ("no_buffer_count", DriverLoss::RanEmpty),
    ("empty_rx_ring", DriverLoss::RanEmpty),
    ("missed", DriverLoss::NoBuffer),
    ("no_dma", DriverLoss::NoBuffer),
    ("out_of_buf", DriverLoss::NoBuffer),
    ("overrun", DriverLoss::NoBuffer),
    ("no_frags", DriverLoss::NoBuffer),
    ("no_erx", DriverLoss::NoBuffer),
    ("fifo_overflow", DriverLoss::NoBuffer),
    ("discards", DriverLoss::NoBuffer),
    ("nodesc", DriverLoss::NoBuffer),
    ("no_desc", DriverLoss::NoBuffer),
    ("fifo_err", DriverLoss::NoBuffer),
    ("over_errors", DriverLoss::NoBuffer),
    ("rx_no_bufs", DriverLoss::NoBuffer),
    ("_allowance_exceeded", DriverLoss::Other),
    ("discard", DriverLoss::Other),
    ("drop", DriverLoss::Other),
    ("fifo", DriverLoss::Other),
    ("no_buf", DriverLoss::Other),
    ("nobuf", DriverLoss::Other),
    ("no_memory", DriverLoss::Other),
    ("no_space", DriverLoss::Other),
    ("oob", DriverLoss::Other),
    ("overflow", DriverLoss::Other),
    ("ring full", DriverLoss::Other),
];
/// Parts of names that tell of packets nobody wanted, or of programs' own verdicts.
const NOT_TELLING: [&str; 4] = ["xdp", "steer_missed", "filter", "mcast_mismatch"];
/// What the driver was told to filter out counts among NFP's `dev_rx_discards`.
const NOT_FOR_WANT_OF_A_BUFFER: [&str; 1] = ["dev_rx_discards"];

/// What a statistic of a driver (`ethtool -S`) tells of lost packets, by its name; `None` where it tells of something else, and
/// is not among [`Counters::drivers`](crate::Counters::drivers).
pub fn driver_loss(name: &str) -> Option<DriverLoss> {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&NOT_TELLING) {
        return None;
    }
    let (_, loss) = PARTS.iter().find(|(part, _)| name.contains(part))?;
    let received = name.contains("rx") && !name.contains("tx") && !has(&NOT_FOR_WANT_OF_A_BUFFER);
    match loss {
        DriverLoss::NoBuffer if !received => Some(DriverLoss::Other),
        loss => Some(*loss),
    }
}

/// The statistics of one driver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DriverStatistics {
    /// How many it has.
    pub(crate) all: usize,
    /// Those of them that tell of losses and are not zero, by name.
    pub(crate) losses: BTreeMap<String, u64>,
}

/// Reads several links at once.
pub(crate) fn of_links(names: Vec<String>) -> BTreeMap<String, Result<DriverStatistics, String>> {
    thread::scope(|threads| {
        let running: Vec<_> = names
            .into_iter()
            .map(|name| {
                let link = name.clone();
                (name, threads.spawn(move || read(&link)))
            })
            .collect();
        running
            .into_iter()
            .map(|(name, thread)| {
                let failed = |_| Err("reading it failed".to_owned());
                (name, thread.join().unwrap_or_else(failed))
            })
            .collect()
    })
}

fn read(link: &str) -> Result<DriverStatistics, String> {
    let output = child::output("ethtool", &["-S", link], TIME_LIMIT, SIZE_LIMIT)
        .map_err(|error| error.to_string())?;
    parse(&String::from_utf8_lossy(&output))
}

/// A headline, then one indented `name: value` a line; names may hold `: ` and spaces.
pub(crate) fn parse(text: &str) -> Result<DriverStatistics, String> {
    let mut lines = text.lines();
    if lines.next() != Some("NIC statistics:") {
        return Err("ethtool -S does not begin with \"NIC statistics:\"".to_owned());
    }
    let mut statistics = DriverStatistics::default();
    for line in lines {
        let (name, value) = line
            .strip_prefix(' ')
            .and_then(|line| line.rsplit_once(": "))
            .and_then(|(name, value)| Some((name.trim(), value.trim().parse::<u64>().ok()?)))
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| {
                let shown: String = line.chars().take(24).collect();
                format!("ethtool -S has a line that is no statistic: {shown:?}")
            })?;
        statistics.all += 1;
        if value > 0 && driver_loss(name).is_some() && statistics.losses.len() < MOST {
            statistics.losses.insert(name.to_owned(), value);
        }
    }
    Ok(statistics)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn losses(text: &str) -> Vec<(String, u64)> {
        parse(text).unwrap().losses.into_iter().collect()
    }

    fn rows<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, u64)> {
        rows.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// An EC2 instance over its allowance, from `SlideRuleEarth/sliderule` issue 518.
    #[test]
    fn a_providers_limits_are_kept() {
        let text = "NIC statistics:\n     total_resets: 0\n     tx_timeout: 0\n     suspected_poll_starvation: 0\n     \
            interface_up: 1\n     bw_in_allowance_exceeded: 3241329\n     bw_out_allowance_exceeded: 530\n     \
            pps_allowance_exceeded: 784\n     conntrack_allowance_exceeded: 0\n     linklocal_allowance_exceeded: 0\n     \
            conntrack_allowance_available: 615471\n     ena_srd_mode: 0\n     ena_admin_q_submitted_cmd: 55\n     \
            ena_admin_q_completed_cmd: 55\n";
        assert_eq!(parse(text).unwrap().all, 13);
        assert_eq!(
            losses(text),
            rows([
                ("bw_in_allowance_exceeded", 3_241_329),
                ("bw_out_allowance_exceeded", 530),
                ("pps_allowance_exceeded", 784),
            ])
        );
    }

    /// An e1000e whose ring was too short, from `netdata/netdata` issue 988.
    #[test]
    fn a_ring_that_was_full_is_kept() {
        let text = "NIC statistics:\n     rx_packets: 3811442771\n     tx_packets: 3587842300\n     \
            rx_bytes: 3492834274089\n     rx_errors: 0\n     tx_dropped: 0\n     rx_over_errors: 0\n     \
            rx_crc_errors: 0\n     rx_no_buffer_count: 527\n     rx_missed_errors: 4954\n     tx_fifo_errors: 0\n";
        assert_eq!(
            losses(text),
            rows([("rx_missed_errors", 4954), ("rx_no_buffer_count", 527)])
        );
    }

    /// Queues in front of the name: be2net (`strizhechenko/netutils-linux` issue 208) and bnx2x
    /// (`isc-projects/ethq` issue 6).
    #[test]
    fn names_of_queues_are_part_of_the_name() {
        let text = "NIC statistics:\n     rx_address_filtered: 40618447\n     rxq0: rx_compl: 2322001119\n     \
            rxq0: rx_drops_no_frags: 3885606854\n     [0]: rx_discards: 3\n";
        assert_eq!(
            losses(text),
            rows([
                ("[0]: rx_discards", 3),
                ("rxq0: rx_drops_no_frags", 3_885_606_854),
            ])
        );
    }

    #[test]
    fn packets_nobody_wanted_are_no_losses() {
        let text = "NIC statistics:\n     rx0_xdp_drops: 9\n     rx_steer_missed_packets: 9\n     rx_kicks: 9\n";
        assert_eq!(losses(text), []);
    }

    #[test]
    fn what_a_driver_calls_a_loss_is_one() {
        for (name, loss) in [
            ("rx_missed_errors", Some(DriverLoss::NoBuffer)),
            ("rx_no_dma_resources", Some(DriverLoss::NoBuffer)),
            ("rx_out_of_buffer", Some(DriverLoss::NoBuffer)),
            ("rx_discards_phy", Some(DriverLoss::NoBuffer)),
            ("queue_3_rx_overruns", Some(DriverLoss::NoBuffer)),
            ("rxq0: rx_drops_no_frags", Some(DriverLoss::NoBuffer)),
            ("[0]: rx_discards", Some(DriverLoss::NoBuffer)),
            ("port_rx_nodesc_drops", Some(DriverLoss::NoBuffer)),
            ("rx_fifo_errors", Some(DriverLoss::NoBuffer)),
            ("rx_no_buffer_count", Some(DriverLoss::RanEmpty)),
            ("queue_0_rx_empty_rx_ring", Some(DriverLoss::RanEmpty)),
            ("queue_0_tx_missed_tx", Some(DriverLoss::Other)),
            ("tx_fifo_errors", Some(DriverLoss::Other)),
            ("fdir_overflow", Some(DriverLoss::Other)),
            ("dev_rx_discards", Some(DriverLoss::Other)),
            ("rx_dropped", Some(DriverLoss::Other)),
            ("bw_in_allowance_exceeded", Some(DriverLoss::Other)),
            ("rx_packets", None),
            ("rx0_xdp_drops", None),
            ("rx_steer_missed_packets", None),
        ] {
            assert_eq!(driver_loss(name), loss, "{name}");
        }
    }

    /// No part is hidden by one before it, and whatever is a loss is read.
    #[test]
    fn every_part_is_read_as_what_it_tells() {
        for (part, loss) in PARTS {
            let name = format!("RX_{part}_rx");
            assert_eq!(driver_loss(&name), Some(loss), "{part}");
            let text = format!("NIC statistics:\n     {name}: 7\n");
            assert_eq!(losses(&text), rows([(name.as_str(), 7)]), "{part}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "no stats available\n",
            "Standard stats for eth0:\neth-mac-FramesReceivedOK: 1\n",
            "NIC statistics:\nrx_missed: 5\n",
            "NIC statistics:\n     rx_missed: -5\n",
            "NIC statistics:\n     rx_missed: 0x10\n",
            "NIC statistics:\n     rx_missed\n",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_card_of_this_machine_is_read() {
        let cards: Vec<String> = std::fs::read_dir("/sys/class/net")
            .into_iter()
            .flatten()
            .flatten()
            .filter(|link| link.path().join("device").exists())
            .filter_map(|link| link.file_name().into_string().ok())
            .collect();
        let read = of_links(cards);
        if let Some((name, Err(reason))) = read.iter().next() {
            crate::skipped::skipped(
                "a_card_of_this_machine_is_read",
                &format!("{name}: {reason}"),
            );
        }
        for statistics in read.values().flatten() {
            assert!(statistics.all >= statistics.losses.len());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_read(text in "(NIC statistics:\n)?( {1,5}[a-z_:]{1,9}: [0-9]{1,22}\n){0,5}.{0,20}") {
            if let Ok(statistics) = parse(&text) {
                prop_assert!(statistics.losses.len() <= statistics.all);
            }
        }
    }
}
