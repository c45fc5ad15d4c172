//! Foreign text made fit to be shown: short, one line, nothing a terminal would obey.

/// Up to `most` characters of `bytes`, from the start, control characters escaped.
pub(crate) fn beginning(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(most * 4)]);
    let mut shown: String = text.chars().take(most).flat_map(escape).collect();
    if text.chars().count() > most || bytes.len() > most * 4 {
        shown.push('…');
    }
    shown
}

/// The last `most` lines of `bytes` that say something, escaped and joined by `"; "`.
pub(crate) fn last_lines(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.chars().flat_map(escape).collect())
        .collect();
    lines[lines.len().saturating_sub(most)..].join("; ")
}

/// The last line of `bytes` that says something, escaped; `None` when none does.
pub(crate) fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(beginning(line.as_bytes(), 300))
}

/// More than anybody reads, and more than any of our own errors says.
const LONGEST_MESSAGE: usize = 4096;

/// A message, its line ends kept, other control characters escaped; only its beginning where it is endless.
pub(crate) fn message(text: &str) -> String {
    let mut letters = text.chars();
    let mut shown: String = letters
        .by_ref()
        .take(LONGEST_MESSAGE)
        .flat_map(|character| {
            if character == '\n' {
                vec![character]
            } else {
                escape(character)
            }
        })
        .collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// What a program wrote at its end, as the tail of a sentence.
pub(crate) fn last_words(stderr: &str) -> String {
    if stderr.is_empty() {
        "; it said nothing about why".to_owned()
    } else {
        format!("; its last words: {stderr}")
    }
}

fn escape(character: char) -> Vec<char> {
    // Beyond C0 and C1 controls: the marks that reorder text on a terminal.
    let reorders = matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || reorders {
        character.escape_default().collect()
    } else {
        vec![character]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_do_not_reach_the_terminal() {
        assert_eq!(beginning(b"\x1b[2Jhi\xff", 80), "\\u{1b}[2Jhi\u{fffd}");
        assert_eq!(beginning("abc\u{202e}".as_bytes(), 80), "abc\\u{202e}");
    }

    #[test]
    fn messages_keep_their_lines() {
        assert_eq!(message("one\ntwo\x07"), "one\ntwo\\u{7}");
        let endless = message(&"no ".repeat(1 << 20));
        assert_eq!(endless.chars().count(), 4097);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(beginning(b"abcdef", 3), "abc…");
        assert_eq!(beginning(b"abc", 3), "abc");
    }

    #[test]
    fn lines_that_say_nothing_are_left_out() {
        assert_eq!(last_lines(b"\r\nzero\none\r\n\n two \n", 2), "one; two");
        assert_eq!(last_line(b"one\ntwo\n\n").as_deref(), Some("two"));
        assert_eq!(last_line(b" \n"), None);
    }
}
