//! What is wrong with the command line, in another language than clap's own.

use std::error::Error as _;
use std::fmt::Write as _;

use crate::texts;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use wirespeed_language::quoted;

/// The texts, for those who look for unused ones.
pub(crate) const KEYS: [&str; 19] = [
    "help-error",
    "help-error-twice",
    "help-error-conflict",
    "help-error-conflicts",
    "help-error-no-value",
    "help-error-value",
    "help-error-value-because",
    "help-error-command",
    "help-error-missing",
    "help-error-missing-command",
    "help-error-equals",
    "help-error-too-many",
    "help-error-too-few",
    "help-error-unknown",
    "help-error-utf8",
    "help-error-similar",
    "help-error-as-value",
    "help-error-usage",
    "help-error-more",
];

/// The complaint as clap makes it: what is wrong, a tip, how the command is used.
pub fn complaint(error: &clap::Error) -> String {
    let mut out = say("help-error", &[("what", &what(error))]);
    if let Some(values) = strings(error, ContextKind::ValidValue).filter(|all| !all.is_empty()) {
        let possible = say("help-word-possible", &[("values", &values.join(", "))]);
        let _ = write!(out, "\n  {possible}");
    }
    for tip in tips(error) {
        let _ = write!(out, "\n\n  {tip}");
    }
    if let Some(usage) = text(error, ContextKind::Usage) {
        let usage = usage.strip_prefix("Usage:").unwrap_or(&usage);
        let usage = usage.trim_start();
        let _ = write!(out, "\n\n{}", say("help-error-usage", &[("usage", usage)]));
    }
    let _ = writeln!(out, "\n\n{}", say("help-error-more", &[]));
    out
}

fn what(error: &clap::Error) -> String {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let command = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    match error.kind() {
        ErrorKind::ArgumentConflict => conflict(error, argument, command),
        ErrorKind::InvalidValue if value.is_empty() => {
            say("help-error-no-value", &[("argument", &argument)])
        }
        ErrorKind::InvalidValue => of_value("help-error-value", &argument, &value),
        ErrorKind::ValueValidation => match error.source() {
            Some(because) => say(
                "help-error-value-because",
                &[
                    ("argument", &argument),
                    ("value", &value),
                    ("because", &because.to_string()),
                ],
            ),
            None => of_value("help-error-value", &argument, &value),
        },
        ErrorKind::InvalidSubcommand => say("help-error-command", &[("command", &command)]),
        ErrorKind::MissingSubcommand => say("help-error-missing-command", &[("command", &command)]),
        ErrorKind::MissingRequiredArgument => {
            let mut out = say("help-error-missing", &[]);
            for argument in strings(error, ContextKind::InvalidArg).unwrap_or_default() {
                let _ = write!(out, "\n  {argument}");
            }
            out
        }
        ErrorKind::NoEquals => say("help-error-equals", &[("argument", &argument)]),
        ErrorKind::TooManyValues => of_value("help-error-too-many", &argument, &value),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            say("help-error-too-few", &[("argument", &argument)])
        }
        ErrorKind::UnknownArgument => say("help-error-unknown", &[("argument", &argument)]),
        ErrorKind::InvalidUtf8 => say("help-error-utf8", &[]),
        // Nothing is wrong with the command line: writing failed, or it is help that was asked for.
        _ => error.to_string(),
    }
}

fn conflict(error: &clap::Error, argument: String, command: String) -> String {
    let argument = if argument.is_empty() {
        command
    } else {
        argument
    };
    let prior = match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(one)) if *one == argument => {
            return say("help-error-twice", &[("argument", &argument)]);
        }
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    };
    match prior.as_slice() {
        [] => say("help-error-conflicts", &[("argument", &argument)]),
        prior => say(
            "help-error-conflict",
            &[("argument", &argument), ("others", &all_quoted(prior))],
        ),
    }
}

/// What may have been meant.
fn tips(error: &clap::Error) -> Vec<String> {
    let mut tips = Vec::new();
    for kind in [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ] {
        let similar = strings(error, kind).unwrap_or_default();
        if !similar.is_empty() {
            tips.push(say(
                "help-error-similar",
                &[("similar", &all_quoted(&similar))],
            ));
        }
    }
    let as_value = |tip: &clap::builder::StyledStr| tip.to_string().contains("as a value");
    let as_value = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(own)) => own.iter().any(as_value),
        _ => false,
    };
    if as_value && let Some(argument) = text(error, ContextKind::InvalidArg) {
        tips.push(say("help-error-as-value", &[("argument", &argument)]));
    }
    tips
}

fn all_quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(", ")
}

fn of_value(key: &str, argument: &str, value: &str) -> String {
    say(key, &[("argument", argument), ("value", value)])
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        ContextValue::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn strings(error: &clap::Error, kind: ContextKind) -> Option<Vec<String>> {
    match error.get(kind)? {
        ContextValue::Strings(all) => Some(all.clone()),
        ContextValue::String(one) => Some(vec![one.clone()]),
        _ => None,
    }
}

/// The text of a key with its values; what a language lacks is told by its key.
fn say(key: &str, values: &[(&str, &str)]) -> String {
    texts::filled(key, values).unwrap_or_else(|| key.to_owned())
}
