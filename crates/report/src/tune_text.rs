//! Experiments in the terminal: what was tried, what it gained, what was kept.

use wirespeed_doctor::{End, Goal};
use wirespeed_settings::{Setting, Value};
use wirespeed_tune::Experiment;

use crate::look::{Look, clean, columns};
use crate::units;

/// The answer in one line, then one block per experiment.
pub fn experiments(experiments: &[Experiment], look: &Look) -> String {
    let kept = experiments
        .iter()
        .filter(|experiment| experiment.kept)
        .count();
    let mut out = match (experiments.len(), kept) {
        (0, _) => look.paragraph(
            0,
            "Nothing was tried: no finding has a remedy that wirespeed can try by itself.",
        ),
        (tried, 0) => {
            let text = format!("of {tried} tried: everything is as it was.");
            look.hanging(&format!("{}  ", look.warn("nothing kept")), 14, &text)
        }
        (tried, kept) => {
            let word = if kept == 1 {
                "1 change".to_owned()
            } else {
                format!("{kept} changes")
            };
            look.hanging(
                &format!("{}  ", look.good(&word)),
                columns(&word) + 2,
                &format!("kept of {tried} tried, each proved by a measured gain."),
            )
        }
    };
    for experiment in experiments {
        out.push('\n');
        out.push_str(&one(experiment, look));
    }
    out
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
            if guard.held { "held" } else { "worse" }
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
        Setting::RouteCongestion { .. } | Setting::Sysctl { .. } => "",
    }
}
