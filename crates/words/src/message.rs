//! A message by its key.

use std::borrow::Cow;
use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::types::FluentNumber;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use intl_memoizer::concurrent::IntlLangMemoizer;
use unic_langid::LanguageIdentifier;

use crate::{Language, language, units};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// What fills a variable in.
#[derive(Debug, Clone)]
pub struct Value<'a>(FluentValue<'a>);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.into())
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self(text.as_str().into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(text.into())
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl From<$number> for Value<'_> {
            fn from(number: $number) -> Self {
                Self(number.into())
            }
        })*
    };
}

numbers!(u8 u16 u32 u64 usize i32 i64 f64);

type Bundle = FluentBundle<FluentResource>;

/// The message of a key, in the language of the moment. Use [`say!`](crate::say), which tests look for; this one is for keys made at run time.
///
/// A key that is missing in a language is told in English, and one that is missing altogether as itself: tests see to it that none is.
pub fn message<'a, const N: usize>(key: &str, values: [(&'a str, Value<'a>); N]) -> String {
    let values: FluentArgs<'a> = values
        .into_iter()
        .map(|(name, value)| (name, value.0))
        .collect();
    filled_in(bundle(language()), key, &values)
        .or_else(|| filled_in(bundle(Language::English), key, &values))
        .unwrap_or_else(|| key.to_owned())
}

/// Is there such a message in a language?
pub fn is_there(language: Language, key: &str) -> bool {
    bundle(language).has_message(key)
}

fn filled_in(bundle: &Bundle, key: &str, values: &FluentArgs<'_>) -> Option<String> {
    let pattern = bundle.get_message(key)?.value()?;
    let mut errors = Vec::new();
    let text = bundle.format_pattern(pattern, Some(values), &mut errors);
    debug_assert!(errors.is_empty(), "{key}: {errors:?}");
    Some(text.into_owned())
}

fn bundle(language: Language) -> &'static Bundle {
    static ENGLISH_TEXTS: LazyLock<Bundle> = LazyLock::new(|| read(Language::English, ENGLISH));
    static FRENCH_TEXTS: LazyLock<Bundle> = LazyLock::new(|| read(Language::French, FRENCH));
    match language {
        Language::English => &ENGLISH_TEXTS,
        Language::French => &FRENCH_TEXTS,
    }
}

type Formatter = fn(&FluentValue<'_>, &IntlLangMemoizer) -> Option<String>;

fn read(language: Language, files: &[(&str, &str)]) -> Bundle {
    let tag: LanguageIdentifier = language.tag().parse().expect("a tag of BCP 47");
    let numbers: Formatter = match language {
        Language::English => |value, _| number(value, Language::English),
        Language::French => |value, _| number(value, Language::French),
    };
    let mut bundle = Bundle::new_concurrent(vec![tag]);
    // Nothing here is written from right to left; the marks would end up in commands that people copy.
    bundle.set_use_isolating(false);
    bundle.set_formatter(Some(numbers));
    bundle.add_builtins().expect("the first to add any");
    for (name, text) in files {
        let resource = FluentResource::try_new((*text).to_owned())
            .unwrap_or_else(|(_, errors)| panic!("{name}: {errors:?}"));
        if let Err(errors) = bundle.add_resource(resource) {
            panic!("{name}: {errors:?}");
        }
    }
    bundle
}

fn number(value: &FluentValue<'_>, language: Language) -> Option<String> {
    let FluentValue::Number(FluentNumber { value, options }) = value else {
        return None;
    };
    let least = options.minimum_fraction_digits.unwrap_or(0);
    let most = options.maximum_fraction_digits.unwrap_or(3).max(least);
    Some(units::decimal(*value, least, most, language))
}

#[cfg(test)]
mod tests;
