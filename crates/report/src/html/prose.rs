//! Sentences with commands and settings in them, which stand between backquotes.

use maud::{Markup, html};

use crate::room::clean;

/// A text whose backquoted parts are code. A backquote without its other one is a character like any.
pub(super) fn prose(text: &str) -> Markup {
    let text = clean(text);
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, code, after)) = first_code(rest) {
        parts.push((before, code));
        rest = after;
    }
    html! {
        @for (before, typed) in parts { (before) code { (typed) } }
        (rest)
    }
}

/// What is before the first code, the code itself, and what is after it.
fn first_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backquotes_is_code() {
        for (text, expected) in [
            ("", ""),
            ("a < b", "a &lt; b"),
            (
                "`MTU = 1340` in wg0.conf, or `<b>`.",
                "<code>MTU = 1340</code> in wg0.conf, or <code>&lt;b&gt;</code>.",
            ),
            ("a lone ` stays", "a lone ` stays"),
        ] {
            assert_eq!(prose(text).into_string(), expected);
        }
    }
}
