//! The tune itself: diagnose → try the remedy of the worst finding → keep or put back → diagnose again.
//!
//! A diagnosis takes as long as an experiment, and the same fault often stands at both ends. So the remedies of one code
//! are all tried, each by itself, before the next diagnosis; whatever else was found waits for that one, because a
//! remedy may have been its remedy too.

mod record;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wirespeed_doctor::{Change, Diagnosis, End, Evidence, Finding, Goal, Remedy};
use wirespeed_measure::{Direction, Ends, Load, NotMeasured, Progress, Protocol, Sample, Via};
use wirespeed_settings::Setting;
use wirespeed_words::say;

pub(crate) use self::record::Figures;
use self::record::{directions, knobs, record, stage};
use crate::decision::{Trial, decide};
use crate::hands::Hands;
use crate::{ChangeMade, Experiment, Outcome, PutBack, Stage, TuneError};

/// Overhead of one load: start, end, counters, switch.
const LOAD_OVERHEAD: f64 = 1.0;

/// Seconds of load, warm-up included, in which a deep queue fills far enough to tell two queues apart.
const FILLS_A_QUEUE: f64 = 2.0;

/// How a tune is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Pairs of each experiment, at least 5 for a proof.
    pub pairs: u32,
    /// Pairs at most, where a gain is likely and not yet proved.
    pub pairs_most: u32,
    /// Seconds of one load after its warm-up.
    pub seconds: f64,
    /// Seconds thrown away before.
    pub warm_up: f64,
    /// Parallel connections.
    pub streams: u32,
    /// No experiment is begun that would end after this.
    pub budget: Duration,
    /// Time to confirm what was kept.
    pub confirm_within: Duration,
    /// Codes of the findings to mend; empty = all.
    pub only: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pairs: 5,
            pairs_most: 9,
            seconds: 3.0,
            warm_up: 1.0,
            streams: 4,
            budget: Duration::from_secs(15 * 60),
            confirm_within: Duration::from_secs(10 * 60),
            only: Vec::new(),
        }
    }
}

/// Tunes the tunnel between two ends. `diagnose` investigates and judges; it is called at the beginning and after
/// every remedy that was kept.
///
/// When this returns `Ok`, the changes in `kept` are in force and the watchdogs wait for them to be confirmed; when it
/// returns `Err`, everything was put back, or the watchdogs are about to.
///
/// # Errors
/// When another tune is at work, a machine or the first diagnosis fails, or it was stopped.
pub fn tune(
    ends: &Ends,
    options: &Options,
    diagnose: &mut dyn FnMut() -> Result<(Evidence, Diagnosis), TuneError>,
    progress: &dyn Progress,
) -> Result<Outcome, TuneError> {
    let interface = ends.interface.clone();
    let mut stage_of =
        || diagnose().map(|(evidence, diagnosis)| (Figures::of(&evidence), diagnosis));
    drive(ends, interface, options, &mut stage_of, progress)
}

pub(crate) fn drive(
    hands: &dyn Hands,
    interface: String,
    options: &Options,
    diagnose: &mut dyn FnMut() -> Result<(Figures, Diagnosis), TuneError>,
    progress: &dyn Progress,
) -> Result<Outcome, TuneError> {
    let started_at = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut tuner = Tuner {
        hands,
        options,
        progress,
        started: Instant::now(),
        tried: Vec::new(),
        kept: Vec::new(),
        experiments: Vec::new(),
        not_tried: Vec::new(),
    };
    let recovered = tuner.begin()?;
    let mut run = tuner
        .run(diagnose)
        .inspect_err(|error| undo_all(hands, &error.to_string()))?;
    if let Err(error) = tuner.hand_over() {
        undo_all(hands, &error.to_string());
        tuner.nothing_kept(&error.said());
        run.ended_early = Some(say!("tune-ended-put-back", error = error.said()));
    }
    let confirm_within = (!tuner.kept.is_empty()).then_some(options.confirm_within.as_secs_f64());
    progress.step(&say!("doctor-step-done"), 1.0, 0.0);
    Ok(Outcome {
        interface,
        started_at: started_at.ok().map(|since| since.as_secs_f64()),
        experiments: tuner.experiments,
        stages: run.stages,
        kept: tuner.kept,
        confirm_within,
        not_tried: tuner.not_tried,
        ended_early: run.ended_early,
        recovered,
        diagnosis: run.diagnosis,
    })
}

/// The machines changes can be made on.
fn ends_of(hands: &dyn Hands) -> Vec<End> {
    [End::Here, End::Far]
        .into_iter()
        .filter(|end| hands.reachable(*end).is_some())
        .collect()
}

fn undo_all(hands: &dyn Hands, why: &str) {
    for end in ends_of(hands) {
        // The watchdog does it where we can't.
        let _reported = hands.undo(end, why);
    }
}

struct Tuner<'a> {
    hands: &'a dyn Hands,
    options: &'a Options,
    progress: &'a dyn Progress,
    started: Instant,
    /// Code and knobs of every remedy tried; the same knob is not tried twice for the same finding.
    tried: Vec<(String, Vec<(End, Setting)>)>,
    kept: Vec<ChangeMade>,
    experiments: Vec<Experiment>,
    not_tried: Vec<NotMeasured>,
}

struct Run {
    stages: Vec<Stage>,
    diagnosis: Diagnosis,
    ended_early: Option<String>,
}

impl Tuner<'_> {
    fn run(
        &mut self,
        diagnose: &mut dyn FnMut() -> Result<(Figures, Diagnosis), TuneError>,
    ) -> Result<Run, TuneError> {
        self.report(&say!("tune-step-diagnosing"));
        let (figures, diagnosis) = diagnose()?;
        let mut run = Run {
            stages: vec![stage("before", figures, &diagnosis)],
            diagnosis,
            ended_early: None,
        };
        // The code a remedy of which was kept since the last diagnosis.
        let mut mended: Option<String> = None;
        loop {
            if self.hands.stopped() {
                return Err(TuneError::Stopped);
            }
            let next = match &mended {
                Some(code) => self.next_of(code, &run.diagnosis),
                None => self.next(&run.diagnosis),
            };
            let needed = next
                .as_ref()
                .map(|(finding, remedy)| self.seconds_of(finding, remedy.goal));
            let affordable = needed.is_none_or(|needed| needed <= self.left());
            let Some((finding, remedy)) = next.filter(|_| affordable) else {
                if let Some(code) = mended.take() {
                    self.report(&say!("tune-step-diagnosing-again"));
                    let (figures, diagnosis) = diagnose()?;
                    run.stages.push(stage(&code, figures, &diagnosis));
                    run.diagnosis = diagnosis;
                    continue;
                }
                run.ended_early = needed
                    .filter(|_| !affordable)
                    .map(|needed| say!("tune-ended-time", seconds = needed.round()));
                return Ok(run);
            };
            self.tried.push((finding.code.clone(), knobs(&remedy)));
            match self.experiment(&finding, &remedy) {
                Ok(false) => {}
                Ok(true) => mended = Some(finding.code),
                Err(TuneError::Stopped) => return Err(TuneError::Stopped),
                Err(error) => {
                    // What was proved before stays; if the watchdog has put it back, handing it over will say so.
                    self.not_tried.push(NotMeasured {
                        what: finding.code.clone(),
                        because: error.said(),
                    });
                    run.ended_early = Some(say!(
                        "tune-ended-failed",
                        code = &finding.code,
                        error = error.said()
                    ));
                    return Ok(run);
                }
            }
        }
    }

    /// Another finding of the same code whose knobs nobody has turned yet.
    fn next_of(&self, code: &str, diagnosis: &Diagnosis) -> Option<(Finding, Remedy)> {
        diagnosis
            .findings
            .iter()
            .filter(|finding| finding.code == code && finding.consequence_of.is_none())
            .find_map(|finding| {
                let remedy = finding
                    .remedies
                    .iter()
                    .find(|remedy| !remedy.changes.is_empty())?;
                let own = knobs(remedy);
                let new = self
                    .tried
                    .iter()
                    .all(|(_, turned)| own.iter().all(|knob| !turned.contains(knob)));
                let possible = remedy
                    .changes
                    .iter()
                    .all(|change| self.hands.reachable(change.end).is_some());
                (new && possible).then(|| (finding.clone(), remedy.clone()))
            })
    }

    /// The worst finding with a remedy that was not tried and can be.
    fn next(&mut self, diagnosis: &Diagnosis) -> Option<(Finding, Remedy)> {
        let only = &self.options.only;
        let wanted = |finding: &&Finding| only.is_empty() || only.contains(&finding.code);
        // A consequence waits for its cause; but where the cause is nothing tune can mend, the consequence may be.
        let mendable = |cause: &Finding| {
            let mut remedies = cause.remedies.iter();
            remedies.any(|remedy| !remedy.changes.is_empty())
        };
        let own = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.consequence_of.is_none());
        let left = diagnosis.findings.iter().filter(|finding| {
            let cause = finding.cause_in(&diagnosis.findings);
            finding.consequence_of.is_some()
                && (only.contains(&finding.code)
                    || !cause.is_some_and(|cause| mendable(&diagnosis.findings[cause])))
        });
        for finding in own.chain(left).filter(wanted) {
            for remedy in finding
                .remedies
                .iter()
                .filter(|remedy| !remedy.changes.is_empty())
            {
                let known = (finding.code.clone(), knobs(remedy));
                if self.tried.contains(&known) {
                    continue;
                }
                match remedy
                    .changes
                    .iter()
                    .find(|change| self.hands.reachable(change.end).is_none())
                {
                    None => return Some((finding.clone(), remedy.clone())),
                    Some(change) => {
                        self.tried.push(known);
                        self.not_tried.push(NotMeasured {
                            what: say!(
                                "tune-not-tried",
                                code = &finding.code,
                                remedy = &remedy.title
                            ),
                            because: say!(
                                "tune-not-tried-far",
                                setting = change.setting.describe()
                            ),
                        });
                    }
                }
            }
        }
        None
    }

    /// A B A B …; ends with the remedy in force when it is kept, and put back when it is not.
    fn experiment(&mut self, finding: &Finding, remedy: &Remedy) -> Result<bool, TuneError> {
        let directions = directions(finding);
        let mut trials: Vec<Trial> = Vec::new();
        let mut samples = Vec::new();
        let mut made: Vec<ChangeMade> = Vec::new();
        let decision = loop {
            let taken = trials.len() as u32;
            let mut side = |tuner: &Self, changed: u32| -> Result<Vec<Sample>, TuneError> {
                tuner.report_pair(finding, remedy.goal, taken, changed);
                tuner.hands.settle()?;
                let taken = directions
                    .iter()
                    .map(|&direction| tuner.hands.sample(&tuner.load(direction, remedy.goal)))
                    .collect::<Result<Vec<_>, _>>()?;
                samples.extend(taken.iter().cloned());
                Ok(taken)
            };
            let pair = side(self, 0).and_then(|a| {
                self.apply(remedy, &mut made)?;
                Ok(Trial {
                    a,
                    b: side(self, 1)?,
                })
            });
            match pair {
                Ok(pair) => trials.push(pair),
                Err(error) => {
                    // What can't be put back here, the watchdog puts back.
                    let _reported = self.revert(&made);
                    return Err(error);
                }
            }
            let decision = decide(remedy.goal, &trials);
            let taken = trials.len() as u32;
            let enough = taken >= self.options.pairs.max(2);
            let more = decision.open
                && taken < self.options.pairs_most
                && self.left() > self.seconds_of_pair(finding, remedy.goal);
            if enough && !more {
                break decision;
            }
            self.revert(&made)?;
        };
        if !decision.kept {
            self.revert(&made)?;
        }
        let kept = decision.kept;
        self.experiments
            .push(record(finding, remedy, decision, &made, samples));
        if kept {
            for change in made {
                // A knob kept before keeps its first value as the one to go back to.
                if let Some(earlier) = self
                    .kept
                    .iter_mut()
                    .find(|earlier| earlier.end == change.end && earlier.setting == change.setting)
                {
                    earlier.after = change.after;
                } else {
                    self.kept.push(change);
                }
            }
        }
        Ok(kept)
    }

    fn apply(&self, remedy: &Remedy, made: &mut Vec<ChangeMade>) -> Result<(), TuneError> {
        made.clear();
        for Change {
            end,
            setting,
            value,
        } in &remedy.changes
        {
            let applied = self.hands.apply(*end, setting, value)?;
            made.push(ChangeMade {
                end: *end,
                host: self.hands.reachable(*end).unwrap_or_default(),
                setting: setting.clone(),
                before: applied.before,
                after: applied.after,
            });
        }
        Ok(())
    }

    /// Back to how it was before this experiment, newest first. A knob that an earlier experiment has kept goes back
    /// to the value kept, and stays in the journal with its very first.
    fn revert(&self, made: &[ChangeMade]) -> Result<(), TuneError> {
        for change in made.iter().rev() {
            let kept = self
                .kept
                .iter()
                .any(|earlier| earlier.end == change.end && earlier.setting == change.setting);
            if kept {
                self.hands
                    .apply(change.end, &change.setting, &change.before)?;
            } else {
                self.hands.revert(change.end, &change.setting)?;
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<Vec<(String, PutBack)>, TuneError> {
        // Longer than everything can take: the last resort of a machine whose other side is silently gone.
        let trial_seconds = self.options.budget.as_secs_f64() * 2.0 + 300.0;
        let mut recovered = Vec::new();
        for end in ends_of(self.hands) {
            match self.hands.begin(end, trial_seconds) {
                Ok(found) => {
                    let name = self.hands.reachable(end).unwrap_or_default();
                    recovered.extend(found.into_iter().map(|outcome| (name.clone(), outcome)));
                }
                Err(error) => {
                    if end == End::Far {
                        let _reported = self.hands.undo(End::Here, "the far end could not begin");
                    }
                    return Err(error);
                }
            }
        }
        Ok(recovered)
    }

    /// The experiments are over: the watchdogs wait for the user.
    fn hand_over(&mut self) -> Result<(), TuneError> {
        let within = self.options.confirm_within.as_secs_f64();
        for end in ends_of(self.hands) {
            let settings = self
                .kept
                .iter()
                .filter(|change| change.end == end)
                .map(|change| change.setting.clone())
                .collect();
            self.hands.keep(end, settings, within)?;
        }
        Ok(())
    }

    /// What was kept has been put back after all.
    fn nothing_kept(&mut self, why: &str) {
        self.kept.clear();
        for experiment in self
            .experiments
            .iter_mut()
            .filter(|experiment| experiment.kept)
        {
            experiment.kept = false;
            experiment.why = say!("tune-why-put-back", before = &experiment.why, why = why);
        }
    }

    fn load(&self, direction: Direction, goal: Goal) -> Load {
        Load {
            via: Via::Tunnel,
            direction,
            protocol: Protocol::Tcp,
            streams: self.options.streams,
            seconds: self.seconds(goal),
            warm_up: self.options.warm_up,
            congestion_control: None,
            rate: None,
        }
    }

    /// Seconds measured of one load.
    fn seconds(&self, goal: Goal) -> f64 {
        let least = match goal {
            Goal::Goodput => 0.0,
            Goal::LoadedRtt => FILLS_A_QUEUE - self.options.warm_up,
        };
        self.options.seconds.max(least)
    }

    fn seconds_of_pair(&self, finding: &Finding, goal: Goal) -> f64 {
        let one = self.seconds(goal) + self.options.warm_up + LOAD_OVERHEAD;
        one * 2.0 * directions(finding).len() as f64
    }

    fn seconds_of(&self, finding: &Finding, goal: Goal) -> f64 {
        self.seconds_of_pair(finding, goal) * f64::from(self.options.pairs)
    }

    fn left(&self) -> f64 {
        self.options
            .budget
            .saturating_sub(self.started.elapsed())
            .as_secs_f64()
    }

    fn report(&self, what: &str) {
        let all = self.options.budget.as_secs_f64().max(1.0);
        let done = self.started.elapsed().as_secs_f64() / all;
        self.progress.step(what, done.min(1.0), self.left());
    }

    /// How far this experiment is, by the sides of its pairs; more pairs than planned are told as they come.
    fn report_pair(&self, finding: &Finding, goal: Goal, taken: u32, changed: u32) {
        let pairs = self.options.pairs.max(taken + 1);
        let (done, all) = (f64::from(taken * 2 + changed), f64::from(pairs * 2));
        let (code, pair) = (&finding.code, taken + 1);
        let what = if changed == 0 {
            say!(
                "tune-step-as-it-was",
                code = code,
                pair = pair,
                pairs = pairs
            )
        } else {
            say!("tune-step-changed", code = code, pair = pair, pairs = pairs)
        };
        let left = (all - done) / 2.0 * self.seconds_of_pair(finding, goal);
        self.progress.step(&what, done / all, left);
    }
}
