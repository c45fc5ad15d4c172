//! Why a change was not made, or could not be taken back.

mod said;

use std::io;
use std::path::PathBuf;

use wirespeed_measure::MeasureError;
use wirespeed_reach::ReachError;
use wirespeed_settings::SettingError;

pub use self::said::refusal_said;

/// Why a change was not made, or could not be taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The state directory or a file in it could not be used.
    #[error("{doing} {}: {source}; nothing was changed. Run as root, or name a writable directory in WIRESPEED_STATE", path.display())]
    State {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// What was put back could not be recorded.
    #[error(
        "what could be put back was, but writing that to {} failed: {source}; make room there, then run `wirespeed tune undo`",
        path.display()
    )]
    NotRecorded {
        /// The journal.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A journal that can't be understood.
    #[error(
        "the journal {} can't be read ({why}); it says how to put things back, so look at it before you remove it",
        path.display()
    )]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another tune holds this network namespace.
    #[error(
        "another wirespeed tune is at work here: {holder}; wait for it, or end it with `wirespeed tune undo` (or `wirespeed tune confirm`, once its experiments are over)"
    )]
    Held {
        /// Who.
        holder: String,
    },
    /// An operation that needs `tune.begin` first.
    #[error("no tune has been begun by this program; nothing was changed")]
    NotBegun,
    /// The watchdog did not start.
    #[error("the watchdog did not start ({why}); nothing was changed")]
    NotArmed {
        /// What it said.
        why: String,
    },
    /// Everything has been put back (or confirmed) meanwhile.
    #[error("the experiment is over: {why}")]
    Over {
        /// Why.
        why: String,
    },
    /// There is nothing to confirm.
    #[error("there is no change waiting to be confirmed here; see `wirespeed tune status`")]
    NothingKept,
    /// A knob.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Somebody else turned the same knob during the experiment.
    #[error(
        "{setting} was changed by somebody else meanwhile (it is {now}); theirs was left in place and the experiment given up"
    )]
    ChangedByOthers {
        /// The knob in words.
        setting: String,
        /// Its value now.
        now: String,
    },
    /// A machine.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// A load.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The diagnosis between two experiments failed.
    #[error("the diagnosis failed: {0}")]
    Diagnosis(String),
    /// The user stopped it.
    #[error("stopped; everything was put back")]
    Stopped,
}

impl TuneError {
    /// A record that could not be written, when the settings are back already.
    pub(crate) fn after_putting_back(self) -> Self {
        match self {
            Self::State { path, source, .. } => Self::NotRecorded { path, source },
            other => other,
        }
    }
}
