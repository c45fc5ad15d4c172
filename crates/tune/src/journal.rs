//! What was changed and how to take it back, on disk before the change.
//!
//! A knob's life in here: `before` and the value to come are written → the knob is turned → what it reads is
//! added to `ours`. Whoever finds the journal after a crash, at whichever point, puts `before` back where the knob
//! still has a value of `ours`: before the turn it has none of them, and nothing is done.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wirespeed_settings::{Restored, Setting, SettingError, Value};

use crate::TuneError;
use crate::state::{Place, since_boot, unix_time};

const VERSION: u32 = 1;
const LONGEST: u64 = 16 << 20;

/// What was changed and how to take it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) version: u32,
    pub(crate) boot_id: String,
    pub(crate) netns: u64,
    pub(crate) interface: String,
    /// Seconds since the Unix epoch.
    pub(crate) begun_at: f64,
    /// Process that makes the changes.
    pub(crate) owner: u32,
    /// Address whose echo replies show that the tunnel works, if it answered at the beginning.
    pub(crate) probe: Option<std::net::IpAddr>,
    /// Seconds an experiment may stay without a sign of life from the owner.
    pub(crate) trial_seconds: f64,
    /// Last sign of life, seconds since boot.
    pub(crate) touched: f64,
    pub(crate) phase: Phase,
    /// Oldest change first.
    pub(crate) changes: Vec<Change>,
}

/// Where a tune is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// Changes come and go; the end of the owner undoes them.
    Experimenting,
    /// Experiments are over; undone unless confirmed in time.
    Kept {
        /// Seconds since boot.
        until: f64,
    },
    /// The user keeps them. Still undone by `tune undo`.
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

impl Phase {
    /// Is something changed that nobody has decided on yet?
    pub(crate) fn open(&self) -> bool {
        matches!(self, Self::Experimenting | Self::Kept { .. })
    }
}

/// One knob that was turned, or was about to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) setting: Setting,
    /// Its value before the first change of this tune.
    pub(crate) before: Value,
    /// Every value this tune wrote or was about to write.
    pub(crate) ours: Vec<Value>,
    /// Has the last write returned?
    pub(crate) applied: bool,
}

/// What became of one knob at an undo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutBack {
    /// The knob.
    pub setting: Setting,
    /// The value it had before.
    pub before: Value,
    /// What was done.
    pub result: PutBackResult,
}

/// What was done with one knob at an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum PutBackResult {
    /// It has its old value.
    PutBack,
    /// Somebody else changed it after us: left as it is.
    ChangedByOthers {
        /// Its value now, in words.
        now: String,
    },
    /// What it belonged to (interface, daemon) is gone, and the change with it.
    Gone,
    /// It could not be put back.
    Failed {
        /// Why.
        why: String,
    },
}

impl Journal {
    pub(crate) fn new(
        interface: &str,
        probe: Option<std::net::IpAddr>,
        trial_seconds: f64,
    ) -> Self {
        Self {
            version: VERSION,
            boot_id: crate::state::boot_id(),
            netns: crate::state::netns().unwrap_or_default(),
            interface: interface.to_owned(),
            begun_at: unix_time(),
            owner: std::process::id(),
            probe,
            trial_seconds,
            touched: since_boot(),
            phase: Phase::Experimenting,
            changes: Vec::new(),
        }
    }

    /// Reads a journal; `None` when there is none.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, TuneError> {
        let unreadable = |why: String| TuneError::Journal {
            path: path.to_owned(),
            why,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let mut text = String::new();
        file.take(LONGEST)
            .read_to_string(&mut text)
            .map_err(|error| unreadable(error.to_string()))?;
        let journal: Self =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if journal.version != VERSION {
            return Err(unreadable(format!(
                "it has version {}, this program knows version {VERSION}",
                journal.version
            )));
        }
        Ok(Some(journal))
    }

    pub(crate) fn save(&self, place: &Place) -> Result<(), TuneError> {
        self.save_as(place, &place.journal())
    }

    pub(crate) fn save_as(&self, place: &Place, path: &Path) -> Result<(), TuneError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| TuneError::Journal {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        place.replace(path, &text)
    }

    /// Turns a knob: old value to disk, then the change, then the mark that it was made. The caller has the turn.
    /// Gives the old value and what the knob reads now.
    pub(crate) fn apply(
        &mut self,
        place: &Place,
        setting: &Setting,
        value: &Value,
    ) -> Result<(Value, Value), TuneError> {
        let now = setting.read()?;
        let at = if let Some(at) = self
            .changes
            .iter()
            .position(|change| &change.setting == setting)
        {
            at
        } else {
            self.changes.push(Change {
                setting: setting.clone(),
                before: now.clone(),
                ours: Vec::new(),
                applied: false,
            });
            self.changes.len() - 1
        };
        let change = &mut self.changes[at];
        change.remember(value);
        change.applied = false;
        self.touched = since_boot();
        self.save(place)?;
        let written = setting.write(value).and_then(|()| setting.read());
        match written {
            Ok(after) => {
                let change = &mut self.changes[at];
                change.remember(&after);
                change.applied = true;
                self.save(place)?;
                Ok((now, after))
            }
            Err(error) => {
                // A knob of several parts may have been turned halfway.
                let _reported = self.revert(place, setting);
                Err(error.into())
            }
        }
    }

    /// Puts one knob back and forgets it. The caller has the turn. `None` = it was not changed.
    pub(crate) fn revert(
        &mut self,
        place: &Place,
        setting: &Setting,
    ) -> Result<Option<PutBack>, TuneError> {
        let Some(at) = self
            .changes
            .iter()
            .position(|change| &change.setting == setting)
        else {
            return Ok(None);
        };
        let outcome = self.changes[at].put_back();
        if let PutBackResult::Failed { why } = &outcome.result {
            return Err(TuneError::Over {
                why: format!(
                    "{} could not be put back ({why}); the watchdog will try again",
                    setting.describe()
                ),
            });
        }
        self.changes.remove(at);
        self.touched = since_boot();
        self.save(place)?;
        Ok(Some(outcome))
    }

    /// Puts everything back, newest first, and closes the journal. The caller has the turn.
    pub(crate) fn undo(&mut self, place: &Place, why: &str) -> Result<Vec<PutBack>, TuneError> {
        self.undo_as(place, &place.journal(), why)
    }

    /// The same for a journal that is kept elsewhere.
    pub(crate) fn undo_as(
        &mut self,
        place: &Place,
        path: &Path,
        why: &str,
    ) -> Result<Vec<PutBack>, TuneError> {
        let outcomes: Vec<PutBack> = self.changes.iter().rev().map(Change::put_back).collect();
        self.phase = Phase::Undone {
            at: unix_time(),
            why: why.to_owned(),
            outcomes: outcomes.clone(),
        };
        self.save_as(place, path)?;
        Ok(outcomes)
    }
}

impl Change {
    fn remember(&mut self, value: &Value) {
        if !self.ours.contains(value) {
            self.ours.push(value.clone());
        }
    }

    pub(crate) fn put_back(&self) -> PutBack {
        let result = match self.setting.restore(&self.before, &self.ours) {
            Ok(Restored::PutBack) => PutBackResult::PutBack,
            Ok(Restored::ChangedByOthers { now }) => PutBackResult::ChangedByOthers { now },
            Err(SettingError::NotFound { .. }) => PutBackResult::Gone,
            Err(error) => PutBackResult::Failed {
                why: error.to_string(),
            },
        };
        PutBack {
            setting: self.setting.clone(),
            before: self.before.clone(),
            result,
        }
    }
}
