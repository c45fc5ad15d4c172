//! Experiments and their outcome.

use serde::{Deserialize, Serialize};
use wirespeed_doctor::{Diagnosis, End, Goal};
use wirespeed_measure::{NotMeasured, Sample};
use wirespeed_settings::{Setting, Value};

use crate::journal::PutBack;

/// One change as it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeMade {
    /// Machine.
    pub end: End,
    /// Machine's name.
    pub host: String,
    /// Knob.
    pub setting: Setting,
    /// Value before.
    pub before: Value,
    /// Value tried.
    pub after: Value,
}

/// A quantity that must not get worse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guard {
    /// `loaded-rtt`, `goodput`, `drops`, `cpu-per-byte`.
    pub name: String,
    /// Median without the change.
    pub before: f64,
    /// Median with it.
    pub after: f64,
    /// Unit of both.
    pub unit: String,
    /// Like with like? `false` when the load before was another one (a tunnel that stalled fills no queue).
    pub comparable: bool,
    /// Held? True when not comparable.
    pub held: bool,
}

/// One remedy tried: A (as it was) and B (changed) in turn, through the tunnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// Code of the finding it is for.
    pub code: String,
    /// The first knob, in words (`wg0 mtu on gw1, gw2`).
    pub setting: String,
    /// Its value before.
    pub before: Value,
    /// Its value tried.
    pub after: Value,
    /// Every change, knob by knob.
    pub changes: Vec<ChangeMade>,
    /// What the gain is a gain of.
    pub goal: Goal,
    /// Unit of `gain` and of the medians: `bit/s` or `s` (a lower loaded RTT is a positive gain).
    pub unit: String,
    /// Median without.
    pub measured_before: f64,
    /// Median with.
    pub measured_after: f64,
    /// Median gain over the pairs, in `unit`; positive = better.
    pub gain: f64,
    /// Lower end of its 95 % confidence interval (bootstrap over pairs).
    pub gain_low: f64,
    /// Upper end.
    pub gain_high: f64,
    /// What must not get worse.
    pub guards: Vec<Guard>,
    /// Kept, or put back?
    pub kept: bool,
    /// Why.
    pub why: String,
    /// Every sample, A B A B ….
    pub samples: Vec<Sample>,
}

/// The tunnel at one moment of a tune, by the diagnosis made then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    /// `before`, or the code of the finding whose remedy was kept just before.
    pub label: String,
    /// Goodput through the tunnel in bit/s, the median of the best load.
    pub upload: Option<f64>,
    /// The other direction.
    pub download: Option<f64>,
    /// Median RTT through the tunnel without load, in seconds.
    #[serde(default)]
    pub idle_rtt: Option<f64>,
    /// Median RTT through the tunnel while it was loaded, in seconds; the worse direction.
    pub loaded_rtt: Option<f64>,
    /// Codes of the findings that stood, worst first, without consequences.
    pub findings: Vec<String>,
}

/// What a tune did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The tunnel's interface here.
    pub interface: String,
    /// Seconds since the Unix epoch; `None` where an earlier release recorded it.
    #[serde(default)]
    pub started_at: Option<f64>,
    /// Every remedy tried, in order.
    pub experiments: Vec<Experiment>,
    /// The tunnel before, and after the remedies of each cause of which one was kept.
    pub stages: Vec<Stage>,
    /// The changes in force now.
    pub kept: Vec<ChangeMade>,
    /// Seconds until they are put back unless confirmed (`wirespeed tune confirm`); `None` when nothing was kept.
    pub confirm_within: Option<f64>,
    /// Findings whose remedies were not tried, and why.
    pub not_tried: Vec<NotMeasured>,
    /// Why it ended before all was tried; `None` = nothing was left to try.
    pub ended_early: Option<String>,
    /// What an earlier tune had left behind and was put back first, with the machine's name.
    pub recovered: Vec<(String, PutBack)>,
    /// The last diagnosis.
    pub diagnosis: Diagnosis,
}

/// What a machine knows of its tune (`wirespeed tune status`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Where it is.
    pub state: State,
    /// The tunnel's interface; `None` when there has been no tune.
    pub interface: Option<String>,
    /// Seconds since the Unix epoch.
    pub begun_at: Option<f64>,
    /// Changes in force, oldest first.
    pub changes: Vec<ChangeInForce>,
    /// What a tune whose watchdog was gone had left behind, and was put back just now.
    pub recovered: Vec<PutBack>,
}

/// Where a tune is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// There has been none in this network namespace since boot.
    Idle,
    /// Changes come and go.
    Experimenting {
        /// Process that makes them.
        process: u32,
    },
    /// Put back unless confirmed in time.
    Kept {
        /// Seconds until then.
        seconds_left: f64,
    },
    /// Confirmed; `undo` still puts back.
    Confirmed {
        /// Seconds since the Unix epoch.
        at: f64,
    },
    /// Put back.
    Undone {
        /// Seconds since the Unix epoch.
        at: f64,
        /// Who or what asked for it.
        why: String,
        /// Knob by knob.
        outcomes: Vec<PutBack>,
    },
}

/// A change in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeInForce {
    /// The knob.
    pub setting: Setting,
    /// Its value before the tune.
    pub before: Value,
    /// The value the tune gave it.
    pub tuned: Value,
    /// Its value now, when it can be read.
    pub now: Option<Value>,
}
