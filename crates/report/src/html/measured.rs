//! Tables of what was measured, and of the machines.

use maud::{Markup, html};
use wirespeed_doctor::End;
use wirespeed_facts::{Implementation, Known, Peer};
use wirespeed_measure::statistics::median;
use wirespeed_measure::{
    Comparison, ExchangeComparison, PassiveWatch, Percentiles, RttSummary, Via,
};
use wirespeed_words::say;

use super::prose::prose;
use super::room;
use super::table::{Cell, table};
use crate::measured_text::title;
use crate::record::{DoctorRecord, MachineRecord, Measurements, failures};
use crate::room::{cell, name};
use crate::{places, units, watched_text};

/// Peers of one machine that are told.
const PEERS_TOLD: usize = 10;
/// Links of one machine that are told.
const LINKS_TOLD: usize = 10;
/// Bytes of a page that all pairs have, and that what is noted of comparisons has.
const ROOM_PAIRS: usize = 80_000;
const ROOM_NOTES: usize = 40_000;

fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> Cell {
    Cell::number(value.map_or_else(|| "–".to_owned(), text))
}

/// One row per comparison.
pub(super) fn comparisons(comparisons: &[Comparison]) -> Markup {
    let heads = [
        say!("html-table-load"),
        say!("html-road"),
        say!("html-tunnel"),
        say!("html-table-share"),
        say!("html-table-interval"),
        say!("html-table-pairs"),
        say!("html-table-rtt-road"),
        say!("html-table-rtt-tunnel"),
        say!("html-table-retransmits"),
    ];
    let rows: Vec<Vec<Cell>> = comparisons
        .iter()
        .map(|one| {
            let interval = one.ratio_low.zip(one.ratio_high);
            let resent = one.of(Via::Tunnel).filter_map(|sample| sample.retransmits);
            let resent = resent.reduce(u64::saturating_add);
            vec![
                Cell::text(title(one)),
                known(one.bare, units::rate),
                Cell::number(units::rate(one.tunnel)),
                known(one.ratio, units::percent),
                known(interval, |(low, high)| {
                    say!(
                        "html-interval",
                        low = units::percent(low),
                        high = units::percent(high)
                    )
                }),
                Cell::number(one.pairs.len().to_string()),
                known(loaded(one, Via::Bare), units::time),
                known(loaded(one, Via::Tunnel), units::time),
                known(resent, |count| units::count(count as f64)),
            ]
        })
        .collect();
    let notes = comparisons
        .iter()
        .flat_map(|one| (one.remarks.iter().chain(&one.bare_unknown)).map(move |note| (one, note)));
    let (noted, unnoted) = room::of_page(ROOM_NOTES, notes, |(one, note)| {
        html! { p.note { b { (title(one)) } " – " (prose(note)) } }
    });
    let paired: Vec<&Comparison> = comparisons
        .iter()
        .filter(|one| !one.pairs.is_empty())
        .collect();
    let (every_pair, unlisted) = room::of_page(ROOM_PAIRS, &paired, |one| {
        html! { h4 { (title(one)) } (pairs(one)) }
    });
    html! {
        @if !rows.is_empty() { (table(&heads, &rows)) }
        (noted) (room::more(unnoted))
        @if !paired.is_empty() {
            details {
                summary { (say!("html-every-pair")) }
                (every_pair) (room::more(unlisted))
            }
        }
    }
}

fn loaded(comparison: &Comparison, via: Via) -> Option<f64> {
    let medians: Vec<f64> = comparison
        .of(via)
        .filter_map(|sample| sample.loaded_rtt.as_ref()?.median)
        .collect();
    median(&medians)
}

fn pairs(comparison: &Comparison) -> Markup {
    let heads = [
        say!("html-table-pair"),
        say!("html-road"),
        say!("html-tunnel"),
        say!("html-table-share"),
    ];
    let rows: Vec<Vec<Cell>> = comparison
        .pairs
        .iter()
        .enumerate()
        .map(|(index, pair)| {
            vec![
                Cell::number((index + 1).to_string()),
                Cell::number(units::rate(pair.bare)),
                Cell::number(units::rate(pair.tunnel)),
                Cell::number(units::percent(pair.ratio)),
            ]
        })
        .collect();
    table(&heads, &rows)
}

/// What flowed by itself, a row per machine.
pub(super) fn watched(record: &DoctorRecord, passive: &PassiveWatch) -> Markup {
    let (heads, rows) = watched_text::what_flowed(record, passive);
    let rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .map(|row| {
            let mut row = row.into_iter();
            let name = row.next().map(Cell::text);
            name.into_iter().chain(row.map(Cell::number)).collect()
        })
        .collect();
    html! {
        (table(&heads, &rows))
        @if let Some(heard) = watched_text::last_heard(record, passive) { p.note { (heard) } }
    }
}

/// What the doctor probed: sizes and round trips.
pub(super) fn probes(measured: &Measurements) -> Markup {
    let mut rows: Vec<[String; 2]> = vec![
        [
            say!("html-rtt-idle-road"),
            rtt_words(&measured.idle_rtt_bare),
        ],
        [
            say!("html-rtt-idle-tunnel"),
            rtt_words(&measured.idle_rtt_tunnel),
        ],
    ];
    for one in &measured.path_mtu {
        let mut text = sizes(one.largest_passed, one.smallest_failed);
        match one.reported {
            Some(mtu) => text.push_str(&say!(
                "html-probe-reported",
                mtu = units::bytes(f64::from(mtu))
            )),
            None if one.silent_loss => text.push_str(&say!("html-probe-silent")),
            None => {}
        }
        let name = say!("html-probe-path", direction = one.direction.word());
        rows.push([name, text]);
    }
    for one in &measured.tunnel_sweep {
        let name = say!("html-probe-inside", direction = one.direction.word());
        rows.push([name, sizes(one.largest_passed, one.smallest_failed)]);
    }
    for one in &measured.sequences {
        let lost = one.lost().map_or_else(|| "–".to_owned(), units::percent);
        let late = one
            .out_of_order()
            .map_or_else(|| "–".to_owned(), units::percent);
        let side = match one.via {
            Via::Bare => say!("html-road"),
            Via::Tunnel => say!("html-tunnel"),
        };
        let name = say!(
            "html-probe-datagrams",
            direction = one.direction.word(),
            side = side
        );
        let text = say!(
            "html-probe-datagrams-text",
            sent = units::count(one.sent as f64),
            rate = units::rate(one.offered),
            lost = lost,
            late = late
        );
        rows.push([name, text]);
    }
    pairs_of(&rows)
}

/// The largest size that passed, and the smallest that didn't, bytes.
fn sizes(passed: Option<u32>, failed: Option<u32>) -> String {
    let bytes = |size: u32| units::bytes(f64::from(size));
    let passed = passed.map_or_else(|| say!("html-probe-nothing"), bytes);
    let mut text = say!("html-probe-passed", size = passed);
    if let Some(size) = failed {
        text.push_str(&say!("html-probe-failed", size = bytes(size)));
    }
    text
}

fn rtt_words(rtt: &Known<RttSummary>) -> String {
    match rtt {
        Known::Value(RttSummary {
            min: Some(min),
            median: Some(median),
            p95: Some(p95),
            ..
        }) => say!(
            "html-rtt-all",
            min = units::time(*min),
            median = units::time(*median),
            high = units::time(*p95)
        ),
        Known::Value(rtt) => say!("html-rtt-no-reply", sent = rtt.sent),
        Known::Unknown(why) => say!("html-not-known", why = why),
    }
}

/// Names and what they are.
fn pairs_of(rows: &[[String; 2]]) -> Markup {
    html! {
        dl.facts { @for [name, text] in rows { dt { (cell(name)) } dd { (cell(text)) } } }
    }
}

/// Many short exchanges.
pub(super) fn exchanges(exchanges: &ExchangeComparison) -> Markup {
    let heads = [
        String::new(),
        say!("html-exchange-rate"),
        say!("html-exchange-completed"),
        say!("html-exchange-failed"),
        say!("html-exchange-p50"),
        say!("html-exchange-p99"),
        say!("html-exchange-longest"),
    ];
    let rows: Vec<Vec<Cell>> = [
        (say!("html-road"), Via::Bare),
        (say!("html-tunnel"), Via::Tunnel),
    ]
    .into_iter()
    .filter_map(|(name, via)| {
        let of_side = || exchanges.samples.iter().filter(move |one| one.via == via);
        let rates: Vec<f64> = of_side().map(|one| one.per_second).collect();
        let totals: Vec<Percentiles> = of_side().filter_map(|one| one.total).collect();
        let middle = |figure: fn(&Percentiles) -> f64| {
            let figures: Vec<f64> = totals.iter().map(figure).collect();
            median(&figures)
        };
        let longest = totals.iter().map(|one| one.max).max_by(f64::total_cmp);
        let completed = of_side().fold(0u64, |sum, one| sum.saturating_add(one.completed));
        let failed = of_side().fold(0u64, |sum, one| sum.saturating_add(failures(one)));
        Some(vec![
            Cell::text(name),
            Cell::number(units::count(median(&rates)?.round())),
            Cell::number(units::count(completed as f64)),
            Cell::number(units::count(failed as f64)),
            known(middle(|one| one.p50), units::time),
            known(middle(|one| one.p99), units::time),
            known(longest, units::time),
        ])
    })
    .collect();
    html! {
        p { (say!("html-exchange-intro", count = exchanges.at_once)) }
        (table(&heads, &rows))
        @if let Some(ratio) = exchanges.ratio {
            p.note {
                (say!(
                    "html-exchange-ratio",
                    value = units::percent(ratio.value),
                    low = units::percent(ratio.low),
                    high = units::percent(ratio.high)
                ))
            }
        }
        @for note in exchanges.remarks.iter().chain(&exchanges.bare_unknown) { p.note { (prose(note)) } }
    }
}

/// What the machines are. Of the first one's peers `own` alone is told, where it is given; of others the first few.
pub(super) fn machines(machines: &[MachineRecord], own: Option<&str>) -> Markup {
    html! {
        div.machines {
            @for machine in machines {
                section.card {
                    h3 { (places::name(&machine.name)) }
                    (pairs_of(&lines(machine, own)))
                }
            }
        }
    }
}

fn lines(machine: &MachineRecord, own: Option<&str>) -> Vec<[String; 2]> {
    let facts = &machine.facts;
    let mut lines = Vec::new();
    if let Known::Value(system) = &facts.host.system {
        lines.push([say!("html-machine-system"), name(system)]);
    }
    lines.push([
        say!("html-machine-kernel"),
        format!(
            "{} {}",
            name(&facts.host.kernel),
            name(&facts.host.architecture)
        ),
    ]);
    let cores = say!("html-machine-cores", count = facts.cpu.online);
    lines.push([
        say!("html-machine-cpu"),
        match &facts.cpu.model {
            Known::Value(model) => format!("{}, {cores}", name(model)),
            Known::Unknown(_) => cores,
        },
    ]);
    let interface = machine.interface.as_ref();
    let tunnel = facts
        .tunnels
        .iter()
        .find(|one| Some(&one.name) == interface);
    if let Some(tunnel) = tunnel {
        let by = match &tunnel.implementation {
            Implementation::Kernel => say!("html-machine-by-kernel"),
            Implementation::Userspace {
                program: Some(program),
                ..
            } => say!("html-machine-by-program", program = name(program)),
            Implementation::Userspace { program: None, .. } => say!("html-machine-by-userspace"),
        };
        lines.push([
            say!("html-machine-tunnel"),
            say!(
                "html-machine-tunnel-text",
                name = name(&tunnel.name),
                mtu = units::bytes(f64::from(tunnel.mtu)),
                by = by
            ),
        ]);
        let peers = tunnel.peers.value().map(Vec::as_slice).unwrap_or_default();
        let told: Vec<&Peer> = match own.filter(|_| machine.end == End::Here) {
            Some(key) => peers.iter().filter(|peer| peer.public_key == key).collect(),
            None => peers.iter().take(PEERS_TOLD).collect(),
        };
        lines.extend(
            told.iter()
                .map(|peer| [say!("html-machine-peer"), peer_words(peer)]),
        );
        let more = peers.len() - told.len();
        if more > 0 {
            lines.push([say!("html-machine-peers"), say!("html-more", count = more)]);
        }
    }
    for outer in facts.outer_links.iter().take(LINKS_TOLD) {
        if let Some(link) = facts.link(outer) {
            let driver = match &link.driver {
                Known::Value(driver) => driver.clone(),
                Known::Unknown(_) => link.kind.clone().unwrap_or_else(|| "–".to_owned()),
            };
            let mut text = say!(
                "html-machine-link-text",
                name = name(outer),
                driver = name(&driver),
                mtu = units::bytes(f64::from(link.mtu))
            );
            if let Known::Value(speed) = link.speed {
                text.push_str(", ");
                text.push_str(&units::rate(speed as f64));
            }
            lines.push([say!("html-machine-link"), text]);
        }
    }
    for sysctl in ["net.ipv4.tcp_congestion_control", "net.core.rmem_max"] {
        if let Some(Known::Value(value)) = facts.sysctls.get(sysctl) {
            lines.push([sysctl.to_owned(), name(value)]);
        }
    }
    lines
}

fn peer_words(peer: &Peer) -> String {
    let key: String = peer.public_key.chars().take(8).collect();
    let endpoint = peer
        .endpoint
        .map_or_else(|| say!("html-machine-no-endpoint"), |one| one.to_string());
    let handshake = match peer.handshake_age {
        Some(age) => say!("html-machine-handshake", age = units::time(age.round())),
        None => say!("html-machine-no-handshake"),
    };
    format!("{key}…, {endpoint}, {handshake}")
}
