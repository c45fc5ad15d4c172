//! Which language a person reads: from the environment, and held while a program runs. And what is shown to them is [`clean`].
//!
//! It knows nothing of texts, so that a program that says little can ask it without having them all.

mod clean;

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

pub use clean::{clean, clean_lines};

/// The languages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// `en`.
    English,
    /// `fr`.
    French,
}

static CHOSEN: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static WITHIN: Cell<Option<Language>> = const { Cell::new(None) };
}

impl Language {
    /// All of them; English, which is complete by definition, first.
    pub const ALL: [Self; 2] = [Self::English, Self::French];

    /// Its tag in BCP 47.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
        }
    }

    /// Of a tag or a POSIX locale: `fr`, `fr-CA`, `fr_FR.UTF-8@euro`; `C` and `POSIX` are English. `None` = one we don't speak.
    pub fn of(locale: &str) -> Option<Self> {
        let language = locale.split(['_', '-', '.', '@']).next()?;
        if is_c(locale) {
            return Some(Self::English);
        }
        Self::ALL
            .into_iter()
            .find(|one| one.tag().eq_ignore_ascii_case(language))
    }

    /// What the environment asks for, as with gettext: the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set and not empty is the
    /// locale, and none of them is `C`. In any locale but `C` and `POSIX` a `LANGUAGE` that is not empty decides instead, a list with the
    /// most wanted first: `LC_ALL=C` is how scripts ask for plain English. English where that names no language that is there.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set);
        let Some(locale) = locale.filter(|locale| !is_c(locale)) else {
            return Self::English;
        };
        let wanted = set("LANGUAGE").unwrap_or(locale);
        wanted
            .split(':')
            .find_map(Self::of)
            .unwrap_or(Self::English)
    }
}

/// To gettext `C.UTF-8` is a locale like any other.
fn is_c(locale: &str) -> bool {
    locale == "C" || locale == "POSIX"
}

/// What a person typed, in the quotation marks of the language of the moment; what would steer a terminal is escaped.
pub fn quoted(text: &str) -> String {
    let english = format!("{text:?}");
    match language() {
        Language::English => english,
        Language::French => {
            let inside = &english[1..english.len() - 1];
            format!("«\u{202f}{}\u{202f}»", inside.replace("\\\"", "\""))
        }
    }
}

/// The language of the whole program from now on.
pub fn speak(language: Language) {
    CHOSEN.store(language as u8, Ordering::Relaxed);
}

/// The language of the moment.
pub fn language() -> Language {
    WITHIN.get().unwrap_or_else(|| {
        let chosen = usize::from(CHOSEN.load(Ordering::Relaxed));
        Language::ALL
            .get(chosen)
            .copied()
            .unwrap_or(Language::English)
    })
}

/// Runs something in a language, on this thread only.
pub fn within<T>(language: Language, run: impl FnOnce() -> T) -> T {
    struct Back(Option<Language>);
    impl Drop for Back {
        fn drop(&mut self) {
            WITHIN.set(self.0);
        }
    }
    let _back = Back(WITHIN.replace(Some(language)));
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(variables: &[(&str, &str)]) -> Language {
        Language::of_environment(|name| {
            variables
                .iter()
                .find(|(one, _)| *one == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_is_asked_in_order() {
        use Language::{English, French};
        for (variables, language) in [
            (&[][..], English),
            (&[("LANG", "fr_FR.UTF-8")], French),
            (&[("LANG", "de_DE.UTF-8")], English),
            (
                &[("LANG", "fr_FR.UTF-8"), ("LC_MESSAGES", "en_GB.UTF-8")],
                English,
            ),
            (&[("LC_ALL", "fr_CA"), ("LANG", "en_US")], French),
            (&[("LC_ALL", ""), ("LANG", "fr")], French),
            (&[("LANGUAGE", "de:fr:en"), ("LANG", "en_US.UTF-8")], French),
            (&[("LANGUAGE", ""), ("LANG", "fr_BE@euro")], French),
            (&[("LANGUAGE", "de"), ("LANG", "fr_BE@euro")], English),
            (
                &[("LC_ALL", "de_DE.UTF-8"), ("LANG", "fr_FR.UTF-8")],
                English,
            ),
            (&[("LANGUAGE", "fr"), ("LC_ALL", "C.UTF-8")], French),
            (&[("LC_ALL", "C.UTF-8"), ("LANG", "fr_FR")], English),
            (&[("LANGUAGE", "fr"), ("LANG", "C")], English),
            (&[("LANGUAGE", "fr"), ("LANG", "POSIX")], English),
            (
                &[
                    ("LANGUAGE", "fr"),
                    ("LC_MESSAGES", "C"),
                    ("LANG", "de_DE.UTF-8"),
                ],
                English,
            ),
            (&[("LANGUAGE", "fr")], English),
        ] {
            assert_eq!(asked(variables), language, "{variables:?}");
        }
    }

    #[test]
    fn quotation_marks_are_those_of_the_language() {
        let both = |text: &str| Language::ALL.map(|language| within(language, || quoted(text)));
        assert_eq!(both("nope"), ["\"nope\"", "«\u{202f}nope\u{202f}»"]);
        assert_eq!(
            both("l'\"é\n"),
            ["\"l'\\\"é\\n\"", "«\u{202f}l'\"é\\n\u{202f}»"]
        );
    }

    #[test]
    fn a_language_holds_within_and_no_longer() {
        assert_eq!(language(), Language::English);
        let inside = within(Language::French, || {
            (language(), within(Language::English, language), language())
        });
        assert_eq!(
            inside,
            (Language::French, Language::English, Language::French)
        );
        assert_eq!(language(), Language::English);
    }
}
