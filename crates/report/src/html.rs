//! A report to look at in a browser: one self-contained HTML file.
//!
//! The file loads nothing and runs nothing: styles and charts are in it, details open by themselves, and its policy forbids the
//! rest. What comes from outside (names of hosts and interfaces, texts of errors) is escaped by [`maud`] wherever it stands.
//! The page says what the terminal says, in the same order – the answer, the findings, then every figure behind them – and has
//! charts besides. A chart without data stands there with the reason.

mod chain;
mod finding;
mod forest;
mod machines;
mod measured;
mod page;
mod palette;
mod series;
mod svg;
mod table;
mod timeline;
mod tried;
mod verdict;

use maud::{Markup, html};
use wirespeed_doctor::{Diagnosis, End, Verdict};
use wirespeed_measure::{Comparison, NotMeasured, Sample, Via};
use wirespeed_words::say;

use crate::measured_text::{carried, title};
use crate::record::{
    DoctorRecord, HEALTHY_RATIO, HopsRecord, MachineRecord, TestRecord, TuneRecord,
};
use crate::{exchange_text, watched_text};

use finding::Commands;
use machines::Group;
use page::{Section, Top, page};
use svg::{Figure, grid};
use timeline::Loads;
use verdict::{Answer, Tone, sentence};

/// Bare against tunnel.
pub fn test(record: &TestRecord) -> String {
    let comparisons = &record.comparisons;
    let said = carried(comparisons).or_else(|| exchange_text::carried(record.exchanges.as_ref()));
    let (mut word, tone) = verdict::word(record.verdict);
    if record.verdict == Verdict::Unmeasured && said.is_some() {
        word = say!("html-incomplete");
    }
    let mut sentences =
        vec![said.map_or_else(|| say!("html-nothing-measured"), |said| sentence(&said))];
    if record.verdict == Verdict::Findings {
        sentences.push(say!("html-doctor-finds-out"));
    }
    let answer = Answer {
        tone,
        word,
        sentences,
    };
    let mut figures = vec![forest::shares(comparisons, HEALTHY_RATIO)];
    figures.extend(load_figures(comparisons));
    figures.push(forest::round_trips(
        [Some(&record.idle_rtt_bare), Some(&record.idle_rtt_tunnel)],
        comparisons,
        &[],
    ));
    figures.extend(machine_figures(&record.machines, comparisons, &[]));
    let measured = html! {
        (measured::comparisons(comparisons))
        @if let Some(exchanges) = &record.exchanges { (measured::exchanges(exchanges)) }
    };
    let mut sections = vec![
        section(
            "verdict",
            String::new(),
            html! {
                (answer.markup())
                (verdict::tiles(comparisons, Some(&record.idle_rtt_tunnel), HEALTHY_RATIO))
            },
        ),
        section("charts", say!("html-charts"), grid(&figures)),
        section("measurements", say!("html-measurements"), measured),
    ];
    sections.extend(missing(&record.not_measured));
    sections.push(machines_section(&record.machines, None));
    let top = Top {
        kind: say!("html-kind-test"),
        about: about(&record.interface, &record.machines),
        when: Some(record.started_at),
    };
    page(&top, &sections)
}

/// The doctor's answer. `far_options` are those the user gave (` --far ssh://…`), for the commands it suggests.
pub fn doctor(record: &DoctorRecord, far_options: &str) -> String {
    let commands = Commands {
        interface: &record.interface,
        far_options,
        on: "",
    };
    page(&doctor_top(record), &doctor_sections(record, commands))
}

fn doctor_top(record: &DoctorRecord) -> Top {
    Top {
        kind: say!("html-kind-doctor"),
        about: about(&record.interface, &record.machines),
        when: record.machines.first().map(|one| one.facts.taken_at),
    }
}

fn doctor_sections(record: &DoctorRecord, commands: Commands<'_>) -> Vec<Section> {
    let measured = &record.measurements;
    let comparisons = &measured.comparisons;
    let mut sections = vec![section(
        "verdict",
        String::new(),
        html! {
            (doctor_answer(record).markup())
            (verdict::tiles(comparisons, measured.passive.is_none().then_some(&measured.idle_rtt_tunnel), HEALTHY_RATIO))
        },
    )];
    if !record.findings.is_empty() {
        sections.push(section(
            "findings",
            say!("html-findings"),
            finding::findings(&record.findings, commands),
        ));
    }
    if !record.refused.is_empty() {
        sections.push(section(
            "refused",
            say!("html-refused-here"),
            html! { div.card { (finding::refused(&record.refused)) } },
        ));
    }
    sections.push(section(
        "charts",
        say!("html-charts"),
        grid(&doctor_figures(record)),
    ));
    sections.push(section(
        "measurements",
        say!("html-measurements"),
        html! {
            (measured::comparisons(comparisons))
            @if measured.passive.is_none() {
                details { summary { (say!("html-probes")) } (measured::probes(measured)) }
            }
        },
    ));
    sections.extend(missing(&record.not_checked));
    sections.push(machines_section(&record.machines, record.peer.as_deref()));
    sections
}

fn doctor_answer(record: &DoctorRecord) -> Answer {
    let comparisons = &record.measurements.comparisons;
    let said = carried(comparisons).or_else(|| watched_text::watched(record));
    let said = said.as_deref().map(sentence);
    let watched = record.measurements.passive.is_some();
    let (word, tone, more) = match record.verdict {
        Verdict::Healthy => (
            say!("html-healthy"),
            Tone::Good,
            Some(say!("html-nothing-wrong")),
        ),
        Verdict::Findings => {
            let (word, tone) = verdict::found(&record.findings);
            (word, tone, None)
        }
        Verdict::Unmeasured if watched => (
            say!("html-watched"),
            Tone::Neutral,
            Some(say!("html-nothing-shows")),
        ),
        Verdict::Unmeasured => (
            say!("html-unmeasured"),
            Tone::Neutral,
            Some(if said.is_some() {
                say!("html-too-little")
            } else {
                say!("html-nothing-measured")
            }),
        ),
    };
    Answer {
        tone,
        word,
        sentences: said.into_iter().chain(more).collect(),
    }
}

fn doctor_figures(record: &DoctorRecord) -> Vec<Figure> {
    let measured = &record.measurements;
    let comparisons = &measured.comparisons;
    let mut figures = Vec::new();
    if let Some(passive) = &measured.passive {
        figures.push(timeline::watched(passive, &record.machines));
        for machine in &record.machines {
            let groups = [machines::watched(passive, machine.end)];
            figures.push(machines::heat(&machine.name, &groups));
        }
        let ends = ends_of(&record.machines, |end| {
            machines::watched(passive, end).deltas
        });
        figures.push(machines::drops(&ends));
        return figures;
    }
    figures.push(forest::shares(comparisons, HEALTHY_RATIO));
    figures.extend(load_figures(comparisons));
    figures.push(forest::round_trips(
        [
            Some(&measured.idle_rtt_bare),
            Some(&measured.idle_rtt_tunnel),
        ],
        comparisons,
        &measured.soaks,
    ));
    figures.extend(machine_figures(
        &record.machines,
        comparisons,
        &measured.soaks,
    ));
    figures.extend(measured.sweeps.iter().map(forest::sweep));
    if measured.sweeps.is_empty() {
        figures.push(forest::no_sweep());
    }
    figures.push(forest::trials(&measured.congestion_trials));
    figures
}

/// What a tune did. `far_options` are those the user gave (` --far ssh://…`), for the commands it suggests.
pub fn tune(record: &TuneRecord, far_options: &str) -> String {
    let outcome = &record.outcome;
    let experiments = &outcome.experiments;
    let kept = experiments.iter().filter(|one| one.kept).count();
    let (word, tone) = match (experiments.len(), kept) {
        (0, _) => (say!("html-nothing-tried"), Tone::Neutral),
        (_, 0) => (say!("html-nothing-kept"), Tone::Warn),
        _ => (say!("html-kept-count", count = kept), Tone::Good),
    };
    let left: Vec<&str> = outcome
        .diagnosis
        .findings
        .iter()
        .filter(|one| one.consequence_of.is_none())
        .map(|one| one.code.as_str())
        .collect();
    let mut sentences = vec![
        say!("html-tried-count", count = experiments.len()),
        match outcome.diagnosis.verdict {
            Verdict::Healthy => say!("html-nothing-left"),
            Verdict::Findings => say!("html-left", codes = left.join(", ")),
            Verdict::Unmeasured => say!("html-left-unknown"),
        },
    ];
    sentences.extend(outcome.ended_early.clone());
    let answer = Answer {
        tone,
        word,
        sentences,
    };
    let mut figures = forest::gains(experiments);
    for one in experiments {
        let loads = tried::loads(one);
        figures.extend(loads.iter().map(timeline::throughput));
        figures.extend(loads.iter().map(timeline::window));
    }
    figures.extend(tune_machines(record));
    let mut sections = vec![section(
        "verdict",
        String::new(),
        html! { (answer.markup()) (go_on(record, far_options)) },
    )];
    if outcome.stages.len() > 1 {
        let body = tried::stages(&outcome.stages);
        sections.push(section("stages", say!("html-stages"), body));
    }
    if !experiments.is_empty() {
        let body = tried::experiments(experiments);
        sections.push(section("experiments", say!("html-experiments"), body));
    }
    sections.push(section("charts", say!("html-charts"), grid(&figures)));
    sections.extend(left_over(
        &outcome.diagnosis,
        &outcome.interface,
        far_options,
    ));
    if !outcome.not_tried.is_empty() {
        let body = html! { div.card { (finding::missing(&outcome.not_tried)) } };
        sections.push(section("not-tried", say!("html-not-tried"), body));
    }
    let samples = experiments.iter().flat_map(|one| &one.samples);
    let top = Top {
        kind: say!("html-kind-tune"),
        about: outcome.interface.clone(),
        when: samples.map(|one| one.started_at).min_by(f64::total_cmp),
    };
    page(&top, &sections)
}

/// What a tune left standing.
fn left_over(diagnosis: &Diagnosis, interface: &str, far_options: &str) -> Option<Section> {
    let commands = Commands {
        interface,
        far_options,
        on: "",
    };
    (!diagnosis.findings.is_empty()).then(|| {
        section(
            "findings",
            say!("html-findings-left"),
            finding::findings(&diagnosis.findings, commands),
        )
    })
}

fn go_on(record: &TuneRecord, far_options: &str) -> Markup {
    let far = crate::look::clean(far_options);
    html! {
        @if !record.outcome.kept.is_empty() {
            div.card {
                @match record.outcome.confirm_within {
                    Some(seconds) if !record.confirmed => {
                        p { (say!("html-confirm", time = crate::units::time(seconds))) }
                        pre { "wirespeed tune confirm" (far) }
                    }
                    _ => p { (say!("html-confirmed")) },
                }
                p { (say!("html-how-to-undo")) }
                pre { "wirespeed tune undo" (far) }
            }
        }
    }
}

/// The cores and drops of both ends, by what was tried.
fn tune_machines(record: &TuneRecord) -> Vec<Figure> {
    let experiments = &record.outcome.experiments;
    let ends = [(End::Here, say!("html-here")), (End::Far, say!("html-far"))];
    let mut figures: Vec<Figure> = ends
        .iter()
        .map(|(end, host)| {
            let groups: Vec<Group<'_>> = experiments
                .iter()
                .flat_map(tried::loads)
                .flat_map(|loads| {
                    [0, 1].map(|side| {
                        let of_side = loads.taken.iter().filter(|(one, _)| *one == side);
                        let name = format!("{}, {}", loads.title, loads.sides[side]);
                        machines::group(name, of_side.map(|(_, sample)| *sample), *end)
                    })
                })
                .collect();
            machines::heat(host, &groups)
        })
        .collect();
    let samples = || experiments.iter().flat_map(|one| &one.samples);
    let drops: Vec<_> = ends
        .iter()
        .map(|(end, host)| {
            let group = machines::group(String::new(), samples(), *end);
            (host.clone(), group.deltas)
        })
        .collect();
    figures.push(machines::drops(&drops));
    figures
}

/// A chain of hops, and the doctor's look at its worst one.
pub fn hops(record: &HopsRecord) -> String {
    let report = &record.report;
    let (word, tone) = verdict::word(report.verdict);
    let because = report.worst.as_ref().map(|worst| sentence(&worst.because));
    let answer = Answer {
        tone,
        word,
        sentences: vec![because.unwrap_or_else(|| say!("html-nothing-measured"))],
    };
    let mut sections = vec![
        section(
            "verdict",
            String::new(),
            html! {
                (answer.markup())
                @for remark in &report.remarks { p.note { (sentence(&crate::look::clean(remark))) } }
            },
        ),
        section(
            "hops",
            say!("html-hops"),
            html! { (grid(&[chain::figure(report)])) (chain::rows(report)) },
        ),
    ];
    sections.extend(missing(&report.measured.not_measured));
    if let Some(doctor) = &record.doctor {
        let from = doctor
            .machines
            .first()
            .map_or("here", |one| one.name.as_str());
        let to = doctor.far_name().unwrap_or_default();
        let on = match from {
            "here" => String::new(),
            other => format!(" # on {other}"),
        };
        let far = format!(" --far {}", wirespeed_settings::shell_word(to));
        let commands = Commands {
            interface: &doctor.interface,
            far_options: &far,
            on: &on,
        };
        let top = doctor_top(doctor);
        let title = say!("html-hop-doctor", what = top.about);
        let inner = doctor_sections(doctor, commands);
        sections.push(section(
            "doctor",
            title,
            html! {
                @for one in inner {
                    @if !one.title.is_empty() { h3 { (one.title) } }
                    (one.body)
                }
            },
        ));
    }
    let machines = report.measured.hops.iter();
    let first = machines.clone().next().map(|hop| hop.from.as_str());
    let last = machines.last().map(|hop| hop.to.as_str());
    let top = Top {
        kind: say!("html-kind-hops"),
        about: format!("{} → {}", first.unwrap_or("–"), last.unwrap_or("–")),
        when: record
            .doctor
            .as_ref()
            .and_then(|one| one.machines.first())
            .map(|one| one.facts.taken_at),
    };
    page(&top, &sections)
}

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
        || interface.to_owned(),
        |far| format!("{interface} → {}", far.name),
    )
}

/// Throughput, and the sender's window, of each comparison.
fn load_figures(comparisons: &[Comparison]) -> Vec<Figure> {
    let mut loads: Vec<Loads<'_>> = comparisons.iter().map(Loads::of).collect();
    if loads.is_empty() {
        loads.push(Loads {
            title: say!("html-no-loads"),
            sides: [say!("html-road"), say!("html-tunnel")],
            taken: Vec::new(),
        });
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
            machines::heat(&machine.name, &groups)
        })
        .collect();
    if all.is_empty() {
        figures.push(machines::heat(&say!("html-here"), &[]));
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
    figures.push(machines::drops(&ends));
    figures
}

fn ends_of<'a>(
    machines: &[MachineRecord],
    deltas: impl Fn(End) -> Vec<&'a wirespeed_facts::CountersDelta>,
) -> Vec<(String, Vec<&'a wirespeed_facts::CountersDelta>)> {
    machines
        .iter()
        .map(|machine| (machine.name.clone(), deltas(machine.end)))
        .collect()
}
