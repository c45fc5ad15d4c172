//! Help and complaints of the command lines in another language than that of the source.
//!
//! The doc comments of the arguments are the English help. Any other language has one text for each command and each
//! argument, with a key made from the definition; they are put into the definition before the command line is read. The texts are
//! with all others, in `crates/words/locales`; a table of them is made when this is built, so that `wirespeed-device`, which speaks to
//! people only here, needs nothing else.

mod complaint;
mod texts;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Parser};
use wirespeed_language::{Language, clean_lines, language};

pub use complaint::complaint;

/// Where the name of a command goes into a key.
const ROOT: &str = "help";

/// What the keys of wirespeed-device begin with.
const DEVICE: &str = "help-wirespeed-device";

/// The command line as it was typed (the program's name first), understood in the language of the moment.
///
/// # Errors
/// clap's: wrong usage, or the help that was asked for. [`end`] shows either.
pub fn parse<T: Parser>(typed: Vec<OsString>) -> Result<T, clap::Error> {
    match language() {
        Language::English => T::try_parse_from(typed),
        Language::French => matches(&for_terminal(T::command()), typed)
            .and_then(|matches| T::from_arg_matches(&matches)),
    }
}

/// Shows the help that was asked for, or what is wrong with the command line, and ends the program as clap does.
pub fn end(error: &clap::Error) -> ! {
    if is_help(error) {
        let code = match error.print() {
            // Whoever reads it may have seen enough.
            Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => 1,
            _ => error.exit_code(),
        };
        std::process::exit(code);
    }
    if language() == Language::English {
        error.exit();
    }
    // It quotes what was typed, which must not steer the terminal.
    let complaint = clean_lines(&complaint(error));
    // Nobody is left to tell when standard error is gone.
    let _ = std::io::stderr().lock().write_all(complaint.as_bytes());
    std::process::exit(error.exit_code())
}

/// A reason of a value's own parser in the language of the moment; `english` where the language has none.
pub fn reason(key: &str, values: &[(&str, &str)], english: impl FnOnce() -> String) -> String {
    texts::filled(key, values).unwrap_or_else(english)
}

/// The definition with every text in the language of the moment.
pub fn in_language(definition: Command) -> Command {
    let root = root(&definition);
    Walk::default().command(definition, root)
}

/// The same as a terminal shows it: clap puts a colon behind each heading, which French keeps apart from the word.
pub fn for_terminal(definition: Command) -> Command {
    let walk = Walk {
        before_colon: match language() {
            Language::English => "",
            Language::French => "\u{202f}",
        },
        ..Walk::default()
    };
    let root = root(&definition);
    walk.command(definition, root)
}

/// The keys that the definitions ask for and that are missing in the language of the moment, and those that are there and that
/// nothing asks for. `own` are those of [`reason`].
pub fn misfits(definitions: Vec<Command>, own: &[&str]) -> [Vec<String>; 2] {
    let walk = Walk::default();
    for definition in definitions {
        let root = root(&definition);
        walk.command(definition, root);
    }
    let missing: BTreeSet<String> = walk.missing.into_inner().into_iter().collect();
    let mut used: BTreeSet<String> = walk.used.into_inner().into_iter().collect();
    used.extend(complaint::KEYS.map(str::to_owned));
    used.extend(own.iter().map(|key| (*key).to_owned()));
    used.insert("help-word-help".to_owned());
    let there = texts::FRENCH.iter().map(|(key, _)| (*key).to_owned());
    let unused = there.filter(|key| !used.contains(key));
    let named = |key: &&String| texts::text(key).is_none();
    let missing = missing.iter().chain(used.iter().filter(named));
    [missing.cloned().collect(), unused.collect()]
}

/// What was typed, with a `help` command that does what clap's own does.
///
/// # Errors
/// clap's: wrong usage, or the help that was asked for.
pub fn matches(definition: &Command, arguments: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let program = arguments.first().cloned().unwrap_or_default();
    let matches = definition.clone().try_get_matches_from(arguments)?;
    match help_wanted(&matches) {
        Some(path) => {
            let help = std::iter::once(program)
                .chain(path)
                .chain(std::iter::once("--help".into()));
            definition.clone().try_get_matches_from(help)
        }
        None => Ok(matches),
    }
}

/// The command whose help a `help` command asks for.
fn help_wanted(matches: &ArgMatches) -> Option<Vec<OsString>> {
    let mut path: Vec<OsString> = Vec::new();
    let mut at = matches;
    while let Some((name, inner)) = at.subcommand() {
        if name == "help" {
            let of = inner.get_many::<OsString>("subcommand");
            path.extend(of.into_iter().flatten().cloned());
            return Some(path);
        }
        path.push(name.into());
        at = inner;
    }
    None
}

fn root(definition: &Command) -> &'static str {
    match definition.get_name() {
        "wirespeed-device" => DEVICE,
        _ => ROOT,
    }
}

/// Was it no error, but help that was asked for?
fn is_help(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

#[derive(Default)]
struct Walk {
    /// What stands between a heading and its colon.
    before_colon: &'static str,
    /// Keys that were looked up, and are not there.
    missing: RefCell<Vec<String>>,
    /// Keys that were looked up, and are.
    used: RefCell<Vec<String>>,
}

impl Walk {
    fn command(&self, command: Command, path: &str) -> Command {
        let about = if path == ROOT {
            format!("{ROOT}-wirespeed")
        } else {
            path.to_owned()
        };
        let hidden = command.is_hide_set();
        let mut command = command;
        if command.get_about().is_some() && !hidden {
            let text = Text::of(self.say(&about));
            command = command.about(text.short);
            if command.get_long_about().is_some()
                && let Some(long) = text.long
            {
                command = command.long_about(long);
            }
        }
        if command.get_after_help().is_some() {
            command = command.after_help(self.say(&format!("{path}-after")));
        }
        if hidden {
            return command;
        }
        let long = has_long_help(&command);
        let style = *command.get_styles().get_usage();
        let usage = self.say("help-word-usage");
        let template = format!(
            "{{before-help}}{{about-with-newline}}\n{style}{usage}{style:#} {{usage}}\n\n{{all-args}}{{after-help}}"
        );
        command = command
            .help_template(template)
            .subcommand_help_heading(self.heading("help-word-commands"))
            .subcommand_value_name(self.say("help-word-command"))
            .disable_help_flag(true)
            .mut_args(|argument| self.argument(argument, path, long))
            .mut_subcommands(|inner| {
                let path = format!("{path}-{}", inner.get_name());
                self.command(inner, &path)
            });
        let help = Arg::new("help")
            .short('h')
            .long("help")
            .action(ArgAction::Help)
            .display_order(999)
            .help_heading(self.heading("help-word-options"));
        command = command.arg(if long {
            help.help(self.say("help-word-help-more"))
                .long_help(self.say("help-word-help-less"))
        } else {
            help.help(self.say("help-word-help"))
        });
        if command.get_version().is_some() {
            let version = Arg::new("version")
                .short('V')
                .long("version")
                .action(ArgAction::Version)
                .display_order(999)
                .help_heading(self.heading("help-word-options"))
                .help(self.say("help-word-version"));
            command = command.disable_version_flag(true).arg(version);
        }
        if command.has_subcommands() {
            command = command
                .disable_help_subcommand(true)
                .subcommand(self.help_command());
        }
        self.in_order(command)
    }

    /// Arguments before options before further headings, as in clap's own help: a heading of ours stands where its first argument is
    /// defined, and what is below it goes by its place, or by its name.
    fn in_order(&self, command: Command) -> Command {
        let mut arguments: Vec<Arg> = command.get_arguments().cloned().collect();
        let options = self.heading("help-word-options");
        arguments.sort_by_key(|argument| {
            let among_options = argument.get_help_heading() == Some(options.as_str());
            (!argument.is_positional(), !among_options)
        });
        let mut arguments = arguments.into_iter().enumerate();
        command.mut_args(|argument| match arguments.next() {
            Some((place, next)) if next.is_positional() => next.display_order(place),
            Some((_, next)) => next,
            None => argument,
        })
    }

    fn help_command(&self) -> Command {
        let name = self.say("help-word-command");
        let usage = self.say("help-word-usage");
        Command::new("help")
            .about(self.say("help-word-help-command"))
            .disable_help_flag(true)
            .disable_version_flag(true)
            .help_template(format!(
                "{{about-with-newline}}\n{usage} {{usage}}\n\n{{all-args}}"
            ))
            .arg(
                Arg::new("subcommand")
                    .action(ArgAction::Append)
                    .num_args(..)
                    .value_parser(clap::value_parser!(OsString))
                    .value_name(name)
                    .help_heading(self.heading("help-word-arguments"))
                    .help(self.say("help-word-help-of")),
            )
    }

    fn argument(&self, argument: Arg, path: &str, long: bool) -> Arg {
        if argument.is_hide_set() {
            return argument;
        }
        let heading = match argument.get_help_heading() {
            Some(heading) => self.heading(&format!("help-heading-{}", key_of(heading))),
            None if argument.is_positional() => self.heading("help-word-arguments"),
            None => self.heading("help-word-options"),
        };
        let mut text = Text::of(self.say(&Self::key_of_argument(&argument, path)));
        let more = self.possible(&argument);
        if argument.get_long_help().is_none() {
            text.long = None;
        }
        let mut argument = argument;
        if !more.is_empty() {
            let whole = text.long.unwrap_or_else(|| text.short.clone());
            text.long = long.then(|| format!("{whole}\n\n{}", more.join("\n")));
            text.short = format!("{} {}", text.short, more.join(" "));
            argument = argument.hide_env(true);
            if argument.get_action().takes_values() {
                argument = argument.hide_default_value(true).hide_possible_values(true);
            }
        }
        argument = argument.help(text.short).help_heading(heading);
        if let Some(long) = text.long {
            argument = argument.long_help(long);
        }
        if argument.get_action().takes_values()
            && let Some(names) = argument.get_value_names()
        {
            let names: Vec<String> = names.iter().map(|name| self.value(name)).collect();
            argument = argument.value_names(names);
        }
        argument
    }

    /// What clap adds to the help of an argument: its variable, its default, and the values there are.
    fn possible(&self, argument: &Arg) -> Vec<String> {
        let mut more = Vec::new();
        if let Some(variable) = argument.get_env() {
            more.push(self.say_of("help-word-variable", &variable.to_string_lossy()));
        }
        if !argument.get_action().takes_values() {
            return more;
        }
        let defaults: Vec<_> = argument
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        if !defaults.is_empty() && !argument.is_hide_default_value_set() {
            more.push(self.say_of("help-word-default", &defaults.join(" ")));
        }
        let values: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| value.get_name().to_owned())
            .collect();
        if !values.is_empty() && !argument.is_hide_possible_values_set() {
            more.push(self.say_of("help-word-possible", &values.join(", ")));
        }
        more
    }

    /// Its own, or that of an argument that several commands have.
    fn key_of_argument(argument: &Arg, path: &str) -> String {
        let name = key_of(argument.get_id().as_str());
        let own = format!("{path}-{name}");
        let shared = format!("help-any-{name}");
        if texts::text(&own).is_none() && texts::text(&shared).is_some() {
            shared
        } else {
            own
        }
    }

    /// The name of a value: `FILE`. One letter is no word.
    fn value(&self, name: &str) -> String {
        let word = name.chars().all(|one| one.is_ascii_uppercase()) && name.len() > 1;
        if word {
            self.say(&format!("help-value-{}", name.to_lowercase()))
        } else {
            name.to_owned()
        }
    }

    fn heading(&self, key: &str) -> String {
        self.say(key) + self.before_colon
    }

    fn say(&self, key: &str) -> String {
        self.say_of(key, "")
    }

    fn say_of(&self, key: &str, values: &str) -> String {
        let said = texts::filled(key, &[("values", values)]);
        let list = if said.is_some() {
            &self.used
        } else {
            &self.missing
        };
        list.borrow_mut().push(key.to_owned());
        said.unwrap_or_else(|| key.to_owned())
    }
}

/// A help text: its first paragraph, and the whole of it where there is more.
struct Text {
    short: String,
    long: Option<String>,
}

impl Text {
    fn of(whole: String) -> Self {
        match whole.split_once("\n\n") {
            Some((first, _)) => Self {
                short: first.trim_end_matches('.').to_owned(),
                long: Some(whole),
            },
            None => Self {
                short: whole,
                long: None,
            },
        }
    }
}

/// Does `--help` say more than `-h`?
fn has_long_help(command: &Command) -> bool {
    let more = |text: Option<&StyledStr>| text.is_some();
    more(command.get_long_about())
        || command
            .get_arguments()
            .any(|argument| more(argument.get_long_help()))
}

fn key_of(name: &str) -> String {
    name.to_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use wirespeed_language::within;

    use super::*;

    #[test]
    fn arguments_stand_in_the_order_of_the_command_line_and_before_options() {
        let definition = Command::new("wirespeed")
            .arg(Arg::new("far").long("far").help_heading("The other end"))
            .arg(Arg::new("lab").long("lab"))
            .arg(Arg::new("host"))
            .arg(Arg::new("command").last(true));
        let french = within(Language::French, || in_language(definition.clone()));
        for mut definition in [definition, french] {
            let help = definition.render_help().to_string();
            let marks = ["\n  [host]", "\n  [command]", " --lab", " --help", " --far"];
            let places = marks.map(|mark| help.find(mark));
            assert!(places.iter().all(Option::is_some), "{help}");
            assert!(places.is_sorted(), "{help}");
        }
    }
}
