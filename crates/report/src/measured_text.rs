//! Measurements in the terminal: the table of comparisons, probes, and what the machines are.

use wirespeed_doctor::End;
use wirespeed_facts::{DeviceStatistics, Implementation, Known, Peer};
use wirespeed_measure::{Comparison, Direction, Protocol, RttSummary, Sample, Via};

use wirespeed_words::say;

use crate::look::{Look, clean, table};
use crate::record::{MachineRecord, Measurements};
use crate::units;

/// Peers of one machine that are told.
const PEERS_TOLD: usize = 10;
/// Below this share of the road nobody would say that a tunnel carries something.
const NOTHING: f64 = 0.005;

/// `upload` or `download`.
pub(crate) fn direction_word(direction: Direction) -> String {
    match direction {
        Direction::Upload => say!("direction-upload"),
        Direction::Download => say!("direction-download"),
    }
}

fn protocol_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    }
}

/// What limits, in one clause: "the tunnel carries 97 % of the road's 93.1 Mbit/s". The comparison with the
/// lowest ratio speaks; `None` when nothing was measured.
pub(crate) fn carried(comparisons: &[Comparison]) -> Option<String> {
    let with_ratio = comparisons
        .iter()
        .filter_map(|comparison| Some((comparison, comparison.ratio?, comparison.bare?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((comparison, ratio, bare)) = with_ratio {
        if ratio < NOTHING {
            return Some(format!(
                "next to nothing of a bulk transfer gets through the tunnel ({}), while the road carries {}",
                direction_word(comparison.direction),
                units::rate(bare)
            ));
        }
        return Some(format!(
            "the tunnel carries {} of the road's {} ({}{})",
            units::percent(ratio),
            units::rate(bare),
            direction_word(comparison.direction),
            streams_clause(comparison.streams)
        ));
    }
    let slowest = comparisons
        .iter()
        .min_by(|a, b| a.tunnel.total_cmp(&b.tunnel))?;
    Some(format!(
        "the tunnel carries {} ({}{}); the road itself was not measured",
        units::rate(slowest.tunnel),
        direction_word(slowest.direction),
        streams_clause(slowest.streams)
    ))
}

fn streams_clause(streams: u32) -> String {
    if streams == 1 {
        String::new()
    } else {
        format!(", {streams} streams")
    }
}

/// One table row per comparison, short.
pub(crate) fn road(comparisons: &[Comparison], look: &Look) -> String {
    if comparisons.is_empty() {
        return String::new();
    }
    let wide = look.width >= 96;
    let mut header = vec!["", "streams", "road", "tunnel", "share"];
    if wide {
        header.extend(["95 % interval", "RTT under load"]);
    } else {
        header.push("RTT");
    }
    let rows: Vec<Vec<String>> = comparisons
        .iter()
        .map(|comparison| {
            let mut row = vec![
                format!(
                    "{} {}",
                    direction_word(comparison.direction),
                    protocol_word(comparison.protocol)
                ),
                comparison.streams.to_string(),
                comparison.bare.map_or_else(|| "?".to_owned(), units::rate),
                units::rate(comparison.tunnel),
                comparison
                    .ratio
                    .map_or_else(|| "?".to_owned(), units::percent),
            ];
            if wide {
                row.push(interval(comparison));
            }
            row.push(loaded(comparison, Via::Tunnel).map_or_else(|| "?".to_owned(), units::time));
            row
        })
        .collect();
    format!("\n{}", table(look, 2, &header, &rows, 1))
}

fn interval(comparison: &Comparison) -> String {
    match (comparison.ratio_low, comparison.ratio_high) {
        (Some(low), Some(high)) => format!(
            "{}–{}",
            units::percent(low).trim_end_matches(" %"),
            units::percent(high)
        ),
        _ => "?".to_owned(),
    }
}

/// Largest median RTT under load over the samples of one side.
fn loaded(comparison: &Comparison, via: Via) -> Option<f64> {
    comparison
        .of(via)
        .filter_map(|sample| sample.loaded_rtt.as_ref()?.median)
        .max_by(f64::total_cmp)
}

/// `upload TCP, 10 streams`.
pub(crate) fn title(comparison: &Comparison) -> String {
    format!(
        "{} {}, {} {}",
        direction_word(comparison.direction),
        protocol_word(comparison.protocol),
        comparison.streams,
        if comparison.streams == 1 {
            "stream"
        } else {
            "streams"
        }
    )
}

/// Pairs, remarks and counters of every comparison.
pub(crate) fn comparisons(comparisons: &[Comparison], look: &Look) -> String {
    let mut out = String::new();
    for comparison in comparisons {
        out.push('\n');
        out.push_str(&look.bold(&title(comparison)));
        out.push('\n');
        if !comparison.pairs.is_empty() {
            let rows: Vec<Vec<String>> = comparison
                .pairs
                .iter()
                .enumerate()
                .map(|(index, pair)| {
                    vec![
                        (index + 1).to_string(),
                        units::rate(pair.bare),
                        units::rate(pair.tunnel),
                        units::percent(pair.ratio),
                    ]
                })
                .collect();
            out.push_str(&table(
                look,
                2,
                &["pair", "road", "tunnel", "share"],
                &rows,
                0,
            ));
        }
        if let Some(reason) = &comparison.bare_unknown {
            out.push_str(&look.hanging(
                "  road      ",
                12,
                &format!("not measured: {}", clean(reason)),
            ));
        }
        for sample in &comparison.samples {
            out.push_str(&look.hanging("  ", 4, &sample_line(sample)));
        }
        for remark in &comparison.remarks {
            out.push_str(&look.hanging("  note      ", 12, &clean(remark)));
        }
    }
    out
}

fn sample_line(sample: &Sample) -> String {
    let mut parts = vec![
        match sample.load.via {
            Via::Bare => "road".to_owned(),
            Via::Tunnel => "tunnel".to_owned(),
        },
        if sample.stalled {
            "stalled".to_owned()
        } else {
            units::rate(sample.rate)
        },
        format!("ran {}", units::time(sample.ran)),
    ];
    if let Some(retransmits) = sample.retransmits {
        parts.push(format!("{} retransmits", units::count(retransmits as f64)));
    }
    if let Some(lost) = sample.lost {
        parts.push(format!("{} lost", units::percent(lost)));
    }
    if sample.dead_streams > 0 {
        parts.push(format!("{} streams died", sample.dead_streams));
    }
    if let Some(control) = &sample.congestion_control {
        parts.push(clean(control));
    }
    if let Some(rtt) = sample.loaded_rtt.as_ref().map(rtt_words) {
        parts.push(format!("RTT {rtt}"));
    }
    for (word, delta) in [("here", Some(&sample.here)), ("far", sample.far.as_ref())] {
        let Some(delta) = delta else { continue };
        if let Some(busiest) = delta
            .cores
            .iter()
            .map(wirespeed_facts::CoreTime::busy_share)
            .max_by(f64::total_cmp)
        {
            parts.push(format!("busiest core {word} {}", units::percent(busiest)));
        }
        let drops: u64 = delta.socket_drops.values().sum();
        if drops > 0 {
            parts.push(format!(
                "{} socket drops {word}",
                units::count(drops as f64)
            ));
        }
    }
    parts.join(", ")
}

fn rtt_words(rtt: &RttSummary) -> String {
    match (rtt.min, rtt.median, rtt.p95) {
        (Some(min), Some(median), Some(p95)) => {
            format!(
                "{} min, {} median, {} at 95 %",
                units::time(min),
                units::time(median),
                units::time(p95)
            )
        }
        _ => format!("no reply to {} requests", rtt.sent),
    }
}

/// The doctor's probes.
pub(crate) fn probes(measurements: &Measurements, look: &Look) -> String {
    let mut out = String::from("\n");
    out.push_str(&look.bold("Probes"));
    out.push('\n');
    for (lead, rtt) in [
        ("  idle RTT, road    ", &measurements.idle_rtt_bare),
        ("  idle RTT, tunnel  ", &measurements.idle_rtt_tunnel),
    ] {
        let text = match rtt {
            Known::Value(rtt) => rtt_words(rtt),
            Known::Unknown(reason) => format!("not known: {}", clean(reason)),
        };
        out.push_str(&look.hanging(lead, 20, &text));
    }
    for path in &measurements.path_mtu {
        let passed = path
            .largest_passed
            .map_or_else(|| "nothing".to_owned(), |size| format!("{size} bytes"));
        let failed = path
            .smallest_failed
            .map_or_else(String::new, |failed| format!(", {failed} did not"));
        let error = match path.reported {
            Some(mtu) => format!(", the road reported {mtu}"),
            None if path.silent_loss => ", and no error came back".to_owned(),
            None => String::new(),
        };
        let text = format!(
            "{}: {passed} passed{failed}{error}",
            direction_word(path.direction)
        );
        out.push_str(&look.hanging("  path MTU          ", 20, &text));
    }
    for sweep in &measurements.tunnel_sweep {
        let passed = sweep
            .largest_passed
            .map_or_else(|| "nothing".to_owned(), |size| format!("{size} bytes"));
        let failed = match sweep.smallest_failed {
            Some(failed) => format!("{failed} did not"),
            None => "everything up to the MTU".to_owned(),
        };
        let text = format!(
            "{}: {passed} passed, {failed}",
            direction_word(sweep.direction)
        );
        out.push_str(&look.hanging("  inside the tunnel ", 20, &text));
    }
    for trial in &measurements.congestion_trials {
        let text = format!(
            "{}: {} instead of {}: {} ({} to {})",
            direction_word(trial.direction),
            clean(&trial.tried),
            clean(&trial.current),
            units::signed(trial.gain.value, "share"),
            units::signed(trial.gain.low, "share"),
            units::signed(trial.gain.high, "share"),
        );
        out.push_str(&look.hanging("  congestion        ", 20, &text));
    }
    out
}

/// What the machines are. Of the first one's peers `own` alone is told, where it is given; of others the first few.
pub(crate) fn machines(machines: &[MachineRecord], own: Option<&str>, look: &Look) -> String {
    let mut out = String::new();
    for machine in machines {
        let facts = &machine.facts;
        out.push('\n');
        out.push_str(&look.bold(&clean(&machine.name)));
        out.push('\n');
        let mut lines = vec![
            (
                "kernel",
                format!("{} {}", facts.host.kernel, facts.host.architecture),
            ),
            (
                "CPU",
                match &facts.cpu.model {
                    Known::Value(model) => format!("{} × {model}", facts.cpu.online),
                    Known::Unknown(_) => format!("{} cores", facts.cpu.online),
                },
            ),
        ];
        let tunnel = facts
            .tunnels
            .iter()
            .find(|tunnel| Some(&tunnel.name) == machine.interface.as_ref());
        if let Some(tunnel) = tunnel {
            let by = match &tunnel.implementation {
                Implementation::Kernel => "the kernel's WireGuard".to_owned(),
                Implementation::Userspace {
                    program: Some(program),
                    ..
                } => format!("{program} (userspace)"),
                Implementation::Userspace { program: None, .. } => {
                    "a userspace WireGuard".to_owned()
                }
            };
            lines.push((
                "tunnel",
                format!("{}, MTU {}, carried by {by}", tunnel.name, tunnel.mtu),
            ));
            if let Some(statistics) = &tunnel.statistics {
                let words = match statistics {
                    Known::Value(statistics) => device_words(statistics),
                    Known::Unknown(reason) => format!("not known: {reason}"),
                };
                lines.push(("device", words));
            }
        }
        let peers = tunnel
            .and_then(|tunnel| tunnel.peers.value())
            .map(Vec::as_slice)
            .unwrap_or_default();
        let told: Vec<&Peer> = match own.filter(|_| machine.end == End::Here) {
            Some(key) => peers.iter().filter(|peer| peer.public_key == key).collect(),
            None => peers.iter().take(PEERS_TOLD).collect(),
        };
        lines.extend(told.iter().map(|peer| ("peer", peer_words(peer))));
        let more = peers.len() - told.len();
        if more > 0 {
            let others = if told.is_empty() { "" } else { " more" };
            lines.push(("peers", format!("{more}{others}")));
        }
        for (lead, text) in lines {
            out.push_str(&look.hanging(&format!("  {lead}"), 12, &clean(&text)));
        }
    }
    out
}

/// `inline, 2 workers, without udp-gso (degraded: EIO), dropped 7 (source-not-allowed)`.
fn device_words(statistics: &DeviceStatistics) -> String {
    let mut words = vec![statistics.engine.clone()];
    words.extend(statistics.worker_count.map(|count| match count {
        1 => "1 worker".to_owned(),
        many => format!("{many} workers"),
    }));
    for offload in &statistics.offloads {
        if let Some(without) = statistics.without(&offload.offload) {
            let reason = without
                .reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(": {reason}"));
            words.push(format!(
                "without {} ({}{reason})",
                without.offload, without.state
            ));
        }
    }
    for (reason, count) in statistics.drops.iter().filter(|(_, count)| **count > 0) {
        words.push(format!(
            "dropped {} ({reason})",
            units::count(*count as f64)
        ));
    }
    words.join(", ")
}

fn peer_words(peer: &Peer) -> String {
    let short: String = peer.public_key.chars().take(8).collect();
    let endpoint = peer
        .endpoint
        .map_or_else(|| "no endpoint".to_owned(), |endpoint| endpoint.to_string());
    let handshake = match peer.handshake_age {
        Some(age) => format!("last handshake {} ago", units::time(age.round())),
        None => "never a handshake".to_owned(),
    };
    let allowed = if peer.allowed_ips.is_empty() {
        "none".to_owned()
    } else {
        peer.allowed_ips.join(" ")
    };
    format!("{short}…, {endpoint}, {handshake}, allowed IPs {allowed}")
}
