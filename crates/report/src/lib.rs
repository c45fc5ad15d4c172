//! How results look: text for terminals, HTML for browsers, and the JSON that others script against.
//!
//! Nothing here measures or judges; [`diff::against`] lines two records up, and every other function turns a
//! finished value into text. What is said is in `report.ftl` of each language (`crates/words`); each module
//! has the layout of one kind of report.

mod changes_text;
mod demo_text;
pub mod diff;
mod doctor_text;
mod exchange_reasons;
mod exchange_text;
mod first_words;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hops_text;
pub mod html;
mod lists;
mod look;
mod measured_text;
mod over_time;
mod page;
mod places;
mod readers_words;
mod record;
mod room;
mod spark;
mod test_text;
mod tune_text;
mod typed;
pub mod units;
mod versioned;
mod watched_text;

pub use changes_text::{not_put_back, put_back, tune_status};
pub use demo_text::{DemoStory, demo_begin, demo_end, demo_lacks, demo_table};
pub use doctor_text::doctor;
pub use hops_text::hops;
pub use look::{Look, sheet};
pub use page::page;
pub use places::told;
pub use record::*;
pub use test_text::{against, test};
pub use tune_text::{plan, tune};
pub use versioned::{Schema, StatusRecord, UndoRecord, Versioned};
pub use wirespeed_words::clean;
