//! Links and headings of a page.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use mdbook_markdown::pulldown_cmark::{Event, Parser, Tag, TagEnd};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

/// A link or a picture in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where in the page's text it is, in bytes.
    pub place: Range<usize>,
    /// What is shown, as Markdown.
    pub text: String,
    /// What it points to, as written.
    pub to: String,
}

impl Link {
    /// Does it stay within the repository?
    pub fn is_local(&self) -> bool {
        !self.to.contains("://") && !self.to.starts_with("mailto:")
    }

    /// The file it points to, relative to `docs`, with `..` in front for what is outside; and the heading. `page` is where it
    /// stands, relative to `docs`.
    pub fn target(&self, page: &Path) -> (PathBuf, Option<&str>) {
        let (file, heading) = match self.to.split_once('#') {
            Some((file, heading)) => (file, Some(heading)),
            None => (self.to.as_str(), None),
        };
        if file.is_empty() {
            return (page.to_owned(), heading);
        }
        let mut target = page.parent().unwrap_or(Path::new("")).to_owned();
        for part in Path::new(file).components() {
            let above = matches!(
                target.components().next_back(),
                None | Some(Component::ParentDir)
            );
            match part {
                Component::ParentDir if !above => {
                    target.pop();
                }
                part => target.push(part),
            }
        }
        (target, heading)
    }

    /// The file it points to, relative to the repository, if that is outside `docs`.
    pub fn outside(&self, page: &Path) -> Option<String> {
        if !self.is_local() {
            return None;
        }
        let (target, _) = self.target(page);
        let outside = target.strip_prefix("..").ok()?;
        Some(outside.display().to_string())
    }
}

/// The page's Markdown as the book understands it.
pub fn parser(text: &str) -> Parser<'_> {
    let mut options = MarkdownOptions::default();
    options.smart_punctuation = false;
    options.definition_lists = false;
    options.admonitions = false;
    new_cmark_parser(text, &options)
}

/// Every link and picture of a page, in order.
pub fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (event, place) in parser(text).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let written = &text[place.clone()];
            let shown = written
                .rsplit_once("](")
                .map_or(written, |(shown, _)| shown);
            links.push(Link {
                text: shown.trim_start_matches(['!', '[']).to_owned(),
                to: dest_url.into_string(),
                place,
            });
        }
    }
    links
}

/// The anchors of a page's headings, as code forges make them of the text; mdBook's are the same.
pub fn headings(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                let anchor = anchor(text);
                let times = seen.entry(anchor.clone()).or_default();
                anchors.push(match *times {
                    0 => anchor,
                    again => format!("{anchor}-{again}"),
                });
                *times += 1;
                heading = None;
            }
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let of = |character: char| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character),
        _ => None,
    };
    heading.to_lowercase().chars().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_from_its_page() {
        let target = |to: &str, page: &str| {
            let link = links(&format!("[x]({to})")).remove(0);
            let (file, heading) = link.target(Path::new(page));
            (file.display().to_string(), heading.map(str::to_owned))
        };
        assert_eq!(target("tune.md", "lab.md"), ("tune.md".into(), None));
        assert_eq!(
            target("../../fr/tune.md#preuve", "causes/fr/path-loss.md"),
            ("fr/tune.md".into(), Some("preuve".into()))
        );
        assert_eq!(
            target("#undo", "tune.md"),
            ("tune.md".into(), Some("undo".into()))
        );
        assert_eq!(
            target("../../bench/x", "fr/device.md"),
            ("../bench/x".into(), None)
        );
        assert_eq!(
            target("../../../x", "fr/device.md"),
            ("../../x".into(), None)
        );
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(links("    [a](b)\n\n`[c](d)`"), []);
    }

    #[test]
    fn headings_have_their_anchors() {
        assert_eq!(
            headings("# What to type\n## `wirespeed` & more\n## What to type\n"),
            ["what-to-type", "wirespeed--more", "what-to-type-1"]
        );
    }
}
