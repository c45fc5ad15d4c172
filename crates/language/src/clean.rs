//! Text that does not steer the terminal it is shown on.

/// What came from outside (host names, error texts) as part of one line: without what a terminal would obey, control characters
/// and the marks that reorder text, and without ends of lines, behind which it could pass for a line of ours.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect()
}

/// The same of a text of several lines of ours, such as commands below each other: they stay apart.
pub fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

fn steers(c: char) -> bool {
    let reorders = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let ends_a_line = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || reorders || ends_a_line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        for steering in [
            "\u{1b}[2J",
            "\n",
            "\r",
            "\t",
            "\u{85}",
            "\u{9b}31m",
            "\u{61c}",
            "\u{200f}",
            "\u{2028}",
            "\u{2029}",
            "\u{202e}",
            "\u{2069}",
        ] {
            let text = clean(&format!("a{steering}b"));
            assert!(!text.contains(steers), "{text:?}");
            let lines = clean_lines(&format!("a{steering}b"));
            assert_eq!(lines == text, steering != "\n", "{lines:?}");
        }
        assert_eq!(clean("é\nم 漢"), "é م 漢");
        assert_eq!(clean_lines("é\r\nم 漢\n"), "é \nم 漢\n");
    }
}
