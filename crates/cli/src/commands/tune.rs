//! `wirespeed tune`: remedies as experiments, kept only with proof, and undone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use wirespeed_doctor::{Diagnosis, Evidence, Verdict, investigate, judge};
use wirespeed_measure::{Ends, MeasureError, Progress, Stop};
use wirespeed_reach::Machine;
use wirespeed_report::{PlanRecord, Schema, StatusRecord, TuneRecord, UndoRecord};
use wirespeed_tune::{Options, Outcome, PutBack, PutBackResult, State, TuneError};
use wirespeed_words::say;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::far::FarOptions;
use crate::{files, interrupt, numbers, terminal};

/// Seconds after which a recording says too little of the tunnel as it is now.
const RECORDING_AT_MOST: f64 = 900.0;

/// How long a confirmation may take, unless told.
const CONFIRM_WITHIN: Duration = Duration::from_secs(600);

/// Mend the tunnel: try the doctor's remedies one at a time, keep what is proved to help, and be able to put
/// everything back.
///
/// Each remedy is an experiment: as it was, changed, as it was, changed. It is kept only when the 95 % interval of the
/// gain excludes zero and neither latency under load nor drops nor processor time got worse. Old values are on disk
/// before anything changes; a watchdog puts them back when nobody confirms in time, when the tunnel dies, or when this
/// program is killed.
#[derive(Debug, Args)]
#[command(
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  wirespeed tune wg0 --far ssh://root@nas --plan     what would be done, as a shell script; changes nothing
  wirespeed tune wg0 --far ssh://root@nas            do it
  wirespeed tune confirm --far ssh://root@nas        keep what was kept, for good
  wirespeed tune status --far ssh://root@nas
  wirespeed tune undo --far ssh://root@nas           put everything back"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    after: Option<After>,

    /// The WireGuard interface; may be left out when there is exactly one.
    interface: Option<String>,

    /// Print what would be done as a shell script per machine, and change nothing.
    #[arg(long, conflicts_with_all = ["html", "yes", "confirm_within"])]
    plan: bool,

    /// Mend this finding only; repeatable.
    #[arg(long, value_name = "CODE", value_parser = codes())]
    only: Vec<String>,

    /// Put everything back unless `wirespeed tune confirm` comes within this time: 90s, 1h, or a number of seconds
    /// [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = numbers::duration, conflicts_with = "yes")]
    confirm_within: Option<Duration>,

    /// Confirm at once what was proved to help.
    #[arg(long)]
    yes: bool,

    /// Begin no experiment that would end after this time: 90s, 1h, or a number of seconds.
    #[arg(long, value_name = "TIME", value_parser = numbers::duration, default_value = "15m")]
    budget: Duration,

    /// Shorter samples, here and in the diagnosis before and between: wider intervals, so less may be proved.
    #[arg(long)]
    quick: bool,

    /// What you expect of the line: 300mbit, 1.5gbit.
    #[arg(long, value_name = "RATE", value_parser = numbers::rate)]
    expect: Option<f64>,

    /// Begin with a recording of `wirespeed doctor --record` of this tunnel, at most 15 minutes old, instead of a
    /// diagnosis.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Also write the JSON object to a file.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    far: FarOptions,

    #[command(flatten)]
    pub(crate) show: terminal::Show,
}

#[derive(Debug, Subcommand)]
pub(crate) enum After {
    /// Keep what was proved to help; `undo` can still put it back.
    Confirm(Both),
    /// Put back everything that a tune changed, confirmed or not.
    Undo(Both),
    /// What is changed now, and until when.
    Status(Both),
}

/// Which machines are meant: this one, and the far one when it is given.
#[derive(Debug, Args)]
pub(crate) struct Both {
    #[command(flatten)]
    far: FarOptions,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// That of the answer, when the user asked for JSON.
    pub(crate) fn schema(&self) -> Option<Schema> {
        let (json, schema) = match &self.after {
            Some(After::Confirm(both) | After::Status(both)) => (both.json, Schema::TUNE_STATUS),
            Some(After::Undo(both)) => (both.json, Schema::TUNE_UNDO),
            None if self.plan => (self.show.json, Schema::TUNE_PLAN),
            None => (self.show.json, Schema::TUNE),
        };
        json.then_some(schema)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.after {
        None if arguments.plan => plan(arguments),
        None => tune(arguments),
        Some(After::Confirm(both)) => confirm(both),
        Some(After::Undo(both)) => undo(both),
        Some(After::Status(both)) => status(both),
    }
}

/// With nothing shown, nobody would learn that what is kept has to be confirmed: that has to be known beforehand.
fn confirmation_is_known_of(arguments: &Arguments) -> Result<(), Failure> {
    let known = arguments.yes || arguments.confirm_within.is_some() || arguments.show.json;
    if terminal::is_quiet() && !known {
        return Err(Failure::here(
            Exit::Usage,
            say!("cli-quiet-tune"),
            say!("cli-quiet-tune-todo"),
        ));
    }
    Ok(())
}

fn tune(arguments: &Arguments) -> Result<Exit, Failure> {
    confirmation_is_known_of(arguments)?;
    files::check(arguments.output.as_deref())?;
    arguments.show.check()?;
    let stop = interrupt::stop_when_put_back()?;
    let bar = terminal::Bar::new();
    let ends = ends(arguments, &stop)?;
    let defaults = Options::default();
    let (seconds, warm_up) = if arguments.quick {
        (0.7, 0.3)
    } else {
        (defaults.seconds, defaults.warm_up)
    };
    let options = Options {
        seconds,
        warm_up,
        budget: arguments.budget,
        confirm_within: arguments.confirm_within.unwrap_or(CONFIRM_WITHIN),
        only: arguments.only.clone(),
        ..defaults
    };
    let mut recorded = arguments
        .from
        .as_deref()
        .map(|path| recording(path, &ends, arguments.expect))
        .transpose()?;
    let mut diagnose = || match recorded.take() {
        Some(evidence) => {
            let diagnosis = judge(&evidence);
            Ok((evidence, diagnosis))
        }
        None => diagnosis(&ends, arguments, &bar).map_err(stopped_or_failed),
    };
    let outcome = wirespeed_tune::tune(&ends, &options, &mut diagnose, &bar)?;
    let asked = arguments.yes && outcome.confirm_within.is_some();
    let confirming = asked.then(|| confirm_waiting(&machines_of(&ends)));
    let confirmed = matches!(confirming, Some(Ok(_)));
    bar.finish();
    let exit = exit_of(&outcome);
    complain_of_what_is_left(outcome.recovered.iter().map(|(host, one)| (host, one)));
    let record = TuneRecord::new(outcome, confirmed);
    if arguments.show.json {
        terminal::print_json(&record)?;
    } else {
        let look = terminal::look(arguments.show.details());
        terminal::answer(&wirespeed_report::tune(
            &record,
            &arguments.far.as_typed(),
            &look,
        ))?;
    }
    if let Some(path) = &arguments.output {
        files::write(path, &terminal::json(&record)?)?;
    }
    arguments
        .show
        .write_html(|| wirespeed_report::html::tune(&record, &arguments.far.as_typed()))?;
    confirming.transpose()?;
    Ok(exit)
}

/// Both ends of the tunnel. An interface that is not there and has the name of a further command was typed as that command,
/// behind options, where it is none.
fn ends(arguments: &Arguments, stop: &Stop) -> Result<Ends, Failure> {
    let ends = arguments.far.ends(arguments.interface.as_deref(), stop);
    ends.map_err(|error| {
        let todo = match &error {
            MeasureError::NoSuchInterface { interface, .. } if After::has_subcommand(interface) => {
                Some(say!("cli-further-command-todo", command = interface))
            }
            _ => None,
        };
        let mut failure = Failure::from(error);
        if let Some(todo) = todo {
            failure.text.todo = todo;
        }
        failure
    })
}

pub(super) fn exit_of(outcome: &Outcome) -> Exit {
    if !outcome.kept.is_empty() {
        return Exit::Done;
    }
    match (outcome.experiments.is_empty(), outcome.diagnosis.verdict) {
        (false, _) => Exit::Refused,
        (true, Verdict::Healthy) => Exit::Done,
        (true, Verdict::Findings) => Exit::Findings,
        (true, Verdict::Unmeasured) => Exit::Unmeasured,
    }
}

fn plan(arguments: &Arguments) -> Result<Exit, Failure> {
    files::check(arguments.output.as_deref())?;
    let stop = interrupt::stop_soon()?;
    let bar = terminal::Bar::new();
    let ends = ends(arguments, &stop)?;
    let mut diagnosis = match &arguments.from {
        Some(path) => judge(&recording(path, &ends, arguments.expect)?),
        None => diagnosis(&ends, arguments, &bar)?.1,
    };
    bar.finish();
    if !arguments.only.is_empty() {
        diagnosis
            .findings
            .retain(|finding| arguments.only.contains(&finding.code));
    }
    let scripts = wirespeed_tune::plan(&diagnosis);
    let plan = PlanRecord {
        schema: Schema::TUNE_PLAN,
        verdict: diagnosis.verdict,
        plan: scripts
            .into_iter()
            .map(|script| (script.host, script.text))
            .collect(),
    };
    if arguments.show.json {
        terminal::print_json(&plan)?;
    } else {
        terminal::print(&wirespeed_report::plan(&plan))?;
    }
    if let Some(path) = &arguments.output {
        files::write(path, &terminal::json(&plan)?)?;
    }
    Ok(match diagnosis.verdict {
        Verdict::Healthy => Exit::Done,
        Verdict::Findings => Exit::Findings,
        Verdict::Unmeasured => Exit::Unmeasured,
    })
}

fn diagnosis(
    ends: &Ends,
    arguments: &Arguments,
    progress: &dyn Progress,
) -> Result<(Evidence, Diagnosis), MeasureError> {
    let options = wirespeed_doctor::Options {
        quick: arguments.quick,
        expect: arguments.expect,
        ..wirespeed_doctor::Options::default()
    };
    let evidence = investigate(ends, &options, progress)?;
    let diagnosis = judge(&evidence);
    Ok((evidence, diagnosis))
}

/// A recording that may stand for the first diagnosis: of this tunnel, on this machine, and fresh.
fn recording(path: &Path, ends: &Ends, expect: Option<f64>) -> Result<Evidence, Failure> {
    let todo = say!("cli-recording-anew");
    let mut evidence: Evidence = files::read_json(path, &say!("cli-recording"), &todo)?;
    let refuse = |why: String| {
        let path = path.display().to_string();
        Failure::here(
            Exit::Refused,
            say!("cli-recording-refused", path = path, why = why),
            todo.as_str(),
        )
    };
    let (then, now) = (&evidence.here.host, &ends.here_facts.host);
    if evidence.interface != ends.interface
        || evidence.peer.as_ref() != Some(&ends.peer)
        || then.boot_id != now.boot_id
        || then.netns != now.netns
    {
        return Err(refuse(say!("cli-recording-of-another")));
    }
    let age = ends.here_facts.taken_at - evidence.here.taken_at;
    if !(0.0..RECORDING_AT_MOST).contains(&age) {
        return Err(refuse(say!("cli-recording-too-old")));
    }
    evidence.expected_rate = expect.or(evidence.expected_rate);
    Ok(evidence)
}

fn stopped_or_failed(error: MeasureError) -> TuneError {
    match error {
        MeasureError::Stopped => TuneError::Stopped,
        other => other.into(),
    }
}

fn machines_of(ends: &Ends) -> Vec<Machine> {
    std::iter::once(&ends.here)
        .chain(ends.far_machine())
        .cloned()
        .collect()
}

/// Confirms on every machine where something waits; returns how many those are.
fn confirm_waiting(machines: &[Machine]) -> Result<usize, Failure> {
    let mut confirmed = 0;
    for machine in machines {
        if let State::Kept { .. } = wirespeed_tune::status(machine)?.state {
            wirespeed_tune::confirm(machine).map_err(Failure::of_change)?;
            confirmed += 1;
        }
    }
    Ok(confirmed)
}

fn confirm(both: &Both) -> Result<Exit, Failure> {
    let machines = both.far.machines()?;
    if confirm_waiting(&machines)? == 0 {
        let both = |one: String, other: String| say!("doctor-both", one = one, other = other);
        let names = machines.iter();
        let names = names.map(|machine| wirespeed_report::told(machine.name()));
        let names = names.reduce(both).unwrap_or_default();
        return Err(Failure::here(
            Exit::Refused,
            say!("cli-nothing-to-confirm", machines = names),
            say!("cli-nothing-to-confirm-todo"),
        ));
    }
    show_status(both, terminal::answer)
}

fn undo(both: &Both) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for machine in both.far.machines()? {
        let outcomes = wirespeed_tune::undo(&machine).map_err(Failure::of_change)?;
        all.push((machine.name().to_owned(), outcomes));
    }
    let failed = all
        .iter()
        .flat_map(|(_, outcomes)| outcomes)
        .any(|outcome| matches!(outcome.result, PutBackResult::Failed { .. }));
    let outcomes = all
        .iter()
        .flat_map(|(machine, outcomes)| outcomes.iter().map(move |outcome| (machine, outcome)));
    complain_of_what_is_left(outcomes);
    if both.json {
        terminal::print_json(&UndoRecord {
            schema: Schema::TUNE_UNDO,
            machines: all,
        })?;
    } else {
        terminal::answer(&wirespeed_report::put_back(&all, &terminal::look(false)))?;
    }
    Ok(if failed { Exit::Refused } else { Exit::Done })
}

/// What could not be put back is told of even where the answer, which says so, is not shown.
fn complain_of_what_is_left<'a>(outcomes: impl Iterator<Item = (&'a String, &'a PutBack)>) {
    if terminal::is_quiet() {
        for line in wirespeed_report::not_put_back(outcomes) {
            terminal::complain(&line);
        }
    }
}

fn status(both: &Both) -> Result<Exit, Failure> {
    show_status(both, terminal::print)
}

fn show_status(both: &Both, show: fn(&str) -> Result<(), Failure>) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for machine in both.far.machines()? {
        let status = wirespeed_tune::status(&machine)?;
        all.push((machine.name().to_owned(), status));
    }
    if both.json {
        terminal::print_json(&StatusRecord {
            schema: Schema::TUNE_STATUS,
            machines: all,
        })?;
    } else {
        show(&wirespeed_report::tune_status(&all, &terminal::look(false)))?;
    }
    Ok(Exit::Done)
}

fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(wirespeed_doctor::codes().into_iter().map(|(code, _)| code))
}

/// `wirespeed tune-watch`: the watchdog of a tune, started by the agent that makes the changes.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// The journal that says how to put things back.
    #[arg(long)]
    journal: PathBuf,
}

pub(crate) fn watch(arguments: &WatchArguments) -> Result<Exit, Failure> {
    wirespeed_tune::watch::run(&arguments.journal)?;
    Ok(Exit::Done)
}
