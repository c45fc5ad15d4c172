//! Text that does not steer the terminal it is shown on.

/// What came from outside (host names, error texts) shown without what a terminal would obey: control characters, and
/// the marks that reorder text.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect()
}

fn steers(c: char) -> bool {
    let reorders = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n') || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        for steering in [
            "\u{1b}[2J",
            "\r",
            "\t",
            "\u{9b}31m",
            "\u{61c}",
            "\u{200f}",
            "\u{202e}",
            "\u{2069}",
        ] {
            let text = clean(&format!("a{steering}b"));
            assert!(!text.contains(steers), "{text:?}");
        }
        assert_eq!(clean("é\nم 漢"), "é\nم 漢");
    }
}
