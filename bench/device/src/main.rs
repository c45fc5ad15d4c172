//! Compares wirespeed-device with other implementations of WireGuard in one interleaved run (`make bench-device`).
//!
//! ```text
//! options → plan (rounds × rows × implementations, shuffled)
//!   each step: placement probe → two daemons over the road → load → daemons end → Sample
//! samples → summary → table, JSON, chart; written after every round
//! ```

mod chart;
mod crowd;
mod echo;
mod error;
mod facts;
mod flood;
mod forge;
mod implementation;
mod iperf3;
mod leftovers;
mod markdown;
mod measure;
mod model;
mod options;
mod place;
mod placement;
mod plan;
mod proc;
mod road;
mod rows;
mod summary;
mod tunnel;
mod uapi;

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;
use wirespeed_measure::statistics::{mean, percentile};

use crate::error::BenchError;
use crate::facts::MachineFacts;
use crate::implementation::{Implementation, Missing};
use crate::measure::Bench;
use crate::model::Sample;
use crate::options::Options;
use crate::plan::Step;
use crate::road::Road;
use crate::rows::{Kind, ROWS, Row};
use crate::summary::RowSummary;

/// The shape of the JSON.
const SCHEMA: &str = "wirespeed-bench-device/1";

fn main() -> ExitCode {
    match run(&Options::parse().settled()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(BenchError::Stopped) => ExitCode::from(130),
        Err(error) => {
            eprintln!("bench-device: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), BenchError> {
    let rows = wanted_rows(options)?;
    let (implementations, missing) = implementation::find(options)?;
    if options.list {
        list(&rows, &implementations, &missing);
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(BenchError::NotRoot);
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    ctrlc::set_handler(move || flag.store(true, Ordering::SeqCst)).map_err(|error| {
        BenchError::Measured(format!("the handler for Ctrl-C could not be set: {error}"))
    })?;
    leftovers::remove();
    raise_descriptors();
    let mut run = Run {
        options,
        seed: options.seed.unwrap_or_else(rand::random),
        machine: MachineFacts::read(),
        rows,
        implementations,
        missing,
        samples: Vec::new(),
        planned: 0,
    };
    run.go(&|| !stopped.load(Ordering::SeqCst))
}

fn wanted_rows(options: &Options) -> Result<Vec<&'static Row>, BenchError> {
    if let Some(unknown) = options
        .rows
        .iter()
        .find(|wanted| ROWS.iter().all(|row| row.name != wanted.as_str()))
    {
        return Err(BenchError::NoSuch("row", unknown.clone()));
    }
    let wanted = |row: &&Row| {
        options.rows.is_empty() || options.rows.iter().any(|wanted| wanted == row.name)
    };
    Ok(ROWS.iter().filter(wanted).collect())
}

fn list(rows: &[&Row], implementations: &[Implementation], missing: &[Missing]) {
    for row in rows {
        println!("row             {:<18} {}", row.name, row.about);
    }
    for known in implementations {
        println!("implementation  {:<18} {}", known.name, known.version);
    }
    for missing in missing {
        println!("not here        {:<18} {}", missing.name, missing.because);
    }
}

/// Daemons inherit our limit, and some open a socket for each peer.
fn raise_descriptors() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // With the old limit it works as well, until a daemon says otherwise.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

struct Run<'a> {
    options: &'a Options,
    seed: u64,
    machine: MachineFacts,
    rows: Vec<&'static Row>,
    implementations: Vec<Implementation>,
    missing: Vec<Missing>,
    samples: Vec<Sample>,
    planned: usize,
}

impl Run<'_> {
    fn go(&mut self, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<(), BenchError> {
        let road = Road::build()?;
        let bench = Bench {
            road: &road,
            options: self.options,
            goes_on,
        };
        let implementations = self.implementations.clone();
        let steps = plan::steps(&self.rows, &implementations, self.options.rounds, self.seed);
        self.planned = steps.len();
        for missing in &self.missing {
            eprintln!(
                "bench-device: without {}: {}",
                missing.name, missing.because
            );
        }
        let begun = Instant::now();
        for (number, step) in steps.iter().enumerate() {
            let sample = take(&bench, step);
            if !goes_on() {
                self.write()?;
                return Err(BenchError::Stopped);
            }
            let left = begun
                .elapsed()
                .mul_f64((steps.len() - number - 1) as f64 / (number + 1) as f64);
            tell(&sample, step, self.options.rounds, left);
            self.samples.push(sample);
            if steps
                .get(number + 1)
                .is_none_or(|next| next.round != step.round)
            {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Everything known so far, in all forms.
    fn write(&mut self) -> Result<(), BenchError> {
        let distances: Vec<f64> = self
            .samples
            .iter()
            .filter_map(|sample| sample.core_to_core)
            .collect();
        if let [Some(low), Some(middle), Some(high)] =
            [0.0, 0.5, 1.0].map(|share| percentile(&distances, share))
        {
            self.machine.core_to_core = Some([low, middle, high]);
        }
        let others: Vec<f64> = self
            .samples
            .iter()
            .filter_map(|sample| sample.others_running.map(f64::from))
            .collect();
        self.machine.others_running = mean(&others);
        let rows: Vec<(&Row, RowSummary)> = self
            .rows
            .iter()
            .map(|&row| {
                (
                    row,
                    summary::of_row(row, &self.implementations, &self.samples, self.seed),
                )
            })
            .collect();
        let table = markdown::render(&markdown::Report {
            machine: &self.machine,
            options: self.options,
            implementations: &self.implementations,
            missing: &self.missing,
            rows: &rows,
            taken: (self.samples.len(), self.planned),
        });
        let title = format!(
            "wirespeed-device and others, {}, {}",
            self.machine.processor, self.machine.begun
        );
        let chart = chart::draw(&rows, &title).map_err(|error| {
            BenchError::Measured(format!("the chart could not be drawn: {error}"))
        })?;
        let document = Document {
            schema: SCHEMA,
            machine: &self.machine,
            rounds: self.options.rounds,
            seconds: self.options.seconds,
            warm_up: self.options.warm_up,
            congestion_control: &self.options.congestion_control,
            seed: self.seed,
            complete: self.samples.len() == self.planned && !self.options.is_partial(),
            implementations: &self.implementations,
            missing: &self.missing,
            rows: rows.iter().map(|(_, summary)| summary).collect(),
            samples: &self.samples,
        };
        let json = serde_json::to_string_pretty(&document).map_err(|error| {
            BenchError::Measured(format!("the samples could not be written as JSON: {error}"))
        })?;
        let out = &self.options.out;
        fs::create_dir_all(out).map_err(BenchError::system(format!("make {}", out.display())))?;
        for (name, text) in [
            ("results.md", &table),
            ("results.json", &json),
            ("results.svg", &chart),
        ] {
            let path = out.join(name);
            fs::write(&path, text)
                .map_err(BenchError::system(format!("write {}", path.display())))?;
        }
        Ok(())
    }
}

/// The JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: &'a MachineFacts,
    rounds: u32,
    seconds: u32,
    warm_up: f64,
    congestion_control: &'a str,
    seed: u64,
    /// Every row and every implementation that is here, in all rounds.
    complete: bool,
    implementations: &'a [Implementation],
    missing: &'a [Missing],
    rows: Vec<&'a RowSummary>,
    samples: &'a [Sample],
}

fn take(bench: &Bench<'_>, step: &Step<'_>) -> Sample {
    let started_at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let begun = Instant::now();
    let others_running = proc::others_running();
    let core_to_core = placement::core_to_core();
    let sample = || bench.sample(step.row, step.implementation, step.round);
    // One failure may be chance, as a lost SYN is; two in a row are not.
    let (result, retried) = match sample() {
        // That traffic doesn't resume is what this row is there to find out.
        Err(error) if (bench.goes_on)() && step.row.kind != Kind::Restart => {
            (sample(), Some(error.to_string()))
        }
        result => (result, None),
    };
    let (figures, error) = match result {
        Ok(figures) => (figures, None),
        Err(error) => (model::Figures::new(), Some(error.to_string())),
    };
    Sample {
        row: step.row.name,
        implementation: step.implementation.name,
        round: step.round,
        position: step.position,
        started_at,
        took: begun.elapsed().as_secs_f64(),
        core_to_core,
        others_running,
        figures,
        retried,
        error,
    }
}

fn tell(sample: &Sample, step: &Step<'_>, rounds: u32, left: Duration) {
    let shown = step.row.columns.iter().filter_map(|metric| {
        let value = sample.figures.get(metric)?;
        Some(format!("{} {}", metric.title(), metric.show(*value)))
    });
    let figures = shown.take(4).collect::<Vec<_>>().join(", ");
    let said = match (&sample.error, &sample.retried) {
        (Some(error), _) => format!("failed: {error}"),
        (None, Some(error)) => format!("{figures}; at the second try: {error}"),
        (None, None) => figures,
    };
    let minutes = left.as_secs().div_ceil(60);
    eprintln!(
        "{}/{rounds} {:<17} {:<20} {said} ({minutes} min left)",
        sample.round, sample.row, sample.implementation
    );
}
