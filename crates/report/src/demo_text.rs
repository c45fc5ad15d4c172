//! The demonstration's own pages: its road, and its stages beside those of a published case.

use wirespeed_tune::Outcome;

use crate::look::{Look, table};
use crate::units;

/// A published case of the same kind: state, and goodput in Mbit/s as its author measured it ("WireGuard throughput:
/// from 5 Mbps to saturating the link", a NAS behind a VPS).
const PUBLISHED: [(&str, f64); 5] = [
    ("as it was", 5e6),
    ("MTU 1280", 53e6),
    ("shaped to 150 Mbit/s", 188e6),
    ("MTU 1440", 200e6),
    ("UDP buffers 25 MB", 450e6),
];

/// What the demonstration showed.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoStory {
    /// What tune did.
    pub outcome: Outcome,
    /// The most that the road can carry through the tunnel in each direction, bit/s of TCP payload.
    pub possible: Option<f64>,
    /// Goodput of the last stage over that, the worse direction; 0 to 1.
    pub reached: Option<f64>,
    /// What a tune may turn: name, value before, when tuned, and after undo.
    pub knobs: Vec<[String; 4]>,
    /// Is every knob as it was before?
    pub put_back: bool,
}

/// What the road is like.
pub fn demo_begin(description: &str, look: &Look) -> String {
    look.paragraph(0, description)
}

/// The stages beside the published ones, and every knob before, tuned and after undo.
pub fn demo_table(story: &DemoStory, look: &Look) -> String {
    let mut out = String::from("\n");
    out.push_str(&look.bold("Stage by stage, beside a published case of the same kind"));
    out.push_str("\n\n");
    let mut rows = Vec::new();
    let stages = &story.outcome.stages;
    for index in 0..stages.len().max(PUBLISHED.len()) {
        let mut row = match stages.get(index) {
            Some(stage) => vec![
                if index == 0 {
                    "as it was".to_owned()
                } else {
                    format!("after {}", stage.label)
                },
                stage.upload.map_or_else(|| "?".to_owned(), units::rate),
                stage.download.map_or_else(|| "?".to_owned(), units::rate),
                stage.loaded_rtt.map_or_else(|| "?".to_owned(), units::time),
            ],
            None => vec![String::new(); 4],
        };
        match PUBLISHED.get(index) {
            Some((state, rate)) => row.extend([units::rate(*rate), (*state).to_owned()]),
            None => row.extend([String::new(), String::new()]),
        }
        rows.push(row);
    }
    out.push_str(&table(
        look,
        2,
        &[
            "here",
            "upload",
            "download",
            "RTT under load",
            "published",
            "there",
        ],
        &rows,
        1,
    ));
    if let (Some(possible), Some(reached)) = (story.possible, story.reached) {
        out.push('\n');
        out.push_str(&look.paragraph(
            0,
            &format!(
                "The road can carry {} of payload through this tunnel each way; reached: {} of it in the worse direction.",
                units::rate(possible),
                units::percent(reached)
            ),
        ));
    }
    out.push('\n');
    out.push_str(&look.bold("Every knob, as the machines say themselves"));
    out.push_str("\n\n");
    let rows: Vec<Vec<String>> = story.knobs.iter().map(|row| row.to_vec()).collect();
    out.push_str(&table(
        look,
        2,
        &["knob", "before", "tuned", "after undo"],
        &rows,
        1,
    ));
    out.push_str(&look.paragraph(
        0,
        if story.put_back {
            "Everything is as it was before."
        } else {
            "NOT everything is as it was before."
        },
    ));
    out
}

/// How it ended: `left` names what is still there of the practice road.
pub fn demo_end(left: &[String], seconds: f64, look: &Look) -> String {
    let text = if left.is_empty() {
        format!(
            "Nothing is left of the practice road. All this took {}.",
            units::time(seconds)
        )
    } else {
        format!("Still there of the practice road: {}.", left.join(", "))
    };
    look.paragraph(0, &text)
}
