//! The driver on a simulated road: two machines whose knobs decide how fast it is.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::json;
use wirespeed_doctor::{Diagnosis, End};
use wirespeed_measure::{Direction, Load, Quiet, Sample};
use wirespeed_settings::{Setting, Value};

use crate::driver::{Figures, Options, drive};
use crate::hands::Hands;
use crate::operations::Applied;
use crate::testing::sample;
use crate::{Outcome, PutBack, TuneError};

type Knobs = BTreeMap<(End, Setting), Value>;

struct Road {
    /// Goodput in bit/s and loaded RTT in seconds, as the knobs stand.
    speed: fn(&Knobs) -> (f64, f64),
    far: bool,
    knobs: RefCell<Knobs>,
    log: RefCell<Vec<String>>,
    samples: RefCell<u32>,
    /// The sample whose taking fails.
    fails_at: Option<u32>,
    /// The watchdog has put everything back.
    over: bool,
}

impl Road {
    fn new(speed: fn(&Knobs) -> (f64, f64)) -> Self {
        let mtu = |end| ((end, mtu()), json!(1420));
        Self {
            speed,
            far: true,
            knobs: RefCell::new(
                [
                    mtu(End::Here),
                    mtu(End::Far),
                    ((End::Here, shaper()), json!(null)),
                    ((End::Far, shaper()), json!(null)),
                ]
                .into(),
            ),
            log: RefCell::default(),
            samples: RefCell::default(),
            fails_at: None,
            over: false,
        }
    }

    fn log(&self, line: String) {
        self.log.borrow_mut().push(line);
    }
}

impl Hands for Road {
    fn reachable(&self, end: End) -> Option<String> {
        match end {
            End::Here => Some("gw1".to_owned()),
            End::Far => self.far.then(|| "gw2".to_owned()),
        }
    }

    fn begin(&self, end: End, _trial_seconds: f64) -> Result<Vec<PutBack>, TuneError> {
        self.log(format!("begin {end:?}"));
        Ok(Vec::new())
    }

    fn apply(&self, end: End, setting: &Setting, value: &Value) -> Result<Applied, TuneError> {
        let before = self
            .knobs
            .borrow_mut()
            .insert((end, setting.clone()), value.clone())
            .unwrap();
        Ok(Applied {
            before,
            after: value.clone(),
        })
    }

    fn revert(&self, end: End, setting: &Setting) -> Result<(), TuneError> {
        let first = if *setting == mtu() {
            json!(1420)
        } else {
            json!(null)
        };
        self.knobs
            .borrow_mut()
            .insert((end, setting.clone()), first);
        Ok(())
    }

    fn keep(
        &self,
        end: End,
        settings: Vec<Setting>,
        _confirm_within: f64,
    ) -> Result<(), TuneError> {
        if self.over {
            return Err(TuneError::Over {
                why: "the tunnel died".to_owned(),
            });
        }
        self.log(format!("keep {end:?} {}", settings.len()));
        Ok(())
    }

    fn undo(&self, end: End, _why: &str) -> Result<(), TuneError> {
        self.log(format!("undo {end:?}"));
        Ok(())
    }

    fn settle(&self) -> Result<(), TuneError> {
        Ok(())
    }

    fn sample(&self, load: &Load) -> Result<Sample, TuneError> {
        let mut count = self.samples.borrow_mut();
        *count += 1;
        if self.fails_at == Some(*count) {
            return Err(TuneError::Diagnosis("the road is gone".to_owned()));
        }
        let (rate, rtt) = (self.speed)(&self.knobs.borrow());
        // A noise of ±0.4 %, the same every time.
        let noise = f64::from(*count * 7919 % 9).mul_add(0.001, 0.996);
        Ok(sample(load.direction, rate * noise, rtt * noise))
    }

    fn stopped(&self) -> bool {
        false
    }
}

fn mtu() -> Setting {
    Setting::LinkMtu {
        interface: "wg0".to_owned(),
    }
}

fn shaper() -> Setting {
    Setting::EgressShaper {
        interface: "wg0".to_owned(),
    }
}

fn small(knobs: &Knobs) -> bool {
    [End::Here, End::Far]
        .iter()
        .all(|end| knobs[&(*end, mtu())] == json!(1340))
}

fn finding(
    code: &str,
    goal: &str,
    direction: Option<Direction>,
    changes: &[(End, Setting, Value)],
) -> Value {
    let changes: Vec<Value> = changes
        .iter()
        .map(|(end, setting, value)| json!({"end": end, "setting": setting, "value": value}))
        .collect();
    json!({
        "code": code, "severity": "warning", "confidence": 0.9, "host": "gw1", "direction": direction, "evidence": [],
        "because": "", "consequence_of": null, "refused": [],
        "remedies": [{"title": code, "changes": changes, "commands": [], "goal": goal, "persistence": "", "risk": "", "undo": ""}]
    })
}

fn sizes() -> Value {
    let both = [
        (End::Here, mtu(), json!(1340)),
        (End::Far, mtu(), json!(1340)),
    ];
    finding(
        "mtu-exceeds-path",
        "goodput",
        Some(Direction::Upload),
        &both,
    )
}

fn bloat() -> Value {
    let here = [(End::Here, shaper(), json!(180_000_000))];
    finding("bufferbloat", "loaded-rtt", Some(Direction::Upload), &here)
}

fn diagnosis(findings: &[Value]) -> Diagnosis {
    serde_json::from_value(
        json!({"verdict": "findings", "not_checked": [], "refused": [], "findings": findings}),
    )
    .unwrap()
}

fn tuned(road: &Road, options: &Options) -> Result<Outcome, TuneError> {
    let mut diagnose = || {
        let (rate, rtt) = (road.speed)(&road.knobs.borrow());
        let mut findings = Vec::new();
        if rate < 100e6 {
            findings.push(sizes());
        }
        if rtt > 0.1 {
            findings.push(bloat());
        }
        let figures = Figures {
            upload: Some(rate),
            download: Some(rate),
            idle_rtt: Some(0.02),
            loaded_rtt: Some(rtt),
        };
        Ok((figures, diagnosis(&findings)))
    };
    drive(road, "wg0".to_owned(), options, &mut diagnose, &Quiet)
}

#[test]
fn one_remedy_uncovers_the_next_and_both_are_kept() {
    let road = Road::new(
        |knobs| match (small(knobs), knobs[&(End::Here, shaper())].is_null()) {
            (false, _) => (5e6, 0.002),
            (true, true) => (188e6, 0.250),
            (true, false) => (178e6, 0.020),
        },
    );
    let outcome = tuned(&road, &Options::default()).unwrap();
    let labels: Vec<&str> = outcome
        .stages
        .iter()
        .map(|stage| stage.label.as_str())
        .collect();
    assert_eq!(labels, ["before", "mtu-exceeds-path", "bufferbloat"]);
    assert!(
        outcome.experiments.iter().all(|experiment| experiment.kept),
        "{:?}",
        outcome.experiments
    );
    assert_eq!(outcome.kept.len(), 3);
    assert_eq!(
        outcome.experiments[0].samples.len(),
        20,
        "5 pairs, both directions for a size"
    );
    assert_eq!(
        outcome.experiments[1].samples.len(),
        10,
        "one direction for a queue"
    );
    assert!(small(&road.knobs.borrow()), "what is kept is in force");
    assert_eq!(
        *road.log.borrow(),
        ["begin Here", "begin Far", "keep Here 2", "keep Far 1"]
    );
    assert!(outcome.ended_early.is_none() && outcome.confirm_within.is_some());
    assert!(outcome.started_at.is_some_and(|at| at > 1.7e9));
}

#[test]
fn the_same_fault_at_both_ends_is_tried_end_by_end_between_two_diagnoses() {
    let road = Road::new(|knobs| {
        let shaped = |end| !knobs[&(end, shaper())].is_null();
        (178e6, if shaped(End::Here) { 0.020 } else { 0.250 })
    });
    let diagnoses = std::cell::Cell::new(0);
    let mut diagnose = || {
        diagnoses.set(diagnoses.get() + 1);
        let both: Vec<Value> = [End::Here, End::Far]
            .into_iter()
            .map(|end| {
                let change = [(end, shaper(), json!(180_000_000))];
                finding(
                    "bufferbloat",
                    "loaded-rtt",
                    Some(Direction::Upload),
                    &change,
                )
            })
            .collect();
        let figures = Figures {
            upload: Some(178e6),
            download: Some(178e6),
            idle_rtt: Some(0.02),
            loaded_rtt: Some(0.25),
        };
        let findings = if diagnoses.get() == 1 {
            both
        } else {
            Vec::new()
        };
        Ok((figures, diagnosis(&findings)))
    };
    let options = Options::default();
    let outcome = drive(&road, "wg0".to_owned(), &options, &mut diagnose, &Quiet).unwrap();
    assert_eq!(diagnoses.get(), 2);
    let kept: Vec<bool> = outcome.experiments.iter().map(|one| one.kept).collect();
    assert_eq!(kept, [true, false], "each is proved by itself");
    assert_eq!(outcome.stages.len(), 2);
}

#[test]
fn what_does_not_help_is_put_back_and_not_tried_again() {
    let road = Road::new(|_| (50e6, 0.002));
    let outcome = tuned(&road, &Options::default()).unwrap();
    assert_eq!(outcome.experiments.len(), 1);
    assert!(
        !outcome.experiments[0].kept && outcome.kept.is_empty() && outcome.confirm_within.is_none()
    );
    assert!(!small(&road.knobs.borrow()));
    assert_eq!(road.log.borrow()[2..], ["keep Here 0", "keep Far 0"]);
}

#[test]
fn without_wirespeed_at_the_far_end_its_remedies_are_named_and_not_tried() {
    let mut road = Road::new(|_| (50e6, 0.200));
    road.far = false;
    let outcome = tuned(&road, &Options::default()).unwrap();
    assert!(
        outcome.not_tried[0].because.contains("far end"),
        "{:?}",
        outcome.not_tried
    );
    assert_eq!(
        outcome.experiments.len(),
        1,
        "the queue is this machine's own"
    );
    assert_eq!(road.log.borrow()[..], ["begin Here", "keep Here 0"]);
}

#[test]
fn a_consequence_is_tried_where_its_cause_can_not_be_mended_or_when_asked_for() {
    let tried = |cause: &Value, only: &[&str]| {
        let road = Road::new(|knobs| {
            if small(knobs) {
                (188e6, 0.002)
            } else {
                (5e6, 0.002)
            }
        });
        let mut consequence = sizes();
        consequence["consequence_of"] = cause["code"].clone();
        let findings = [cause.clone(), consequence];
        let mut diagnose = || Ok((Figures::default(), diagnosis(&findings)));
        let options = Options {
            only: only.iter().map(|code| (*code).to_owned()).collect(),
            ..Options::default()
        };
        let outcome = drive(&road, "wg0".to_owned(), &options, &mut diagnose, &Quiet).unwrap();
        let codes: Vec<String> = outcome
            .experiments
            .into_iter()
            .map(|experiment| experiment.code)
            .collect();
        codes.join(" ")
    };
    let by_hand = finding("cpu-saturated", "goodput", None, &[]);
    assert_eq!(tried(&by_hand, &[]), "mtu-exceeds-path");
    assert_eq!(tried(&bloat(), &[]), "bufferbloat");
    assert_eq!(tried(&bloat(), &["mtu-exceeds-path"]), "mtu-exceeds-path");
}

#[test]
fn only_the_codes_asked_for_and_only_within_the_time() {
    let road = Road::new(|_| (50e6, 0.200));
    let only = Options {
        only: vec!["bufferbloat".to_owned()],
        ..Options::default()
    };
    let outcome = tuned(&road, &only).unwrap();
    assert_eq!(outcome.experiments.len(), 1);
    assert_eq!(outcome.experiments[0].code, "bufferbloat");
    let short = Options {
        budget: std::time::Duration::from_secs(30),
        ..Options::default()
    };
    let outcome = tuned(&road, &short).unwrap();
    assert!(outcome.experiments.is_empty() && outcome.ended_early.unwrap().contains("time"));
}

#[test]
fn a_load_that_fails_puts_its_experiment_back_and_keeps_what_was_proved() {
    let mut road = Road::new(|knobs| {
        if small(knobs) {
            (188e6, 0.250)
        } else {
            (5e6, 0.002)
        }
    });
    road.fails_at = Some(22);
    let outcome = tuned(&road, &Options::default()).unwrap();
    assert!(outcome.experiments[0].kept && outcome.kept.len() == 2);
    assert!(outcome.ended_early.unwrap().contains("the road is gone"));
    assert!(road.knobs.borrow()[&(End::Here, shaper())].is_null());
}

#[test]
fn what_the_watchdog_has_put_back_is_not_said_to_be_kept() {
    let mut road = Road::new(|knobs| {
        if small(knobs) {
            (188e6, 0.002)
        } else {
            (5e6, 0.002)
        }
    });
    road.over = true;
    let outcome = tuned(&road, &Options::default()).unwrap();
    assert!(outcome.kept.is_empty() && outcome.confirm_within.is_none());
    assert!(!outcome.experiments[0].kept && outcome.experiments[0].why.contains("the tunnel died"));
    assert_eq!(road.log.borrow()[2..], ["undo Here", "undo Far"]);
}
