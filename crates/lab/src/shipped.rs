//! The scenarios inside the program.

use std::path::Path;
use std::sync::LazyLock;

use crate::{LabError, Scenario};

/// File name and text of each, from the folder `scenarios` (see `build.rs`).
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let mut all: Vec<Scenario> = FILES
        .iter()
        .map(|(name, text)| match Scenario::parse(text, name) {
            Ok(scenario) => scenario,
            Err(e) => unreachable!("a test reads every shipped scenario: {e}"),
        })
        .collect();
    // What is healthy first, what has most wrong with it last.
    all.sort_by_key(|scenario| scenario.finding.codes().len());
    all
});

/// Every scenario inside the program.
pub fn scenarios() -> &'static [Scenario] {
    &SCENARIOS
}

/// A scenario by the name of a shipped one, or the path of a file.
pub fn find(name_or_path: &str) -> Result<Scenario, LabError> {
    if let Some(scenario) = scenarios().iter().find(|s| s.name == name_or_path) {
        return Ok(scenario.clone());
    }
    let path = Path::new(name_or_path);
    if path.exists() {
        return Scenario::load(path);
    }
    Err(LabError::UnknownScenario {
        name: name_or_path.to_owned(),
        known: scenarios()
            .iter()
            .map(|s| s.name.as_str())
            .collect::<Vec<_>>()
            .join(", "),
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn every_shipped_scenario_reads_and_bears_the_name_of_its_file() {
        for (name, text) in FILES.iter().copied() {
            let scenario = Scenario::parse(text, name).unwrap();
            assert_eq!(scenario.name, name);
            let french = within(Language::French, || scenario.said().to_owned());
            assert_ne!(french, scenario.description, "{name} has no description_fr");
        }
    }

    #[test]
    fn a_name_that_is_neither_says_what_there_is() {
        let text = find("no-such").unwrap_err().to_string();
        assert!(
            text.contains("no-such") && text.contains("icmp-black-hole"),
            "{text}"
        );
    }
}
