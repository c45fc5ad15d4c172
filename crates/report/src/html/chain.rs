//! A chain of hops: each hop and the whole against what it should carry.

use maud::{Markup, html};
use wirespeed_doctor::{HopReport, Share, Standing};
use wirespeed_words::say;

use super::svg::{Drawn, Entry, Figure, Marks, Quantity, Scale, WIDTH, fit, level, px};
use super::table::{Cell, table};
use crate::room::name;
use crate::units;

/// One direction of one hop or of the whole.
struct Bar {
    name: String,
    road: Option<f64>,
    tunnel: Option<f64>,
}

/// Road and tunnel of each hop.
pub(super) fn figure(report: &HopReport) -> Figure {
    let mut bars: Vec<Bar> = Vec::new();
    for hop in &report.measured.hops {
        for rates in &hop.rates {
            bars.push(Bar {
                name: say!(
                    "html-hop-name",
                    from = name(&hop.from),
                    to = name(&hop.to),
                    direction = rates.direction.word()
                ),
                road: rates.bare,
                tunnel: rates.tunnel,
            });
        }
    }
    for whole in &report.measured.whole {
        bars.push(Bar {
            name: say!("html-hop-whole", direction = whole.direction.word()),
            road: None,
            tunnel: whole.rate,
        });
    }
    let title = say!("html-hops-chart");
    let rates = || bars.iter().flat_map(|bar| [bar.road, bar.tunnel]).flatten();
    let drawn = if rates().next().is_none() {
        Err(say!("html-hops-absent"))
    } else {
        let words: Vec<String> = bars
            .iter()
            .map(|bar| {
                let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), units::rate);
                say!(
                    "html-hop-words",
                    name = &bar.name,
                    road = rate(bar.road),
                    tunnel = rate(bar.tunnel)
                )
            })
            .collect();
        let (height, body) = draw(&bars, rates().fold(0.0, f64::max));
        Ok(Drawn {
            caption: String::new(),
            legend: vec![
                Entry::new("s0", say!("html-road")),
                Entry::new("s1", say!("html-tunnel")),
            ],
            words: words.join(" "),
            height,
            body,
        })
    };
    Figure {
        kind: "hops",
        title,
        drawn,
    }
}

fn draw(bars: &[Bar], most: f64) -> (f64, Markup) {
    const ROW: f64 = 44.0;
    let marks = Marks::new(Quantity::Rate, 0.0, most, 4);
    let along = Scale {
        from: 0.0,
        to: marks.last(),
        low: 8.0,
        high: WIDTH - 8.0,
    };
    let bottom = bars.len() as f64 * ROW + 4.0;
    let body = html! {
        (level(&marks, along, 0.0, bottom))
        @for (index, bar) in bars.iter().enumerate() {
            @let y = index as f64 * ROW;
            text.row x="8" y=(px(y + 13.0)) { (fit(&bar.name, WIDTH - 16.0)) }
            @for (value, class, y) in [(bar.road, "bar s0", y + 18.0), (bar.tunnel, "bar s1", y + 28.0)] {
                @if let Some(value) = value {
                    rect class=(class) x="8" y=(px(y)) height="8" width=(px((along.at(value) - 8.0).max(1.5))) {
                        title { (units::rate(value)) }
                    }
                }
            }
        }
    };
    (bottom + 22.0, body)
}

/// The same as figures, with what each should be.
pub(super) fn rows(report: &HopReport) -> Markup {
    let heads = [
        say!("html-hop"),
        say!("html-table-direction"),
        say!("html-road"),
        say!("html-tunnel"),
        say!("html-table-share"),
        say!("html-should"),
    ];
    let rate = |rate: Option<f64>| Cell::number(rate.map_or_else(|| "–".to_owned(), units::rate));
    let mut rows = Vec::new();
    for (hop, verdict) in report.measured.hops.iter().zip(&report.hops) {
        for (index, rates) in hop.rates.iter().enumerate() {
            let mut row = vec![
                Cell::text(format!("{} → {}", name(&hop.from), name(&hop.to))),
                Cell::text(rates.direction.word()),
                rate(rates.bare),
                rate(rates.tunnel),
            ];
            row.extend(share_cells(verdict.shares.get(index)));
            rows.push(row);
        }
    }
    for (index, whole) in report.measured.whole.iter().enumerate() {
        let mut row = vec![
            Cell::text(say!("html-hop-all")),
            Cell::text(whole.direction.word()),
            rate(None),
            rate(whole.rate),
        ];
        row.extend(share_cells(report.whole.get(index)));
        rows.push(row);
    }
    table(&heads, &rows)
}

fn share_cells(share: Option<&Share>) -> [Cell; 2] {
    let ratio = share.and_then(|share| share.ratio).map(|ratio| {
        say!(
            "html-with-interval",
            value = units::percent(ratio.value),
            low = units::percent(ratio.low),
            high = units::percent(ratio.high)
        )
    });
    let should = share.and_then(|share| Some((share, share.should?)));
    let should = should.map(|(share, least)| {
        let least = units::percent(least);
        match share.standing {
            Standing::Good => say!("html-should-good", least = least),
            Standing::Below => say!("html-should-below", least = least),
            Standing::Unknown => say!("html-should-unknown", least = least),
        }
    });
    [ratio, should].map(|text| Cell::number(text.unwrap_or_else(|| "–".to_owned())))
}
