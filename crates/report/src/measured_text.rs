//! Measurements in the terminal: the table of comparisons, probes, and what the machines are.

use wirespeed_doctor::End;
use wirespeed_facts::{DeviceStatistics, Implementation, Known, Peer, Tunnel};
use wirespeed_measure::{Comparison, Protocol, RttSummary, Sample, Via};
use wirespeed_words::say;

use crate::doctor_text::told;
use crate::lists::{at_most, more};
use crate::look::{Look, table};
use crate::over_time;
use crate::record::{MachineRecord, Measurements};
use crate::room::name;
use crate::{places, units};

/// Peers of one machine that are told.
const PEERS_TOLD: usize = 10;
/// Prefixes of one peer that are told.
const PREFIXES_TOLD: usize = 16;
/// Comparisons in the table without `-v`.
const ROWS_SHOWN: usize = 60;
/// Columns of the labels of probes.
pub(crate) const PROBES: usize = 20;
/// Columns of the labels of machines and samples.
const LABELS: usize = 12;
/// Below this share of the road nobody would say that a tunnel carries something.
const NOTHING: f64 = 0.005;

/// What is not known is a question mark.
pub(crate) fn or_unknown<T>(value: Option<T>, say: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), say)
}

/// A percentage without its sign.
pub(crate) fn figure(percent: &str) -> &str {
    percent.trim_end_matches('%').trim_end()
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
            return Some(say!(
                "report-carried-nothing",
                direction = comparison.direction.word(),
                road = units::rate(bare)
            ));
        }
        return Some(say!(
            "report-carried",
            share = units::percent(ratio),
            road = units::rate(bare),
            load = load_words(comparison)
        ));
    }
    let slowest = comparisons
        .iter()
        .min_by(|a, b| a.tunnel.total_cmp(&b.tunnel))?;
    Some(say!(
        "report-carried-alone",
        rate = units::rate(slowest.tunnel),
        load = load_words(slowest)
    ))
}

/// `upload`, or `upload, 10 streams`.
fn load_words(comparison: &Comparison) -> String {
    let direction = comparison.direction.word();
    match comparison.streams {
        1 => direction,
        streams => say!("report-load", direction = direction, streams = streams),
    }
}

/// One table row per comparison, short.
pub(crate) fn road(comparisons: &[Comparison], look: &Look) -> String {
    if comparisons.is_empty() {
        return String::new();
    }
    let wide = look.width >= 96;
    // The answer counts before how long packets waited, which the details tell, too.
    let narrow = look.width < 68;
    let mut header = vec![
        String::new(),
        say!("report-streams"),
        say!("report-road"),
        say!("report-tunnel"),
        say!("report-share"),
    ];
    if wide {
        header.extend([say!("report-interval"), say!("report-loaded-rtt")]);
    } else if !narrow {
        header.push("RTT".to_owned());
    }
    let shown = at_most(ROWS_SHOWN, look);
    let rows: Vec<Vec<String>> = comparisons
        .iter()
        .take(shown)
        .map(|comparison| {
            let mut row = vec![
                format!(
                    "{} {}",
                    comparison.direction.word(),
                    protocol_word(comparison.protocol)
                ),
                comparison.streams.to_string(),
                or_unknown(comparison.bare, units::rate),
                units::rate(comparison.tunnel),
                or_unknown(comparison.ratio, units::percent),
            ];
            if wide {
                row.push(interval(comparison));
            }
            if !narrow {
                row.push(or_unknown(loaded(comparison, Via::Tunnel), units::time));
            }
            row
        })
        .collect();
    let table = table(look, 2, &header, &rows, 1);
    format!("\n{table}{}", more(comparisons.len(), shown, look))
}

fn interval(comparison: &Comparison) -> String {
    match (comparison.ratio_low, comparison.ratio_high) {
        (Some(low), Some(high)) => {
            format!("{}–{}", figure(&units::percent(low)), units::percent(high))
        }
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
    say!(
        "report-comparison",
        direction = comparison.direction.word(),
        protocol = protocol_word(comparison.protocol),
        streams = comparison.streams
    )
}

/// Pairs, remarks and counters of every comparison.
pub(crate) fn comparisons(comparisons: &[Comparison], look: &Look) -> String {
    let mut out = String::new();
    let mut remarks = over_time::Remarks::default();
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
            let header = [
                say!("report-pair"),
                say!("report-road"),
                say!("report-tunnel"),
                say!("report-share"),
            ];
            out.push_str(&table(look, 2, &header, &rows, 0));
        }
        out.push_str(&over_time::details(comparison, look, &mut remarks));
        if let Some(reason) = &comparison.bare_unknown {
            let text = say!("report-not-measured-because", reason = reason);
            out.push_str(&look.labelled(&say!("report-road"), LABELS, &text));
        }
        for sample in &comparison.samples {
            out.push_str(&look.hanging("  ", 4, &sample_line(sample)));
        }
        for remark in &comparison.remarks {
            out.push_str(&look.labelled(&say!("report-label-note"), LABELS, remark));
        }
    }
    out.push_str(&remarks.paragraph(look));
    out
}

fn sample_line(sample: &Sample) -> String {
    let mut parts = vec![
        match sample.load.via {
            Via::Bare => say!("report-road"),
            Via::Tunnel => say!("report-tunnel"),
        },
        if sample.stalled {
            say!("report-sample-stalled")
        } else {
            units::rate(sample.rate)
        },
        say!("report-sample-ran", time = units::time(sample.ran)),
    ];
    if let Some(retransmits) = sample.retransmits {
        parts.push(say!("report-sample-retransmits", count = retransmits));
    }
    if let Some(lost) = sample.lost {
        parts.push(say!("report-sample-lost", share = units::percent(lost)));
    }
    if sample.dead_streams > 0 {
        parts.push(say!("report-sample-died", count = sample.dead_streams));
    }
    if let Some(control) = &sample.congestion_control {
        parts.push(name(control));
    }
    if let Some(rtt) = sample.loaded_rtt.as_ref().map(rtt_words) {
        parts.push(say!("report-sample-rtt", rtt = rtt));
    }
    let ends = [(true, Some(&sample.here)), (false, sample.far.as_ref())];
    for (here, delta) in ends {
        let Some(delta) = delta else { continue };
        if let Some(busiest) = delta
            .cores
            .iter()
            .map(wirespeed_facts::CoreTime::busy_share)
            .max_by(f64::total_cmp)
        {
            let share = units::percent(busiest);
            parts.push(if here {
                say!("report-sample-core-here", share = share)
            } else {
                say!("report-sample-core-far", share = share)
            });
        }
        let drops: u64 = delta.socket_drops.values().sum();
        if drops > 0 {
            parts.push(if here {
                say!("report-sample-drops-here", count = drops)
            } else {
                say!("report-sample-drops-far", count = drops)
            });
        }
    }
    parts.join(", ")
}

fn rtt_words(rtt: &RttSummary) -> String {
    match (rtt.min, rtt.median, rtt.p95) {
        (Some(min), Some(median), Some(p95)) => {
            say!(
                "report-rtt",
                min = units::time(min),
                median = units::time(median),
                high = units::time(p95)
            )
        }
        _ => say!("report-rtt-none", sent = rtt.sent),
    }
}

/// The doctor's probes.
pub(crate) fn probes(measurements: &Measurements, look: &Look) -> String {
    let mut out = String::from("\n");
    out.push_str(&look.bold(&say!("report-probes")));
    out.push('\n');
    for (lead, rtt) in [
        (say!("report-label-rtt-road"), &measurements.idle_rtt_bare),
        (
            say!("report-label-rtt-tunnel"),
            &measurements.idle_rtt_tunnel,
        ),
    ] {
        let text = match rtt {
            Known::Value(rtt) => rtt_words(rtt),
            Known::Unknown(reason) => not_known(reason),
        };
        out.push_str(&look.labelled(&lead, PROBES, &text));
    }
    for path in &measurements.path_mtu {
        let mut said = vec![passed(path.largest_passed)];
        said.extend(path.smallest_failed.map(failed));
        match path.reported {
            Some(mtu) => said.push(say!("report-size-reported", mtu = mtu)),
            None if path.silent_loss => said.push(say!("report-size-silent")),
            None => {}
        }
        let text = told(&path.direction.word(), &said.join(", "));
        out.push_str(&look.labelled(&say!("report-label-path-mtu"), PROBES, &text));
    }
    for sweep in &measurements.tunnel_sweep {
        let said = [
            passed(sweep.largest_passed),
            sweep
                .smallest_failed
                .map_or_else(|| say!("report-size-all"), failed),
        ];
        let text = told(&sweep.direction.word(), &said.join(", "));
        out.push_str(&look.labelled(&say!("report-label-sizes"), PROBES, &text));
    }
    for trial in &measurements.congestion_trials {
        let text = say!(
            "report-trial",
            direction = trial.direction.word(),
            tried = &trial.tried,
            current = &trial.current,
            gain = units::signed(trial.gain.value, "share"),
            low = units::signed(trial.gain.low, "share"),
            high = units::signed(trial.gain.high, "share")
        );
        out.push_str(&look.labelled(&say!("report-label-congestion"), PROBES, &text));
    }
    out
}

fn passed(largest: Option<u32>) -> String {
    match largest {
        Some(size) => say!("report-size-passed", size = size),
        None => say!("report-size-passed-nothing"),
    }
}

fn failed(smallest: u32) -> String {
    say!("report-size-failed", size = smallest)
}

fn not_known(reason: &str) -> String {
    say!("report-not-known-because", reason = reason)
}

/// What the machines are. Of the first one's peers `own` alone is told, where it is given; of others the first few.
pub(crate) fn machines(machines: &[MachineRecord], own: Option<&str>, look: &Look) -> String {
    let mut out = String::new();
    for machine in machines {
        let facts = &machine.facts;
        out.push('\n');
        out.push_str(&look.bold(&places::name(&machine.name)));
        out.push('\n');
        let mut lines = vec![
            (
                say!("report-label-kernel"),
                format!(
                    "{} {}",
                    name(&facts.host.kernel),
                    name(&facts.host.architecture)
                ),
            ),
            (
                "CPU".to_owned(),
                match &facts.cpu.model {
                    Known::Value(model) => format!("{} × {}", facts.cpu.online, name(model)),
                    Known::Unknown(_) => say!("report-cores", count = facts.cpu.online),
                },
            ),
        ];
        let tunnel = facts
            .tunnels
            .iter()
            .find(|tunnel| Some(&tunnel.name) == machine.interface.as_ref());
        if let Some(tunnel) = tunnel {
            lines.push((say!("report-tunnel"), tunnel_words(tunnel)));
            if let Some(statistics) = &tunnel.statistics {
                let words = match statistics {
                    Known::Value(statistics) => device_words(statistics),
                    Known::Unknown(reason) => not_known(reason),
                };
                lines.push((say!("report-label-device"), words));
            }
        }
        let peers = tunnel
            .and_then(|tunnel| tunnel.peers.value())
            .map(Vec::as_slice)
            .unwrap_or_default();
        let told_peers: Vec<&Peer> = match own.filter(|_| machine.end == End::Here) {
            Some(key) => peers.iter().filter(|peer| peer.public_key == key).collect(),
            None => peers.iter().take(PEERS_TOLD).collect(),
        };
        lines.extend(
            told_peers
                .iter()
                .map(|peer| (say!("report-label-peer"), peer_words(peer))),
        );
        let more = peers.len() - told_peers.len();
        if more > 0 {
            let words = if told_peers.is_empty() {
                more.to_string()
            } else {
                say!("report-peers-more", count = more)
            };
            lines.push((say!("report-label-peers"), words));
        }
        for (label, text) in lines {
            out.push_str(&look.labelled(&label, LABELS, &text));
        }
    }
    out
}

fn tunnel_words(tunnel: &Tunnel) -> String {
    let (name, mtu) = (name(&tunnel.name), tunnel.mtu);
    match &tunnel.implementation {
        Implementation::Kernel => say!("report-by-kernel", name = name, mtu = mtu),
        Implementation::Userspace {
            program: Some(program),
            ..
        } => say!(
            "report-by-program",
            name = name,
            mtu = mtu,
            program = program
        ),
        Implementation::Userspace { program: None, .. } => {
            say!("report-by-userspace", name = name, mtu = mtu)
        }
    }
}

/// `inline, 2 workers, without udp-gso (degraded: EIO), dropped 7 (source-not-allowed)`.
fn device_words(statistics: &DeviceStatistics) -> String {
    let mut words = vec![name(&statistics.engine)];
    let workers = statistics.worker_count;
    words.extend(workers.map(|count| say!("report-device-workers", count = count)));
    for offload in &statistics.offloads {
        if let Some(without) = statistics.without(&offload.offload) {
            let state = match &without.reason {
                Some(reason) => told(&without.state, reason),
                None => without.state.clone(),
            };
            words.push(say!(
                "report-device-without",
                offload = &without.offload,
                state = state
            ));
        }
    }
    for (reason, count) in statistics.drops.iter().filter(|(_, count)| **count > 0) {
        words.push(say!(
            "report-device-dropped",
            count = *count,
            reason = reason
        ));
    }
    words.join(", ")
}

/// The first of a peer's prefixes, and how many more it has.
fn prefixes(all: &[String]) -> String {
    let told = &all[..all.len().min(PREFIXES_TOLD)];
    let mut out = told.join(" ");
    if told.len() < all.len() {
        out.push_str(", ");
        out.push_str(&say!("report-peers-more", count = all.len() - told.len()));
    }
    out
}

fn peer_words(peer: &Peer) -> String {
    let short: String = peer.public_key.chars().take(8).collect();
    let endpoint = peer.endpoint.map_or_else(
        || say!("report-peer-nowhere"),
        |endpoint| endpoint.to_string(),
    );
    let handshake = match peer.handshake_age {
        Some(age) => say!("report-peer-heard", age = units::time(age.round())),
        None => say!("report-peer-never-heard"),
    };
    let allowed = if peer.allowed_ips.is_empty() {
        say!("report-peer-allowed-none")
    } else {
        say!("report-peer-allowed", ips = prefixes(&peer.allowed_ips))
    };
    format!("{short}…, {endpoint}, {handshake}, {allowed}")
}
