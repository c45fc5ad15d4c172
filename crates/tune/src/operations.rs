//! What the agent of a machine can do for a tune.
//!
//! `tune.begin` → (`tune.apply` ⇄ `tune.revert`)* → `tune.keep` or `tune.undo`, all by the same agent; then, by any
//! later one, `tune.confirm` or `tune.undo`; `tune.status` and `tune.read` at any time.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirespeed_reach::Operations;
use wirespeed_settings::{Setting, Value};

use crate::TuneError;
use crate::echo;
use crate::journal::{Journal, Phase, PutBack, PutBackResult};
use crate::model::{ChangeInForce, State, Status};
use crate::state::{Place, since_boot, unix_time};
use crate::watch::ARMED;

const ARMED_WITHIN: Duration = Duration::from_secs(5);
const PROBE_WITHIN: Duration = Duration::from_secs(2);
const WATCHDOG_ENDS_WITHIN: Duration = Duration::from_secs(3);

/// Registers the operations; the watchdog is this program's hidden subcommand `tune-watch`.
pub fn register(operations: &mut Operations) {
    register_with(operations, WatchCommand::default());
}

/// Registers the operations, with a watchdog of the caller's choice.
pub fn register_with(operations: &mut Operations, watch: WatchCommand) {
    let desk = Arc::new(Desk {
        watch,
        session: Mutex::new(None),
    });
    let at = |desk: &Arc<Desk>| Arc::clone(desk);
    let own = at(&desk);
    operations.add("tune.begin", move |request: Begin, _| own.begin(&request));
    let own = at(&desk);
    operations.add("tune.apply", move |request: Apply, _| own.apply(&request));
    let own = at(&desk);
    operations.add("tune.revert", move |request: Revert, _| {
        own.revert(&request.setting)
    });
    let own = at(&desk);
    operations.add("tune.keep", move |request: Keep, _| own.keep(&request));
    let own = at(&desk);
    operations.add("tune.undo", move |request: Undo, _| own.undo(&request));
    operations.add("tune.confirm", |_: Nothing, _| confirm());
    operations.add("tune.status", |_: Nothing, _| status());
    operations.add("tune.read", |request: Revert, _| request.setting.read());
}

/// How to start the watchdog; `--journal PATH` is added.
#[derive(Debug, Clone)]
pub struct WatchCommand {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

impl Default for WatchCommand {
    fn default() -> Self {
        Self {
            // This very image, even when an update has replaced its file meanwhile.
            program: PathBuf::from("/proc/self/exe"),
            arguments: vec!["tune-watch".to_owned()],
        }
    }
}

/// `tune.begin`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) interface: String,
    /// Address inside the tunnel that answers echo requests while it works.
    pub(crate) probe_address: Option<IpAddr>,
    /// Changes are put back when nothing is heard of the experiment for so long.
    pub(crate) trial_seconds: f64,
}

/// Answer of `tune.begin`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The watchdog also watches the tunnel.
    pub(crate) probe_answered: bool,
    /// What an earlier tune had left behind and was put back first.
    pub(crate) recovered: Vec<PutBack>,
}

/// `tune.apply`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Apply {
    pub(crate) setting: Setting,
    pub(crate) value: Value,
}

/// Answer of `tune.apply`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Applied {
    pub(crate) before: Value,
    pub(crate) after: Value,
}

/// `tune.revert` and `tune.read`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Revert {
    pub(crate) setting: Setting,
}

/// `tune.keep`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Keep {
    pub(crate) settings: Vec<Setting>,
    /// Seconds until everything is put back unless confirmed.
    pub(crate) confirm_within: f64,
}

/// `tune.undo`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Undo {
    pub(crate) why: String,
    /// Only what the latest tune did, not what earlier ones had confirmed.
    #[serde(default)]
    pub(crate) only_latest: bool,
}

/// `tune.confirm` and `tune.status`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Nothing {}

struct Desk {
    watch: WatchCommand,
    session: Mutex<Option<Session>>,
}

/// The tune this agent has begun. Dropping it tells the watchdog that the agent has ended.
struct Session {
    place: Place,
    watchdog: UnixStream,
    _lock: File,
}

impl Desk {
    fn begin(&self, request: &Begin) -> Result<Begun, TuneError> {
        let mut session = self.session();
        if session.is_some() {
            return Err(TuneError::Held {
                holder: "this program itself".to_owned(),
            });
        }
        let place = Place::own()?;
        place.archive_earlier_boots();
        let lock = place.lock(&format!(
            "process {} on interface {}",
            std::process::id(),
            request.interface
        ))?;
        let recovered = recover(&place)?;
        if place.journal().exists() {
            place.archive()?;
        }
        let probe = request
            .probe_address
            .filter(|&address| echo::answers(address, PROBE_WITHIN));
        let journal = Journal::new(
            &request.interface,
            probe,
            request.trial_seconds.clamp(1.0, 86_400.0),
        );
        journal.save(&place)?;
        let watchdog = self.start_watchdog(&place, &lock)?;
        *session = Some(Session {
            place,
            watchdog,
            _lock: lock,
        });
        Ok(Begun {
            probe_answered: probe.is_some(),
            recovered,
        })
    }

    fn apply(&self, request: &Apply) -> Result<Applied, TuneError> {
        let guard = self.session();
        let session = guard.as_ref().ok_or(TuneError::NotBegun)?;
        let _turn = session.place.turn()?;
        let mut journal = session.watched()?;
        let (before, after) = journal.apply(&session.place, &request.setting, &request.value)?;
        Ok(Applied { before, after })
    }

    fn revert(&self, setting: &Setting) -> Result<(), TuneError> {
        let guard = self.session();
        let session = guard.as_ref().ok_or(TuneError::NotBegun)?;
        let _turn = session.place.turn()?;
        let outcome = session.experimenting()?.revert(&session.place, setting)?;
        match outcome.map(|outcome| outcome.result) {
            Some(PutBackResult::ChangedByOthers { now }) => Err(TuneError::ChangedByOthers {
                setting: setting.describe(),
                now,
            }),
            _ => Ok(()),
        }
    }

    fn keep(&self, request: &Keep) -> Result<(), TuneError> {
        let mut guard = self.session();
        let session = guard.as_ref().ok_or(TuneError::NotBegun)?;
        let turn = session.place.turn()?;
        let mut journal = session.watched()?;
        let others: Vec<Setting> = journal
            .changes
            .iter()
            .map(|change| change.setting.clone())
            .filter(|setting| !request.settings.contains(setting))
            .collect();
        for setting in others {
            journal.revert(&session.place, &setting)?;
        }
        if journal.changes.is_empty() {
            journal.undo(&session.place, "nothing was kept")?;
        } else {
            journal.phase = Phase::Kept {
                until: since_boot() + request.confirm_within.clamp(0.0, 30.0 * 86_400.0),
            };
            journal.save(&session.place)?;
        }
        drop(turn);
        *guard = None;
        Ok(())
    }

    fn undo(&self, request: &Undo) -> Result<Vec<PutBack>, TuneError> {
        let why = &request.why;
        let mut guard = self.session();
        let place = Place::own()?;
        let turn = place.turn()?;
        let mut outcomes = Vec::new();
        if let Some(mut journal) = Journal::load(&place.journal())?
            && journal.phase.to_undo()
        {
            outcomes = journal.undo(&place, why)?;
        }
        if !request.only_latest {
            for path in place.archived().into_iter().rev() {
                if let Some(mut journal) = Journal::load(&path)?
                    && journal.phase.to_undo()
                {
                    outcomes.extend(journal.undo_as(&place, &path, why)?);
                }
            }
        }
        drop(turn);
        *guard = None;
        wait_for_the_watchdog(&place);
        Ok(outcomes)
    }

    fn session(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_watchdog(&self, place: &Place, lock: &File) -> Result<UnixStream, TuneError> {
        let not_armed = |why: String| TuneError::NotArmed { why };
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(place.watchdog_log())
            .map_err(|error| not_armed(format!("its log: {error}")))?;
        let (ours, theirs) = UnixStream::pair().map_err(|error| not_armed(error.to_string()))?;
        let lock = lock
            .try_clone()
            .map_err(|error| not_armed(error.to_string()))?;
        let mut child = Command::new(&self.watch.program)
            .arg0("wirespeed")
            .args(&self.watch.arguments)
            .arg("--journal")
            .arg(place.journal())
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(lock))
            .stderr(Stdio::from(log))
            .spawn()
            .map_err(|error| not_armed(format!("{}: {error}", self.watch.program.display())))?;
        let armed = await_armed(&ours);
        if let Err(why) = &armed {
            let _gone = child.kill();
            let _reaped = child.wait();
            return Err(not_armed(format!(
                "{why}; its log is {}",
                place.watchdog_log().display()
            )));
        }
        // Reaped when it ends; it outlives this program as a rule.
        std::thread::spawn(move || child.wait());
        ours.set_nonblocking(true)
            .map_err(|error| not_armed(error.to_string()))?;
        Ok(ours)
    }
}

impl Session {
    /// The journal, if the experiment still goes on.
    fn experimenting(&self) -> Result<Journal, TuneError> {
        let journal = load_existing(&self.place.journal())?;
        match &journal.phase {
            Phase::Experimenting => Ok(journal),
            Phase::Undone { why, .. } => Err(TuneError::Over {
                why: format!("everything was put back: {why}"),
            }),
            Phase::Kept { .. } | Phase::Confirmed { .. } => Err(TuneError::Over {
                why: "its changes are already kept".to_owned(),
            }),
        }
    }

    /// The same, and everything is put back when the watchdog is no more: nothing may stay that nobody would undo.
    fn watched(&self) -> Result<Journal, TuneError> {
        let mut journal = self.experimenting()?;
        match (&self.watchdog).read(&mut [0; 8]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(journal),
            _ => {
                journal.undo(&self.place, "the watchdog had ended")?;
                Err(TuneError::Over {
                    why: "the watchdog has ended, so everything was put back".to_owned(),
                })
            }
        }
    }
}

fn await_armed(watchdog: &UnixStream) -> Result<(), String> {
    watchdog
        .set_read_timeout(Some(ARMED_WITHIN))
        .map_err(|error| error.to_string())?;
    let mut said = [0; ARMED.len()];
    let mut reader = watchdog;
    match reader.read_exact(&mut said) {
        Ok(()) if said == ARMED => Ok(()),
        Ok(()) => Err("it said something else than that it is armed".to_owned()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err("it ended at once".to_owned())
        }
        Err(error) => Err(format!(
            "it did not say that it is armed within {} s: {error}",
            ARMED_WITHIN.as_secs()
        )),
    }
}

/// Puts back what a tune left behind whose watchdog is gone as well. The caller holds the lock.
fn recover(place: &Place) -> Result<Vec<PutBack>, TuneError> {
    let _turn = place.turn()?;
    match Journal::load(&place.journal())? {
        Some(mut journal) if journal.phase.open() => {
            journal.undo(place, "the program and its watchdog had ended")
        }
        _ => Ok(Vec::new()),
    }
}

fn confirm() -> Result<Status, TuneError> {
    let place = Place::own()?;
    let turn = place.turn()?;
    let mut journal = Journal::load(&place.journal())?.ok_or(TuneError::NothingKept)?;
    match &journal.phase {
        Phase::Kept { .. } => {
            journal.phase = Phase::Confirmed { at: unix_time() };
            journal.save(&place)?;
        }
        Phase::Confirmed { .. } => {}
        Phase::Experimenting if place.held() => {
            return Err(TuneError::Held {
                holder: format!("process {} still experiments", journal.owner),
            });
        }
        Phase::Experimenting => return Err(TuneError::NothingKept),
        Phase::Undone { why, .. } => {
            return Err(TuneError::Over {
                why: format!("everything was put back before it was confirmed: {why}"),
            });
        }
    }
    drop(turn);
    wait_for_the_watchdog(&place);
    status()
}

fn status() -> Result<Status, TuneError> {
    let place = Place::own()?;
    let mut recovered = Vec::new();
    if let Ok(_lock) = place.lock("wirespeed tune status") {
        recovered = recover(&place)?;
    }
    let Some(journal) = Journal::load(&place.journal())? else {
        return Ok(Status {
            state: State::Idle,
            interface: None,
            begun_at: None,
            changes: Vec::new(),
            recovered,
        });
    };
    let state = match journal.phase {
        Phase::Experimenting => State::Experimenting {
            process: journal.owner,
        },
        Phase::Kept { until } => State::Kept {
            seconds_left: (until - since_boot()).max(0.0),
        },
        Phase::Confirmed { at } => State::Confirmed { at },
        Phase::Undone { at, why, outcomes } => State::Undone { at, why, outcomes },
    };
    let in_force = !matches!(state, State::Undone { .. });
    Ok(Status {
        changes: if in_force {
            journal.changes.iter().map(ChangeInForce::of).collect()
        } else {
            Vec::new()
        },
        state,
        interface: Some(journal.interface),
        begun_at: Some(journal.begun_at),
        recovered,
    })
}

impl ChangeInForce {
    fn of(change: &crate::journal::Change) -> Self {
        Self {
            setting: change.setting.clone(),
            before: change.before.clone(),
            tuned: change.ours.last().cloned().unwrap_or_default(),
            now: change.setting.read().ok(),
        }
    }
}

fn load_existing(path: &Path) -> Result<Journal, TuneError> {
    Journal::load(path)?.ok_or_else(|| TuneError::Over {
        why: "its journal was removed, so the watchdog puts everything back".to_owned(),
    })
}

/// The watchdog ends by itself once it has read that its work is done; then the lock is free.
fn wait_for_the_watchdog(place: &Place) {
    let deadline = Instant::now() + WATCHDOG_ENDS_WITHIN;
    while place.held() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
}
