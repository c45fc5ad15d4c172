//! Where the journal lives, who may write it, and who holds the machine.
//!
//! One tune per network namespace: file names carry the namespace's inode and the beginning of the boot id.
//!
//! - `netns-INODE-BOOT.json`: the journal of the tune at work, or of one whose changes were confirmed;
//! - `….lock`: held (flock) by the agent and the watchdog from begin to confirm or undo;
//! - `….turn`: held for the moment of one change, so that agent and watchdog never act at once;
//! - `….N.done.json`: journals that are over, for the record and for a later undo.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};
use wirespeed_facts::{Known, own_namespace};

use crate::TuneError;

const DEFAULT_DIRECTORY: &str = "/var/lib/wirespeed/tune";
/// A change takes milliseconds; whoever holds the turn for longer is stopped, and must not stop the undo.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// The files of one network namespace.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    directory: PathBuf,
    stem: String,
}

impl Place {
    /// The files of the caller's network namespace, in a directory where nobody else may write: what is read there is
    /// written to the machine's settings.
    pub(crate) fn own() -> Result<Self, TuneError> {
        let directory = std::env::var_os("WIRESPEED_STATE")
            .map_or_else(|| PathBuf::from(DEFAULT_DIRECTORY), PathBuf::from);
        Self::within(&directory)
    }

    pub(crate) fn within(directory: &Path) -> Result<Self, TuneError> {
        let failed = |doing| {
            let path = directory.to_owned();
            move |source| TuneError::State {
                doing,
                path,
                source,
            }
        };
        // The watchdog works elsewhere.
        let directory = std::path::absolute(directory).map_err(failed("finding"))?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(failed("creating"))?;
        let found = fs::metadata(&directory).map_err(failed("looking at"))?;
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
            let why = "it belongs to another user, or others may write there";
            return Err(failed("using")(io::Error::other(why)));
        }
        let namespace = own_namespace().map_err(|source| TuneError::State {
            doing: "reading",
            path: "/proc/thread-self/ns/net".into(),
            source,
        })?;
        let boot = boot_id();
        Ok(Self {
            directory,
            stem: format!("netns-{namespace}-{}", boot.get(..8).unwrap_or("unknown")),
        })
    }

    /// The files that belong to a journal.
    pub(crate) fn of_journal(journal: &Path) -> Option<Self> {
        Some(Self {
            directory: journal.parent()?.to_owned(),
            stem: journal
                .file_name()?
                .to_str()?
                .strip_suffix(".json")?
                .to_owned(),
        })
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.stem))
    }

    pub(crate) fn watchdog_log(&self) -> PathBuf {
        self.directory.join(format!("{}.log", self.stem))
    }

    /// Journals of this namespace that are over, oldest first.
    pub(crate) fn archived(&self) -> Vec<PathBuf> {
        let mut found: Vec<(u64, PathBuf)> = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let number = name
                    .to_str()?
                    .strip_prefix(&self.stem)?
                    .strip_prefix('.')?
                    .strip_suffix(".done.json")?;
                Some((number.parse().ok()?, entry.path()))
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// Moves the journal to the record.
    pub(crate) fn archive(&self) -> Result<(), TuneError> {
        let number = self.archived().last().map_or(1, |last| {
            let name = last
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            name.rsplit('.')
                .nth(2)
                .and_then(|number| number.parse::<u64>().ok())
                .unwrap_or(0)
                + 1
        });
        let to = self
            .directory
            .join(format!("{}.{number}.done.json", self.stem));
        fs::rename(self.journal(), &to)
            .and_then(|()| sync_directory(&self.directory))
            .map_err(|source| TuneError::State {
                doing: "archiving the journal as",
                path: to,
                source,
            })
    }

    /// Journals of earlier boots: their runtime settings are gone with the kernel that had them.
    pub(crate) fn archive_earlier_boots(&self) {
        let own = boot_id();
        let own = own.get(..8).unwrap_or("unknown");
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with("netns-")) else {
                continue;
            };
            let boot = name
                .split('-')
                .nth(2)
                .and_then(|rest| rest.split('.').next());
            if boot.is_some_and(|boot| boot != own) {
                let _unimportant = if name.strip_suffix(".json").is_some() {
                    fs::rename(
                        entry.path(),
                        self.directory.join(format!("earlier-boot-{name}")),
                    )
                } else {
                    fs::remove_file(entry.path())
                };
            }
        }
    }

    /// Tries to become the one tune of this namespace. `Err(Held)` says who is.
    pub(crate) fn lock(&self, who: &str) -> Result<File, TuneError> {
        let path = self.directory.join(format!("{}.lock", self.stem));
        let mut file = private_file(&path, "locking")?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _empty_is_fine = (&file).take(1024).read_to_string(&mut holder);
                return Err(TuneError::Held {
                    holder: holder.trim().to_owned(),
                });
            }
            Err(source) => {
                return Err(TuneError::State {
                    doing: "locking",
                    path,
                    source: source.into(),
                });
            }
        }
        let _only_for_the_message = file
            .rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(who.as_bytes()));
        Ok(file)
    }

    /// Is a tune at work (does anybody hold the lock)?
    pub(crate) fn held(&self) -> bool {
        let path = self.directory.join(format!("{}.lock", self.stem));
        let Ok(file) = File::open(path) else {
            return false;
        };
        matches!(
            flock(&file, FlockOperation::NonBlockingLockShared),
            Err(rustix::io::Errno::WOULDBLOCK)
        )
    }

    /// Takes the turn to change something; given back when the value is dropped, or when the process dies.
    pub(crate) fn turn(&self) -> Result<Turn, TuneError> {
        let path = self.directory.join(format!("{}.turn", self.stem));
        let file = private_file(&path, "locking")?;
        let deadline = Instant::now() + LONGEST_TURN;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if !matches!(
                error,
                rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR
            ) {
                return Err(TuneError::State {
                    doing: "locking",
                    path,
                    source: error.into(),
                });
            }
            if Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Turn { _file: file })
    }

    /// Replaces a journal: written beside, synced, renamed, directory synced. When this returns, it is on disk.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), TuneError> {
        let beside = self.directory.join(format!(".{}.new", self.stem));
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, path)?;
            sync_directory(&self.directory)
        };
        write().map_err(|source| TuneError::State {
            doing: "writing the journal",
            path: path.to_owned(),
            source,
        })
    }
}

/// The right to change something now.
#[derive(Debug)]
pub(crate) struct Turn {
    _file: File,
}

/// The kernel's name for the time since it started; `unknown` where it can't be read.
pub(crate) fn boot_id() -> String {
    match wirespeed_facts::boot_id() {
        Known::Value(id) => id,
        Known::Unknown(_) => "unknown".to_owned(),
    }
}

/// Seconds since boot, suspended time included: no one can set this clock.
pub(crate) fn since_boot() -> f64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Seconds since the Unix epoch.
pub(crate) fn unix_time() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

fn private_file(path: &Path, doing: &'static str) -> Result<File, TuneError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|source| TuneError::State {
            doing,
            path: path.to_owned(),
            source,
        })
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_tune_at_a_time_and_the_second_learns_who() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::within(&directory.path().join("state")).unwrap();
        let mode = fs::metadata(directory.path().join("state"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!place.held());
        let lock = place.lock("process 1 on wg0").unwrap();
        assert!(place.held());
        let refused = place.lock("process 2 on wg0").unwrap_err().to_string();
        assert!(refused.contains("process 1 on wg0"), "{refused}");
        drop(lock);
        assert!(!place.held());
        drop(place.lock("process 3 on wg0").unwrap());
    }

    #[test]
    fn a_directory_that_others_may_write_in_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let refused = Place::within(&shared).unwrap_err().to_string();
        assert!(refused.contains("others may write there"), "{refused}");
        let mode = fs::metadata(&shared).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
    }

    #[test]
    fn journals_are_replaced_whole_and_archived_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::within(directory.path()).unwrap();
        for number in 0..12 {
            place
                .replace(&place.journal(), format!("{number}").as_bytes())
                .unwrap();
            place.archive().unwrap();
        }
        let mode = fs::metadata(&place.archived()[0])
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let contents: Vec<String> = place
            .archived()
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        let wanted: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        assert_eq!(contents, wanted);
        assert_eq!(
            Place::of_journal(&place.journal()).unwrap().journal(),
            place.journal()
        );
    }

    #[test]
    fn journals_of_an_earlier_boot_are_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::within(directory.path()).unwrap();
        place.replace(&place.journal(), b"{}").unwrap();
        for name in [
            "netns-1-00000000.json",
            "netns-1-00000000.lock",
            "netns-1-00000000.3.done.json",
            "other",
        ] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        place.archive_earlier_boots();
        let mut names: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let own = place
            .journal()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let mut wanted = vec![
            "earlier-boot-netns-1-00000000.3.done.json".to_owned(),
            "earlier-boot-netns-1-00000000.json".to_owned(),
            own,
            "other".to_owned(),
        ];
        wanted.sort();
        assert_eq!(names, wanted);
    }
}
