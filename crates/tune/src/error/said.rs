//! What a tune could not do, and why it was put back, as a person reads it. In English it is what was said already.

use wirespeed_measure::reach_said;
use wirespeed_reach::ReachError;
use wirespeed_words::say;

use super::TuneError;
use crate::{State, Status};

impl TuneError {
    /// The message in the language of the moment.
    pub fn said(&self) -> String {
        match self {
            Self::State {
                doing,
                path,
                source,
            } => say!(
                "tune-error-state",
                doing = doing_said(doing),
                path = path.display().to_string(),
                error = source.to_string()
            ),
            Self::NotRecorded { path, source } => say!(
                "tune-error-not-recorded",
                path = path.display().to_string(),
                error = source.to_string()
            ),
            Self::Journal { path, why } => say!(
                "tune-error-journal",
                path = path.display().to_string(),
                why = why
            ),
            Self::Held { holder } => say!("tune-error-held", holder = holder),
            Self::NotBegun => say!("tune-error-not-begun"),
            Self::NotArmed { why } => say!("tune-error-not-armed", why = why),
            Self::Over { why } => say!("tune-error-over", why = reason_said(why)),
            Self::NothingKept => say!("tune-error-nothing-kept"),
            Self::ChangedByOthers { setting, now } => {
                say!("tune-error-changed-by-others", setting = setting, now = now)
            }
            Self::Reach(ReachError::Operation {
                machine, message, ..
            }) => say!(
                "tune-error-at",
                machine = machine,
                message = refusal_said(message)
            ),
            Self::Reach(error) => reach_said(error),
            Self::Measure(error) => error.said(),
            Self::Diagnosis(why) => say!("tune-error-diagnosis", why = why),
            Self::Stopped => say!("tune-error-stopped"),
            Self::Setting(error) => error.to_string(),
        }
    }
}

fn doing_said(doing: &str) -> String {
    match doing {
        "finding" => say!("tune-doing-finding"),
        "creating" => say!("tune-doing-creating"),
        "looking at" => say!("tune-doing-looking"),
        "using" => say!("tune-doing-using"),
        "reading" => say!("tune-doing-reading"),
        "locking" => say!("tune-doing-locking"),
        "archiving the journal as" => say!("tune-doing-archiving"),
        "writing the journal" => say!("tune-doing-writing"),
        other => other.to_owned(),
    }
}

impl Status {
    /// With the reasons of an agent, which speaks English, in the language of the moment.
    pub(crate) fn said(mut self) -> Self {
        if let State::Undone { why, .. } = &mut self.state {
            *why = reason_said(why);
        }
        self
    }
}

/// What an agent refused, where it is one of the refusals that are to be expected.
pub fn refusal_said(message: &str) -> String {
    if message == TuneError::NothingKept.to_string() {
        return TuneError::NothingKept.said();
    }
    if message == TuneError::NotBegun.to_string() {
        return TuneError::NotBegun.said();
    }
    let held = message
        .strip_prefix("another wirespeed tune is at work here: ")
        .and_then(|rest| rest.split_once("; wait for it"));
    if let Some((holder, _)) = held {
        let holder = holder.to_owned();
        return TuneError::Held { holder }.said();
    }
    match message.strip_prefix("the experiment is over: ") {
        Some(why) => say!("tune-error-over", why = reason_said(why)),
        None => message.to_owned(),
    }
}

/// Why a watchdog, or the program, put something back. It is kept in English on the machine where it happened.
fn reason_said(why: &str) -> String {
    let between = |before: &str, after: &str| {
        let rest = why.strip_prefix(before)?.strip_suffix(after)?;
        Some(rest.to_owned())
    };
    if let Some(signal) = between("the watchdog was told to end (", ")") {
        return say!("tune-reason-told-to-end", signal = signal);
    }
    if let Some(seconds) = between("nothing was heard of the experiment for ", " s") {
        return say!("tune-reason-nothing-heard", seconds = seconds);
    }
    if let Some(seconds) = between(
        "the tunnel stopped passing traffic: no echo reply for ",
        " s",
    ) {
        return say!("tune-reason-no-traffic", seconds = seconds);
    }
    for (said, all) in [
        ("everything was put back: ", true),
        ("everything was put back before it was confirmed: ", false),
    ] {
        if let Some(why) = why.strip_prefix(said) {
            let why = reason_said(why);
            return if all {
                say!("tune-reason-all", why = why)
            } else {
                say!("tune-reason-all-before", why = why)
            };
        }
    }
    match why {
        "asked by the user" => say!("tune-reason-asked"),
        "nobody confirmed in time" => say!("tune-reason-nobody"),
        "nothing was kept" => say!("tune-reason-nothing-kept"),
        "the journal was removed" => say!("tune-reason-journal"),
        "the program that made the changes ended" => say!("tune-reason-program"),
        "the program and its watchdog had ended" => say!("tune-reason-both-ended"),
        "the watchdog had ended" => say!("tune-reason-watchdog"),
        "the far end could not begin" => say!("tune-reason-far"),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use wirespeed_words::{Language, within};

    use super::*;

    fn some() -> Vec<TuneError> {
        let text = |text: &str| text.to_owned();
        vec![
            TuneError::State {
                doing: "creating",
                path: "/var/lib/x".into(),
                source: io::Error::other("full"),
            },
            TuneError::NotRecorded {
                path: "/var/lib/x".into(),
                source: io::Error::other("full"),
            },
            TuneError::Journal {
                path: "/var/lib/x".into(),
                why: text("why"),
            },
            TuneError::Held {
                holder: text("process 7 on interface wg0"),
            },
            TuneError::NotBegun,
            TuneError::NotArmed { why: text("why") },
            TuneError::Over {
                why: text("nobody confirmed in time"),
            },
            TuneError::NothingKept,
            TuneError::ChangedByOthers {
                setting: text("wg0 mtu"),
                now: text("1400"),
            },
            TuneError::Diagnosis(text("why")),
            TuneError::Stopped,
        ]
    }

    #[test]
    fn in_english_it_is_what_was_said() {
        for error in some() {
            let english = error.to_string();
            assert_eq!(error.said(), english);
            assert_ne!(within(Language::French, || error.said()), english);
            assert_eq!(refusal_said(&english), english);
        }
        for reason in [
            "the watchdog was told to end (SIGTERM)",
            "nothing was heard of the experiment for 90 s",
            "the tunnel stopped passing traffic: no echo reply for 5 s",
            "everything was put back: nobody confirmed in time",
            "everything was put back before it was confirmed: asked by the user",
            "nothing was kept",
            "the journal was removed",
            "the program that made the changes ended",
            "the program and its watchdog had ended",
            "the watchdog had ended",
            "the far end could not begin",
        ] {
            assert_eq!(reason_said(reason), reason);
            let french = within(Language::French, || reason_said(reason));
            assert!(!french.contains("the "), "{french}");
        }
    }
}
