//! Which language this run speaks: known before the command line is read, since its help and errors are spoken, too.

use std::ffi::OsString;

use clap::{Subcommand, ValueEnum};
use wirespeed_words::Language;

use crate::commands::tune;

/// What `--lang` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tongue {
    En,
    Fr,
}

/// Commands that programs speak to. They are English, like everything one machine tells another.
const HELPERS: [&str; 4] = ["agent", "tune-watch", "lab-emulator", "package-files"];

/// The language of these arguments (the program's name first), and the arguments with `--lang` before all others and `tune`'s in
/// order: a command that takes either options or further commands would take the one for the other behind them.
pub(crate) fn of_arguments(
    arguments: Vec<OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> (Language, Vec<OsString>) {
    let own_end = arguments
        .iter()
        .position(|argument| argument == "--")
        .unwrap_or(arguments.len());
    let mut own = arguments;
    let rest = own.split_off(own_end);
    let asked = asked(&mut own);
    put_in_order(&mut own);
    let command = own.iter().skip(1).find(|argument| !is_option(argument));
    let helper = command.is_some_and(|command| HELPERS.iter().any(|helper| command == helper));
    let scripted = own.iter().any(|argument| argument == "--json");
    let language = match asked {
        _ if helper => Language::English,
        Some(language) => language,
        None if scripted => Language::English,
        None => Language::of_environment(variable),
    };
    if let Some(asked) = asked {
        let lang = OsString::from(format!("--lang={}", asked.tag()));
        own.insert(own.len().min(1), lang);
    }
    own.extend(rest);
    (language, own)
}

/// Takes `--lang LANGUAGE` out, the last one counts. One that names no language stays for the command line to complain of.
fn asked(own: &mut Vec<OsString>) -> Option<Language> {
    let known = |value: &str| {
        Language::ALL
            .into_iter()
            .find(|language| language.tag() == value)
    };
    let mut asked = None;
    let mut index = 1;
    while index < own.len() {
        let (value, taken) = match own[index].to_str() {
            Some("--lang") => (own.get(index + 1).and_then(|next| next.to_str()), 2),
            Some(text) => (text.strip_prefix("--lang="), 1),
            None => (None, 1),
        };
        if let Some(language) = value.and_then(known) {
            asked = Some(language);
            own.drain(index..index + taken);
        } else {
            index += 1;
        }
    }
    asked
}

/// Of what stands directly behind `tune` puts a `--quiet` before it, and a `--json` behind the further command that comes next.
/// Elsewhere they may be an option's value.
fn put_in_order(own: &mut Vec<OsString>) {
    let quiet = |argument: &OsString| argument == "-q" || argument == "--quiet";
    let json = |argument: &OsString| argument == "--json";
    let mut behind_name = own.iter().skip(1);
    let Some(before) = behind_name.position(|argument| !is_option(argument)) else {
        return;
    };
    let command = before + 1;
    if own[command] != "tune" {
        return;
    }
    let behind = own.split_off(command + 1);
    let movable = |argument: &&OsString| quiet(argument) || json(argument);
    let (moved, rest) = behind.split_at(behind.iter().take_while(movable).count());
    let further = rest.first().and_then(|next| next.to_str());
    let further = usize::from(further.is_some_and(tune::After::has_subcommand));
    own.extend_from_slice(&rest[..further]);
    own.extend(moved.iter().filter(|argument| json(argument)).cloned());
    own.extend_from_slice(&rest[further..]);
    if moved.iter().any(quiet) && !own[..command].iter().any(quiet) {
        own.insert(1, OsString::from("--quiet"));
    }
}

fn is_option(argument: &OsString) -> bool {
    argument.to_string_lossy().starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, lang: &str) -> (Language, String) {
        let arguments = line.split(' ').map(OsString::from).collect();
        let (language, arguments) =
            of_arguments(arguments, |name| (name == "LANG").then(|| lang.to_owned()));
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        (language, arguments.join(" "))
    }

    #[test]
    fn the_option_counts_before_the_environment_wherever_it_stands() {
        use Language::{English, French};
        for (line, lang, language, arguments) in [
            ("w doctor", "fr_FR.UTF-8", French, "w doctor"),
            ("w doctor", "de_DE.UTF-8", English, "w doctor"),
            ("w --lang en doctor", "fr", English, "w --lang=en doctor"),
            ("w tune --lang=fr undo", "", French, "w --lang=fr tune undo"),
            (
                "w --lang en explain --lang fr",
                "",
                French,
                "w --lang=fr explain",
            ),
            (
                "w doctor --lang klingon",
                "fr",
                French,
                "w doctor --lang klingon",
            ),
            ("w doctor --lang", "fr", French, "w doctor --lang"),
            (
                "w lab exec client -- w --lang fr",
                "C",
                English,
                "w lab exec client -- w --lang fr",
            ),
        ] {
            assert_eq!(of(line, lang), (language, arguments.to_owned()), "{line}");
        }
    }

    #[test]
    fn what_stands_behind_tune_goes_where_it_is_looked_for() {
        for (typed, arguments) in [
            ("w tune -q undo", "w --quiet tune undo"),
            (
                "w tune --quiet status --json",
                "w --quiet tune status --json",
            ),
            ("w -q tune -q undo", "w -q tune undo"),
            ("w tune -q --lang fr undo", "w --lang=fr --quiet tune undo"),
            ("w tune --json undo", "w tune undo --json"),
            (
                "w tune --json -q confirm --far here",
                "w --quiet tune confirm --json --far here",
            ),
            ("w tune -q --json status", "w --quiet tune status --json"),
            ("w tune --json -q wg0", "w --quiet tune --json wg0"),
            ("w tune --json --plan", "w tune --json --plan"),
            ("w tune --only undo --json", "w tune --only undo --json"),
            ("w tune undo -q", "w tune undo -q"),
            ("w tune wg0 --ssh-option -q", "w tune wg0 --ssh-option -q"),
            ("w doctor -q tune", "w doctor -q tune"),
            (
                "w lab exec a -- w tune -q undo",
                "w lab exec a -- w tune -q undo",
            ),
            ("w tune", "w tune"),
            ("w -q", "w -q"),
            ("w", "w"),
        ] {
            assert_eq!(of(typed, "C").1, arguments, "{typed}");
        }
    }

    #[test]
    fn what_scripts_and_machines_read_is_english() {
        let language = |line: &str| of(line, "fr_FR.UTF-8").0;
        assert_eq!(language("w doctor --json"), Language::English);
        assert_eq!(language("w doctor --json --lang fr"), Language::French);
        for helper in HELPERS {
            assert_eq!(language(&format!("w {helper}")), Language::English);
            assert_eq!(
                language(&format!("w --lang fr {helper}")),
                Language::English
            );
        }
    }
}
