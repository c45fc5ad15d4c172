//! What the checks ask for once the loads are known: the cheapest first, each once, as long as there is time.

use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use wirespeed_measure::{AbPlan, Direction, Load, MeasureError, Protocol, Side, Via, ab, goodput};
use wirespeed_words::{say, units};

use super::{Driver, Part, SEED, is_final};
use crate::causes::{CHECKS, sender_uses};
use crate::probe::{Datagrams, Probe, together};
use crate::road;
use crate::view::{FEWEST_PAIRS, sender};
use crate::{Asked, CongestionTrial, Evidence, FarKind};

/// What is tried in place of a congestion control that backs off from loss.
const TRIED: &str = "bbr";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// The shortest time in which a trial can take its pairs; the first direction that needs one gets it in any case.
const TRIAL_LEAST: Duration = Duration::from_secs(16);
/// What iperf3's control connection takes beside each of its loads where these are short, seconds: a round trip of 50 ms.
const SHORT_TALK: f64 = 0.35;
const TRIAL_AT_MOST: Duration = Duration::from_secs(25);
/// A search for a rate takes no longer than this in each direction; where the user asks for it, beyond the budget.
const SWEEP_AT_MOST: Duration = Duration::from_secs(35);
/// In less it tries fewer than two caps beside two runs without one; the first direction that needs a search gets it anyway.
const SWEEP_LEAST: Duration = Duration::from_secs(24);
/// Seconds beyond the budget for what tells causes apart.
const GRACE: Duration = Duration::from_secs(12);
/// The share of the whole after which the checks are asked.
const ASKED_FROM: f64 = 0.9;

impl Driver<'_> {
    /// Asks the checks what they still need, until none of them needs anything or the time is spent.
    pub(super) fn ask(&mut self) -> Result<(), MeasureError> {
        if self.options.sweep {
            self.tell_of_no_sweep();
        }
        let mut done: Vec<Probe> = Vec::new();
        loop {
            let asked = self.wanted(&done);
            let wanted: Vec<Probe> = asked.iter().map(|(probe, _)| probe.clone()).collect();
            let Some(first) = wanted.first().cloned() else {
                return Ok(());
            };
            let done_before = done.len();
            let left = self.budget.saturating_sub(self.begun.elapsed());
            let grace = if first.worth_waiting() {
                GRACE
            } else {
                Duration::ZERO
            };
            let in_time = (self.budget + grace)
                .saturating_sub(self.begun.elapsed())
                .as_secs_f64()
                >= first.seconds();
            match &first {
                Probe::Congestion { direction } => {
                    let alike = wanted.iter().filter(|other| first.is_like(other)).count();
                    // A share of what is left; where that is too little for one trial, the first gets what it needs.
                    let left = if done.iter().any(|other| first.is_like(other)) {
                        left
                    } else {
                        left.max(self.trial_takes(TRIAL_LEAST))
                    };
                    let share =
                        (left / alike.max(1) as u32).max(self.trial_takes(TRIAL_LEAST).min(left));
                    self.try_congestion(*direction, share)?;
                }
                Probe::Sweep { direction, peak } if self.options.sweep => {
                    self.sweep(*direction, *peak, SWEEP_AT_MOST)?;
                }
                Probe::Sweep { direction, peak }
                    if !done.iter().any(|other| first.is_like(other)) =>
                {
                    self.sweep(*direction, *peak, left.clamp(SWEEP_LEAST, SWEEP_AT_MOST))?;
                }
                _ if !in_time => self.too_late(&first, self.no_time(left)),
                Probe::Sequence(datagrams) => {
                    let beside = wanted.iter().find_map(|other| match other {
                        Probe::Sequence(other) if together(datagrams, other) => Some(*other),
                        _ => None,
                    });
                    let both: Vec<Datagrams> = [*datagrams].into_iter().chain(beside).collect();
                    self.count(&both)?;
                    done.extend(beside.map(Probe::Sequence));
                }
                Probe::Several { direction } => {
                    let what = first.what();
                    self.progress.step(&what, ASKED_FROM, first.seconds());
                    // There may have been no time for it before.
                    self.evidence.not_measured.retain(|one| one.what != what);
                    self.take_soak(Via::Tunnel, *direction)?;
                }
                Probe::Segmentation { direction } => {
                    self.progress
                        .step(&first.what(), ASKED_FROM, first.seconds());
                    let probe = self.ends.segmentation_probe(*direction);
                    let probe = self.keep(&first.what(), probe)?;
                    self.evidence.segmentation.extend(probe.value().cloned());
                }
                Probe::Sweep { direction, peak } => {
                    self.sweep(*direction, *peak, left.min(SWEEP_AT_MOST))?;
                }
            }
            done.push(first);
            for (probe, by) in asked {
                if done[done_before..].contains(&probe) {
                    tell_asked(&mut self.evidence, &probe, &by);
                }
            }
        }
    }

    /// What the checks want and have not had, cheapest first, each with the codes of those that want it; none where the
    /// user does.
    fn wanted(&self, done: &[Probe]) -> Vec<(Probe, Vec<&'static str>)> {
        let mut wanted: Vec<(Probe, Vec<&'static str>)> = Vec::new();
        for check in CHECKS {
            for direction in &self.options.directions {
                let Some(probe) = (check.wants)(&self.evidence, *direction) else {
                    continue;
                };
                let possible =
                    self.evidence.far_kind == FarKind::Wirespeed || !probe.needs_wirespeed();
                if !possible || done.contains(&probe) {
                    continue;
                }
                match wanted.iter_mut().find(|(other, _)| *other == probe) {
                    Some((_, by)) => by.push(check.code),
                    None => wanted.push((probe, vec![check.code])),
                }
            }
        }
        if self.options.sweep {
            let sweeps = self.sweeps().filter(|probe| !done.contains(probe));
            wanted.extend(sweeps.map(|probe| (probe, Vec::new())));
        }
        wanted.sort_by(|(one, _), (other, _)| one.seconds().total_cmp(&other.seconds()));
        wanted
    }

    /// What was asked for in vain, because the time was over.
    fn too_late(&mut self, probe: &Probe, because: String) {
        self.not_measured(&probe.what(), because);
        remember(&mut self.evidence.no_time, probe, &[]);
    }

    /// The searches that the user asks for.
    fn sweeps(&self) -> impl Iterator<Item = Probe> {
        let evidence = &self.evidence;
        let directions = self.options.directions.iter().copied();
        directions
            .filter(|direction| {
                evidence
                    .sweeps
                    .iter()
                    .all(|one| one.direction != *direction)
            })
            .filter_map(|direction| {
                let peak = road::road_rate(evidence, direction)?;
                Some(Probe::Sweep { direction, peak })
            })
    }

    /// A search that the user asks for begins at what a load carried.
    fn tell_of_no_sweep(&mut self) {
        for direction in self.options.directions.clone() {
            if road::road_rate(&self.evidence, direction).is_none() {
                let peak = 0.0;
                let what = Probe::Sweep { direction, peak }.what();
                self.not_measured(&what, say!("doctor-probe-sweep-nothing"));
            }
        }
    }

    fn sweep(
        &mut self,
        direction: Direction,
        peak: f64,
        budget: Duration,
    ) -> Result<(), MeasureError> {
        let what = Probe::Sweep { direction, peak }.what();
        let sweep = self
            .ends
            .rate_sweep(direction, peak, budget, &self.last_part());
        let sweep = self.keep(&what, sweep)?;
        self.evidence.sweeps.extend(sweep.value().cloned());
        Ok(())
    }

    /// Counts datagrams, each kind in a thread of its own.
    fn count(&mut self, kinds: &[Datagrams]) -> Result<(), MeasureError> {
        if let Some(first) = kinds.first() {
            let probe = Probe::Sequence(*first);
            self.progress
                .step(&probe.what(), ASKED_FROM, probe.seconds());
        }
        let ends = self.ends;
        let counted = thread::scope(|scope| {
            let counting: Vec<ScopedJoinHandle<_>> = kinds
                .iter()
                .map(|datagrams| scope.spawn(|| super::count(ends, datagrams)))
                .collect();
            counting.into_iter().map(ScopedJoinHandle::join).collect()
        });
        self.keep_counted(kinds, counted)
    }

    fn last_part(&self) -> Part<'_> {
        Part {
            whole: self.progress,
            from: ASKED_FROM,
            share: 1.0 - ASKED_FROM,
            more: 0.0,
        }
    }

    fn no_time(&self, left: Duration) -> String {
        let left = units::fixed(left.as_secs_f64(), 0, "s");
        if self.options.quick {
            say!("doctor-too-late-quick", left = left)
        } else {
            say!("doctor-too-late", left = left)
        }
    }

    fn try_congestion(&mut self, direction: Direction, left: Duration) -> Result<(), MeasureError> {
        let probe = Probe::Congestion { direction };
        let what = probe.what();
        if let Some(because) = self.cannot_try(direction) {
            self.not_measured(&what, because);
            return Ok(());
        }
        if left < self.trial_takes(TRIAL_LEAST) {
            self.too_late(&probe, self.no_time(left));
            return Ok(());
        }
        match self.trial(
            direction,
            left.min(self.trial_takes(TRIAL_AT_MOST)),
            &self.last_part(),
        ) {
            Ok(Some(trial)) => self.evidence.congestion_trials.push(trial),
            Ok(None) => self.too_late(&probe, say!("doctor-probe-congestion-pairs")),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => self.not_measured(&what, error.said()),
        }
        Ok(())
    }

    /// A time for a trial, as long as the road's round trip makes its loads.
    fn trial_takes(&self, with_short_loads: Duration) -> Duration {
        let (warm_up, seconds) = self.lengths(true);
        let talk = (self.talk() - SHORT_TALK).max(0.0);
        with_short_loads.mul_f64(warm_up + seconds + talk)
    }

    /// Why the sender cannot use the other one; what is not known is tried.
    fn cannot_try(&self, direction: Direction) -> Option<String> {
        let facts = self.evidence.facts(sender(direction))?;
        let available = facts.sysctls.get(AVAILABLE)?.value()?;
        let missing = !available.split_whitespace().any(|name| name == TRIED);
        missing.then(|| {
            let host = self.evidence.name(sender(direction));
            say!(
                "doctor-probe-congestion-missing",
                host = host,
                tried = TRIED,
                available = available.trim()
            )
        })
    }

    fn trial(
        &self,
        direction: Direction,
        budget: Duration,
        progress: &dyn wirespeed_measure::Progress,
    ) -> Result<Option<CongestionTrial>, MeasureError> {
        let (warm_up, seconds) = self.lengths(true);
        let load = |congestion_control: Option<&str>| Load {
            via: Via::Tunnel,
            direction,
            protocol: Protocol::Tcp,
            streams: 1,
            seconds,
            warm_up,
            congestion_control: congestion_control.map(str::to_owned),
            rate: None,
        };
        let plan = AbPlan {
            load_a: load(None),
            load_b: load(Some(TRIED)),
            figure: goodput,
            pairs_min: FEWEST_PAIRS as u32,
            pairs_max: 8,
            budget,
            target_width: 0.05,
            seed: SEED,
        };
        let found = ab(self.ends, &plan, &mut |_: Side| Ok(()), progress)?;
        Ok(found.relative.map(|gain| CongestionTrial {
            direction,
            current: sender_uses(&self.evidence, direction)
                .unwrap_or_else(|| say!("doctor-congestion-default")),
            tried: TRIED.to_owned(),
            gain,
            samples: found
                .samples
                .into_iter()
                .map(|(_, sample)| sample)
                .collect(),
        }))
    }
}

/// One entry per kind of measurement and direction, whatever its figures.
fn remember(all: &mut Vec<Asked>, probe: &Probe, by: &[&str]) {
    let what = probe.what();
    let at = all
        .iter()
        .position(|one| one.what == what)
        .unwrap_or_else(|| {
            all.push(Asked {
                what,
                direction: probe.direction(),
                by: Vec::new(),
            });
            all.len() - 1
        });
    for code in by {
        if !all[at].by.iter().any(|other| other == code) {
            all[at].by.push((*code).to_owned());
        }
    }
}

/// Keeps in mind for which causes something was measured, or would have been had there been time.
fn tell_asked(evidence: &mut Evidence, probe: &Probe, by: &[&str]) {
    let what = probe.what();
    let Evidence {
        not_measured,
        no_time,
        asked,
        ..
    } = evidence;
    if no_time.iter().any(|one| one.what == what) {
        remember(no_time, probe, by);
    } else if !by.is_empty() && not_measured.iter().all(|one| one.what != what) {
        remember(asked, probe, by);
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::NotMeasured;

    use super::*;
    use crate::testing::healthy;

    #[test]
    fn what_was_asked_for_is_told_by_whether_it_was_measured_too_late_or_impossible() {
        let trial = |direction| Probe::Congestion { direction };
        let (late, never) = (trial(Direction::Upload), trial(Direction::Download));
        let several = Probe::Several {
            direction: Direction::Upload,
        };
        let mut evidence = healthy();
        remember(&mut evidence.no_time, &late, &[]);
        evidence.not_measured = [&late, &never]
            .map(|probe| NotMeasured {
                what: probe.what(),
                because: "it is so".to_owned(),
            })
            .to_vec();
        for probe in [&late, &never, &several] {
            tell_asked(&mut evidence, probe, &["some-cause"]);
        }
        let [no_time] = evidence.no_time.as_slice() else {
            panic!("{:?}", evidence.no_time);
        };
        assert_eq!(
            (&no_time.what, no_time.direction),
            (&late.what(), Direction::Upload)
        );
        assert_eq!(no_time.by, ["some-cause"]);
        assert_eq!(evidence.asked.len(), 1);
        assert_eq!(evidence.asked[0].what, several.what());
    }

    #[test]
    fn a_measurement_is_told_once_with_all_who_asked() {
        let mut all = Vec::new();
        let of = |rate| Probe::Sequence(Datagrams::at_rate(Direction::Upload, rate, 2.0));
        remember(&mut all, &of(50e6), &["udp-shaped"]);
        remember(&mut all, &of(30e6), &["udp-shaped", "path-loss"]);
        let several = Probe::Several {
            direction: Direction::Download,
        };
        remember(&mut all, &several, &["bufferbloat"]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].what, "numbered datagrams outside the tunnel, upload");
        assert_eq!(all[0].by, ["udp-shaped", "path-loss"]);
        assert_eq!(all[1].direction, Direction::Download);
    }
}
