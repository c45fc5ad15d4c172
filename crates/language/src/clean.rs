//! Text that does not steer the terminal it is shown on.

/// What came from outside (host names, error texts) shown without what a terminal would obey: control characters, and
/// the marks that reorder text.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect()
}

fn steers(c: char) -> bool {
    let reorders =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n') || reorders
}
