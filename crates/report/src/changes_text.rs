//! What tunes changed: what is in force now, and what became of it.

use wirespeed_settings::Setting;
use wirespeed_tune::{PutBack, PutBackResult, State, Status};
use wirespeed_words::say;

use crate::doctor_text::told;
use crate::look::{Look, columns};
use crate::tune_text::setting_value;
use crate::{places, units};

/// What an undo did, machine by machine.
pub fn put_back(machines: &[(String, Vec<PutBack>)], look: &Look) -> String {
    let mut out = String::new();
    for (machine, outcomes) in machines {
        let machine = &places::name(machine);
        if outcomes.is_empty() {
            out.push_str(&look.hanging(
                &format!("{}  ", look.bold(machine)),
                0,
                &say!("report-tune-unchanged"),
            ));
        }
        for outcome in outcomes {
            out.push_str(&look.hanging(
                &format!("{}  ", look.bold(machine)),
                columns(machine) + 2,
                &put_back_words(outcome),
            ));
        }
    }
    out
}

/// What could not be put back, a line each, of what an undo or the beginning of a tune did on machines by these names.
pub fn not_put_back<'a>(
    outcomes: impl IntoIterator<Item = (&'a String, &'a PutBack)>,
) -> Vec<String> {
    outcomes
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome.result, PutBackResult::Failed { .. }))
        .map(|(machine, outcome)| told(&places::name(machine), &put_back_words(outcome)))
        .collect()
}

pub(crate) fn put_back_words(put_back: &PutBack) -> String {
    let setting = setting_words(&put_back.setting);
    let before = setting_value(&put_back.setting, &put_back.before);
    match &put_back.result {
        PutBackResult::PutBack => say!("report-put-back", setting = setting, before = before),
        PutBackResult::ChangedByOthers { now } => say!(
            "report-put-back-changed",
            setting = setting,
            now = now,
            before = before
        ),
        PutBackResult::Gone => say!("report-put-back-gone", setting = setting),
        PutBackResult::Failed { why } => say!(
            "report-put-back-failed",
            setting = setting,
            before = before,
            why = why
        ),
    }
}

/// Where the tunes of some machines are.
pub fn tune_status(machines: &[(String, Status)], look: &Look) -> String {
    let mut out = String::new();
    for (machine, status) in machines {
        let machine = &places::name(machine);
        let text = match &status.state {
            State::Idle => say!("report-state-idle"),
            State::Experimenting { process } => {
                say!("report-state-at-work", process = process.to_string())
            }
            State::Kept { seconds_left } => {
                say!("report-state-kept", time = units::time(*seconds_left))
            }
            State::Confirmed { .. } => say!("report-state-confirmed"),
            State::Undone { why, .. } => say!("report-state-undone", why = why),
        };
        out.push_str(&look.hanging(
            &format!("{}  ", look.bold(machine)),
            columns(machine) + 2,
            &text,
        ));
        for change in &status.changes {
            let mut text = told(
                &setting_words(&change.setting),
                &format!(
                    "{} → {}",
                    setting_value(&change.setting, &change.before),
                    setting_value(&change.setting, &change.tuned)
                ),
            );
            match &change.now {
                Some(now) if *now == change.tuned => {}
                Some(now) => {
                    let now = setting_value(&change.setting, now);
                    text = say!("report-change-now", change = text, now = now);
                }
                None => text = say!("report-change-now-unknown", change = text),
            }
            out.push_str(&look.hanging("  ", 4, &text));
            // While it waits it may yet be put back, and what somebody else made of it is theirs to keep.
            let confirmed = matches!(status.state, State::Confirmed { .. });
            if confirmed && change.now.as_ref() == Some(&change.tuned) {
                let how = change.setting.persistence(&change.tuned);
                let lead = format!("    {}  ", say!("report-label-keep"));
                out.push_str(&look.hanging(&lead, columns(&lead), &how));
            }
        }
        let outcomes = match &status.state {
            State::Undone { outcomes, .. } => outcomes.as_slice(),
            _ => &[],
        };
        for outcome in outcomes.iter().chain(&status.recovered) {
            out.push_str(&look.hanging("  ", 4, &put_back_words(outcome)));
        }
    }
    out
}

fn setting_words(setting: &Setting) -> String {
    match setting {
        Setting::LinkMtu { interface } => say!("report-setting-mtu", interface = interface),
        Setting::SocketReceiveBuffer { interface } => {
            say!("report-setting-buffer", interface = interface)
        }
        Setting::RouteCongestion { interface } => {
            say!("report-setting-congestion", interface = interface)
        }
        Setting::EgressShaper { interface } => say!("report-setting-shaper", interface = interface),
        Setting::ReceiveRing { interface } => say!("report-setting-ring", interface = interface),
        Setting::InterruptCores { interrupt } => say!(
            "report-setting-interrupt",
            interrupt = interrupt.to_string()
        ),
        Setting::Governor => say!("report-setting-governor"),
        Setting::ThreadedNapi { interface } => say!("report-setting-napi", interface = interface),
        Setting::LinkOffload { interface, feature } => say!(
            "report-setting-offload",
            feature = feature,
            interface = interface
        ),
        Setting::Sysctl { name } => name.clone(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use wirespeed_tune::ChangeInForce;
    use wirespeed_words::{Language, within};

    use super::*;

    pub(crate) const HERE: &str = "here";

    fn put_back_of(result: PutBackResult) -> PutBack {
        PutBack {
            setting: Setting::LinkMtu {
                interface: "wg0".to_owned(),
            },
            before: 1420.into(),
            result,
        }
    }

    pub(crate) fn refused() -> PutBack {
        put_back_of(PutBackResult::Failed {
            why: "the kernel said no".to_owned(),
        })
    }

    pub(crate) fn french(text: impl Fn(&Look) -> String) -> String {
        within(Language::French, || text(&Look::new(120, false, true)))
    }

    pub(crate) fn assert_named(text: &str) {
        assert!(text.contains("cette machine"), "{text}");
        let mut words = text.split(|letter: char| !letter.is_alphanumeric());
        assert!(!words.any(|word| word == HERE), "{text}");
    }

    #[test]
    fn an_undo_names_this_machine_in_the_readers_language() {
        for outcomes in [Vec::new(), vec![refused()]] {
            let machines = [(HERE.to_owned(), outcomes)];
            assert_named(&french(|look| put_back(&machines, look)));
        }
        let status = Status {
            state: State::Idle,
            interface: None,
            begun_at: None,
            changes: Vec::<ChangeInForce>::new(),
            recovered: Vec::new(),
        };
        let machines = [(HERE.to_owned(), status)];
        assert_named(&french(|look| tune_status(&machines, look)));
    }

    #[test]
    fn what_is_confirmed_is_told_with_the_line_that_keeps_it() {
        let state = State::Confirmed { at: 0.0 };
        let change = |now: u32| ChangeInForce {
            setting: Setting::LinkMtu {
                interface: "wg0".to_owned(),
            },
            before: 1420.into(),
            tuned: 1340.into(),
            now: Some(now.into()),
        };
        let status = |state: State, now: u32| {
            let status = Status {
                state,
                interface: Some("wg0".to_owned()),
                begun_at: None,
                changes: vec![change(now)],
                recovered: Vec::new(),
            };
            let machines = [(HERE.to_owned(), status)];
            tune_status(&machines, &Look::new(120, false, false))
        };
        let text = status(state.clone(), 1340);
        assert!(text.contains("\n    to keep  `MTU = 1340` under"), "{text}");
        assert!(!status(state, 1300).contains("to keep"));
        assert!(!status(State::Kept { seconds_left: 60.0 }, 1340).contains("to keep"));
    }

    #[test]
    fn only_what_is_still_changed_is_told_of() {
        let here = HERE.to_owned();
        let outcomes = [put_back_of(PutBackResult::PutBack), refused()];
        let lines = not_put_back(outcomes.iter().map(|outcome| (&here, outcome)));
        let [line] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        assert!(line.starts_with("here: "), "{line}");
        assert!(line.contains("the kernel said no"), "{line}");
    }
}
