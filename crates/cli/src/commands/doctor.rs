//! `wirespeed doctor`: what is wrong, worst first.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wirespeed_doctor::{Diagnosis, Evidence, FarKind, Options, Verdict, investigate, judge, watch};
use wirespeed_measure::LONGEST_WATCH;
use wirespeed_reach::Place;
use wirespeed_report::{DoctorRecord, Schema, Versioned};
use wirespeed_words::{quoted, say};

use crate::commands::hops;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::far::{FarOptions, place};
use crate::{files, interrupt, numbers, terminal};

/// Find out why the tunnel is slow: observe, probe, load, and say what is wrong, worst first. Changes nothing.
///
/// Every finding shows the counter, file or probe it rests on. What could not be checked is listed with the reason, and
/// so is what people try that would not help here.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespeed doctor wg0 --far ssh://root@nas
  wirespeed doctor wg0 --far ssh://root@nas --quick
  wirespeed doctor wg0 --far ssh://root@nas --expect 300mbit
  wirespeed doctor wg0 --far iperf3://nas.example.org      when wirespeed can't run there
  wirespeed doctor wg0                                     what this side alone can know
  wirespeed doctor wg0 --passive --for 60s                 without any load of its own
  wirespeed doctor wg0 --hop ssh://hub --far ssh://nas     hop by hop, and which one is the worst
  wirespeed doctor wg0 --far ssh://root@nas --record slow.json
  wirespeed doctor --from slow.json                        judge a recording, on any machine")]
pub(crate) struct Arguments {
    /// The WireGuard interface; may be left out when there is exactly one.
    interface: Option<String>,

    /// Under 45 seconds on a healthy tunnel, 65 with a round trip of 80 ms: shorter samples, so wider intervals.
    #[arg(long)]
    quick: bool,

    /// Make no load: watch what flows through the tunnel already, and say what that tells and what it can't.
    #[arg(long, conflicts_with_all = ["quick", "hop", "from", "expect", "sweep"])]
    passive: bool,

    /// How long to watch: 60s, 5m, or a number of seconds; an hour at most.
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = watch_time,
        default_value = "60s",
        requires = "passive"
    )]
    watch_for: Duration,

    /// Also search for the highest rate that stays stable, and show the table of rates tried.
    #[arg(long, conflicts_with_all = ["from", "hop"])]
    sweep: bool,

    /// A machine on the way to the other end (a hub, a gateway), in the order in which the traffic passes them;
    /// repeatable. Each hop is measured by itself, outside its tunnel and through it, and all of them together.
    #[arg(long, value_name = "PLACE", value_parser = place, requires = "far", conflicts_with_all = ["expect", "record", "from", "peer", "bare_address", "tunnel_address"])]
    hop: Vec<Place>,

    /// What you expect of the line: 300mbit, 1.5gbit.
    #[arg(long, value_name = "RATE", value_parser = numbers::rate)]
    expect: Option<f64>,

    /// Write everything that was measured to a file, for --from.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Judge a recording instead of measuring.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "quick", "record", "far", "peer"])]
    from: Option<PathBuf>,

    #[command(flatten)]
    far: FarOptions,

    #[command(flatten)]
    pub(crate) show: terminal::Show,
}

impl Arguments {
    /// That of the answer, when the user asked for JSON.
    pub(crate) fn schema(&self) -> Option<Schema> {
        let schema = if self.hop.is_empty() {
            Schema::DOCTOR
        } else {
            Schema::HOPS
        };
        self.show.json.then_some(schema)
    }
}

fn watch_time(text: &str) -> Result<Duration, String> {
    let time = numbers::duration(text)?;
    if time > LONGEST_WATCH {
        return Err(say!("cli-longer-than-an-hour", text = quoted(text)));
    }
    Ok(time)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.show.check()?;
    if !arguments.hop.is_empty() {
        return hops::run(&hops::Wanted {
            interface: arguments.interface.as_deref(),
            hops: &arguments.hop,
            quick: arguments.quick,
            far: &arguments.far,
            show: &arguments.show,
        });
    }
    let evidence = match &arguments.from {
        Some(path) => {
            let mut evidence: Evidence =
                files::read_json(path, &say!("cli-recording"), &say!("cli-recording-todo"))?;
            evidence.expected_rate = arguments.expect.or(evidence.expected_rate);
            evidence
        }
        None => measure(arguments)?,
    };
    let diagnosis = judge(&evidence);
    show(&evidence, &diagnosis, arguments)?;
    if let Some(path) = &arguments.record {
        files::write(
            path,
            &terminal::json(&Versioned::of(Schema::EVIDENCE, &evidence))?,
        )?;
    }
    Ok(match diagnosis.verdict {
        Verdict::Healthy => Exit::Done,
        Verdict::Findings => Exit::Findings,
        // A watch that saw nothing wrong did what it was asked for.
        Verdict::Unmeasured if evidence.passive.is_some() => Exit::Done,
        Verdict::Unmeasured => Exit::Unmeasured,
    })
}

fn measure(arguments: &Arguments) -> Result<Evidence, Failure> {
    files::check(arguments.record.as_deref())?;
    let stop = interrupt::stop_soon()?;
    let bar = terminal::Bar::new();
    let ends =
        arguments
            .far
            .ends_or_busiest(arguments.interface.as_deref(), &stop, arguments.passive)?;
    if arguments.passive {
        let evidence = watch(&ends, arguments.watch_for.as_secs_f64(), &bar)?;
        bar.finish();
        return Ok(evidence);
    }
    let options = Options {
        quick: arguments.quick,
        expect: arguments.expect,
        sweep: arguments.sweep,
        ..Options::default()
    };
    let evidence = investigate(&ends, &options, &bar)?;
    bar.finish();
    Ok(evidence)
}

fn show(evidence: &Evidence, diagnosis: &Diagnosis, arguments: &Arguments) -> Result<(), Failure> {
    let record = DoctorRecord::new(evidence, diagnosis);
    let far = match arguments.from {
        Some(_) => as_recorded(evidence, &arguments.far).as_typed(),
        None => arguments.far.as_typed(),
    };
    if arguments.show.json {
        terminal::print_json(&record)?;
    } else {
        let look = terminal::look(arguments.show.details());
        terminal::answer(&wirespeed_report::doctor(&record, &far, &look))?;
    }
    arguments
        .show
        .write_html(|| wirespeed_report::html::doctor(&record, &far))
}

/// With the other end that a recording was made with, where its name says how to reach it: what an answer gives to type from
/// one side alone would measure too little.
fn as_recorded(evidence: &Evidence, typed: &FarOptions) -> FarOptions {
    let far = match evidence.far_kind {
        FarKind::Wirespeed | FarKind::Iperf3 => evidence.far_name.parse().ok(),
        FarKind::Nothing => None,
    };
    FarOptions {
        far,
        ..typed.clone()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn a_recording_brings_its_other_end() {
        let recorded = include_str!("../../../doctor/tests/cases/socket-overflow.json");
        let mut evidence: Evidence = serde_json::from_str(recorded).expect("a recording");
        let line = "doctor --from slow.json";
        let Alone { arguments } = Alone::try_parse_from(line.split(' ')).expect("arguments");
        for (kind, name, typed) in [
            (
                FarKind::Wirespeed,
                "ssh://root@nas",
                " --far ssh://root@nas",
            ),
            (FarKind::Wirespeed, "netns:b", " --far netns:b"),
            (
                FarKind::Iperf3,
                "iperf3://nas:5201",
                " --far iperf3://nas:5201",
            ),
            // A name that somebody gave it.
            (FarKind::Wirespeed, "server", ""),
            (FarKind::Nothing, "here", ""),
        ] {
            evidence.far_kind = kind;
            name.clone_into(&mut evidence.far_name);
            assert_eq!(as_recorded(&evidence, &arguments.far).as_typed(), typed);
        }
    }

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn refusal(line: &str) -> Option<ErrorKind> {
        Alone::try_parse_from(line.split(' '))
            .err()
            .map(|error| error.kind())
    }

    #[test]
    fn a_watch_lasts_an_hour_at_most() {
        assert_eq!(refusal("doctor wg0 --passive --for 1h"), None);
        assert_eq!(
            refusal("doctor wg0 --passive --for 2h"),
            Some(ErrorKind::ValueValidation)
        );
    }

    /// What they say of one tunnel can't hold for each hop.
    #[test]
    fn a_chain_takes_no_peer_and_no_addresses() {
        let chain = "doctor wg0 --hop ssh://hub --far ssh://nas";
        assert_eq!(refusal(chain), None);
        for option in [
            "--peer KEY",
            "--bare-address 192.0.2.1",
            "--tunnel-address 10.9.0.2",
        ] {
            assert_eq!(
                refusal(&format!("{chain} {option}")),
                Some(ErrorKind::ArgumentConflict)
            );
        }
    }
}
