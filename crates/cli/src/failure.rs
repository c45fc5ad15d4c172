//! An error as a person gets it: what was tried, on which machine, what to do.

use wirespeed_doctor::Verdict;
use wirespeed_lab::LabError;
use wirespeed_measure::{MeasureError, reach_said};
use wirespeed_reach::ReachError;
use wirespeed_report::{ErrorRecord, ErrorText, Schema};
use wirespeed_tune::TuneError;
use wirespeed_words::say;

use crate::exit::Exit;

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// For people and for `--json`.
    pub(crate) text: ErrorText,
}

impl Failure {
    /// Something that could not be done on this machine.
    pub(crate) fn here(exit: Exit, what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            exit,
            text: ErrorText {
                what: what.into(),
                r#where: "here".to_owned(),
                todo: todo.into(),
            },
        }
    }

    /// A request to end.
    pub(crate) fn interrupted() -> Self {
        Self::here(
            Exit::Interrupted,
            say!("cli-stopped"),
            say!("cli-stopped-todo"),
        )
    }

    /// A crate's message: its errors put what to do behind the last semicolon, where there is something to do.
    fn from_message(exit: Exit, place: Option<String>, message: &str) -> Self {
        let see = say!("cli-see-message");
        let (what, todo) = match message.rsplit_once("; ") {
            Some((what, todo)) => (what, todo),
            None => (message, see.as_str()),
        };
        Self {
            exit,
            text: ErrorText {
                what: what.trim_end().to_owned(),
                r#where: place.unwrap_or_else(|| "here".to_owned()),
                todo: todo.to_owned(),
            },
        }
    }

    /// A machine did not make a change or take it back: refused there, or out of reach.
    pub(crate) fn of_change(error: ReachError) -> Self {
        let refused = matches!(error, ReachError::Operation { .. });
        let place = place_of(&error);
        let exit = if refused {
            Exit::Refused
        } else {
            Exit::Unmeasured
        };
        Self::from_message(exit, Some(place), &TuneError::Reach(error).said())
    }

    /// The sentence for the terminal.
    pub(crate) fn sentence(&self) -> String {
        let (what, todo) = (&self.text.what, &self.text.todo);
        if *todo == say!("cli-see-message") {
            what.clone()
        } else {
            say!("cli-failure", what = what, todo = todo)
        }
    }

    /// The object for `--json`.
    pub(crate) fn record(&self, schema: Schema) -> ErrorRecord {
        ErrorRecord {
            schema,
            verdict: Verdict::Unmeasured,
            error: self.text.clone(),
        }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        if matches!(error, MeasureError::Stopped) {
            return Self::interrupted();
        }
        let mut failure = Self::from_message(Exit::Unmeasured, machine_of(&error), &error.said());
        if let MeasureError::NoSuchInterface { known, .. }
        | MeasureError::WhichInterface { known, .. } = &error
        {
            failure.text.todo = match known.as_slice() {
                [] => say!("cli-no-interface-todo"),
                names => say!("cli-choose-among", names = names.join(", ")),
            };
        }
        failure
    }
}

impl From<ReachError> for Failure {
    fn from(error: ReachError) -> Self {
        Self::from_message(
            Exit::Unmeasured,
            Some(place_of(&error)),
            &reach_said(&error),
        )
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        let message = error.said();
        match error {
            TuneError::Stopped => Self::here(
                Exit::Interrupted,
                say!("cli-stopped"),
                say!("cli-stopped-put-back"),
            ),
            TuneError::Measure(error) => error.into(),
            TuneError::Reach(error) => Self::of_change(error),
            TuneError::Diagnosis(_) => Self::from_message(Exit::Unmeasured, None, &message),
            _ => Self::from_message(Exit::Refused, None, &message),
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let exit = match error {
            LabError::Cancelled => return Self::interrupted(),
            LabError::Scenario { .. }
            | LabError::UnknownScenario { .. }
            | LabError::UnknownImplementation(_)
            | LabError::BadId(_)
            | LabError::NoSuchLab { .. }
            | LabError::NoSuchHost { .. } => Exit::Usage,
            _ => Exit::Unmeasured,
        };
        let message = error.said();
        // Lab messages put the way out behind a colon.
        match message.rsplit_once(": ") {
            Some((what, todo)) if !message.contains("; ") => {
                Self::here(exit, what.trim_end(), todo)
            }
            _ => Self::from_message(exit, None, &message),
        }
    }
}

/// Every message of [`ReachError`] but that about a place begins with the machine.
fn place_of(error: &ReachError) -> String {
    let message = error.to_string();
    match (error, message.split_once(": ")) {
        (ReachError::Place(_), _) | (_, None) => "here".to_owned(),
        (_, Some((machine, _))) => machine.to_owned(),
    }
}

fn machine_of(error: &MeasureError) -> Option<String> {
    match error {
        MeasureError::NoSuchInterface { machine, .. }
        | MeasureError::WhichInterface { machine, .. }
        | MeasureError::InterfaceDown { machine, .. }
        | MeasureError::PeersUnknown { machine, .. }
        | MeasureError::NoPeers { machine, .. }
        | MeasureError::WhichPeer { machine, .. }
        | MeasureError::NoSuchPeer { machine, .. }
        | MeasureError::NoAddress { machine, .. }
        | MeasureError::NoIperf3 { machine, .. }
        | MeasureError::NoConnection { machine, .. }
        | MeasureError::LoadFailed { machine, .. }
        | MeasureError::ProbeFailed { machine, .. } => Some(machine.clone()),
        MeasureError::WrongFarEnd { far, .. } => Some(far.clone()),
        MeasureError::Reach(error) => Some(place_of(error)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_reach::NotStartedReason;
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn what_there_is_is_told_in_both_languages() {
        for (known, words) in [
            (vec![], ["has none", "n’en a aucune"]),
            (vec!["wg0".to_owned()], ["has wg0", "a wg0"]),
        ] {
            for (language, words) in Language::ALL.into_iter().zip(words) {
                let error = MeasureError::WhichInterface {
                    machine: "here".to_owned(),
                    known: known.clone(),
                };
                let text = within(language, || Failure::from(error).text);
                assert!(text.what.contains(words), "{text:?}");
                let todo = known.first().map_or("wg-quick up", String::as_str);
                assert!(text.todo.contains(todo), "{text:?}");
            }
        }
    }

    #[test]
    fn a_broken_scenario_comes_with_a_way_out() {
        for (language, todo) in [
            (Language::English, "name one"),
            (Language::French, "en nommer un"),
        ] {
            let text = within(language, || {
                let error = LabError::Scenario {
                    origin: "a.toml".to_owned(),
                    why: "line 1, column 5: key with no value; expected `=`".to_owned(),
                };
                Failure::from(error).text
            });
            assert!(text.what.ends_with("expected `=`"), "{text:?}");
            assert!(text.todo.starts_with(todo), "{text:?}");
        }
    }

    #[test]
    fn what_a_machine_refuses_is_a_refusal_and_a_lost_machine_is_none() {
        let machine = "gw2".to_owned();
        let refused = TuneError::Reach(ReachError::Operation {
            machine: machine.clone(),
            operation: "tune.begin".to_owned(),
            message: "another wirespeed tune is at work here; wait for it".to_owned(),
        });
        let failure = Failure::from(refused);
        assert_eq!(failure.exit, Exit::Refused);
        assert_eq!(failure.text.r#where, "gw2");
        let lost = TuneError::Reach(ReachError::NotStarted {
            machine,
            reason: NotStartedReason::NoSshCommand,
        });
        assert_eq!(Failure::from(lost).exit, Exit::Unmeasured);
    }
}
