//! The chart: one panel for each row, a bar for each implementation, with its median, lowest and highest.

use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::implementation::{BARE, INLINE, PIPELINE};
use crate::model::Metric;
use crate::rows::{Kind, Row};
use crate::summary::RowSummary;

/// Panels beside each other.
const COLUMNS: usize = 2;
const PANEL_WIDTH: u32 = 560;
/// Height of a panel without its bars, and of each bar.
const PANEL_HEIGHT: u32 = 66;
const BAR_HEIGHT: u32 = 24;
const TITLE_HEIGHT: u32 = 40;

const OURS: RGBColor = RGBColor(0, 114, 178);
const OTHERS: RGBColor = RGBColor(150, 160, 170);

/// Draws it; an error is the drawing crate's own words.
pub(crate) fn draw(rows: &[(&Row, RowSummary)], title: &str) -> Result<String, String> {
    let panels: Vec<Panel<'_>> = rows
        .iter()
        .flat_map(|(row, summary)| {
            metrics(row).filter_map(|metric| Panel::of(row, metric, summary))
        })
        .collect();
    let bars = panels
        .iter()
        .map(|panel| panel.bars.len())
        .max()
        .unwrap_or(0) as u32;
    let lines = panels.len().div_ceil(COLUMNS).max(1);
    let height = TITLE_HEIGHT + lines as u32 * (PANEL_HEIGHT + bars * BAR_HEIGHT);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (PANEL_WIDTH * COLUMNS as u32, height))
            .into_drawing_area();
        root.fill(&WHITE).map_err(|error| error.to_string())?;
        let root = root
            .titled(title, ("sans-serif", 18))
            .map_err(|error| error.to_string())?;
        for (panel, area) in panels.iter().zip(root.split_evenly((lines, COLUMNS))) {
            panel.draw(&area).map_err(|error| error.to_string())?;
        }
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

/// What of a row is drawn: what ratios are taken of, and of the loads that have them round trips and CPU time as well.
fn metrics(row: &Row) -> impl Iterator<Item = Metric> {
    let more: &[Metric] = match row.kind {
        Kind::Tcp { echoes: true, .. } => &[Metric::RttLoaded, Metric::CpuBoth],
        _ => &[],
    };
    row.columns.iter().take(1).chain(more).copied()
}

struct Panel<'a> {
    row: &'a Row,
    metric: Metric,
    bars: Vec<Bar>,
    /// Without a tunnel.
    bare: Option<f64>,
}

struct Bar {
    name: &'static str,
    median: f64,
    min: f64,
    max: f64,
}

impl<'a> Panel<'a> {
    fn of(row: &'a Row, metric: Metric, summary: &RowSummary) -> Option<Self> {
        let bars: Vec<Bar> = summary
            .cells
            .iter()
            // It would dwarf the others, so it is told in the caption.
            .filter(|cell| cell.implementation != BARE)
            .filter_map(|cell| {
                let spread = cell.figures.get(&metric)?;
                Some(Bar {
                    name: cell.implementation,
                    median: spread.median,
                    min: spread.min,
                    max: spread.max,
                })
            })
            // The first at the top: the axis goes upwards.
            .rev()
            .collect();
        let bare = summary
            .cells
            .iter()
            .find(|cell| cell.implementation == BARE)
            .and_then(|cell| Some(cell.figures.get(&metric)?.median));
        (!bars.is_empty()).then_some(Self {
            row,
            metric,
            bars,
            bare,
        })
    }

    fn caption(&self) -> String {
        let bare = self
            .bare
            .map(|bare| format!(" (bare: {})", self.metric.show(bare)));
        format!(
            "{}: {}{}",
            self.row.name,
            self.metric.title(),
            bare.unwrap_or_default()
        )
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, plotters::coord::Shift>,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let longest = self
            .bars
            .iter()
            .map(|bar| bar.max.max(bar.median))
            .fold(0.0, f64::max);
        let end = if longest > 0.0 { longest * 1.25 } else { 1.0 };
        let names: Vec<&str> = self.bars.iter().map(|bar| bar.name).collect();
        let mut chart = ChartBuilder::on(area)
            .caption(self.caption(), ("sans-serif", 14))
            .margin(6)
            .margin_right(20)
            .x_label_area_size(20)
            .y_label_area_size(140)
            .build_cartesian_2d(0.0..end, (0..self.bars.len()).into_segmented())?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .x_labels(5)
            .x_label_formatter(&|value| self.metric.show(*value))
            .y_labels(self.bars.len())
            .y_label_formatter(&|segment| match segment {
                SegmentValue::Exact(at) | SegmentValue::CenterOf(at) => {
                    names.get(*at).copied().unwrap_or_default().to_owned()
                }
                SegmentValue::Last => String::new(),
            })
            .label_style(("sans-serif", 11))
            .draw()?;
        let color = |name: &str| match name {
            INLINE | PIPELINE => OURS,
            _ => OTHERS,
        };
        chart.draw_series(self.bars.iter().enumerate().map(|(at, bar)| {
            let corners = [
                (0.0, SegmentValue::Exact(at)),
                (bar.median, SegmentValue::Exact(at + 1)),
            ];
            let mut rectangle = Rectangle::new(corners, color(bar.name).filled());
            rectangle.set_margin(4, 4, 0, 0);
            rectangle
        }))?;
        chart.draw_series(self.bars.iter().enumerate().map(|(at, bar)| {
            let ends = vec![
                (bar.min, SegmentValue::CenterOf(at)),
                (bar.max, SegmentValue::CenterOf(at)),
            ];
            PathElement::new(ends, BLACK.mix(0.7).stroke_width(1))
        }))?;
        let text = ("sans-serif", 11)
            .into_font()
            .color(&BLACK)
            .pos(Pos::new(HPos::Left, VPos::Center));
        chart.draw_series(self.bars.iter().enumerate().map(|(at, bar)| {
            let place = (
                bar.max.max(bar.median) + end * 0.01,
                SegmentValue::CenterOf(at),
            );
            Text::new(self.metric.show(bar.median), place, text.clone())
        }))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::implementation::{Implementation, WIREGUARD_GO};
    use crate::model::{Figures, Sample};
    use crate::rows::ROWS;
    use crate::summary;

    #[test]
    fn every_row_with_figures_has_a_panel() {
        let implementations = [INLINE, WIREGUARD_GO].map(|name| Implementation {
            name,
            version: String::new(),
            program: Some(name.into()),
            arguments: &[],
            every_round: true,
        });
        let samples = [INLINE, WIREGUARD_GO].map(|implementation| Sample {
            row: "latency",
            implementation,
            round: 1,
            position: 0,
            started_at: 0.0,
            took: 1.0,
            core_to_core: None,
            others_running: Some(0),
            figures: Figures::from([(Metric::RttIdle, 0.000_1)]),
            retried: None,
            error: None,
        });
        let rows: Vec<_> = ROWS
            .iter()
            .map(|row| (row, summary::of_row(row, &implementations, &samples, 1)))
            .collect();
        let svg = draw(&rows, "a & b").unwrap();
        assert!(
            svg.starts_with("<svg")
                && svg.contains("latency: RTT idle")
                && svg.contains("100 µs")
                && !svg.contains("flood")
        );
        assert!(svg.contains("a &amp; b"));
    }
}
