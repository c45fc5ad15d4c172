//! The table, for people.

use std::fmt::Write as _;

use crate::facts::MachineFacts;
use crate::implementation::{Implementation, Missing};
use crate::model::Metric;
use crate::options::Options;
use crate::rows::Row;
use crate::summary::{Cell, RowSummary, references, show_ratio};

/// More tasks of others than this beside a sample, on average, are no quiet machine.
const OTHERS_AT_MOST: f64 = 0.2;

/// What a table is made of.
pub(crate) struct Report<'a> {
    pub(crate) machine: &'a MachineFacts,
    pub(crate) options: &'a Options,
    pub(crate) implementations: &'a [Implementation],
    pub(crate) missing: &'a [Missing],
    pub(crate) rows: &'a [(&'a Row, RowSummary)],
    /// How many samples were taken, and how many were planned.
    pub(crate) taken: (usize, usize),
}

/// The whole section; headings begin at the second level.
pub(crate) fn render(report: &Report<'_>) -> String {
    let mut text = String::from("## wirespeed-device and others\n\n");
    head(&mut text, report);
    aims(&mut text, report);
    for (row, summary) in report
        .rows
        .iter()
        .filter(|(_, summary)| !summary.cells.is_empty())
    {
        table(&mut text, report, row, summary);
    }
    text
}

fn head(text: &mut String, report: &Report<'_>) {
    let options = report.options;
    let how = if options.quick { "`--quick`: " } else { "" };
    let _ = writeln!(
        text,
        "Made by `make bench-device`; {how}{} rounds, loads of {} s of which the first {} s don't count, congestion control {}. Both ends run on the \
         same machine. Medians over the rounds, lowest and highest beside them; a ratio is the median of the ratios within the rounds, with its \
         95 % interval.\n",
        options.rounds, options.seconds, options.warm_up, options.congestion_control
    );
    if report.taken.0 < report.taken.1 {
        let _ = writeln!(
            text,
            "**Not complete**: {} of {} samples.\n",
            report.taken.0, report.taken.1
        );
    }
    let machine = report.machine;
    let _ = writeln!(
        text,
        "- processor: {} × {}; from core to core and back {}",
        machine.cores,
        machine.processor,
        machine.distance()
    );
    let _ = writeln!(
        text,
        "- kernel: {}; {}; {}",
        machine.kernel, machine.system, machine.iperf3
    );
    let _ = writeln!(
        text,
        "- load average before: {}; begun {} (UTC)",
        machine.load_before, machine.begun
    );
    if let Some(others) = machine.others_running {
        let warning = if others > OTHERS_AT_MOST {
            ", **too many for figures to be relied on**"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "- tasks of others that wanted to run as the samples began: {others:.2} on average{warning}"
        );
    }
    for implementation in report.implementations {
        let _ = writeln!(
            text,
            "- {}: {}",
            implementation.name,
            escaped(&implementation.version)
        );
    }
    for missing in report.missing {
        let _ = writeln!(
            text,
            "- {}: not compared, {}",
            missing.name,
            escaped(&missing.because)
        );
    }
    text.push('\n');
}

fn aims(text: &mut String, report: &Report<'_>) {
    let mut any = false;
    for (row, summary) in report.rows {
        for judged in summary
            .aims
            .iter()
            .filter(|judged| judged.measured.is_some())
        {
            if !any {
                text.push_str("### What `wirespeed` aims at\n\n| row | | aim | measured | |\n| --- | --- | --- | --- | --- |\n");
                any = true;
            }
            let verdict = match judged.reached {
                Some(true) => "reached",
                Some(false) => "**missed**",
                None => "",
            };
            let measured = judged.measured.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {measured} | {verdict} |",
                row.name,
                judged.metric.title(),
                judged.aim
            );
        }
    }
    if any {
        text.push('\n');
    }
}

fn table(text: &mut String, report: &Report<'_>, row: &Row, summary: &RowSummary) {
    let shown: Vec<Metric> = row
        .columns
        .iter()
        .copied()
        .filter(|metric| {
            summary
                .cells
                .iter()
                .any(|cell| cell.figures.contains_key(metric))
        })
        .collect();
    let references = references(report.implementations);
    let _ = writeln!(text, "### {}\n\n{}.\n", row.name, row.about);
    text.push_str("| |");
    for (at, metric) in shown.iter().enumerate() {
        let _ = write!(text, " {} |", metric.title());
        if at == 0 {
            for (_, name) in &references {
                let _ = write!(text, " to {name} |");
            }
        }
    }
    text.push_str(" cores apart |\n|");
    for _ in 0..shown.len() + references.len() + 2 {
        text.push_str(" --- |");
    }
    text.push('\n');
    for cell in &summary.cells {
        line(
            text,
            cell,
            &shown,
            &references.iter().map(|(_, name)| *name).collect::<Vec<_>>(),
        );
    }
    for cell in summary.cells.iter().filter(|cell| cell.retried > 0) {
        let _ = writeln!(
            text,
            "\n{}: {} of the samples only at the second try",
            cell.implementation, cell.retried
        );
    }
    for cell in summary.cells.iter().filter(|cell| cell.failed > 0) {
        let why = cell.failure.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "\n{}: {} sample{} failed, the last one because {}",
            cell.implementation,
            cell.failed,
            if cell.failed == 1 { "" } else { "s" },
            escaped(why)
        );
    }
    text.push('\n');
}

fn line(text: &mut String, cell: &Cell, shown: &[Metric], references: &[&'static str]) {
    let _ = write!(text, "| {} |", cell.implementation);
    for (at, metric) in shown.iter().enumerate() {
        let spread = cell.figures.get(metric);
        match spread {
            Some(spread) if at == 0 && spread.samples > 1 => {
                let _ = write!(
                    text,
                    " **{}** ({} – {}) |",
                    metric.show(spread.median),
                    metric.show(spread.min),
                    metric.show(spread.max)
                );
            }
            Some(spread) => {
                let _ = write!(text, " {} |", metric.show(spread.median));
            }
            None => text.push_str(" – |"),
        }
        if at == 0 {
            for name in references {
                match spread.and_then(|spread| spread.ratios.get(name)) {
                    Some(ratio) => {
                        let _ = write!(text, " {} |", show_ratio(*ratio));
                    }
                    None => text.push_str(" |"),
                }
            }
        }
    }
    match cell.core_to_core {
        Some(nanoseconds) => {
            let _ = writeln!(text, " {nanoseconds:.0} ns |");
        }
        None => text.push_str(" – |\n"),
    }
}

/// Text of others that must not end a table's cell or begin markup.
fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = matches!(c, '|' | '<' | '*' | '_' | '`' | '[' | '\\').then_some('\\');
            escape
                .into_iter()
                .chain([if c.is_control() { ' ' } else { c }])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::implementation::{INLINE, WIREGUARD_GO};
    use crate::model::{Figures, Sample};
    use crate::rows::ROWS;
    use crate::summary;

    #[test]
    fn a_table_has_as_many_cells_in_every_line() {
        let implementations = [INLINE, WIREGUARD_GO].map(|name| Implementation {
            name,
            version: "1 | 2".to_owned(),
            program: Some(name.into()),
            arguments: &[],
            every_round: true,
        });
        let samples: Vec<Sample> = [
            (INLINE, 1, 6.0e9),
            (WIREGUARD_GO, 1, 3.0e9),
            (INLINE, 2, 7.0e9),
            (WIREGUARD_GO, 2, 3.0e9),
        ]
        .map(|(implementation, round, rate)| Sample {
            row: "tcp-1-up",
            implementation,
            round,
            position: 0,
            started_at: 0.0,
            took: 1.0,
            core_to_core: Some(120.0),
            others_running: Some(0),
            figures: Figures::from([(Metric::Rate, rate), (Metric::CpuNear, 1.0)]),
            retried: None,
            error: None,
        })
        .into();
        let rows = [(
            &ROWS[0],
            summary::of_row(&ROWS[0], &implementations, &samples, 1),
        )];
        let text = render(&Report {
            machine: &MachineFacts::default(),
            options: &Options::parse_from(["b"]),
            implementations: &implementations,
            missing: &[Missing {
                name: "gotatun",
                because: "it could not be built".to_owned(),
            }],
            rows: &rows,
            taken: (4, 4),
        });
        assert!(
            text.contains(
                "| wirespeed | **6.50 Gbit/s** (6.00 Gbit/s – 7.00 Gbit/s) | 2.17 × [2.00–2.33] |"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "| tcp-1-up | goodput | ≥ 1.7 × wireguard-go | 2.17 × [2.00–2.33] | reached |"
            ),
            "{text}"
        );
        assert!(
            text.contains("- gotatun: not compared, it could not be built")
                && text.contains("1 \\| 2")
        );
        let table: Vec<usize> = text
            .lines()
            .skip_while(|line| !line.starts_with("### tcp-1-up"))
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count())
            .collect();
        assert!(
            table.len() == 4 && table.iter().all(|cells| *cells == table[0]),
            "{table:?}"
        );
    }
}
