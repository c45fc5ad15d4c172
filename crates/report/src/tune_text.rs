//! Experiments in the terminal: what was tried, what it gained, what was kept.

use wirespeed_doctor::{End, Goal, Verdict};
use wirespeed_measure::Direction;
use wirespeed_settings::{Setting, Value};
use wirespeed_tune::{ChangeMade, Experiment, Outcome, Stage, guard_word};
use wirespeed_words::{clean_lines, say};

use crate::changes_text::put_back_words;
use crate::doctor_text::told;
use crate::lists::all_missing;
use crate::look::{Look, table_or_stacked};
use crate::measured_text::or_unknown;
use crate::over_time;
use crate::record::{PlanRecord, TuneRecord};
use crate::room::clean;
use crate::{places, readers_words, units};

/// Columns of the labels of an experiment.
const LABELS: usize = 12;
/// Columns of the labels of what to do next.
const NEXT: usize = 15;

/// What a tune did, and how to go on. `far_options` are those the user gave (` --far ssh://…`).
pub fn tune(record: &TuneRecord, far_options: &str, look: &Look) -> String {
    let outcome = &readers_words::outcome(&record.outcome);
    let (word, style, text) = headline(outcome);
    let mut out = look.verdict(&word, style, &text);
    for (host, put_back) in &outcome.recovered {
        let text = say!(
            "report-tune-recovered",
            host = host,
            what = put_back_words(put_back)
        );
        out.push_str(&look.labelled(&say!("report-label-first"), LABELS, &text));
    }
    for experiment in &outcome.experiments {
        out.push('\n');
        out.push_str(&one(experiment, look));
    }
    if outcome.stages.len() > 1 {
        out.push('\n');
        out.push_str(&stages(&outcome.stages, look));
    }
    out.push_str(&all_missing(
        &say!("report-tune-not-tried"),
        &outcome.not_tried,
        look,
    ));
    if let Some(why) = &outcome.ended_early {
        out.push('\n');
        out.push_str(&look.verdict(&say!("report-word-ended-early"), Look::warn, why));
    }
    out.push_str(&how_to_go_on(record, far_options, look));
    out
}

/// A word, how it looks, and what it sums up.
fn headline(outcome: &Outcome) -> (String, fn(&Look, &str) -> String, String) {
    let kept = outcome
        .experiments
        .iter()
        .filter(|experiment| experiment.kept)
        .count();
    let what_is_left = match outcome.diagnosis.verdict {
        Verdict::Healthy => say!("report-tune-left-nothing"),
        Verdict::Findings => {
            let left: Vec<&str> = outcome
                .diagnosis
                .findings
                .iter()
                .filter(|finding| finding.consequence_of.is_none())
                .map(|finding| finding.code.as_str())
                .collect();
            say!("report-tune-left", codes = left.join(", "))
        }
        Verdict::Unmeasured => say!("report-tune-left-unknown"),
    };
    let interface = &outcome.interface;
    match (outcome.experiments.len(), kept) {
        (0, _) => {
            let text = say!(
                "report-tune-nothing-tried",
                interface = interface,
                left = what_is_left
            );
            (say!("report-word-nothing-tried"), Look::bold, text)
        }
        (tried, 0) => {
            let text = say!(
                "report-tune-nothing-kept",
                tried = tried,
                interface = interface,
                left = what_is_left
            );
            (say!("report-word-nothing-kept"), Look::warn, text)
        }
        (tried, kept) => {
            let text = say!(
                "report-tune-kept",
                tried = tried,
                interface = interface,
                left = what_is_left
            );
            (say!("report-word-kept", count = kept), Look::good, text)
        }
    }
}

/// Why nothing was kept: what was tried, and what came of each; of a tune that kept something, nothing.
pub(crate) fn kept_nothing(outcome: &Outcome) -> Vec<String> {
    if !outcome.kept.is_empty() {
        return Vec::new();
    }
    let outcome = readers_words::outcome(outcome);
    let (word, _, text) = headline(&outcome);
    let tried = outcome.experiments.iter();
    std::iter::once(told(&word, &text))
        .chain(tried.map(|one| told(&one.code, &one.why)))
        .chain(outcome.ended_early.iter().cloned())
        .collect()
}

fn stages(stages: &[Stage], look: &Look) -> String {
    let rate = |rate: Option<f64>| or_unknown(rate, units::rate);
    let rows: Vec<Vec<String>> = stages
        .iter()
        .enumerate()
        .map(|(index, stage)| {
            vec![
                if index == 0 {
                    say!("report-stage-before")
                } else {
                    say!("report-stage-after", what = &stage.label)
                },
                rate(stage.upload),
                rate(stage.download),
                or_unknown(stage.loaded_rtt, units::time),
            ]
        })
        .collect();
    let header = [
        String::new(),
        Direction::Upload.word(),
        Direction::Download.word(),
        say!("report-loaded-rtt"),
    ];
    table_or_stacked(look, &header, &rows)
}

fn how_to_go_on(record: &TuneRecord, far_options: &str, look: &Look) -> String {
    if record.outcome.kept.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    match record.outcome.confirm_within {
        Some(seconds) if !record.confirmed => {
            let text = say!("report-tune-confirm", time = units::time(seconds));
            out.push_str(&look.paragraph(0, &text));
            out.push_str(&look.labelled_commands(
                &say!("report-label-keep-it"),
                NEXT,
                &[format!("wirespeed tune confirm{far_options}")],
            ));
        }
        _ => out.push_str(&look.paragraph(0, &say!("report-tune-confirmed"))),
    }
    out.push_str(&look.labelled_commands(
        &say!("report-label-put-it-back"),
        NEXT,
        &[format!("wirespeed tune undo{far_options}")],
    ));
    if look.details || record.confirmed {
        out.push_str(&over_restarts(&record.outcome.kept, look));
    }
    out
}

/// Where each change is written down to stay: once it is confirmed nothing else tells, for the tunnel is mended.
fn over_restarts(kept: &[ChangeMade], look: &Look) -> String {
    let mut out = format!("\n{}", look.title(&say!("report-keep-all")));
    for made in kept {
        let how = made.setting.persistence(&made.after);
        out.push_str(&look.hanging("  ", 4, &told(&change_words(made), &how)));
    }
    out
}

/// What was changed, and where.
pub(crate) fn change_words(made: &ChangeMade) -> String {
    let host = places::told(&made.host);
    clean(&say!(
        "doctor-on",
        what = made.setting.describe(),
        host = host
    ))
}

/// The plan: one script after the other, each under the name of its machine.
pub fn plan(record: &PlanRecord) -> String {
    if record.plan.is_empty() {
        return format!("# {}\n", say!("report-plan-nothing"));
    }
    record
        .plan
        .iter()
        .map(|(_, script)| clean_lines(script))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(experiment: &Experiment, look: &Look) -> String {
    let word = if experiment.kept {
        look.good(&say!("report-experiment-kept"))
    } else {
        look.warn(&say!("report-experiment-put-back"))
    };
    let mut out = format!("{word}  {}\n", look.bold(&experiment.code));
    let before = value(experiment, &experiment.before);
    let after = value(experiment, &experiment.after);
    let change = told(&experiment.setting, &format!("{before} → {after}"));
    out.push_str(&look.labelled(&say!("report-label-change"), LABELS, &change));
    let what = match experiment.goal {
        Goal::Goodput => say!("report-goal-goodput"),
        Goal::LoadedRtt => say!("report-loaded-rtt"),
    };
    let gain = say!(
        "report-experiment-gain",
        what = what,
        before = units::in_unit(experiment.measured_before, &experiment.unit),
        after = units::in_unit(experiment.measured_after, &experiment.unit),
        gain = units::signed(experiment.gain, &experiment.unit),
        low = units::signed(experiment.gain_low, &experiment.unit),
        high = units::signed(experiment.gain_high, &experiment.unit)
    );
    out.push_str(&look.labelled(&say!("report-label-measured"), LABELS, &gain));
    for guard in experiment
        .guards
        .iter()
        .filter(|guard| look.details || !guard.held)
    {
        let held = match (guard.comparable, guard.held) {
            (false, _) => say!("report-guard-not-comparable"),
            (true, true) => say!("report-guard-held"),
            (true, false) => say!("report-against-worse"),
        };
        let text = told(
            &guard_word(&guard.name),
            &format!(
                "{} → {} ({held})",
                units::in_unit(guard.before, &guard.unit),
                units::in_unit(guard.after, &guard.unit)
            ),
        );
        out.push_str(&look.labelled(&say!("report-label-guard"), LABELS, &text));
    }
    out.push_str(&look.labelled(&say!("report-label-why"), LABELS, &experiment.why));
    if look.details {
        out.push_str(&over_time::experiment(experiment, look));
    }
    if look.details && experiment.changes.len() > 1 {
        for made in &experiment.changes {
            let end = match made.end {
                End::Here => say!("report-here"),
                End::Far => say!("report-far-end"),
            };
            let text = told(
                &format!("{} ({end})", made.host),
                &format!(
                    "{} → {}",
                    setting_value(&made.setting, &made.before),
                    setting_value(&made.setting, &made.after)
                ),
            );
            out.push_str(&look.labelled(&say!("report-label-on"), LABELS, &text));
        }
    }
    out
}

/// A value that an experiment tried, as people read it.
pub(crate) fn value(experiment: &Experiment, value: &Value) -> String {
    let setting = experiment.changes.first().map(|made| &made.setting);
    in_words(value, setting.map_or("", unit_of))
}

/// A setting's value as people read it.
pub(crate) fn setting_value(setting: &Setting, value: &Value) -> String {
    in_words(value, unit_of(setting))
}

/// `null` is the kernel's default.
fn in_words(value: &Value, unit: &str) -> String {
    units::value(value, unit).unwrap_or_else(|| say!("report-not-set"))
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

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;
    use crate::changes_text::tests::{HERE, assert_named, french, refused};

    #[test]
    fn this_machine_is_named_in_the_readers_language() {
        let recorded = include_str!("../tests/recorded/tune-black-hole.json");
        let mut record: TuneRecord = serde_json::from_str(recorded).unwrap();
        record.outcome.recovered = vec![(HERE.to_owned(), refused())];
        record.outcome.ended_early = Some("here n’a plus répondu".to_owned());
        let text = french(|look| tune(&record, "", look));
        assert_named(&text);
        assert!(text.contains("cette machine\u{202f}: laissé par"), "{text}");
        assert!(text.contains("mtu on cette machine, netns"), "{text}");
        let page = within(Language::French, || crate::html::tune(&record, ""));
        assert!(page.contains("mtu on cette machine, netns"), "{page}");
        assert!(page.contains("cette machine n’a plus répondu"), "{page}");
    }

    #[test]
    fn what_was_kept_is_told_with_the_line_that_keeps_it() {
        let recorded = include_str!("../tests/recorded/tune-black-hole.json");
        let mut record: TuneRecord = serde_json::from_str(recorded).unwrap();
        let line = "`MTU = 1340` under [Interface]";
        let told = |record: &TuneRecord, details| tune(record, "", &Look::new(120, false, details));
        assert!(told(&record, true).contains(line));
        assert!(!told(&record, false).contains(line), "nothing is confirmed");
        record.confirmed = true;
        assert!(told(&record, false).contains(line));
        record.outcome.kept.clear();
        assert!(!told(&record, true).contains("To keep"));
    }
}
