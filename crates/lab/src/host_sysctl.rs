//! Settings of a lab that are not its namespaces' own: which TCP congestion controls a namespace may choose (the host's
//! `net.ipv4.tcp_allowed_congestion_control` decides that), and sysctls of the whole machine that a scenario asks for. Labs
//! share a change: the first that needs it makes it, the last puts the original back, unless somebody else has changed it
//! meanwhile. One file per sysctl says what was there, before it is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use wirespeed_words::say;

use crate::{LabError, LabId, MachineSpec, netns, state};

const SYSCTLS: &str = "/proc/sys";

/// The network namespace of the first process is the host's, as far as this machine lets one see.
const HOST_NAMESPACE: &str = "/proc/1/ns/net";

/// What was there before the first lab, what the labs made of it, and who needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    original: String,
    ours: String,
    holders: BTreeSet<LabId>,
}

/// A shared change and where it is kept; the paths are parameters for the tests' sake.
struct Shared<'a> {
    directory: &'a Path,
    sysctls: &'a Path,
    /// Dotted name.
    name: &'a str,
    exists: &'a dyn Fn(&LabId) -> bool,
}

/// Lets the namespaces of a lab choose these congestion controls. Returns what could not be done, as notes.
pub(crate) fn allow(id: &LabId, wanted: &BTreeSet<String>) -> Result<Vec<String>, LabError> {
    on_host(|sysctls| shared(sysctls, ALLOWED).allow(id, wanted))
}

/// Sets sysctls of the machine for as long as the lab is up.
pub(crate) fn change(id: &LabId, wanted: &BTreeMap<String, String>) -> Result<(), LabError> {
    if wanted.is_empty() {
        return Ok(());
    }
    on_host(|sysctls| {
        wanted
            .iter()
            .try_for_each(|(name, value)| shared(sysctls, name).change(id, value))
    })
}

/// This lab no longer needs any of it.
pub(crate) fn release(id: &LabId) -> Result<(), LabError> {
    let held: Vec<&str> = std::iter::once(ALLOWED)
        .chain(MachineSpec::SYSCTLS)
        .filter(|name| file_of(Path::new(state::DIRECTORY), name).exists())
        .collect();
    if held.is_empty() {
        return Ok(());
    }
    on_host(|sysctls| {
        held.iter()
            .try_for_each(|name| shared(sysctls, name).release(id))
    })
}

fn shared<'a>(sysctls: &'a Path, name: &'a str) -> Shared<'a> {
    Shared {
        directory: Path::new(state::DIRECTORY),
        sysctls,
        name,
        exists: &|id| state::file_of(id).exists(),
    }
}

/// The file of a sysctl; that of the congestion controls has had its name from the beginning.
fn file_of(directory: &Path, name: &str) -> PathBuf {
    if name == ALLOWED {
        directory.join("host-sysctls.json")
    } else {
        directory.join(format!("host-sysctl-{name}.json"))
    }
}

/// Acts in the host's network namespace where that can be entered, else in this one.
fn on_host<T: Send>(
    act: impl Fn(&Path) -> Result<T, LabError> + Send + Sync,
) -> Result<T, LabError> {
    let sysctls = Path::new(SYSCTLS);
    if path_of(sysctls, ALLOWED).exists() || File::open(HOST_NAMESPACE).is_err() {
        return act(sysctls);
    }
    netns::inside(Path::new(HOST_NAMESPACE), || act(sysctls))
}

const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

fn path_of(sysctls: &Path, name: &str) -> PathBuf {
    sysctls.join(name.replace('.', "/"))
}

impl Shared<'_> {
    fn allow(&self, id: &LabId, wanted: &BTreeSet<String>) -> Result<Vec<String>, LabError> {
        let _lock = self.lock()?;
        let Ok(now) = self.read(ALLOWED) else {
            return Ok(vec![say!("lab-note-unseen", sysctl = ALLOWED)]);
        };
        let available = self.read(AVAILABLE).unwrap_or_default();
        let mut notes = Vec::new();
        let mut missing: Vec<&str> = Vec::new();
        for name in wanted {
            if !words(&available).contains(name.as_str()) {
                notes.push(say!(
                    "lab-note-no-such-control",
                    name = name,
                    available = &available
                ));
            } else if !words(&now).contains(name.as_str()) {
                missing.push(name);
            }
        }
        let mut change = self.load();
        if let Some(change) = &mut change {
            change.holders.retain(|holder| (self.exists)(holder));
        }
        if missing.is_empty() && change.is_none() {
            return Ok(notes);
        }
        let mut change = change.unwrap_or_else(|| Change {
            original: now.clone(),
            ours: now.clone(),
            holders: BTreeSet::new(),
        });
        change.holders.insert(id.clone());
        if !missing.is_empty() {
            change.ours = format!("{now} {}", missing.join(" "));
        }
        self.store(&change)?;
        if !missing.is_empty()
            && let Err(e) = fs::write(path_of(self.sysctls, ALLOWED), &change.ours)
        {
            notes.push(say!(
                "lab-note-unset",
                sysctl = ALLOWED,
                error = e.to_string()
            ));
        }
        Ok(notes)
    }

    fn change(&self, id: &LabId, wanted: &str) -> Result<(), LabError> {
        let _lock = self.lock()?;
        let path = path_of(self.sysctls, self.name);
        let now = self
            .read(self.name)
            .map_err(LabError::file("read", path.clone()))?;
        let mut change = self.load().unwrap_or_else(|| Change {
            original: now.clone(),
            ours: now.clone(),
            holders: BTreeSet::new(),
        });
        change
            .holders
            .retain(|holder| holder != id && (self.exists)(holder));
        match change.holders.first() {
            Some(by) if words(&change.ours) != words(wanted) => {
                return Err(LabError::Machine {
                    sysctl: self.name.to_owned(),
                    now: change.ours.clone(),
                    by: by.to_string(),
                    wanted: wanted.to_owned(),
                });
            }
            // Those that held it died, and somebody has changed it since.
            None if words(&now) != words(&change.ours) => change.original = now,
            _ => {}
        }
        wanted.clone_into(&mut change.ours);
        change.holders.insert(id.clone());
        self.store(&change)?;
        fs::write(&path, wanted).map_err(LabError::file("set", path))
    }

    fn release(&self, id: &LabId) -> Result<(), LabError> {
        let _lock = self.lock()?;
        let Some(mut change) = self.load() else {
            return Ok(());
        };
        change
            .holders
            .retain(|holder| holder != id && (self.exists)(holder));
        if !change.holders.is_empty() {
            return self.store(&change);
        }
        if self
            .read(self.name)
            .is_ok_and(|now| words(&now) == words(&change.ours))
        {
            let path = path_of(self.sysctls, self.name);
            fs::write(&path, &change.original).map_err(LabError::file("put back", path))?;
        }
        let file = self.file();
        fs::remove_file(&file).map_err(LabError::file("remove", file))
    }

    fn lock(&self) -> Result<Flock<File>, LabError> {
        let path = self.directory.join("host-sysctls.lock");
        lock(&path)
    }

    fn file(&self) -> PathBuf {
        file_of(self.directory, self.name)
    }

    fn read(&self, name: &str) -> std::io::Result<String> {
        fs::read_to_string(path_of(self.sysctls, name)).map(|text| text.trim().to_owned())
    }

    fn load(&self) -> Option<Change> {
        serde_json::from_str(&fs::read_to_string(self.file()).ok()?).ok()
    }

    fn store(&self, change: &Change) -> Result<(), LabError> {
        let file = self.file();
        let draft = file.with_extension("new");
        let text =
            serde_json::to_vec(change).map_err(|e| LabError::file("write", &file)(e.into()))?;
        let write = || {
            let mut out = File::create(&draft)?;
            out.write_all(&text)?;
            out.sync_all()?;
            fs::rename(&draft, &file)
        };
        write().map_err(LabError::file("write", file.clone()))
    }
}

/// Waits for, and holds, the lock on a file.
pub(crate) fn lock(path: &Path) -> Result<Flock<File>, LabError> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(LabError::file("create", directory))?;
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(LabError::file("open", path))?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, e)| LabError::file("lock", path)(e.into()))
}

/// The kernel lists them in an order of its own.
fn words(text: &str) -> BTreeSet<&str> {
    text.split_ascii_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const BUDGET: &str = "net.core.netdev_budget";

    struct Machine {
        directory: tempfile::TempDir,
        labs: RefCell<BTreeSet<LabId>>,
    }

    impl Machine {
        fn new(allowed: &str) -> Machine {
            let directory = tempfile::tempdir().unwrap();
            for (name, value) in [
                (ALLOWED, allowed),
                (AVAILABLE, "reno bbr cubic\n"),
                (BUDGET, "300\n"),
            ] {
                let path = path_of(directory.path(), name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, value).unwrap();
            }
            Machine {
                directory,
                labs: RefCell::default(),
            }
        }

        fn allow(&self, id: &str, wanted: &str) -> Vec<String> {
            let id: LabId = id.parse().unwrap();
            self.labs.borrow_mut().insert(id.clone());
            self.with(|s| s.allow(&id, &BTreeSet::from([wanted.to_owned()])).unwrap())
        }

        fn release(&self, id: &str) {
            let id: LabId = id.parse().unwrap();
            self.with(|s| s.release(&id).unwrap());
            self.about(BUDGET, |s| {
                if s.file().exists() {
                    s.release(&id).unwrap();
                }
            });
            self.labs.borrow_mut().remove(&id);
        }

        fn set_budget(&self, id: &str, value: &str) -> Result<(), String> {
            let id: LabId = id.parse().unwrap();
            self.labs.borrow_mut().insert(id.clone());
            self.about(BUDGET, |s| s.change(&id, value))
                .map_err(|e| e.to_string())
        }

        fn budget(&self) -> String {
            self.about(BUDGET, |s| s.read(BUDGET).unwrap())
        }

        fn with<T>(&self, act: impl Fn(&Shared<'_>) -> T) -> T {
            self.about(ALLOWED, act)
        }

        fn about<T>(&self, name: &str, act: impl Fn(&Shared<'_>) -> T) -> T {
            let path = self.directory.path();
            act(&Shared {
                directory: path,
                sysctls: path,
                name,
                exists: &|id| self.labs.borrow().contains(id),
            })
        }

        fn now(&self) -> String {
            fs::read_to_string(path_of(self.directory.path(), ALLOWED))
                .unwrap()
                .trim()
                .to_owned()
        }
    }

    #[test]
    fn the_last_lab_puts_the_original_back() {
        let machine = Machine::new("reno bbr\n");
        assert!(machine.allow("a", "cubic").is_empty());
        assert!(machine.allow("b", "cubic").is_empty());
        assert_eq!(machine.now(), "reno bbr cubic");
        machine.release("a");
        assert_eq!(machine.now(), "reno bbr cubic");
        machine.release("b");
        assert_eq!(machine.now(), "reno bbr");
        assert!(!file_of(machine.directory.path(), ALLOWED).exists());
    }

    #[test]
    fn what_is_allowed_already_is_not_touched() {
        let machine = Machine::new("reno bbr cubic\n");
        machine.allow("a", "cubic");
        assert!(!file_of(machine.directory.path(), ALLOWED).exists());
        machine.release("a");
        assert_eq!(machine.now(), "reno bbr cubic");
    }

    #[test]
    fn a_later_change_of_the_administrator_wins() {
        let machine = Machine::new("reno bbr\n");
        machine.allow("a", "cubic");
        fs::write(path_of(machine.directory.path(), ALLOWED), "reno\n").unwrap();
        machine.release("a");
        assert_eq!(machine.now(), "reno");
    }

    #[test]
    fn a_holder_that_is_gone_does_not_hold() {
        let machine = Machine::new("reno bbr\n");
        machine.allow("dead", "cubic");
        machine.labs.borrow_mut().clear();
        machine.allow("b", "cubic");
        machine.release("b");
        assert_eq!(machine.now(), "reno bbr");
    }

    #[test]
    fn killed_between_note_and_change_leaves_nothing_to_undo() {
        let machine = Machine::new("reno bbr\n");
        let change = Change {
            original: "reno bbr".to_owned(),
            ours: "reno bbr cubic".to_owned(),
            holders: BTreeSet::from(["a".parse().unwrap()]),
        };
        machine.with(|s| s.store(&change).unwrap());
        machine.release("a");
        assert_eq!(machine.now(), "reno bbr");
        assert!(!file_of(machine.directory.path(), ALLOWED).exists());
    }

    #[test]
    fn a_sysctl_of_the_machine_is_shared_by_those_who_want_the_same() {
        let machine = Machine::new("reno\n");
        machine.set_budget("a", "20").unwrap();
        machine.set_budget("b", "20").unwrap();
        let refused = machine.set_budget("c", "30").unwrap_err();
        assert!(
            refused.contains("by lab a") && refused.contains("down a"),
            "{refused}"
        );
        machine.release("a");
        machine.release("c");
        assert_eq!(machine.budget(), "20");
        machine.release("b");
        assert_eq!(machine.budget(), "300");
        assert!(!file_of(machine.directory.path(), BUDGET).exists());
    }

    #[test]
    fn what_a_dead_lab_changed_is_put_back_by_the_next() {
        let machine = Machine::new("reno\n");
        machine.set_budget("dead", "20").unwrap();
        machine.labs.borrow_mut().clear();
        machine.set_budget("b", "30").unwrap();
        machine.release("b");
        assert_eq!(machine.budget(), "300");
        machine.set_budget("c", "20").unwrap();
        fs::write(path_of(machine.directory.path(), BUDGET), "500\n").unwrap();
        machine.release("c");
        assert_eq!(machine.budget(), "500");
    }

    #[test]
    fn an_unknown_congestion_control_is_a_note() {
        let machine = Machine::new("reno bbr\n");
        let notes = machine.allow("a", "vegas");
        assert!(
            notes[0].contains("no congestion control `vegas`"),
            "{notes:?}"
        );
        assert_eq!(machine.now(), "reno bbr");
    }
}
