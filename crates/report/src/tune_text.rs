//! Experiments in the terminal: what was tried, what it gained, what was kept.

use wirespeed_doctor::{End, Goal, Verdict};
use wirespeed_settings::{Setting, Value};
use wirespeed_tune::{Experiment, Outcome, PutBack, PutBackResult, Stage, State, Status};

use crate::look::{Look, clean, columns, table};
use crate::record::{PlanRecord, TuneRecord};
use crate::units;

/// What a tune did, and how to go on. `far_options` are those the user gave (` --far ssh://…`).
pub fn tune(record: &TuneRecord, far_options: &str, look: &Look) -> String {
    let outcome = &record.outcome;
    let mut out = headline(outcome, look);
    for (host, put_back) in &outcome.recovered {
        let text = format!(
            "{}: left by an earlier tune: {}",
            host,
            put_back_words(put_back)
        );
        out.push_str(&look.hanging("  first     ", 12, &text));
    }
    for experiment in &outcome.experiments {
        out.push('\n');
        out.push_str(&one(experiment, look));
    }
    if outcome.stages.len() > 1 {
        out.push('\n');
        out.push_str(&stages(&outcome.stages, look));
    }
    if !outcome.not_tried.is_empty() {
        out.push('\n');
        out.push_str(&look.bold("Not tried"));
        out.push('\n');
        for item in &outcome.not_tried {
            out.push_str(&look.hanging("  - ", 4, &format!("{}: {}", item.what, item.because)));
        }
    }
    if let Some(why) = &outcome.ended_early {
        out.push('\n');
        out.push_str(&look.hanging(&format!("{}  ", look.warn("ended early")), 13, why));
    }
    out.push_str(&how_to_go_on(record, far_options, look));
    out
}

fn headline(outcome: &Outcome, look: &Look) -> String {
    let kept = outcome
        .experiments
        .iter()
        .filter(|experiment| experiment.kept)
        .count();
    let what_is_left = match outcome.diagnosis.verdict {
        Verdict::Healthy => "nothing is left to mend".to_owned(),
        Verdict::Findings => {
            let left: Vec<&str> = outcome
                .diagnosis
                .findings
                .iter()
                .filter(|finding| finding.consequence_of.is_none())
                .map(|finding| finding.code.as_str())
                .collect();
            format!("left: {}", left.join(", "))
        }
        Verdict::Unmeasured => "what is left could not be told for sure".to_owned(),
    };
    let interface = &outcome.interface;
    let tried = match outcome.experiments.len() {
        1 => format!("1 remedy tried on {interface}"),
        tried => format!("{tried} remedies tried on {interface}"),
    };
    let (word, text) = match (outcome.experiments.len(), kept) {
        (0, _) => (
            look.bold("nothing tried"),
            format!("on {interface}; {what_is_left}."),
        ),
        (_, 0) => (
            look.warn("nothing kept"),
            format!("of {tried}: everything is as it was; {what_is_left}."),
        ),
        (_, kept) => (
            look.good(&format!("{kept} kept")),
            format!("of {tried}, proved by the measured gain; {what_is_left}."),
        ),
    };
    let indent = columns(&word) + 2;
    look.hanging(&format!("{word}  "), indent, &text)
}

fn stages(stages: &[Stage], look: &Look) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "?".to_owned(), units::rate);
    let rows: Vec<Vec<String>> = stages
        .iter()
        .enumerate()
        .map(|(index, stage)| {
            vec![
                if index == 0 {
                    "before".to_owned()
                } else {
                    format!("after {}", stage.label)
                },
                rate(stage.upload),
                rate(stage.download),
                stage.loaded_rtt.map_or_else(|| "?".to_owned(), units::time),
            ]
        })
        .collect();
    table(
        look,
        2,
        &["", "upload", "download", "RTT under load"],
        &rows,
        1,
    )
}

fn how_to_go_on(record: &TuneRecord, far_options: &str, look: &Look) -> String {
    if record.outcome.kept.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    match record.outcome.confirm_within {
        Some(seconds) if !record.confirmed => {
            let text = format!(
                "Everything is put back in {} unless you confirm it:",
                units::time(seconds)
            );
            out.push_str(&look.paragraph(0, &text));
            out.push_str(&look.hanging(
                "  keep it      ",
                15,
                &format!("wirespeed tune confirm{far_options}"),
            ));
        }
        _ => out.push_str(&look.paragraph(
            0,
            "The changes are confirmed. They last until the next restart.",
        )),
    }
    out.push_str(&look.hanging(
        "  put it back  ",
        15,
        &format!("wirespeed tune undo{far_options}"),
    ));
    out
}

/// What an undo did, machine by machine.
pub fn put_back(machines: &[(String, Vec<PutBack>)], look: &Look) -> String {
    let mut out = String::new();
    for (machine, outcomes) in machines {
        if outcomes.is_empty() {
            out.push_str(&look.hanging(
                &format!("{}  ", look.bold(machine)),
                0,
                "nothing was changed by a tune",
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

fn put_back_words(put_back: &PutBack) -> String {
    let setting = setting_words(&put_back.setting);
    let before = in_words(&put_back.before, unit_of(&put_back.setting));
    match &put_back.result {
        PutBackResult::PutBack => format!("{setting} is {before} again"),
        PutBackResult::ChangedByOthers { now } => {
            format!(
                "{setting} was changed by somebody else meanwhile and stays as it is ({now}); it was {before}"
            )
        }
        PutBackResult::Gone => format!("{setting} is gone, and the change with it"),
        PutBackResult::Failed { why } => {
            format!("{setting} could not be put back to {before}: {why}")
        }
    }
}

/// Where the tunes of some machines are.
pub fn tune_status(machines: &[(String, Status)], look: &Look) -> String {
    let mut out = String::new();
    for (machine, status) in machines {
        let text = match &status.state {
            State::Idle => "no tune since the last restart".to_owned(),
            State::Experimenting { process } => format!("a tune is at work (process {process})"),
            State::Kept { seconds_left } => {
                format!(
                    "changes wait to be confirmed; put back in {}",
                    units::time(*seconds_left)
                )
            }
            State::Confirmed { .. } => {
                "changes are confirmed; `wirespeed tune undo` still puts them back".to_owned()
            }
            State::Undone { why, .. } => format!("put back: {why}"),
        };
        out.push_str(&look.hanging(
            &format!("{}  ", look.bold(machine)),
            columns(machine) + 2,
            &text,
        ));
        for change in &status.changes {
            let unit = unit_of(&change.setting);
            let now = match &change.now {
                Some(now) if *now == change.tuned => String::new(),
                Some(now) => format!(", now {}", in_words(now, unit)),
                None => ", now not known".to_owned(),
            };
            let text = format!(
                "{}: {} → {}{now}",
                setting_words(&change.setting),
                in_words(&change.before, unit),
                in_words(&change.tuned, unit)
            );
            out.push_str(&look.hanging("  ", 4, &text));
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

/// The plan: one script after the other, each under the name of its machine.
pub fn plan(record: &PlanRecord) -> String {
    if record.plan.is_empty() {
        return "# Nothing to do.\n".to_owned();
    }
    record
        .plan
        .iter()
        .map(|(_, script)| script.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

fn setting_words(setting: &Setting) -> String {
    match setting {
        Setting::LinkMtu { interface } => format!("MTU of {interface}"),
        Setting::SocketReceiveBuffer { interface } => {
            format!("receive buffer of {interface}'s socket")
        }
        Setting::RouteCongestion { interface } => {
            format!("congestion control of the routes by {interface}")
        }
        Setting::EgressShaper { interface } => format!("rate limit of {interface}"),
        Setting::ReceiveRing { interface } => format!("receive ring of {interface}"),
        Setting::InterruptCores { interrupt } => format!("cores of interrupt {interrupt}"),
        Setting::Governor => "frequency governor".to_owned(),
        Setting::ThreadedNapi { interface } => format!("threaded NAPI of {interface}"),
        Setting::LinkOffload { interface, feature } => format!("{feature} of {interface}"),
        Setting::Sysctl { name } => name.clone(),
    }
}

fn one(experiment: &Experiment, look: &Look) -> String {
    let word = if experiment.kept {
        look.good("kept")
    } else {
        look.warn("put back")
    };
    let mut out = format!("{word}  {}\n", look.bold(&experiment.code));
    let before = value(experiment, &experiment.before);
    let after = value(experiment, &experiment.after);
    out.push_str(&look.hanging(
        "  change    ",
        12,
        &clean(&format!("{}: {before} → {after}", experiment.setting)),
    ));
    let what = match experiment.goal {
        Goal::Goodput => "goodput",
        Goal::LoadedRtt => "RTT under load",
    };
    let gain = format!(
        "{what} {} → {}, gain {} (95 %: {} to {})",
        units::in_unit(experiment.measured_before, &experiment.unit),
        units::in_unit(experiment.measured_after, &experiment.unit),
        units::signed(experiment.gain, &experiment.unit),
        units::signed(experiment.gain_low, &experiment.unit),
        units::signed(experiment.gain_high, &experiment.unit),
    );
    out.push_str(&look.hanging("  measured  ", 12, &gain));
    for guard in experiment
        .guards
        .iter()
        .filter(|guard| look.details || !guard.held)
    {
        let text = format!(
            "{}: {} → {} ({})",
            guard.name,
            units::in_unit(guard.before, &guard.unit),
            units::in_unit(guard.after, &guard.unit),
            match (guard.comparable, guard.held) {
                (false, _) => "not comparable: another load before",
                (true, true) => "held",
                (true, false) => "worse",
            }
        );
        out.push_str(&look.hanging("  guard     ", 12, &text));
    }
    out.push_str(&look.hanging("  why       ", 12, &clean(&experiment.why)));
    if look.details && experiment.changes.len() > 1 {
        for made in &experiment.changes {
            let end = match made.end {
                End::Here => "here",
                End::Far => "far end",
            };
            let unit = unit_of(&made.setting);
            let text = format!(
                "{} ({end}): {} → {}",
                made.host,
                in_words(&made.before, unit),
                in_words(&made.after, unit)
            );
            out.push_str(&look.hanging("  on        ", 12, &clean(&text)));
        }
    }
    out
}

fn value(experiment: &Experiment, value: &Value) -> String {
    in_words(
        value,
        experiment
            .changes
            .first()
            .map_or("", |made| unit_of(&made.setting)),
    )
}

/// A setting's value as people read it; `null` is the kernel's default.
fn in_words(value: &Value, unit: &str) -> String {
    units::value(value, unit).unwrap_or_else(|| "not set".to_owned())
}

fn unit_of(setting: &Setting) -> &'static str {
    match setting {
        Setting::LinkMtu { .. } | Setting::SocketReceiveBuffer { .. } => "bytes",
        Setting::EgressShaper { .. } => "bit/s",
        Setting::ReceiveRing { .. } => "packets",
        Setting::RouteCongestion { .. }
        | Setting::InterruptCores { .. }
        | Setting::Governor
        | Setting::ThreadedNapi { .. }
        | Setting::LinkOffload { .. }
        | Setting::Sysctl { .. } => "",
    }
}
