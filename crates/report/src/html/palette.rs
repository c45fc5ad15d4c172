//! The colours of the report, for light screens and paper and for dark screens.

use std::fmt::Write as _;

/// Colours as `#rrggbb`. A test holds their contrast to WCAG 2.2, level AA.
pub(super) struct Palette {
    /// Behind everything.
    page: &'static str,
    /// Behind a finding, a chart, a table.
    card: &'static str,
    /// Behind commands and the heads of tables.
    code: &'static str,
    /// What is read.
    text: &'static str,
    /// What is read second: units, captions.
    muted: &'static str,
    /// Lines that only part things.
    line: &'static str,
    /// The road in charts, or what was before a change.
    road: &'static str,
    /// The tunnel in charts, or what a change brought.
    tunnel: &'static str,
    /// Healthy, kept.
    good: &'static str,
    /// Costs something.
    warn: &'static str,
    /// Unusable.
    bad: &'static str,
    /// Worth knowing; links.
    info: &'static str,
    /// Cells of a heat map from idle to saturated, each with the colour of figures on it.
    heat: [(&'static str, &'static str); HEAT_STEPS],
}

/// Steps of a heat map.
pub(super) const HEAT_STEPS: usize = 6;

const LIGHT: Palette = Palette {
    page: "#f4f6f9",
    card: "#ffffff",
    code: "#eef1f6",
    text: "#17202e",
    muted: "#515d6e",
    line: "#d3d9e2",
    road: "#66758a",
    tunnel: "#0a62c4",
    good: "#17703a",
    warn: "#8a5300",
    bad: "#b3261e",
    info: "#0a5bb0",
    heat: [
        ("#e6edf5", "#17202e"),
        ("#bfd6ee", "#17202e"),
        ("#8db8e2", "#17202e"),
        ("#5b97d2", "#10151c"),
        ("#e09234", "#10151c"),
        ("#b3261e", "#ffffff"),
    ],
};

const DARK: Palette = Palette {
    page: "#10141a",
    card: "#181e27",
    code: "#212936",
    text: "#e7ebf1",
    muted: "#a5b0c0",
    line: "#364150",
    road: "#97a5b8",
    tunnel: "#5cabff",
    good: "#55c98b",
    warn: "#e6b450",
    bad: "#ff8b82",
    info: "#7fbaff",
    heat: [
        ("#222c39", "#e7ebf1"),
        ("#25405f", "#e7ebf1"),
        ("#2a5a8f", "#ffffff"),
        ("#4f93da", "#10151c"),
        ("#e39b45", "#10151c"),
        ("#ef4f45", "#10151c"),
    ],
};

/// The colours as custom properties: light, dark where the reader's screen is, and light again on paper.
pub(super) fn properties() -> String {
    let (light, dark) = (LIGHT.properties(), DARK.properties());
    format!(
        ":root{{color-scheme:light dark;{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
}

impl Palette {
    fn properties(&self) -> String {
        let mut out = String::new();
        for (name, colour) in self.named() {
            let _ = write!(out, "--{name}:{colour};");
        }
        for (step, (fill, text)) in self.heat.iter().enumerate() {
            let _ = write!(out, "--heat-{step}:{fill};--on-heat-{step}:{text};");
        }
        out
    }

    fn named(&self) -> [(&'static str, &'static str); 12] {
        [
            ("page", self.page),
            ("card", self.card),
            ("code", self.code),
            ("text", self.text),
            ("muted", self.muted),
            ("line", self.line),
            ("road", self.road),
            ("tunnel", self.tunnel),
            ("good", self.good),
            ("warn", self.warn),
            ("bad", self.bad),
            ("info", self.info),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Least contrast of text, and of what is drawn (WCAG 2.2, 1.4.3 and 1.4.11).
    const TEXT: f64 = 4.5;
    const DRAWN: f64 = 3.0;

    /// Relative luminance as WCAG 2.2 defines it.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn everything_stands_out_from_what_it_is_on() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 0.01);
        for (name, palette) in [("light", LIGHT), ("dark", DARK)] {
            let behind = [palette.page, palette.card, palette.code];
            for (what, colour) in palette.named().into_iter().skip(3) {
                let least = match what {
                    "line" => continue,
                    "road" | "tunnel" => DRAWN,
                    _ => TEXT,
                };
                for ground in behind {
                    let ratio = contrast(colour, ground);
                    assert!(ratio >= least, "{name}: {what} on {ground}: {ratio:.2}");
                }
            }
            for (fill, text) in palette.heat {
                let ratio = contrast(text, fill);
                assert!(ratio >= TEXT, "{name}: {text} on {fill}: {ratio:.2}");
            }
            // Steps side by side are told apart.
            for two in palette.heat.windows(2) {
                let ratio = contrast(two[0].0, two[1].0);
                assert!(ratio > 1.2, "{name}: {two:?}: {ratio:.2}");
            }
        }
    }
}
