//! `wirespeed`: finds out why a WireGuard tunnel is slow, and mends it with proof and an undo.

mod commands;
mod exit;
mod failure;
mod far;
mod files;
mod interrupt;
mod language;
mod manual;
mod numbers;
mod terminal;
mod whole;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use wirespeed_report::Schema;

use crate::commands::{agent, demo, doctor, explain, lab, package_files, test, tune};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::language::Tongue;

/// Finds out why a WireGuard tunnel is slow, and mends it with proof and an undo.
#[derive(Debug, Parser)]
#[command(name = "wirespeed", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    #[expect(
        clippy::doc_markdown,
        reason = "the doc comment is the help, where names of variables stand bare"
    )]
    /// Language of what people read. Else the one LANGUAGE, LC_ALL, LC_MESSAGES or LANG asks for; with --json, English.
    #[arg(long, value_enum, global = true, display_order = 900)]
    lang: Option<Tongue>,

    /// Print nothing but what an option asks for by name (--json, --plan), and errors: the exit code is the answer.
    #[arg(short, long, global = true, display_order = 901)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  wirespeed doctor wg0 --far ssh://root@nas       what is wrong, worst first (changes nothing)
  wirespeed test wg0 --far ssh://root@nas         the road against the tunnel, both directions
  wirespeed tune wg0 --far ssh://root@nas --plan  what would be done about it, as a shell script
  wirespeed tune wg0 --far ssh://root@nas         do it, one proved step at a time, with an undo
  wirespeed explain mtu-exceeds-path              what a finding means and how to mend it by hand
  wirespeed lab up mtu-exceeds-path               a practice road to try all this on

Exit codes:
  0 healthy or done, 1 findings, 2 wrong usage, 3 could not measure, 4 change refused or undone,
  130 stopped on request";

#[derive(Debug, Subcommand)]
enum Command {
    Doctor(doctor::Arguments),
    Test(test::Arguments),
    Tune(Box<tune::Arguments>),
    Explain(explain::Arguments),
    Lab(lab::Arguments),
    Demo(demo::Arguments),
    /// Serve another wirespeed on standard input and output.
    #[command(hide = true)]
    Agent,
    /// Put a tune back when nobody confirms it.
    #[command(hide = true)]
    TuneWatch(tune::WatchArguments),
    /// Delay packets on a practice road.
    #[command(hide = true)]
    LabEmulator {
        /// One direction each: `NAME:DELAYus`.
        directions: Vec<String>,
    },
    /// Write the manual pages and the shells' completions of both programs, for a package.
    #[command(hide = true)]
    PackageFiles(package_files::Arguments),
}

fn main() -> ExitCode {
    let arguments = match understood() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => wirespeed_help::end(&error),
        Err(help) => return told(&help),
    };
    if arguments.quiet {
        terminal::be_quiet();
    }
    match run(&arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            terminal::complain(&failure.sentence());
            if let Some(schema) = arguments.command.with_json()
                && failure.exit != Exit::Interrupted
                && !terminal::answered()
            {
                // The exit code tells of the failure even when standard output is gone.
                let _ = terminal::print_json(&failure.record(schema));
            }
            failure.exit.into()
        }
    }
}

/// The command line, in the language it asks for.
fn understood() -> Result<Arguments, clap::Error> {
    let typed = std::env::args_os().collect();
    let (language, typed) = language::of_arguments(typed, |name| std::env::var(name).ok());
    wirespeed_words::speak(language);
    wirespeed_help::parse(typed).and_then(Arguments::without_contradiction)
}

/// Shows the help or the version that was asked for: an answer like any other.
fn told(help: &clap::Error) -> ExitCode {
    match terminal::written(help.print().and_then(|()| io::stdout().flush())) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            terminal::complain(&failure.sentence());
            failure.exit.into()
        }
    }
}

impl Arguments {
    /// Refuses what clap does not compare: to say nothing and everything, where one stands before a command and the other
    /// behind it; and a rate where its protocol is not the one that needs it.
    fn without_contradiction(self) -> Result<Self, clap::Error> {
        let one = |argument: &str| ContextValue::String(argument.to_owned());
        let (kind, context) = if self.quiet && self.command.details() {
            let context = vec![
                (ContextKind::InvalidArg, one("--quiet")),
                (ContextKind::PriorArg, one("--verbose")),
            ];
            (ErrorKind::ArgumentConflict, context)
        } else if let Command::Test(test) = &self.command
            && test.rate_is_vain()
        {
            let lacks = ContextValue::Strings(vec!["--protocol udp".to_owned()]);
            let context = vec![(ContextKind::InvalidArg, lacks)];
            (ErrorKind::MissingRequiredArgument, context)
        } else {
            return Ok(self);
        };
        let mut error = clap::Error::new(kind).with_cmd(&Self::command());
        for (kind, value) in context {
            error.insert(kind, value);
        }
        Err(error)
    }
}

impl Command {
    /// Are details asked for?
    fn details(&self) -> bool {
        match self {
            Self::Doctor(arguments) => arguments.show.details(),
            Self::Test(arguments) => arguments.show.details(),
            Self::Tune(arguments) => arguments.show.details(),
            _ => false,
        }
    }

    /// The schema of the answer, when the user asked for JSON.
    fn with_json(&self) -> Option<Schema> {
        match self {
            Self::Doctor(arguments) => arguments.schema(),
            Self::Tune(arguments) => arguments.schema(),
            Self::Test(arguments) => arguments.show.json.then_some(Schema::TEST),
            Self::Lab(arguments) => arguments.schema(),
            _ => None,
        }
    }
}

fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Tune(arguments) => tune::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
        Command::TuneWatch(arguments) => tune::watch(arguments),
        Command::Agent => agent::run(),
        Command::LabEmulator { directions } => lab::emulate(directions),
        Command::PackageFiles(arguments) => package_files::run(arguments),
    }
}

#[cfg(test)]
mod tests;
