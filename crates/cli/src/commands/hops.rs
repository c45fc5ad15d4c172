//! `wirespeed doctor --hop …`: a chain of machines, hop by hop and as a whole.

use wirespeed_doctor::{HopReport, Options, Verdict, WorstHop, investigate, judge, judge_hops};
use wirespeed_measure::{Chain, ChainPlan, Direction, MeasureError, Stop};
use wirespeed_reach::{Machine, Place};
use wirespeed_report::{DoctorRecord, HopsRecord};
use wirespeed_words::say;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::far::FarOptions;
use crate::{interrupt, terminal};

/// Rounds: as many as a verdict needs.
const ROUNDS: u32 = 5;

/// What was asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) interface: Option<&'a str>,
    pub(crate) hops: &'a [Place],
    pub(crate) quick: bool,
    pub(crate) far: &'a FarOptions,
    pub(crate) show: &'a terminal::Show,
}

pub(crate) fn run(wanted: &Wanted<'_>) -> Result<Exit, Failure> {
    let stop = interrupt::stop_soon()?;
    let bar = terminal::Bar::new();
    let chain = Chain::discover(&machines(wanted)?, wanted.interface, &stop)?;
    let (seconds, warm_up) = if wanted.quick { (0.7, 0.3) } else { (1.5, 0.5) };
    let plan = ChainPlan {
        directions: vec![Direction::Upload, Direction::Download],
        streams: 1,
        seconds,
        warm_up,
        rounds: ROUNDS,
        seed: 1,
    };
    let mut report = judge_hops(chain.measure(&plan, &bar)?);
    let doctor = look_at(&chain, &mut report, wanted.quick, &stop, &bar)?;
    bar.finish();
    let record = HopsRecord::new(report, doctor);
    if wanted.show.json {
        terminal::print_json(&record)?;
    } else {
        let look = terminal::look(wanted.show.details());
        terminal::answer(&wirespeed_report::hops(&record, &look))?;
    }
    wanted
        .show
        .write_html(|| wirespeed_report::html::hops(&record))?;
    Ok(match record.report.verdict {
        Verdict::Healthy => Exit::Done,
        Verdict::Findings => Exit::Findings,
        Verdict::Unmeasured => Exit::Unmeasured,
    })
}

/// From here over each hop to the far end.
fn machines(wanted: &Wanted<'_>) -> Result<Vec<Machine>, Failure> {
    let Some(far) = &wanted.far.far else {
        return Err(Failure::here(
            Exit::Usage,
            say!("cli-hop-without-far"),
            say!("cli-hop-without-far-todo"),
        ));
    };
    let options = wanted.far.open_options();
    std::iter::once(&Place::Here)
        .chain(wanted.hops)
        .chain(std::iter::once(far))
        .map(|place| match place {
            Place::Iperf3 { .. } => Err(Failure::here(
                Exit::Usage,
                say!("cli-no-hop", place = place.to_string()),
                say!("cli-no-hop-todo"),
            )),
            place => Ok(Machine::open(place, &options)?),
        })
        .collect()
}

/// The doctor's look at the worst hop, where its tunnel loses too much. What was measured of the chain is told in any case.
fn look_at(
    chain: &Chain,
    report: &mut HopReport,
    quick: bool,
    stop: &Stop,
    bar: &terminal::Bar,
) -> Result<Option<DoctorRecord>, Failure> {
    let Some(WorstHop {
        hop, tunnel: true, ..
    }) = report.worst
    else {
        return Ok(None);
    };
    let mut ends = chain.hops[hop].ends.clone();
    ends.stop = stop.clone();
    let options = Options {
        quick,
        ..Options::default()
    };
    match investigate(&ends, &options, bar) {
        Ok(evidence) => Ok(Some(DoctorRecord::new(&evidence, &judge(&evidence)))),
        Err(MeasureError::Stopped) => Err(Failure::interrupted()),
        Err(error) => {
            let remark = say!("cli-hop-not-seen", error = error.said());
            report.remarks.push(remark);
            Ok(None)
        }
    }
}
