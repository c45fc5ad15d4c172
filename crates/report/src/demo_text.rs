//! The demonstration's own pages: its road, and its stages beside those of a published case.

use wirespeed_measure::Direction;
use wirespeed_tune::Outcome;
use wirespeed_words::say;

use crate::look::{Look, table};
use crate::measured_text::or_unknown;
use crate::units;

/// A published case of the same kind: state, and goodput in Mbit/s as its author measured it ("WireGuard throughput:
/// from 5 Mbps to saturating the link", a NAS behind a VPS).
fn published() -> [(String, f64); 5] {
    [
        (say!("report-demo-as-it-was"), 5e6),
        ("MTU 1280".to_owned(), 53e6),
        (
            say!(
                "report-demo-shaped",
                rate = units::fixed(150.0, 0, "Mbit/s")
            ),
            188e6,
        ),
        ("MTU 1440".to_owned(), 200e6),
        (say!("report-demo-buffers"), 450e6),
    ]
}

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
    out.push_str(&look.bold(&say!("report-demo-stages")));
    out.push_str("\n\n");
    let mut rows = Vec::new();
    let stages = &story.outcome.stages;
    let published = published();
    for index in 0..stages.len().max(published.len()) {
        let mut row = match stages.get(index) {
            Some(stage) => vec![
                if index == 0 {
                    say!("report-demo-as-it-was")
                } else {
                    say!("report-stage-after", what = &stage.label)
                },
                or_unknown(stage.upload, units::rate),
                or_unknown(stage.download, units::rate),
                or_unknown(stage.loaded_rtt, units::time),
            ],
            None => vec![String::new(); 4],
        };
        match published.get(index) {
            Some((state, rate)) => row.extend([units::rate(*rate), state.clone()]),
            None => row.extend([String::new(), String::new()]),
        }
        rows.push(row);
    }
    let header = [
        say!("report-here"),
        Direction::Upload.word(),
        Direction::Download.word(),
        say!("report-loaded-rtt"),
        say!("report-demo-published"),
        say!("report-demo-there"),
    ];
    out.push_str(&table(look, 2, &header, &rows, 1));
    if let (Some(possible), Some(reached)) = (story.possible, story.reached) {
        out.push('\n');
        let text = say!(
            "report-demo-reached",
            possible = units::rate(possible),
            reached = units::percent(reached)
        );
        out.push_str(&look.paragraph(0, &text));
    }
    out.push('\n');
    out.push_str(&look.bold(&say!("report-demo-knobs")));
    out.push_str("\n\n");
    let rows: Vec<Vec<String>> = story.knobs.iter().map(|row| row.to_vec()).collect();
    let header = [
        say!("report-demo-knob"),
        say!("report-stage-before"),
        say!("report-demo-tuned"),
        say!("report-demo-undone"),
    ];
    out.push_str(&table(look, 2, &header, &rows, 1));
    let put_back = if story.put_back {
        say!("report-demo-put-back")
    } else {
        say!("report-demo-not-put-back")
    };
    out.push_str(&look.paragraph(0, &put_back));
    out
}

/// How it ended: `left` names what is still there of the practice road.
pub fn demo_end(left: &[String], seconds: f64, look: &Look) -> String {
    let text = if left.is_empty() {
        say!("report-demo-end", time = units::time(seconds))
    } else {
        say!("report-demo-left", left = left.join(", "))
    };
    look.paragraph(0, &text)
}
