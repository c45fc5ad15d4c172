//! What the terminal is like, and how text and progress reach it.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use terminal_size::{Width, terminal_size};
use wirespeed_measure::Progress;
use wirespeed_report::{Look, clean};
use wirespeed_words::say;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::files;

/// How the answer is shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The answer")]
pub(crate) struct Show {
    /// Print one JSON object instead of text; nothing else goes to standard output.
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write a report to look at in a browser: one HTML file with charts, which loads nothing from the network.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Every figure behind the answer.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Show {
    /// With details?
    pub(crate) fn details(&self) -> bool {
        self.verbose > 0
    }

    /// Says before the work begins when the report for a browser could not be written afterwards.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.html.as_deref() {
            Some(folder) if folder.is_dir() => Err(Failure::here(
                Exit::Usage,
                say!("html-is-directory", path = folder.display().to_string()),
                say!(
                    "html-is-directory-todo",
                    path = folder.join("report.html").display().to_string()
                ),
            )),
            path => files::check(path),
        }
    }

    /// Writes the report for a browser, where one was asked for.
    pub(crate) fn write_html(&self, page: impl FnOnce() -> String) -> Result<(), Failure> {
        match self.html.as_deref() {
            Some(path) => files::write(path, &page()),
            None => Ok(()),
        }
    }
}

/// Columns where there is no terminal to ask.
const COLUMNS_ELSEWHERE: usize = 100;

/// How text on standard output should look.
pub(crate) fn look(details: bool) -> Look {
    let terminal = io::stdout().is_terminal();
    let columns = match terminal_size() {
        Some((Width(columns), _)) if terminal => usize::from(columns),
        _ => std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(COLUMNS_ELSEWHERE),
    };
    let variable = |name: &str| std::env::var(name).ok();
    Look::new(columns, terminal && shows_colour(variable), details)
        .in_ascii(!shows_unicode(variable))
}

/// Does the terminal take colours, and does its user want any (<https://no-color.org>)?
fn shows_colour(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("TERM").is_none_or(|value| value != "dumb")
}

/// Is what is written read as UTF-8? The first of the locale's variables that is set counts; none is the C locale.
fn shows_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Was only what is asked for by name wanted?
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on neither answers nor progress are shown.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Says whether [`be_quiet`] was asked for.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes an answer to standard output, unless the exit code is answer enough. What a command is for nothing but printing is
/// written by [`print`].
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    if is_quiet() { Ok(()) } else { print(text) }
}

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of writing to standard output. A reader that went away (`| head`) is no error.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::here(
            Exit::Unmeasured,
            say!("cli-no-output", error = error.to_string()),
            say!("cli-no-output-todo"),
        )),
        _ => Ok(()),
    }
}

/// An object stands on standard output already.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Prints one JSON object.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = json(value)?;
    ANSWERED.store(true, Ordering::Relaxed);
    print(&text)
}

/// Was an answer printed as JSON? Whoever reads it expects no second object.
pub(crate) fn answered() -> bool {
    ANSWERED.load(Ordering::Relaxed)
}

/// One JSON object as text.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Ok(text + "\n"),
        Err(error) => Err(Failure::here(
            Exit::Unmeasured,
            say!("cli-no-json", error = error.to_string()),
            say!("cli-no-json-todo"),
        )),
    }
}

/// Writes a line to standard error. Complaints quote files and other machines, so nothing in them steers the terminal.
pub(crate) fn complain(text: &str) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "wirespeed: {}", clean(text));
}

/// Writes a line to standard error about how the work goes.
pub(crate) fn mention(text: &str) {
    if !is_quiet() {
        complain(text);
    }
}

/// A bar with the time left on standard error; silent when that is no terminal or the user wants quiet.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Shown at once: a machine far away may take a while to be reached.
    pub(crate) fn new() -> Self {
        let target = if is_quiet() || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        if let Ok(style) =
            ProgressStyle::with_template("{wide_msg} {bar:20} {percent:>3} %  {prefix}")
        {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.set_message(say!("doctor-step-facts"));
        bar.tick();
        Self(bar)
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Progress for Bar {
    fn step(&self, what: &str, done: f64, seconds_left: f64) {
        let left = Duration::try_from_secs_f64(seconds_left.max(0.0))
            .unwrap_or_default()
            .as_secs();
        self.0.set_prefix(say!(
            "cli-left",
            time = format!("{}:{:02}", left / 60, left % 60)
        ));
        self.0.set_message(what.to_owned());
        self.0.set_position((done.clamp(0.0, 1.0) * 1000.0) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_no_colour_gets_none() {
        for (name, value, shown) in [
            ("TERM", "xterm-256color", true),
            ("TERM", "dumb", false),
            ("NO_COLOR", "1", false),
            ("NO_COLOR", "", true),
        ] {
            let variable = |asked: &str| (asked == name).then(|| value.to_owned());
            assert_eq!(shows_colour(variable), shown, "{name}={value}");
        }
        assert!(shows_colour(|_| None));
    }

    #[test]
    fn a_locale_of_utf_8_shows_unicode_and_none_does_not() {
        for (variables, shown) in [
            (&[][..], false),
            (&[("LANG", "C.UTF-8")], true),
            (&[("LANG", "fr_FR.utf8")], true),
            (&[("LANG", "fr_FR@euro")], false),
            (&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")], false),
            (&[("LANG", "C"), ("LC_CTYPE", "en_US.UTF-8")], true),
            (&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")], true),
        ] {
            let variable = |name: &str| {
                let mut set = variables.iter();
                let (_, value) = set.find(|(one, _)| *one == name)?;
                Some((*value).to_owned())
            };
            assert_eq!(shows_unicode(variable), shown, "{variables:?}");
        }
    }
}
