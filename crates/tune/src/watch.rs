//! The watchdog: a process of its own that puts everything back when nobody else does.
//!
//! It is started by the agent that makes the changes, in a session of its own, and has
//! - on descriptor 0 a socket whose other end only the agent holds: it writes `armed` there when it is ready, and
//!   the end of file there means that the agent is dead;
//! - on descriptor 1 the lock of this network namespace, so that it stays locked for as long as anything may still
//!   have to be undone;
//! - on descriptor 2 its log.
//!
//! Everything else it learns from the journal, which it reads anew every quarter of a second: that changes came and
//! went, that they are kept until a deadline, that they are confirmed or undone (then it ends).

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::TuneError;
use crate::echo::Echo;
use crate::journal::{Change, Journal, Phase, PutBackResult};
use crate::state::{Place, since_boot};

/// How often the journal is read and the tunnel asked.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// The tunnel counts as dead when no echo reply came for so long.
const SILENCE: Duration = Duration::from_secs(5);
/// The tunnel counts as alive before a change when a reply came this shortly before it.
const ALIVE_WITHIN: Duration = Duration::from_secs(2);
/// Attempts to put back what could not be put back at once.
const ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(300);

/// What the watchdog says on descriptor 0 when it is ready.
pub(crate) const ARMED: &[u8] = b"armed\n";

/// Watches over the tune whose journal this is, until everything is confirmed or put back. The hidden subcommand
/// `tune-watch` calls this before it starts any thread.
///
/// # Errors
/// When it could not even start to watch; the agent then changes nothing.
pub fn run(journal: &Path) -> Result<(), TuneError> {
    let not_armed = |why: String| TuneError::NotArmed { why };
    let place = Place::of_journal(journal)
        .ok_or_else(|| not_armed("the journal has no name of a journal".to_owned()))?;
    // Fails when the process leads a group already, started by hand: then it is in nobody's way anyway.
    let _own_session = rustix::process::setsid();
    let signals = block_signals().map_err(|error| not_armed(format!("signals: {error}")))?;
    let mut owner = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
        .map_err(|error| not_armed(format!("descriptor 0: {error}")))?;
    let first = Journal::load(journal)?
        .ok_or_else(|| not_armed(format!("no journal {}", journal.display())))?;
    owner
        .write_all(ARMED)
        .map_err(|error| not_armed(format!("descriptor 0: {error}")))?;
    let mut watch = Watch {
        pulse: Pulse::new(&first),
        place,
        last: first,
        owner: Some(owner),
        signals,
    };
    loop {
        match watch.look() {
            Verdict::GoOn => {}
            Verdict::End => return Ok(()),
            Verdict::PutBack(why) => {
                watch.put_back(&why);
                return Ok(());
            }
        }
    }
}

struct Watch {
    place: Place,
    /// The journal as last read.
    last: Journal,
    /// `None` once the agent has ended.
    owner: Option<UnixStream>,
    signals: SignalFd,
    pulse: Pulse,
}

enum Verdict {
    GoOn,
    End,
    PutBack(String),
}

impl Watch {
    fn look(&mut self) -> Verdict {
        let (signalled, owner_spoke) = self.wait();
        if signalled && let Ok(Some(signal)) = self.signals.read_signal() {
            let name = i32::try_from(signal.ssi_signo)
                .ok()
                .and_then(|number| Signal::try_from(number).ok())
                .map_or("a signal", Signal::as_str);
            return Verdict::PutBack(format!("the watchdog was told to end ({name})"));
        }
        let owner_ended = owner_spoke
            && self
                .owner
                .as_mut()
                .is_some_and(|owner| !matches!(owner.read(&mut [0; 64]), Ok(1..)));
        match Journal::load(&self.place.journal()) {
            Ok(Some(journal)) => self.last = journal,
            Ok(None) => return Verdict::PutBack("the journal was removed".to_owned()),
            // The last one that could be read is as good.
            Err(error) => eprintln!("{error}"),
        }
        if owner_ended {
            self.owner = None;
        }
        match self.last.phase {
            Phase::Confirmed { .. } | Phase::Undone { .. } => return Verdict::End,
            Phase::Experimenting if self.owner.is_none() => {
                return Verdict::PutBack("the program that made the changes ended".to_owned());
            }
            Phase::Experimenting if since_boot() - self.last.touched > self.last.trial_seconds => {
                return Verdict::PutBack(format!(
                    "nothing was heard of the experiment for {:.0} s",
                    self.last.trial_seconds
                ));
            }
            Phase::Kept { until } if since_boot() > until => {
                return Verdict::PutBack("nobody confirmed in time".to_owned());
            }
            Phase::Experimenting | Phase::Kept { .. } => {}
        }
        match self.pulse.feel(&self.last.changes) {
            Some(why) => Verdict::PutBack(why),
            None => Verdict::GoOn,
        }
    }

    /// Waits for a signal, the agent, or the time to look again.
    fn wait(&self) -> (bool, bool) {
        let mut descriptors = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some(owner) = &self.owner {
            descriptors.push(PollFd::new(owner, PollFlags::IN));
        }
        if poll(&mut descriptors, Some(&LOOK_EVERY)).is_err() {
            // Never in a tight circle, whatever the reason.
            std::thread::sleep(Duration::from_millis(50));
            return (false, false);
        }
        let spoke = |at: usize| {
            descriptors
                .get(at)
                .is_some_and(|descriptor| !descriptor.revents().is_empty())
        };
        (spoke(0), spoke(1))
    }

    fn put_back(&self, why: &str) {
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(BETWEEN_ATTEMPTS);
            }
            let _turn = self.place.turn().inspect_err(|error| eprintln!("{error}"));
            let on_disk = Journal::load(&self.place.journal()).ok().flatten();
            let mut journal = on_disk.unwrap_or_else(|| self.last.clone());
            let mine_to_undo = journal.phase.open() || attempt > 0;
            if !mine_to_undo {
                return;
            }
            match journal.undo(&self.place, why) {
                Ok(outcomes) => {
                    eprintln!("{why}: {outcomes:?}");
                    if !outcomes
                        .iter()
                        .any(|outcome| matches!(outcome.result, PutBackResult::Failed { .. }))
                    {
                        return;
                    }
                }
                // The settings are back; only the record of it is missing.
                Err(error) => {
                    eprintln!("{why}: {error}");
                    return;
                }
            }
        }
    }
}

fn block_signals() -> nix::Result<SignalFd> {
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        signals.add(signal);
    }
    signals.thread_block()?;
    SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Is the tunnel alive? Only asked when it was, at the beginning.
struct Pulse {
    echo: Option<Echo>,
    last_reply: Instant,
    /// The changes in force when last looked, and since when.
    changes: Vec<Change>,
    changed_at: Instant,
    /// Did the tunnel work shortly before the change, or at any time since?
    worked: bool,
}

impl Pulse {
    fn new(journal: &Journal) -> Self {
        Self {
            echo: journal.probe.and_then(|address| {
                Echo::open(address)
                    .inspect_err(|error| eprintln!("echo requests to {address}: {error}"))
                    .ok()
            }),
            last_reply: Instant::now(),
            changes: Vec::new(),
            changed_at: Instant::now(),
            worked: true,
        }
    }

    /// Why everything should be put back, if it should.
    fn feel(&mut self, changes: &[Change]) -> Option<String> {
        let echo = self.echo.as_mut()?;
        if echo.replied() {
            self.last_reply = Instant::now();
            self.worked = true;
        }
        echo.request();
        if changes != self.changes {
            self.worked = self.last_reply.elapsed() < ALIVE_WITHIN;
            self.changes = changes.to_vec();
            self.changed_at = Instant::now();
        }
        let silent = self.last_reply.elapsed().min(self.changed_at.elapsed()) > SILENCE;
        (silent && self.worked && !changes.is_empty()).then(|| {
            format!(
                "the tunnel stopped passing traffic: no echo reply for {} s",
                SILENCE.as_secs()
            )
        })
    }
}
