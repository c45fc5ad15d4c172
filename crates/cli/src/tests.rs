use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use wirespeed_device::options::{Options as Device, REASONS};
use wirespeed_help::{for_terminal, in_language, matches, misfits};
use wirespeed_words::{Language, within};

use crate::Arguments;

#[test]
fn every_command_and_argument_has_its_french_help_and_no_text_is_left_over() {
    let definitions = vec![Arguments::command(), Device::command()];
    let [missing, unused] = within(Language::French, || misfits(definitions, &REASONS));
    assert!(missing.is_empty(), "missing: {missing:#?}");
    assert!(unused.is_empty(), "there, and never shown: {unused:#?}");
}

/// The French definition takes what the English one takes.
#[test]
fn a_definition_in_french_is_the_same_definition() {
    let french = within(Language::French, || in_language(Arguments::command()));
    french.clone().debug_assert();
    let parse = |line: &str| {
        let arguments = line.split(' ').map(OsString::from).collect();
        within(Language::French, || matches(&french, arguments))
    };
    for line in [
        "w doctor wg0 --passive --for 60s",
        "w --lang fr tune undo --json",
        "w lab exec client -- ping -c 3 10.9.0.2",
        "w agent",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
    for (line, kind) in [
        ("w --help", ErrorKind::DisplayHelp),
        ("w help", ErrorKind::DisplayHelp),
        ("w help tune undo", ErrorKind::DisplayHelp),
        ("w tune help undo", ErrorKind::DisplayHelp),
        ("w help gremlins", ErrorKind::InvalidSubcommand),
        ("w --version", ErrorKind::DisplayVersion),
        ("w doctor --no-such", ErrorKind::UnknownArgument),
    ] {
        assert_eq!(
            parse(line).err().map(|error| error.kind()),
            Some(kind),
            "{line}"
        );
    }
}

/// Lines that were laid out by hand are not wrapped.
#[test]
fn french_examples_fit_a_terminal_of_a_hundred_columns() {
    fn each(command: &Command) {
        let after = command.get_after_help().map(ToString::to_string);
        for line in after.unwrap_or_default().lines() {
            assert!(
                line.chars().count() <= 100,
                "{}: {line}",
                command.get_name()
            );
        }
        command.get_subcommands().for_each(each);
    }
    for definition in [Arguments::command(), Device::command()] {
        each(&within(Language::French, || in_language(definition)));
    }
}

/// What clap has no text of its own for is no English text either.
#[test]
fn no_english_is_left_in_the_french_help() {
    fn each(command: &mut Command, see: &mut dyn FnMut(String)) {
        see(command.render_long_help().to_string());
        see(command.render_help().to_string());
        for inner in command.get_subcommands_mut() {
            if !inner.is_hide_set() {
                each(inner, see);
            }
        }
    }
    let [mut program, mut device] = within(Language::French, || {
        [Arguments::command(), Device::command()].map(for_terminal)
    });
    program.build();
    device.build();
    let mut see = |help: String| {
        for word in [
            " the ",
            " Print ",
            "Usage:",
            "default:",
            "Commands:",
            "values:",
            "<FILE>",
        ] {
            assert!(!help.contains(word), "{word:?} in {help}");
        }
    };
    each(&mut program, &mut see);
    each(&mut device, &mut see);
}
