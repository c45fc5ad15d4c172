//! The log: to standard error, for a person or for systemd's journal, or to syslog once the daemon has left its terminal.
//!
//! Writing never waits for who reads, and never fails the caller: a line for which there is no room (a reader that stands
//! still, a full disk) is counted and lost. No key but a peer's public one is ever logged.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use log::{Level, Log, Metadata, Record};
use serde_json::{Value, json};

use crate::lock::Locked;
use crate::options::LogLevel;

/// Longest line; a pipe takes this many bytes at once or says that it is full.
const LINE_BYTES: usize = 4_096;

/// Where the system's log listens.
const SYSLOG: &str = "/dev/log";

/// syslog's facility for daemons.
const FACILITY_DAEMON: u8 = 3 << 3;

static LOGGER: OnceLock<Logger> = OnceLock::new();

/// Begins to log, to standard error. `wanted` is from the command line; else `LOG_LEVEL` is asked, where
/// words nobody knows are ignored, as wireguard-go does.
pub fn start(interface: &str, wanted: Option<LogLevel>) {
    let level = wanted.or_else(level_from_environment);
    let logger = LOGGER.get_or_init(|| Logger {
        interface: interface.to_owned(),
        target: Mutex::new(if stderr_is_journal() {
            Target::Journal
        } else {
            Target::Stderr
        }),
        errors: AtomicU64::new(0),
        warnings: AtomicU64::new(0),
        lost: AtomicU64::new(0),
    });
    // Another logger is only there in tests.
    if log::set_logger(logger).is_ok() {
        log::set_max_level(level.unwrap_or(LogLevel::Info).into());
    }
    std::panic::set_hook(Box::new(|panic| log::error!("{panic}")));
}

/// Where a daemon logs once it has left its terminal. Found beforehand, while everything can still be opened.
pub struct Successor(Option<Target>);

impl Successor {
    /// The system's log, or none if there is none; but standard error goes on when it is the journal, or when the person
    /// asked for a level and so wants to see it, as with wireguard-go.
    pub fn find(wanted: Option<LogLevel>) -> Self {
        let asked = wanted.or_else(level_from_environment);
        if stderr_is_journal() || asked.is_some_and(|level| level != LogLevel::Silent) {
            return Self(None);
        }
        Self(Some(syslog().map_or(Target::Nowhere, Target::Syslog)))
    }

    /// Logs there from now on. False when standard error is still needed.
    pub fn take_over(self) -> bool {
        let (Some(successor), Some(logger)) = (self.0, LOGGER.get()) else {
            return false;
        };
        *logger.target.locked() = successor;
        true
    }
}

/// How much was logged, for the statistics.
pub fn statistics() -> Value {
    LOGGER.get().map_or(Value::Null, |logger| {
        json!({
            "level": log::max_level().as_str().to_ascii_lowercase(),
            "errors": logger.errors.load(Ordering::Relaxed),
            "warnings": logger.warnings.load(Ordering::Relaxed),
            "lost": logger.lost.load(Ordering::Relaxed),
        })
    })
}

struct Logger {
    interface: String,
    target: Mutex<Target>,
    errors: AtomicU64,
    warnings: AtomicU64,
    lost: AtomicU64,
}

enum Target {
    /// With time and level, for a person.
    Stderr,
    /// With the priority systemd understands; it adds the time itself.
    Journal,
    Syslog(UnixDatagram),
    Nowhere,
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        match record.level() {
            Level::Error => self.errors.fetch_add(1, Ordering::Relaxed),
            Level::Warn => self.warnings.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let target = self.target.locked();
        let written = match &*target {
            Target::Stderr => {
                let mut line = stamp(SystemTime::now());
                let _ = write!(line, " {:5} ", record.level());
                self.message(&mut line, record);
                write_stderr(&line)
            }
            Target::Journal => {
                let mut line = format!("<{}>", severity(record.level()));
                self.message(&mut line, record);
                write_stderr(&line)
            }
            Target::Syslog(socket) => {
                let priority = FACILITY_DAEMON | severity(record.level());
                let mut line = format!("<{priority}>wirespeed-device[{}]: ", std::process::id());
                self.message(&mut line, record);
                socket.send(line.trim_end().as_bytes()).is_ok()
            }
            Target::Nowhere => true,
        };
        if !written {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {}
}

impl Logger {
    /// One line whatever the message has in it.
    fn message(&self, line: &mut String, record: &Record<'_>) {
        let message = format!("{}: {}", self.interface, record.args());
        line.extend(
            message
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c }),
        );
        if line.len() >= LINE_BYTES {
            let end = (0..LINE_BYTES).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or_default());
        }
        line.push('\n');
    }
}

fn level_from_environment() -> Option<LogLevel> {
    LogLevel::from_str(&std::env::var("LOG_LEVEL").ok()?, true).ok()
}

/// systemd says which descriptor it reads; it isn't standard error when somebody redirected that.
fn stderr_is_journal() -> bool {
    let Ok(stated) = rustix::fs::fstat(std::io::stderr()) else {
        return false;
    };
    std::env::var("JOURNAL_STREAM")
        .is_ok_and(|stream| stream == format!("{}:{}", stated.st_dev, stated.st_ino))
}

fn syslog() -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect(SYSLOG).ok()?;
    Some(socket)
}

/// All or nothing: false when who reads has no room now.
fn write_stderr(line: &str) -> bool {
    let stderr = std::io::stderr();
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(
        stderr.as_fd(),
        rustix::event::PollFlags::OUT,
    )];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
        && (&stderr).write_all(line.as_bytes()).is_ok()
}

/// syslog's severity.
const fn severity(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// As in `2026-11-21T09:30:00.123Z`.
fn stamp(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// Year, month and day of a day since 1970-01-01. Source: <https://howardhinnant.github.io/date_algorithms.html>,
/// `civil_from_days`.
const fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + (month <= 2) as u64;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_795_253_400, "2026-11-21T09:30:00.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(stamp(time), shown);
        }
        assert!(stamp(SystemTime::UNIX_EPOCH - Duration::from_secs(1)).starts_with("1970"));
    }

    #[test]
    fn a_message_is_one_line_and_not_endless() {
        let logger = Logger {
            interface: "wg0".to_owned(),
            target: Mutex::new(Target::Nowhere),
            errors: AtomicU64::new(0),
            warnings: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        };
        let mut line = "<3>".to_owned();
        let text = format!("one\ntwo\r\x1b[31m{}", "é".repeat(5_000));
        logger.message(
            &mut line,
            &Record::builder().args(format_args!("{text}")).build(),
        );
        assert!(
            line.starts_with("<3>wg0: one two  [31mé"),
            "{}",
            &line[..40]
        );
        assert!(line.len() <= LINE_BYTES && line.ends_with('\n'));
        assert_eq!(line.matches('\n').count(), 1);
    }
}
