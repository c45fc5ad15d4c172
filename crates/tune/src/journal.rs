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

    /// Is anything in force, or could anything not be put back, that an undo should see to?
    pub(crate) fn to_undo(&self) -> bool {
        match self {
            Self::Experimenting | Self::Kept { .. } | Self::Confirmed { .. } => true,
            Self::Undone { outcomes, .. } => outcomes
                .iter()
                .any(|outcome| matches!(outcome.result, PutBackResult::Failed { .. })),
        }
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
            netns: wirespeed_facts::own_namespace().unwrap_or_default(),
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
                if let Err(error) = self.save(place) {
                    // What can't be recorded is not left in force.
                    let _reported = self.changes[at].put_back();
                    return Err(error);
                }
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
        self.save(place).map_err(TuneError::after_putting_back)?;
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
        self.save_as(place, path)
            .map_err(TuneError::after_putting_back)?;
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_could_not_be_put_back_is_still_to_undo() {
        let undone = |result| Phase::Undone {
            at: 0.0,
            why: "the watchdog was told to end".to_owned(),
            outcomes: vec![PutBack {
                setting: mtu(),
                before: json!(1420),
                result,
            }],
        };
        assert!(!undone(PutBackResult::PutBack).to_undo());
        assert!(!undone(PutBackResult::Gone).to_undo());
        let why = "the kernel said no".to_owned();
        assert!(undone(PutBackResult::Failed { why }).to_undo());
    }

    #[test]
    fn a_journal_survives_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::within(directory.path()).unwrap();
        let mut journal = Journal::new("wg0", Some("10.0.0.2".parse().unwrap()), 600.0);
        // The last bit of a time is lost now and then on the way through JSON.
        (journal.begun_at, journal.touched) = (1.7e9, 12.5);
        journal.changes.push(Change {
            setting: mtu(),
            before: json!(1420),
            ours: vec![json!(1340)],
            applied: true,
        });
        for phase in [
            Phase::Experimenting,
            Phase::Kept { until: 12.5 },
            Phase::Confirmed { at: 1.7e9 },
            Phase::Undone {
                at: 1.7e9,
                why: "nobody confirmed in time".to_owned(),
                outcomes: vec![journal.changes[0].put_back()],
            },
        ] {
            journal.phase = phase;
            journal.save(&place).unwrap();
            assert_eq!(Journal::load(&place.journal()).unwrap().unwrap(), journal);
        }
    }

    #[test]
    fn a_journal_that_makes_no_sense_is_an_error_and_none_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::within(directory.path()).unwrap();
        assert_eq!(Journal::load(&place.journal()).unwrap(), None);
        let mut newer = Journal::new("wg0", None, 1.0);
        newer.version = 2;
        let newer = serde_json::to_string(&newer).unwrap();
        for text in ["", "{", "[]", "\u{0}", &newer] {
            place.replace(&place.journal(), text.as_bytes()).unwrap();
            let error = Journal::load(&place.journal()).unwrap_err().to_string();
            assert!(error.contains("before you remove it"), "{error}");
        }
    }

    /// What the disk and the kernel look like when the program dies at each point of one change.
    #[test]
    fn whoever_comes_after_a_crash_puts_back_what_was_really_changed() {
        in_namespace(
            "whoever_comes_after_a_crash_puts_back_what_was_really_changed",
            |place| {
                let crashed = |ours: &[Value], now: u32| {
                    let mut journal = Journal::new("ws0", None, 60.0);
                    journal.changes.push(Change {
                        setting: mtu(),
                        before: json!(1500),
                        ours: ours.to_vec(),
                        applied: false,
                    });
                    mtu().write(&json!(now)).unwrap();
                    let outcomes = journal.undo(place, "test").unwrap();
                    (outcomes[0].result.clone(), mtu().read().unwrap())
                };
                // Old value written, knob not turned yet.
                assert_eq!(
                    crashed(&[json!(1340)], 1500),
                    (PutBackResult::PutBack, json!(1500))
                );
                // Turned, not marked as applied.
                assert_eq!(
                    crashed(&[json!(1340)], 1340),
                    (PutBackResult::PutBack, json!(1500))
                );
                // Turned a second time to another value, of which only the intention is on disk.
                assert_eq!(
                    crashed(&[json!(1340), json!(1300)], 1340),
                    (PutBackResult::PutBack, json!(1500))
                );
                assert_eq!(
                    crashed(&[json!(1340), json!(1300)], 1300),
                    (PutBackResult::PutBack, json!(1500))
                );
                // Turned by somebody else since.
                let theirs = PutBackResult::ChangedByOthers {
                    now: "1400".to_owned(),
                };
                assert_eq!(crashed(&[json!(1340)], 1400), (theirs, json!(1400)));
            },
        );
    }

    #[test]
    fn the_first_value_is_the_one_to_go_back_to() {
        in_namespace("the_first_value_is_the_one_to_go_back_to", |place| {
            let mut journal = Journal::new("ws0", None, 60.0);
            for value in [1340, 1300, 1340, 1280] {
                journal.apply(place, &mtu(), &json!(value)).unwrap();
                let on_disk = Journal::load(&place.journal()).unwrap().unwrap();
                assert_eq!(
                    (on_disk.changes.len(), &on_disk.changes[0].before),
                    (1, &json!(1500))
                );
                assert!(on_disk.changes[0].applied);
            }
            let outcome = journal.revert(place, &mtu()).unwrap().unwrap();
            assert_eq!(outcome.result, PutBackResult::PutBack);
            assert_eq!(mtu().read().unwrap(), json!(1500));
            assert!(
                Journal::load(&place.journal())
                    .unwrap()
                    .unwrap()
                    .changes
                    .is_empty()
            );
            assert_eq!(journal.revert(place, &mtu()).unwrap(), None);
        });
    }

    #[test]
    fn a_change_that_fails_leaves_nothing_and_a_link_that_is_gone_is_gone() {
        in_namespace("a_change_that_fails_leaves_nothing", |place| {
            let mut journal = Journal::new("ws0", None, 60.0);
            assert!(journal.apply(place, &mtu(), &json!("large")).is_err());
            assert!(journal.changes.is_empty());
            assert_eq!(mtu().read().unwrap(), json!(1500));
            journal.apply(place, &mtu(), &json!(1340)).unwrap();
            run(&["link", "del", "ws0"]);
            assert_eq!(
                journal.undo(place, "test").unwrap()[0].result,
                PutBackResult::Gone
            );
        });
    }

    #[test]
    fn a_journal_that_can_not_be_written_changes_nothing() {
        in_namespace(
            "a_journal_that_can_not_be_written_changes_nothing",
            |place| {
                std::fs::create_dir(place.journal()).unwrap();
                let mut journal = Journal::new("ws0", None, 60.0);
                let error = journal
                    .apply(place, &mtu(), &json!(1340))
                    .unwrap_err()
                    .to_string();
                assert!(error.contains("nothing was changed"), "{error}");
                assert_eq!(mtu().read().unwrap(), json!(1500));
            },
        );
    }

    fn mtu() -> Setting {
        Setting::LinkMtu {
            interface: "ws0".to_owned(),
        }
    }

    /// A thread in a network namespace of its own, with a veth pair ws0–ws1.
    fn in_namespace(test: &'static str, body: impl FnOnce(&Place) + Send + 'static) {
        let thread = std::thread::spawn(move || {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                crate::testing::skip(test, &format!("no network namespace: {error}"));
                return;
            }
            run(&["link", "add", "ws0", "type", "veth", "peer", "name", "ws1"]);
            let directory = tempfile::tempdir().unwrap();
            body(&Place::within(directory.path()).unwrap());
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }

    fn run(arguments: &[&str]) {
        assert!(
            Command::new("ip")
                .args(arguments)
                .status()
                .unwrap()
                .success(),
            "{arguments:?}"
        );
    }
}
