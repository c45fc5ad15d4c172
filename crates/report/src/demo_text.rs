//! The demonstration's own pages: its road, and its stages beside those of a published case.

use wirespeed_measure::Direction;
use wirespeed_tune::Outcome;
use wirespeed_words::say;

use crate::look::{Look, table, table_or_stacked};
use crate::measured_text::or_unknown;
use crate::tune_text::kept_nothing;
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
    out.push_str(&look.title(&say!("report-demo-stages")));
    out.push('\n');
    out.push_str(&stages(story, look));
    if let Some(text) = reached(story) {
        out.push('\n');
        out.push_str(&look.paragraph(0, &text));
    }
    out.push('\n');
    out.push_str(&look.title(&say!("report-demo-knobs")));
    out.push('\n');
    let rows: Vec<Vec<String>> = story.knobs.iter().map(|row| row.to_vec()).collect();
    let header = [
        say!("report-demo-knob"),
        say!("report-stage-before"),
        say!("report-demo-tuned"),
        say!("report-demo-undone"),
    ];
    out.push_str(&table_or_stacked(look, &header, &rows));
    let put_back = if story.put_back {
        say!("report-demo-put-back")
    } else {
        say!("report-demo-not-put-back")
    };
    out.push_str(&look.paragraph(0, &put_back));
    out
}

/// The stages and the published ones: side by side where there is room, and else below each other.
fn stages(story: &DemoStory, look: &Look) -> String {
    let ours = [
        say!("report-here"),
        Direction::Upload.word(),
        Direction::Download.word(),
        say!("report-loaded-rtt"),
    ];
    let theirs = [say!("report-demo-there"), say!("report-demo-published")];
    let rows = story.outcome.stages.iter().enumerate();
    let rows: Vec<Vec<String>> = rows
        .map(|(index, stage)| {
            vec![
                if index == 0 {
                    say!("report-demo-as-it-was")
                } else {
                    say!("report-stage-after", what = &stage.label)
                },
                or_unknown(stage.upload, units::rate),
                or_unknown(stage.download, units::rate),
                or_unknown(stage.loaded_rtt, units::time),
            ]
        })
        .collect();
    let published: Vec<Vec<String>> = published()
        .into_iter()
        .map(|(state, rate)| vec![state, units::rate(rate)])
        .collect();
    let beside: Vec<Vec<String>> = (0..rows.len().max(published.len()))
        .map(|index| {
            let cells = |rows: &[Vec<String>], of: usize| {
                let row = rows.get(index).cloned();
                row.unwrap_or_else(|| vec![String::new(); of])
            };
            [cells(&rows, ours.len()), cells(&published, theirs.len())].concat()
        })
        .collect();
    let header = [ours.as_slice(), theirs.as_slice()].concat();
    let whole = table(look, 2, &header, &beside, 1);
    if look.has_room_for(&whole) {
        return whole;
    }
    let ours = table_or_stacked(look, &ours, &rows);
    format!("{ours}\n{}", table(look, 2, &theirs, &published, 1))
}

fn reached(story: &DemoStory) -> Option<String> {
    let (possible, reached) = (story.possible?, story.reached?);
    Some(say!(
        "report-demo-reached",
        possible = units::rate(possible),
        reached = units::percent(reached)
    ))
}

/// What is not as the demonstration was to show it, a sentence each; `enough` is the share of the road that a mended tunnel
/// has to carry, and `left` names what is still there.
pub fn demo_lacks(story: &DemoStory, enough: f64, left: &[String]) -> Vec<String> {
    let mut lacks = kept_nothing(&story.outcome);
    if story.reached.is_none_or(|share| share < enough) {
        lacks.push(reached(story).unwrap_or_else(|| say!("report-demo-reached-unknown")));
    }
    if !story.put_back {
        lacks.push(say!("report-demo-not-put-back"));
    }
    if !left.is_empty() {
        lacks.push(say!("report-demo-left", left = left.join(", ")));
    }
    lacks
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TuneRecord;

    #[test]
    fn what_it_lacks_is_told_a_sentence_each() {
        let tuned = include_str!("../tests/recorded/tune-black-hole.json");
        let tuned: TuneRecord = serde_json::from_str(tuned).unwrap();
        let mut story = DemoStory {
            outcome: tuned.outcome,
            possible: Some(100e6),
            reached: Some(0.95),
            knobs: Vec::new(),
            put_back: true,
        };
        assert!(demo_lacks(&story, 0.9, &[]).is_empty());
        story.reached = Some(0.85);
        let slow = "The road can carry 100 Mbit/s of payload through this tunnel each way; reached: 85 % of it in the worse direction.";
        assert_eq!(demo_lacks(&story, 0.9, &[]), [slow]);
        (story.reached, story.put_back) = (None, false);
        let left = ["namespace ws-a-gw1".to_owned()];
        assert_eq!(
            demo_lacks(&story, 0.9, &left),
            [
                "How much of its road the mended tunnel carries is not known.",
                "NOT everything is as it was before.",
                "Still there of the practice road: namespace ws-a-gw1.",
            ]
        );
    }

    #[test]
    fn why_nothing_was_kept_is_told_of_each_remedy() {
        let tuned = include_str!("../tests/recorded/tune-black-hole.json");
        let mut outcome = serde_json::from_str::<TuneRecord>(tuned).unwrap().outcome;
        outcome.kept.clear();
        outcome.experiments.truncate(1);
        outcome.experiments[0].kept = false;
        outcome.experiments[0].why = "the interval of the gain includes zero".to_owned();
        let story = DemoStory {
            outcome,
            possible: Some(100e6),
            reached: Some(0.0),
            knobs: Vec::new(),
            put_back: true,
        };
        let lacks = demo_lacks(&story, 0.9, &[]);
        assert_eq!(lacks.len(), 3, "{lacks:?}");
        assert!(
            lacks[0].starts_with("nothing kept: of 1 remedy tried on "),
            "{lacks:?}"
        );
        let code = &story.outcome.experiments[0].code;
        let why = format!("{code}: the interval of the gain includes zero");
        assert_eq!(lacks[1], why);
    }
}
