//! `wirespeed explain`: the page of one cause, or the list of all.

use clap::Args;
use wirespeed_report::Look;

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
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let look = terminal::look(false);
    let Some(code) = &arguments.code else {
        terminal::print(&list(&look))?;
        return Ok(Exit::Done);
    };
    match PAGES.iter().find(|(known, _)| known == code) {
        Some((_, text)) => {
            terminal::print(&wirespeed_report::page(text, &look))?;
            Ok(Exit::Done)
        }
        None => Err(Failure::here(
            Exit::Usage,
            format!("there is no cause with the code {code:?}"),
            "wirespeed explain lists those there are",
        )),
    }
}

fn list(look: &Look) -> String {
    let widest = PAGES
        .iter()
        .map(|(code, _)| code.len())
        .max()
        .unwrap_or_default();
    let mut out = String::from("The causes wirespeed knows:\n\n");
    for (code, title) in wirespeed_doctor::codes() {
        out.push_str(&look.entry(code, widest, &title));
    }
    out.push_str("\nwirespeed explain CODE tells more about one.\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let codes: Vec<&str> = wirespeed_doctor::codes()
            .into_iter()
            .map(|(code, _)| code)
            .collect();
        for code in &codes {
            assert!(
                PAGES.iter().any(|(known, _)| known == code),
                "docs/causes/en/{code}.md is missing"
            );
        }
        for (code, text) in PAGES {
            assert!(codes.contains(code), "{code} has a page and no check");
            assert!(
                text.starts_with(&format!("# {code}\n")),
                "{code}: the page begins with its code"
            );
            for heading in [
                "## What you see",
                "## How to see it by hand",
                "## What to do",
                "## Sources",
            ] {
                assert!(text.contains(heading), "{code}: {heading} is missing");
            }
        }
    }
}
