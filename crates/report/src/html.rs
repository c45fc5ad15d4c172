//! A report to look at in a browser: one self-contained HTML file.
//!
//! The file loads nothing and runs nothing: styles and charts are in it, details open by themselves, and its policy forbids the
//! rest. What comes from outside (names of hosts and interfaces, texts of errors) is escaped by [`maud`] wherever it stands.
//! The page says what the terminal says, in the same order – the answer, the findings, then every figure behind them – and has
//! charts besides. A chart without data stands there with the reason.

mod chain;
mod doctor_page;
mod finding;
mod forest;
mod hops_page;
mod machines;
mod measured;
mod page;
mod palette;
mod prose;
mod room;
mod round_trips;
mod rows;
mod series;
mod svg;
mod table;
mod test_page;
mod timeline;
mod tried;
mod tune_page;
mod verdict;

use maud::{Markup, html};
use wirespeed_doctor::End;
use wirespeed_facts::CountersDelta;
use wirespeed_measure::{Comparison, NotMeasured, Sample, Via};
use wirespeed_words::say;

use crate::measured_text::title;
use crate::places;
use crate::record::MachineRecord;
use crate::room::{drawn, name};

use machines::{During, Group};
use page::Section;
use svg::{Figure, grid};
use timeline::Loads;

pub use doctor_page::doctor;
pub use hops_page::hops;
pub use test_page::test;
pub use tune_page::tune;

fn section(id: &'static str, title: String, body: Markup) -> Section {
    Section { id, title, body }
}

fn missing(items: &[NotMeasured]) -> Option<Section> {
    (!items.is_empty()).then(|| {
        let body = html! { div.card { (finding::missing(items)) } };
        section("missing", say!("html-missing"), body)
    })
}

fn machines_section(machines: &[MachineRecord], own: Option<&str>) -> Section {
    section(
        "machines",
        say!("html-machines"),
        measured::machines(machines, own),
    )
}

/// `wg0 → gw2`.
fn about(interface: &str, machines: &[MachineRecord]) -> String {
    let far = machines.iter().find(|machine| machine.end == End::Far);
    far.map_or_else(
        || name(interface),
        |far| format!("{} → {}", name(interface), places::name(&far.name)),
    )
}

/// The charts, and how many comparisons have none.
fn charts(figures: &[Figure], comparisons: &[Comparison]) -> Markup {
    let left = comparisons.len() - drawn(comparisons).len();
    html! {
        (grid(figures))
        @if left > 0 { p.note { (say!("html-comparisons-not-drawn", count = left)) } }
    }
}

/// Throughput, and the sender's window, of each comparison.
fn load_figures(comparisons: &[Comparison]) -> Vec<Figure> {
    let mut loads: Vec<Loads<'_>> = comparisons.iter().map(Loads::of).collect();
    if loads.is_empty() {
        loads.push(Loads::none());
    }
    loads
        .iter()
        .flat_map(|loads| [timeline::throughput(loads), timeline::window(loads)])
        .collect()
}

/// Cores and drops of every machine that took part.
fn machine_figures(
    all: &[MachineRecord],
    comparisons: &[Comparison],
    soaks: &[Sample],
) -> Vec<Figure> {
    let mut figures: Vec<Figure> = all
        .iter()
        .map(|machine| {
            let mut groups: Vec<Group<'_>> = Vec::new();
            for comparison in comparisons {
                for (via, side) in [
                    (Via::Bare, say!("html-road")),
                    (Via::Tunnel, say!("html-tunnel")),
                ] {
                    let name = format!("{}, {side}", title(comparison));
                    groups.push(machines::group(name, comparison.of(via), machine.end));
                }
            }
            machines::heat(&places::name(&machine.name), &groups, During::Loads)
        })
        .collect();
    if all.is_empty() {
        figures.push(machines::heat(&places::told("here"), &[], During::Loads));
    }
    let through_tunnel = || {
        comparisons
            .iter()
            .flat_map(|one| one.of(Via::Tunnel))
            .chain(soaks.iter().filter(|one| one.load.via == Via::Tunnel))
    };
    let ends = ends_of(all, |end| {
        machines::group(String::new(), through_tunnel(), end).deltas
    });
    figures.push(machines::drops(&ends, During::Loads));
    figures
}

fn ends_of<'a>(
    machines: &[MachineRecord],
    deltas: impl Fn(End) -> Vec<&'a CountersDelta>,
) -> Vec<(String, Vec<&'a CountersDelta>)> {
    machines
        .iter()
        .map(|machine| (places::name(&machine.name), deltas(machine.end)))
        .collect()
}
