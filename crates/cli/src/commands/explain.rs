//! `wirespeed explain`: the page of one cause, or the list of all.

use std::fmt::Write as _;

use clap::Args;
use wirespeed_report::Look;
use wirespeed_words::{Language, language, quoted, say};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal;

/// The page of one cause, or the list of all.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wirespeed explain mtu-exceeds-path")]
pub(crate) struct Arguments {
    /// A code as `wirespeed doctor` prints it; without one, every code is listed.
    code: Option<String>,
}

/// Every page, by its code; they are part of the program, so that it needs nothing else to explain itself.
mod pages {
    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}

fn pages(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::English => pages::ENGLISH,
        Language::French => pages::FRENCH,
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let look = terminal::look(false);
    let Some(code) = &arguments.code else {
        terminal::print(&list(&look))?;
        return Ok(Exit::Done);
    };
    let mut pages = pages(language()).iter();
    match pages.find(|(known, _)| known == code) {
        Some((_, text)) => {
            terminal::print(&wirespeed_report::page(text, &look))?;
            Ok(Exit::Done)
        }
        None => Err(Failure::here(
            Exit::Usage,
            say!("explain-no-such-code", code = quoted(code)),
            say!("explain-no-such-code-todo"),
        )),
    }
}

fn list(look: &Look) -> String {
    let codes = wirespeed_doctor::codes();
    let widest = codes.iter().map(|(code, _)| code.len()).max();
    let mut out = format!("{}\n\n", say!("explain-list"));
    for (code, title) in &codes {
        out.push_str(&look.entry(code, widest.unwrap_or_default(), title));
    }
    let _ = writeln!(out, "\n{}", say!("explain-list-more"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADINGS: [(Language, [&str; 6]); 2] = [
        (
            Language::English,
            [
                "What you see",
                "How to see it by hand",
                "What to do",
                "Why it helps",
                "When not",
                "Sources",
            ],
        ),
        (
            Language::French,
            [
                "Ce que l’on voit",
                "Comment le constater soi-même",
                "Que faire",
                "Pourquoi cela aide",
                "Quand s’en abstenir",
                "Sources",
            ],
        ),
    ];

    fn headings(page: &str) -> Vec<String> {
        page.lines()
            .filter_map(|line| Some(line.strip_prefix("## ")?.to_owned()))
            .collect()
    }

    /// What is typed: the lines of the code blocks without their comments, and without what they say when all went well.
    fn commands(page: &str) -> Vec<&str> {
        let (mut commands, mut fenced, mut after_gap) = (Vec::new(), false, true);
        for line in page.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            // A paragraph that is indented by four, or the next line of one that is.
            let indented = line.starts_with("    ") && after_gap;
            after_gap = line.trim().is_empty() || indented;
            if !fenced && !indented {
                continue;
            }
            let typed = line.split(" #").next().unwrap_or_default();
            let typed = typed.split("&& echo ").next().unwrap_or_default().trim();
            if !typed.is_empty() && !typed.starts_with('#') {
                commands.push(typed);
            }
        }
        commands
    }

    #[test]
    fn every_code_has_its_page_in_each_language_and_every_page_its_code() {
        let codes: Vec<&str> = wirespeed_doctor::codes()
            .into_iter()
            .map(|(code, _)| code)
            .collect();
        for (language, expected) in HEADINGS {
            let tag = language.tag();
            for code in &codes {
                assert!(
                    pages(language).iter().any(|(known, _)| known == code),
                    "docs/causes/{tag}/{code}.md is missing"
                );
            }
            for (code, text) in pages(language) {
                assert!(codes.contains(code), "{tag}/{code}: a page and no check");
                assert!(
                    text.starts_with(&format!("# {code}\n")),
                    "{tag}/{code}: the page begins with its code"
                );
                assert_eq!(headings(text), expected, "{tag}/{code}");
            }
        }
    }

    #[test]
    fn a_page_has_the_same_commands_in_each_language() {
        let mut unlike = Vec::new();
        for (code, english) in pages(Language::English) {
            let french = pages(Language::French)
                .iter()
                .find(|(known, _)| known == code)
                .map_or("", |(_, text)| text);
            let (english, french) = (commands(english), commands(french));
            for (one, other) in english
                .iter()
                .zip(&french)
                .filter(|(one, other)| one != other)
            {
                unlike.push(format!("{code}: {one:?} and {other:?}"));
            }
            if english.len() != french.len() {
                let (one, other) = (english.len(), french.len());
                unlike.push(format!("{code}: {one} and {other} lines to type"));
            }
        }
        assert!(unlike.is_empty(), "{unlike:#?}");
    }
}
