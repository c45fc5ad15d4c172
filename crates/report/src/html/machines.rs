//! What the machines did while loads ran: a heat map of their cores, and what they dropped.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wirespeed_doctor::End;
use wirespeed_facts::{CoreTime, CountersDelta};
use wirespeed_measure::{PassiveWatch, Sample};
use wirespeed_words::{say, units};

use super::palette::HEAT_STEPS;
use super::svg::{Drawn, Entry, Figure, RIGHT, Scale, WIDTH, fit, px};
use crate::room::name;

/// Cores that are shown; of more, the busiest.
const MOST_CORES: usize = 48;
/// Columns of a heat map, fewer where many cores have rows; of more loads, neighbours are taken together.
const MOST_COLUMNS: usize = 60;
const MOST_CELLS: usize = 1500;
/// Groups that find room beside each other; each has a letter of its own.
const MOST_GROUPS: usize = 24;
/// Share of busy time from which on each step of the heat map begins.
const STEPS: [f64; HEAT_STEPS] = [0.0, 0.2, 0.4, 0.6, 0.8, 0.95];
/// Rows of the chart of drops.
const MOST_DROPS: usize = 12;

/// What ran meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum During {
    /// Loads of wirespeed's own.
    Loads,
    /// Nothing: it was watched.
    Watch,
}

/// Loads of one kind: their name, and what moved during each.
pub(super) struct Group<'a> {
    pub(super) name: String,
    pub(super) deltas: Vec<&'a CountersDelta>,
}

/// The counters of one end during loads.
pub(super) fn group<'a>(
    name: String,
    samples: impl Iterator<Item = &'a Sample>,
    end: End,
) -> Group<'a> {
    let deltas = samples
        .filter_map(|sample| match end {
            End::Here => Some(&sample.here),
            End::Far => sample.far.as_ref(),
        })
        .collect();
    Group { name, deltas }
}

/// The counters of one end while nothing was done but watch.
pub(super) fn watched(passive: &PassiveWatch, end: End) -> Group<'_> {
    let watched = match end {
        End::Here => Some(&passive.here),
        End::Far => passive.far.as_ref(),
    };
    Group {
        name: say!("html-watched-group"),
        deltas: watched.map_or_else(Vec::new, |one| one.slices.iter().collect()),
    }
}

/// How busy each core of one machine was, load by load.
pub(super) fn heat(machine: &str, groups: &[Group<'_>], during: During) -> Figure {
    let title = say!("html-heat-title", host = machine);
    let mut groups: Vec<&Group<'_>> = groups
        .iter()
        .filter(|group| group.deltas.iter().any(|delta| !delta.cores.is_empty()))
        .collect();
    let left_out = groups.len().saturating_sub(MOST_GROUPS);
    groups.truncate(MOST_GROUPS);
    if groups.is_empty() {
        return Figure {
            kind: "heat",
            title,
            drawn: Err(say!("html-heat-absent")),
        };
    }
    let columns: usize = groups.iter().map(|group| group.deltas.len()).sum();
    let deltas = || groups.iter().flat_map(|group| &group.deltas);
    let count = deltas().map(|delta| delta.cores.len()).max();
    let count = count.unwrap_or_default();
    let most = MOST_COLUMNS.min(MOST_CELLS / count.clamp(1, MOST_CORES));
    let together = columns.div_ceil(most).max(1);
    let table: Vec<(&str, Vec<Vec<f64>>)> = groups
        .iter()
        .map(|group| {
            let chunks = group.deltas.chunks(together);
            (group.name.as_str(), chunks.map(busy).collect())
        })
        .collect();
    let busiest = |core: usize| -> f64 {
        let cells = table.iter().flat_map(|(_, columns)| columns);
        cells
            .filter_map(|column| column.get(core).copied())
            .fold(0.0, f64::max)
    };
    let mut cores: Vec<usize> = (0..count).collect();
    cores.sort_by(|one, other| busiest(*other).total_cmp(&busiest(*one)));
    let top = cores.first().copied().unwrap_or_default();
    cores.truncate(MOST_CORES);
    cores.sort_unstable();

    let busy = units::percent(busiest(top));
    let mut words = vec![match during {
        During::Loads => say!("html-heat-words", cores = count, core = top, busy = busy),
        During::Watch => say!(
            "html-heat-words-watched",
            cores = count,
            core = top,
            busy = busy
        ),
    }];
    words.extend(table.iter().map(|(name, columns)| {
        let means: Vec<f64> = cores
            .iter()
            .map(|core| {
                let cells = columns.iter().filter_map(|column| column.get(*core));
                cells.clone().sum::<f64>() / cells.count().max(1) as f64
            })
            .collect();
        let most = means.iter().copied().fold(0.0, f64::max);
        say!(
            "html-heat-words-group",
            name = *name,
            busy = units::percent(most)
        )
    }));
    let mut caption = match during {
        During::Loads => say!("html-heat-caption"),
        During::Watch => say!("html-heat-caption-watched"),
    };
    if together > 1 {
        caption.push(' ');
        caption.push_str(&match during {
            During::Loads => say!("html-heat-caption-together", count = together),
            During::Watch => say!("html-heat-caption-together-watched", count = together),
        });
    }
    if left_out > 0 {
        caption.push(' ');
        caption.push_str(&say!("html-heat-caption-groups", count = left_out));
    }
    if count > cores.len() {
        caption.push(' ');
        caption.push_str(&say!(
            "html-heat-caption-cores",
            shown = cores.len(),
            count = count
        ));
    }
    let (height, body) = cells(&table, &cores);
    Figure {
        kind: "heat",
        title,
        drawn: Ok(Drawn {
            caption,
            legend: (0..HEAT_STEPS)
                .map(|step| {
                    let name = say!("html-heat-from", share = units::percent(STEPS[step]));
                    Entry::new(format!("h{step}"), name)
                })
                .collect(),
            words: words.join(" "),
            height,
            body,
        }),
    }
}

/// Mean share of busy time per core.
fn busy(deltas: &[&CountersDelta]) -> Vec<f64> {
    let cores = deltas.iter().map(|delta| delta.cores.len()).max();
    (0..cores.unwrap_or_default())
        .map(|core| {
            let shares = deltas
                .iter()
                .filter_map(|delta| delta.cores.get(core))
                .map(CoreTime::busy_share);
            shares.clone().sum::<f64>() / shares.count().max(1) as f64
        })
        .collect()
}

/// A row per core, a column per load, groups apart with their names below.
fn cells(table: &[(&str, Vec<Vec<f64>>)], cores: &[usize]) -> (f64, Markup) {
    let (left, top) = (28.0, 4.0);
    let row = match cores.len() {
        0..=8 => 20.0,
        9..=16 => 14.0,
        _ => 10.0,
    };
    let columns: usize = table.iter().map(|(_, columns)| columns.len()).sum();
    let apart = 5.0;
    let width =
        (RIGHT - left - apart * (table.len().saturating_sub(1)) as f64) / columns.max(1) as f64;
    let gap = if width > 6.0 { 1.0 } else { 0.0 };
    let figures = width >= 25.0 && row >= 14.0;
    let bottom = top + row * cores.len() as f64;
    let mut x = left;
    let mut placed = Vec::new();
    for (name, columns) in table {
        placed.push((*name, columns, x));
        x += width * columns.len() as f64 + apart;
    }
    let body = html! {
        @for (index, core) in cores.iter().enumerate() {
            @if cores.len() <= 16 || index % 4 == 0 {
                text.mark x=(px(left - 5.0)) y=(px(top + row * (index as f64 + 0.5) + 4.0)) text-anchor="end" { (core) }
            }
        }
        @for (index, (name, columns, begin)) in placed.iter().enumerate() {
            @for (place, column) in columns.iter().enumerate() {
                @for (line, core) in cores.iter().enumerate() {
                    @if let Some(share) = column.get(*core) {
                        @let step = step_of(*share);
                        @let (x, y) = (begin + width * place as f64, top + row * line as f64);
                        rect class={ "h" (step) } x=(px(x)) y=(px(y)) width=(px(width - gap)) height=(px(row - 1.0)) {
                            @if columns.len() * cores.len() <= 100 { title { (units::percent(*share)) } }
                        }
                        @if figures {
                            text class={ "on-h" (step) } x=(px(x + (width - gap) / 2.0)) y=(px(y + row / 2.0 + 3.5)) text-anchor="middle" {
                                (units::percent(*share).trim_end_matches(['%', ' ', '\u{202f}']))
                            }
                        }
                    }
                }
            }
            @let letter = char::from(b'A' + (index % 26) as u8);
            @let middle = begin + width * columns.len() as f64 / 2.0;
            text.row x=(px(middle)) y=(px(bottom + 13.0)) text-anchor="middle" { (letter) }
            text.mark x=(px(left)) y=(px(bottom + 30.0 + 15.0 * index as f64)) {
                (letter) "  " (fit(name, WIDTH - left - 30.0))
            }
        }
    };
    (bottom + 34.0 + 15.0 * table.len() as f64 - 12.0, body)
}

fn step_of(share: f64) -> usize {
    STEPS
        .iter()
        .rposition(|from| share >= *from)
        .unwrap_or_default()
}

/// What one machine dropped, by place.
pub(super) fn drops(ends: &[(String, Vec<&CountersDelta>)], during: During) -> Figure {
    let (title, mut caption) = match during {
        During::Loads => (say!("html-drops-title"), say!("html-drops-caption")),
        During::Watch => (
            say!("html-drops-title-watched"),
            say!("html-drops-caption-watched"),
        ),
    };
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut read = 0;
    for (host, deltas) in ends {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for delta in deltas {
            read += 1;
            for (place, count) in dropped(delta) {
                let sum = sums.entry(place).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        let named = sums.into_iter().filter(|(_, count)| *count > 0);
        found.extend(named.map(|(place, count)| {
            let place = name(&place);
            let row = if ends.len() > 1 {
                say!("html-drops-name", place = place, host = host)
            } else {
                place
            };
            (row, count as f64)
        }));
    }
    found.sort_by(|one, other| other.1.total_cmp(&one.1));
    let left = found.len().saturating_sub(MOST_DROPS);
    found.truncate(MOST_DROPS);
    let drawn = if found.is_empty() {
        Err(if read == 0 {
            say!("html-drops-absent")
        } else {
            say!("html-drops-none")
        })
    } else {
        if left > 0 {
            caption.push(' ');
            caption.push_str(&say!("html-more", count = left));
        }
        let words: Vec<String> = found
            .iter()
            .map(|(name, count)| say!("html-row-words", name = name, text = units::count(*count)))
            .collect();
        Ok(Drawn {
            caption,
            legend: Vec::new(),
            words: words.join(" "),
            height: found.len() as f64 * 32.0 + 4.0,
            body: level_bars(&found),
        })
    };
    Figure {
        kind: "drops",
        title,
        drawn,
    }
}

fn level_bars(rows: &[(String, f64)]) -> Markup {
    let most = rows.iter().map(|row| row.1).fold(1.0, f64::max);
    let along = Scale {
        from: 0.0,
        to: most,
        low: 0.0,
        high: WIDTH - 12.0,
    };
    html! {
        @for (index, (name, count)) in rows.iter().enumerate() {
            @let y = index as f64 * 32.0;
            @let text = units::count(*count);
            @let room = WIDTH - 20.0 - text.chars().count() as f64 * 6.4;
            text.row x="4" y=(px(y + 12.0)) { (fit(name, room)) }
            text.value x=(px(WIDTH - 8.0)) y=(px(y + 12.0)) text-anchor="end" { (text) }
            rect.loss x="4" y=(px(y + 17.0)) height="8" width=(px(along.at(*count).max(1.5))) {}
        }
    }
}

/// Where packets were dropped, by the kernel's names of the counters.
fn dropped(delta: &CountersDelta) -> Vec<(String, u64)> {
    const PROTOCOLS: [&str; 8] = [
        "Ip.InDiscards",
        "Ip.OutDiscards",
        "Ip.ReasmFails",
        "Ip.FragFails",
        "Udp.RcvbufErrors",
        "Udp.SndbufErrors",
        "Udp6.RcvbufErrors",
        "Udp6.SndbufErrors",
    ];
    let mut found: Vec<(String, u64)> = PROTOCOLS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), *delta.protocols.get(*name)?)))
        .collect();
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
    found.push((
        "softnet dropped".to_owned(),
        sum(&mut delta.softnet.iter().map(|core| core.dropped)),
    ));
    found.push((
        say!("html-drops-sockets"),
        sum(&mut delta.socket_drops.values().copied()),
    ));
    for (name, qdisc) in &delta.qdiscs {
        found.push((format!("{name} qdisc"), qdisc.drops));
    }
    for (name, link) in &delta.links {
        for (counter, count) in [
            ("rx_dropped", link.rx_dropped),
            ("tx_dropped", link.tx_dropped),
            ("rx_errors", link.rx_errors),
            ("tx_errors", link.tx_errors),
            ("rx_missed_errors", link.rx_missed_errors),
        ] {
            found.push((format!("{name} {counter}"), count));
        }
    }
    found
}
