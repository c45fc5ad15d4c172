//! What a person reads, in English and French: messages by their key, and numbers as each language writes them.
//!
//! The texts are Project Fluent files (<https://projectfluent.org>) in `locales/en` and `locales/fr`, one for each cause and
//! one for each part of the program, and part of the program itself. [`say!`] looks one up and fills it in:
//!
//! ```
//! use wirespeed_words::{Language, say, within};
//! let both = || say!("direction-upload");
//! assert_eq!((within(Language::English, both), within(Language::French, both)), ("upload".into(), "envoi".into()));
//! ```
//!
//! One language is chosen when the program starts ([`speak`]). What others script against (`--json`) is English unless
//! another language was asked for by name, and so is what one machine tells another.

mod message;
pub mod units;

pub use message::{Value, is_there, message};
pub use wirespeed_language::{Language, clean, clean_lines, language, quoted, speak, within};

/// The message of a key, in the language of the moment, with its variables filled in: `say!("key", name = value, …)`.
///
/// Texts, whole numbers and `f64` are values. The key is a literal, so that a test can compare keys and variables with the files.
#[macro_export]
macro_rules! say {
    ($key:literal $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::message($key, [$((stringify!($name), $crate::Value::from($value))),*])
    };
}
