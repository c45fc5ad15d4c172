//! How much is shown of what came from outside, so that no machine buries an answer under what it calls itself. Records have all
//! of it.

use std::borrow::Cow;

use wirespeed_measure::Comparison;
use wirespeed_words::say;

/// Letters of a sentence; the longest of ours have some 500.
const SENTENCE: usize = 2000;
/// Letters of what stands in a column: a hundred IPv4 prefixes and more.
const CELL: usize = 2000;
/// Letters of what is to fit a screen with others.
const GLANCE: usize = 400;
/// Letters of a name.
const NAME: usize = 200;
/// Letters of the commands of one remedy, and of what undoes it: a peer may have a thousand prefixes.
const COMMANDS: usize = 40_000;
/// Comparisons that are drawn: half of them the slowest.
const DRAWN: usize = 16;

/// A sentence in one line, without what would steer a terminal.
pub(crate) fn clean(text: &str) -> String {
    cut(text, SENTENCE)
}

/// The same of what stands in a column.
pub(crate) fn cell(text: &str) -> String {
    cut(text, CELL)
}

/// The same of what is to fit a screen with others.
pub(crate) fn glance(text: &str) -> String {
    cut(text, GLANCE)
}

/// The same of a name.
pub(crate) fn name(text: &str) -> String {
    cut(text, NAME)
}

/// The beginning of a text with more letters than `most`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", wirespeed_words::clean(&text[..end])),
        None => wirespeed_words::clean(text),
    }
}

/// Commands as they are shown, each on its line and whole. More than anybody would copy are counted, in a comment.
pub(crate) fn commands<T: AsRef<str>>(all: &[T]) -> Vec<String> {
    if letters(all) > COMMANDS {
        return vec![format!(
            "# {}",
            say!("report-commands-too-long", count = all.len())
        )];
    }
    let one_line = |one: &T| wirespeed_words::clean(one.as_ref());
    all.iter().map(one_line).collect()
}

/// Bytes of all of them.
pub(crate) fn letters<T: AsRef<str>>(all: &[T]) -> usize {
    all.iter().map(|one| one.as_ref().len()).sum()
}

/// The comparisons that are drawn, in their order; of too many the first, and those whose tunnel carries least of its road.
pub(crate) fn drawn(all: &[Comparison]) -> Cow<'_, [Comparison]> {
    if all.len() <= DRAWN {
        return Cow::Borrowed(all);
    }
    let share = |place: &usize| all[*place].ratio.unwrap_or(f64::INFINITY);
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by(|one, other| share(one).total_cmp(&share(other)));
    // The order of what is equal is kept, so what is left is sorted by nothing but its place.
    places[DRAWN / 2..].sort_unstable();
    places.truncate(DRAWN);
    places.sort_unstable();
    places.iter().map(|place| all[*place].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TestRecord;

    #[test]
    fn a_long_text_is_its_beginning() {
        for (text, expected) in [("wg0", "wg0"), ("é\n漢", "é 漢")] {
            assert_eq!(name(text), expected);
        }
        let long = "é".repeat(NAME + 1);
        assert_eq!(name(&long[..2 * NAME]), &long[..2 * NAME]);
        let short = name(&long);
        assert_eq!(short.chars().count(), NAME + 1);
        assert!(short.ends_with("é…"));
        assert_eq!(name(&short), short);
    }

    /// What is told of a cause goes the same way.
    #[test]
    fn no_sentence_of_ours_is_cut() {
        for language in ["en", "fr"] {
            let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/causes/");
            for page in std::fs::read_dir(format!("{pages}{language}")).unwrap() {
                let path = page.unwrap().path();
                let text = std::fs::read_to_string(&path).unwrap();
                for part in text.split("\n\n").filter(|part| !part.starts_with('|')) {
                    assert!(
                        part.chars().count() < SENTENCE,
                        "{}: {part}",
                        path.display()
                    );
                }
            }
        }
    }

    #[test]
    fn commands_are_whole_or_none() {
        let two = ["do this  # on gw1\nreboot", "do that"];
        assert_eq!(commands(&two), ["do this  # on gw1 reboot", "do that"]);
        let long = ["do this", &"x".repeat(COMMANDS)];
        let [line] = commands(&long).try_into().unwrap();
        assert!(line.starts_with("# 2 commands"), "{line}");
    }

    #[test]
    fn the_first_and_the_slowest_are_drawn() {
        let recorded = include_str!("../tests/recorded/test-healthy.json");
        let record: TestRecord = serde_json::from_str(recorded).unwrap();
        let of = |count: u32| -> Vec<Comparison> {
            let one = |streams: u32| Comparison {
                streams,
                ratio: (streams > 0).then(|| 1.0 / f64::from(streams)),
                ..record.comparisons[0].clone()
            };
            (0..count).map(one).collect()
        };
        let drawn = |count: u32| -> Vec<u32> {
            let all = of(count);
            drawn(&all).iter().map(|one| one.streams).collect()
        };
        assert_eq!(drawn(16), (0..16).collect::<Vec<_>>());
        let expected: Vec<u32> = (0..8).chain(92..100).collect();
        assert_eq!(drawn(100), expected);
    }
}
