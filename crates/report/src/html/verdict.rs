//! The answer first: one word, one sentence, and the figures it rests on.

use maud::{Markup, html};
use wirespeed_doctor::{Finding, Severity, Verdict};
use wirespeed_facts::Known;
use wirespeed_measure::{Comparison, RttSummary, Via};
use wirespeed_words::say;

use super::prose::prose;
use super::room;
use super::svg::px;
use crate::measured_text::title;
use crate::room::drawn;
use crate::units;

/// How the answer is coloured. The word says the same, so no colour is needed to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Warn,
    Bad,
    Neutral,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Neutral => "neutral",
        }
    }

    /// A sign in the same sense, for paper without colours.
    fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Warn => "!",
            Self::Bad => "✕",
            Self::Neutral => "i",
        }
    }
}

/// The word, and what it means here.
pub(super) struct Answer {
    pub(super) tone: Tone,
    pub(super) word: String,
    pub(super) sentences: Vec<String>,
}

impl Answer {
    pub(super) fn markup(&self) -> Markup {
        html! {
            div class={ "answer " (self.tone.class()) } {
                span.sign aria-hidden="true" { (self.tone.sign()) }
                div {
                    p.word { (self.word) }
                    @for one in &self.sentences { p { (prose(one)) } }
                }
            }
        }
    }
}

/// Begins with a capital and ends with a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), letters.as_str())
    })
}

/// How many findings stand by themselves, and how bad the worst is.
pub(super) fn found(findings: &[Finding]) -> (String, Tone) {
    let roots: Vec<&Finding> = findings
        .iter()
        .filter(|one| one.consequence_of.is_none())
        .collect();
    let tone = match roots.iter().map(|one| one.severity).max() {
        Some(Severity::Critical) => Tone::Bad,
        Some(Severity::Warning) => Tone::Warn,
        Some(Severity::Info) | None => Tone::Neutral,
    };
    (say!("html-findings-count", count = roots.len()), tone)
}

/// A word for each verdict; `Findings` has a better one where they are counted.
pub(super) fn word(verdict: Verdict) -> (String, Tone) {
    match verdict {
        Verdict::Healthy => (say!("html-healthy"), Tone::Good),
        Verdict::Findings => (say!("html-slow"), Tone::Warn),
        Verdict::Unmeasured => (say!("html-unmeasured"), Tone::Neutral),
    }
}

/// A tile for each comparison, and one for the round trips.
pub(super) fn tiles(
    comparisons: &[Comparison],
    idle_tunnel: Option<&Known<RttSummary>>,
    healthy: f64,
) -> Markup {
    let idle = idle_tunnel
        .and_then(Known::value)
        .and_then(|rtt| rtt.median);
    let loaded = comparisons
        .iter()
        .flat_map(|one| one.of(Via::Tunnel))
        .filter_map(|sample| sample.loaded_rtt.as_ref()?.median)
        .max_by(f64::total_cmp);
    let drawn = drawn(comparisons);
    html! {
        @if !comparisons.is_empty() || idle.is_some() {
            ul.tiles {
                @for one in drawn.iter() { (tile(one, healthy)) }
                @if let Some(idle) = idle {
                    li {
                        p.label { (say!("html-tile-rtt")) }
                        p.figure { (units::time(idle)) }
                        p.detail {
                            @match loaded {
                                Some(loaded) => (say!("html-tile-rtt-loaded", time = units::time(loaded))),
                                None => (say!("html-tile-rtt-idle")),
                            }
                        }
                    }
                }
            }
            (room::more(comparisons.len() - drawn.len()))
        }
    }
}

fn tile(one: &Comparison, healthy: f64) -> Markup {
    let below = one.ratio_high.is_some_and(|high| high < healthy);
    html! {
        li {
            p.label { (title(one)) }
            @match (one.ratio, one.bare) {
                (Some(ratio), Some(bare)) => {
                    p.figure { (units::percent(ratio)) }
                    // The bar repeats the figure.
                    svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                        rect.ground width="100" height="6" {}
                        rect class=(if below { "below" } else { "s1" }) width=(px(ratio.clamp(0.0, 1.0) * 100.0)) height="6" {}
                    }
                    p.detail {
                        (say!("html-tile-of", tunnel = units::rate(one.tunnel), bare = units::rate(bare)))
                    }
                }
                _ => {
                    p.figure { (units::rate(one.tunnel)) }
                    p.detail { (say!("html-tile-no-road")) }
                }
            }
        }
    }
}
