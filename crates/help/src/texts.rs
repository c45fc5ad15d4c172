//! The texts by their key. English ones are in the definitions of the command lines themselves.

use wirespeed_language::{Language, language};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// The text of a key in the language of the moment, as it is written.
pub(crate) fn text(key: &str) -> Option<&'static str> {
    match language() {
        Language::English => None,
        Language::French => {
            let at = FRENCH.binary_search_by_key(&key, |(one, _)| *one).ok()?;
            Some(FRENCH[at].1)
        }
    }
}

/// The same with its values filled in.
pub(crate) fn filled(key: &str, values: &[(&str, &str)]) -> Option<String> {
    let mut rest = text(key)?;
    let mut out = String::with_capacity(rest.len());
    // From left to right, so that nothing in a value is taken for the place of another.
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}')?;
        let value = values.iter().find(|(one, _)| *one == name);
        out.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use wirespeed_language::within;

    use super::*;

    #[test]
    fn values_are_filled_in_once() {
        let french = |values: &[(&str, &str)]| {
            within(Language::French, || {
                filled("help-error-value-because", values).unwrap()
            })
        };
        let said = french(&[
            ("argument", "--{value}"),
            ("value", "1"),
            ("because", "non"),
        ]);
        assert!(said.contains("--{value}") && said.contains('1'), "{said}");
        assert_eq!(filled("help-error", &[("what", "no")]), None);
    }
}
